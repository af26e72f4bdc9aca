//! A live world in memory: what a worker and a store do, with nothing but the four
//! functions. Every commit can be the last one before a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::actor::{Actor, UserActor};
use sluicegate_core::ids::{ChildId, PayloadId, RunId, TenantId, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    ChildOutcome, ChildResult, Command, Decision, Effect, Envelopes, Event, Lease, Mode, Queue,
    Refusal, Run, RunStatus, Start, Time, Usage, Wake, WorkflowReference, decide, effects, needs,
};
use sluicegate_core::time::Instant;

use super::order::story;
use super::plans::{node, plan, policy};

/// What a child answers, by node and attempt.
pub(crate) type Script = Box<dyn Fn(&Start) -> ChildOutcome>;

/// A store and a worker in one.
pub(crate) struct World<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) limits: Limits,
    pub(crate) now: u64,
    pub(crate) log: Vec<Event>,
    pub(crate) payloads: BTreeMap<PayloadId, Arc<Value>>,
    pub(crate) executed: BTreeMap<(String, u32), u32>,
    pub(crate) commits: usize,
    script: Script,
    fence: u64,
}

impl<'p> World<'p> {
    pub(crate) fn new(plan: &'p Plan, script: Script) -> Self {
        Self {
            plan,
            limits: Limits::default(),
            now: 1_000,
            log: Vec::new(),
            payloads: BTreeMap::new(),
            executed: BTreeMap::new(),
            commits: 0,
            script,
            fence: 0,
        }
    }

    /// The run as a fresh worker folds it.
    pub(crate) fn run(&self) -> Run {
        let mut run = Run::new(self.plan, TenantId::from("t1"), RunId::from("r1"));
        for event in &self.log {
            run.apply(self.plan, event).unwrap();
        }
        run
    }

    /// Decides on exactly the payloads that `needs` names.
    pub(crate) fn decide(&mut self, command: Command) -> Result<Decision, Refusal> {
        let run = self.run();
        let envelopes: Envelopes = needs(self.plan, &run)
            .into_iter()
            .filter_map(|id| Some((id.clone(), Arc::clone(self.payloads.get(&id)?))))
            .collect();
        let time = Time::Live(Instant(self.now));
        let decision = decide(self.plan, &run, &envelopes, time, command)?;
        if !decision.events.is_empty() {
            self.commits += 1;
        }
        self.log.extend(decision.events.clone());
        for payload in &decision.payloads {
            let value = Arc::clone(&payload.value);
            self.payloads.insert(payload.id.clone(), value);
        }
        Ok(decision)
    }

    pub(crate) fn queue(&mut self, input: Value) -> Decision {
        let limits = self.limits.clone();
        self.decide(Command::Queue(Box::new(Queue {
            mode: Mode::Live,
            limits,
            input: Arc::new(input),
            reference: WorkflowReference {
                workflow_key: Some("w".into()),
                workflow_revision: Some(3),
                actor: Some(user()),
                ..WorkflowReference::default()
            },
        })))
        .unwrap()
    }

    pub(crate) fn claim(&mut self) {
        self.fence += 1;
        let lease = Lease {
            fence: self.fence,
            expires_at: Instant(self.now + 30_000),
        };
        self.decide(Command::Claim {
            worker_id: WorkerId::from("w1"),
            lease: Some(lease),
            over: None,
        })
        .unwrap();
    }

    /// One step of a worker; `false` once nothing is owed.
    pub(crate) fn step(&mut self) -> bool {
        let run = self.run();
        let Some(effect) = effects(self.plan, &run).into_iter().next() else {
            return false;
        };
        match effect {
            Effect::Continue => {
                self.decide(Command::Continue).unwrap();
            }
            Effect::Start(start) => self.start(&start, true),
            Effect::Observe(observe) => {
                let start = Start {
                    node_id: observe.node_id.clone(),
                    attempt: observe.attempt,
                    child_kind: observe.child_kind,
                    idempotency_key: observe.idempotency_key,
                    input: PayloadId::from(""),
                    timeout: None,
                };
                let result = self.execute(&start);
                self.decide(Command::ChildSettled {
                    node_id: observe.node_id,
                    attempt: observe.attempt,
                    result,
                })
                .unwrap();
            }
            Effect::WakeAt(Wake::At(at)) => {
                self.now = self.now.max(at.0);
                self.claim();
                self.decide(Command::Continue).unwrap();
            }
            other => panic!("nothing owes {other:?} here"),
        }
        true
    }

    /// Accepts a child; the result comes in a commit of its own, so that a crash can fall
    /// between the two.
    pub(crate) fn start(&mut self, start: &Start, accept: bool) {
        let outcome = (self.script)(start);
        if let ChildOutcome::Refused { .. } = outcome {
            let result = self.execute(start);
            self.decide(Command::ChildSettled {
                node_id: start.node_id.clone(),
                attempt: start.attempt,
                result,
            })
            .unwrap();
        } else if accept {
            self.decide(Command::ChildAccepted {
                node_id: start.node_id.clone(),
                attempt: start.attempt,
                child_id: child_of(start),
                result: None,
            })
            .unwrap();
        }
    }

