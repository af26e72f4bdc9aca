//! Reported faults of other systems, retold for ours: what no golden vector can say about them,
//! and that none of those that belong to the core is left without a test. The folder
//! `tests/vectors/cases` holds the rest.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what broke by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::compile::{compile, dry_run};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::node_type::NodeType;
use sluicegate_core::plan::{Plan, Policy};
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, Refused, simulate};
use sluicegate_core::value;

/// A graph: nodes of any members, edges as `id: node.port > node.port`.
fn graph(nodes: &[Value], edges: &[&str], schemas: &Value) -> Graph {
    let edge = |edge: &&str| {
        let (id, ends) = edge.split_once(": ").unwrap();
        let (source, target) = ends.split_once(" > ").unwrap();
        let end = |end: &str| {
            let (node, port) = end.split_once('.').unwrap();
            json!({"nodeId": node, "port": port})
        };
        json!({"id": id, "source": end(source), "target": end(target)})
    };
    let edges: Vec<Value> = edges.iter().map(edge).collect();
    let document = json!({"schemaVersion": 1, "nodes": nodes, "edges": edges, "schemas": schemas});
    Graph::read(&document).unwrap()
}

/// A node whose ports are `std.any` where their type does not fix them.
fn node(id: &str, node_type: &str, extra: Value) -> Value {
    let mut node = json!({"id": id, "type": node_type, "ports": {}});
    for port in NodeType::parse(node_type).unwrap().ports() {
        node["ports"][port.name] = port.fixed_schema.unwrap_or("std.any").into();
    }
    for (name, member) in extra.as_object().unwrap() {
        match (name.as_str(), member) {
            ("ports", Value::Object(ports)) => {
                node["ports"].as_object_mut().unwrap().extend(ports.clone());
            }
            _ => node[name] = member.clone(),
        }
    }
    node
}

fn plan(graph: &Graph) -> Plan {
    let compiled = compile(graph, None, &Limits::default());
    Plan::load(
        compiled
            .plan
            .unwrap_or_else(|| panic!("{:?}", compiled.issues)),
    )
    .unwrap()
}

/// The result of a simulation (R2).
fn run(graph: &Graph, input: Value, fixtures: &Value) -> Value {
    let fixtures = Fixtures::read(fixtures).unwrap();
    let limits = Limits::default();
    let reference = WorkflowReference::default();
    let done = simulate(&plan(graph), Arc::new(input), &fixtures, &limits, reference).unwrap();
    value::to_value(&done.result()).unwrap()
}

#[test]
fn b010_the_failure_names_the_node_and_the_pointer() {
    let logic =
        json!({"logic": {"version": 1, "expr": {"gt": [{"read": "/missing"}, {"literal": 3}]}}});
    let nodes = [
        node("in", "input", json!({})),
        node("g", "gate", logic),
        node("p", "output", json!({})),
        node("f", "output", json!({})),
    ];
    let edges = [
        "e1: in.data > g.input",
        "e2: g.pass > p.input",
        "e3: g.fail > f.input",
    ];
    let result = run(
        &graph(&nodes, &edges, &json!({})),
        json!({"n": 1}),
        &json!({}),
    );
    let failure = &result["failure"];
    assert_eq!(failure["nodeId"], "g");
    assert!(
        failure["message"].as_str().unwrap().contains("/missing"),
        "{failure}"
    );
}

#[test]
fn b056_a_wait_grows_to_its_maximum_and_never_overflows() {
    let policy = |kind: &str, initial: u64, maximum: u64| -> Policy {
        serde_json::from_value(
            json!({"maxAttempts": 5, "retryOn": [], "onExhausted": "fail-run",
            "backoff": {"kind": kind, "initialMs": initial, "maximumMs": maximum}}),
        )
        .unwrap()
    };
    let most = (1 << 53) - 1;
    for (kind, initial, maximum) in [
        ("exponential", 1_000, 60_000),
        ("exponential", 1_000, 3_000),
        ("fixed", 500, 500),
        ("exponential", most, most),
        ("exponential", 1, u64::MAX),
        ("exponential", 0, most),
        ("fixed", 0, 0),
    ] {
        let policy = policy(kind, initial, maximum);
        let mut before = 0;
        for n in (0..=64).chain([65, 1_000, u32::MAX]) {
            let wait = policy.delay_after(n).0;
            let expected = match (kind, n) {
                ("fixed", _) => initial,
                _ => (u128::from(initial) << (n.saturating_sub(1)).min(64)).min(maximum.into())
                    as u64,
            };
            assert_eq!(wait, expected, "{kind} {initial}/{maximum} after {n}");
            assert!(before <= wait && wait <= maximum);
            before = wait;
        }
    }
    let waits = |initial, maximum| -> Vec<u64> {
        let policy = policy("exponential", initial, maximum);
        (1..5).map(|n| policy.delay_after(n).0).collect()
    };
    assert_eq!(waits(1_000, 60_000), [1_000, 2_000, 4_000, 8_000]);
    assert_eq!(waits(1_000, 3_000), [1_000, 2_000, 3_000, 3_000]);
}

const SECRET: &str = "sk-live-Zq81-never-shown";

