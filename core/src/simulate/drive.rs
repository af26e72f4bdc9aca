//! The driver of a simulation: it answers every effect from the fixtures and lets virtual
//! time pass (run-machine.md §9).

use std::sync::Arc;

use uuid::Uuid;

use super::fixtures::{FixtureError, Fixtures, Outcome};
use crate::code::Code;
use crate::ids::{ChildId, RunId, TenantId, WorkerId};
use crate::limits::Limits;
use crate::plan::Plan;
use crate::run::{
    ChildOutcome, ChildResult, Command, Effect, Envelopes, Event, Mode, NewPayload, Queue, Refusal,
    Run, RunResult, Start, Time, Wake, WorkflowReference, decide, effects,
};
use crate::time::Millis;
use crate::value::{self, Value, canonical};

/// The namespace of the ids of simulated runs (D3): UUIDv5 of `sluicegate.simulation` in
/// the DNS namespace, printed here so that anybody can make the same ids.
pub const SIMULATION_NAMESPACE: Uuid = Uuid::from_u128(0x7261_fdc2_7731_56f4_a3bc_2fdc_2aba_6eaa);

/// Why a simulation cannot start (V3).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `WORKFLOW_INPUT_INVALID` or `WORKFLOW_LIMIT_EXCEEDED`.
    #[error("{message}")]
    Input {
        /// Which.
        code: Code,
        /// JSON Pointer into the input.
        pointer: String,
        /// What is wrong.
        message: String,
    },
    /// `WORKFLOW_FIXTURES_INVALID`.
    #[error("the fixtures do not fit the graph")]
    Fixtures(Vec<FixtureError>),
    /// A fault of ours.
    #[error("the simulation contradicts itself: {0}")]
    Broken(String),
}

/// A simulation that has ended: its fold, its events, and every value that they name.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The folded run.
    pub run: Run,
    /// What happened.
    pub events: Vec<Event>,
    /// The values, with their evidence.
    pub payloads: Vec<NewPayload>,
    /// How long it took on its own clock.
    pub duration: Millis,
}

impl Simulation {
    /// What readers get (R2).
    #[must_use]
    pub fn result(&self) -> RunResult {
        RunResult::simulated(
            &self.run,
            self.events.clone(),
            &self.payloads,
            self.duration,
        )
    }
}

/// Runs a plan from end to end on fixtures. The same plan, input and fixtures give the same
/// events, byte for byte, everywhere (X4). `reference` is what a server adds to
/// `run.queued`; nothing else depends on it.
///
/// # Errors
/// [`Refused`]: nothing was run.
pub fn simulate(
    plan: &Plan,
    input: Arc<Value>,
    fixtures: &Fixtures,
    limits: &Limits,
    reference: WorkflowReference,
) -> Result<Simulation, Refused> {
    let faults = fixtures.judge(plan);
    if !faults.is_empty() {
        return Err(Refused::Fixtures(faults));
    }
    let run_id = run_id(plan, &input, fixtures);
    let mut driver = Driver {
        plan,
        fixtures,
        durations: fixtures.durations(),
        run: Run::new(plan, TenantId::from("simulation"), run_id),
        offset: Millis(0),
        envelopes: Envelopes::new(),
        events: Vec::new(),
        payloads: Vec::new(),
    };
    driver
        .decide(Command::Queue(Box::new(Queue {
            mode: Mode::Simulate,
            limits: limits.clone(),
            input,
            reference,
        })))
        .and_then(|()| driver.claim())
        .and_then(|()| driver.drive())
        .map_err(|refusal| match refusal {
            Refusal::Input {
                code,
                pointer,
                message,
            } => Refused::Input {
                code,
                pointer,
                message,
            },
            other => Refused::Broken(other.to_string()),
        })?;
    Ok(Simulation {
        run: driver.run,
        events: driver.events,
        payloads: driver.payloads,
        duration: driver.offset,
    })
}

/// D3: the UUIDv5 over the canonical array of plan hash, input hash and fixture hash.
fn run_id(plan: &Plan, input: &Value, fixtures: &Fixtures) -> RunId {
    let name = canonical(&serde_json::json!([
        plan.hash(),
        value::hash(input),
        fixtures.hash()
    ]));
    let id = Uuid::new_v5(&SIMULATION_NAMESPACE, name.as_bytes());
    RunId::new(id.to_string())
}

