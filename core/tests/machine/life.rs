//! A live run that can be copied at every commit, and the laws that hold for each
//! (architecture.md "Tests"): they are checked after every commit and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use sluicegate_core::actor::Origin;
use sluicegate_core::ids::{Hash, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    CancelAnswer, CancelChild, ChildKind, ChildOutcome, ChildResult, Command, Cost, Decision,
    Effect, Envelopes, Event, Lease, Mode, Payload, PriorLease, Queue, RecoveryReason, Refusal,
    Run, RunStatus, Start, Time, Wake, WorkflowReference, decide, effects, needs,
    permission_digest,
};
use sluicegate_core::time::{Instant, Millis};

use super::live::{child_of, ended, failure, user};

/// What a child answers, by node and attempt.
pub(crate) type Script = Rc<dyn Fn(&Start) -> ChildOutcome>;

/// How a child's runtime answers a cancellation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    /// It stops the child; one that it does not know is kept from starting.
    Stops,
    /// It says no, and the child goes on to its end.
    Rejects,
    /// It does not answer, and the child is given up.
    Deaf,
    /// It knows the child whose start was not recorded, and stops it.
    KnewIt,
}

#[derive(Clone)]
pub(crate) struct Life<'p> {
    plan: &'p Plan,
    script: Script,
    pub(crate) run: Run,
    pub(crate) log: Vec<Event>,
    pub(crate) now: u64,
    payloads: Envelopes,
    /// (node, attempt) → the key under which it was executed to its end.
    pub(crate) executed: BTreeMap<(String, u32), Option<Hash>>,
    fence: u64,
    limits: Limits,
}

impl<'p> Life<'p> {
    /// A queued run.
    pub(crate) fn new(plan: &'p Plan, input: &Value, script: Script, limits: Limits) -> Self {
        let mut life = Self {
            plan,
            script,
            run: Run::new(plan, "t1".into(), "r1".into()),
            log: Vec::new(),
            now: 1_000,
            payloads: Envelopes::new(),
            executed: BTreeMap::new(),
            fence: 0,
            limits,
        };
        let queue = Queue {
            mode: Mode::Live,
            limits: life.limits.clone(),
            input: Arc::new(input.clone()),
            reference: WorkflowReference {
                workflow_id: Some("w1".to_owned()),
                workflow_key: Some("w".into()),
                workflow_revision: Some(3),
                actor: Some(user()),
                origin: Some(Origin::Manual),
                permission_digest: Some(permission_digest(&[])),
            },
        };
        life.must(Command::Queue(Box::new(queue)));
        life
    }

    /// Decides on exactly the payloads that `needs` names, and folds what follows.
    pub(crate) fn decide(&mut self, command: Command) -> Result<Decision, Refusal> {
        let wanted = needs(self.plan, &self.run).into_iter();
        let envelopes: Envelopes = wanted
            .filter_map(|id| Some((id.clone(), Arc::clone(self.payloads.get(&id)?))))
            .collect();
        let time = Time::Live(Instant(self.now));
        let decision = decide(self.plan, &self.run, &envelopes, time, command)?;
        for event in &decision.events {
            self.run.apply(self.plan, event).unwrap();
        }
        self.log.extend(decision.events.iter().cloned());
        for payload in &decision.payloads {
            let value = Arc::clone(&payload.value);
            let known = self.payloads.insert(payload.id.clone(), value);
            assert_eq!(known, None, "{} is written once", payload.id);
        }
        Ok(decision)
    }

    fn must(&mut self, command: Command) {
        if let Err(refusal) = self.decide(command.clone()) {
            panic!("{command:?}: {refusal}");
        }
    }

    pub(crate) fn claim(&mut self) {
        let prior = PriorLease {
            worker_id: WorkerId::from("w"),
            fence: self.fence,
            lease_expires_at: Instant(self.now),
        };
        let over = (self.fence > 0).then_some((prior, RecoveryReason::LeaseExpired));
        self.fence += 1;
        self.must(Command::Claim {
            worker_id: WorkerId::from("w"),
            lease: Some(Lease {
                fence: self.fence,
                expires_at: Instant(self.now + 30_000),
            }),
            over,
        });
    }

