//! Sensible inputs and fixtures made from the schemas (web.md §3 "Simulate").

use sluicegate_core::graph::{Graph, Kind, Node, NodeType};
use sluicegate_core::value::{Map, Value};

use crate::state::connect::{port_schema, resolve};

/// An input that the graph's input node takes, and that the validators right behind it let
/// pass where one value can do both.
pub(crate) fn input(graph: &Graph) -> Option<Value> {
    let node = graph
        .nodes
        .iter()
        .find(|node| node.node_type() == NodeType::Input)?;
    let own = resolve(graph, &port_schema(node, NodeType::Input.port("data")?)?)?;
    let behind = graph
        .edges
        .iter()
        .filter(|edge| edge.source.node_id == node.id);
    let stricter =
        behind.filter_map(
            |edge| match &graph.node(edge.target.node_id.as_str())?.kind {
                Kind::Validator(validator) => resolve(graph, validator.schema.as_ref()?)?.example(),
                _ => None,
            },
        );
    let mut sensible = stricter.filter(|value| own.is_valid(value));
    sensible.next().or_else(|| own.example())
}

/// A fixture for every node that needs one: agents and actions succeed, decisions pass.
pub(crate) fn fixtures(graph: &Graph) -> Value {
    let mut nodes = Map::new();
    for node in &graph.nodes {
        let (outcome, port, member, duration) = match node.node_type() {
            NodeType::Agent => ("success", "success", "output", 900),
            NodeType::AgentDecision => ("pass", "pass", "data", 1_200),
            NodeType::Action => ("success", "success", "output", 250),
            _ => continue,
        };
        let mut attempt = Map::new();
        attempt.insert("outcome".to_owned(), outcome.into());
        attempt.insert(
            member.to_owned(),
            example(graph, node, port).unwrap_or(Value::Null),
        );
        attempt.insert("simulatedDurationMs".to_owned(), duration.into());
        let entry = Map::from_iter([("attempts".to_owned(), Value::Array(vec![attempt.into()]))]);
        nodes.insert(node.id.to_string(), entry.into());
    }
    Map::from_iter([("nodes".to_owned(), nodes.into())]).into()
}

fn example(graph: &Graph, node: &Node, port: &str) -> Option<Value> {
    let port = node.node_type().port(port)?;
    resolve(graph, &port_schema(node, port)?)?.example()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn web3_every_node_that_needs_a_fixture_gets_one() {
        let nodes: Vec<_> = NodeType::ALL
            .iter()
            .map(|kind| json!({"id": kind.as_str(), "type": kind.as_str()}))
            .collect();
        let graph = Graph::read(&json!({"nodes": nodes})).unwrap();
        let fixtures = fixtures(&graph);
        let named: Vec<_> = fixtures["nodes"].as_object().unwrap().keys().collect();
        assert_eq!(named, ["action", "agent", "agent-decision"]);
        assert_eq!(
            fixtures["nodes"]["agent-decision"]["attempts"][0]["outcome"],
            "pass"
        );
    }

    #[test]
    fn web3_the_example_input_passes_the_validator_behind_it() {
        let graph = Graph::read(&json!({
            "nodes": [
                {"id": "in", "type": "input", "ports": {"data": "loose"}},
                {"id": "check", "type": "validator", "schema": "strict"}
            ],
            "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"},
                       "target": {"nodeId": "check", "port": "input"}}],
            "schemas": {
                "loose": {"type": "object"},
                "strict": {"type": "object", "required": ["n"],
                           "properties": {"n": {"type": "integer", "minimum": 3}}}
            }
        }))
        .unwrap();
        assert!(input(&graph).unwrap()["n"].as_i64().unwrap() >= 3);
    }
}
