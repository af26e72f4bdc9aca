//! The folded run: everything that its events say, and no values (run-machine.md §1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::{
    AttemptStatus, CancelAnswer, ChildKind, Classification, Cost, EdgeSettled, Mode, PayloadKind,
    Queued, RetryScheduled, RunCancelRequested, Usage,
};
use crate::evidence::Evidence;
use crate::ids::{ChildId, Hash, NodeId, PayloadId, RunId, SchemaId, TenantId};
use crate::plan::Plan;
use crate::time::{Instant, Millis};

/// A run's status (seed A "Workflow run projection").
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Durable, not begun.
    Queued,
    /// Going on.
    Running,
    /// An agent works.
    WaitingAgent,
    /// A retry waits for its time.
    WaitingRetry,
    /// It will be cancelled.
    CancelRequested,
    /// It reached an output.
    Succeeded,
    /// It did not.
    Failed,
    /// It was not allowed.
    Refused,
    /// It was stopped.
    Cancelled,
}

/// A node's status (seed A "Node and attempt projection").
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum NodeStatus {
    /// Waits for its inputs.
    Pending,
    /// Could start.
    Ready,
    /// An attempt is going on.
    Running,
    /// Its child works.
    WaitingChild,
    /// A retry waits for its time.
    WaitingRetry,
    /// Settled on a port.
    Succeeded,
    /// Settled with a failure.
    Failed,
    /// Was not allowed.
    Refused,
    /// Never ran.
    Skipped,
    /// Was stopped.
    Cancelled,
}

/// A run folded up to its last event.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub(super) tenant_id: TenantId,
    pub(super) run_id: RunId,
    pub(super) status: RunStatus,
    pub(super) sequence: u64,
    pub(super) clock: Moment,
    pub(super) queued: Option<(Arc<Queued>, Moment)>,
    pub(super) first_claim: Option<Moment>,
    pub(super) nodes: Vec<NodeState>,
    pub(super) edges: Vec<Option<EdgeFact>>,
    pub(super) in_flight: Option<usize>,
    /// Why nodes and edges are being skipped to end the run.
    pub(super) ending: Option<super::event::SkipReason>,
    pub(super) payloads: BTreeMap<PayloadId, PayloadFact>,
    pub(super) preview_bytes: u64,
    pub(super) cancellation: Option<Arc<RunCancelRequested>>,
    pub(super) rollup: super::rollup::Rollup,
    pub(super) end: Option<End>,
    pub(super) retired: BTreeSet<(PayloadId, PayloadKind)>,
}

/// When something happened: both clocks as the event gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Which event.
    pub sequence: u64,
    /// When it was recorded.
    pub recorded_at: Option<Instant>,
    /// When it was in a simulation.
    pub virtual_offset_ms: Option<Millis>,
}

/// A payload that some event named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFact {
    /// The schema that its value was made under; an unfit input does not fit it (A4).
    pub schema_id: SchemaId,
    /// Canonical bytes of the value itself.
    pub original_byte_size: u64,
}

/// A folded node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeState {
    /// Its status; none stands for pending.
    pub(super) status: Option<NodeStatus>,
    /// Its attempts, from 1.
    pub attempts: Vec<Attempt>,
    /// The port that it settled on.
    pub outcome_port: Option<String>,
    /// The retry that waits or waited last.
    pub retry: Option<Retry>,
    /// When it first became ready.
    pub ready: Option<Moment>,
    /// When its first attempt started.
    pub started: Option<Moment>,
    /// When it got its final word.
    pub settled: Option<Moment>,
}

/// A scheduled retry.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// What was scheduled.
    pub scheduled: RetryScheduled,
    /// When.
    pub at: Moment,
    /// Whether it began.
    pub begun: bool,
}

/// A folded attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// From 1.
    pub attempt: u32,
    /// `None`: still going on.
    pub status: Option<AttemptStatus>,
    /// Attempts of one group share the child's key (N1).
    pub semantic_group: u32,
    /// The child's key.
    pub idempotency_key: Option<Hash>,
    /// The effective input.
    pub input: Evidence,
    /// What it emits.
    pub output: Option<Evidence>,
    /// The port that emits.
    pub outcome_port: Option<String>,
    /// The child, once it is known.
    pub child: Option<Child>,
    /// Why it failed.
    pub code: Option<String>,
    /// Why it failed, for people.
    pub message: Option<String>,
    /// Whether another attempt could help.
    pub classification: Option<Classification>,
    /// Whether the child is known to have ended.
    pub child_terminal: Option<bool>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Price.
    pub cost: Option<Cost>,
    /// What became of a cancellation.
    pub cancellation: Option<ChildCancellation>,
    /// The retry that followed.
    pub retry: Option<RetryScheduled>,
    /// When it started.
    pub started: Moment,
    /// When it ended.
    pub settled: Option<Moment>,
    /// Whether its child gave a result after a cancellation was requested.
    pub late: bool,
    /// The last event about it.
    pub last_sequence: u64,
}

