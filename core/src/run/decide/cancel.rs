//! Cancellation (run-machine.md §8, C1–C4).

use super::draft::Draft;
use super::end::Ending;
use crate::actor::Actor;
use crate::code::Code;
use crate::ids::{ChildId, NodeId};
use crate::plan::NodeIndex;
use crate::run::command::Refusal;
use crate::run::event::{
    AttemptStatus, CancelAnswer, CancelAnswered, ChildKind, Cost, NodeCancelRequested, Payload,
    RunCancelRequested, Settled, Usage,
};
use crate::run::state::{ChildCancellation, RunStatus};
use crate::time::Instant;

impl Draft<'_> {
    /// A request to stop. A second one changes nothing (C4).
    pub(super) fn cancel(
        &mut self,
        requested_by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        if self.run.status() == RunStatus::CancelRequested {
            return Ok(());
        }
        let requested_at = self.now().unwrap_or(Instant(0));
        let reason = reason.map(|text| self.said(&text));
        self.emit(Payload::RunCancelRequested(RunCancelRequested {
            requested_by,
            reason,
            requested_at,
        }))?;
        let Some(at) = self.run.in_flight else {
            return self.end(Ending::Cancelled, None);
        };
        let index = NodeIndex(at);
        self.emit(Payload::NodeCancelRequested(NodeCancelRequested {
            node_id: self.plan.node(index).id.clone(),
            attempt: self.attempt_number(index),
            child_kind: self.kind(index)?,
            child_id: self.child(index).map(|child| child.id.clone()),
        }))?;
        self.answer_for_deaf(index)
    }

    /// The child's runtime answered (C2), or spoke for a key that it had or had not seen (C3).
    pub(super) fn cancel_answered(
        &mut self,
        node_id: &NodeId,
        attempt: u32,
        child_id: Option<ChildId>,
        refusal: Option<CancelAnswer>,
    ) -> Result<(), Refusal> {
        let index = self.in_flight(node_id, attempt)?;
        if self.cancellation(index) != Some(ChildCancellation::Requested) {
            return Err(Refusal::Stale);
        }
        if let (Some(child_id), None) = (child_id, self.child(index)) {
            self.child_waiting(index, child_id)?;
        }
        let known = self.child(index).is_some();
        // A refusal about a child that nobody knows says nothing: it may still start. The
        // cancellation by key stays owed (C3).
        if !known && refusal.is_some() {
            return Err(Refusal::Stale);
        }
        self.answer(index, refusal)?;
        if !known {
            // The key is kept as refused: nothing can start late, nothing is observed.
            self.settle_cancelled(index, None, None, None)?;
            self.end(Ending::Cancelled, Some(index))?;
        }
        Ok(())
    }

    /// Records the answer to a requested cancellation.
    pub(super) fn answer(
        &mut self,
        index: NodeIndex,
        refusal: Option<CancelAnswer>,
    ) -> Result<(), Refusal> {
        let answered = CancelAnswered {
            node_id: self.plan.node(index).id.clone(),
            attempt: self.attempt_number(index),
            child_kind: self.kind(index)?,
            child_id: self.child(index).map(|child| child.id.clone()),
            reason: refusal,
        };
        self.emit(match refusal {
            None => Payload::NodeCancelAcknowledged(answered),
            Some(_) => Payload::NodeCancelNotAcknowledged(answered),
        })
    }

    /// A child that ended before its runtime answered: that end is the answer.
    pub(super) fn answer_unheard(
        &mut self,
        index: NodeIndex,
        stopped: bool,
    ) -> Result<(), Refusal> {
        if self.cancellation(index) != Some(ChildCancellation::Requested) {
            return Ok(());
        }
        self.answer(index, (!stopped).then_some(CancelAnswer::Rejected))
    }

    /// The attempt's final word in a cancelled run.
    pub(super) fn settle_cancelled(
        &mut self,
        index: NodeIndex,
        child_terminal: Option<bool>,
        usage: Option<Usage>,
        cost: Option<Cost>,
    ) -> Result<(), Refusal> {
        let code = match self.kind(index)? {
            ChildKind::Agent => Code::AgentCancelled,
            ChildKind::Action => Code::ActionCancelled,
        };
        self.emit(Payload::AttemptSettled(Box::new(Settled {
            node_id: self.plan.node(index).id.clone(),
            attempt: self.attempt_number(index),
            status: AttemptStatus::Cancelled,
            outcome_port: None,
            output: None,
            code: Some(code.as_str().to_owned()),
            classification: None,
            message: None,
            child_terminal,
            usage,
            cost,
        })))
    }
}
