//! Settling an attempt: its own word, its edges, what can no longer run, what became ready
//! (O3, K1–K4); failure policies and retries (A1–A3; wire-format.md §§7, 12).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Draft;
use super::end::Ending;
use crate::code::{Class, Code};
use crate::evidence::{self, Evidence};
use crate::ids::PayloadId;
use crate::limits::Limits;
use crate::plan::{EdgeIndex, NodeIndex, OnExhausted, Policy};
use crate::run::apply::Admission;
use crate::run::command::Refusal;
use crate::run::event::{
    AttemptStatus, Classification, Cost, EdgeSettled, EdgeState, NodeReady, NodeSkipped, Payload,
    RetryScheduled, Settled, SettledSource, SkipReason, Usage,
};
use crate::value::{self, Value, to_value};

/// What a child leaves beside its outcome.
#[derive(Default)]
pub(super) struct Trace {
    /// Whether it is known to have ended; none: there was no child.
    pub(super) terminal: Option<bool>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<Cost>,
}

/// Why an attempt failed.
pub(super) struct Fault {
    pub(super) status: AttemptStatus,
    pub(super) code: String,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            status: AttemptStatus::Failed,
            code: code.as_str().to_owned(),
            message: message.into(),
        }
    }
}

impl Draft<'_> {
    /// The attempt in flight succeeds on a port. What it emits is judged first: too large
    /// or unfit is a fault of the attempt instead (A4, A6).
    pub(super) fn succeed(
        &mut self,
        index: NodeIndex,
        port: &str,
        output: Arc<Value>,
        judge: Option<Code>,
        trace: Trace,
        message: Option<String>,
    ) -> Result<(), Refusal> {
        let (schema_id, schema) = self.plan.port_schema(index, port);
        let schema = Arc::clone(schema);
        if let Some(fault) = self.too_large(&output) {
            return self.fail(index, fault, trace);
        }
        if let Some(code) = judge
            && let Some(first) = schema.first_failure(&output)
        {
            let text = format!(
                "the output for port {port} does not fit schema {schema_id} at {}: {}",
                quoted(&first.path),
                first.message
            );
            return self.fail(index, Fault::new(code, text), trace);
        }
        let node_id = self.plan.node(index).id.clone();
        let number = self.attempt_number(index);
        let id = PayloadId::new(format!("{node_id}/{number}/{port}"));
        let evidence = self.store(id, schema_id, &schema, output);
        let message = message.map(|text| self.said(&text));
        self.emit(Payload::AttemptSettled(Box::new(Settled {
            node_id,
            attempt: number,
            status: AttemptStatus::Succeeded,
            outcome_port: Some(port.to_owned()),
            output: Some(evidence.clone()),
            code: None,
            classification: None,
            message,
            child_terminal: trace.terminal,
            usage: trace.usage,
            cost: trace.cost,
        })))?;
        self.spread(index, port, &evidence)
    }

    /// The attempt in flight ends an output node.
    pub(super) fn arrive(&mut self, index: NodeIndex) -> Result<(), Refusal> {
        self.emit(Payload::AttemptSettled(Box::new(Settled {
            node_id: self.plan.node(index).id.clone(),
            attempt: self.attempt_number(index),
            status: AttemptStatus::Succeeded,
            outcome_port: None,
            output: None,
            code: None,
            classification: None,
            message: None,
            child_terminal: None,
            usage: None,
            cost: None,
        })))
    }

    /// The attempt in flight fails or is refused: retry, failure port or end of the run.
    pub(super) fn fail(
        &mut self,
        index: NodeIndex,
        fault: Fault,
        trace: Trace,
    ) -> Result<(), Refusal> {
        let node = self.plan.node(index);
        let number = self.attempt_number(index);
        let retryable = fault.status == AttemptStatus::Failed
            && trace.terminal != Some(false)
            && Code::classify(&fault.code, node.task.retryable_codes()) == Class::Retryable;
        let classification = if retryable {
            Classification::Retryable
        } else {
            Classification::Permanent
        };
        let policy = node.policy.as_ref();
        let retry = policy.filter(|policy| {
            retryable
                && policy.retry_on.contains(&fault.code)
                && number < policy.max_attempts
                && u64::from(number) < self.limits().attempts
        });
        let emits = retry.is_none()
            && policy.is_some_and(|policy| policy.on_exhausted == OnExhausted::EmitFailure);
        let (code, message) = (self.code(&fault.code), self.said(&fault.message));
        let output = if emits {
            Some(self.failure_envelope(index, &code, &message, classification)?)
        } else {
            None
        };
        self.emit(Payload::AttemptSettled(Box::new(Settled {
            node_id: node.id.clone(),
            attempt: number,
            status: fault.status,
            outcome_port: emits.then(|| "failure".to_owned()),
            output: output.clone(),
            code: Some(code.clone()),
            classification: Some(classification),
            message: Some(message.clone()),
            child_terminal: trace.terminal,
            usage: trace.usage,
            cost: trace.cost,
        })))?;
        match (retry, output) {
            (Some(policy), _) => self.schedule_retry(index, policy, code),
            (None, Some(evidence)) => self.spread(index, "failure", &evidence),
            (None, None) => {
                let at = Some(node.id.clone());
                let ending = match fault.status {
                    AttemptStatus::Refused => Ending::refused(code, message, at),
                    _ => Ending::failed(code, message, at),
                };
                self.end(ending, Some(index))
            }
        }
    }

    fn failure_envelope(
        &mut self,
        index: NodeIndex,
        code: &str,
        message: &str,
        classification: Classification,
    ) -> Result<Evidence, Refusal> {
        let node_id = self.plan.node(index).id.clone();
        let number = self.attempt_number(index);
        let envelope = serde_json::json!({
            "code": code,
            "message": message,
            "nodeId": node_id,
            "attempt": number,
            "classification": classification,
        });
        let (schema_id, schema) = self.plan.port_schema(index, "failure");
        let schema = Arc::clone(schema);
        let id = PayloadId::new(format!("{node_id}/{number}/failure"));
        Ok(self.store(id, schema_id, &schema, Arc::new(envelope)))
    }

    fn schedule_retry(
        &mut self,
        index: NodeIndex,
        policy: &Policy,
        code: String,
    ) -> Result<(), Refusal> {
        let Some(attempt) = self.run.state(index).attempts.last() else {
            return Err(Refusal::Broken("a retry without an attempt".to_owned()));
        };
        let backoff_ms = policy.delay_after(attempt.attempt);
        let scheduled = RetryScheduled {
            node_id: self.plan.node(index).id.clone(),
            attempt: attempt.attempt,
            semantic_group: attempt.semantic_group,
            idempotency_key: attempt.idempotency_key,
            code,
            classification: Classification::Retryable,
            backoff_ms,
            next_attempt_at: self.now().map(|now| now.plus(backoff_ms)),
            next_attempt_offset_ms: self
                .offset()
                .map(|now| crate::time::Millis(now.0.saturating_add(backoff_ms.0))),
        };
        self.emit(Payload::RetryScheduled(scheduled))
    }

    /// After a node settled on a port: edges by id, then skips, then ready nodes (O3).
    fn spread(&mut self, index: NodeIndex, port: &str, output: &Evidence) -> Result<(), Refusal> {
        let mut touched = BTreeSet::new();
        for edge in self.plan.outgoing(index).to_vec() {
            let own_port = self.plan.edge(edge).source.port.clone();
            if own_port == port {
                self.settle_edge(edge, index, EdgeState::Emitted, None, output.clone())?;
            } else {
                let (schema_id, _) = self.plan.port_schema(index, &own_port);
                let absent = evidence::absent(schema_id);
                let reason = Some(SkipReason::OtherPort);
                self.settle_edge(edge, index, EdgeState::Closed, reason, absent)?;
            }
            touched.extend(self.plan.target(edge));
        }
        // Targets stand behind their sources in plan order, so the smallest first visits
        // every node after all of its own inputs.
        let mut ready = Vec::new();
        while let Some(next) = touched.pop_first() {
            match self.run.admission(self.plan, next) {
                Admission::Wait => {}
                Admission::Ready => ready.push(next),
                Admission::Skip(reason) => {
                    self.emit(Payload::NodeSkipped(NodeSkipped {
                        node_id: self.plan.node(next).id.clone(),
                        reason,
                    }))?;
                    self.skip_edges(next, SkipReason::SourceSkipped)?;
                    let further = self.plan.outgoing(next).iter();
                    touched.extend(further.filter_map(|edge| self.plan.target(*edge)));
                }
            }
        }
        for index in ready {
            self.emit(Payload::NodeReady(NodeReady {
                node_id: self.plan.node(index).id.clone(),
            }))?;
        }
        Ok(())
    }

    pub(super) fn settle_edge(
        &mut self,
        edge: EdgeIndex,
        source: NodeIndex,
        state: EdgeState,
        reason: Option<SkipReason>,
        evidence: Evidence,
    ) -> Result<(), Refusal> {
        let from = self.run.state(source);
        let attempt = from.attempts.last().map(|attempt| attempt.attempt);
        let selected_port = match state {
            EdgeState::Closed => from.outcome_port.clone(),
            EdgeState::Emitted | EdgeState::Skipped => None,
        };
        let edge = self.plan.edge(edge);
        self.emit(Payload::EdgeSettled(EdgeSettled {
            edge_id: edge.id.clone(),
            state,
            source: SettledSource {
                node_id: edge.source.node_id.clone(),
                port: edge.source.port.clone(),
                attempt,
            },
            target: edge.target.clone(),
            selected_port,
            reason,
            evidence,
        }))
    }

    /// A6: an envelope over its limit, before anything of it is stored.
    pub(super) fn too_large(&self, envelope: &Value) -> Option<Fault> {
        let size = value::canonical_len(envelope) as u64;
        let limit = self.limits().envelope_bytes;
        let too_large = |text| Some(Fault::new(Code::NodeOutputTooLarge, text));
        if size > limit {
            return too_large(format!(
                "the envelope has {size} bytes; {limit} are allowed"
            ));
        }
        // A merge adds levels. What could not be read again must not be stored (J4).
        if !value::fits_depth(envelope) {
            let limit = Limits::JSON_DEPTH;
            return too_large(format!("the envelope nests more than {limit} containers"));
        }
        None
    }
}

/// A text in quotes as JSON writes it, the only escapes that secrets are known by (S5).
pub(super) fn quoted(text: &str) -> String {
    value::canonical(&Value::from(text))
}

/// The envelope of a failing validation (G4).
pub(super) fn validation_errors(failures: &[crate::schema::Failure]) -> Result<Value, Refusal> {
    let errors = to_value(&failures).map_err(|error| Refusal::Broken(error.detail))?;
    Ok(serde_json::json!({ "errors": errors }))
}
