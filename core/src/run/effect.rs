//! What is owed to the world now, derived from state alone (architecture.md decision 2;
//! run-machine.md §1). After a crash: load, fold, ask again; nothing else is remembered.

use super::apply::child_kind;
use super::event::ChildKind;
use super::state::{ChildCancellation, NodeStatus, Run, RunStatus};
use crate::catalogue::Cancellation;
use crate::ids::{ChildId, Hash, NodeId, PayloadId};
use crate::limits::Limits;
use crate::plan::{NodeIndex, Plan};
use crate::time::{Instant, Millis};

/// One thing that is owed. Each has a natural key: the node and the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Decide [`super::Command::Continue`]: nothing outside is waited for.
    Continue,
    /// Call the child's runtime: an intent is durable, its child is not known.
    Start(Start),
    /// Ask the child's runtime about a known child.
    Observe(Observe),
    /// Ask the child's runtime to stop a child, by key when its id is not known (C2, C3).
    Cancel(CancelChild),
    /// Nothing before this time; the lease goes back (W4).
    WakeAt(Wake),
}

/// A start that is owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The node.
    pub node_id: NodeId,
    /// The attempt; an invocation executes at most once for each (key, attempt) (N1).
    pub attempt: u32,
    /// Agent run or action invocation.
    pub child_kind: ChildKind,
    /// The child's key; none in a simulation.
    pub idempotency_key: Option<Hash>,
    /// The effective input.
    pub input: PayloadId,
    /// Time limit of the child.
    pub timeout: Option<Millis>,
}

/// A child in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observe {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// Agent run or action invocation.
    pub child_kind: ChildKind,
    /// The child.
    pub child_id: ChildId,
    /// The child's key.
    pub idempotency_key: Option<Hash>,
    /// When the engine stops waiting for a deaf child: its deadline plus 5 s (A8).
    pub give_up_at: Option<Instant>,
}

/// A cancellation that is owed to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelChild {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// Agent run or action invocation.
    pub child_kind: ChildKind,
    /// The child, where it is known.
    pub child_id: Option<ChildId>,
    /// The child's key.
    pub idempotency_key: Option<Hash>,
    /// Whether its contract listens; if not, the answer is `not-supported` without asking.
    pub cooperative: bool,
}

/// A wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Live.
    At(Instant),
    /// In a simulation.
    AtOffset(Millis),
}

/// What is owed now. At most one thing in version 1; nothing once the run has ended, and
/// nothing before a worker has claimed it.
#[must_use]
pub fn effects(plan: &Plan, run: &Run) -> Vec<Effect> {
    owed(plan, run).into_iter().collect()
}

fn owed(plan: &Plan, run: &Run) -> Option<Effect> {
    if run.status.is_terminal() || run.status == RunStatus::Queued {
        return None;
    }
    let Some(at) = run.in_flight else {
        return Some(waiting_retry(run).map_or(Effect::Continue, Effect::WakeAt));
    };
    let index = NodeIndex(at);
    let node = plan.node(index);
    let child_kind = child_kind(node.task.node_type())?;
    let attempt = run.state(index).attempts.last()?;
    if attempt.cancellation == Some(ChildCancellation::Requested) {
        return Some(Effect::Cancel(CancelChild {
            node_id: node.id.clone(),
            attempt: attempt.attempt,
            child_kind,
            child_id: attempt.child.as_ref().map(|child| child.id.clone()),
            idempotency_key: attempt.idempotency_key,
            cooperative: node.task.cancellation() == Cancellation::Cooperative,
        }));
    }
    Some(match &attempt.child {
        None => Effect::Start(Start {
            node_id: node.id.clone(),
            attempt: attempt.attempt,
            child_kind,
            idempotency_key: attempt.idempotency_key,
            input: attempt.input.payload_id.clone()?,
            timeout: node.task.timeout(),
        }),
        Some(child) => Effect::Observe(Observe {
            node_id: node.id.clone(),
            attempt: attempt.attempt,
            child_kind,
            child_id: child.id.clone(),
            idempotency_key: attempt.idempotency_key,
            give_up_at: child
                .deadline_at
                .map(|deadline| deadline.plus(Millis(Limits::CHILD_GRACE_MS))),
        }),
    })
}

/// When the waiting retry may begin, if one waits.
fn waiting_retry(run: &Run) -> Option<Wake> {
    if run.status != RunStatus::WaitingRetry {
        return None;
    }
    let waiting = run
        .nodes
        .iter()
        .find(|node| node.status() == NodeStatus::WaitingRetry)?;
    let scheduled = &waiting.retry.as_ref()?.scheduled;
    scheduled
        .next_attempt_at
        .map(Wake::At)
        .or_else(|| scheduled.next_attempt_offset_ms.map(Wake::AtOffset))
}
