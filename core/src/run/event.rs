//! The 21 events of a run and their payloads (run-machine.md §2, D1–D4; seed A "Event
//! envelope and catalog"). A stored format: golden files keep it loading for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Origin};
use crate::code::Code;
use crate::evidence::{Evidence, State};
use crate::graph::Endpoint;
use crate::ids::{ChildId, EdgeId, Hash, NodeId, PayloadId, WorkerId, WorkflowKey};
use crate::limits::Limits;
use crate::time::{Instant, Millis};
use crate::value::Value;

/// One durable fact about a run.
///
/// The core's own form is `{sequence, type, schemaVersion, payload, virtualOffsetMs?}`; a
/// server adds `recordedAt` (and, around it, the tenant, the run and an event id).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// From 1, without gaps.
    pub sequence: u64,
    /// What happened.
    pub payload: Payload,
    /// When the evidence was persisted; none in the core's own simulation.
    pub recorded_at: Option<Instant>,
    /// Offset from the start of a simulation; none in live runs.
    pub virtual_offset_ms: Option<Millis>,
}

/// Why a stored event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {sequence}: {detail}")]
pub struct EventError {
    /// `WORKFLOW_EVENT_SCHEMA_UNSUPPORTED` for an unknown type or version,
    /// `WORKFLOW_EVENT_TRANSITION_INVALID` for a payload that is not of its type.
    pub code: Code,
    /// The event's sequence, 0 where even that cannot be read.
    pub sequence: u64,
    /// What is wrong.
    pub detail: String,
}

macro_rules! events {
    ($($name:literal => $variant:ident($body:ty),)*) => {
        /// The type and payload of an event.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "payload")]
        pub enum Payload {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $variant($body),)*
        }

        impl Payload {
            /// All types, in the order of the catalogue.
            pub const TYPES: &'static [&'static str] = &[$($name,)*];

            /// The event's type.
            #[must_use]
            pub fn type_name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }
    };
}

events! {
    "run.queued" => RunQueued(Box<Queued>),
    "run.claimed" => RunClaimed(Claimed),
    "run.recovered" => RunRecovered(Recovered),
    "node.ready" => NodeReady(NodeReady),
    "node.attempt.started" => AttemptStarted(Started),
    "node.child.waiting" => ChildWaiting(ChildWaiting),
    "node.attempt.settled" => AttemptSettled(Box<Settled>),
    "node.retry.scheduled" => RetryScheduled(RetryScheduled),
    "node.retry.started" => RetryStarted(RetryStarted),
    "node.skipped" => NodeSkipped(NodeSkipped),
    "edge.settled" => EdgeSettled(EdgeSettled),
    "run.cancel.requested" => RunCancelRequested(RunCancelRequested),
    "node.cancel.requested" => NodeCancelRequested(NodeCancelRequested),
    "node.cancel.acknowledged" => NodeCancelAcknowledged(CancelAnswered),
    "node.cancel.not-acknowledged" => NodeCancelNotAcknowledged(CancelAnswered),
    "node.result.late-ignored" => LateIgnored(LateIgnored),
    "payload.retention.applied" => RetentionApplied(RetentionApplied),
    "run.succeeded" => RunSucceeded(Box<Succeeded>),
    "run.failed" => RunFailed(Box<Failed>),
    "run.refused" => RunRefused(Box<Failed>),
    "run.cancelled" => RunCancelled(Box<RunCancelled>),
}

/// Whether a run is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is.
    Live,
    /// Fixtures stand for every child.
    Simulate,
}

/// `run.queued`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Queued {
    /// Live or simulated.
    pub mode: Mode,
    /// The graph's semantic checksum.
    pub graph_checksum: Hash,
    /// The plan's own hash.
    pub plan_hash: Hash,
    /// The compiler that made the plan.
    pub compiler_version: String,
    /// What the run may use.
    pub limits: Limits,
    /// The invocation's input.
    pub input: Evidence,
    /// The workflow's identity; with a server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_id: Option<String>,
    /// The workflow's key; with a server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_key: Option<WorkflowKey>,
    /// The published revision; with a server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_revision: Option<u64>,
    /// Who started it; with a server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub actor: Option<Actor>,
    /// Through what; with a server only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<Origin>,
    /// Hash of the sorted permissions; with a server only (D4).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub permission_digest: Option<Hash>,
}

