//! Runs as the store keeps them (run-machine.md §§2, 6, 7, 11; api.md "Runs"; seed A
//! "Persistence outline").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluicegate_core::actor::{Actor, Origin};
use sluicegate_core::code::Code;
use sluicegate_core::evidence::Evidence;
use sluicegate_core::ids::{
    Hash, NodeId, PayloadId, RunId, SchemaId, TenantId, WorkerId, WorkflowKey,
};
use sluicegate_core::node_type::NodeType;
use sluicegate_core::run::{
    AttemptRow, EVENT_SCHEMA_VERSION, EdgeRow, Event, EventError, Mode, NodeRow, PayloadKind,
    PriorLease, Queued, RecoveryReason, Rows, RunRow, RunStatus,
};
use sluicegate_core::time::{Instant, Millis};
use sluicegate_core::value::{self, Value};

use super::{By, ChildIntent, ChildSettlement};

pub use sluicegate_core::audit::Draft as AuditDraft;

/// The run that an idempotency key stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: String,
    /// Its workflow's key, to compare with the request's (N2).
    pub workflow_key: WorkflowKey,
    /// Its revision.
    pub workflow_revision: u64,
    /// Hash of the raw input, to compare with the request's (N2).
    pub input_hash: Hash,
    /// Its present status.
    pub status: RunStatus,
}

/// What became of an enqueue.
#[derive(Debug, Clone, PartialEq)]
pub enum EnqueueOutcome {
    /// The run is durable.
    Created,
    /// Another request with the key was first. Compare it (N2).
    Existing(Accepted),
    /// Another revision was published, or the workflow archived, in the meantime: read it
    /// again and decide again (N3).
    Moved,
}

/// Which published revision a run executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReference {
    /// The workflow.
    pub workflow_id: String,
    /// Its key.
    pub workflow_key: WorkflowKey,
    /// Its revision.
    pub workflow_revision: u64,
}

/// A live run with its first decision.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Whose run, who started it and through what.
    pub by: By,
    /// What it executes; it must still be the published revision.
    pub reference: RunReference,
    /// The caller's key.
    pub idempotency_key: String,
    /// Hash of the raw input; never shown.
    pub input_hash: Hash,
    /// What the caller may do, sorted.
    pub permissions: Vec<String>,
    /// The graph's semantic checksum.
    pub graph_checksum: Hash,
    /// The plan's hash.
    pub plan_hash: Hash,
    /// Its first event.
    pub queued: Box<Queued>,
    /// The decision to queue. Its guard is not looked at: the run is new.
    pub first: Commit,
}

/// A finished simulation.
#[derive(Debug, Clone)]
pub struct RunSimulated {
    /// Whose, by whom and through what.
    pub by: By,
    /// The workflow that it tried, where one was named: id, key, and the published revision
    /// unless a draft was tried.
    pub workflow: Option<(String, WorkflowKey, Option<u64>)>,
    /// The graph that was tried.
    pub graph: Value,
    /// Its semantic checksum.
    pub graph_checksum: Hash,
    /// Its plan's stored document.
    pub plan: Value,
    /// The plan's hash.
    pub plan_hash: Hash,
    /// Hash of the raw input; never shown.
    pub input_hash: Hash,
    /// Its first event.
    pub queued: Box<Queued>,
    /// All events, rows and payloads, and the one audit entry. Its guard is not looked at.
    pub whole: Commit,
}

/// What a commit must find for it to stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The lease of its owner and the sequence it decided from (W1).
    Owner {
        /// The claim's token.
        token: String,
        /// The claim's fence.
        fence: u64,
        /// The last event's sequence.
        sequence: u64,
    },
    /// The run as [`Store::due`](super::Store::due) found it; the commit takes the lease and
    /// records the claim at once (O4, W1).
    Claim {
        /// Who takes it.
        worker_id: WorkerId,
        /// Made for this claim.
        token: String,
        /// One more than the fence that was found.
        fence: u64,
        /// The token that was found: nobody's, or one that is over.
        found: Option<String>,
        /// For how long, by the database's clock.
        lease_ms: u64,
        /// The last event's sequence.
        sequence: u64,
    },
    /// The sequence alone: a request's cancellation, or retention (W2).
    Sequence(u64),
}

