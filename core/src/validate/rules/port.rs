//! `port.unknown`, `port.direction`, `port.schema-missing`, `port.schema-mismatch`,
//! `port.arity` and `schema.unknown` (wire-format.md G2, G4, G5, G7, G9; seed A "Ports").

use std::collections::BTreeMap;

use super::{report, shown, title};
use crate::code::Code;
use crate::graph::{Direction, Kind, Node, Port};
use crate::ids::{EdgeId, SchemaId};
use crate::schema::Compatibility;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::{End, Route, Survey};
use crate::value::escape;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for node in &survey.nodes {
        names(survey, node, issues);
        if let Some((port, message)) = mismatch(survey, node) {
            report(issues, Code::PortSchemaMismatch, at(node, port), message);
        }
    }
    for route in &survey.edges {
        ends(survey, route, issues);
    }
    arity(survey, issues);
}

fn at(node: &Node, port: &str) -> Location {
    Location::node_at(&node.id, format!("/ports/{}", escape(port)))
}

/// Every port of the type names a schema that exists, and nothing else is named.
fn names(survey: &Survey<'_>, node: &Node, issues: &mut Vec<Issue>) {
    let title = title(node);
    for (name, schema) in &node.ports {
        let Some(port) = node.node_type().port(name) else {
            let known: Vec<_> = node
                .node_type()
                .ports()
                .iter()
                .map(|port| port.name)
                .collect();
            let message = format!(
                "{title} has no port {:?}; name only those of type {}: {}.",
                shown(name),
                node.node_type().as_str(),
                known.join(", ")
            );
            report(issues, Code::PortUnknown, at(node, name), message);
            continue;
        };
        match port.fixed_schema {
            Some(fixed) if *schema != fixed => {
                let message = format!("The port {name} of {title} is always {fixed}; write that.");
                report(issues, Code::PortSchemaMismatch, at(node, name), message);
            }
            _ => unknown(survey, schema, at(node, name), issues),
        }
    }
    if let Kind::Validator(validator) = &node.kind
        && let Some(schema) = &validator.schema
    {
        unknown(
            survey,
            schema,
            Location::node_at(&node.id, "/schema"),
            issues,
        );
    }
    for port in node.node_type().ports() {
        if !node.ports.contains_key(port.name) {
            let message = format!(
                "The port {} of {title} names no schema; choose one.",
                port.name
            );
            report(
                issues,
                Code::PortSchemaMissing,
                at(node, port.name),
                message,
            );
        }
    }
}

fn unknown(survey: &Survey<'_>, schema: &SchemaId, location: Location, issues: &mut Vec<Issue>) {
    if !survey.has_schema(schema.as_str()) {
        let message = format!(
            "There is no schema {}; add it to the graph or choose another.",
            shown(schema.as_str())
        );
        report(issues, Code::SchemaUnknown, location, message);
    }
}

/// The port whose schema its node's configuration rules out, and why (G4).
fn mismatch(survey: &Survey<'_>, node: &Node) -> Option<(&'static str, String)> {
    let title = title(node);
    let port = |name: &str| node.ports.get(name);
    match &node.kind {
        Kind::Gate(_) => {
            let (first, whole) = ["input", "pass"].iter().find_map(|p| Some((p, port(p)?)))?;
            let other = ["pass", "fail"]
                .into_iter()
                .find(|p| port(p).is_some_and(|s| s != whole))?;
            Some((
                other,
                format!(
                    "The gate {title} forwards its input unchanged; give its port {other} the \
                     schema of {first}: {}.",
                    shown(whole.as_str())
                ),
            ))
        }
        Kind::Validator(validator) => {
            let wanted = validator.schema.as_ref()?;
            (port("pass")? != wanted).then(|| {
                (
                    "pass",
                    format!(
                        "The port pass of {title} emits what was checked; give it that schema: {}.",
                        shown(wanted.as_str())
                    ),
                )
            })
        }
        Kind::Merge(_) => {
            let merged = survey.schema("std.merged")?;
            let data = survey.port_schema(node, "data")?;
            (survey.compare(merged, data) == Compatibility::Incompatible).then(|| {
                ("data", format!(
                    "The port data of {title} emits std.merged, which its schema can never accept; \
                     use std.merged."
                ))
            })
        }
        _ => None,
    }
}

