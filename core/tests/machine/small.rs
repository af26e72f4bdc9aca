//! The laws for every small graph: all graphs of up to four nodes, with every policy and every
//! way in which their children can end (architecture.md "Tests").
//!
//! A graph is an input, up to two nodes between, and outputs, wired in every way in which each
//! port that can be chosen is used. Which output takes which port is one graph, since outputs
//! differ by name alone; the names are given in both orders, for they order what is ready.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::compile::compile;
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, simulate};

use super::laws::script;
use super::life::{Life, Manner, hold, keep_all_laws};
use super::order::told;

/// A node between input and outputs, with one way to be configured.
#[derive(Debug, Clone)]
pub(crate) struct Middle {
    pub(crate) node_type: &'static str,
    members: Value,
    /// The ports that it can choose.
    ports: &'static [&'static str],
    /// How its child can end: the attempts of its fixture. None: it has no child.
    pub(crate) ends: Vec<Value>,
}

/// Every configuration of every type.
pub(crate) fn middles() -> Vec<Middle> {
    let mut all = Vec::new();
    for node_type in ["agent", "agent-decision", "action"] {
        for (max_attempts, on_exhausted) in [
            (1, "fail-run"),
            (1, "emit-failure"),
            (2, "fail-run"),
            (2, "emit-failure"),
        ] {
            all.push(with_child(node_type, max_attempts, on_exhausted));
        }
    }
    let inline = |node_type, members: Value, ports| Middle {
        node_type,
        members,
        ports,
        ends: Vec::new(),
    };
    for expr in [
        json!({"literal": true}),
        json!({"literal": false}),
        json!({"exists": "/x"}),
        json!({"eq": [{"read": "/missing"}, {"literal": 1}]}),
    ] {
        let logic = json!({"logic": {"version": 1, "expr": expr}});
        all.push(inline("gate", logic, &["pass", "fail"]));
    }
    for schema in ["anything", "nothing"] {
        let members = json!({"schema": schema});
        all.push(inline("validator", members, &["pass", "fail"]));
    }
    all.push(inline("merge", json!({"mode": "all"}), &["data"]));
    all
}

fn with_child(node_type: &'static str, max_attempts: u32, on_exhausted: &str) -> Middle {
    let emits = on_exhausted == "emit-failure";
    let ports: &[&str] = match (node_type, emits) {
        ("agent-decision", true) => &["pass", "fail", "failure"],
        ("agent-decision", false) => &["pass", "fail"],
        (_, true) => &["success", "failure"],
        (_, false) => &["success"],
    };
    let is_action = node_type == "action";
    let busy = if is_action {
        "action.timeout"
    } else {
        "agent.timeout"
    };
    let broken = if is_action {
        "action.failed"
    } else {
        "agent.declined"
    };
    let failure = |code: &str| json!({"outcome": "failure", "code": code});
    let good = match node_type {
        "agent-decision" => vec![
            json!({"outcome": "pass", "data": {"d": 1}}),
            json!({"outcome": "fail", "data": {"d": 2}}),
        ],
        _ => vec![json!({"outcome": "success", "output": {"s": 1}})],
    };
    let last = |ends: &mut Vec<Value>, first: &[Value]| {
        let others = [failure(busy), failure(broken), failure("permission.denied")];
        for end in good.iter().chain(&others) {
            ends.push(first.iter().chain([end]).cloned().collect());
        }
    };
    let mut ends = Vec::new();
    last(&mut ends, &[]);
    if max_attempts > 1 {
        // What is retried ends in every way again.
        ends.retain(|end| end[0]["code"] != busy);
        last(&mut ends, &[failure(busy)]);
    }
    let policy = json!({"maxAttempts": max_attempts, "retryOn": [busy], "onExhausted": on_exhausted,
        "backoff": {"kind": "fixed", "initialMs": 10, "maximumMs": 10}});
    let mut members = json!({"failurePolicy": policy});
    members[if is_action { "action" } else { "agent" }] = if is_action {
        json!({"actionId": "act", "contractVersion": 1})
    } else {
        json!({"agentId": "ag", "revision": 1})
    };
    Middle {
        node_type,
        members,
        ports,
        ends,
    }
}

/// A node's place before it has a name: the input is 0, then the middles, then outputs.
pub(crate) type Port = (usize, &'static str);

/// One wiring: the middles, what each takes, and what each output takes.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) middles: Vec<Middle>,
    pub(crate) takes: Vec<Vec<Port>>,
    pub(crate) outputs: Vec<Port>,
}

