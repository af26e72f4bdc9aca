//! Children as the store keeps them: agent runs and action invocations that nodes started
//! (run-machine.md N1, W8, C3; server.md §6).

use serde::{Deserialize, Serialize};
use sluicegate_core::ids::{ChildId, Hash, NodeId, RunId, TenantId};
use sluicegate_core::run::{ChildKind, Cost, Usage};
use sluicegate_core::time::Instant;

use super::StoreError;
use super::column::{Columns, int, thing};
use super::flat::json;
use super::row::word;
use super::table::{Cell, Kind, Table};

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
    /// The asker owns it and executes it, under this id and until this time.
    Execute {
        /// The child.
        child_id: ChildId,
        /// When it must have ended; the first start's deadline, also after a takeover.
        deadline_at: Instant,
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

/// What an end says that is not secret: the column `end`.
#[derive(Serialize, Deserialize)]
pub(super) struct PublicEnd {
    pub(super) code: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<Cost>,
}

pub(super) fn kind_word(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Agent => "agent",
        ChildKind::Action => "action",
    }
}

pub(super) fn status_word(status: ChildStatus) -> &'static str {
    match status {
        ChildStatus::Running => "running",
        ChildStatus::Succeeded => "succeeded",
        ChildStatus::Failed => "failed",
        ChildStatus::Refused => "refused",
        ChildStatus::Cancelled => "cancelled",
    }
}

/// One row a key.
pub(super) const CHILD_RUNS: Table = Table {
    name: "child_runs",
    columns: &[
        ("tenant_id", Kind::Text),
        ("child_id", Kind::Text),
        ("kind", Kind::Text),
        ("key", Kind::Text),
        ("run_id", Kind::Text),
        ("node_id", Kind::Text),
        ("target", Kind::Text),
        ("barred", Kind::Int),
        ("created_at", Kind::Int),
    ],
    replaced_by: &[],
};

/// One row a (key, attempt).
pub(super) const CHILD_ATTEMPTS: Table = Table {
    name: "child_attempts",
    columns: &[
        ("tenant_id", Kind::Text),
        ("child_id", Kind::Text),
        ("attempt", Kind::Int),
        ("fence", Kind::Int),
        ("status", Kind::Text),
        ("executions", Kind::Int),
        ("deadline_at", Kind::Int),
    ],
    replaced_by: &[],
};

/// What finds the attempt that a settlement ends, and what it writes there.
pub(super) const SETTLEMENT: [(&str, Kind); 11] = [
    ("tenant_id", Kind::Text),
    ("child_id", Kind::Text),
    ("attempt", Kind::Int),
    ("fence", Kind::Int),
    ("status", Kind::Text),
    ("ended_at", Kind::Int),
    ("end", Kind::Text),
    ("output_key_id", Kind::Text),
    ("output", Kind::Bytes),
    ("message_key_id", Kind::Text),
    ("message", Kind::Bytes),
];

impl ChildIntent {
    /// The row of [`CHILD_RUNS`].
    pub(super) fn run_cells(&self, barred: bool, now: Instant) -> [Cell; 9] {
        [
            Cell::text(self.tenant.as_str()),
            Cell::text(self.new_id.as_str()),
            Cell::text(kind_word(self.kind)),
            Cell::Text(self.key.to_string().into()),
            Cell::text(self.run_id.as_str()),
            Cell::text(self.node_id.as_str()),
            Cell::text(&self.target),
            Cell::Int(barred.into()),
            Cell::Int(int(now.0)),
        ]
    }

    /// The row of [`CHILD_ATTEMPTS`], executed for the first time, of the child with this id.
    pub(super) fn attempt_cells(&self, child_id: &ChildId) -> [Cell; 7] {
        [
            Cell::text(self.tenant.as_str()),
            Cell::text(child_id.as_str()),
            Cell::Int(self.attempt.into()),
            Cell::Int(int(self.fence)),
            Cell::text(status_word(ChildStatus::Running)),
            Cell::Int(1),
            Cell::Int(int(self.deadline_at.0)),
        ]
    }
}

impl ChildSettlement {
    /// The columns of [`SETTLEMENT`].
    pub(super) fn cells(&self, now: Instant) -> Result<[Cell; 11], StoreError> {
        let sealed = |sealed: &Option<(String, Vec<u8>)>| match sealed {
            None => [Cell::Null, Cell::Null],
            Some((key_id, bytes)) => [Cell::text(key_id), Cell::Bytes(bytes.clone())],
        };
        let [output_key, output] = sealed(&self.end.output);
        let [message_key, message] = sealed(&self.end.message);
        Ok([
            Cell::text(self.tenant.as_str()),
            Cell::text(self.child_id.as_str()),
            Cell::Int(self.attempt.into()),
            Cell::Int(int(self.fence)),
            Cell::text(status_word(self.end.status)),
            Cell::Int(int(now.0)),
            json(&PublicEnd {
                code: self.end.code.clone(),
                usage: self.end.usage,
                cost: self.end.cost.clone(),
            })?,
            output_key,
            output,
            message_key,
            message,
        ])
    }
}

fn sealed(
    row: &impl Columns,
    key: &'static str,
    bytes: &'static str,
) -> Result<Option<(String, Vec<u8>)>, StoreError> {
    match row.maybe_text(key)? {
        None => Ok(None),
        Some(key_id) => Ok(Some((key_id, row.bytes(bytes)?))),
    }
}

/// How an attempt ended, from its row.
pub(super) fn end(row: &impl Columns) -> Result<ChildEnd, StoreError> {
    let said: PublicEnd = match row.maybe_text("end")? {
        Some(text) => thing(&text)?,
        None => {
            return Err(StoreError::Corrupt(
                "a child that ended without an end".to_owned(),
            ));
        }
    };
    Ok(ChildEnd {
        status: word(row.text("status")?)?,
        output: sealed(row, "output_key_id", "output")?,
        code: said.code,
        message: sealed(row, "message_key_id", "message")?,
        usage: said.usage,
        cost: said.cost,
    })
}
