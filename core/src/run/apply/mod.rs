//! Folding one event: the only way that a run changes (run-machine.md §1, §§4–5, 8; seed A
//! "Status model"). Each arm checks first and changes afterwards, so that an event that is
//! not legal leaves the run as it was.

use std::sync::Arc;

use super::Corrupt;
use super::event::{
    AttemptStatus, ChildKind, ChildWaiting, Classification, EdgeState, Event, Mode, NodeSkipped,
    Payload, Queued, RetryScheduled, RetryStarted, Settled, SkipReason, Started,
};
use super::state::{
    Attempt, Child, ChildCancellation, EdgeFact, Moment, NodeState, NodeStatus, PayloadFact, Retry,
    Run, RunStatus,
};
use crate::code::Code;
use crate::evidence::{self, Evidence};
use crate::ids::NodeId;
use crate::node_type::{Direction, NodeType};
use crate::plan::{EdgeIndex, NodeIndex, Plan};

mod cancel;
mod edge;
mod ending;

/// Why an event is not legal, before the sequence is put beside it.
type Illegal = String;

/// Whether a node may start, by its incoming edges (K2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// Some edge is not settled.
    Wait,
    /// It may.
    Ready,
    /// It never will.
    Skip(SkipReason),
}

impl Run {
    /// Folds one event: the only way that a run changes.
    ///
    /// # Errors
    /// [`Corrupt`] for an event that is not legal here; the run is then as it was.
    pub fn apply(&mut self, plan: &Plan, event: &Event) -> Result<(), Corrupt> {
        let at = Moment {
            sequence: event.sequence,
            recorded_at: event.recorded_at,
            virtual_offset_ms: event.virtual_offset_ms,
        };
        let in_flight = self.in_flight;
        self.follows(event)
            .and_then(|()| self.fold(plan, &event.payload, at))
            .map_err(|detail| Corrupt {
                code: Code::WorkflowEventTransitionInvalid,
                sequence: event.sequence,
                detail: format!("{}: {detail}", event.payload.type_name()),
            })?;
        self.touch(in_flight, event);
        self.sequence = event.sequence;
        self.clock = at;
        Ok(())
    }

    /// O5, and that no clock runs back.
    fn follows(&self, event: &Event) -> Result<(), Illegal> {
        if event.sequence != self.sequence + 1 {
            return Err(format!("sequence {} was due", self.sequence + 1));
        }
        let is_first = matches!(event.payload, Payload::RunQueued(_));
        if is_first != self.queued.is_none() {
            return Err("a run begins with run.queued, once".to_owned());
        }
        if self.status.is_terminal() && !matches!(event.payload, Payload::RetentionApplied(_)) {
            return Err(format!("the run is {}", self.status.as_str()));
        }
        // Once something was skipped because the run ends, only that end follows (K3).
        let ends = match &event.payload {
            Payload::NodeSkipped(skipped) => Some(skipped.reason),
            Payload::EdgeSettled(settled) => settled.reason,
            Payload::RunFailed(_) => Some(SkipReason::RunFailed),
            Payload::RunRefused(_) => Some(SkipReason::RunRefused),
            Payload::RunCancelled(_) => Some(SkipReason::RunCancelled),
            Payload::RetentionApplied(_) => self.ending,
            _ => None,
        };
        if self.ending.is_some() && ends != self.ending {
            return Err("the run is ending for another reason".to_owned());
        }
        if event.recorded_at < self.clock.recorded_at
            || event.virtual_offset_ms < self.clock.virtual_offset_ms
        {
            return Err("time runs back".to_owned());
        }
        Ok(())
    }