/// Ways that a secret meets a refusal: the graph, what its failure names.
fn refusals() -> Vec<(&'static str, Graph, [&'static str; 2])> {
    let schemas = json!({
        "secretive": {"type": "object", "properties": {"secret": {"writeOnly": true}}},
        "port": {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]},
        "short": {"type": "object", "properties": {"t": {"type": "string", "maxLength": 8}}},
        "number": {"type": "object", "properties": {"secret": {"type": "number"}}}
    });
    let input = node("in", "input", json!({"ports": {"data": "secretive"}}));
    let policy = json!({"maxAttempts": 1, "retryOn": [], "onExhausted": "fail-run",
        "backoff": {"kind": "fixed", "initialMs": 0, "maximumMs": 0}});
    let path =
        json!({"kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": "/secret"});
    let action = |binding: &Value, target: &str, schema: &str| {
        let extra = json!({"action": {"actionId": "x", "contractVersion": 1}, "failurePolicy": policy,
            "mappings": [{"targetPointer": target, "binding": binding}], "ports": {"input": schema}});
        let nodes = [
            input.clone(),
            node("a", "action", extra),
            node("o", "output", json!({})),
        ];
        graph(
            &nodes,
            &["e1: in.data > a.input", "e2: a.success > o.input"],
            &schemas,
        )
    };
    let template = json!({"kind": "template", "template": "Bearer {{ s }}", "variables": [{"name": "s", "binding": path}]});
    let two = |middle: Value| {
        let ends = [
            node("p", "output", json!({})),
            node("f", "output", json!({})),
        ];
        let nodes = [&[input.clone(), middle], &ends[..]].concat();
        graph(
            &nodes,
            &[
                "e1: in.data > m.input",
                "e2: m.pass > p.input",
                "e3: m.fail > f.input",
            ],
            &schemas,
        )
    };
    let lt = json!({"logic": {"version": 1, "expr": {"lt": [{"read": "/secret"}, {"literal": 5}]}},
        "ports": {"input": "secretive", "pass": "secretive", "fail": "secretive"}});
    let checks = json!({"schema": "number", "ports": {"pass": "number"}});
    vec![
        (
            "mapping",
            action(&path, "/port", "port"),
            ["/port", "integer"],
        ),
        ("template", action(&template, "/t", "short"), ["/t", "8"]),
        ("gate", two(node("m", "gate", lt)), ["lt", "number"]),
        (
            "validator",
            two(node("m", "validator", checks)),
            ["/secret", "number"],
        ),
    ]
}

#[test]
fn b107_a_refusal_names_the_place_and_the_type_and_never_the_value() {
    let fixtures = json!({"nodes": {"a": {"attempts": [{"outcome": "success", "output": 1}]}}});
    for (name, graph, named) in refusals() {
        let needed = name == "mapping" || name == "template";
        let fixtures = if needed { fixtures.clone() } else { json!({}) };
        let input = json!({"secret": SECRET});
        let result = run(&graph, input.clone(), &fixtures);
        let said = match name {
            // A validator's refusal is its output, not a failure of the run.
            "validator" => result["outputs"]["f"].to_string(),
            _ => result["failure"]["message"].as_str().unwrap().to_owned(),
        };
        for word in named {
            assert!(said.contains(word), "{name} names {word}: {said}");
        }
        assert!(!result.to_string().contains(SECRET), "{name}: {result}");
        let report = dry_run(&graph, Some(&input), None, None, &Limits::default());
        assert!(
            !value::to_value(&report)
                .unwrap()
                .to_string()
                .contains(SECRET),
            "{name}"
        );
    }
}

#[test]
fn b107_an_input_that_does_not_fit_is_refused_without_its_value() {
    let schemas = json!({"port": {"type": "object", "properties": {"port": {"type": "integer"}, "of": {"enum": ["a"]}}}});
    let nodes = [
        node("in", "input", json!({"ports": {"data": "port"}})),
        node("o", "output", json!({})),
    ];
    let graph = graph(&nodes, &["e1: in.data > o.input"], &schemas);
    for (input, place) in [
        (json!({"port": SECRET}), "/port"),
        (json!({"of": SECRET}), "/of"),
        (json!(SECRET), ""),
    ] {
        let fixtures = Fixtures::default();
        let reference = WorkflowReference::default();
        let limits = Limits::default();
        match simulate(
            &plan(&graph),
            Arc::new(input.clone()),
            &fixtures,
            &limits,
            reference,
        ) {
            Err(Refused::Input {
                pointer, message, ..
            }) => {
                assert_eq!(pointer, place);
                assert!(!message.contains(SECRET), "{message}");
            }
            other => panic!("{other:?}"),
        }
        let report = dry_run(&graph, Some(&input), None, None, &limits);
        assert!(!report.valid);
        assert!(
            !value::to_value(&report)
                .unwrap()
                .to_string()
                .contains(SECRET)
        );
    }
}

/// Cases of the core that need a later version of the graph schema.
const LATER: [&str; 2] = ["B097", "B119"];

#[test]
fn every_case_of_the_core_has_a_vector_or_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = root.join("../shared/cases/cases.jsonl");
    let Ok(list) = std::fs::read_to_string(&list) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "{} is missing",
            list.display()
        );
        println!("skipped: {} is not there", list.display());
        return;
    };
    let mut texts = String::new();
    for folder in ["core/src", "core/tests", "tests/vectors"] {
        for path in files(&root.join(folder)) {
            texts += &std::fs::read_to_string(path).unwrap();
        }
    }
    let mut cases = 0;
    for line in list.lines() {
        let case = value::read(line).unwrap();
        let id = case["id"].as_str().unwrap();
        if case["layer"] != "core" || LATER.contains(&id) {
            continue;
        }
        cases += 1;
        let vector = texts.contains(&format!("\"case\": \"{id}\""));
        let test = texts.contains(&format!("fn {}_", id.to_lowercase()));
        assert!(vector || test, "no vector and no test names the case {id}");
    }
    assert!(cases > 0, "no case of the core was found");
}

/// The texts below a folder: sources and vectors.
fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap();
    let inside = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => files(&path),
        Some(end) if end == "rs" || end == "json" => vec![path],
        _ => Vec::new(),
    };
    entries
        .flat_map(|entry| inside(entry.unwrap().path()))
        .collect()
}