    /// One step of a worker; `false` once nothing is owed.
    pub(crate) fn step(&mut self, manner: Manner) -> bool {
        let Some(effect) = effects(self.plan, &self.run).into_iter().next() else {
            return false;
        };
        match effect {
            Effect::Continue => self.must(Command::Continue),
            Effect::Start(start) => self.start(&start),
            Effect::Observe(observe) => {
                let start = Start {
                    node_id: observe.node_id,
                    attempt: observe.attempt,
                    child_kind: observe.child_kind,
                    idempotency_key: observe.idempotency_key,
                    input: "".into(),
                    timeout: None,
                };
                let result = self.observe(&start, manner);
                self.settle(&start, result);
            }
            Effect::Cancel(child) => self.cancel_child(child, manner),
            Effect::WakeAt(Wake::At(at)) => {
                self.now = self.now.max(at.0);
                self.must(Command::Continue);
            }
            Effect::WakeAt(Wake::AtOffset(_)) => panic!("a live run has no offsets"),
        }
        true
    }

    /// How an observed child ended: as the script says, unless it was stopped or given up.
    fn observe(&mut self, start: &Start, manner: Manner) -> ChildResult {
        if self.run.status() == RunStatus::CancelRequested {
            match manner {
                Manner::Stops | Manner::KnewIt => return ended(ChildOutcome::Cancelled),
                Manner::Deaf => {
                    return ChildResult {
                        terminal: false,
                        ..ended(failure("agent.timeout"))
                    };
                }
                Manner::Rejects => {}
            }
        }
        self.execute(start)
    }

    fn start(&mut self, start: &Start) {
        if let ChildOutcome::Refused { .. } = (self.script)(start) {
            let result = self.execute(start);
            self.settle(start, result);
        } else {
            self.must(Command::ChildAccepted {
                node_id: start.node_id.clone(),
                attempt: start.attempt,
                child_id: child_of(start),
                result: None,
            });
        }
    }

    fn settle(&mut self, start: &Start, result: ChildResult) {
        self.must(Command::ChildSettled {
            node_id: start.node_id.clone(),
            attempt: start.attempt,
            result,
        });
    }

    fn execute(&mut self, start: &Start) -> ChildResult {
        let place = (start.node_id.to_string(), start.attempt);
        // A runtime knows an invocation by key and attempt (N1): another key is another effect.
        let key = self.executed.entry(place).or_insert(start.idempotency_key);
        assert_eq!(*key, start.idempotency_key, "executed under two keys");
        let agent = start.child_kind == ChildKind::Agent;
        ChildResult {
            // The prices in force change, and there are none for what an action did.
            cost: (agent && start.attempt == 1).then(|| Cost {
                amount_micros: 5,
                pricing_snapshot_id: format!("prices-{}", start.node_id),
            }),
            ..ended((self.script)(start))
        }
    }

    fn cancel_child(&mut self, child: CancelChild, manner: Manner) {
        assert!(
            child.cooperative || child.child_id.is_none(),
            "C2: not asked"
        );
        let known = child.child_id.is_some();
        let refusal = match manner {
            Manner::Stops | Manner::KnewIt => None,
            _ if !known => None,
            Manner::Rejects => Some(CancelAnswer::Rejected),
            Manner::Deaf => Some(CancelAnswer::Timeout),
        };
        let knew = (manner == Manner::KnewIt && !known).then(|| "late".into());
        self.must(Command::CancelAnswered {
            node_id: child.node_id,
            attempt: child.attempt,
            child_id: child.child_id.or(knew),
            refusal,
        });
    }

    /// Drives to the end.
    pub(crate) fn run_out(&mut self, manner: Manner) {
        let commits = (0..200).take_while(|_| self.step(manner)).count();
        assert!(commits < 200, "the run does not end");
    }

    /// Drives to the end; gives the state after each commit.
    pub(crate) fn finish(&mut self, manner: Manner) -> Vec<Self> {
        let mut states = vec![self.clone()];
        while self.step(manner) {
            assert!(states.len() < 200, "the run does not end");
            states.push(self.clone());
        }
        states
    }

    /// Drives to the end with a worker that dies after every commit and after every child
    /// that it has executed and not yet recorded.
    pub(crate) fn finish_crashing(&mut self) {
        loop {
            let mut lost = self.clone();
            if !lost.step(Manner::Stops) {
                return;
            }
            // The commit was lost, what the child did was not.
            self.executed = lost.executed;
            self.run = fold(self.plan, &self.log);
            self.claim();
            self.step(Manner::Stops);
        }
    }

