//! The run machine, version 1: a run is a fold of its events (run-machine.md).
//!
//! Four functions are the only way that a run changes or is shown (§1): [`Run::apply`]
//! folds one event, [`decide()`] turns a command into events, [`effects`] names what is owed
//! to the world, [`project`] gives the rows that readers see.

mod event;

pub use event::{
    Acknowledgement, AttemptKey, AttemptStatus, CancelAnswer, CancelAnswered, ChildKind,
    ChildWaiting, Claimed, Classification, Cost, CostRollup, EdgeSettled, EdgeState, Ended, Event,
    EventError, Failed, LateIgnored, Mode, NodeCancelRequested, NodeReady, NodeSkipped, Payload,
    PayloadKind, PriorLease, Queued, Recovered, RecoveryReason, RetentionApplied, RetentionPolicy,
    RetiredPayload, RetryScheduled, RetryStarted, RollupState, RunCancelRequested, RunCancelled,
    Settled, SettledSource, SkipReason, Started, Succeeded, Usage, UsageRollup, WorkflowReference,
};

mod apply;
mod command;
mod decide;
mod effect;
mod needs;
mod overlay;
mod projection;
mod result;
mod rollup;
mod secret;
mod state;

pub use command::{
    ChildOutcome, ChildResult, Command, Decision, Envelopes, Lease, NewPayload, Queue, Refusal,
    Time, permission_digest,
};
pub use decide::{advance, decide};
pub use effect::{CancelChild, Effect, Observe, Start, Wake, effects};
pub use event::EVENT_SCHEMA_VERSION;
pub use needs::needs;
pub use overlay::{NodeOverlay, Overlay, fold_events, overlay};
pub use projection::{
    AttemptRow, AttemptRowStatus, EdgeRow, NodeRow, RetryRow, Rows, RunRow, project, run_row,
};
pub use result::{PayloadView, RunResult};
pub use state::{
    Attempt, Child, ChildCancellation, EdgeFact, End, Failure, Moment, NodeState, NodeStatus,
    PayloadFact, Retry, Run, RunStatus,
};

use crate::code::Code;

/// An event that does not follow from the ones before it: the log is damaged, or was
/// written by something else. Nothing is guessed (A9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {sequence}: {detail}")]
pub struct Corrupt {
    /// `WORKFLOW_EVENT_TRANSITION_INVALID` or `WORKFLOW_EVENT_SCHEMA_UNSUPPORTED`.
    pub code: Code,
    /// The event.
    pub sequence: u64,
    /// What does not fit.
    pub detail: String,
}
