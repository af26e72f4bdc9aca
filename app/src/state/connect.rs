//! Whether two ports may be joined, judged while the edge is still in the hand
//! (web.md §2 "Connecting"; seed A "Editing": direction, cardinality, cycle, schema).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use sluicegate_core::graph::{Direction, Endpoint, Graph, Node, Port};
use sluicegate_core::ids::{NodeId, SchemaId};
use sluicegate_core::schema::{Compatibility, Schema, built_in, compare};

/// Why an edge is refused. Its text is what stands at the pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Both ends give or both ends take.
    Direction(Direction),
    /// The node would feed itself.
    Itself,
    /// The edge would close a loop.
    Cycle { back_to: String },
    /// The input is taken and holds one edge only.
    Arity { by: String },
    /// The very edge is there already.
    Twice,
    /// No value of the source fits the target.
    Schema { source: SchemaId, target: SchemaId },
    /// A node or a port is not there.
    Unknown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direction(Direction::Output) => {
                f.write_str("Both are outputs. Connect an output to an input.")
            }
            Self::Direction(Direction::Input) => {
                f.write_str("Both are inputs. Connect an output to an input.")
            }
            Self::Itself => f.write_str("A node cannot feed itself."),
            Self::Cycle { back_to } => {
                write!(
                    f,
                    "This would close a loop: “{back_to}” already leads here."
                )
            }
            Self::Arity { by } => write!(
                f,
                "This input is taken by “{by}”. Remove that edge first, or merge the two."
            ),
            Self::Twice => f.write_str("These two ports are connected already."),
            Self::Schema { source, target } => {
                write!(
                    f,
                    "{source} can never be {target}. Choose ports whose schemas fit."
                )
            }
            Self::Unknown => f.write_str("There is no such port."),
        }
    }
}

/// The edge's ends in the order source, target, or why it is refused. The two ends may come
/// in either order, as a connection may be drawn from its input.
pub(crate) fn judge(
    graph: &Graph,
    one: &Endpoint,
    other: &Endpoint,
) -> Result<(Endpoint, Endpoint), Refusal> {
    let (node, port) = find(graph, one).ok_or(Refusal::Unknown)?;
    let (other_node, other_port) = find(graph, other).ok_or(Refusal::Unknown)?;
    if one.node_id == other.node_id {
        return Err(Refusal::Itself);
    }
    if port.direction == other_port.direction {
        return Err(Refusal::Direction(port.direction));
    }
    let (source, target) = match port.direction {
        Direction::Output => ((one, node, port), (other, other_node, other_port)),
        Direction::Input => ((other, other_node, other_port), (one, node, port)),
    };
    if graph
        .edges
        .iter()
        .any(|edge| edge.source == *source.0 && edge.target == *target.0)
    {
        return Err(Refusal::Twice);
    }
    if !target.2.many
        && let Some(edge) = graph.edges.iter().find(|edge| edge.target == *target.0)
    {
        let by = graph.node(edge.source.node_id.as_str());
        let by = by.map_or(edge.source.node_id.as_str(), Node::title);
        return Err(Refusal::Arity { by: by.to_owned() });
    }
    if leads_to(graph, &target.0.node_id, &source.0.node_id) {
        return Err(Refusal::Cycle {
            back_to: target.1.title().to_owned(),
        });
    }
    schemas_fit(graph, (source.1, source.2), (target.1, target.2))?;
    Ok((source.0.clone(), target.0.clone()))
}

fn find<'g>(graph: &'g Graph, end: &Endpoint) -> Option<(&'g Node, &'static Port)> {
    let node = graph.node(end.node_id.as_str())?;
    Some((node, node.node_type().port(&end.port)?))
}

/// Whether there is a way from one node to another along the edges.
fn leads_to(graph: &Graph, from: &NodeId, to: &NodeId) -> bool {
    let mut seen: HashSet<&NodeId> = HashSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if node == to {
            return true;
        }
        for edge in graph
            .edges
            .iter()
            .filter(|edge| edge.source.node_id == *node)
        {
            if seen.insert(&edge.target.node_id) {
                open.push(&edge.target.node_id);
            }
        }
    }
    false
}