struct Driver<'a> {
    plan: &'a Plan,
    fixtures: &'a Fixtures,
    durations: std::collections::BTreeMap<crate::ids::NodeId, Millis>,
    run: Run,
    offset: Millis,
    envelopes: Envelopes,
    events: Vec<Event>,
    payloads: Vec<NewPayload>,
}

impl Driver<'_> {
    fn drive(&mut self) -> Result<(), Refusal> {
        while let Some(effect) = effects(self.plan, &self.run).into_iter().next() {
            match effect {
                Effect::Continue => self.decide(Command::Continue)?,
                Effect::Start(start) => self.answer(&start)?,
                Effect::WakeAt(Wake::AtOffset(at)) => {
                    self.offset = self.offset.max(at);
                    self.claim()?;
                    // The claim itself may end a run that has used up its events (A7).
                    if !self.run.status().is_terminal() {
                        self.decide(Command::Continue)?;
                    }
                }
                // Children answer at once, nobody cancels, and no wall clock is set.
                Effect::WakeAt(Wake::At(_)) | Effect::Observe(_) | Effect::Cancel(_) => {
                    return Err(Refusal::Broken("a simulation owes only starts".to_owned()));
                }
            }
        }
        Ok(())
    }

    fn claim(&mut self) -> Result<(), Refusal> {
        self.decide(Command::Claim {
            worker_id: WorkerId::from("simulator"),
            lease: None,
            over: None,
        })
    }

    /// Started and waiting at t, settled at t plus the fixture's duration (V1).
    fn answer(&mut self, start: &Start) -> Result<(), Refusal> {
        let fixture = self
            .fixtures
            .attempt(&start.node_id, start.attempt)
            .ok_or_else(|| Refusal::Broken(format!("no fixture for {}", start.node_id)))?;
        let task = self.plan.find_node(start.node_id.as_str());
        let refused = task.is_some_and(|at| fixture.is_refused(&self.plan.node(at).task));
        if !refused {
            self.decide(Command::ChildAccepted {
                node_id: start.node_id.clone(),
                attempt: start.attempt,
                child_id: ChildId::new(format!("fixture:{}", fixture.hash)),
                result: None,
            })?;
        }
        let outcome = match &fixture.outcome {
            Outcome::Success { output } => ChildOutcome::Success {
                output: Arc::clone(output),
            },
            Outcome::Decision { answer } => ChildOutcome::Decision {
                answer: Arc::clone(answer),
            },
            Outcome::Failure { code, message } if refused => ChildOutcome::Refused {
                code: code.clone(),
                message: message.clone(),
            },
            Outcome::Failure { code, message } => ChildOutcome::Failure {
                code: code.clone(),
                message: message.clone(),
            },
        };
        let taken = fixture.simulated_duration;
        self.offset = Millis(self.offset.0.saturating_add(taken.0));
        self.decide(Command::ChildSettled {
            node_id: start.node_id.clone(),
            attempt: start.attempt,
            result: ChildResult {
                outcome,
                terminal: true,
                usage: None,
                cost: None,
            },
        })
    }

    fn decide(&mut self, command: Command) -> Result<(), Refusal> {
        let time = Time::Virtual {
            offset: self.offset,
            durations: &self.durations,
        };
        let decision = decide(self.plan, &self.run, &self.envelopes, time, command)?;
        for event in &decision.events {
            self.run
                .apply(self.plan, event)
                .map_err(|corrupt| Refusal::Broken(corrupt.to_string()))?;
        }
        // Nodes without a child may have let time pass.
        let reached = self.run.clock().virtual_offset_ms.unwrap_or_default();
        self.offset = self.offset.max(reached);
        for payload in &decision.payloads {
            let value = Arc::clone(&payload.value);
            self.envelopes.insert(payload.id.clone(), value);
        }
        self.events.extend(decision.events);
        self.payloads.extend(decision.payloads);
        Ok(())
    }
}
