//! Order, skipping, failure and retries, seen through simulations.

use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::ids::NodeId;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, NodeStatus, Payload, RunStatus, WorkflowReference};
use sluicegate_core::simulate::{Fixtures, Refused, Simulation, simulate};

use super::plans::{node, plan, plan_with, policy};

pub(crate) fn run(plan: &Plan, input: Value, fixtures: Value) -> Simulation {
    try_run(plan, input, fixtures).unwrap()
}

pub(crate) fn try_run(plan: &Plan, input: Value, fixtures: Value) -> Result<Simulation, Refused> {
    let fixtures = Fixtures::read(&fixtures).unwrap();
    simulate(
        plan,
        Arc::new(input),
        &fixtures,
        &Limits::default(),
        WorkflowReference::default(),
    )
}

/// Events in short: the type's last words and whom they speak of.
pub(crate) fn story(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let payload = event.payload_value();
            let who = ["nodeId", "edgeId"]
                .iter()
                .find_map(|member| payload.get(*member).and_then(Value::as_str))
                .unwrap_or("");
            let how = ["outcomePort", "state", "status", "reason"]
                .iter()
                .find_map(|member| payload.get(*member).and_then(Value::as_str))
                .unwrap_or("");
            format!("{} {who} {how}", event.payload.type_name())
                .trim_end()
                .to_owned()
        })
        .collect()
}

/// All that events say, but for what V1 and D3 let differ: who holds the run, who asked for it,
/// the names and keys of children, times, usage and cost.
pub(crate) fn told(events: &[Event]) -> Vec<(&'static str, Value)> {
    let apart = [
        "mode",
        "workflowId",
        "workflowKey",
        "workflowRevision",
        "actor",
        "origin",
        "permissionDigest",
        "idempotencyKey",
        "childId",
        "deadlineAt",
        "nextAttemptAt",
        "nextAttemptOffsetMs",
        "scheduledSequence",
        "usage",
        "cost",
    ];
    events
        .iter()
        .filter(|event| !matches!(event.payload, Payload::RunClaimed(_)))
        .map(|event| {
            let mut payload = event.payload_value();
            let members = payload.as_object_mut().unwrap();
            members.retain(|name, _| !apart.contains(&name.as_str()));
            (event.payload.type_name(), payload)
        })
        .collect()
}

fn status(plan: &Plan, run: &Simulation, id: &str) -> NodeStatus {
    run.run.state(plan.find_node(id).unwrap()).status()
}

/// The outputs as one value.
fn outputs(done: &Simulation) -> Option<Value> {
    let outputs = done.result().outputs?;
    Some(serde_json::to_value(outputs).unwrap())
}

fn diamond(gate: Value) -> Plan {
    plan(
        &[
            node("in", "input", json!({})),
            node("g", "gate", json!({ "expr": gate })),
            node("no", "output", json!({})),
            node("yes", "output", json!({})),
        ],
        &[
            "e1: in.data > g.input",
            "e2: g.pass > yes.input",
            "e3: g.fail > no.input",
        ],
    )
}

#[test]
fn o3_o4_events_stand_in_their_order() {
    let plan = diamond(json!({"read": "/ok"}));
    let done = run(&plan, json!({"ok": true}), json!({}));
    assert_eq!(
        story(&done.events),
        [
            "run.queued",
            "run.claimed",
            "node.ready in",
            "node.attempt.started in",
            "node.attempt.settled in data",
            "edge.settled e1 emitted",
            "node.ready g",
            "node.attempt.started g",
            "node.attempt.settled g pass",
            "edge.settled e2 emitted",
            "edge.settled e3 closed",
            "node.skipped no input-closed",
            "node.ready yes",
            "node.attempt.started yes",
            "node.attempt.settled yes succeeded",
            "run.succeeded",
        ]
    );
    assert_eq!(outputs(&done), Some(json!({"yes": {"ok": true}})));
}

#[test]
fn a3_a_gate_that_cannot_decide_fails_the_run_b010() {
    let plan = diamond(json!({"gt": [{"read": "/missing"}, {"literal": 3}]}));
    let done = run(&plan, json!({"n": 1}), json!({}));
    assert_eq!(done.run.status(), RunStatus::Failed);
    let failure = done.result().failure.unwrap();
    assert_eq!(failure.code, "gate.path-missing");
    assert_eq!(failure.node_id, Some(NodeId::from("g")));
    assert_eq!(status(&plan, &done, "yes"), NodeStatus::Skipped);
    let tail = &story(&done.events)[8..];
    assert_eq!(
        tail,
        [
            "node.attempt.settled g failed",
            "edge.settled e2 skipped",
            "edge.settled e3 skipped",
            "node.skipped no run-failed",
            "node.skipped yes run-failed",
            "run.failed g",
        ]
    );
}

