//! The samples compile without an issue, and their cases together reach every node and every
//! output port (`samples/README.md`).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

mod sampled;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::compile::{compile, dry_run};
use sluicegate_core::gate::Expr;
use sluicegate_core::graph::{Direction, Graph};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::{Document, Plan};
use sluicegate_core::run::{RunStatus, WorkflowReference};
use sluicegate_core::simulate::{Fixtures, Simulation, simulate};
use sluicegate_core::validate::Issue;
use sluicegate_core::value::{self, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    value::read(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The sample workflows' keys.
fn keys() -> Vec<String> {
    let mut keys: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    keys.sort();
    assert!(keys.len() >= 3, "{keys:?}");
    keys
}

fn graph(key: &str) -> Graph {
    Graph::read(&read(&folder().join(format!("{key}.json")))).unwrap()
}

fn catalogue() -> Catalogue {
    Catalogue::read(&sampled::catalogue()).unwrap()
}

fn plan(key: &str) -> Document {
    let compiled = compile(&graph(key), Some(&catalogue()), &Limits::default());
    assert_eq!(compiled.issues, [], "{key}");
    compiled.plan.unwrap()
}

#[test]
fn every_sample_compiles_without_an_issue() {
    for key in keys() {
        let plan = Plan::load(plan(&key)).unwrap();
        // What is stored loads again as the same plan.
        let stored = value::to_value(plan.document()).unwrap();
        assert_eq!(Plan::read(&stored).unwrap().hash(), plan.hash());
    }
}

#[test]
fn every_node_of_a_sample_has_its_place() {
    for key in keys() {
        let graph = graph(&key);
        let mut places = BTreeSet::new();
        for node in &graph.nodes {
            let place = graph
                .layout
                .get(&node.id)
                .unwrap_or_else(|| panic!("{key}: {}", node.id));
            assert_eq!((place.x % 300, place.y % 150), (0, 0), "{key}: {}", node.id);
            assert!(
                places.insert((place.x, place.y)),
                "{key}: {} overlaps",
                node.id
            );
            assert!(node.label.is_some(), "{key}: {}", node.id);
        }
        for edge in &graph.edges {
            let x = |id| graph.layout[id].x;
            let (from, to) = (&edge.source.node_id, &edge.target.node_id);
            assert!(
                x(from) < x(to),
                "{key}: {} runs from right to left",
                edge.id
            );
        }
    }
}

fn cases(key: &str) -> Vec<String> {
    let mut cases: Vec<String> = fs::read_dir(folder().join(key))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".input.json").map(str::to_owned))
        .collect();
    cases.sort();
    cases
}

fn run(key: &str, case: &str, plan: &Plan) -> Simulation {
    let file = |kind: &str| read(&folder().join(key).join(format!("{case}.{kind}.json")));
    let fixtures = Fixtures::read(&file("fixtures")).unwrap();
    let input = Arc::new(file("input"));
    let reference = WorkflowReference::default();
    simulate(plan, input, &fixtures, &Limits::default(), reference)
        .unwrap_or_else(|e| panic!("{key}/{case}: {e:?}"))
}

#[test]
fn the_cases_of_a_sample_reach_every_node_and_port() {
    for key in keys() {
        let plan = Plan::load(plan(&key)).unwrap();
        let mut reached = BTreeSet::new();
        for case in cases(&key) {
            let simulation = run(&key, &case, &plan);
            assert_eq!(
                simulation.run.status(),
                RunStatus::Succeeded,
                "{key}/{case}"
            );
            for (node, state) in plan.nodes().iter().zip(simulation.run.nodes()) {
                if let Some(port) = &state.outcome_port {
                    reached.insert((node.id.to_string(), port.clone()));
                } else if state.status().as_str() == "succeeded" {
                    reached.insert((node.id.to_string(), String::new()));
                }
            }
        }
        let mut wanted = BTreeSet::new();
        for node in plan.nodes() {
            let ports = node.task.node_type().ports().iter();
            let outputs = ports.filter(|port| port.direction == Direction::Output);
            let names: Vec<&str> = outputs.map(|port| port.name).collect();
            if names.is_empty() {
                wanted.insert((node.id.to_string(), String::new()));
            }
            wanted.extend(
                names
                    .into_iter()
                    .map(|name| (node.id.to_string(), name.to_owned())),
            );
        }
        assert_eq!(reached, wanted, "{key}");
    }
}

#[test]
fn the_dry_run_accepts_what_the_cases_put_in() {
    for key in keys() {
        for case in cases(&key) {
            let input = read(&folder().join(&key).join(format!("{case}.input.json")));
            let catalogue = catalogue();
            let limits = Limits::default();
            let report = dry_run(&graph(&key), Some(&input), Some(&catalogue), None, &limits);
            assert!(report.valid, "{key}/{case}: {:?}", report.issues);
            assert!(
                report
                    .references
                    .iter()
                    .all(|reference| reference.available)
            );
        }
    }
}

#[test]
fn rules_of_scripted_agents_are_well_formed() {
    let definitions = read(&folder().join("agents.json"));
    for agent in definitions.as_array().unwrap() {
        let rules = agent["rules"].as_array().unwrap();
        for rule in rules {
            let expr = Expr::parse(&rule["when"], None);
            assert!(expr.is_ok(), "{}: {:?}", agent["agentId"], expr);
            assert_eq!(rule["then"].as_object().unwrap().len(), 1);
        }
        // Something always answers.
        assert_eq!(rules.last().unwrap()["when"], json!({"literal": true}));
    }
}

/// Every document that lacks one member or item of the given one, at any depth.
fn without_one(document: &Value) -> Vec<Value> {
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        let mut child = |name: &str, value: &Value| {
            let place = format!("{at}/{}", value::escape(name));
            places(value, &place, found);
            found.push(place);
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| child(name, value)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, value)| child(&index.to_string(), value)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(document, "", &mut found);
    let removed = |place: &String| {
        let mut copy = document.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        let name = name.replace("~1", "/").replace("~0", "~");
        match copy.pointer_mut(parent).unwrap() {
            Value::Object(members) => drop(members.remove(&name)),
            Value::Array(items) => drop(items.remove(name.parse().unwrap())),
            _ => unreachable!("only containers have children"),
        }
        copy
    };
    found.iter().map(removed).collect()
}

#[test]
fn g1_a_graph_has_a_plan_exactly_when_it_has_no_error_in_any_order() {
    let (limits, catalogue) = (Limits::default(), catalogue());
    let (mut plans, mut refused) = (0, 0);
    for key in keys() {
        let documents = without_one(&read(&folder().join(format!("{key}.json"))));
        // Some of them are enough to meet every kind of member, and the rest take long.
        let graphs = documents.iter().step_by(5);
        for graph in graphs.filter_map(|document| Graph::read(document).ok()) {
            let compiled = compile(&graph, Some(&catalogue), &limits);
            let issues = &compiled.issues;
            let error = issues.iter().any(Issue::is_error);
            assert_eq!(compiled.plan.is_none(), error, "{graph:?}\n{issues:?}");
            assert!(issues.is_sorted_by(|a, b| a.order(b).is_le()));
            let mut reversed = graph.clone();
            reversed.nodes.reverse();
            reversed.edges.reverse();
            assert_eq!(compiled, compile(&reversed, Some(&catalogue), &limits));
            match compiled.plan {
                Some(plan) => {
                    Plan::load(plan).unwrap();
                    plans += 1;
                }
                None => refused += 1,
            }
        }
    }
    assert!(
        plans > 20 && refused > 60,
        "{plans} plans, {refused} refused"
    );
}