    fn execute(&mut self, start: &Start) -> ChildResult {
        let key = (start.node_id.to_string(), start.attempt);
        // The child's runtime keeps the result by key and attempt (N1).
        self.executed.entry(key).or_insert(1);
        ended((self.script)(start))
    }

    pub(crate) fn finish(&mut self) {
        for _ in 0..1_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the run does not end");
    }
}

pub(crate) fn child_of(start: &Start) -> ChildId {
    ChildId::new(format!("{}#{}", start.node_id, start.attempt))
}

pub(crate) fn ended(outcome: ChildOutcome) -> ChildResult {
    ChildResult {
        outcome,
        terminal: true,
        usage: Some(Usage {
            input_tokens: 3,
            output_tokens: 4,
        }),
        cost: None,
    }
}

pub(crate) fn user() -> Actor {
    Actor::User(UserActor {
        account_id: "acc".to_owned(),
        display_name: "Ada".to_owned(),
        email: None,
    })
}

pub(crate) fn success(output: Value) -> ChildOutcome {
    ChildOutcome::Success {
        output: Arc::new(output),
    }
}

pub(crate) fn failure(code: &str) -> ChildOutcome {
    ChildOutcome::Failure {
        code: code.to_owned(),
        message: code.to_owned(),
    }
}

pub(crate) fn one_agent(failure_policy: Value) -> Plan {
    plan(
        &[
            node("in", "input", json!({})),
            node("a", "agent", json!({ "policy": failure_policy })),
            node("bad", "output", json!({})),
            node("ok", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: a.success > ok.input",
            "e3: a.failure > bad.input",
        ],
    )
}

#[test]
fn o4_commits_follow_outside_effects() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.finish();
    // Enqueue, claim, up to the intent, acceptance, settlement to the end.
    assert_eq!(world.commits, 5);
    assert_eq!(world.run().status(), RunStatus::Succeeded);
    let rollup = world.run().rollups();
    assert_eq!(rollup.usage.total_tokens, 7);
    assert_eq!(rollup.usage.unpriced_child_runs, 1);
}

#[test]
fn o4_a_child_that_answers_at_once_settles_in_the_commit_of_its_acceptance() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    let decision = world
        .decide(Command::ChildAccepted {
            node_id: "a".into(),
            attempt: 1,
            child_id: "c".into(),
            result: Some(ended(success(json!("hi")))),
        })
        .unwrap();
    assert_eq!(story(&decision.events)[0], "node.child.waiting a");
    assert_eq!(world.run().status(), RunStatus::Succeeded);
}

#[test]
fn n1_keys_stay_within_a_group_and_change_between_groups() {
    let script = |start: &Start| {
        if start.attempt == 1 {
            failure("agent.timeout")
        } else {
            success(json!("hi"))
        }
    };
    let plan = one_agent(policy(3, &["agent.timeout"], "fail-run"));
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!("x"));
    world.claim();
    world.finish();
    let run = world.run();
    let attempts = &run.state(plan.find_node("a").unwrap()).attempts;
    assert_eq!(attempts.len(), 2);
    assert_ne!(attempts[0].idempotency_key, attempts[1].idempotency_key);
    assert_eq!(
        attempts[0].idempotency_key.unwrap(),
        sluicegate_core::value::hash(&json!(["t1", "r1", "a", 3, 1]))
    );
}

#[test]
fn n1_a_deaf_childs_group_does_not_grow_and_its_timeout_is_permanent_a8() {
    let plan = one_agent(policy(3, &["agent.timeout"], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    world.step();
    let mut result = ended(failure("agent.timeout"));
    result.terminal = false;
    world
        .decide(Command::ChildSettled {
            node_id: "a".into(),
            attempt: 1,
            result,
        })
        .unwrap();
    assert_eq!(world.run().status(), RunStatus::Failed);
}

#[test]
fn a5_an_overdue_queued_run_is_claimed_and_failed_in_one_commit() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.now += 86_400_001;
    world.claim();
    let run = world.run();
    assert_eq!(run.status(), RunStatus::Failed);
    let failure = run.end().unwrap().failure.clone().unwrap();
    assert_eq!(failure.code, "run.duration-exceeded");
    assert_eq!(world.commits, 2);
}

#[test]
fn a5_a_child_in_flight_settles_first() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    world.step();
    world.now += 86_400_001;
    world.claim();
    world.finish();
    let tail = story(&world.log);
    assert!(tail.contains(&"node.attempt.settled a success".to_owned()));
    assert_eq!(tail.last().unwrap(), "run.failed");
}

#[test]
fn a7_the_last_events_are_kept_for_ending() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.limits.events = 506;
    world.queue(json!("x"));
    world.claim();
    world.finish();
    let failure = world.run().end().unwrap().failure.clone().unwrap();
    assert_eq!(failure.code, "run.event-limit");
}

