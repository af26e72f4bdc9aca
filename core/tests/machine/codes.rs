//! What each code of an attempt does to its node and its run (wire-format.md §12; run-machine.md
//! A1, A2, A4), and what its output is held to.

use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{AttemptStatus, ChildOutcome, Classification, Run, RunStatus, Start};
use sluicegate_core::simulate::{Refused, Simulation};

use super::live::{World, success};
use super::order::{run, try_run};
use super::plans::{node, plan_with, policy};

/// The codes of §12 that an attempt of an agent or an action can end with, by class.
const RETRYABLE: &str = "agent.timeout agent.rate-limited agent.unavailable action.timeout \
    action.unavailable";
const PERMANENT: &str = "agent.output-invalid agent.declined agent.cancelled action.failed \
    action.output-invalid action.cancelled gate.path-missing gate.type-mismatch \
    mapping.source-missing node.input-invalid node.output-invalid node.output-too-large \
    of.no.row";
const REFUSED: &str = "permission.denied agent.revision-missing agent.inactive agent.refused \
    action.version-missing action.risk-forbidden action.reentrant action.refused";

/// One child of this type between an input and outputs; `on_exhausted` with two attempts and a
/// retry on `code`.
fn plan(node_type: &str, code: &str, on_exhausted: &str) -> Plan {
    let members = json!({"policy": policy(2, &[code], on_exhausted), "ports": {"input": "std.any",
        "success": "std.text", "pass": "std.text", "fail": "std.any", "failure": "std.failure"}});
    let mut middle = node("x", node_type, members);
    let decides = node_type == "agent-decision";
    let unused: &[&str] = if decides {
        &["success"]
    } else {
        &["pass", "fail"]
    };
    for port in unused {
        middle["ports"].as_object_mut().unwrap().remove(*port);
    }
    let mut nodes = vec![node("in", "input", json!({})), middle];
    let mut edges = vec!["e0: in.data > x.input".to_owned()];
    let ports: &[&str] = if decides {
        &["pass", "fail"]
    } else {
        &["success"]
    };
    let emits = on_exhausted == "emit-failure";
    for port in ports.iter().chain(emits.then_some(&"failure")) {
        nodes.push(node(port, "output", json!({})));
        edges.push(format!("e-{port}: x.{port} > {port}.input"));
    }
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    plan_with(&nodes, &edges, json!({}))
}

/// A simulation in which every attempt ends like this.
fn child(node_type: &str, code: &str, on_exhausted: &str, attempt: &Value) -> Simulation {
    let fixtures = json!({"nodes": {"x": {"attempts": [attempt]}}});
    run(&plan(node_type, code, on_exhausted), json!(1), fixtures)
}

/// How the node's attempts ended: how many there were, and the last one's status and class.
fn ended(run: &Run) -> (usize, AttemptStatus, Option<Classification>) {
    let mut nodes = run.nodes().iter();
    let node = nodes.find(|node| node.attempts.iter().any(|attempt| attempt.code.is_some()));
    let attempts = &node.unwrap().attempts;
    let last = attempts.last().unwrap();
    (attempts.len(), last.status.unwrap(), last.classification)
}

#[test]
fn a1_a2_every_code_ends_its_node_as_its_class_says() {
    let (retryable, permanent) = (
        Some(Classification::Retryable),
        Some(Classification::Permanent),
    );
    let rows = [
        (
            RETRYABLE,
            (2, AttemptStatus::Failed, retryable),
            RunStatus::Failed,
        ),
        (
            PERMANENT,
            (1, AttemptStatus::Failed, permanent),
            RunStatus::Failed,
        ),
        (
            REFUSED,
            (1, AttemptStatus::Refused, permanent),
            RunStatus::Refused,
        ),
    ];
    for (codes, expected, status) in rows {
        for code in codes.split_whitespace() {
            for node_type in ["agent", "agent-decision", "action"] {
                let attempt = json!({"outcome": "failure", "code": code});
                let done = child(node_type, code, "fail-run", &attempt);
                assert_eq!(ended(&done.run), expected, "{node_type}: {code}");
                assert_eq!(done.run.status(), status, "{node_type}: {code}");
                assert_eq!(done.result().failure.unwrap().code, code);
                // The failure port takes every class alike.
                let done = child(node_type, code, "emit-failure", &attempt);
                assert_eq!(ended(&done.run), expected, "{node_type}: {code}");
                let outputs = done.result().outputs.unwrap();
                assert_eq!(outputs["failure"]["code"], code);
            }
        }
    }
}

