//! `edge.endpoint-unknown`, `edge.duplicate`, `edge.schema-incompatible` (wire-format.md G6,
//! G7, S6; seed A publication rule 6).

use super::{report, shown, title};
use crate::code::Code;
use crate::schema::Compatibility;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::{End, Route, Survey};

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for route in &survey.edges {
        let edge = route.edge;
        for (end, side, node) in [
            (route.source, "source", &edge.source.node_id),
            (route.target, "target", &edge.target.node_id),
        ] {
            if matches!(end, End::NoNode) {
                let message = format!(
                    "The {side} of the edge names node {}, which does not exist; remove the edge \
                     or connect it again.",
                    shown(node.as_str())
                );
                let location = Location::edge_at(&edge.id, format!("/{side}/nodeId"));
                report(issues, Code::EdgeEndpointUnknown, location, message);
            }
        }
        if let Some(first) = route.twin {
            let message = format!(
                "The edge {} joins the same two ports; remove one of them.",
                shown(first.as_str())
            );
            let location = Location::edge(&edge.id);
            report(issues, Code::EdgeDuplicate, location, message);
        }
        if let Some(message) = incompatible(survey, route) {
            report(
                issues,
                Code::EdgeSchemaIncompatible,
                Location::edge(&edge.id),
                message,
            );
        }
    }
}

/// Why what the source emits can never fit. With mappings the target's schema is that of the
/// mapped input, so nothing is compared (G7).
fn incompatible(survey: &Survey<'_>, route: &Route<'_>) -> Option<String> {
    let wire = route.wire()?;
    let source = *survey.nodes.get(wire.source.0)?;
    let target = *survey.nodes.get(wire.target.0)?;
    if !target.kind.mappings().is_empty() {
        return None;
    }
    let (from, into) = (wire.source.1.name, wire.target.1.name);
    let emitted = survey.port_schema(source, from)?;
    let wanted = survey.port_schema(target, into)?;
    (survey.compare(emitted, wanted) == Compatibility::Incompatible).then(|| {
        let name = |node: &'_ crate::graph::Node, port| {
            let schema = node.ports.get(port);
            schema.map(|schema| shown(schema.as_str()).to_string())
        };
        format!(
            "What {} emits on {from} ({}) can never fit {into} of {} ({}); choose another schema \
             or add a mapping.",
            title(source),
            name(source, from).unwrap_or_default(),
            title(target),
            name(target, into).unwrap_or_default(),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validate::cases::{edge, found, graph, input, merge, output, push, sound};

    #[test]
    fn rule_6_both_ends_exist() {
        let mut graph = sound();
        push(
            &mut graph,
            "edges",
            edge("f", "ghost.data", "nowhere.input"),
        );
        let issues = [
            "edge.endpoint-unknown edge f /source/nodeId",
            "edge.endpoint-unknown edge f /target/nodeId",
        ];
        assert_eq!(found(&graph), issues);
        assert!(found(&sound()).is_empty());
    }

    #[test]
    fn g6_two_edges_between_the_same_ports() {
        let mut graph = sound();
        push(&mut graph, "edges", edge("d", "in.data", "out.input"));
        assert_eq!(found(&graph), ["edge.duplicate edge e"]);
        // Another target is another edge.
        let mut graph = sound();
        push(&mut graph, "nodes", output("out2", "std.any"));
        push(&mut graph, "edges", edge("d", "in.data", "out2.input"));
        assert!(found(&graph).is_empty());
    }

    #[test]
    fn s6_only_what_can_never_fit_is_refused() {
        let document = |schema: serde_json::Value| {
            graph(
                json!([input("in", "claim"), output("out", "std.text")]),
                &[("e", "in.data", "out.input")],
                json!({"claim": schema}),
            )
        };
        let issues = ["edge.schema-incompatible edge e"];
        assert_eq!(found(&document(json!({"type": "object"}))), issues);
        assert!(found(&document(json!({"type": ["object", "string"]}))).is_empty());
        assert!(found(&document(json!(true))).is_empty());
    }

    #[test]
    fn g7_with_mappings_the_edge_is_not_compared() {
        let mut document = graph(
            json!([input("in", "claim"), output("out", "std.text")]),
            &[("e", "in.data", "out.input")],
            json!({"claim": {"type": "object"}}),
        );
        document["nodes"][1]["mappings"] =
            json!([{"targetPointer": "", "binding": {"kind": "literal", "value": "done"}}]);
        assert!(found(&document).is_empty());
        document["nodes"][1]["mappings"] = json!([]);
        assert_eq!(found(&document), ["edge.schema-incompatible edge e"]);
    }

    #[test]
    fn g4_every_edge_into_a_merge_fits_its_items() {
        let mut node = merge("m");
        node["ports"]["items"] = json!("std.text");
        let document = graph(
            json!([input("in", "n"), node, output("out", "std.any")]),
            &[("e1", "in.data", "m.items"), ("e2", "m.data", "out.input")],
            json!({"n": {"type": "integer"}}),
        );
        assert_eq!(found(&document), ["edge.schema-incompatible edge e1"]);
    }

    #[test]
    fn s6_the_same_two_schemas_are_compared_once() {
        let alternatives = |word: &str| {
            let branch = |i: usize| json!({"properties": {format!("{word}{i}"): {"minimum": i}}});
            let any: Vec<_> = (0..6)
                .map(|_| json!({"anyOf": (0..6).map(branch).collect::<Vec<_>>()}))
                .collect();
            json!({ "allOf": any })
        };
        let mut nodes = vec![input("in", "a")];
        let mut edges = Vec::new();
        for i in 0..90 {
            nodes.push(output(&format!("out{i}"), "b"));
            edges.push((format!("e{i}"), format!("out{i}.input")));
        }
        let edges: Vec<_> = edges
            .iter()
            .map(|(id, to)| (id.as_str(), "in.data", to.as_str()))
            .collect();
        let schemas = json!({"a": alternatives("x"), "b": alternatives("y")});
        let start = std::time::Instant::now();
        assert!(found(&graph(json!(nodes), &edges, schemas)).is_empty());
        let taken = start.elapsed();
        assert!(taken < std::time::Duration::from_secs(10), "{taken:?}");
    }
}