    pub(crate) fn cancel(&mut self) -> Result<Decision, Refusal> {
        self.decide(Command::Cancel {
            requested_by: user(),
            reason: None,
        })
    }

    /// What holds for every run that has ended.
    pub(crate) fn hold(&self) {
        hold(self.plan, &self.run, &self.log);
        assert!(self.log.len() as u64 <= self.limits.events);
    }
}

pub(crate) fn fold(plan: &Plan, log: &[Event]) -> Run {
    let mut run = Run::new(plan, "t1".into(), "r1".into());
    for event in log {
        run.apply(plan, event).unwrap();
    }
    run
}

/// O2, O5, K3, K4, U1 and time, of a run that has ended.
pub(crate) fn hold(plan: &Plan, run: &Run, log: &[Event]) {
    assert!(run.status().is_terminal());
    let mut edges = BTreeSet::new();
    let mut nodes: BTreeMap<&str, i32> = BTreeMap::new();
    let mut open = None;
    let mut clock = (None, None);
    for (position, event) in log.iter().enumerate() {
        assert_eq!(event.sequence, position as u64 + 1, "O5");
        let at = (event.recorded_at, event.virtual_offset_ms);
        assert!(at.0 >= clock.0 && at.1 >= clock.1, "time runs back");
        clock = at;
        let is_last = position + 1 == log.len();
        assert_eq!(is_terminal(&event.payload), is_last, "O5");
        match &event.payload {
            Payload::AttemptStarted(p) => {
                assert_eq!(open.replace(&p.node_id), None, "O2");
            }
            Payload::AttemptSettled(p) => {
                assert_eq!(open.take(), Some(&p.node_id), "O2");
                *nodes.entry(p.node_id.as_str()).or_default() += 1;
            }
            Payload::RetryScheduled(p) => *nodes.entry(p.node_id.as_str()).or_default() -= 1,
            Payload::NodeSkipped(p) => *nodes.entry(p.node_id.as_str()).or_default() += 1,
            Payload::EdgeSettled(p) => assert!(edges.insert(&p.edge_id), "K4"),
            _ => {}
        }
    }
    assert_eq!(open, None);
    assert_eq!(edges.len(), plan.edges().len(), "K3");
    for node in plan.nodes() {
        assert_eq!(nodes.get(node.id.as_str()), Some(&1), "K3: {}", node.id);
    }
    assert!(run.nodes().iter().all(|node| node.status().is_final()));
    counts_are_the_sum_of_the_events(run, log);
}