#[test]
fn a1_codes_of_a_contract_are_retryable_for_its_action_alone() {
    let attempt = json!({"outcome": "failure", "code": "x.busy"});
    for (node_type, attempts) in [("action", 2), ("agent", 1), ("agent-decision", 1)] {
        let done = child(node_type, "x.busy", "fail-run", &attempt);
        assert_eq!(ended(&done.run).0, attempts, "{node_type}");
    }
}

#[test]
fn a4_what_a_child_returns_is_held_to_its_port() {
    let decision = json!({"decision": "pass", "data": 1});
    for (node_type, code) in [
        ("agent", "agent.output-invalid"),
        ("agent-decision", "agent.output-invalid"),
        ("action", "action.output-invalid"),
    ] {
        let answer = decision.clone();
        let script = move |_: &Start| match node_type {
            "agent-decision" => ChildOutcome::Decision {
                answer: Arc::new(answer.clone()),
            },
            _ => success(json!(1)),
        };
        for (on_exhausted, status) in [
            ("fail-run", RunStatus::Failed),
            ("emit-failure", RunStatus::Succeeded),
        ] {
            let plan = plan(node_type, code, on_exhausted);
            let mut world = World::new(&plan, Box::new(script.clone()));
            world.queue(json!(1));
            world.claim();
            world.finish();
            // Never tried again, although the policy asks for it.
            let expected = (1, AttemptStatus::Failed, Some(Classification::Permanent));
            assert_eq!(ended(&world.run()), expected, "{node_type}");
            assert_eq!(world.run().status(), status, "{node_type}");
            let attempts = world
                .run()
                .nodes()
                .iter()
                .flat_map(|node| node.attempts.clone())
                .collect::<Vec<_>>();
            assert!(
                attempts
                    .iter()
                    .any(|attempt| attempt.code.as_deref() == Some(code))
            );
        }
    }
}

#[test]
fn x3_x5_fixtures_are_held_to_the_same_ports_before_the_run_starts() {
    for (node_type, attempt, member) in [
        (
            "agent",
            json!({"outcome": "success", "output": 1}),
            "output",
        ),
        (
            "agent-decision",
            json!({"outcome": "pass", "data": 1}),
            "data",
        ),
        (
            "action",
            json!({"outcome": "success", "output": 1}),
            "output",
        ),
    ] {
        let plan = plan(node_type, "x", "fail-run");
        let fixtures = json!({"nodes": {"x": {"attempts": [attempt]}}});
        let Err(Refused::Fixtures(errors)) = try_run(&plan, json!(1), fixtures) else {
            panic!("{node_type}: it ran");
        };
        let pointers: Vec<_> = errors
            .iter()
            .map(|error| error.pointer.as_deref())
            .collect();
        let place = format!("/nodes/x/attempts/0/{member}");
        assert_eq!(pointers, [Some(place.as_str())], "{node_type}");
    }
    let fits = json!({"outcome": "success", "output": "t"});
    assert_eq!(
        child("agent", "x", "fail-run", &fits).run.status(),
        RunStatus::Succeeded
    );
}

#[test]
fn a4_what_another_node_emits_is_held_to_its_port() {
    let ports = json!({"ports": {"items": "std.any", "data": "few"}});
    let nodes = [
        node("in", "input", json!({})),
        node("m", "merge", ports),
        node("o", "output", json!({})),
    ];
    let edges = ["e1: in.data > m.items", "e2: m.data > o.input"];
    let plan = plan_with(
        &nodes,
        &edges,
        json!({"few": {"type": "array", "maxItems": 0}}),
    );
    let done = run(&plan, json!(1), json!({}));
    let failure = done.result().failure.unwrap();
    assert_eq!(
        (&*failure.code, failure.node_id),
        ("node.output-invalid", Some("m".into()))
    );
}