/// The ends of an edge name ports of the right direction.
fn ends(survey: &Survey<'_>, route: &Route<'_>, issues: &mut Vec<Issue>) {
    let edge = route.edge;
    for (end, port, side, direction) in [
        (route.source, &edge.source.port, "source", "an output port"),
        (route.target, &edge.target.port, "target", "an input port"),
    ] {
        let location = || Location::edge_at(&edge.id, format!("/{side}/port"));
        let title = |at: usize| survey.nodes.get(at).map_or(shown(""), |node| title(node));
        match end {
            End::NoPort(node) => {
                let message = format!(
                    "{} has no port {:?}; choose {direction}.",
                    title(node),
                    shown(port)
                );
                report(issues, Code::PortUnknown, location(), message);
            }
            End::WrongWay(node) => {
                let message = format!(
                    "The port {port} of {} faces the other way; the {side} of an edge is {direction}, so \
                     choose one.",
                    title(node)
                );
                report(issues, Code::PortDirection, location(), message);
            }
            End::Port(..) | End::NoNode => {}
        }
    }
}

/// Every input port has an edge, and only a merge's has several. Parallel edges count once:
/// they are `edge.duplicate`.
fn arity(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    let mut incoming: BTreeMap<(usize, &str), Vec<&EdgeId>> = BTreeMap::new();
    for route in survey.edges.iter().filter(|route| route.twin.is_none()) {
        if let End::Port(node, port) = route.target {
            incoming
                .entry((node, port.name))
                .or_default()
                .push(&route.edge.id);
        }
    }
    for (index, node) in survey.nodes.iter().enumerate() {
        let inputs = node.node_type().ports().iter();
        for port in inputs.filter(|port| port.direction == Direction::Input) {
            let edges = incoming
                .get(&(index, port.name))
                .map_or(&[][..], Vec::as_slice);
            if let Some(message) = wrong_count(node, port, edges) {
                report(issues, Code::PortArity, at(node, port.name), message);
            }
        }
    }
}

