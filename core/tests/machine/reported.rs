//! Reported faults of other systems that only a live run shows.

use serde_json::json;
use sluicegate_core::run::{EdgeState, RunStatus, Start};

use super::live::{World, failure, success};
use super::plans::{node, plan, policy};

#[test]
fn b058_a_retry_has_the_first_input_and_key_and_emits_once() {
    let mapping = json!({"target": "/v", "binding": {"kind": "path",
        "nodeId": "in", "port": "data", "pointer": "/v"}});
    let extra =
        json!({"mappings": [mapping], "policy": policy(2, &["action.timeout"], "fail-run")});
    let nodes = [
        node("in", "input", json!({})),
        node("a", "action", extra),
        node("o", "output", json!({})),
    ];
    let plan = plan(
        &nodes,
        &["e1: in.data > a.input", "e2: a.success > o.input"],
    );
    let script = |start: &Start| {
        if start.attempt == 1 {
            failure("action.timeout")
        } else {
            success(json!({"v": "err"}))
        }
    };
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!({"v": "x"}));
    world.claim();
    world.finish();
    let run = world.run();
    assert_eq!(run.status(), RunStatus::Succeeded);
    let [first, second] = run.state(plan.find_node("a").unwrap()).attempts.as_slice() else {
        panic!("two attempts");
    };
    assert_eq!(first.input.hash, second.input.hash);
    assert_eq!(first.semantic_group, second.semantic_group);
    assert!(first.idempotency_key.is_some());
    assert_eq!(first.idempotency_key, second.idempotency_key);
    let edge = run.edge_state(plan.find_edge("e2").unwrap()).unwrap();
    assert_eq!(edge.settled.state, EdgeState::Emitted);
    assert_eq!(edge.settled.source.attempt, Some(2));
    let settled = |event: &&sluicegate_core::run::Event| {
        event.payload.type_name() == "edge.settled" && event.payload_value()["edgeId"] == "e2"
    };
    assert_eq!(world.log.iter().filter(settled).count(), 1);
}
