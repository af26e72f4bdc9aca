//! Ending a run: every node and every edge gets its one final word first (K3, O5).

use super::draft::Draft;
use crate::code::Code;
use crate::evidence;
use crate::ids::NodeId;
use crate::node_type::NodeType;
use crate::plan::NodeIndex;
use crate::run::command::Refusal;
use crate::run::event::{
    AttemptStatus, Classification, Failed, NodeSkipped, Payload, RunCancelled, Settled, SkipReason,
    Succeeded,
};
use crate::run::state::{NodeStatus, RunStatus};
use crate::value::{Map, Value};

/// How a run ends early.
pub(super) enum Ending {
    Failed(Because),
    Refused(Because),
    Cancelled,
}

/// Why a run fails or is refused.
pub(super) struct Because {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) node_id: Option<NodeId>,
}

impl Ending {
    pub(super) fn failed(
        code: impl Into<String>,
        message: impl Into<String>,
        node_id: Option<NodeId>,
    ) -> Self {
        Self::Failed(Because {
            code: code.into(),
            message: message.into(),
            node_id,
        })
    }

    pub(super) fn refused(
        code: impl Into<String>,
        message: impl Into<String>,
        node_id: Option<NodeId>,
    ) -> Self {
        Self::Refused(Because {
            code: code.into(),
            message: message.into(),
            node_id,
        })
    }

    fn reason(&self) -> SkipReason {
        match self {
            Self::Failed(_) => SkipReason::RunFailed,
            Self::Refused(_) => SkipReason::RunRefused,
            Self::Cancelled => SkipReason::RunCancelled,
        }
    }
}

impl Draft<'_> {
    /// Ends the run if its time or its events are used up (A5, A7). Gives whether it did.
    pub(super) fn end_if_spent(&mut self, settled: Option<NodeIndex>) -> Result<bool, Refusal> {
        let code = if self.is_overdue() {
            Code::RunDurationExceeded
        } else if self.is_out_of_events() {
            Code::RunEventLimit
        } else {
            return Ok(false);
        };
        self.end(
            Ending::failed(code.as_str(), code.sentence(), None),
            settled,
        )?;
        Ok(true)
    }

    /// Ends the run early: the settled node's own edges first, then nodes in plan order.
    pub(super) fn end(
        &mut self,
        ending: Ending,
        settled: Option<NodeIndex>,
    ) -> Result<(), Refusal> {
        // A cancelled run never becomes anything else (seed A "Legal transitions").
        let ending = match self.run.status() {
            RunStatus::CancelRequested => Ending::Cancelled,
            _ => ending,
        };
        let reason = ending.reason();
        if let Some(index) = settled {
            self.skip_edges(index, reason)?;
        }
        for index in self.plan.node_indices() {
            if self.run.state(index).status().is_final() {
                continue;
            }
            self.emit(Payload::NodeSkipped(NodeSkipped {
                node_id: self.plan.node(index).id.clone(),
                reason,
            }))?;
            self.skip_edges(index, reason)?;
        }
        let ended = self.run.rollup.ended(self.run.mode(), true);
        let payload = match ending {
            Ending::Failed(because) => Payload::RunFailed(Box::new(self.because(because, ended))),
            Ending::Refused(because) => Payload::RunRefused(Box::new(self.because(because, ended))),
            Ending::Cancelled => Payload::RunCancelled(Box::new(RunCancelled {
                acknowledgement: self.run.acknowledgement(self.plan),
                ended,
            })),
        };
        self.emit(payload)
    }

    fn because(&self, because: Because, ended: crate::run::event::Ended) -> Failed {
        Failed {
            code: self.code(&because.code),
            message: self.said(&because.message),
            node_id: because.node_id,
            ended,
        }
    }

    /// Ends a run that went through all of its nodes (R1).
    pub(super) fn complete(&mut self) -> Result<(), Refusal> {
        let mut outputs = std::collections::BTreeMap::new();
        let mut result = Map::new();
        for index in self.plan.node_indices() {
            let node = self.plan.node(index);
            let state = self.run.state(index);
            if node.task.node_type() != NodeType::Output || state.status() != NodeStatus::Succeeded
            {
                continue;
            }
            let Some(attempt) = state.attempts.last() else {
                continue;
            };
            let evidence = attempt.input.clone();
            if let Some(id) = &evidence.payload_id {
                let value = self.value(id)?;
                let (_, port) = self.plan.port_schema(index, "input");
                let shown = self.shown([self.plan.schema(&evidence.schema_id), port], &value);
                result.insert(node.id.as_str().to_owned(), shown);
            }
            outputs.insert(node.id.clone(), evidence);
        }
        if outputs.is_empty() {
            let code = Code::RunNoOutput;
            return self.end(Ending::failed(code.as_str(), code.sentence(), None), None);
        }
        self.store_result(Value::Object(result));
        let ended = self.run.rollup.ended(self.run.mode(), true);
        self.emit(Payload::RunSucceeded(Box::new(Succeeded {
            outputs,
            ended,
        })))
    }

    /// A9: an attempt in flight gets its final word too.
    pub(super) fn inconsistent(
        &mut self,
        code: Code,
        message: String,
        node_id: Option<NodeId>,
    ) -> Result<(), Refusal> {
        let mut settled = None;
        if let Some(at) = self.run.in_flight {
            let index = NodeIndex(at);
            settled = Some(index);
            if self.run.status() == RunStatus::CancelRequested {
                self.answer_unheard(index, false)?;
                self.settle_cancelled(index, None, None, None)?;
            } else {
                let number = self.attempt_number(index);
                let message = self.said(&message);
                self.emit(Payload::AttemptSettled(Box::new(Settled {
                    node_id: self.plan.node(index).id.clone(),
                    attempt: number,
                    status: AttemptStatus::Failed,
                    outcome_port: None,
                    output: None,
                    code: Some(code.as_str().to_owned()),
                    classification: Some(Classification::Permanent),
                    message: Some(message),
                    child_terminal: None,
                    usage: None,
                    cost: None,
                })))?;
            }
        }
        self.end(Ending::failed(code.as_str(), message, node_id), settled)
    }

    /// Settles every open edge of a node as skipped.
    pub(super) fn skip_edges(
        &mut self,
        index: NodeIndex,
        reason: SkipReason,
    ) -> Result<(), Refusal> {
        for edge in self.plan.outgoing(index).to_vec() {
            if self.run.edge_state(edge).is_none() {
                let (schema_id, _) = self
                    .plan
                    .port_schema(index, &self.plan.edge(edge).source.port);
                let absent = evidence::absent(schema_id);
                self.settle_edge(
                    edge,
                    index,
                    crate::run::event::EdgeState::Skipped,
                    Some(reason),
                    absent,
                )?;
            }
        }
        Ok(())
    }

    /// The number of a node's latest attempt.
    pub(super) fn attempt_number(&self, index: NodeIndex) -> u32 {
        self.run.state(index).attempts.len() as u32
    }
}
