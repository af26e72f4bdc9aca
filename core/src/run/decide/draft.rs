//! A decision in the making: a copy of the run, the events so far, and the values that they
//! name (run-machine.md §1). Emitting applies, so the copy is always what the events say.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::code::Code;
use crate::evidence::{self, Evidence, Made, Secrets};
use crate::ids::{PayloadId, SchemaId};
use crate::limits::Limits;
use crate::plan::{NodeIndex, Plan};
use crate::run::command::{Decision, Envelopes, NewPayload, Queue, Refusal, Time};
use crate::run::event::{Event, Mode, Payload, PayloadKind, Queued};
use crate::run::secret;
use crate::run::state::Run;
use crate::schema::Schema;
use crate::time::{Instant, Millis};
use crate::value::{self, Value};

pub(super) struct Draft<'a> {
    pub(super) plan: &'a Plan,
    pub(super) run: Run,
    envelopes: &'a Envelopes,
    fresh: BTreeMap<PayloadId, Arc<Value>>,
    secrets: Secrets,
    clock: Clock<'a>,
    decision: Decision,
}

#[derive(Clone, Copy)]
enum Clock<'a> {
    Live(Instant),
    Virtual(Millis, &'a BTreeMap<crate::ids::NodeId, Millis>),
}

impl<'a> Draft<'a> {
    pub(super) fn new(plan: &'a Plan, run: &Run, envelopes: &'a Envelopes, time: Time<'a>) -> Self {
        let mut secrets = Secrets::default();
        for (id, value) in envelopes {
            secret::learn(&mut secrets, plan, run, id, value);
        }
        Self {
            plan,
            run: run.clone(),
            envelopes,
            fresh: BTreeMap::new(),
            secrets,
            clock: match time {
                Time::Live(now) => Clock::Live(now),
                Time::Virtual { offset, durations } => Clock::Virtual(offset, durations),
            },
            decision: Decision::default(),
        }
    }

    pub(super) fn into_parts(self) -> (Decision, Run) {
        (self.decision, self.run)
    }

    /// Records one event and folds it.
    pub(super) fn emit(&mut self, payload: Payload) -> Result<(), Refusal> {
        let before = self.run.clock();
        let (recorded_at, virtual_offset_ms) = match self.clock {
            Clock::Live(now) => (Some(before.recorded_at.map_or(now, |at| at.max(now))), None),
            Clock::Virtual(offset, _) => (None, Some(offset)),
        };
        let event = Event {
            sequence: self.run.sequence() + 1,
            payload,
            recorded_at,
            // A stored simulation's retention happens after its own time has ended.
            virtual_offset_ms: virtual_offset_ms.max(before.virtual_offset_ms),
        };
        self.run
            .apply(self.plan, &event)
            .map_err(|corrupt| Refusal::Broken(corrupt.to_string()))?;
        self.decision.events.push(event);
        Ok(())
    }

    pub(super) fn queue(&mut self, queue: Queue) -> Result<(), Refusal> {
        let Some(input_node) = self.plan.input() else {
            return Err(Refusal::Broken("the plan has no input node".to_owned()));
        };
        let (schema_id, schema) = self.plan.port_schema(input_node, "data");
        let schema = Arc::clone(schema);
        let size = value::canonical_len(&queue.input) as u64;
        if size > queue.limits.input_bytes {
            return Err(Refusal::Input {
                code: Code::WorkflowLimitExceeded,
                pointer: String::new(),
                message: format!(
                    "the input has {size} bytes; {} are allowed",
                    queue.limits.input_bytes
                ),
            });
        }
        if let Some(first) = schema.first_failure(&queue.input) {
            // A refusal is read by more people than the input is (S5).
            self.secrets.learn(&schema, &queue.input);
            return Err(Refusal::Input {
                code: Code::WorkflowInputInvalid,
                pointer: self.secrets.scrub_text(&first.path),
                message: self.secrets.scrub_text(&first.message),
            });
        }
        let document = self.plan.document();
        let (graph_checksum, compiler_version) =
            (document.graph_checksum, document.compiler_version.clone());
        // The limits come with this very event, so the room for previews does too.
        let room = queue.limits.preview_bytes;
        let id = PayloadId::from("input");
        let input = self.make(id, schema_id, &schema, queue.input, room);
        let reference = queue.reference;
        self.emit(Payload::RunQueued(Box::new(Queued {
            mode: queue.mode,
            graph_checksum,
            plan_hash: self.plan.hash(),
            compiler_version,
            limits: queue.limits,
            input,
            workflow_id: reference.workflow_id,
            workflow_key: reference.workflow_key,
            workflow_revision: reference.workflow_revision,
            actor: reference.actor,
            origin: reference.origin,
            permission_digest: reference.permission_digest,
        })))
    }