    fn fold(&mut self, plan: &Plan, payload: &Payload, at: Moment) -> Result<(), Illegal> {
        match payload {
            Payload::RunQueued(queued) => self.fold_queued(plan, queued, at),
            Payload::RunClaimed(_) | Payload::RunRecovered(_) => {
                if self.status == RunStatus::Queued {
                    self.status = RunStatus::Running;
                }
                self.first_claim.get_or_insert(at);
                Ok(())
            }
            Payload::NodeReady(ready) => self.fold_ready(plan, &ready.node_id, at),
            Payload::AttemptStarted(started) => self.fold_started(plan, started, at),
            Payload::ChildWaiting(waiting) => self.fold_child_waiting(plan, waiting),
            Payload::AttemptSettled(settled) => self.fold_settled(plan, settled, at),
            Payload::RetryScheduled(scheduled) => self.fold_retry_scheduled(plan, scheduled, at),
            Payload::RetryStarted(started) => self.fold_retry_started(plan, started),
            Payload::NodeSkipped(skipped) => self.fold_skipped(plan, skipped, at),
            Payload::EdgeSettled(settled) => self.fold_edge(plan, settled, at),
            Payload::RunCancelRequested(request) => {
                if self.status == RunStatus::CancelRequested {
                    return Err("a cancellation was requested already".to_owned());
                }
                self.status = RunStatus::CancelRequested;
                self.cancellation = Some(Arc::new(request.clone()));
                Ok(())
            }
            Payload::NodeCancelRequested(request) => self.fold_cancel_requested(plan, request),
            Payload::NodeCancelAcknowledged(answer) => self.fold_cancel_answer(plan, answer, true),
            Payload::NodeCancelNotAcknowledged(answer) => {
                self.fold_cancel_answer(plan, answer, false)
            }
            Payload::LateIgnored(late) => self.fold_late(plan, late),
            Payload::RetentionApplied(applied) => self.fold_retention(applied),
            Payload::RunSucceeded(succeeded) => self.fold_succeeded(plan, succeeded, at),
            Payload::RunFailed(failed) => self.fold_failed(failed, RunStatus::Failed, at),
            Payload::RunRefused(failed) => self.fold_failed(failed, RunStatus::Refused, at),
            Payload::RunCancelled(cancelled) => {
                require(self.status == RunStatus::CancelRequested, || {
                    "no cancellation was requested".to_owned()
                })?;
                require(
                    cancelled.acknowledgement == self.acknowledgement(plan),
                    || "the attempts say otherwise".to_owned(),
                )?;
                self.require_complete(&cancelled.ended)?;
                self.finish(RunStatus::Cancelled, at, None);
                Ok(())
            }
        }
    }

    fn fold_queued(&mut self, plan: &Plan, queued: &Queued, at: Moment) -> Result<(), Illegal> {
        require(queued.plan_hash == plan.hash(), || {
            format!("the run belongs to plan {}", queued.plan_hash)
        })?;
        self.note(&queued.input);
        self.queued = Some((Arc::new(queued.clone()), at));
        Ok(())
    }

    fn fold_ready(&mut self, plan: &Plan, id: &NodeId, at: Moment) -> Result<(), Illegal> {
        self.require_running()?;
        let index = find(plan, id)?;
        require(self.in_flight.is_none(), || {
            "an attempt is in flight".to_owned()
        })?;
        require(self.admission(plan, index) == Admission::Ready, || {
            "its inputs are not there".to_owned()
        })?;
        let node = self.node_mut(index)?;
        require(node.status() == NodeStatus::Pending, || {
            format!("it is {}", node.status().as_str())
        })?;
        node.status = Some(NodeStatus::Ready);
        node.ready = Some(at);
        Ok(())
    }

    fn fold_started(&mut self, plan: &Plan, started: &Started, at: Moment) -> Result<(), Illegal> {
        self.require_running()?;
        let index = find(plan, &started.node_id)?;
        require(self.in_flight.is_none(), || {
            "an attempt is in flight".to_owned()
        })?;
        let node = self.node_mut(index)?;
        let retries = node.retry.as_ref().is_some_and(|retry| retry.begun);
        let due = match node.status() {
            NodeStatus::Ready => 1,
            NodeStatus::Running if retries => node.attempts.len() as u32 + 1,
            other => return Err(format!("the node is {}", other.as_str())),
        };
        require(started.attempt == due, || format!("attempt {due} was due"))?;
        node.attempts.push(Attempt {
            attempt: started.attempt,
            status: None,
            semantic_group: started.semantic_group,
            idempotency_key: started.idempotency_key,
            input: started.input.clone(),
            output: None,
            outcome_port: None,
            child: None,
            code: None,
            message: None,
            classification: None,
            child_terminal: None,
            usage: None,
            cost: None,
            cancellation: None,
            retry: None,
            started: at,
            settled: None,
            late: false,
            last_sequence: at.sequence,
        });
        node.status = Some(NodeStatus::Running);
        node.started.get_or_insert(at);
        self.in_flight = Some(index.0);
        self.note(&started.input);
        Ok(())
    }