/// A child that a node started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Agent run or action invocation.
    pub kind: ChildKind,
    /// Its id.
    pub id: ChildId,
    /// When it must have ended.
    pub deadline_at: Option<Instant>,
}

/// How far a child's cancellation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildCancellation {
    /// It is owed.
    Requested,
    /// The child listens.
    Acknowledged,
    /// It does not.
    NotAcknowledged(CancelAnswer),
}

/// The final word about an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeFact {
    /// As the event said it.
    pub settled: EdgeSettled,
    /// When.
    pub at: Moment,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// When.
    pub at: Moment,
    /// Output node → what it received; succeeded runs only.
    pub outputs: BTreeMap<NodeId, Evidence>,
    /// Why; failed and refused runs only.
    pub failure: Option<Failure>,
}

/// Why a run failed or was refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// A stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Where, if it was at a node.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node_id: Option<NodeId>,
}

impl RunStatus {
    /// Whether nothing follows but retention.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Refused | Self::Cancelled
        )
    }

    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingAgent => "waiting-agent",
            Self::WaitingRetry => "waiting-retry",
            Self::CancelRequested => "cancel-requested",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

impl NodeStatus {
    /// Whether this is the node's final word.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Refused | Self::Skipped | Self::Cancelled
        )
    }

    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::WaitingChild => "waiting-child",
            Self::WaitingRetry => "waiting-retry",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl NodeState {
    /// The status.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.status.unwrap_or(NodeStatus::Pending)
    }
}

impl Run {
    /// A run before its first event.
    #[must_use]
    pub fn new(plan: &Plan, tenant_id: TenantId, run_id: RunId) -> Self {
        Self {
            tenant_id,
            run_id,
            status: RunStatus::Queued,
            sequence: 0,
            clock: Moment::default(),
            queued: None,
            first_claim: None,
            nodes: vec![NodeState::default(); plan.nodes().len()],
            edges: vec![None; plan.edges().len()],
            in_flight: None,
            ending: None,
            payloads: BTreeMap::new(),
            preview_bytes: 0,
            cancellation: None,
            rollup: super::rollup::Rollup::default(),
            end: None,
            retired: BTreeSet::new(),
        }
    }

    /// The tenant.
    #[must_use]
    pub fn tenant_id(&self) -> &TenantId {
        &self.tenant_id
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// The last event's sequence; 0 before the first.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When the last event happened.
    #[must_use]
    pub fn clock(&self) -> Moment {
        self.clock
    }

    /// The invocation.
    #[must_use]
    pub fn queued(&self) -> Option<&Queued> {
        self.queued.as_ref().map(|(queued, _)| &**queued)
    }

    /// When the run was queued.
    #[must_use]
    pub fn queued_at(&self) -> Option<Moment> {
        self.queued.as_ref().map(|(_, at)| *at)
    }

    /// When the first worker claimed it.
    #[must_use]
    pub fn first_claim(&self) -> Option<Moment> {
        self.first_claim
    }

    /// Live or simulated; live until the first event says.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.queued().map_or(Mode::Live, |queued| queued.mode)
    }

    /// The nodes in plan order.
    #[must_use]
    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    /// The edges in id order; `None`: not settled yet.
    #[must_use]
    pub fn edges(&self) -> &[Option<EdgeFact>] {
        &self.edges
    }

    /// The cancellation, once one was requested.
    #[must_use]
    pub fn cancellation(&self) -> Option<&RunCancelRequested> {
        self.cancellation.as_deref()
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Every payload that an event named.
    #[must_use]
    pub fn payloads(&self) -> &BTreeMap<PayloadId, PayloadFact> {
        &self.payloads
    }

    /// Whether retention has removed this form of a payload.
    #[must_use]
    pub fn is_retired(&self, id: &PayloadId, kind: PayloadKind) -> bool {
        self.retired.contains(&(id.clone(), kind))
    }

    /// The rollups as they stand.
    #[must_use]
    pub fn rollups(&self) -> super::event::Ended {
        self.rollup.ended(self.mode(), self.status.is_terminal())
    }
}
