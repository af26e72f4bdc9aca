//! Folding what a cancellation says about a node (run-machine.md §8, C2, C3).

use super::{Illegal, find, require};
use crate::plan::Plan;
use crate::run::event::{
    Acknowledgement, AttemptKey, AttemptStatus, CancelAnswered, LateIgnored, NodeCancelRequested,
};
use crate::run::state::{ChildCancellation, Run, RunStatus};

impl Run {
    pub(super) fn fold_cancel_requested(
        &mut self,
        plan: &Plan,
        request: &NodeCancelRequested,
    ) -> Result<(), Illegal> {
        require(self.status == RunStatus::CancelRequested, || {
            "no cancellation was requested".to_owned()
        })?;
        let attempt = self.attempt_mut(find(plan, &request.node_id)?, request.attempt)?;
        require(attempt.cancellation.is_none(), || {
            "it was requested already".to_owned()
        })?;
        attempt.cancellation = Some(ChildCancellation::Requested);
        Ok(())
    }

    pub(super) fn fold_cancel_answer(
        &mut self,
        plan: &Plan,
        answer: &CancelAnswered,
        acknowledged: bool,
    ) -> Result<(), Illegal> {
        let attempt = self.attempt_mut(find(plan, &answer.node_id)?, answer.attempt)?;
        let requested = Some(ChildCancellation::Requested);
        require(attempt.cancellation == requested, || {
            "no answer is due".to_owned()
        })?;
        attempt.cancellation = Some(match (acknowledged, answer.reason) {
            (true, None) => ChildCancellation::Acknowledged,
            (false, Some(reason)) => ChildCancellation::NotAcknowledged(reason),
            _ => return Err("only a refusal has a reason".to_owned()),
        });
        Ok(())
    }

    /// Who listened to a cancellation, in plan order.
    pub(in crate::run) fn acknowledgement(&self, plan: &Plan) -> Acknowledgement {
        let mut summary = Acknowledgement::default();
        for index in plan.node_indices() {
            for attempt in &self.state(index).attempts {
                let key = AttemptKey {
                    node_id: plan.node(index).id.clone(),
                    attempt: attempt.attempt,
                };
                match attempt.cancellation {
                    Some(ChildCancellation::Acknowledged) => summary.acknowledged.push(key),
                    Some(ChildCancellation::NotAcknowledged(_)) => {
                        summary.not_acknowledged.push(key);
                    }
                    Some(ChildCancellation::Requested) | None => {}
                }
            }
        }
        summary
    }

    pub(super) fn fold_late(&mut self, plan: &Plan, late: &LateIgnored) -> Result<(), Illegal> {
        require(
            self.status == RunStatus::CancelRequested && late.status != AttemptStatus::Cancelled,
            || "only a cancellation makes a result late".to_owned(),
        )?;
        let attempt = self.attempt_mut(find(plan, &late.node_id)?, late.attempt)?;
        let known = attempt.child.as_ref().map(|child| &child.id);
        require(!attempt.late && known == Some(&late.child_id), || {
            "it is not the first result of this child".to_owned()
        })?;
        attempt.late = true;
        if let Some(output) = &late.output {
            self.note(output);
        }
        Ok(())
    }
}