/// The members of `run.queued` that a server adds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkflowReference {
    /// The workflow's identity.
    pub workflow_id: Option<String>,
    /// The workflow's key.
    pub workflow_key: Option<WorkflowKey>,
    /// The published revision.
    pub workflow_revision: Option<u64>,
    /// Who started it.
    pub actor: Option<Actor>,
    /// Through what.
    pub origin: Option<Origin>,
    /// Hash of the sorted permissions.
    pub permission_digest: Option<Hash>,
}

/// `run.claimed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claimed {
    /// Who works on it.
    pub worker_id: WorkerId,
    /// The lease's fence; live only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fence: Option<u64>,
    /// When the lease ends; live only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_expires_at: Option<Instant>,
}

/// `run.recovered`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recovered {
    /// Who works on it now.
    pub worker_id: WorkerId,
    /// The new fence.
    pub fence: u64,
    /// When the new lease ends.
    pub lease_expires_at: Instant,
    /// The lease that was taken over.
    pub prior: PriorLease,
    /// Why it could be.
    pub reason: RecoveryReason,
}

/// A lease that somebody else held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriorLease {
    /// Who held it.
    pub worker_id: WorkerId,
    /// Its fence.
    pub fence: u64,
    /// When it ended or would have.
    pub lease_expires_at: Instant,
}

/// Why a lease was taken over (W3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryReason {
    /// Its time was over.
    LeaseExpired,
    /// Its owner is known to be dead (W6).
    OwnerGone,
}

/// `node.ready`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeReady {
    /// The node.
    pub node_id: NodeId,
}

/// `node.attempt.started`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Started {
    /// The node.
    pub node_id: NodeId,
    /// From 1.
    pub attempt: u32,
    /// Attempts of one group share the child's key (N1).
    pub semantic_group: u32,
    /// The child's key; live nodes with a child only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idempotency_key: Option<Hash>,
    /// The effective input; absent where it could not be built (A3).
    pub input: Evidence,
}

/// What a node started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildKind {
    /// An agent run.
    Agent,
    /// An action invocation.
    Action,
}

/// `node.child.waiting`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildWaiting {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// Agent run or action invocation.
    pub child_kind: ChildKind,
    /// Its id.
    pub child_id: ChildId,
    /// Acceptance plus the time limit; live only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadline_at: Option<Instant>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptStatus {
    /// Its outcome port says how.
    Succeeded,
    /// With a code.
    Failed,
    /// It was not allowed.
    Refused,
    /// The run was cancelled.
    Cancelled,
}

/// Whether another attempt could help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Classification {
    /// It could.
    Retryable,
    /// It could not.
    Permanent,
}

/// Tokens of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// The price of one child (U2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cost {
    /// Micro-USD.
    pub amount_micros: u64,
    /// Which prices were in force.
    pub pricing_snapshot_id: String,
}

/// `node.attempt.settled`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settled {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// How it ended.
    pub status: AttemptStatus,
    /// The port that emits, where one does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome_port: Option<String>,
    /// What it emits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<Evidence>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
    /// Whether another attempt could help.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub classification: Option<Classification>,
    /// Why it failed, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// Whether the child is known to have ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub child_terminal: Option<bool>,
    /// Its tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// Its price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Cost>,
}

/// `node.retry.scheduled`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryScheduled {
    /// The node.
    pub node_id: NodeId,
    /// The attempt that failed.
    pub attempt: u32,
    /// The failed attempt's group.
    pub semantic_group: u32,
    /// The failed attempt's key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idempotency_key: Option<Hash>,
    /// The code that is retried.
    pub code: String,
    /// Always retryable.
    pub classification: Classification,
    /// The wait.
    pub backoff_ms: Millis,
    /// When the next attempt may start; live.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_attempt_at: Option<Instant>,
    /// When the next attempt may start; simulation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_attempt_offset_ms: Option<Millis>,
}

/// `node.retry.started`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryStarted {
    /// The node.
    pub node_id: NodeId,
    /// The attempt that comes now.
    pub attempt: u32,
    /// The event that scheduled it.
    pub scheduled_sequence: u64,
}

