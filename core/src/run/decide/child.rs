//! What children answer: acceptance, results, their checks (N1, A2, A4, A8; wire-format.md
//! G4 for decisions).

use std::sync::Arc;

use super::draft::Draft;
use super::settle::{Fault, Trace, quoted};
use crate::catalogue::Cancellation;
use crate::code::Code;
use crate::evidence::Evidence;
use crate::ids::{ChildId, NodeId, PayloadId};
use crate::plan::NodeIndex;
use crate::run::apply::child_kind;
use crate::run::command::{ChildOutcome, ChildResult, Refusal};
use crate::run::event::{
    AttemptStatus, CancelAnswer, ChildKind, ChildWaiting, LateIgnored, Payload,
};
use crate::run::state::{Child, ChildCancellation, RunStatus};
use crate::value::Value;

impl Draft<'_> {
    /// The child's runtime took the start.
    pub(super) fn child_accepted(
        &mut self,
        node_id: &NodeId,
        attempt: u32,
        child_id: ChildId,
        result: Option<ChildResult>,
    ) -> Result<(), Refusal> {
        let index = self.in_flight(node_id, attempt)?;
        if self.child(index).is_some() {
            return Err(Refusal::Stale);
        }
        self.child_waiting(index, child_id)?;
        match result {
            Some(result) => self.child_ended(index, result),
            None => self.answer_for_deaf(index),
        }
    }

    /// The child ended, or will not be waited for.
    pub(super) fn child_settled(
        &mut self,
        node_id: &NodeId,
        attempt: u32,
        result: ChildResult,
    ) -> Result<(), Refusal> {
        let index = self.in_flight(node_id, attempt)?;
        let known = self.child(index).is_some();
        // Only a refusal ends a start that never had a child (N1, V2).
        if !known && !matches!(result.outcome, ChildOutcome::Refused { .. }) {
            return Err(Refusal::Stale);
        }
        self.child_ended(index, result)
    }

    fn child_ended(&mut self, index: NodeIndex, result: ChildResult) -> Result<(), Refusal> {
        if self.run.status() == RunStatus::CancelRequested {
            return self.child_ended_late(index, result);
        }
        self.child_outcome(index, result)?;
        if self.run.status() == RunStatus::Running {
            // The settled node's edges have their words; A5 and A7 come after O3.
            self.drive()
        } else {
            if !self.run.status().is_terminal() {
                self.end_if_spent(None)?;
            }
            Ok(())
        }
    }

    fn child_outcome(&mut self, index: NodeIndex, result: ChildResult) -> Result<(), Refusal> {
        let known = self.child(index).is_some();
        let agent = self.kind(index)? == ChildKind::Agent;
        let (invalid, cancelled) = if agent {
            (Code::AgentOutputInvalid, Code::AgentCancelled)
        } else {
            (Code::ActionOutputInvalid, Code::ActionCancelled)
        };
        let mut trace = Trace {
            terminal: known.then_some(result.terminal),
            usage: result.usage,
            cost: result.cost,
        };
        if let Some(fault) = self.uncountable(index, &mut trace) {
            return self.fail(index, fault, trace);
        }
        match result.outcome {
            ChildOutcome::Success { output } => {
                self.succeed(index, "success", output, Some(invalid), trace, None)
            }
            ChildOutcome::Decision { answer } => match read_decision(&answer) {
                Ok(decision) => self.succeed(
                    index,
                    decision.port,
                    Arc::new(decision.data.clone()),
                    Some(invalid),
                    trace,
                    decision.reason.map(str::to_owned),
                ),
                Err(message) => self.fail(index, Fault::new(invalid, message), trace),
            },
            ChildOutcome::Failure { code, message } => {
                let fault = Fault {
                    status: AttemptStatus::Failed,
                    code,
                    message,
                };
                self.fail(index, fault, trace)
            }
            ChildOutcome::Refused { code, message } => {
                let fault = Fault {
                    status: AttemptStatus::Refused,
                    code,
                    message,
                };
                self.fail(index, fault, trace)
            }
            ChildOutcome::Cancelled => {
                self.fail(index, Fault::new(cancelled, cancelled.sentence()), trace)
            }
        }
    }

    /// U1: usage beyond the safe integers is an error, never a wrap. It is not recorded.
    fn uncountable(&self, index: NodeIndex, trace: &mut Trace) -> Option<Fault> {
        let child = self.child(index)?;
        let mut rollup = self.run.rollup.clone();
        if rollup
            .count(
                child.kind,
                &child.id,
                trace.terminal,
                trace.usage,
                trace.cost.as_ref(),
            )
            .is_some()
        {
            return None;
        }
        (trace.usage, trace.cost) = (None, None);
        Some(Fault::new(
            match child.kind {
                ChildKind::Agent => Code::AgentOutputInvalid,
                ChildKind::Action => Code::ActionOutputInvalid,
            },
            "the reported usage or cost is beyond 2^53 - 1",
        ))
    }

    /// C2: a result after a cancellation was requested is kept as evidence and ignored.
    fn child_ended_late(&mut self, index: NodeIndex, result: ChildResult) -> Result<(), Refusal> {
        let stopped = matches!(result.outcome, ChildOutcome::Cancelled);
        self.answer_unheard(index, stopped)?;
        let mut trace = Trace {
            terminal: self.child(index).map(|_| result.terminal),
            usage: result.usage,
            cost: result.cost,
        };
        // The run is ending: what cannot be counted is left out.
        let _ = self.uncountable(index, &mut trace);
        let (status, output) = match &result.outcome {
            ChildOutcome::Success { output } => {
                let evidence = self.late_output(index, "success", output);
                (Some(AttemptStatus::Succeeded), evidence)
            }
            ChildOutcome::Decision { answer } => {
                let evidence = read_decision(answer).ok().and_then(|decision| {
                    self.late_output(index, decision.port, &Arc::new(decision.data.clone()))
                });
                (Some(AttemptStatus::Succeeded), evidence)
            }
            // A deaf child that the engine gave up on has not ended at all.
            ChildOutcome::Failure { .. } if !result.terminal => (None, None),
            ChildOutcome::Failure { .. } => (Some(AttemptStatus::Failed), None),
            ChildOutcome::Refused { .. } => (Some(AttemptStatus::Refused), None),
            ChildOutcome::Cancelled => (None, None),
        };
        let child_id = self.child(index).map(|child| child.id.clone());
        if let (Some(status), Some(child_id)) = (status, child_id) {
            self.emit(Payload::LateIgnored(LateIgnored {
                node_id: self.plan.node(index).id.clone(),
                attempt: self.attempt_number(index),
                child_id,
                status,
                output,
            }))?;
        }
        self.settle_cancelled(index, trace.terminal, trace.usage, trace.cost)?;
        self.end(super::end::Ending::Cancelled, Some(index))
    }

    /// Evidence of an output that goes nowhere; one that is too large leaves none.
    fn late_output(
        &mut self,
        index: NodeIndex,
        port: &str,
        output: &Arc<Value>,
    ) -> Option<Evidence> {
        if self.too_large(output).is_some() {
            return None;
        }
        let (schema_id, schema) = self.plan.port_schema(index, port);
        let schema = Arc::clone(schema);
        let node_id = &self.plan.node(index).id;
        let id = PayloadId::new(format!("{node_id}/{}/{port}", self.attempt_number(index)));
        Some(self.store(id, schema_id, &schema, Arc::clone(output)))
    }

    pub(super) fn child_waiting(
        &mut self,
        index: NodeIndex,
        child_id: ChildId,
    ) -> Result<(), Refusal> {
        let node = self.plan.node(index);
        let deadline_at = self
            .now()
            .and_then(|now| Some(now.plus(node.task.timeout()?)));
        self.emit(Payload::ChildWaiting(ChildWaiting {
            node_id: node.id.clone(),
            attempt: self.attempt_number(index),
            child_kind: self.kind(index)?,
            child_id,
            deadline_at,
        }))
    }

    /// A known child whose contract does not listen needs not be asked (C2).
    pub(super) fn answer_for_deaf(&mut self, index: NodeIndex) -> Result<(), Refusal> {
        let requested = self.cancellation(index) == Some(ChildCancellation::Requested);
        let listens = self.plan.node(index).task.cancellation() == Cancellation::Cooperative;
        if !requested || listens || self.child(index).is_none() {
            return Ok(());
        }
        self.answer(index, Some(CancelAnswer::NotSupported))
    }

    /// The attempt in flight, if the command speaks of it.
    pub(super) fn in_flight(&self, node_id: &NodeId, attempt: u32) -> Result<NodeIndex, Refusal> {
        let index = self.plan.find_node(node_id.as_str());
        index
            .filter(|index| {
                self.run.in_flight == Some(index.0) && self.attempt_number(*index) == attempt
            })
            .ok_or(Refusal::Stale)
    }

    pub(super) fn child(&self, index: NodeIndex) -> Option<&Child> {
        self.run.state(index).attempts.last()?.child.as_ref()
    }

    pub(super) fn cancellation(&self, index: NodeIndex) -> Option<ChildCancellation> {
        self.run.state(index).attempts.last()?.cancellation
    }

    pub(super) fn kind(&self, index: NodeIndex) -> Result<ChildKind, Refusal> {
        child_kind(self.plan.node(index).task.node_type())
            .ok_or_else(|| Refusal::Broken("the node has no children".to_owned()))
    }
}

/// An agent-decision's answer.
struct AgentDecision<'v> {
    port: &'static str,
    data: &'v Value,
    reason: Option<&'v str>,
}

/// Reads `{decision, data, reason?}`; anything else is not a decision (seed A "Gate logic").
fn read_decision(answer: &Value) -> Result<AgentDecision<'_>, String> {
    let shape = "an agent decision is {decision: pass or fail, data, reason?}";
    let members = answer.as_object().ok_or(shape)?;
    let known = ["decision", "data", "reason"];
    if let Some(other) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{shape}; {} is not known", quoted(other)));
    }
    let port = match members.get("decision").and_then(Value::as_str) {
        Some("pass") => "pass",
        Some("fail") => "fail",
        _ => return Err(shape.to_owned()),
    };
    let data = members.get("data").ok_or(shape)?;
    let reason = match members.get("reason") {
        None => None,
        Some(reason) => Some(reason.as_str().ok_or(shape)?),
    };
    Ok(AgentDecision { port, data, reason })
}