fn wrong_count(node: &Node, port: &Port, edges: &[&EdgeId]) -> Option<String> {
    let (name, title) = (port.name, title(node));
    match edges {
        [] => Some(format!(
            "The port {name} of {title} has no edge; connect one."
        )),
        [_] => None,
        _ if port.many => None,
        several => {
            let ids = several.iter().map(|id| shown(id.as_str()).to_string());
            let ids: Vec<_> = ids.collect();
            Some(format!(
                "The port {name} of {title} takes one edge but has {}; keep one, or merge them: {}.",
                ids.len(),
                ids.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validate::cases::{
        agent, around, edge, found, gate, graph, input, merge, output, push, sound,
    };

    #[test]
    fn g2_ports_of_a_node_are_those_of_its_type() {
        let mut graph = sound();
        graph["nodes"][0]["ports"]["x/y"] = json!("std.any");
        assert_eq!(found(&graph), ["port.unknown node in /ports/x~1y"]);
        let mut graph = sound();
        graph["nodes"][1]["ports"] = json!({});
        assert_eq!(found(&graph), ["port.schema-missing node out /ports/input"]);
        assert!(found(&sound()).is_empty());
    }

    #[test]
    fn g2_edges_end_at_ports_of_the_right_direction() {
        let mut graph = sound();
        graph["edges"] = json!([edge("e", "in.datum", "out.input")]);
        let issues = [
            "node.dead-end node in /ports/data",
            "port.unknown edge e /source/port",
        ];
        assert_eq!(found(&graph), issues);
        graph["edges"] = json!([
            edge("e", "in.data", "out.input"),
            edge("f", "out.input", "in.data")
        ]);
        let issues = [
            "port.direction edge f /source/port",
            "port.direction edge f /target/port",
        ];
        assert_eq!(found(&graph), issues);
    }

    #[test]
    fn g5_failure_ports_have_the_failure_schema() {
        let mut node = agent("a");
        node["ports"]["failure"] = json!("std.any");
        let issues = ["port.schema-mismatch node a /ports/failure"];
        assert_eq!(found(&around(node, "input", "success")), issues);
    }

    #[test]
    fn g4_a_gate_has_one_schema() {
        let document = |pass: &str| {
            let mut node = gate("g", "std.any");
            node["ports"]["pass"] = json!(pass);
            graph(
                json!([
                    input("in", "std.any"),
                    node,
                    output("o", "std.any"),
                    output("p", "std.any")
                ]),
                &[
                    ("e1", "in.data", "g.input"),
                    ("e2", "g.pass", "o.input"),
                    ("e3", "g.fail", "p.input"),
                ],
                json!({}),
            )
        };
        assert_eq!(
            found(&document("std.text")),
            ["port.schema-mismatch node g /ports/pass"]
        );
        assert!(found(&document("std.any")).is_empty());
    }

    #[test]
    fn g4_a_validator_passes_what_it_checks() {
        let document = |pass: &str, fail: &str| {
            graph(
                json!([input("in", "std.any"), output("o", "std.any"), output("p", "std.any"),
                    {"id": "v", "type": "validator", "schema": "claim",
                     "ports": {"input": "std.any", "pass": pass, "fail": fail}}]),
                &[
                    ("e1", "in.data", "v.input"),
                    ("e2", "v.pass", "o.input"),
                    ("e3", "v.fail", "p.input"),
                ],
                json!({"claim": {"type": "object"}}),
            )
        };
        let issues = ["port.schema-mismatch node v /ports/pass"];
        assert_eq!(found(&document("std.any", "std.validation-errors")), issues);
        let issues = ["port.schema-mismatch node v /ports/fail"];
        assert_eq!(found(&document("claim", "std.any")), issues);
        assert!(found(&document("claim", "std.validation-errors")).is_empty());
    }

    #[test]
    fn g4_a_merge_emits_what_fits_std_merged() {
        let document = |schema: serde_json::Value| {
            let mut node = merge("m");
            node["ports"]["data"] = json!("s");
            let mut document = around(node, "items", "data");
            document["schemas"] = json!({"s": schema});
            document
        };
        let issues = ["port.schema-mismatch node m /ports/data"];
        assert_eq!(found(&document(json!({"type": "object"}))), issues);
        assert!(found(&document(json!({"type": "array", "minItems": 2}))).is_empty());
    }

    #[test]
    fn g2_port_schemas_exist() {
        let mut graph = sound();
        graph["nodes"][0]["ports"]["data"] = json!("claim");
        assert_eq!(found(&graph), ["schema.unknown node in /ports/data"]);
        graph["schemas"]["claim"] = json!(true);
        assert!(found(&graph).is_empty());
        let mut node = json!({"id": "v", "type": "validator", "schema": "std.nothing",
            "ports": {"input": "std.any", "pass": "std.nothing", "fail": "std.validation-errors"}});
        let issues = [
            "node.dead-end node v /ports/fail",
            "schema.unknown node v /ports/pass",
            "schema.unknown node v /schema",
        ];
        assert_eq!(found(&around(node.clone(), "input", "pass")), issues);
        node["schema"] = json!("std.text");
        node["ports"]["pass"] = json!("std.text");
        assert_eq!(
            found(&around(node, "input", "pass")),
            ["node.dead-end node v /ports/fail"]
        );
    }

    #[test]
    fn g9_an_input_port_needs_an_edge() {
        let mut graph = sound();
        push(&mut graph, "nodes", output("alone", "std.any"));
        push(&mut graph, "nodes", merge("m"));
        let issues = [
            "port.arity node alone /ports/input",
            "port.arity node m /ports/items",
        ];
        assert_eq!(found(&graph), issues);
    }

    #[test]
    fn rule_7_b036_only_a_merge_takes_several_edges() {
        let nodes = json!([
            input("in", "std.any"),
            gate("g", "std.any"),
            merge("m"),
            output("o", "std.any")
        ]);
        let mut edges = vec![
            ("e1", "in.data", "g.input"),
            ("e2", "g.pass", "m.items"),
            ("e4", "in.data", "m.items"),
            ("e5", "g.fail", "m.items"),
            ("e6", "m.data", "o.input"),
        ];
        assert!(found(&graph(nodes.clone(), &edges, json!({}))).is_empty());
        edges.push(("e7", "g.pass", "o.input"));
        let issues = ["port.arity node o /ports/input"];
        assert_eq!(found(&graph(nodes, &edges, json!({}))), issues);
    }
}
