//! `graph.input-count`, `graph.output-missing`, `graph.cycle` (seed A publication rules 1
//! and 3; wire-format.md Q2). A cycle is named by its smallest node.

use super::{report, shown};
use crate::code::Code;
use crate::graph::Kind;
use crate::validate::flow::Flow;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;

pub(super) fn check(survey: &Survey<'_>, flow: &Flow, cyclic: bool, issues: &mut Vec<Issue>) {
    let inputs = survey.nodes.iter().filter(|node| node.kind == Kind::Input);
    let inputs: Vec<_> = inputs
        .map(|node| shown(node.id.as_str()).to_string())
        .collect();
    if inputs.len() != 1 {
        let message = match inputs.as_slice() {
            [] => "The graph has no input node; add one.".to_owned(),
            several => format!(
                "The graph has {} input nodes; keep one of them: {}.",
                several.len(),
                several.join(", ")
            ),
        };
        report(issues, Code::GraphInputCount, Location::graph(), message);
    }
    if !survey
        .nodes
        .iter()
        .any(|node| matches!(node.kind, Kind::Output(_)))
    {
        let message = "The graph has no output node; add one for each result.";
        report(issues, Code::GraphOutputMissing, Location::graph(), message);
    }
    if !cyclic {
        return;
    }
    for cycle in flow.cycles() {
        let nodes = cycle.iter().filter_map(|at| survey.nodes.get(*at));
        let ids: Vec<_> = nodes.map(|node| &node.id).collect();
        if let Some(first) = ids.first() {
            let round = ids.iter().chain([first]);
            let round: Vec<_> = round.map(|id| shown(id.as_str()).to_string()).collect();
            let round = round.join(" → ");
            let message = format!("The edges form a cycle: {round}. Remove one of them.");
            report(issues, Code::GraphCycle, Location::node(first), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::graph::Graph;
    use crate::limits::Limits;
    use crate::validate::cases::{
        catalogue, edge, found, graph, input, merge, output, push, sound,
    };
    use crate::validate::check;

    #[test]
    fn rule_1_exactly_one_input() {
        let mut none = sound();
        none["nodes"].as_array_mut().unwrap().remove(0);
        none["edges"] = json!([]);
        let issues = [
            "graph.input-count graph",
            "port.arity node out /ports/input",
        ];
        assert_eq!(found(&none), issues);
        let mut two = sound();
        push(&mut two, "nodes", input("in2", "std.any"));
        push(&mut two, "nodes", output("out2", "std.any"));
        push(&mut two, "edges", edge("f", "in2.data", "out2.input"));
        assert_eq!(found(&two), ["graph.input-count graph"]);
        assert!(found(&sound()).is_empty());
    }

    #[test]
    fn rule_1_at_least_one_output() {
        let document = graph(json!([input("in", "std.any")]), &[], json!({}));
        let issues = [
            "graph.output-missing graph",
            "node.dead-end node in /ports/data",
        ];
        assert_eq!(found(&document), issues);
        let mut two = sound();
        push(&mut two, "nodes", output("out2", "std.any"));
        push(&mut two, "edges", edge("f", "in.data", "out2.input"));
        assert!(found(&two).is_empty());
    }

    /// The message of the only cycle, up to the advice.
    fn cycles(document: &serde_json::Value) -> Vec<String> {
        let graph = Graph::read(document).unwrap();
        let catalogue = crate::catalogue::Catalogue::read(&catalogue()).unwrap();
        let issues = check(&graph, Some(&catalogue), &Limits::default());
        issues
            .iter()
            .filter(|issue| issue.code.as_str() == "graph.cycle" && issue.is_error())
            .map(|issue| {
                issue
                    .message
                    .split(['.', ':'])
                    .nth(1)
                    .unwrap()
                    .trim()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn q2_b035_a_cycle_is_one_error_with_its_nodes() {
        let nodes = json!([
            input("in", "std.any"),
            merge("a"),
            merge("b"),
            merge("c"),
            output("o", "std.any")
        ]);
        let mut edges = vec![
            ("e1", "in.data", "b.items"),
            ("e2", "b.data", "a.items"),
            ("e3", "a.data", "c.items"),
            ("e5", "c.data", "o.input"),
        ];
        assert!(found(&graph(nodes.clone(), &edges, json!({}))).is_empty());
        edges.push(("e4", "c.data", "b.items"));
        let document = graph(nodes, &edges, json!({}));
        assert_eq!(found(&document), ["graph.cycle node a"]);
        assert_eq!(cycles(&document), ["a → c → b → a"]);
    }

    #[test]
    fn q2_b033_a_node_wired_to_itself_is_a_cycle() {
        let document = graph(
            json!([input("in", "std.any"), merge("m"), output("o", "std.any")]),
            &[
                ("e1", "in.data", "m.items"),
                ("e2", "m.data", "m.items"),
                ("e3", "m.data", "o.input"),
            ],
            json!({}),
        );
        assert_eq!(found(&document), ["graph.cycle node m"]);
        assert_eq!(cycles(&document), ["m → m"]);
    }

    #[test]
    fn q2_b034_edges_to_nowhere_neither_make_nor_hide_a_cycle() {
        let mut one = sound();
        push(&mut one, "edges", edge("e2", "in.data", "ghost.input"));
        assert_eq!(
            found(&one),
            ["edge.endpoint-unknown edge e2 /target/nodeId"]
        );
        let two = graph(
            json!([
                input("in", "std.any"),
                merge("m1"),
                merge("m2"),
                output("o", "std.any")
            ]),
            &[
                ("e1", "in.data", "m1.items"),
                ("e2", "m1.data", "m2.items"),
                ("e3", "m2.data", "m1.items"),
                ("e4", "m2.data", "o.input"),
                ("e5", "in.data", "ghost.a.input"),
                ("e6", "in.data", "ghost.b.input"),
            ],
            json!({}),
        );
        let issues = [
            "graph.cycle node m1",
            "edge.endpoint-unknown edge e5 /target/nodeId",
            "edge.endpoint-unknown edge e6 /target/nodeId",
        ];
        assert_eq!(found(&two), issues);
    }

    #[test]
    fn q2_one_issue_a_component_and_the_shortest_cycle() {
        let document = graph(
            json!([
                input("in", "std.any"),
                merge("a"),
                merge("b"),
                merge("c"),
                merge("x"),
                merge("y"),
                output("o", "std.any")
            ]),
            &[
                ("e1", "in.data", "a.items"),
                ("e2", "a.data", "b.items"),
                ("e3", "b.data", "c.items"),
                ("e4", "c.data", "a.items"),
                ("e5", "b.data", "a.items"),
                ("e6", "c.data", "y.items"),
                ("e7", "y.data", "x.items"),
                ("e8", "x.data", "y.items"),
                ("e9", "x.data", "o.input"),
            ],
            json!({}),
        );
        assert_eq!(
            found(&document),
            ["graph.cycle node a", "graph.cycle node x"]
        );
        assert_eq!(cycles(&document), ["a → b → a", "x → y → x"]);
    }
}
