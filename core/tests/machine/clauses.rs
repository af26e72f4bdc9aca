//! Clauses of run-machine.md that no other file here keeps by name, and the list that every
//! clause which the core can decide has such a test.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::code::Code;
use sluicegate_core::evidence::{Reason, State};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    ChildOutcome, ChildResult, Command, Cost, Effect, Payload, RollupState, RunStatus, SkipReason,
    Start, Usage, WorkflowReference, effects, permission_digest, run_row,
};
use sluicegate_core::simulate::{Fixtures, Simulation, simulate};
use sluicegate_core::time::Instant;

use super::life::{Life, Manner, Script};
use super::live::{World, child_of, failure, one_agent, success};
use super::plans::{node, plan, policy};

/// Two agents side by side, each before its own output.
fn two_agents(first: Value) -> Plan {
    plan(
        &[
            node("in", "input", json!({})),
            node("a", "agent", json!({ "policy": first })),
            node("b", "agent", json!({})),
            node("x", "output", json!({})),
            node("y", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: in.data > b.input",
            "e3: a.success > x.input",
            "e4: b.success > y.input",
        ],
    )
}

fn simulated(plan: &Plan, fixtures: &Value) -> Simulation {
    let fixtures = Fixtures::read(fixtures).unwrap();
    let (limits, reference) = (Limits::default(), WorkflowReference::default());
    simulate(
        plan,
        Arc::new(json!({"x": 1})),
        &fixtures,
        &limits,
        reference,
    )
    .unwrap()
}

fn one_success() -> Value {
    json!({"nodes": {"a": {"attempts": [{"outcome": "success", "output": 1}]}}})
}

#[test]
fn o2_nothing_starts_while_a_child_or_a_retry_is_waited_for() {
    let plan = two_agents(policy(2, &["agent.timeout"], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| failure("agent.timeout")));
    world.queue(json!(1));
    world.claim();
    while world.run().status() != RunStatus::WaitingRetry {
        let run = world.run();
        let owed = effects(&plan, &run);
        assert_eq!(owed.len(), 1);
        // `b` is ready all the time.
        let of_b = |effect: &Effect| matches!(effect, Effect::Start(start) if start.node_id == "b");
        assert!(!owed.iter().any(of_b), "{owed:?}");
        world.step();
    }
    assert!(matches!(
        effects(&plan, &world.run())[..],
        [Effect::WakeAt(_)]
    ));
    assert!(
        world.decide(Command::Continue).is_err(),
        "its time has not come"
    );
}

#[test]
fn k1_k4_an_edge_has_one_word_and_the_reason_of_its_source() {
    let plan = two_agents(policy(1, &[], "fail-run"));
    let script = |start: &Start| match start.node_id.as_str() {
        "a" => success(json!(1)),
        _ => failure("agent.declined"),
    };
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!(1));
    world.claim();
    world.finish();
    let words: Vec<_> = world
        .run()
        .edges()
        .iter()
        .map(|edge| edge.as_ref().unwrap().settled.reason)
        .collect();
    assert_eq!(words, [None, None, None, Some(SkipReason::RunFailed)]);
    // Said again, it is refused wherever it comes.
    let first = world
        .log
        .iter()
        .position(|event| matches!(event.payload, Payload::EdgeSettled(_)));
    let said = world.log[first.unwrap()].clone();
    let mut run = sluicegate_core::run::Run::new(&plan, "t1".into(), "r1".into());
    for event in &world.log {
        run.apply(&plan, event).unwrap();
        let mut again = said.clone();
        again.sequence = run.sequence() + 1;
        again.recorded_at = run.clock().recorded_at;
        let settled = run
            .edges()
            .iter()
            .flatten()
            .any(|edge| edge.settled.edge_id == "e1");
        if settled {
            assert!(run.clone().apply(&plan, &again).is_err(), "K4");
        }
    }
}