impl Guard {
    /// The sequence that was decided from.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Owner { sequence, .. }
            | Self::Claim { sequence, .. }
            | Self::Sequence(sequence) => *sequence,
        }
    }
}

/// What a decision does to children in the same commit: most begin and end with one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChildChanges {
    /// The end of a child that answered at once (O4). The commit stands only if this settles
    /// the child.
    pub settle: Option<ChildSettlement>,
    /// The child of the intent that the commit ends with (W4). It starts only if its key is
    /// new; [`Committed::started`] says so.
    pub start: Option<ChildIntent>,
}

/// What a commit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Its entry in the audit chain.
    pub audit_sequence: u64,
    /// Whether the child that it was to start is new and the caller's to execute.
    pub started: bool,
}

/// One decision to commit: all of it or nothing.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The tenant.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// What must still be so.
    pub guard: Guard,
    /// What happened.
    pub events: Vec<NewEvent>,
    /// The rows that these events touch.
    pub rows: Rows,
    /// The values that they name for the first time.
    pub payloads: Vec<Sealed>,
    /// What it does to children.
    pub children: ChildChanges,
    /// The types of the nodes whose attempts it touches.
    pub node_types: BTreeMap<NodeId, NodeType>,
    /// Its entry in the audit chain.
    pub audit: AuditDraft,
    /// Whether the lease goes back with it (W4). A terminal commit always ends the lease.
    pub hand_back: bool,
}

/// A payload in the forms that are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    /// Which.
    pub id: PayloadId,
    /// `Execution` also has evidence; a `Result` has its own kind.
    pub kind: PayloadKind,
    /// The schema that it was checked against.
    pub schema_id: SchemaId,
    /// Which key encrypted it.
    pub key_id: String,
    /// Nonce and ciphertext.
    pub bytes: Vec<u8>,
    /// What events say about it.
    pub evidence: Evidence,
    /// What readers may see.
    pub preview: Option<Value>,
}

/// A run that may be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The tenant.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// Its present fence.
    pub fence: u64,
    /// The token of the lease that is over, if there is one.
    pub token: Option<String>,
    /// The lease that was found there and is over (W3).
    pub over: Option<(PriorLease, RecoveryReason)>,
    /// The database's time when it was found.
    pub found_at: Instant,
}

/// A lease that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The tenant.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// Made for this claim.
    pub token: String,
    /// It only grows.
    pub fence: u64,
}

/// A stored value as it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encrypted {
    /// Which.
    pub id: PayloadId,
    /// Which key encrypted it.
    pub key_id: String,
    /// Nonce and ciphertext.
    pub bytes: Vec<u8>,
}

/// Why a run is never claimed again until it is repaired (A9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The code.
    pub code: Code,
    /// The event that does not fit.
    pub sequence: u64,
}

/// A run's log and invocation.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    /// Live or simulated.
    pub mode: Mode,
    /// The plan's hash: the key of a cache of loaded plans.
    pub plan_hash: Hash,
    /// What it executes, for a published revision.
    pub reference: Option<RunReference>,
    /// Who started it.
    pub actor: Actor,
    /// Through what.
    pub origin: Origin,
    /// What the caller was allowed.
    pub permissions: Vec<String>,
    /// Why it is out of work.
    pub parked: Option<Parked>,
    /// All events.
    pub events: Vec<StoredEvent>,
}

/// An event about to be stored, with its payload written once: the table and the hash of its
/// audit entry take the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// From 1, without gaps.
    pub sequence: u64,
    /// What happened.
    pub event_type: &'static str,
    /// The payload, canonical.
    pub payload: String,
    /// When it is persisted.
    pub recorded_at: Instant,
    /// In a simulation.
    pub virtual_offset_ms: Option<Millis>,
}

impl NewEvent {
    /// An event as it will be stored; `now` where it has no time of its own.
    #[must_use]
    pub fn of(event: &Event, now: Instant) -> Self {
        Self {
            sequence: event.sequence,
            event_type: event.payload.type_name(),
            payload: value::canonical(&event.payload_value()),
            recorded_at: event.recorded_at.unwrap_or(now),
            virtual_offset_ms: event.virtual_offset_ms,
        }
    }

