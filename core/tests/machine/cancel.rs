//! Cancellation in every state (run-machine.md §8).

use serde_json::json;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    CancelAnswer, ChildOutcome, Command, Effect, NodeStatus, Payload, Refusal, RunStatus, effects,
};

use super::live::{World, ended, failure, one_agent, success, user};
use super::order::story;
use super::plans::{node, plan, policy};

fn cancel() -> Command {
    Command::Cancel {
        requested_by: user(),
        reason: Some("enough".to_owned()),
    }
}

/// What a runtime answers to the cancellation of node `a`.
fn answered(child_id: Option<&str>, refusal: Option<CancelAnswer>) -> Command {
    Command::CancelAnswered {
        node_id: "a".into(),
        attempt: 1,
        child_id: child_id.map(Into::into),
        refusal,
    }
}

fn started(plan: &Plan) -> World<'_> {
    let mut world = World::new(plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    world.claim();
    world.step();
    world
}

#[test]
fn c1_a_queued_run_ends_in_the_requests_own_commit() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| success(json!("hi"))));
    world.queue(json!("x"));
    let decision = world.decide(cancel()).unwrap();
    assert_eq!(
        story(&decision.events),
        [
            "run.cancel.requested  enough",
            "node.skipped in run-cancelled",
            "edge.settled e1 skipped",
            "node.skipped a run-cancelled",
            "edge.settled e2 skipped",
            "edge.settled e3 skipped",
            "node.skipped bad run-cancelled",
            "node.skipped ok run-cancelled",
            "run.cancelled",
        ]
    );
    assert_eq!(world.run().status(), RunStatus::Cancelled);
}

#[test]
fn c1_k3_a_retry_wait_ends_cancelled() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    let mut world = World::new(&plan, Box::new(|_| failure("agent.timeout")));
    world.queue(json!("x"));
    world.claim();
    while world.run().status() != RunStatus::WaitingRetry {
        world.step();
    }
    world.decide(cancel()).unwrap();
    let run = world.run();
    assert_eq!(run.status(), RunStatus::Cancelled);
    let at = plan.find_node("a").unwrap();
    assert_eq!(run.state(at).status(), NodeStatus::Cancelled);
}

#[test]
fn c2_a_cooperative_child_is_asked_and_awaited() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.step();
    world.decide(cancel()).unwrap();
    let owed = effects(&plan, &world.run());
    let [Effect::Cancel(ask)] = owed.as_slice() else {
        panic!("{owed:?}");
    };
    assert!(ask.cooperative && ask.child_id.is_some());
    world
        .decide(Command::CancelAnswered {
            node_id: "a".into(),
            attempt: 1,
            child_id: ask.child_id.clone(),
            refusal: None,
        })
        .unwrap();
    assert!(matches!(
        effects(&plan, &world.run()).as_slice(),
        [Effect::Observe(_)]
    ));
    world
        .decide(Command::ChildSettled {
            node_id: "a".into(),
            attempt: 1,
            result: ended(ChildOutcome::Cancelled),
        })
        .unwrap();
    let told = story(&world.log);
    assert!(!told.iter().any(|line| line.contains("late-ignored")));
    assert_eq!(told.last().unwrap(), "run.cancelled");
    assert_eq!(
        world.run().rollups().usage.total_tokens,
        7,
        "C2: its usage stands there"
    );
}

#[test]
fn c2_a_late_result_is_kept_and_ignored() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let mut world = started(&plan);
    world.step();
    world.decide(cancel()).unwrap();
    world
        .decide(Command::ChildSettled {
            node_id: "a".into(),
            attempt: 1,
            result: ended(success(json!("too late"))),
        })
        .unwrap();
    let told = story(&world.log);
    let at = told
        .iter()
        .position(|line| line.starts_with("node.cancel.requested"))
        .unwrap();
    assert_eq!(
        &told[at..at + 4],
        [
            "node.cancel.requested a",
            "node.cancel.not-acknowledged a rejected",
            "node.result.late-ignored a succeeded",
            "node.attempt.settled a cancelled",
        ]
    );
    // Its output stays as evidence, and goes nowhere.
    let late = world.log.iter().find_map(|event| match &event.payload {
        Payload::LateIgnored(late) => late.output.clone(),
        _ => None,
    });
    let id = late.unwrap().payload_id.unwrap();
    assert_eq!(id.as_str(), "a/1/success");
    assert_eq!(*world.payloads[&id], json!("too late"));
    assert!(told.contains(&"edge.settled e2 skipped".to_owned()));
    assert_eq!(world.run().status(), RunStatus::Cancelled);
}