#[test]
fn a9_contradictory_evidence_fails_the_run_completely() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    world
        .decide(Command::Inconsistent {
            message: "the child belongs to another run".to_owned(),
            node_id: Some("a".into()),
        })
        .unwrap();
    let run = world.run();
    assert_eq!(run.status(), RunStatus::Failed);
    let failure = run.end().unwrap().failure.clone().unwrap();
    assert_eq!(failure.code, "WORKFLOW_RECOVERY_INCONSISTENT");
}

#[test]
fn w1_a_late_answer_for_another_attempt_is_stale() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    let stale = world.decide(Command::ChildSettled {
        node_id: "a".into(),
        attempt: 2,
        result: ended(success(json!("late"))),
    });
    assert_eq!(stale, Err(Refusal::Stale));
}

#[test]
fn the_stored_forms_read_back_as_they_were() {
    let plan = one_agent(policy(2, &["agent.timeout"], "emit-failure"));
    let mut world = World::new(&plan, Box::new(|_| failure("agent.timeout")));
    world.queue(json!("x"));
    world.claim();
    world.finish();
    for event in &world.log {
        let stored = serde_json::to_value(event).unwrap();
        assert_eq!(&Event::read(&stored).unwrap(), event);
    }
    let document = serde_json::to_value(plan.document()).unwrap();
    assert_eq!(Plan::read(&document).unwrap().hash(), plan.hash());
}

#[test]
fn s5_what_a_later_node_marks_is_a_secret_from_the_start() {
    let plan = super::plans::plan_with(
        &[
            node("in", "input", json!({})),
            node("g", "gate", json!({})),
            node("token", "output", json!({"ports": {"input": "account"}})),
            node("no", "output", json!({})),
        ],
        &[
            "e1: in.data > g.input",
            "e2: g.pass > token.input",
            "e3: g.fail > no.input",
        ],
        json!({"account": {"type": "object", "properties": {
            "iban": {"type": "string", "writeOnly": true}, "vip": {"writeOnly": true}}}}),
    );
    let mut world = World::new(&plan, Box::new(|_| success(json!(1))));
    let decision = world.queue(json!({"iban": "DE-89-3704", "vip": true, "a": 1}));
    let preview = decision.payloads[0].evidence.preview.clone().unwrap();
    assert!(!preview.to_string().contains("DE-89-3704"), "{preview}");
    world.claim();
    world.finish();
    let result = &world.payloads[&PayloadId::from("result")];
    assert_eq!(result["token"]["a"], json!(1), "the node's id is no secret");
    assert_ne!(result["token"]["vip"], json!(true));
    assert!(!result.to_string().contains("DE-89-3704"));
}

#[test]
fn s5_a_secret_is_found_in_no_event_and_no_preview() {
    let plan = super::plans::plan_with(
        &[
            node("in", "input", json!({"ports": {"data": "login"}})),
            node(
                "a",
                "agent",
                json!({"policy": policy(1, &[], "emit-failure"),
                "mappings": [{"target": "/text", "binding": {"kind": "template", "parts": [
                    {"text": "the word is "}, {"path": {"nodeId": "in", "port": "data", "pointer": "/word"}}]}}]}),
            ),
            node("bad", "output", json!({})),
            node("ok", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: a.success > ok.input",
            "e3: a.failure > bad.input",
        ],
        json!({"login": {"type": "object", "properties": {"word": {"type": "string", "writeOnly": true}}}}),
    );
    let script = |_: &Start| ChildOutcome::Failure {
        code: "x.sesame-open".to_owned(),
        message: "I do not know sesame-open".to_owned(),
    };
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!({"word": "sesame-open"}));
    world.claim();
    world.finish();
    assert_eq!(world.run().status(), RunStatus::Succeeded);
    let seen = serde_json::to_string(&world.log).unwrap();
    assert!(!seen.contains("sesame-open"), "{seen}");
    let result = &world.payloads[&PayloadId::from("result")];
    assert!(!result.to_string().contains("sesame-open"));
}

#[test]
fn k3_a_log_that_ends_for_one_reason_ends_for_no_other() {
    use sluicegate_core::run::{NodeSkipped, Payload, SkipReason};
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    let skip = |run: &Run, node: &str, reason| Event {
        sequence: run.sequence() + 1,
        payload: Payload::NodeSkipped(NodeSkipped {
            node_id: node.into(),
            reason,
        }),
        recorded_at: run.clock().recorded_at,
        virtual_offset_ms: None,
    };
    let mut run = world.run();
    let cancelled = skip(&run, "ok", SkipReason::RunCancelled);
    assert!(run.apply(&plan, &cancelled).is_err(), "nobody asked for it");
    let failed = skip(&run, "ok", SkipReason::RunFailed);
    run.apply(&plan, &failed).unwrap();
    let refused = skip(&run, "bad", SkipReason::RunRefused);
    assert!(run.apply(&plan, &refused).is_err());
    // What would go on normally is not legal any more either.
    let mut next = world.decide(Command::Continue);
    let event = &mut next.as_mut().unwrap().events[0];
    event.sequence = run.sequence() + 1;
    assert!(run.apply(&plan, event).is_err());
}