#[test]
fn a6_previews_of_a_run_share_one_mebibyte() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let large = json!("x".repeat(3_000));
    let answer = large.clone();
    let mut world = World::new(&plan, Box::new(move |_| success(answer.clone())));
    world.limits.preview_bytes = 3_010;
    let queued = world.queue(large);
    assert_eq!(queued.payloads[0].evidence.evidence.state, State::Available);
    world.claim();
    world.step();
    world.step();
    let settled = world
        .decide(Command::ChildSettled {
            node_id: "a".into(),
            attempt: 1,
            result: super::live::ended(success(json!("y".repeat(3_000)))),
        })
        .unwrap();
    let made = &settled.payloads[0].evidence;
    assert_eq!(made.evidence.state, State::Truncated);
    assert_eq!(made.evidence.reason, Some(Reason::SizeLimit));
    assert_eq!(made.preview, None);
    assert!(
        made.evidence.hash.is_some(),
        "what was there is still known by its hash"
    );
    assert_eq!(
        world.run().status(),
        RunStatus::Succeeded,
        "execution is not cut"
    );
}

#[test]
fn a9_contradictory_evidence_in_a_cancelled_run_ends_it_cancelled() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let script: Script = Rc::new(|_| success(json!(1)));
    let mut life = Life::new(&plan, &json!(1), script, Limits::default());
    life.claim();
    while !matches!(effects(&plan, &life.run)[..], [Effect::Observe(_)]) {
        life.step(Manner::Stops);
    }
    life.cancel().unwrap();
    life.decide(Command::Inconsistent {
        message: "its child is another's".to_owned(),
        node_id: Some("a".into()),
    })
    .unwrap();
    assert_eq!(life.run.status(), RunStatus::Cancelled);
    life.hold();
}

#[test]
fn a10_a_run_that_may_not_begin_is_refused_with_its_code_and_node() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let script: Script = Rc::new(|_| success(json!(1)));
    let mut life = Life::new(&plan, &json!(1), script, Limits::default());
    life.claim();
    let preflight = Command::PreflightFailed {
        code: Code::AgentInactive,
        message: "the agent is paused".to_owned(),
        node_id: Some("a".into()),
    };
    life.decide(preflight.clone()).unwrap();
    life.hold();
    assert_eq!(life.run.status(), RunStatus::Refused);
    let failure = life.run.end().unwrap().failure.clone().unwrap();
    assert_eq!(failure.code, "agent.inactive");
    assert_eq!(failure.node_id, Some("a".into()));
    // Once a node has begun, a refusal is an attempt's (A2).
    let script: Script = Rc::new(|_| success(json!(1)));
    let mut life = Life::new(&plan, &json!(1), script, Limits::default());
    life.claim();
    life.step(Manner::Stops);
    assert!(life.decide(preflight).is_err());
}

#[test]
fn n1_an_action_keeps_one_key_for_the_whole_run() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node(
                "a",
                "action",
                json!({"policy": policy(3, &["action.timeout"], "fail-run")}),
            ),
            node("o", "output", json!({})),
        ],
        &["e1: in.data > a.input", "e2: a.success > o.input"],
    );
    let script = |start: &Start| match start.attempt {
        3 => success(json!(1)),
        _ => failure("action.timeout"),
    };
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!(1));
    world.claim();
    world.finish();
    let run = world.run();
    let attempts = &run.state(plan.find_node("a").unwrap()).attempts;
    let keys: BTreeSet<_> = attempts
        .iter()
        .map(|a| (a.semantic_group, a.idempotency_key))
        .collect();
    assert_eq!((attempts.len(), keys.len()), (3, 1));
}

#[test]
fn w3_a_retry_wait_ends_at_its_time_or_the_runs_end_of_time() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    for (duration, wakes) in [(Limits::default().duration_ms, 1_010), (4, 1_005)] {
        let mut world = World::new(&plan, Box::new(|_| failure("agent.timeout")));
        world.limits.duration_ms = duration;
        world.queue(json!(1));
        world.claim();
        while world.run().status() != RunStatus::WaitingRetry {
            assert_eq!(run_row(&plan, &world.run()).wake_at, None);
            world.step();
        }
        assert_eq!(run_row(&plan, &world.run()).wake_at, Some(Instant(wakes)));
    }
}

#[test]
fn w4_an_intent_is_an_event_before_its_child_is_owed() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!(1))));
    world.queue(json!(1));
    world.claim();
    world.step();
    let last = &world.log.last().unwrap().payload;
    assert!(matches!(last, Payload::AttemptStarted(started) if started.node_id == "a"));
    assert!(matches!(
        effects(&plan, &world.run())[..],
        [Effect::Start(_)]
    ));
}