/// U1, D2: refolding the events gives the rollups that the machine kept as it went.
fn counts_are_the_sum_of_the_events(run: &Run, log: &[Event]) {
    let (mut children, mut agents) = (BTreeMap::new(), BTreeSet::new());
    let (mut tokens, mut actions, mut micros) = (0, BTreeSet::new(), 0);
    let mut priced = 0;
    for event in log {
        match &event.payload {
            Payload::ChildWaiting(p) => {
                children.insert((&p.node_id, p.attempt), (p.child_kind, &p.child_id));
            }
            Payload::AttemptSettled(p) => match children.get(&(&p.node_id, p.attempt)) {
                Some((ChildKind::Action, id)) => {
                    actions.insert(*id);
                }
                Some((_, id)) if p.child_terminal == Some(true) && agents.insert(*id) => {
                    let usage = p.usage.unwrap_or_default();
                    tokens += usage.input_tokens + usage.output_tokens;
                    if let Some(cost) = &p.cost {
                        micros += cost.amount_micros;
                        priced += 1;
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    let rollups = run.rollups();
    if run.mode() == Mode::Simulate {
        assert_eq!(rollups.usage.total_tokens, 0, "V2");
        return;
    }
    assert_eq!(rollups.usage.total_tokens, tokens, "U1");
    assert_eq!(rollups.usage.action_invocations, actions.len() as u64);
    assert_eq!(rollups.usage.priced_child_runs, priced);
    let unpriced = agents.len() as u64 - priced;
    assert_eq!(rollups.usage.unpriced_child_runs, unpriced);
    assert_eq!(rollups.cost.amount_micros, micros, "U2");
}

pub(crate) fn is_terminal(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::RunSucceeded(_)
            | Payload::RunFailed(_)
            | Payload::RunRefused(_)
            | Payload::RunCancelled(_)
    )
}

/// All laws that a plan's run on these fixtures must keep, from every commit on.
pub(crate) fn keep_all_laws(plan: &Plan, input: &Value, script: &Script) {
    let new = |limits| Life::new(plan, input, Rc::clone(script), limits);
    let mut life = new(Limits::default());
    let queued = life.clone();
    life.claim();
    let states = life.finish(Manner::Stops);
    life.hold();
    let mut crashing = queued.clone();
    crashing.claim();
    crashing.finish_crashing();
    crashing.hold();
    assert_eq!(
        fate(&crashing.run),
        fate(&life.run),
        "another end after crashes"
    );
    assert_eq!(
        crashing.executed, life.executed,
        "other children after crashes"
    );
    assert_eq!(life.run, fold(plan, &life.log), "the fold is not the state");
    for state in std::iter::once(&queued).chain(&states) {
        is_cancelled_from(state);
        ends_when_time_is_over(state);
    }
    // Some cuts fall into one commit and end alike.
    for spare in (1..life.log.len() as u64).step_by(2) {
        let events = Limits::EVENTS_RESERVE + spare;
        let mut limited = new(Limits {
            events,
            ..Limits::default()
        });
        limited.claim();
        limited.run_out(Manner::Stops);
        limited.hold();
        let ended = limited.run.end().unwrap().failure.as_ref();
        let spent = ended.is_some_and(|failure| failure.code == "run.event-limit");
        let itself = fate(&limited.run) == fate(&life.run);
        // A7: nothing succeeds beyond the limit; an end of its own may come first.
        assert!(spent || itself || limited.run.status() != RunStatus::Succeeded);
    }
}

/// C1–C4 from one state of a run.
fn is_cancelled_from(state: &Life<'_>) {
    if state.run.status().is_terminal() {
        assert_eq!(state.clone().cancel(), Err(Refusal::Terminal), "C4");
        return;
    }
    for manner in [Manner::Stops, Manner::Rejects, Manner::Deaf, Manner::KnewIt] {
        let mut life = state.clone();
        let started = count_starts(&life.log);
        life.cancel().unwrap();
        if !life.run.status().is_terminal() {
            assert_eq!(life.cancel().unwrap(), Decision::default(), "C4");
        }
        let at_once = life.run.status().is_terminal();
        life.run_out(manner);
        life.hold();
        assert_eq!(life.run.status(), RunStatus::Cancelled);
        assert_eq!(count_starts(&life.log), started, "C1: no node starts");
        if at_once {
            // C1: nothing was in flight, so the manner decides nothing.
            return;
        }
    }
}

fn count_starts(log: &[Event]) -> usize {
    let starts = log
        .iter()
        .filter(|event| matches!(event.payload, Payload::AttemptStarted(_)));
    starts.count()
}

/// A5 from one state of a run.
fn ends_when_time_is_over(state: &Life<'_>) {
    if state.run.status().is_terminal() {
        return;
    }
    let mut life = state.clone();
    let in_flight = matches!(
        effects(life.plan, &life.run).first(),
        Some(Effect::Start(_) | Effect::Observe(_))
    );
    life.now += 86_400_001;
    let until = Instant(life.now).since(life.run.queued_at().unwrap().recorded_at.unwrap());
    assert!(until > Millis(86_400_000));
    life.claim();
    if !in_flight {
        assert!(life.run.status().is_terminal(), "in one commit");
    }
    life.run_out(Manner::Stops);
    life.hold();
    assert!(matches!(
        life.run.status(),
        RunStatus::Failed | RunStatus::Refused
    ));
    let failure = life.run.end().unwrap().failure.clone().unwrap();
    assert!(
        in_flight || failure.code == "run.duration-exceeded",
        "{failure:?}"
    );
}

/// What became of the run, its nodes, attempts and edges.
pub(crate) fn fate(run: &Run) -> (RunStatus, Vec<String>) {
    let nodes = run.nodes().iter().map(|node| {
        let attempts: Vec<_> = node
            .attempts
            .iter()
            .map(|a| (a.status, a.code.clone(), a.idempotency_key))
            .collect();
        format!("{:?} {:?} {attempts:?}", node.status(), node.outcome_port)
    });
    let edges = run.edges().iter().flatten().map(|edge| {
        let settled = &edge.settled;
        format!(
            "{:?} {:?} {:?}",
            settled.state, settled.reason, settled.evidence
        )
    });
    (run.status(), nodes.chain(edges).collect())
}
