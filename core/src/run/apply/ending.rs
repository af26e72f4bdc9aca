//! Folding what ends a run and what follows the end (run-machine.md K3, O5; seed A "Legal
//! transitions", "Retention").

use std::collections::BTreeMap;

use super::{Illegal, require};
use crate::node_type::NodeType;
use crate::plan::Plan;
use crate::run::event::{Ended, Failed, RetentionApplied, Succeeded};
use crate::run::state::{End, Failure, Moment, NodeStatus, Run, RunStatus};

impl Run {
    pub(super) fn fold_retention(&mut self, applied: &RetentionApplied) -> Result<(), Illegal> {
        require(self.status.is_terminal(), || {
            "the run has not ended".to_owned()
        })?;
        let mut retired = self.retired.clone();
        for payload in &applied.payloads {
            let key = (payload.payload_id.clone(), payload.kind);
            require(retired.insert(key), || {
                format!("{} was named before", payload.payload_id)
            })?;
        }
        self.retired = retired;
        Ok(())
    }

    pub(super) fn fold_succeeded(
        &mut self,
        plan: &Plan,
        succeeded: &Succeeded,
        at: Moment,
    ) -> Result<(), Illegal> {
        self.require_running()?;
        self.require_complete(&succeeded.ended)?;
        // R1: what every output node that settled took in.
        let reached = plan.node_indices().filter_map(|index| {
            let (node, state) = (plan.node(index), self.state(index));
            let settled = node.task.node_type() == NodeType::Output
                && state.status() == NodeStatus::Succeeded;
            let last = state.attempts.last().filter(|_| settled)?;
            Some((node.id.clone(), last.input.clone()))
        });
        let reached: BTreeMap<_, _> = reached.collect();
        require(!reached.is_empty() && succeeded.outputs == reached, || {
            "the outputs are not those of the settled output nodes".to_owned()
        })?;
        self.finish(RunStatus::Succeeded, at, None);
        if let Some(end) = &mut self.end {
            end.outputs.clone_from(&succeeded.outputs);
        }
        Ok(())
    }

    pub(super) fn fold_failed(
        &mut self,
        failed: &Failed,
        status: RunStatus,
        at: Moment,
    ) -> Result<(), Illegal> {
        let legal = match self.status {
            RunStatus::Running | RunStatus::WaitingAgent | RunStatus::WaitingRetry => true,
            RunStatus::Queued => status == RunStatus::Refused,
            _ => false,
        };
        require(legal, || format!("the run is {}", self.status.as_str()))?;
        self.require_complete(&failed.ended)?;
        let failure = Failure {
            code: failed.code.clone(),
            message: failed.message.clone(),
            node_id: failed.node_id.clone(),
        };
        self.finish(status, at, Some(failure));
        Ok(())
    }

    pub(super) fn finish(&mut self, status: RunStatus, at: Moment, failure: Option<Failure>) {
        self.status = status;
        self.end = Some(End {
            at,
            outputs: BTreeMap::new(),
            failure,
        });
    }

    /// K3, K4: each node and each edge has its final word, and the rollups are the fold's.
    pub(super) fn require_complete(&self, ended: &Ended) -> Result<(), Illegal> {
        require(self.in_flight.is_none(), || {
            "an attempt is in flight".to_owned()
        })?;
        require(
            self.nodes.iter().all(|node| node.status().is_final())
                && self.edges.iter().all(Option::is_some),
            || "a node or an edge has no final word".to_owned(),
        )?;
        require(*ended == self.rollup.ended(self.mode(), true), || {
            "the rollups are not the sum of the attempts".to_owned()
        })
    }
}