    fn fold_child_waiting(&mut self, plan: &Plan, waiting: &ChildWaiting) -> Result<(), Illegal> {
        let index = find(plan, &waiting.node_id)?;
        let kind = child_kind(plan.node(index).task.node_type())
            .ok_or_else(|| "the node has no children".to_owned())?;
        require(kind == waiting.child_kind, || {
            "it is a child of the other kind".to_owned()
        })?;
        let status = self.status;
        require(
            matches!(status, RunStatus::Running | RunStatus::CancelRequested),
            || format!("the run is {}", status.as_str()),
        )?;
        let attempt = self.attempt_mut(index, waiting.attempt)?;
        require(attempt.child.is_none(), || {
            "the child is known already".to_owned()
        })?;
        attempt.child = Some(Child {
            kind,
            id: waiting.child_id.clone(),
            deadline_at: waiting.deadline_at,
        });
        self.node_mut(index)?.status = Some(NodeStatus::WaitingChild);
        if status == RunStatus::Running && kind == ChildKind::Agent {
            self.status = RunStatus::WaitingAgent;
        }
        Ok(())
    }

    fn fold_settled(&mut self, plan: &Plan, settled: &Settled, at: Moment) -> Result<(), Illegal> {
        let index = find(plan, &settled.node_id)?;
        let node_type = plan.node(index).task.node_type();
        check_settlement(settled, node_type, self.status)?;
        let mut rollup = self.rollup.clone();
        let attempt = self.attempt_mut(index, settled.attempt)?;
        // C2: a request is answered before the attempt has its last word.
        require(
            attempt.cancellation != Some(ChildCancellation::Requested),
            || "the cancellation of its child has no answer".to_owned(),
        )?;
        if let Some(child) = &attempt.child {
            rollup
                .count(
                    child.kind,
                    &child.id,
                    settled.child_terminal,
                    settled.usage,
                    settled.cost.as_ref(),
                )
                .ok_or_else(|| "a counter is beyond 2^53 - 1".to_owned())?;
        }
        attempt.status = Some(settled.status);
        attempt.outcome_port.clone_from(&settled.outcome_port);
        attempt.output.clone_from(&settled.output);
        attempt.code.clone_from(&settled.code);
        attempt.message.clone_from(&settled.message);
        attempt.classification = settled.classification;
        attempt.child_terminal = settled.child_terminal;
        attempt.usage = settled.usage;
        attempt.cost.clone_from(&settled.cost);
        attempt.settled = Some(at);
        let node = self.node_mut(index)?;
        node.status = Some(match settled.status {
            AttemptStatus::Succeeded => NodeStatus::Succeeded,
            AttemptStatus::Failed => NodeStatus::Failed,
            AttemptStatus::Refused => NodeStatus::Refused,
            AttemptStatus::Cancelled => NodeStatus::Cancelled,
        });
        node.outcome_port.clone_from(&settled.outcome_port);
        node.settled = Some(at);
        self.rollup = rollup;
        self.in_flight = None;
        if self.status == RunStatus::WaitingAgent {
            self.status = RunStatus::Running;
        }
        if let Some(output) = &settled.output {
            self.note(output);
        }
        Ok(())
    }

