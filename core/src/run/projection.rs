//! The rows that readers see, rebuilt from the fold alone (run-machine.md §1 `project`;
//! seed A "Persistence outline"). Caches: they never replace the events.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::event::{
    AttemptStatus, ChildKind, Classification, Cost, CostRollup, EdgeSettled, Event, Mode, Payload,
    Usage, UsageRollup,
};
use super::state::{Attempt, EdgeFact, Failure, NodeState, NodeStatus, Run, RunStatus};
use crate::evidence::Evidence;
use crate::ids::{ChildId, EdgeId, Hash, NodeId};
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
    let mut touched = Touched::default();
    for event in events {
        touched.add(&event.payload);
    }
    let mut rows = Rows {
        run: (!events.is_empty()).then(|| run_row(plan, run)),
        ..Rows::default()
    };
    let first = events.first().map_or(0, |event| event.sequence);
    for index in plan.node_indices() {
        let id = &plan.node(index).id;
        if !touched.nodes.contains(id) {
            continue;
        }
        let state = run.state(index);
        rows.nodes.push(node_row(id, state));
        let recent = state.attempts.iter().filter(|a| a.last_sequence >= first);
        rows.attempts.extend(recent.map(|a| attempt_row(id, a)));
    }
    let settled = run.edges().iter().flatten();
    rows.edges = settled
        .filter(|fact| touched.edges.contains(&fact.settled.edge_id))
        .map(edge_row)
        .collect();
    rows
}

/// Every node with its attempts, in plan order.
pub(super) fn all_nodes(
    plan: &Plan,
    run: &Run,
) -> impl Iterator<Item = (NodeRow, Vec<AttemptRow>)> {
    plan.node_indices().map(|index| {
        let (id, state) = (&plan.node(index).id, run.state(index));
        let attempts = state
            .attempts
            .iter()
            .map(|attempt| attempt_row(id, attempt));
        (node_row(id, state), attempts.collect())
    })
}

/// Which rows some events speak of.
#[derive(Default)]
struct Touched<'e> {
    nodes: BTreeSet<&'e NodeId>,
    edges: BTreeSet<&'e EdgeId>,
}

impl<'e> Touched<'e> {
    fn add(&mut self, payload: &'e Payload) {
        self.nodes.extend(payload.node_id());
        if let Payload::EdgeSettled(settled) = payload {
            self.edges.insert(&settled.edge_id);
        }
    }
}

/// The run's own row.
#[must_use]
pub fn run_row(plan: &Plan, run: &Run) -> RunRow {
    let ended = run.rollups();
    let settled = run.nodes().iter().filter(|node| node.status().is_final());
    RunRow {
        status: run.status(),
        mode: run.mode(),
        last_sequence: run.sequence(),
        queued_at: run.queued_at().and_then(|at| at.recorded_at),
        started_at: run.first_claim().and_then(|at| at.recorded_at),
        completed_at: run.end().and_then(|end| end.at.recorded_at),
        cancel_requested_at: run.cancellation().map(|request| request.requested_at),
        wake_at: wake_at(run),
        nodes_settled: settled.count() as u64,
        nodes_total: plan.nodes().len() as u64,
        usage: ended.usage,
        cost: ended.cost,
        failure: run.end().and_then(|end| end.failure.clone()),
    }
}

/// W3: a retry wait ends at its time, or at the run's end of time if that is earlier.
fn wake_at(run: &Run) -> Option<Instant> {
    if run.status() != RunStatus::WaitingRetry {
        return None;
    }
    let waiting = run
        .nodes()
        .iter()
        .find(|node| node.status() == NodeStatus::WaitingRetry)?;
    let next = waiting.retry.as_ref()?.scheduled.next_attempt_at?;
    // A run is overdue once it is older than the limit, not when it reaches it (A5).
    let limit = Millis(run.queued()?.limits.duration_ms.saturating_add(1));
    let end_of_time = run.queued_at()?.recorded_at?.plus(limit);
    Some(next.min(end_of_time))
}

fn node_row(id: &NodeId, state: &NodeState) -> NodeRow {
    let waits = state.status() == NodeStatus::WaitingRetry;
    let retry = state.retry.as_ref().filter(|_| waits);
    NodeRow {
        node_id: id.clone(),
        status: state.status(),
        latest_attempt: state.attempts.len() as u32,
        outcome_port: state.outcome_port.clone(),
        next_attempt_at: retry.and_then(|retry| retry.scheduled.next_attempt_at),
        ready_at: state.ready.and_then(|at| at.recorded_at),
        started_at: state.started.and_then(|at| at.recorded_at),
        settled_at: state.settled.and_then(|at| at.recorded_at),
    }
}

pub(super) fn edge_row(fact: &EdgeFact) -> EdgeRow {
    EdgeRow {
        settled: fact.settled.clone(),
        settled_at: fact.at.recorded_at,
    }
}

fn attempt_row(id: &NodeId, attempt: &Attempt) -> AttemptRow {
    let status = match (attempt.status, &attempt.child) {
        (Some(status), _) => status.into(),
        (None, Some(_)) => AttemptRowStatus::WaitingChild,
        (None, None) => AttemptRowStatus::Running,
    };
    AttemptRow {
        node_id: id.clone(),
        attempt: attempt.attempt,
        status,
        semantic_group: attempt.semantic_group,
        idempotency_key: attempt.idempotency_key,
        started_at: attempt.started.recorded_at,
        completed_at: attempt.settled.and_then(|at| at.recorded_at),
        outcome_port: attempt.outcome_port.clone(),
        child_kind: attempt.child.as_ref().map(|child| child.kind),
        child_id: attempt.child.as_ref().map(|child| child.id.clone()),
        code: attempt.code.clone(),
        message: attempt.message.clone(),
        classification: attempt.classification,
        retry: attempt.retry.as_ref().map(|retry| RetryRow {
            backoff_ms: retry.backoff_ms,
            next_attempt_at: retry.next_attempt_at,
        }),
        input: attempt.input.clone(),
        output: attempt.output.clone(),
        usage: attempt.usage,
        cost: attempt.cost.clone(),
        first_sequence: attempt.started.sequence,
        last_sequence: attempt.last_sequence,
    }
}
