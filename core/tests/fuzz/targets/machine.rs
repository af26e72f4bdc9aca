//! A live run under commands of every kind in every order (run-machine.md §§1, 3–8).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, NodeId, PayloadId, RunId, TenantId, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::{Plan, Task};
use sluicegate_core::run::{
    CancelAnswer, ChildOutcome, ChildResult, Command, Effect, Envelopes, Event, Lease, Mode,
    PayloadKind, PriorLease, Queue, RecoveryReason, Refusal, Run, Time, Usage, Wake,
    WorkflowReference, decide, effects, needs, project,
};
use sluicegate_core::time::Instant;
use sluicegate_core::value;

use super::{document, member};

/// No command in no state makes the machine panic or contradict itself, and every event that it
/// decides can be stored, read and folded.
pub(crate) fn machine(input: &[u8]) -> bool {
    document(input).is_some_and(|document| play(&document).is_some())
}

struct World<'p> {
    plan: &'p Plan,
    run: Run,
    values: BTreeMap<PayloadId, Arc<Value>>,
    /// What retention has not removed yet.
    kept: BTreeMap<PayloadId, PayloadKind>,
    now: u64,
    fence: u64,
    log: Vec<Value>,
}

/// Plays a script of numbers; the log, where there is a plan.
pub(crate) fn play(document: &Value) -> Option<Vec<Value>> {
    let plan = Plan::read(member(document, "plan")).ok()?;
    let mut world = World {
        plan: &plan,
        run: Run::new(&plan, TenantId::from("t"), RunId::from("r")),
        values: BTreeMap::new(),
        kept: BTreeMap::new(),
        now: 1_000,
        fence: 1,
        log: Vec::new(),
    };
    world.decide(Command::Queue(Box::new(Queue {
        mode: Mode::Live,
        limits: Limits::default(),
        input: Arc::new(member(document, "input").clone()),
        reference: WorkflowReference::default(),
    })));
    if world.log.is_empty() {
        return None;
    }
    let script = member(document, "script").as_array();
    for number in script.into_iter().flatten().take(400) {
        let number = usize::try_from(number.as_u64().unwrap_or_default()).unwrap();
        world.act(number);
    }
    Some(world.log)
}

