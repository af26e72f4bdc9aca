//! Folding the final word about an edge (run-machine.md K1, K3, K4).

use super::{Illegal, find, require};
use crate::evidence;
use crate::plan::Plan;
use crate::run::event::{EdgeSettled, EdgeState, SkipReason};
use crate::run::state::{EdgeFact, Moment, NodeStatus, Run, RunStatus};

impl Run {
    pub(super) fn fold_edge(
        &mut self,
        plan: &Plan,
        settled: &EdgeSettled,
        at: Moment,
    ) -> Result<(), Illegal> {
        let index = plan
            .find_edge(settled.edge_id.as_str())
            .ok_or_else(|| format!("edge {} is not in the plan", settled.edge_id))?;
        let edge = plan.edge(index);
        let source = &settled.source;
        require(
            edge.source.node_id == source.node_id
                && edge.source.port == source.port
                && edge.target == settled.target,
            || "the edge has other ends".to_owned(),
        )?;
        let source_index = find(plan, &source.node_id)?;
        let from = self.state(source_index);
        let last = from.attempts.last();
        let chosen = from.outcome_port.as_deref();
        let (schema_id, _) = plan.port_schema(source_index, &source.port);
        let absent = settled.evidence == evidence::absent(schema_id);
        // Only a closed edge names the port that was chosen instead of its own (§2).
        let unselected = settled.selected_port.is_none();
        let fits = match (settled.state, settled.reason) {
            (EdgeState::Emitted, None) => {
                unselected
                    && chosen == Some(&*source.port)
                    && last.and_then(|attempt| attempt.output.as_ref()) == Some(&settled.evidence)
            }
            (EdgeState::Closed, Some(SkipReason::OtherPort)) => {
                absent
                    && chosen.is_some()
                    && chosen != Some(&*source.port)
                    && settled.selected_port.as_deref() == chosen
            }
            (EdgeState::Skipped, Some(SkipReason::SourceSkipped)) => {
                unselected && absent && from.status() == NodeStatus::Skipped
            }
            (EdgeState::Skipped, Some(reason)) => {
                self.require_end(reason)?;
                unselected && absent && chosen.is_none() && from.status().is_final()
            }
            _ => false,
        };
        require(
            fits && source.attempt == last.map(|attempt| attempt.attempt),
            || "the source says otherwise".to_owned(),
        )?;
        let slot = self
            .edges
            .get_mut(index.0)
            .filter(|slot| slot.is_none())
            .ok_or_else(|| "the edge is settled already".to_owned())?;
        *slot = Some(EdgeFact {
            settled: settled.clone(),
            at,
        });
        if settled.state == EdgeState::Skipped && settled.reason != Some(SkipReason::SourceSkipped)
        {
            self.ending = settled.reason;
        }
        Ok(())
    }

    /// A run that was asked to stop ends cancelled, and no other one does; one that nobody has
    /// claimed can only be refused; and an attempt in flight has its last word first (K3).
    pub(super) fn require_end(&self, reason: SkipReason) -> Result<(), Illegal> {
        require(self.in_flight.is_none(), || {
            "an attempt is in flight".to_owned()
        })?;
        let fits = match reason {
            SkipReason::RunCancelled => self.status == RunStatus::CancelRequested,
            SkipReason::RunFailed => {
                !matches!(self.status, RunStatus::CancelRequested | RunStatus::Queued)
            }
            SkipReason::RunRefused => self.status != RunStatus::CancelRequested,
            _ => return Err("this does not end a run".to_owned()),
        };
        require(fits, || format!("the run is {}", self.status.as_str()))
    }
}
