//! M2 against the truth: small graphs are run with every choice of ports.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::validate::cases::{action, agent, decision, gate, input, merge, policy};
use crate::validate::memory::Memory;

/// A node behind the input: how it chooses, and the ports that its wires come from, as
/// positions in the list of all ports before it.
#[derive(Debug, Clone)]
struct Step {
    kind: Is,
    from: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    /// One port.
    Plain,
    /// One of two ports.
    Choice,
    /// One of three ports.
    Decision,
    /// A port and one that is never chosen.
    Failing,
    /// One port, and runs when any of its wires emitted.
    Merge,
}

impl Is {
    /// The ports, those that can be chosen first, and how many these are.
    fn ports(self) -> (&'static [&'static str], usize) {
        match self {
            Self::Plain => (&["success"], 1),
            Self::Choice => (&["pass", "fail"], 2),
            Self::Decision => (&["pass", "fail", "failure"], 3),
            Self::Failing => (&["success", "failure"], 1),
            Self::Merge => (&["data"], 1),
        }
    }

    fn node(self, id: &str) -> Value {
        match self {
            Self::Plain => action(id),
            Self::Choice => gate(id, "std.any"),
            Self::Decision => {
                let mut node = decision(id);
                node["failurePolicy"] = policy("emit-failure");
                node
            }
            Self::Failing => agent(id),
            Self::Merge => merge(id),
        }
    }
}

/// Every port of a graph: the node's position, 0 being the input, and the port's name.
fn ports(steps: &[Step]) -> Vec<(usize, &'static str)> {
    let mut ports = vec![(0, "data")];
    for (at, step) in steps.iter().enumerate() {
        ports.extend(step.kind.ports().0.iter().map(|port| (at + 1, *port)));
    }
    ports
}

fn id(at: usize) -> String {
    format!("n{at}")
}

/// The document, with a mapping that reads every port so that all of them are followed.
fn document(steps: &[Step]) -> Graph {
    let ports = ports(steps);
    let mut nodes = vec![input("n0", "std.any")];
    let mut edges = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        nodes.push(step.kind.node(&id(at + 1)));
        let into = if step.kind == Is::Merge {
            "items"
        } else {
            "input"
        };
        for from in &step.from {
            let (node, port) = ports[*from];
            edges.push(json!({"id": format!("e{}", edges.len()),
                "source": {"nodeId": id(node), "port": port},
                "target": {"nodeId": id(at + 1), "port": into}}));
        }
    }
    let reads: Vec<Value> = ports
        .iter()
        .map(|(node, port)| {
            json!({"targetPointer": "", "binding": {"kind": "path", "sourceNodeId": id(*node),
                "sourcePort": port, "pointer": ""}})
        })
        .collect();
    let mut all = action("z");
    all["mappings"] = json!(reads);
    nodes.push(all);
    let document = json!({"schemaVersion": 1, "nodes": nodes, "edges": edges});
    Graph::read(&document).unwrap()
}

/// For each node whether it ran and the port that it chose, in every possible run.
fn runs(steps: &[Step]) -> Vec<Vec<Option<usize>>> {
    // The first port of each node in the list of all ports.
    let ports = ports(steps);
    let first = |node| ports.iter().position(|(of, _)| *of == node).unwrap();
    let mut runs = vec![vec![Some(0)]];
    for (at, step) in steps.iter().enumerate() {
        let mut next = Vec::new();
        for run in runs {
            let emitted = |port: &usize| run.contains(&Some(*port));
            if step.from.iter().any(emitted) {
                for choice in 0..step.kind.ports().1 {
                    let mut run = run.clone();
                    run.push(Some(first(at + 1) + choice));
                    next.push(run);
                }
            } else {
                let mut run = run.clone();
                run.push(None);
                next.push(run);
            }
        }
        runs = next;
    }
    runs
}

/// Holds every pair of reader and port against the truth.
fn judge(steps: &[Step]) {
    let graph = document(steps);
    let limits = Limits::default();
    let mut memory = Memory::default();
    let survey = Survey::new(&graph, None, &limits, &mut memory);
    let flow = Flow::new(&survey);
    let order = flow.order().unwrap();
    let past = Past::new(&survey, &flow, &order);
    let (ports, runs) = (ports(steps), runs(steps));
    let mut upstream = vec![vec![false; steps.len() + 1]; steps.len() + 1];
    for (at, step) in steps.iter().enumerate() {
        let reader = at + 1;
        for from in &step.from {
            let source = ports[*from].0;
            let before = upstream[source].clone();
            upstream[reader][source] = true;
            for (seen, too) in upstream[reader].iter_mut().zip(before) {
                *seen |= too;
            }
        }
        for (bit, (node, port)) in ports.iter().enumerate() {
            let (source, found) = survey.find(&id(*node)).unwrap();
            let port = found.node_type().port(port).unwrap();
            let (index, _) = survey.find(&id(reader)).unwrap();
            let said = past.of(source, port, index);
            if !upstream[reader][*node] {
                assert_eq!(said, Reliance::NotUpstream, "{steps:?} {reader} {bit}");
                continue;
            }
            let mut reached = runs.iter().filter(|run| run[reader].is_some());
            let truth = if reached.all(|run| run[*node] == Some(bit)) {
                Reliance::Certain
            } else {
                Reliance::Uncertain
            };
            assert_eq!(said, truth, "port {bit} for node {reader}: {steps:?}");
        }
    }
}

/// All graphs of some more nodes, each a plain one, a choice, or a merge of two wires.
fn all(steps: &mut Vec<Step>, left: usize, each: &mut impl FnMut(&[Step])) {
    if left == 0 {
        return each(steps);
    }
    let count = ports(steps).len();
    let mut next = |kind, from| {
        steps.push(Step { kind, from });
        all(steps, left - 1, each);
        steps.pop();
    };
    for a in 0..count {
        next(Is::Plain, vec![a]);
        next(Is::Choice, vec![a]);
        for b in a + 1..count {
            next(Is::Merge, vec![a, b]);
        }
    }
}

#[test]
fn m2_every_graph_of_an_input_and_four_nodes_agrees_with_all_its_runs() {
    let mut graphs = 0;
    all(&mut Vec::new(), 4, &mut |steps| {
        graphs += 1;
        judge(steps);
    });
    assert_eq!(graphs, 4_636);
}

fn step(at: usize) -> impl Strategy<Value = (Is, Vec<prop::sample::Index>)> {
    let kind = prop::sample::select(vec![
        Is::Plain,
        Is::Choice,
        Is::Decision,
        Is::Failing,
        Is::Merge,
        Is::Merge,
    ]);
    (
        kind,
        prop::collection::vec(any::<prop::sample::Index>(), 1..4.min(at + 2)),
    )
}

fn graph() -> impl Strategy<Value = Vec<Step>> {
    let steps: Vec<_> = (0..9).map(step).collect();
    (steps, 1_usize..10).prop_map(|(drawn, count)| {
        let mut steps = Vec::new();
        for (kind, from) in drawn.into_iter().take(count) {
            let known = ports(&steps).len();
            let mut from: Vec<usize> = from.iter().map(|index| index.index(known)).collect();
            from.sort_unstable();
            from.dedup();
            from.truncate(if kind == Is::Merge { 3 } else { 1 });
            steps.push(Step { kind, from });
        }
        steps
    })
}

proptest! {
    #[test]
    fn m2_larger_graphs_agree_with_all_their_runs(steps in graph()) {
        judge(&steps);
    }
}