/// Why a node or an edge was skipped (K1, K2), or an edge closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The only input was closed or skipped.
    InputClosed,
    /// Every input of a merge was closed or skipped.
    NoInput,
    /// The source chose another port.
    OtherPort,
    /// The source was skipped.
    SourceSkipped,
    /// The run failed.
    RunFailed,
    /// The run was refused.
    RunRefused,
    /// The run was cancelled.
    RunCancelled,
}

/// `node.skipped`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSkipped {
    /// The node.
    pub node_id: NodeId,
    /// Why.
    pub reason: SkipReason,
}

/// What became of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeState {
    /// The port was chosen.
    Emitted,
    /// Another port was chosen.
    Closed,
    /// The source never chose.
    Skipped,
}

/// `edge.settled`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeSettled {
    /// The edge.
    pub edge_id: EdgeId,
    /// What became of it.
    pub state: EdgeState,
    /// Where it comes from.
    pub source: SettledSource,
    /// Where it leads.
    pub target: Endpoint,
    /// The port that was chosen instead; closed only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selected_port: Option<String>,
    /// Why it did not emit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<SkipReason>,
    /// What went over it.
    pub evidence: Evidence,
}

/// The source of a settled edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettledSource {
    /// The node.
    pub node_id: NodeId,
    /// The port.
    pub port: String,
    /// The attempt that settled it, where there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt: Option<u32>,
}

/// `run.cancel.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunCancelRequested {
    /// Who asked.
    pub requested_by: Actor,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// When.
    pub requested_at: Instant,
}

/// `node.cancel.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeCancelRequested {
    /// The node.
    pub node_id: NodeId,
    /// The attempt in flight.
    pub attempt: u32,
    /// Its child's kind.
    pub child_kind: ChildKind,
    /// Its child's id, where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub child_id: Option<ChildId>,
}

/// Why a cancellation was not acknowledged (C2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelAnswer {
    /// The child's runtime said no.
    Rejected,
    /// It did not answer in time.
    Timeout,
    /// The contract cannot be cancelled.
    NotSupported,
}

/// `node.cancel.acknowledged` (without a reason) and `node.cancel.not-acknowledged` (with one)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelAnswered {
    /// The node.
    pub node_id: NodeId,
    /// The attempt in flight.
    pub attempt: u32,
    /// Its child's kind.
    pub child_kind: ChildKind,
    /// Its child's id, where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub child_id: Option<ChildId>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<CancelAnswer>,
}

/// `node.result.late-ignored`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LateIgnored {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// The child.
    pub child_id: ChildId,
    /// How the child ended; never cancelled.
    pub status: AttemptStatus,
    /// What it would have emitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<Evidence>,
}

/// `payload.retention.applied`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionApplied {
    /// By which rule.
    pub policy: RetentionPolicy,
    /// What goes.
    pub payloads: Vec<RetiredPayload>,
}

/// A retention rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionPolicy {
    /// Which rule.
    pub kind: String,
    /// After how many days.
    pub days: u64,
}

/// Which of a payload's stored forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadKind {
    /// The encrypted value that execution needs.
    Execution,
    /// The preview that readers see.
    Evidence,
    /// The encrypted result of the run.
    Result,
}

/// One payload that retention removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetiredPayload {
    /// Which.
    pub payload_id: PayloadId,
    /// Which form of it.
    pub kind: PayloadKind,
    /// Its hash.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hash: Option<Hash>,
    /// What its evidence said before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prior_state: Option<State>,
}

/// Whether a rollup may still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollupState {
    /// A simulation uses nothing.
    NotApplicable,
    /// The run has not ended.
    Provisional,
    /// It has.
    Final,
}

/// The seed's `WorkflowUsageRollupV1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageRollup {
    /// Always 1.
    pub version: u32,
    /// Whether it may still grow.
    pub state: RollupState,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Agent runs that are counted, in the order of their settlement.
    pub included_child_run_ids: Vec<ChildId>,
    /// Of these, with a price.
    pub priced_child_runs: u64,
    /// Of these, without.
    pub unpriced_child_runs: u64,
    /// Action invocations.
    pub action_invocations: u64,
    /// Of these, without a price: all, in version 1.
    pub unpriced_actions: u64,
}

