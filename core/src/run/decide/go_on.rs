//! Going on: one ready node at a time, in plan order, up to the next intent, retry wait or
//! end (O1–O4).

use std::sync::Arc;

use super::draft::Draft;
use super::settle::{Fault, Trace, validation_errors};
use crate::code::Code;
use crate::ids::Hash;
use crate::node_type::NodeType;
use crate::plan::{NodeIndex, Task};
use crate::run::apply::child_kind;
use crate::run::command::Refusal;
use crate::run::effect::Wake;
use crate::run::event::{ChildKind, Classification, NodeReady, Payload, RetryStarted, Started};
use crate::run::state::{NodeStatus, RunStatus};
use crate::value::{self, Value};

impl Draft<'_> {
    /// `Continue`: legal while the run is held and no attempt is in flight.
    pub(super) fn go_on(&mut self) -> Result<(), Refusal> {
        // An attempt in flight has its own commands; a queued run is claimed first, overdue or not.
        if self.run.in_flight.is_some() || self.run.status() == RunStatus::Queued {
            return Err(Refusal::Stale);
        }
        if self.end_if_spent(None)? {
            return Ok(());
        }
        match self.run.status() {
            RunStatus::Running => self.drive(),
            RunStatus::WaitingRetry => self.retry(),
            _ => Err(Refusal::Stale),
        }
    }

    /// Runs nodes until something outside is owed or the run has ended.
    pub(super) fn drive(&mut self) -> Result<(), Refusal> {
        while self.run.status() == RunStatus::Running && self.run.in_flight.is_none() {
            if self.end_if_spent(None)? {
                break;
            }
            match self.next_node()? {
                Some(index) => self.start(index)?,
                None => self.complete()?,
            }
        }
        Ok(())
    }

    /// The first ready node in plan order; the input node is made ready first.
    fn next_node(&mut self) -> Result<Option<NodeIndex>, Refusal> {
        let mut waiting_input = None;
        for index in self.plan.node_indices() {
            match self.run.state(index).status() {
                NodeStatus::Ready => return Ok(Some(index)),
                NodeStatus::Pending
                    if self.plan.node(index).task.node_type() == NodeType::Input =>
                {
                    waiting_input = Some(index);
                }
                _ => {}
            }
        }
        if let Some(index) = waiting_input {
            self.emit(Payload::NodeReady(NodeReady {
                node_id: self.plan.node(index).id.clone(),
            }))?;
        }
        Ok(waiting_input)
    }

    /// Begins the attempt that a retry waited for, if its time has come.
    fn retry(&mut self) -> Result<(), Refusal> {
        let waiting = self
            .plan
            .node_indices()
            .find(|index| self.run.state(*index).status() == NodeStatus::WaitingRetry);
        let Some((index, retry)) =
            waiting.and_then(|index| Some((index, self.run.state(index).retry.as_ref()?)))
        else {
            return Err(Refusal::Broken("no node waits for its retry".to_owned()));
        };
        let due = match (
            retry.scheduled.next_attempt_at.map(Wake::At),
            retry.scheduled.next_attempt_offset_ms.map(Wake::AtOffset),
        ) {
            (Some(Wake::At(at)), _) => self.now().is_some_and(|now| now >= at),
            (_, Some(Wake::AtOffset(at))) => self.offset().is_some_and(|now| now >= at),
            _ => false,
        };
        if !due {
            return Err(Refusal::Stale);
        }
        let started = RetryStarted {
            node_id: self.plan.node(index).id.clone(),
            attempt: retry.scheduled.attempt + 1,
            scheduled_sequence: retry.at.sequence,
        };
        self.emit(Payload::RetryStarted(started))?;
        self.start(index)?;
        self.drive()
    }

    /// Starts the next attempt of a node. A node with a child stops at the intent, unless
    /// its input already decides that no child is called (A3).
    fn start(&mut self, index: NodeIndex) -> Result<(), Refusal> {
        let attempt = self.attempt_number(index) + 1;
        let input = self.input(index, attempt)?;
        let node = self.plan.node(index);
        let kind = child_kind(node.task.node_type());
        let semantic_group = self.semantic_group(index, kind);
        let idempotency_key = kind
            .filter(|_| self.is_live())
            .map(|_| self.child_key(index, semantic_group));
        self.emit(Payload::AttemptStarted(Started {
            node_id: node.id.clone(),
            attempt,
            semantic_group,
            idempotency_key,
            input: input.evidence,
        }))?;
        match (input.value, kind) {
            (Err(fault), _) => {
                self.spend_inline(index, kind);
                self.fail(index, fault, Trace::default())
            }
            (Ok(_), Some(_)) => Ok(()),
            (Ok(value), None) => {
                self.spend(index);
                self.run_inline(index, value)
            }
        }
    }

    fn spend_inline(&mut self, index: NodeIndex, kind: Option<ChildKind>) {
        if kind.is_none() {
            self.spend(index);
        }
    }

    /// What a node without a child does.
    fn run_inline(&mut self, index: NodeIndex, input: Arc<Value>) -> Result<(), Refusal> {
        let trace = Trace::default;
        match &self.plan.node(index).task {
            Task::Input => self.succeed(index, "data", input, None, trace(), None),
            Task::Gate { expr } => match expr.evaluate(&input) {
                Ok(passed) => {
                    let port = if passed { "pass" } else { "fail" };
                    self.succeed(index, port, input, None, trace(), None)
                }
                Err(error) => self.fail(index, Fault::new(error.code, error.message), trace()),
            },
            Task::Validator { schema } => {
                let failures = self.plan.schema(schema).validate(&input);
                if failures.is_empty() {
                    self.succeed(index, "pass", input, None, trace(), None)
                } else {
                    let errors = Arc::new(validation_errors(&failures)?);
                    self.succeed(index, "fail", errors, None, trace(), None)
                }
            }
            Task::Merge => {
                let judge = Some(Code::NodeOutputInvalid);
                self.succeed(index, "data", input, judge, trace(), None)
            }
            Task::Output => self.arrive(index),
            Task::Agent(_) | Task::AgentDecision(_) | Task::Action(_) => {
                Err(Refusal::Broken("a child cannot run inline".to_owned()))
            }
        }
    }

    /// N1: an agent's group grows when the last attempt ended for sure and may be retried;
    /// an action keeps one group for the whole run.
    fn semantic_group(&self, index: NodeIndex, kind: Option<ChildKind>) -> u32 {
        match (kind, self.run.state(index).attempts.last()) {
            (Some(ChildKind::Agent), Some(last)) => {
                let ended = last.child_terminal == Some(true)
                    && last.classification == Some(Classification::Retryable);
                last.semantic_group + u32::from(ended)
            }
            _ => 1,
        }
    }

    /// N1: `[tenant, runId, nodeId, publishedRevision, semanticGroup]`, hashed.
    fn child_key(&self, index: NodeIndex, semantic_group: u32) -> Hash {
        let revision = self
            .run
            .queued()
            .and_then(|queued| queued.workflow_revision)
            .unwrap_or_default();
        value::hash(&serde_json::json!([
            self.run.tenant_id(),
            self.run.run_id(),
            self.plan.node(index).id,
            revision,
            semantic_group,
        ]))
    }
}
