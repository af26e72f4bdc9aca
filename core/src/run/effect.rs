//! What is owed to the world now, derived from state alone (architecture.md decision 2;
//! run-machine.md §1). After a crash: load, fold, ask again; nothing else is remembered.

use super::event::ChildKind;
use super::state::Run;
use crate::ids::{ChildId, Hash, NodeId, PayloadId};
use crate::plan::Plan;
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

/// What is owed now. At most one thing in version 1, nothing once the run has ended.
#[must_use]
pub fn effects(plan: &Plan, run: &Run) -> Vec<Effect> {
    let _ = (plan, run);
    Vec::new()
}