impl Shape {
    pub(crate) fn ports(&self) -> Vec<Port> {
        let mut ports = vec![(0, "data")];
        for (at, middle) in self.middles.iter().enumerate() {
            ports.extend(middle.ports.iter().map(|port| (at + 1, *port)));
        }
        ports
    }

    /// Whether a node between or an output takes this port.
    pub(crate) fn takes(&self, port: &Port) -> bool {
        self.outputs.contains(port) || self.takes.iter().any(|takes| takes.contains(port))
    }

    /// Every port is taken by someone.
    fn is_whole(&self) -> bool {
        self.ports().iter().all(|port| self.takes(port))
    }

    pub(crate) fn document(&self, names: &[&str]) -> Value {
        let node = |at: usize, node_type: &str, ports: Value, members: &Value| {
            let mut node = json!({"id": names[at], "type": node_type, "ports": ports});
            let own: Map<String, Value> = members.as_object().unwrap().clone();
            node.as_object_mut().unwrap().extend(own);
            node
        };
        let none = json!({});
        let mut nodes = vec![node(0, "input", json!({"data": "std.any"}), &none)];
        let mut edges = Vec::new();
        let mut edge = |source: &Port, target: usize, port: &str| {
            let id = format!("e{}", edges.len());
            edges.push(
                json!({"id": id, "source": {"nodeId": names[source.0], "port": source.1},
                "target": {"nodeId": names[target], "port": port}}),
            );
        };
        for (at, (middle, takes)) in self.middles.iter().zip(&self.takes).enumerate() {
            let (ports, entry) = match middle.node_type {
                "merge" => (json!({"items": "std.any", "data": "std.merged"}), "items"),
                "gate" => (
                    json!({"input": "std.any", "pass": "std.any", "fail": "std.any"}),
                    "input",
                ),
                "validator" => {
                    let (pass, fail) = (&middle.members["schema"], "std.validation-errors");
                    (
                        json!({"input": "std.any", "pass": pass, "fail": fail}),
                        "input",
                    )
                }
                "agent-decision" => (
                    json!({"input": "std.any", "pass": "std.any", "fail": "std.any", "failure": "std.failure"}),
                    "input",
                ),
                _ => (
                    json!({"input": "std.any", "success": "std.any", "failure": "std.failure"}),
                    "input",
                ),
            };
            nodes.push(node(at + 1, middle.node_type, ports, &middle.members));
            takes.iter().for_each(|source| edge(source, at + 1, entry));
        }
        for (at, source) in self.outputs.iter().enumerate() {
            let at = self.middles.len() + 1 + at;
            nodes.push(node(at, "output", json!({"input": "std.any"}), &none));
            edge(source, at, "input");
        }
        let schemas: BTreeMap<_, _> = self
            .middles
            .iter()
            .filter_map(|middle| middle.members["schema"].as_str())
            .map(|id| {
                (
                    id,
                    if id == "anything" {
                        json!(true)
                    } else {
                        json!({"type": "null"})
                    },
                )
            })
            .collect();
        json!({"schemaVersion": 1, "nodes": nodes, "edges": edges, "schemas": schemas, "layout": {}})
    }

    /// Every combination of ends of the children, as fixtures.
    fn fixtures(&self, names: &[&str]) -> Vec<Value> {
        let mut all = vec![Map::new()];
        for (at, middle) in self.middles.iter().enumerate() {
            if middle.ends.is_empty() {
                continue;
            }
            let one = |fixtures: &Map<String, Value>| {
                let fixtures = fixtures.clone();
                let ends = middle.ends.iter().map(move |end| {
                    let mut fixtures = fixtures.clone();
                    fixtures.insert(names[at + 1].to_owned(), json!({"attempts": end}));
                    fixtures
                });
                ends.collect::<Vec<_>>()
            };
            all = all.iter().flat_map(one).collect();
        }
        all.into_iter()
            .map(|nodes| json!({ "nodes": nodes }))
            .collect()
    }
}

