//! Runs: rows, detail, results, events as a server sends them, and the requests that start
//! and stop them (api.md "Runs"; wire-format.md R1–R3; seed A "Full run history and evidence").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::workflow::{count, text};
use crate::actor::{Actor, Origin};
use crate::code::Code;
use crate::ids::{ChildId, Hash, NodeId, PayloadId, RunId, TenantId, WorkflowKey};
use crate::plan;
pub use crate::run::RunResult;
use crate::run::{
    AttemptRow, ChildKind, CostRollup, EdgeRow, Event, Failure, Mode, NodeStatus, PayloadView,
    Queued, RunStatus, UsageRollup,
};
use crate::time::{Instant, Millis};
use crate::value::{JsonError, Place, Value};

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// Its identity.
    pub run_id: RunId,
    /// The workflow; none for a simulated graph that belongs to none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_id: Option<String>,
    /// The workflow's key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_key: Option<WorkflowKey>,
    /// The published revision; none for a draft.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revision: Option<u64>,
    /// The semantic checksum of the draft that was simulated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub draft_checksum: Option<Hash>,
    /// Live or simulated.
    pub mode: Mode,
    /// How far it is.
    pub status: RunStatus,
    /// Who started it.
    pub actor: Actor,
    /// Through what.
    pub origin: Origin,
    /// When it was accepted.
    pub queued_at: Instant,
    /// When it was first claimed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<Instant>,
    /// From acceptance to end, as recorded; a simulation's own clock is in its events.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<Millis>,
    /// How many nodes have a final word. A run's detail has the nodes themselves in this place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nodes: Option<NodeProgress>,
    /// Tokens.
    pub usage: UsageRollup,
    /// Money.
    pub cost: CostRollup,
    /// Why it failed or was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
    /// Why nobody works on it (A9).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parked: Option<Parked>,
}

/// How many nodes have a final word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgress {
    /// These.
    pub settled: u64,
    /// Of these.
    pub total: u64,
}

/// A run whose stored events cannot be folded (A9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// What is wrong.
    pub code: Code,
    /// With which event.
    pub sequence: u64,
}

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunDetail {
    /// As in the list, but without its `nodes`: a document has a member once (J4).
    #[serde(flatten)]
    pub row: RunSummary,
    /// The payload of `run.queued`.
    pub invocation: Queued,
    /// The graph that runs.
    pub graph: Value,
    /// Its plan.
    pub plan: plan::Document,
    /// The nodes in plan order.
    pub compiled_order: Vec<NodeId>,
    /// The nodes in plan order, each with its attempts.
    pub nodes: Vec<NodeDetail>,
    /// The settled edges by id.
    pub edges: Vec<EdgeRow>,
    /// What readers may see of every payload that an event names.
    pub payloads: BTreeMap<PayloadId, PayloadView>,
    /// The cancellation, once one was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cancellation: Option<Cancellation>,
    /// The audit entries about this run.
    pub audit_sequences: Vec<u64>,
    /// What other modules know this run's children by.
    pub correlations: Vec<AttemptCorrelation>,
}

/// A node of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetail {
    /// The node.
    pub node_id: NodeId,
    /// How far it is.
    pub status: NodeStatus,
    /// The port that it settled on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome_port: Option<String>,
    /// Its attempts, from 1.
    pub attempts: Vec<AttemptRow>,
}

/// The child of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptCorrelation {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// Agent run or action invocation.
    pub child_kind: ChildKind,
    /// Its id.
    pub child_id: ChildId,
}

/// An event as a server sends it: the core's event and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The run.
    pub run_id: RunId,
    /// `<runId>:<sequence>`
    pub event_id: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// What [`ExportedRun::format`] says.
pub const EXPORT_FORMAT: &str = "sluicegate.run";

/// A run in a file (R3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedRun {
    /// [`EXPORT_FORMAT`].
    pub format: String,
    /// 1.
    pub version: u32,
    /// Everything about it.
    pub detail: RunDetail,
    /// All its events.
    pub events: Vec<Event>,
}

/// `POST /api/workflow-runs`
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnqueueRequest {
    /// Which workflow; always its published revision.
    pub workflow_key: WorkflowKey,
    /// The input.
    pub input: Value,
    /// The same key means the same run; none where the header says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// The seed's `WorkflowRunAccepted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAccepted {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: String,
    /// The revision that runs.
    pub workflow_revision: u64,
    /// `queued`, or the present status when `created` is false.
    pub status: RunStatus,
    /// Whether this request made the run.
    pub created: bool,
}

/// `POST /api/workflow-runs/simulate`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulateRequest {
    /// What is simulated.
    #[serde(flatten)]
    pub subject: SimulateSubject,
    /// The input.
    pub input: Value,
    /// What stands for the children (wire-format.md §9).
    pub fixtures: Value,
}

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum SimulateSubject {
    /// A document, of a workflow or of none.
    Graph {
        /// The document.
        graph: Value,
        /// Whose history it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        workflow_id: Option<String>,
    },
    /// A published revision.
    Published {
        /// Which workflow.
        workflow_key: WorkflowKey,
        /// Which revision; none: the live one.
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
}

/// `POST /api/workflow-runs/cancel`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// Which.
    pub run_id: RunId,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to a cancellation (C4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The run.
    pub run_id: RunId,
    /// Its present status.
    pub status: RunStatus,
    /// What became of the request.
    pub cancellation: Cancellation,
}

/// What became of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    /// How far it is.
    pub state: CancelState,
    /// When it was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requested_at: Option<Instant>,
    /// By whom.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requested_by: Option<Actor>,
}

/// How far a cancellation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelState {
    /// There is none: the run had ended before.
    None,
    /// It is recorded.
    Requested,
    /// The child in flight listens.
    Acknowledged,
    /// The child in flight does not.
    NotAcknowledged,
    /// The run has ended by it.
    Cancelled,
}

impl EnqueueRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            workflow_key: object.required("workflowKey")?.text()?.into(),
            input: object.required("input")?.value().clone(),
            idempotency_key: text(&mut object, "idempotencyKey")?,
        };
        object.done()?;
        Ok(request)
    }
}

impl SimulateRequest {
    /// Reads a body: a `graph` or a `workflowKey`, never both.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let subject = match object.optional("graph") {
            Some(place) => SimulateSubject::Graph {
                graph: place.value().clone(),
                workflow_id: text(&mut object, "workflowId")?,
            },
            None => SimulateSubject::Published {
                workflow_key: object.required("workflowKey")?.text()?.into(),
                revision: count(&mut object, "revision")?,
            },
        };
        let request = Self {
            subject,
            input: object.required("input")?.value().clone(),
            fixtures: object.required("fixtures")?.value().clone(),
        };
        object.done()?;
        Ok(request)
    }
}

impl CancelRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            run_id: object.required("runId")?.text()?.into(),
            reason: text(&mut object, "reason")?,
        };
        object.done()?;
        Ok(request)
    }
}