    fn fold_retry_scheduled(
        &mut self,
        plan: &Plan,
        scheduled: &RetryScheduled,
        at: Moment,
    ) -> Result<(), Illegal> {
        self.require_running()?;
        let due = match self.mode() {
            Mode::Live => scheduled.next_attempt_at.is_some(),
            Mode::Simulate => scheduled.next_attempt_offset_ms.is_some(),
        };
        require(due, || "it has no time".to_owned())?;
        let index = find(plan, &scheduled.node_id)?;
        let policy = plan.node(index).policy.as_ref();
        let allowed = policy.is_some_and(|policy| scheduled.attempt < policy.max_attempts);
        require(allowed, || "no attempt is left".to_owned())?;
        let previous = self.sequence;
        let node = self.node_mut(index)?;
        let last = node.attempts.last_mut().filter(|attempt| {
            attempt.attempt == scheduled.attempt
                && attempt.status == Some(AttemptStatus::Failed)
                && attempt.classification == Some(Classification::Retryable)
                && attempt.code.as_deref() == Some(&*scheduled.code)
                && attempt.semantic_group == scheduled.semantic_group
                && attempt.idempotency_key == scheduled.idempotency_key
                && attempt.outcome_port.is_none()
                && attempt.settled.is_some_and(|at| at.sequence == previous)
        });
        let last = last.ok_or_else(|| "no retryable failure precedes it".to_owned())?;
        last.retry = Some(scheduled.clone());
        last.last_sequence = at.sequence;
        node.retry = Some(Retry {
            scheduled: scheduled.clone(),
            at,
            begun: false,
        });
        node.status = Some(NodeStatus::WaitingRetry);
        node.settled = None;
        self.status = RunStatus::WaitingRetry;
        Ok(())
    }

    fn fold_retry_started(&mut self, plan: &Plan, started: &RetryStarted) -> Result<(), Illegal> {
        let index = find(plan, &started.node_id)?;
        require(self.status == RunStatus::WaitingRetry, || {
            "no retry waits".to_owned()
        })?;
        let node = self.node_mut(index)?;
        let attempts = node.attempts.len() as u32;
        let retry = node.retry.as_mut().filter(|retry| {
            !retry.begun
                && retry.at.sequence == started.scheduled_sequence
                && started.attempt == attempts + 1
        });
        retry
            .ok_or_else(|| "another retry was scheduled".to_owned())?
            .begun = true;
        node.status = Some(NodeStatus::Running);
        self.status = RunStatus::Running;
        Ok(())
    }

    fn fold_skipped(
        &mut self,
        plan: &Plan,
        skipped: &NodeSkipped,
        at: Moment,
    ) -> Result<(), Illegal> {
        let index = find(plan, &skipped.node_id)?;
        let ends_run = match skipped.reason {
            SkipReason::InputClosed | SkipReason::NoInput => {
                self.require_running()?;
                let due = Admission::Skip(skipped.reason);
                require(self.admission(plan, index) == due, || {
                    "its inputs do not say so".to_owned()
                })?;
                false
            }
            SkipReason::RunFailed | SkipReason::RunRefused | SkipReason::RunCancelled => {
                self.require_end(skipped.reason)?;
                true
            }
            SkipReason::OtherPort | SkipReason::SourceSkipped => {
                return Err("this is a reason of edges".to_owned());
            }
        };
        let node = self.node_mut(index)?;
        node.status = Some(match (node.status(), skipped.reason) {
            (NodeStatus::Pending | NodeStatus::Ready, _) => NodeStatus::Skipped,
            // K3: what was tried before is not called skipped.
            (NodeStatus::WaitingRetry, SkipReason::RunCancelled) => NodeStatus::Cancelled,
            (NodeStatus::WaitingRetry, _) if ends_run => NodeStatus::Failed,
            (other, _) => return Err(format!("the node is {}", other.as_str())),
        });
        node.settled = Some(at);
        if ends_run {
            self.ending = Some(skipped.reason);
        }
        Ok(())
    }

    pub(super) fn require_running(&self) -> Result<(), Illegal> {
        require(self.status == RunStatus::Running, || {
            format!("the run is {}", self.status.as_str())
        })
    }

    /// Counts a payload against the previews, once for each id (A6).
    pub(super) fn note(&mut self, evidence: &Evidence) {
        let Some(id) = &evidence.payload_id else {
            return;
        };
        if self.payloads.contains_key(id) {
            return;
        }
        self.preview_bytes += evidence::counted(evidence.original_byte_size);
        let fact = PayloadFact {
            schema_id: evidence.schema_id.clone(),
            original_byte_size: evidence.original_byte_size,
        };
        self.payloads.insert(id.clone(), fact);
    }

    pub(super) fn node_mut(&mut self, index: NodeIndex) -> Result<&mut NodeState, Illegal> {
        self.nodes
            .get_mut(index.0)
            .ok_or_else(|| "the run belongs to another plan".to_owned())
    }

