//! What each event carries, in the order of the catalogue (run-machine.md §2).

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Origin};
use crate::evidence::{Evidence, State};
use crate::ids::{ChildId, EdgeId, Endpoint, Hash, NodeId, PayloadId, WorkerId, WorkflowKey};
use crate::limits::Limits;
use crate::time::{Instant, Millis};

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
