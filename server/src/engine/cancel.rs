//! Cancellation by request (run-machine.md §8 C1, C4; W2): under the expected sequence
//! alone, whoever holds the run.

use sluicegate_core::api::{CancelState, Cancellation, Cancelled};
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{ChildCancellation, Command, Refusal, Run, RunStatus};

use super::{Engine, EngineError};
use crate::store::{By, ChildChanges, Guard, StoreError};

impl Engine {
    /// Asks a run to stop, and says how it stands. A second request changes nothing, and a
    /// run that has ended stays as it is.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`; a parked run answers with its code (A9).
    pub async fn cancel(
        &self,
        by: &By,
        run_id: &RunId,
        reason: Option<String>,
    ) -> Result<Cancelled, EngineError> {
        loop {
            let mut folded = self.fold(&by.tenant, run_id).await?;
            let command = Command::Cancel {
                requested_by: by.actor.clone(),
                reason: reason.clone(),
            };
            self.fill(&mut folded).await?;
            let step = match self.decide(&folded, command) {
                Ok(step) if step.is_empty() => return Ok(standing(&folded.run)),
                Err(EngineError::Machine(Refusal::Terminal)) => return Ok(standing(&folded.run)),
                decided => decided?,
            };
            let guard = Guard::Sequence(folded.run.sequence());
            let acting = (by.actor.clone(), by.origin.clone());
            let children = ChildChanges::default();
            match self
                .commit(&mut folded, step, guard, acting, children)
                .await
            {
                Ok(_) => return Ok(standing(&folded.run)),
                // The run moved on in the meantime: decide again from where it is.
                Err(EngineError::Store(StoreError::Stale)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// How a run's cancellation stands (C4).
fn standing(run: &Run) -> Cancelled {
    let request = run.cancellation();
    let heard = run
        .nodes()
        .iter()
        .filter_map(|node| node.attempts.last()?.cancellation)
        .next_back();
    let state = match (request, run.status(), heard) {
        (None, ..) => CancelState::None,
        (_, RunStatus::Cancelled, _) => CancelState::Cancelled,
        (.., Some(ChildCancellation::Acknowledged)) => CancelState::Acknowledged,
        (.., Some(ChildCancellation::NotAcknowledged(_))) => CancelState::NotAcknowledged,
        _ => CancelState::Requested,
    };
    Cancelled {
        run_id: run.run_id().clone(),
        status: run.status(),
        cancellation: Cancellation {
            state,
            requested_at: request.map(|request| request.requested_at),
            requested_by: request.map(|request| request.requested_by.clone()),
        },
    }
}