    /// Registers a new value: learns its secrets, makes its evidence, keeps it for later
    /// steps of this decision.
    pub(super) fn store(
        &mut self,
        id: PayloadId,
        schema_id: SchemaId,
        schema: &Schema,
        value: Arc<Value>,
    ) -> Evidence {
        let room = self
            .limits()
            .preview_bytes
            .saturating_sub(self.run.preview_bytes);
        self.make(id, schema_id, schema, value, room)
    }

    fn make(
        &mut self,
        id: PayloadId,
        schema_id: SchemaId,
        schema: &Schema,
        value: Arc<Value>,
        room: u64,
    ) -> Evidence {
        self.secrets.learn(schema, &value);
        // What the next nodes mark is a secret here already: evidence is never made again.
        secret::learn(&mut self.secrets, self.plan, &self.run, &id, &value);
        let made = evidence::make(
            id.clone(),
            schema_id.clone(),
            schema,
            &value,
            &self.secrets,
            room,
        );
        let evidence = made.evidence.clone();
        self.fresh.insert(id.clone(), Arc::clone(&value));
        self.decision.payloads.push(NewPayload {
            id,
            kind: PayloadKind::Execution,
            schema_id,
            value,
            evidence: made,
        });
        evidence
    }

    /// One output of the run's result: its places by the schemas that it passed, then every
    /// secret by value (server.md §7). The member that it goes to is a node's id and stays.
    pub(super) fn shown(&self, schemas: [&Schema; 2], value: &Value) -> Value {
        let [first, second] = schemas;
        let once = self.secrets.redact(Some(first), value);
        self.secrets.redact(Some(second), &once)
    }

    /// Adds the run's result, from outputs that were [`Draft::shown`].
    pub(super) fn store_result(&mut self, result: Value) {
        let schema_id = SchemaId::from("std.any");
        let id = PayloadId::from("result");
        let value = Arc::new(result);
        let evidence = Evidence {
            version: 1,
            state: evidence::State::Available,
            payload_id: Some(id.clone()),
            schema_id: schema_id.clone(),
            hash: Some(value::hash(&value)),
            original_byte_size: value::canonical_len(&value) as u64,
            reason: None,
        };
        self.decision.payloads.push(NewPayload {
            id,
            kind: PayloadKind::Result,
            schema_id,
            value,
            evidence: Made {
                evidence,
                preview: None,
            },
        });
    }

    /// The value of a payload that an event named.
    pub(super) fn value(&self, id: &PayloadId) -> Result<Arc<Value>, Refusal> {
        self.fresh
            .get(id)
            .or_else(|| self.envelopes.get(id))
            .cloned()
            .ok_or_else(|| Refusal::EnvelopeMissing(id.clone()))
    }

    /// A text for people with every known secret replaced, then cut to what an event may
    /// carry (S5, A6).
    pub(super) fn said(&self, text: &str) -> String {
        cut(self.secrets.scrub_text(text), Limits::MESSAGE_CHARS)
    }

    /// A code, which may come from a contract or a provider, under the same rules.
    pub(super) fn code(&self, code: &str) -> String {
        cut(self.secrets.scrub_text(code), Limits::CODE_CHARS)
    }

    pub(super) fn limits(&self) -> Limits {
        self.run
            .queued()
            .map(|queued| queued.limits.clone())
            .unwrap_or_default()
    }

    pub(super) fn is_live(&self) -> bool {
        self.run.mode() == Mode::Live
    }

    /// Now, as the wall clock says; none in a simulation.
    pub(super) fn now(&self) -> Option<Instant> {
        match self.clock {
            Clock::Live(now) => Some(now),
            Clock::Virtual(..) => None,
        }
    }

    /// Now, as an offset; none in a live run.
    pub(super) fn offset(&self) -> Option<Millis> {
        match self.clock {
            Clock::Live(_) => None,
            Clock::Virtual(offset, _) => Some(offset),
        }
    }

    /// Lets the time pass that a node without a child takes in a simulation (V1).
    pub(super) fn spend(&mut self, index: NodeIndex) {
        if let Clock::Virtual(offset, durations) = &mut self.clock {
            let node = &self.plan.node(index).id;
            let taken = durations.get(node).copied().unwrap_or_default();
            *offset = Millis(offset.0.saturating_add(taken.0));
        }
    }

    /// Whether a live run is older than it may be (A5).
    pub(super) fn is_overdue(&self) -> bool {
        let queued = self.run.queued_at().and_then(|at| at.recorded_at);
        match (self.now(), queued) {
            (Some(now), Some(queued)) if self.is_live() => {
                now.since(queued).0 > self.limits().duration_ms
            }
            _ => false,
        }
    }

    /// Whether only the reserve for ending is left (A7).
    pub(super) fn is_out_of_events(&self) -> bool {
        let usable = self.limits().events.saturating_sub(Limits::EVENTS_RESERVE);
        self.run.sequence() >= usable
    }
}

fn cut(text: String, chars: usize) -> String {
    // Such a text stands in a column of its own too, where U+0000 cannot.
    let mut text = text.replace('\0', "\u{fffd}");
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push('…');
    }
    text
}