#[test]
fn d3_a_simulation_has_an_id_of_what_it_was_made_from_and_no_key_or_lease() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let done = simulated(&plan, &one_success());
    let name = json!([
        plan.hash(),
        sluicegate_core::value::hash(&json!({"x": 1})),
        sluicegate_core::value::hash(&one_success())
    ]);
    let name = sluicegate_core::value::canonical(&name);
    let id = uuid::Uuid::new_v5(
        &sluicegate_core::simulate::SIMULATION_NAMESPACE,
        name.as_bytes(),
    );
    assert_eq!(done.run.run_id().as_str(), id.to_string());
    let entry = sluicegate_core::value::hash(&json!({"outcome": "success", "output": 1}));
    for event in &done.events {
        assert!(event.virtual_offset_ms.is_some() && event.recorded_at.is_none());
        let payload = event.payload_value();
        for member in ["idempotencyKey", "deadlineAt", "fence", "leaseExpiresAt"] {
            assert!(payload.get(member).is_none(), "{member}");
        }
        if let Payload::ChildWaiting(waiting) = &event.payload {
            assert_eq!(waiting.child_id.as_str(), format!("fixture:{entry}"));
        }
    }
}

#[test]
fn d4_permissions_are_hashed_sorted_and_once() {
    let of = |names: &[&str]| {
        permission_digest(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(of(&["b", "a", "b"]), of(&["a", "b"]));
    assert_eq!(
        of(&["a", "b"]),
        sluicegate_core::value::hash(&json!(["a", "b"]))
    );
    assert_ne!(of(&["a"]), of(&["a", "b"]));
}

/// Lets an agent's attempts end one after the other with what they used.
fn used(attempts: &[(&str, ChildResult)]) -> World<'static> {
    let plan = Box::leak(Box::new(one_agent(policy(
        5,
        &["agent.timeout"],
        "emit-failure",
    ))));
    let mut world = World::new(plan, Box::new(|_| success(json!(1))));
    world.queue(json!(1));
    world.claim();
    for (position, (child, result)) in attempts.iter().enumerate() {
        let attempt = position as u32 + 1;
        while !matches!(effects(plan, &world.run())[..], [Effect::Start(_)]) {
            world.step();
        }
        let accepted = Command::ChildAccepted {
            node_id: "a".into(),
            attempt,
            child_id: (*child).into(),
            result: Some(result.clone()),
        };
        world.decide(accepted).unwrap();
    }
    world
}

fn result(outcome: ChildOutcome, tokens: u64, cost: Option<(u64, &str)>) -> ChildResult {
    ChildResult {
        outcome,
        terminal: true,
        usage: Some(Usage {
            input_tokens: tokens,
            output_tokens: 1,
        }),
        cost: cost.map(|(amount_micros, id)| Cost {
            amount_micros,
            pricing_snapshot_id: id.to_owned(),
        }),
    }
}

#[test]
fn u1_u2_each_child_counts_once_with_its_own_prices() {
    let busy = || failure("agent.timeout");
    let world = used(&[
        ("c1", result(busy(), 10, Some((7, "prices-b")))),
        ("c2", result(busy(), 20, None)),
        ("c3", result(busy(), 30, Some((5, "prices-a")))),
        ("c3", result(busy(), 30, Some((5, "prices-a")))),
    ]);
    let so_far = world.run().rollups();
    assert_eq!(so_far.usage.state, RollupState::Provisional);
    assert_eq!(so_far.usage.input_tokens, 60);
    assert_eq!(
        (so_far.usage.output_tokens, so_far.usage.total_tokens),
        (3, 63)
    );
    let ids: Vec<_> = so_far
        .usage
        .included_child_run_ids
        .iter()
        .map(|id| id.as_str())
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert_eq!(
        (
            so_far.usage.priced_child_runs,
            so_far.usage.unpriced_child_runs
        ),
        (2, 1)
    );
    assert_eq!(so_far.cost.amount_micros, 12);
    assert_eq!(so_far.cost.pricing_snapshot_ids, ["prices-a", "prices-b"]);
    let mut world = world;
    world.finish();
    assert_eq!(world.run().rollups().cost.state, RollupState::Final);
}

#[test]
fn u1_a_counter_that_would_leave_the_safe_integers_is_an_error() {
    let most = Limits::COUNTER;
    let busy = || failure("agent.timeout");
    for (first, second) in [
        (
            result(busy(), most - 1, None),
            result(success(json!(1)), 1, None),
        ),
        (
            result(busy(), 1, Some((most, "p"))),
            result(success(json!(1)), 1, Some((1, "p"))),
        ),
    ] {
        let world = used(&[("c1", first.clone()), ("c2", second)]);
        let run = world.run();
        let attempts = &run.state(world.plan.find_node("a").unwrap()).attempts;
        assert_eq!(attempts[1].code.as_deref(), Some("agent.output-invalid"));
        assert_eq!((attempts[1].usage, &attempts[1].cost), (None, &None));
        let rollups = run.rollups();
        assert_eq!(
            rollups.usage.total_tokens,
            first.usage.unwrap().input_tokens + 1
        );
        // The child is there, and has no price that could be counted.
        assert_eq!(rollups.usage.included_child_run_ids.len(), 2);
    }
    // Exactly the greatest integer still counts.
    let world = used(&[("c1", result(busy(), most - 1, None))]);
    assert_eq!(world.run().rollups().usage.total_tokens, most);
}

#[test]
fn v3_a_simulation_that_cannot_start_leaves_nothing() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let none = Fixtures::read(&json!({})).unwrap();
    let (limits, reference) = (Limits::default(), WorkflowReference::default());
    let input = Arc::new(json!(1));
    assert!(simulate(&plan, input, &none, &limits, reference).is_err());
}

