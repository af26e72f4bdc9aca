//! Edits of the document as plain functions over it (web.md §2). Until the core's `edit`
//! decides reversible changes, the history keeps whole documents.

use std::collections::HashSet;

use sluicegate_core::graph::{
    Backoff, Edge, Endpoint, FailurePolicy, Graph, Kind, MergeNode, Node, NodeType, Point,
};
use sluicegate_core::ids::{EdgeId, NodeId, SchemaId};

use crate::canvas::geometry::Vec2;
use crate::canvas::gesture::Item;

/// Adds a node as the palette drops it: every port has a schema and every policy a value, so
/// that only what a person must decide is missing.
pub(crate) fn add_node(graph: &mut Graph, node_type: NodeType, at: Vec2) -> NodeId {
    let id = fresh(node_type.as_str(), |id| graph.node(id).is_some());
    let id = NodeId::from(id);
    let mut node = Node::new(id.clone(), node_type);
    for port in node_type.ports() {
        let schema = match (node_type, port.name) {
            (NodeType::Merge, "data") => "std.merged",
            _ => port.fixed_schema.unwrap_or("std.any"),
        };
        node.ports
            .insert(port.name.to_owned(), SchemaId::from(schema));
    }
    let policy = Some(FailurePolicy {
        max_attempts: Some(1),
        retry_on: Some(Vec::new()),
        backoff: Some(Backoff {
            kind: Some("fixed".to_owned()),
            initial_ms: Some(0),
            maximum_ms: Some(0),
        }),
        on_exhausted: Some("fail-run".to_owned()),
    });
    match &mut node.kind {
        Kind::Agent(agent) | Kind::AgentDecision(agent) => agent.failure_policy = policy,
        Kind::Action(action) => action.failure_policy = policy,
        Kind::Merge(merge) => merge.mode = Some(MergeNode::ALL.to_owned()),
        _ => {}
    }
    graph.nodes.push(node);
    graph.layout.insert(id.clone(), point(at));
    id
}

/// Joins two ports that were judged to fit.
pub(crate) fn connect(graph: &mut Graph, source: Endpoint, target: Endpoint) -> EdgeId {
    let stem = format!("{}-{}", source.node_id, target.node_id).replace('.', "-");
    // An identifier ends at 128 characters (I1); ids are ASCII wherever they are valid.
    let stem: String = stem.chars().take(120).collect();
    let id = EdgeId::from(fresh(&stem, |id| graph.edge(id).is_some()));
    graph.edges.push(Edge {
        id: id.clone(),
        source,
        target,
        label: None,
    });
    id
}

/// Removes nodes with their edges and places, and edges.
pub(crate) fn remove(graph: &mut Graph, items: &HashSet<Item>) {
    let node_goes = |id: &NodeId| items.contains(&Item::Node(id.clone()));
    graph.nodes.retain(|node| !node_goes(&node.id));
    graph.edges.retain(|edge| {
        !items.contains(&Item::Edge(edge.id.clone()))
            && !node_goes(&edge.source.node_id)
            && !node_goes(&edge.target.node_id)
    });
    graph.layout.retain(|id, _| !node_goes(id));
}

/// Puts nodes where they stand now.
pub(crate) fn place(graph: &mut Graph, places: impl IntoIterator<Item = (NodeId, Vec2)>) {
    for (id, at) in places {
        graph.layout.insert(id, point(at));
    }
}

/// Puts a changed node in the place of the one with its id.
pub(crate) fn replace_node(graph: &mut Graph, node: Node) {
    if let Some(slot) = graph.nodes.iter_mut().find(|slot| slot.id == node.id) {
        *slot = node;
    }
}

/// The nearest place that the document can hold (G1: coordinates are integers).
fn point(at: Vec2) -> Point {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the bound keeps it exact in an i64 and below 2^53 (J1)"
    )]
    let whole = |v: f64| v.clamp(-1e9, 1e9).round() as i64;
    Point {
        x: whole(at.x),
        y: whole(at.y),
    }
}

/// `stem`, or the first of `stem-2`, `stem-3`… that is not taken.
fn fresh(stem: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(stem) {
        return stem.to_owned();
    }
    let mut number = 2_u32;
    loop {
        let id = format!("{stem}-{number}");
        if !taken(&id) {
            return id;
        }
        number = number.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn graph() -> Graph {
        Graph::read(&json!({
            "schemaVersion": 1,
            "nodes": [{"id": "in", "type": "input"}, {"id": "g", "type": "gate"}, {"id": "o", "type": "output"}],
            "edges": [
                {"id": "e1", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "g", "port": "input"}},
                {"id": "e2", "source": {"nodeId": "g", "port": "pass"}, "target": {"nodeId": "o", "port": "input"}}
            ],
            "layout": {"g": {"x": 1, "y": 2}, "o": {"x": 3, "y": 4}}
        }))
        .unwrap()
    }

    #[test]
    fn b039_a_deleted_node_takes_its_edges_and_its_place_along() {
        let mut graph = graph();
        remove(&mut graph, &HashSet::from([Item::Node("g".into())]));
        let document = graph.to_value().unwrap();
        assert_eq!(
            document,
            json!({"schemaVersion": 1, "nodes": [{"id": "in", "type": "input", "ports": {}}, {"id": "o", "type": "output", "ports": {}}],
                   "edges": [], "schemas": {}, "layout": {"o": {"x": 3, "y": 4}}})
        );
    }

    #[test]
    fn web2_new_nodes_and_edges_get_ids_of_their_own() {
        let mut graph = graph();
        let first = add_node(&mut graph, NodeType::Merge, Vec2::new(0.4, -0.6));
        let second = add_node(&mut graph, NodeType::Merge, Vec2::default());
        assert_eq!((first.as_str(), second.as_str()), ("merge", "merge-2"));
        assert_eq!(graph.layout[&first], Point { x: 0, y: -1 });
        let edge = |graph: &mut Graph| {
            connect(
                graph,
                Endpoint::new("g", "fail"),
                Endpoint::new("merge", "items"),
            )
        };
        assert_eq!(edge(&mut graph).as_str(), "g-merge");
        assert_eq!(edge(&mut graph).as_str(), "g-merge-2");
    }

    #[test]
    fn g2_a_dropped_node_names_a_schema_for_every_port() {
        for node_type in NodeType::ALL {
            let mut graph = Graph::default();
            let id = add_node(&mut graph, node_type, Vec2::default());
            let node = graph.node(id.as_str()).unwrap();
            assert!(
                node_type
                    .ports()
                    .iter()
                    .all(|port| node.ports.contains_key(port.name))
            );
        }
    }
}