/// G7: with mappings the edge's own schema is not compared with the input's.
fn schemas_fit(
    graph: &Graph,
    (source, source_port): (&Node, &Port),
    (target, target_port): (&Node, &Port),
) -> Result<(), Refusal> {
    if !target.kind.mappings().is_empty() {
        return Ok(());
    }
    let (Some(from), Some(to)) = (
        port_schema(source, source_port),
        port_schema(target, target_port),
    ) else {
        return Ok(());
    };
    let (Some(a), Some(b)) = (resolve(graph, &from), resolve(graph, &to)) else {
        return Ok(());
    };
    if from != to && compare(&a, &b) == Compatibility::Incompatible {
        return Err(Refusal::Schema {
            source: from,
            target: to,
        });
    }
    Ok(())
}

/// The schema id at a port: the type's own where it is fixed, else the document's.
pub(crate) fn port_schema(node: &Node, port: &Port) -> Option<SchemaId> {
    match port.fixed_schema {
        Some(id) => Some(SchemaId::from(id)),
        None => node.ports.get(port.name).cloned(),
    }
}

/// The schema with an id, built in or the graph's own; none where it is missing or refused.
pub(crate) fn resolve(graph: &Graph, id: &SchemaId) -> Option<Arc<Schema>> {
    built_in(id.as_str()).or_else(|| {
        let document = graph.schemas.get(id)?;
        Schema::accept(document).ok().map(Arc::new)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn graph() -> Graph {
        Graph::read(&json!({
            "schemaVersion": 1,
            "nodes": [
                {"id": "in", "type": "input", "ports": {"data": "claim"}},
                {"id": "a", "type": "gate", "ports": {"input": "claim", "pass": "claim", "fail": "claim"}},
                {"id": "b", "type": "gate", "ports": {"input": "std.text"}},
                {"id": "m", "type": "merge", "ports": {"items": "std.any"}},
                {"id": "out", "type": "output", "label": "Result", "ports": {"input": "std.merged"}}
            ],
            "edges": [
                {"id": "e1", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "a", "port": "input"}},
                {"id": "e2", "source": {"nodeId": "a", "port": "pass"}, "target": {"nodeId": "m", "port": "items"}},
                {"id": "e3", "source": {"nodeId": "m", "port": "data"}, "target": {"nodeId": "out", "port": "input"}}
            ],
            "schemas": {"claim": {"type": "object"}}
        }))
        .unwrap()
    }

    fn end(node: &str, port: &str) -> Endpoint {
        Endpoint::new(node, port)
    }

    #[test]
    fn web2_an_edge_may_be_drawn_from_either_end() {
        let wanted = Ok((end("a", "fail"), end("m", "items")));
        assert_eq!(
            judge(&graph(), &end("a", "fail"), &end("m", "items")),
            wanted
        );
        assert_eq!(
            judge(&graph(), &end("m", "items"), &end("a", "fail")),
            wanted
        );
    }

    #[test]
    fn web2_direction_and_arity_are_refused_with_a_reason() {
        let graph = graph();
        assert_eq!(
            judge(&graph, &end("a", "pass"), &end("b", "fail")),
            Err(Refusal::Direction(Direction::Output))
        );
        assert_eq!(
            judge(&graph, &end("a", "input"), &end("b", "input")),
            Err(Refusal::Direction(Direction::Input))
        );
        assert_eq!(
            judge(&graph, &end("b", "pass"), &end("a", "input")),
            Err(Refusal::Arity {
                by: "in".to_owned()
            })
        );
        assert_eq!(
            judge(&graph, &end("a", "pass"), &end("m", "items")),
            Err(Refusal::Twice)
        );
        assert_eq!(
            judge(&graph, &end("a", "x"), &end("m", "items")),
            Err(Refusal::Unknown)
        );
    }

    #[test]
    fn b033_a_node_never_feeds_itself() {
        assert_eq!(
            judge(&graph(), &end("m", "data"), &end("m", "items")),
            Err(Refusal::Itself)
        );
    }

    #[test]
    fn b035_a_cycle_is_refused_as_it_is_proposed() {
        let mut graph = graph();
        graph.edges.remove(0);
        assert_eq!(
            judge(&graph, &end("m", "data"), &end("a", "input")),
            Err(Refusal::Cycle {
                back_to: "a".to_owned()
            })
        );
    }

    #[test]
    fn s6_only_what_certainly_contradicts_is_refused() {
        let graph = graph();
        match judge(&graph, &end("a", "fail"), &end("b", "input")) {
            Err(refusal) => assert!(refusal.to_string().contains("claim can never be std.text")),
            Ok(_) => panic!("an object was let into a text port"),
        }
    }
}