    /// The attempt in flight, if it is this one.
    pub(super) fn attempt_mut(
        &mut self,
        index: NodeIndex,
        number: u32,
    ) -> Result<&mut Attempt, Illegal> {
        require(self.in_flight == Some(index.0), || {
            "the node has no attempt in flight".to_owned()
        })?;
        self.node_mut(index)?
            .attempts
            .last_mut()
            .filter(|attempt| attempt.attempt == number)
            .ok_or_else(|| "another attempt is in flight".to_owned())
    }

    /// Remembers which event spoke last about the attempt that was in flight before it.
    fn touch(&mut self, in_flight: Option<usize>, event: &Event) {
        let speaks = matches!(
            event.payload,
            Payload::ChildWaiting(_)
                | Payload::AttemptSettled(_)
                | Payload::NodeCancelRequested(_)
                | Payload::NodeCancelAcknowledged(_)
                | Payload::NodeCancelNotAcknowledged(_)
                | Payload::LateIgnored(_)
        );
        let open = in_flight.filter(|_| speaks);
        let node = open.and_then(|at| self.nodes.get_mut(at));
        if let Some(attempt) = node.and_then(|node| node.attempts.last_mut()) {
            attempt.last_sequence = event.sequence;
        }
    }

    /// The folded node at a position.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "`new` makes one state a node of the plan that the index comes from"
    )]
    pub fn state(&self, index: NodeIndex) -> &NodeState {
        &self.nodes[index.0]
    }

    /// The final word about an edge, if it has one.
    #[must_use]
    pub fn edge_state(&self, index: EdgeIndex) -> Option<&EdgeFact> {
        self.edges.get(index.0).and_then(Option::as_ref)
    }

    /// K2, from the incoming edges alone.
    pub(super) fn admission(&self, plan: &Plan, index: NodeIndex) -> Admission {
        let (mut emitted, mut open) = (0, 0);
        for edge in plan.incoming(index) {
            match self.edge_state(*edge).map(|fact| fact.settled.state) {
                None => open += 1,
                Some(EdgeState::Emitted) => emitted += 1,
                Some(EdgeState::Closed | EdgeState::Skipped) => {}
            }
        }
        let reason = match plan.node(index).task.node_type() {
            NodeType::Input => return Admission::Ready,
            NodeType::Merge => SkipReason::NoInput,
            _ => SkipReason::InputClosed,
        };
        match (open, emitted) {
            (1.., _) => Admission::Wait,
            (0, 0) => Admission::Skip(reason),
            _ => Admission::Ready,
        }
    }
}

/// What a settlement may say, by the node's type and the run's status.
fn check_settlement(settled: &Settled, node_type: NodeType, run: RunStatus) -> Result<(), Illegal> {
    let port = settled.outcome_port.as_deref();
    if let Some(name) = port {
        let known = node_type.port(name);
        require(
            known.is_some_and(|port| port.direction == Direction::Output),
            || format!("{name:?} is not an output port"),
        )?;
    }
    require(settled.output.is_some() == port.is_some(), || {
        "a port emits an output, and nothing else does".to_owned()
    })?;
    let cancelling = run == RunStatus::CancelRequested;
    let fits = match settled.status {
        AttemptStatus::Succeeded => {
            port != Some("failure") && (port.is_some() || node_type == NodeType::Output)
        }
        AttemptStatus::Failed | AttemptStatus::Refused => {
            matches!(port, None | Some("failure"))
                && settled.code.is_some()
                && settled.classification.is_some()
        }
        AttemptStatus::Cancelled => port.is_none(),
    };
    require(
        fits && cancelling == (settled.status == AttemptStatus::Cancelled),
        || "the outcome does not fit the status".to_owned(),
    )
}

/// The kind of child that a node type starts.
pub(super) fn child_kind(node_type: NodeType) -> Option<ChildKind> {
    match node_type {
        NodeType::Agent | NodeType::AgentDecision => Some(ChildKind::Agent),
        NodeType::Action => Some(ChildKind::Action),
        _ => None,
    }
}

fn find(plan: &Plan, id: &NodeId) -> Result<NodeIndex, Illegal> {
    plan.find_node(id.as_str())
        .ok_or_else(|| format!("node {id} is not in the plan"))
}

fn require(holds: bool, otherwise: impl FnOnce() -> Illegal) -> Result<(), Illegal> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