    /// Appends the canonical form of [`StoredEvent::full`].
    pub fn write_full(&self, tenant: &TenantId, run_id: &RunId, into: &mut String) {
        use std::fmt::Write;
        let text = |text: &str| value::canonical(&Value::from(text));
        let _ = write!(
            into,
            r#"{{"eventId":{},"payload":{},"recordedAt":{},"runId":{},"schemaVersion":{},"sequence":{},"tenantId":{},"type":{}"#,
            text(&format!("{run_id}:{}", self.sequence)),
            self.payload,
            self.recorded_at.0,
            text(run_id.as_str()),
            EVENT_SCHEMA_VERSION,
            self.sequence,
            text(tenant.as_str()),
            text(self.event_type),
        );
        if let Some(offset) = self.virtual_offset_ms {
            let _ = write!(into, r#","virtualOffsetMs":{}"#, offset.0);
        }
        into.push('}');
    }
}

/// An event as it is stored. It may be of a type that this binary does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// From 1, without gaps.
    pub sequence: u64,
    /// What happened.
    pub event_type: String,
    /// Of the payload.
    pub schema_version: u32,
    /// The payload.
    pub payload: Value,
    /// When it was persisted.
    pub recorded_at: Instant,
    /// In a simulation.
    pub virtual_offset_ms: Option<Millis>,
}

impl StoredEvent {
    /// The event, if this binary knows its type and version (A9).
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn read(&self) -> Result<Event, EventError> {
        Event::from_parts(
            self.sequence,
            &self.event_type,
            self.schema_version,
            &self.payload,
            Some(self.recorded_at),
            self.virtual_offset_ms,
        )
    }

    /// The full event as readers see it: with tenant, run and event id (run-machine.md §2).
    #[must_use]
    pub fn full(&self, tenant: &TenantId, run_id: &RunId) -> Value {
        let mut members = value::Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("eventId", format!("{run_id}:{}", self.sequence).into());
        put("schemaVersion", self.schema_version.into());
        put("tenantId", tenant.as_str().into());
        put("runId", run_id.as_str().into());
        put("sequence", self.sequence.into());
        put("type", self.event_type.as_str().into());
        put("recordedAt", self.recorded_at.0.into());
        if let Some(offset) = self.virtual_offset_ms {
            put("virtualOffsetMs", offset.0.into());
        }
        put("payload", self.payload.clone());
        Value::Object(members)
    }
}

/// A place in the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCursor {
    /// When the last row was queued.
    pub queued_at: Instant,
    /// The last row.
    pub run_id: RunId,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// Of this workflow.
    pub workflow_id: Option<String>,
    /// Of the workflow with this key.
    pub workflow_key: Option<WorkflowKey>,
    /// Of this revision.
    pub revision: Option<u64>,
    /// Live or simulated.
    pub mode: Option<Mode>,
    /// In one of these; empty: all.
    pub status: Vec<RunStatus>,
    /// The row after which the page begins.
    pub before: Option<RunCursor>,
    /// At most this many.
    pub limit: u32,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunListRow {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: Option<String>,
    /// Its workflow's key.
    pub workflow_key: Option<WorkflowKey>,
    /// Its revision.
    pub revision: Option<u64>,
    /// The semantic checksum of its graph.
    pub graph_checksum: Hash,
    /// Who started it.
    pub actor: Actor,
    /// Through what.
    pub origin: Origin,
    /// What its events say.
    pub row: RunRow,
    /// Why it is out of work.
    pub parked: Option<Parked>,
}

/// What readers may see of one payload.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewRow {
    /// Which.
    pub payload_id: PayloadId,
    /// What events say about it; `expired` after retention.
    pub evidence: Evidence,
    /// The preview.
    pub preview: Option<Value>,
}

/// A run with all its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDetailRows {
    /// The list row.
    pub row: RunListRow,
    /// The payload of `run.queued`.
    pub invocation: Value,
    /// The graph.
    pub graph: Value,
    /// The plan's stored document.
    pub plan: Value,
    /// Nodes, in the order of their first event.
    pub nodes: Vec<NodeRow>,
    /// Attempts, by node and attempt.
    pub attempts: Vec<AttemptRow>,
    /// Edges, by id.
    pub edges: Vec<EdgeRow>,
    /// Evidence with previews.
    pub payloads: Vec<PreviewRow>,
    /// The cancellation's events, in order.
    pub cancellation: Vec<StoredEvent>,
    /// Its entries in the audit chain.
    pub audit_sequences: Vec<u64>,
}