fn merge_of_gates(exprs: [Value; 2]) -> Plan {
    let [a, b] = exprs;
    plan(
        &[
            node("in", "input", json!({})),
            node("g1", "gate", json!({ "expr": a })),
            node("g2", "gate", json!({ "expr": b })),
            node(
                "m",
                "merge",
                json!({"ports": {"items": "std.any", "data": "std.merged"}}),
            ),
            node("o", "output", json!({})),
            node("o1", "output", json!({})),
            node("o2", "output", json!({})),
        ],
        &[
            "a: in.data > g1.input",
            "b: in.data > g2.input",
            "z1: g1.pass > m.items",
            "c2: g2.pass > m.items",
            "f1: g1.fail > o1.input",
            "f2: g2.fail > o2.input",
            "m: m.data > o.input",
        ],
    )
}

#[test]
fn k2_a_merge_takes_every_emitted_item_in_edge_order_b005() {
    let plan = merge_of_gates([json!({"literal": true}), json!({"literal": true})]);
    let done = run(&plan, json!(7), json!({}));
    assert_eq!(
        done.result().outputs.unwrap()["o"],
        json!([
            {"edgeId": "c2", "nodeId": "g2", "port": "pass", "data": 7},
            {"edgeId": "z1", "nodeId": "g1", "port": "pass", "data": 7}
        ])
    );
}

#[test]
fn k2_a_merge_runs_once_with_one_closed_input_b011() {
    let plan = merge_of_gates([json!({"literal": true}), json!({"literal": false})]);
    let done = run(&plan, json!(7), json!({}));
    let starts = story(&done.events);
    let merges = starts.iter().filter(|s| *s == "node.attempt.started m");
    assert_eq!(merges.count(), 1);
    let outputs = done.result().outputs.unwrap();
    assert_eq!(outputs["o"].as_array().unwrap().len(), 1);
    assert_eq!(outputs["o2"], json!(7));
}

#[test]
fn k2_a_merge_without_any_input_is_skipped_b003() {
    let plan = merge_of_gates([json!({"literal": false}), json!({"literal": false})]);
    let done = run(&plan, json!(7), json!({}));
    assert!(story(&done.events).contains(&"node.skipped m no-input".to_owned()));
    assert_eq!(status(&plan, &done, "o"), NodeStatus::Skipped);
    assert_eq!(done.run.status(), RunStatus::Succeeded);
}

fn one_agent(failure_policy: Value) -> Plan {
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

fn agent_fails_then(code: &str) -> Value {
    json!({"nodes": {"a": {"attempts": [
        {"outcome": "failure", "code": code, "simulatedDurationMs": 5},
        {"outcome": "success", "output": "fine", "simulatedDurationMs": 7}]}}})
}

#[test]
fn a1_a_retryable_failure_is_tried_again_v1() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    let done = run(&plan, json!("x"), agent_fails_then("agent.timeout"));
    assert_eq!(outputs(&done), Some(json!({"ok": "fine"})));
    assert_eq!(
        &story(&done.events)[7..15],
        [
            "node.attempt.started a",
            "node.child.waiting a",
            "node.attempt.settled a failed",
            "node.retry.scheduled a",
            "run.claimed",
            "node.retry.started a",
            "node.attempt.started a",
            "node.child.waiting a",
        ]
    );
    let offsets: Vec<u64> = done
        .events
        .iter()
        .map(|event| event.virtual_offset_ms.unwrap().0)
        .collect();
    assert_eq!(&offsets[7..15], [0, 0, 5, 5, 15, 15, 15, 15]);
    assert_eq!(done.duration.0, 22);
    let groups: Vec<u32> = done.run.nodes()[1]
        .attempts
        .iter()
        .map(|attempt| attempt.semantic_group)
        .collect();
    assert_eq!(groups, [1, 2], "N1: the first child ended for sure");
}

#[test]
fn a1_a_code_that_is_not_listed_is_not_retried() {
    let plan = one_agent(policy(5, &["agent.timeout"], "fail-run"));
    let done = run(&plan, json!("x"), agent_fails_then("agent.unavailable"));
    assert_eq!(done.run.status(), RunStatus::Failed);
    assert_eq!(done.result().failure.unwrap().code, "agent.unavailable");
}