impl World<'_> {
    fn decide(&mut self, command: Command) {
        let wanted = needs(self.plan, &self.run).into_iter();
        let envelopes: Envelopes = wanted
            .filter_map(|id| Some((id.clone(), Arc::clone(self.values.get(&id)?))))
            .collect();
        let said = format!("{command:?}");
        let time = Time::Live(Instant(self.now));
        let decision = match decide(self.plan, &self.run, &envelopes, time, command) {
            Ok(decision) => decision,
            Err(Refusal::Broken(why)) => panic!("{why}: {said}"),
            Err(Refusal::EnvelopeMissing(id)) => panic!("{id} was not named by needs: {said}"),
            Err(Refusal::Terminal | Refusal::Stale | Refusal::Input { .. }) => return,
        };
        for event in &decision.events {
            let stored = value::to_value(event).unwrap();
            let read = Event::read(&stored).unwrap();
            assert_eq!(&read, event, "a stored event is the same event");
            self.run.apply(self.plan, &read).unwrap();
            self.log.push(stored);
        }
        let _ = project(self.plan, &self.run, &decision.events);
        for payload in decision.payloads {
            self.kept.insert(payload.id.clone(), payload.kind);
            self.values.insert(payload.id, payload.value);
        }
    }

    fn act(&mut self, number: usize) {
        let choice = number / 24;
        match number % 24 {
            0 => self.decide(Command::Cancel {
                requested_by: crate::corpus::actor(),
                reason: None,
            }),
            1 => self.now += choice as u64 * 1_000_000,
            2 => self.claim(),
            3 => self.recover(),
            4 => {
                let (node_id, attempt) = self.any_attempt(choice);
                let result = self.result(choice, &node_id);
                self.decide(Command::ChildSettled {
                    node_id,
                    attempt,
                    result,
                });
            }
            5 => {
                let (node_id, attempt) = self.any_attempt(choice);
                let result = choice
                    .is_multiple_of(3)
                    .then(|| self.result(choice, &node_id));
                let child_id = ChildId::from("c");
                self.decide(Command::ChildAccepted {
                    node_id,
                    attempt,
                    child_id,
                    result,
                });
            }
            6 => {
                let (node_id, attempt) = self.any_attempt(choice);
                self.cancel_answered(choice, node_id, attempt);
            }
            7 if choice.is_multiple_of(8) => self.decide(Command::Inconsistent {
                message: "m".repeat(choice * 40),
                node_id: self.node(choice),
            }),
            7 => self.decide(Command::PreflightFailed {
                code: Code::PermissionDenied,
                message: String::new(),
                node_id: self.node(choice),
            }),
            8 => self.retire(choice),
            9 => self.decide(Command::Continue),
            _ => self.owed(choice),
        }
    }

    /// Does what is owed, as a worker would.
    fn owed(&mut self, choice: usize) {
        let Some(effect) = effects(self.plan, &self.run).into_iter().next() else {
            return;
        };
        match effect {
            Effect::Continue => self.decide(Command::Continue),
            Effect::Start(start) => {
                let result = (choice % 4 == 1).then(|| self.result(choice, &start.node_id));
                self.decide(Command::ChildAccepted {
                    node_id: start.node_id,
                    attempt: start.attempt,
                    child_id: ChildId::new(format!("child-{choice}")),
                    result,
                });
            }
            Effect::Observe(observe) => {
                let result = self.result(choice, &observe.node_id);
                let (node_id, attempt) = (observe.node_id, observe.attempt);
                self.decide(Command::ChildSettled {
                    node_id,
                    attempt,
                    result,
                });
            }
            Effect::Cancel(ask) => self.cancel_answered(choice, ask.node_id, ask.attempt),
            Effect::WakeAt(Wake::At(at)) => {
                self.now = self.now.max(at.0);
                self.claim();
                self.decide(Command::Continue);
            }
            Effect::WakeAt(Wake::AtOffset(at)) => panic!("a live run waits for offset {at:?}"),
        }
    }

    fn lease(&mut self) -> Lease {
        self.fence += 1;
        Lease {
            fence: self.fence,
            expires_at: Instant(self.now + 30_000),
        }
    }

    fn claim(&mut self) {
        let lease = Some(self.lease());
        self.decide(Command::Claim {
            worker_id: WorkerId::from("w"),
            lease,
            over: None,
        });
    }

    fn recover(&mut self) {
        let prior = PriorLease {
            worker_id: WorkerId::from("w"),
            fence: self.fence,
            lease_expires_at: Instant(self.now),
        };
        let lease = Some(self.lease());
        let over = Some((prior, RecoveryReason::LeaseExpired));
        self.decide(Command::Claim {
            worker_id: WorkerId::from("v"),
            lease,
            over,
        });
    }

    fn cancel_answered(&mut self, choice: usize, node_id: NodeId, attempt: u32) {
        let refusals = [
            None,
            Some(CancelAnswer::Rejected),
            Some(CancelAnswer::Timeout),
            Some(CancelAnswer::NotSupported),
        ];
        let child_id = choice.is_multiple_of(2).then(|| ChildId::from("c"));
        let refusal = refusals[choice % 4];
        self.decide(Command::CancelAnswered {
            node_id,
            attempt,
            child_id,
            refusal,
        });
    }

    /// Removes what one policy covers, once the run has ended.
    fn retire(&mut self, choice: usize) {
        let kinds = [
            PayloadKind::Execution,
            PayloadKind::Evidence,
            PayloadKind::Result,
        ];
        let kind = kinds[choice % kinds.len()];
        if !self.run.status().is_terminal() {
            return;
        }
        let gone: Vec<PayloadId> = self
            .kept
            .iter()
            .filter(|(_, held)| **held == kind)
            .map(|(id, _)| id.clone())
            .collect();
        self.kept.retain(|_, held| *held != kind);
        let payloads: Vec<Value> = gone
            .iter()
            .map(|id| json!({"payloadId": id, "kind": kind}))
            .collect();
        let applied = json!({"policy": {"kind": kind, "days": choice}, "payloads": payloads});
        self.decide(Command::Retire(serde_json::from_value(applied).unwrap()));
    }

    fn node(&self, choice: usize) -> Option<NodeId> {
        let nodes = self.plan.nodes();
        (!nodes.is_empty()).then(|| nodes[choice % nodes.len()].id.clone())
    }

    fn any_attempt(&self, choice: usize) -> (NodeId, u32) {
        let node = self.node(choice).unwrap_or_else(|| NodeId::from("ghost"));
        let attempts = [0, 1, 2, 5, 6, u32::MAX];
        (node, attempts[choice % attempts.len()])
    }

    /// How a child of a node ends: well, badly, late, deaf.
    fn result(&self, choice: usize, node_id: &NodeId) -> ChildResult {
        let at = self.plan.find_node(node_id.as_str());
        let example = |port: &str| at.and_then(|at| self.plan.port_schema(at, port).1.example());
        let decides =
            at.is_some_and(|at| matches!(self.plan.node(at).task, Task::AgentDecision(_)));
        let codes = [
            "agent.timeout",
            "action.timeout",
            "agent.rate-limited",
            "agent.cancelled",
            "",
            "x.y",
        ];
        let code = codes[choice % codes.len()].to_owned();
        let outcome = match choice % 8 {
            0 => ChildOutcome::Failure {
                code,
                message: "m".repeat(choice * 20),
            },
            1 => ChildOutcome::Refused {
                code: "permission.denied".to_owned(),
                message: String::new(),
            },
            2 => ChildOutcome::Cancelled,
            3 => ChildOutcome::Success {
                output: Arc::new(json!("x".repeat(choice * 700))),
            },
            _ if decides => {
                let port = if choice.is_multiple_of(2) {
                    "pass"
                } else {
                    "fail"
                };
                let data = example(port).unwrap_or_default();
                ChildOutcome::Decision {
                    answer: Arc::new(json!({"decision": port, "data": data})),
                }
            }
            _ if at.is_some_and(|at| {
                matches!(self.plan.node(at).task, Task::Agent(_) | Task::Action(_))
            }) =>
            {
                ChildOutcome::Success {
                    output: Arc::new(example("success").unwrap_or_default()),
                }
            }
            _ => ChildOutcome::Decision {
                answer: Arc::new(json!({"decision": "maybe"})),
            },
        };
        let most = Usage {
            input_tokens: Limits::COUNTER,
            output_tokens: Limits::COUNTER,
        };
        let usage = match choice % 5 {
            0 => None,
            1 => Some(most),
            _ => Some(Usage {
                input_tokens: 3,
                output_tokens: 4,
            }),
        };
        ChildResult {
            outcome,
            terminal: !choice.is_multiple_of(7),
            usage,
            cost: None,
        }
    }
}