/// The seed's `WorkflowCostRollupV1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostRollup {
    /// Always 1.
    pub version: u32,
    /// Whether it may still grow.
    pub state: RollupState,
    /// Always `USD`.
    pub currency: String,
    /// Micro-USD.
    pub amount_micros: u64,
    /// Price lists that were used, sorted.
    pub pricing_snapshot_ids: Vec<String>,
    /// Agent runs without a price.
    pub unpriced_child_runs: u64,
    /// Action invocations without a price.
    pub unpriced_actions: u64,
}

/// The rollups that every terminal event carries (D2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Tokens.
    pub usage: UsageRollup,
    /// Money.
    pub cost: CostRollup,
}

/// `run.succeeded`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Succeeded {
    /// Output node → what it received.
    pub outputs: BTreeMap<NodeId, Evidence>,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}

/// `run.failed` and `run.refused`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// Why.
    pub code: String,
    /// Why, for people.
    pub message: String,
    /// Where, if it was at a node.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node_id: Option<NodeId>,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}

/// A node's attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptKey {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
}

/// Who listened to a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acknowledgement {
    /// Attempts whose child acknowledged.
    pub acknowledged: Vec<AttemptKey>,
    /// Attempts whose child did not.
    pub not_acknowledged: Vec<AttemptKey>,
}

/// `run.cancelled`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCancelled {
    /// Who listened.
    #[serde(flatten)]
    pub acknowledgement: Acknowledgement,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}

/// The wire form, before the payload is known to be of its type.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    sequence: u64,
    #[serde(rename = "type")]
    event_type: String,
    schema_version: u32,
    payload: Value,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    recorded_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    virtual_offset_ms: Option<Millis>,
}

/// The payload schemas of these types, all of them.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

impl Event {
    /// Reads a stored event. Members that a shell adds (`tenantId`, `runId`, `eventId`) are
    /// passed over.
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn read(stored: &Value) -> Result<Self, EventError> {
        let wire = Wire::deserialize(stored).map_err(|error| EventError {
            code: Code::WorkflowEventTransitionInvalid,
            sequence: 0,
            detail: error.to_string(),
        })?;
        Self::from_parts(
            wire.sequence,
            &wire.event_type,
            wire.schema_version,
            wire.payload,
            wire.recorded_at,
            wire.virtual_offset_ms,
        )
    }

    /// Puts an event together from a row's columns.
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn from_parts(
        sequence: u64,
        event_type: &str,
        schema_version: u32,
        payload: Value,
        recorded_at: Option<Instant>,
        virtual_offset_ms: Option<Millis>,
    ) -> Result<Self, EventError> {
        let error = |code, detail| EventError {
            code,
            sequence,
            detail,
        };
        if schema_version != EVENT_SCHEMA_VERSION || !Payload::TYPES.contains(&event_type) {
            return Err(error(
                Code::WorkflowEventSchemaUnsupported,
                format!("type {event_type:?} of schema version {schema_version} is not known"),
            ));
        }
        let mut tagged = serde_json::Map::new();
        tagged.insert("type".to_owned(), event_type.into());
        tagged.insert("payload".to_owned(), payload);
        let payload = Payload::deserialize(Value::Object(tagged)).map_err(|e| {
            error(
                Code::WorkflowEventTransitionInvalid,
                format!("the payload is not one of {event_type}: {e}"),
            )
        })?;
        Ok(Self {
            sequence,
            payload,
            recorded_at,
            virtual_offset_ms,
        })
    }

    /// The payload alone, as a row stores it.
    #[must_use]
    pub fn payload_value(&self) -> Value {
        match serde_json::to_value(&self.payload) {
            Ok(Value::Object(mut members)) => members.remove("payload").unwrap_or_default(),
            _ => Value::Null,
        }
    }
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire {
            sequence: self.sequence,
            event_type: self.payload.type_name().to_owned(),
            schema_version: EVENT_SCHEMA_VERSION,
            payload: self.payload_value(),
            recorded_at: self.recorded_at,
            virtual_offset_ms: self.virtual_offset_ms,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).map_err(serde::de::Error::custom)
    }
}
