//! Children as the store keeps them: agent runs and action invocations that nodes started
//! (run-machine.md N1, W8, C3; server.md §6).

use serde::{Deserialize, Serialize};
use sluicegate_core::ids::{ChildId, Hash, NodeId, RunId, TenantId};
use sluicegate_core::run::{ChildKind, Cost, Usage};
use sluicegate_core::time::Instant;

/// A wish to start one attempt of a child, or to stop it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildIntent {
    /// The tenant.
    pub tenant: TenantId,
    /// The run that wants it.
    pub run_id: RunId,
    /// The node that wants it.
    pub node_id: NodeId,
    /// Agent run or action invocation.
    pub kind: ChildKind,
    /// `<id>@<revision or contract version>`
    pub target: String,
    /// The child's key.
    pub key: Hash,
    /// The attempt.
    pub attempt: u32,
    /// The starter's fence.
    pub fence: u64,
    /// The id, should the key be new.
    pub new_id: ChildId,
    /// When the attempt must have ended.
    pub deadline_at: Instant,
}

/// How an attempt of a child stands for one who asked with a fence.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildStanding {
    /// The asker owns it and executes it, under this id and until this time. `fresh` when no
    /// one has before.
    Execute {
        /// The child.
        child_id: ChildId,
        /// When it must have ended; the first start's deadline, also after a takeover.
        deadline_at: Instant,
        /// Whether this is the first execution.
        fresh: bool,
        /// Whether it was asked to stop.
        cancelled: bool,
    },
    /// It has ended, or an earlier attempt has succeeded, which answers every later one.
    Settled {
        /// The child.
        child_id: ChildId,
        /// How.
        end: ChildEnd,
    },
    /// The key was refused before anything started (C3).
    Barred,
    /// A higher fence owns it.
    ShutOut,
    /// There is no such child: contradictory evidence (A9).
    Unknown,
}

/// The status of a child's attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildStatus {
    /// Going on, or to be gone on with.
    Running,
    /// It gave a result.
    Succeeded,
    /// It failed with a code.
    Failed,
    /// It was not allowed to.
    Refused,
    /// It stopped because it was asked to.
    Cancelled,
}

/// How a child's attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    /// Any but running.
    pub status: ChildStatus,
    /// The encrypted output: key id, nonce and ciphertext.
    pub output: Option<(String, Vec<u8>)>,
    /// Why it failed, where that is a code of ours.
    pub code: Option<String>,
    /// The child's own code and message; free of secrets only after the engine has scrubbed
    /// them, so they are encrypted too.
    pub message: Option<(String, Vec<u8>)>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Price.
    pub cost: Option<Cost>,
}

/// The end of an attempt, to be stored once.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildSettlement {
    /// The tenant.
    pub tenant: TenantId,
    /// The child.
    pub child_id: ChildId,
    /// The attempt.
    pub attempt: u32,
    /// The owner's fence.
    pub fence: u64,
    /// How.
    pub end: ChildEnd,
}

/// What became of a wish to stop a child.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildCancelled {
    /// It runs and has been told; its owner sees it.
    Told {
        /// The child.
        child_id: ChildId,
    },
    /// It had ended before.
    Ended {
        /// The child.
        child_id: ChildId,
        /// How.
        end: ChildEnd,
    },
    /// It was unknown; its key is refused from now on (C3).
    Barred,
}

/// A child as readers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildView {
    /// The child.
    pub child_id: ChildId,
    /// Agent run or action invocation.
    pub kind: ChildKind,
    /// `<id>@<revision or contract version>`
    pub target: String,
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
    /// Its status.
    pub status: ChildStatus,
    /// How often it was executed: more than once only after a takeover.
    pub executions: u64,
}