#[test]
fn c2_an_action_that_cannot_be_stopped_is_not_asked() {
    let deaf = json!({"timeoutMs": 1000, "cancellation": "not-supported", "requiredPermissions": [], "retryableCodes": []});
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("x", "action", json!({ "contract": deaf })),
            node("o", "output", json!({})),
        ],
        &["e1: in.data > x.input", "e2: x.success > o.input"],
    );
    let mut world = started(&plan);
    world.step();
    let decision = world.decide(cancel()).unwrap();
    assert!(
        story(&decision.events)
            .contains(&"node.cancel.not-acknowledged x not-supported".to_owned())
    );
    world.finish();
    assert_eq!(world.run().status(), RunStatus::Cancelled);
}

#[test]
fn c3_an_unknown_child_is_cancelled_by_key() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.decide(cancel()).unwrap();
    let owed = effects(&plan, &world.run());
    let [Effect::Cancel(ask)] = owed.as_slice() else {
        panic!("{owed:?}");
    };
    assert!(ask.child_id.is_none() && ask.idempotency_key.is_some());
    world.decide(answered(None, None)).unwrap();
    let told = story(&world.log);
    assert!(told.contains(&"node.cancel.acknowledged a".to_owned()));
    assert!(told.contains(&"node.attempt.settled a cancelled".to_owned()));
    assert_eq!(world.run().status(), RunStatus::Cancelled);
}

#[test]
fn c3_a_child_that_was_known_to_its_runtime_is_observed() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.decide(cancel()).unwrap();
    world
        .decide(answered(Some("c9"), Some(CancelAnswer::Rejected)))
        .unwrap();
    assert!(story(&world.log).contains(&"node.child.waiting a".to_owned()));
    assert_eq!(world.run().status(), RunStatus::CancelRequested);
    world.finish();
    assert_eq!(world.run().status(), RunStatus::Cancelled);
}

#[test]
fn c3_a_refusal_about_an_unknown_child_leaves_the_cancellation_owed() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.decide(cancel()).unwrap();
    let answer = world.decide(answered(None, Some(CancelAnswer::Timeout)));
    assert_eq!(answer, Err(Refusal::Stale));
    assert!(matches!(
        effects(&plan, &world.run()).as_slice(),
        [Effect::Cancel(_)]
    ));
}

#[test]
fn u1_a_child_that_never_ended_is_not_counted() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
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
    let usage = world.run().rollups().usage;
    assert!(usage.included_child_run_ids.is_empty());
}

#[test]
fn c2_an_acceptance_that_crosses_the_request_is_recorded() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.decide(cancel()).unwrap();
    world
        .decide(Command::ChildAccepted {
            node_id: "a".into(),
            attempt: 1,
            child_id: "c".into(),
            result: None,
        })
        .unwrap();
    assert_eq!(world.run().status(), RunStatus::CancelRequested);
    assert!(matches!(
        effects(&plan, &world.run()).as_slice(),
        [Effect::Cancel(ask)] if ask.child_id.is_some()
    ));
}

#[test]
fn c4_a_second_request_changes_nothing() {
    let plan = one_agent(policy(1, &[], "fail-run"));
    let mut world = started(&plan);
    world.decide(cancel()).unwrap();
    assert!(world.decide(cancel()).unwrap().events.is_empty());
    world.decide(answered(None, None)).unwrap();
    assert_eq!(world.decide(cancel()), Err(Refusal::Terminal));
}