#[test]
fn w12_a_permanent_code_is_never_retried_even_when_listed() {
    let plan = one_agent(policy(5, &["agent.declined"], "fail-run"));
    let done = run(&plan, json!("x"), agent_fails_then("agent.declined"));
    assert_eq!(done.run.nodes()[1].attempts.len(), 1);
}

#[test]
fn a1_emit_failure_gives_the_failure_port_b008() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let done = run(&plan, json!("x"), agent_fails_then("agent.timeout"));
    assert_eq!(done.run.status(), RunStatus::Succeeded);
    assert_eq!(
        outputs(&done),
        Some(
            json!({"bad": {"code": "agent.timeout", "message": "agent.timeout",
            "nodeId": "a", "attempt": 1, "classification": "retryable"}})
        )
    );
    assert_eq!(status(&plan, &done, "a"), NodeStatus::Failed);
}

#[test]
fn a2_a_refusal_ends_the_run_refused_and_has_no_child() {
    let plan = one_agent(policy(5, &["permission.denied"], "fail-run"));
    let done = run(&plan, json!("x"), agent_fails_then("permission.denied"));
    assert_eq!(done.run.status(), RunStatus::Refused);
    assert!(!story(&done.events).contains(&"node.child.waiting a".to_owned()));
    let plan = one_agent(policy(5, &[], "emit-failure"));
    let done = run(&plan, json!("x"), agent_fails_then("permission.denied"));
    assert_eq!(done.run.status(), RunStatus::Succeeded);
    assert_eq!(status(&plan, &done, "a"), NodeStatus::Refused);
}

#[test]
fn m2_a_source_that_did_not_emit_follows_the_policy_a3() {
    let mapping = json!([{"target": "/x", "binding": {"kind": "path", "nodeId": "g", "port": "fail", "pointer": ""}}]);
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("g", "gate", json!({})),
            node(
                "a",
                "action",
                json!({"mappings": mapping, "policy": policy(3, &["mapping.source-missing"], "emit-failure")}),
            ),
            node("o", "output", json!({})),
            node("ok", "output", json!({})),
            node("no", "output", json!({})),
        ],
        &[
            "e1: in.data > g.input",
            "e2: g.pass > a.input",
            "e3: g.fail > no.input",
            "e4: a.failure > o.input",
            "e5: a.success > ok.input",
        ],
    );
    let fixtures = json!({"nodes": {"a": {"attempts": [{"outcome": "success", "output": 1}]}}});
    let done = run(&plan, json!(1), fixtures);
    let attempt = &done.run.state(plan.find_node("a").unwrap()).attempts;
    assert_eq!(attempt.len(), 1);
    assert_eq!(attempt[0].code.as_deref(), Some("mapping.source-missing"));
    assert!(attempt[0].child.is_none());
    assert_eq!(attempt[0].input.payload_id, None, "A3: absent evidence");
    assert_eq!(done.run.status(), RunStatus::Succeeded);
}

#[test]
fn g4_a_validator_says_what_is_wrong_on_its_fail_port() {
    let plan = plan_with(
        &[
            node("in", "input", json!({})),
            node("v", "validator", json!({"schema": "claim"})),
            node("bad", "output", json!({})),
            node("ok", "output", json!({})),
        ],
        &[
            "e1: in.data > v.input",
            "e2: v.pass > ok.input",
            "e3: v.fail > bad.input",
        ],
        json!({"claim": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}),
    );
    let done = run(&plan, json!({"id": 4}), json!({}));
    let errors = &done.result().outputs.unwrap()["bad"]["errors"];
    assert_eq!(errors[0]["path"], "/id");
    assert_eq!(errors[0]["keyword"], "type");
    let done = run(&plan, json!({"id": "c1"}), json!({}));
    assert_eq!(outputs(&done), Some(json!({"ok": {"id": "c1"}})));
}

#[test]
fn x2_x5_missing_and_unfit_fixtures_are_named_all_of_them() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("a", "agent", json!({})),
            node("d", "agent-decision", json!({})),
            node("o", "output", json!({})),
            node("p", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: a.success > d.input",
            "e3: d.pass > o.input",
            "e4: d.fail > p.input",
        ],
    );
    let wrong =
        json!({"nodes": {"d": {"attempts": [{"outcome": "success", "output": 1}]}, "zz": {}}});
    let Err(Refused::Fixtures(errors)) = try_run(&plan, json!(1), wrong) else {
        panic!("fixtures were accepted");
    };
    let named: Vec<(&str, Option<&str>)> = errors
        .iter()
        .map(|e| (e.node_id.as_str(), e.pointer.as_deref()))
        .collect();
    assert_eq!(
        named,
        [
            ("a", None),
            ("d", Some("/nodes/d/attempts/0/outcome")),
            ("zz", Some("/nodes/zz"))
        ]
    );
}

