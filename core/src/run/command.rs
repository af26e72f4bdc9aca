//! What can happen to a run from outside: the commands that [`super::decide()`] takes, and
//! what it gives back (run-machine.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{
    CancelAnswer, Cost, Event, Mode, PayloadKind, PriorLease, RecoveryReason, RetentionApplied,
    Usage, WorkflowReference,
};
use crate::actor::Actor;
use crate::code::Code;
use crate::evidence::Made;
use crate::ids::{ChildId, Hash, NodeId, PayloadId, Permission, SchemaId, WorkerId};
use crate::limits::Limits;
use crate::time::{Instant, Millis};
use crate::value::{self, Value};

/// The time that a decision sees.
#[derive(Debug, Clone, Copy)]
pub enum Time<'a> {
    /// The wall clock. Events are recorded at this instant, or at the previous event's if
    /// that is later.
    Live(Instant),
    /// A simulation's own clock.
    Virtual {
        /// Offset from the start; never before the last event's.
        offset: Millis,
        /// What nodes without a child take; absent ones take nothing (V1).
        durations: &'a BTreeMap<NodeId, Millis>,
    },
}

/// The values that a decision may read, by payload id: those that [`super::needs()`] names.
pub type Envelopes = BTreeMap<PayloadId, Arc<Value>>;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// The first command of every run: an invocation was accepted.
    Queue(Box<Queue>),
    /// A worker took the run.
    Claim {
        /// Who.
        worker_id: WorkerId,
        /// The lease; none in a simulation.
        lease: Option<Lease>,
        /// The lease that was taken over, where the claim found one (W3).
        over: Option<(PriorLease, RecoveryReason)>,
    },
    /// Go on: make ready, run what needs no child, state the next intent. Also what a
    /// worker says when a retry wait is over.
    Continue,
    /// The child's runtime took the start and named the child.
    ChildAccepted {
        /// The node.
        node_id: NodeId,
        /// The attempt.
        attempt: u32,
        /// The child.
        child_id: ChildId,
        /// The result, where the child answered at once (O4).
        result: Option<ChildResult>,
    },
    /// The child ended, or will not be waited for any longer.
    ChildSettled {
        /// The node.
        node_id: NodeId,
        /// The attempt.
        attempt: u32,
        /// How.
        result: ChildResult,
    },
    /// Somebody wants the run to stop.
    Cancel {
        /// Who.
        requested_by: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// The child's runtime answered a cancellation (C2, C3).
    CancelAnswered {
        /// The node.
        node_id: NodeId,
        /// The attempt.
        attempt: u32,
        /// The child, where the runtime knows one.
        child_id: Option<ChildId>,
        /// `None`: acknowledged.
        refusal: Option<CancelAnswer>,
    },
    /// The first claim found that the run may not begin (A10): `run.refused`.
    PreflightFailed {
        /// A code of wire-format.md §12.
        code: Code,
        /// Why, for people.
        message: String,
        /// Where.
        node_id: Option<NodeId>,
    },
    /// What is stored outside the run contradicts it (A9).
    Inconsistent {
        /// What contradicts what.
        message: String,
        /// Where.
        node_id: Option<NodeId>,
    },
    /// Retention is about to remove payloads; terminal runs only.
    Retire(RetentionApplied),
}

/// An invocation (seed A "Durable execution and recovery").
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Live or simulated.
    pub mode: Mode,
    /// What the run may use.
    pub limits: Limits,
    /// The invocation's input; it must fit the input node's schema.
    pub input: Arc<Value>,
    /// What a server knows about the workflow and the caller.
    pub reference: WorkflowReference,
}

/// D4: the hash of the canonical sorted array of permissions.
#[must_use]
pub fn permission_digest(permissions: &[Permission]) -> Hash {
    let sorted: std::collections::BTreeSet<&Permission> = permissions.iter().collect();
    let array = sorted.into_iter().map(|name| name.as_str().into());
    value::hash(&Value::Array(array.collect()))
}

/// A lease as its holder knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// It only grows.
    pub fence: u64,
    /// When it ends.
    pub expires_at: Instant,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    /// The outcome.
    pub outcome: ChildOutcome,
    /// Whether the child is known to have ended; `false` only for a deaf child (A8).
    pub terminal: bool,
    /// Tokens, when they are final.
    pub usage: Option<Usage>,
    /// The price, when there is one.
    pub cost: Option<Cost>,
}

/// A child's outcome. What it returns is checked against its port (A4).
#[derive(Debug, Clone, PartialEq)]
pub enum ChildOutcome {
    /// An agent's or action's result.
    Success {
        /// For `std.text` a string.
        output: Arc<Value>,
    },
    /// An agent-decision's raw answer: `{decision, data, reason?}`.
    Decision {
        /// As the agent gave it, unchecked.
        answer: Arc<Value>,
    },
    /// It failed.
    Failure {
        /// A code of wire-format.md §12 or of the action's contract.
        code: String,
        /// Why, for people. Scrubbed before it is stored.
        message: String,
    },
    /// It was not allowed to start (A2).
    Refused {
        /// A refused code of wire-format.md §12.
        code: String,
        /// Why, for people.
        message: String,
    },
    /// It stopped because it was asked to.
    Cancelled,
}

/// What follows from a command. The events of one decision are one commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The values that these events name for the first time.
    pub payloads: Vec<NewPayload>,
}

/// A value to store with its events.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPayload {
    /// `<nodeId>/<attempt>/<port>` or the like.
    pub id: PayloadId,
    /// `Execution` payloads also have evidence; a `Result` has its own kind.
    pub kind: PayloadKind,
    /// The schema that it was checked against.
    pub schema_id: SchemaId,
    /// The value. Of a result, secrets are already removed.
    pub value: Arc<Value>,
    /// What readers may see.
    pub evidence: Made,
}

/// Why a command does not apply. Nothing was decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has ended.
    #[error("the run has ended")]
    Terminal,
    /// The run is not where the command thinks it is: the answer of another attempt, or
    /// a command that was carried out already. Load again and decide again.
    #[error("the run has moved on")]
    Stale,
    /// An envelope that [`super::needs()`] names was not given.
    #[error("the payload {0} was not given")]
    EnvelopeMissing(PayloadId),
    /// The invocation's input is too large or does not fit (only on `Queue`).
    #[error("{message}")]
    Input {
        /// `WORKFLOW_INPUT_INVALID` or `WORKFLOW_LIMIT_EXCEEDED`.
        code: Code,
        /// JSON Pointer into the input.
        pointer: String,
        /// What is wrong.
        message: String,
    },
    /// The machine would break its own law: a fault of ours, never of the caller.
    #[error("the run machine contradicts itself: {0}")]
    Broken(String),
}