#[test]
fn c2_a_child_is_named_in_every_word_about_its_cancellation() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    for manner in [Manner::Stops, Manner::Rejects, Manner::Deaf] {
        let script: Script = Rc::new(|_| success(json!(1)));
        let mut life = Life::new(&plan, &json!(1), script, Limits::default());
        life.claim();
        let Effect::Start(start) = ({
            life.step(Manner::Stops);
            effects(&plan, &life.run).remove(0)
        }) else {
            panic!("an agent starts first");
        };
        life.step(Manner::Stops);
        life.cancel().unwrap();
        life.finish(manner);
        let child = Some(child_of(&start));
        let answers = life.log.iter().filter_map(|event| match &event.payload {
            Payload::NodeCancelRequested(request) => Some(request.child_id.clone()),
            Payload::NodeCancelAcknowledged(answer)
            | Payload::NodeCancelNotAcknowledged(answer) => Some(answer.child_id.clone()),
            _ => None,
        });
        assert_eq!(answers.collect::<Vec<_>>(), [child.clone(), child]);
    }
}

/// Every clause of run-machine.md; those that only a shell can keep have their tests there.
const CLAUSES: &str = "d1 d2 d3 d4 o1 o2 o3 o4 o5 k1 k2 k3 k4 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 n1 \
    w3 w4 c1 c2 c3 c4 v1 v2 v3 u1 u2 h1 h2 h3";
const OF_THE_SERVER: &str = "n2 n4 w1 w2 w5 w6 w7 w8 w9";
/// Of the server too, and not named there yet.
const UNNAMED: &str = "n3 h4";

/// The words of the names of all test functions below a folder.
fn words_of_tests(folder: &Path, words: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            words_of_tests(&path, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| {
                let line = line
                    .trim_start()
                    .strip_prefix("async ")
                    .unwrap_or(line.trim_start());
                line.strip_prefix("fn ")?.split_once('(')
            });
            for (name, _) in names {
                words.extend(name.split('_').map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_clause_of_the_run_machine_has_a_test_that_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut words = BTreeSet::new();
    words_of_tests(&root.join("tests"), &mut words);
    words_of_tests(&root.join("src"), &mut words);
    let missing = |clauses: &str, words: &BTreeSet<String>| -> Vec<String> {
        let clauses = clauses.split_whitespace().map(str::to_owned);
        clauses.filter(|clause| !words.contains(clause)).collect()
    };
    assert_eq!(missing(CLAUSES, &words), [""; 0]);
    words_of_tests(&root.join("../server"), &mut words);
    assert_eq!(missing(OF_THE_SERVER, &words), [""; 0]);
    assert_eq!(
        missing(UNNAMED, &words).join(" "),
        UNNAMED,
        "it has a test now"
    );
}