#[test]
fn x4_the_same_simulation_is_the_same_bytes() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    let text = || {
        let done = run(
            &plan,
            json!({"b": 1, "a": 2}),
            agent_fails_then("agent.timeout"),
        );
        serde_json::to_string(&done.result()).unwrap()
    };
    assert_eq!(text(), text());
}

#[test]
fn x1_a_nodes_duration_stands_for_attempts_that_have_none() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    let fixtures = json!({"nodes": {"a": {"simulatedDurationMs": 40, "attempts": [
        {"outcome": "failure", "code": "agent.timeout", "simulatedDurationMs": 5},
        {"outcome": "success", "output": "fine"}]}}});
    let done = run(&plan, json!("x"), fixtures);
    assert_eq!(done.duration.0, 5 + 10 + 40);
}

#[test]
fn a6_messages_and_failure_envelopes_are_bounded() {
    let plan = one_agent(policy(1, &[], "emit-failure"));
    let long = "ä".repeat(500_000);
    let fixtures = json!({"nodes": {"a": {"attempts": [
        {"outcome": "failure", "code": long, "message": long}]}}});
    let done = run(&plan, json!("x"), fixtures);
    assert_eq!(done.run.status(), RunStatus::Succeeded);
    let told = serde_json::to_string(&done.events).unwrap();
    assert!(told.len() < 40_000, "{} bytes", told.len());
}

#[test]
fn j4_a_merge_that_nests_too_deeply_is_too_large() {
    let mut nodes = vec![node("n000", "input", json!({}))];
    let mut edges = Vec::new();
    for at in 1..40 {
        nodes.push(node(
            &format!("n{at:03}"),
            "merge",
            json!({"ports": {"items": "std.any", "data": "std.merged"}}),
        ));
        edges.push(format!("e{at:03}: n{:03}.data > n{at:03}.items", at - 1));
    }
    nodes.push(node("out", "output", json!({})));
    edges.push("z: n039.data > out.input".to_owned());
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let plan = plan(&nodes, &edges);
    let done = run(&plan, json!({}), json!({}));
    let failure = done.result().failure.unwrap();
    assert_eq!(failure.code, "node.output-too-large");
    for payload in &done.payloads {
        let text = sluicegate_core::value::canonical(&payload.value);
        assert!(
            sluicegate_core::value::read(&text).is_ok(),
            "{}",
            payload.id
        );
    }
}

#[test]
fn r1_a_run_that_reaches_no_output_fails() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("g", "gate", json!({"expr": {"literal": false}})),
            node("o", "output", json!({})),
        ],
        &["e1: in.data > g.input", "e2: g.pass > o.input"],
    );
    let done = run(&plan, json!(1), json!({}));
    assert_eq!(done.result().failure.unwrap().code, "run.no-output");
}

#[test]
fn v2_a_simulation_costs_nothing() {
    let plan = one_agent(policy(2, &["agent.timeout"], "fail-run"));
    let done = run(&plan, json!("x"), agent_fails_then("agent.timeout"));
    let Some(Payload::RunSucceeded(end)) = done.events.last().map(|e| &e.payload) else {
        panic!("it did not succeed");
    };
    let usage = serde_json::to_value(&end.ended.usage).unwrap();
    assert_eq!(usage["state"], "not-applicable");
    assert_eq!(usage["includedChildRunIds"], json!([]));
    assert_eq!(usage["actionInvocations"], 0);
}

#[test]
fn a4_what_enters_a_node_is_held_to_its_port() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("d", "agent-decision", json!({})),
            node("o", "output", json!({"ports": {"input": "std.text"}})),
            node("p", "output", json!({})),
        ],
        &[
            "e1: in.data > d.input",
            "e2: d.pass > o.input",
            "e3: d.fail > p.input",
        ],
    );
    // What enters a node is checked against its own port (A4).
    let fixtures = json!({"nodes": {"d": {"attempts": [{"outcome": "pass", "data": 1}]}}});
    let done = run(&plan, json!(1), fixtures);
    assert_eq!(done.result().failure.unwrap().code, "node.input-invalid");
}