/// Every shape of up to `most` nodes.
fn shapes(most: usize) -> Vec<Shape> {
    let mut open = vec![Shape {
        middles: Vec::new(),
        takes: Vec::new(),
        outputs: Vec::new(),
    }];
    let mut found = Vec::new();
    while let Some(shape) = open.pop() {
        let ports = shape.ports();
        let size = 1 + shape.middles.len() + shape.outputs.len();
        if !shape.outputs.is_empty() && shape.is_whole() {
            found.push(shape.clone());
        }
        if size == most {
            continue;
        }
        // Outputs come last and in order, so that each choice of ports stands once.
        for port in &ports {
            if shape.outputs.last().is_none_or(|last| last <= port) {
                let mut more = shape.clone();
                more.outputs.push(*port);
                open.push(more);
            }
        }
        if shape.outputs.is_empty() && size + 1 < most {
            for middle in middles() {
                for takes in choices(&ports, middle.node_type == "merge") {
                    let mut more = shape.clone();
                    more.middles.push(middle.clone());
                    more.takes.push(takes);
                    open.push(more);
                }
            }
        }
    }
    found
}

/// What a node may take: one port, or for a merge any that are not none.
fn choices(ports: &[Port], many: bool) -> Vec<Vec<Port>> {
    if !many {
        return ports.iter().map(|port| vec![*port]).collect();
    }
    (1..1_u32 << ports.len())
        .map(|chosen| {
            let chosen = ports
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1);
            chosen.map(|(_, port)| *port).collect()
        })
        .collect()
}

fn catalogue() -> Catalogue {
    Catalogue::read(&json!({
        "agents": [{"agentId": "ag", "revision": 1, "name": "A", "status": "active", "provider": "p",
            "model": "m", "structuredOutput": true, "requiredPermissions": []}],
        "actions": [{"id": "act", "contractVersion": 1, "description": "", "requiredPermissions": [],
            "inputSchema": true, "outputSchema": true, "timeoutMs": 1000, "idempotency": "required",
            "risk": "read", "cancellation": "cooperative", "retryableCodes": []}],
    }))
    .unwrap()
}

pub(crate) fn plan(document: &Value) -> Plan {
    let graph = Graph::read(document).unwrap();
    let compiled = compile(&graph, Some(&catalogue()), &Limits::default());
    let errors: Vec<_> = compiled
        .issues
        .iter()
        .filter(|issue| issue.is_error())
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{document}");
    Plan::load(compiled.plan.unwrap()).unwrap()
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn every_graph_of_up_to_four_nodes_keeps_every_law() {
    let shapes = shapes(4);
    let runs: usize = shapes.iter().map(|shape| all_runs(shape, &NAMES)).sum();
    // Fewer would mean that some are not looked at any more.
    assert_eq!((shapes.len(), runs), (88, 778));
}

/// Names decide nothing but the plan order (O1): where that is the same, so are the runs.
#[test]
fn every_graph_keeps_every_law_whatever_its_nodes_are_called() {
    let other = ["d", "c", "b", "a"];
    let mut shapes = shapes(4);
    shapes.retain(|shape| order(shape, &NAMES) != order(shape, &other));
    let runs: usize = shapes.iter().map(|shape| all_runs(shape, &other)).sum();
    assert_eq!((shapes.len(), runs), (24, 90));
}

/// The places of a shape's nodes in plan order.
fn order(shape: &Shape, names: &[&str]) -> Vec<Option<usize>> {
    let plan = plan(&shape.document(names));
    let place = |id: &str| names.iter().position(|name| *name == id);
    let nodes = plan.nodes().iter();
    nodes.map(|node| place(node.id.as_str())).collect()
}

/// Runs a shape with every way in which its children can end; how many there are.
fn all_runs(shape: &Shape, names: &[&str]) -> usize {
    let plan = plan(&shape.document(names));
    let all = shape.fixtures(names);
    all.iter()
        .for_each(|fixtures| keeps_every_law(&plan, fixtures));
    all.len()
}

fn keeps_every_law(plan: &Plan, fixtures: &Value) {
    let input = json!({"x": 1});
    let read = Fixtures::read(fixtures).unwrap();
    let limits = Limits::default();
    let reference = WorkflowReference::default();
    let done = simulate(plan, Arc::new(input.clone()), &read, &limits, reference).unwrap();
    hold(plan, &done.run, &done.events);
    let script: super::life::Script = Rc::new(script(fixtures));
    let mut live = Life::new(plan, &input, Rc::clone(&script), limits);
    live.claim();
    while live.step(Manner::Stops) {}
    assert_eq!(told(&done.events), told(&live.log), "V1");
    keep_all_laws(plan, &input, &script);
}
