//! What the rules look at: a graph indexed once, with what cannot be addressed left out
//! (wire-format.md Q2). Building it is linear in the document.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::memory::{Memory, Place};
use crate::catalogue::Catalogue;
use crate::graph::{Direction, Edge, Endpoint, Graph, Node, NodeType, Port};
use crate::ids::EdgeId;
use crate::limits::Limits;
use crate::schema::{self, Compatibility, Fault, Schema};
use crate::value::{Pointer, Value};

/// Position of a node in order of ids.
pub(crate) type NodeIx = usize;

/// A graph with its indices. Of an id that is used twice only the first holder is in here;
/// `id.duplicate` says so, and no other rule can name the second one.
pub(crate) struct Survey<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) catalogue: Option<&'g Catalogue>,
    pub(crate) limits: &'g Limits,
    /// The nodes by id.
    pub(crate) nodes: Vec<&'g Node>,
    /// The edges by id.
    pub(crate) edges: Vec<Route<'g>>,
    /// Faults of the graph's own schemas, by schema id.
    pub(crate) schema_faults: Vec<(&'g str, Arc<[Fault]>)>,
    index: BTreeMap<&'g str, NodeIx>,
    schemas: BTreeMap<&'g str, Arc<Schema>>,
    /// What is known of schemas already, in this check and before.
    memory: RefCell<&'g mut Memory>,
}

/// An edge with what its ends resolve to.
pub(crate) struct Route<'g> {
    pub(crate) edge: &'g Edge,
    pub(crate) source: End,
    pub(crate) target: End,
    /// An edge of a smaller id that joins the same two ports.
    pub(crate) twin: Option<&'g EdgeId>,
}

/// What one end of an edge resolves to.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// A port of the right direction.
    Port(NodeIx, &'static Port),
    /// The node has the port, but it faces the other way.
    WrongWay(NodeIx),
    /// The node has no such port.
    NoPort(NodeIx),
    /// There is no such node.
    NoNode,
}

/// An edge whose two ends are sound.
#[derive(Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) source: (NodeIx, &'static Port),
    pub(crate) target: (NodeIx, &'static Port),
}

impl End {
    /// The node and port, when the end is sound.
    pub(crate) fn port(self) -> Option<(NodeIx, &'static Port)> {
        match self {
            Self::Port(node, port) => Some((node, port)),
            _ => None,
        }
    }
}

impl Route<'_> {
    /// The wire, when both ends are sound.
    pub(crate) fn wire(&self) -> Option<Wire> {
        Some(Wire {
            source: self.source.port()?,
            target: self.target.port()?,
        })
    }
}

impl<'g> Survey<'g> {
    pub(crate) fn new(
        graph: &'g Graph,
        catalogue: Option<&'g Catalogue>,
        limits: &'g Limits,
        memory: &'g mut Memory,
    ) -> Self {
        let mut nodes: Vec<&Node> = graph.nodes.iter().collect();
        // Stable: of equal ids the first in the document stays first.
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        nodes.dedup_by(|a, b| a.id == b.id);
        let index: BTreeMap<&str, NodeIx> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.id.as_str(), at))
            .collect();
        let resolve = |end: &Endpoint, direction: Direction| {
            let found = index
                .get(end.node_id.as_str())
                .and_then(|at| Some((*at, *nodes.get(*at)?)));
            let Some((at, node)) = found else {
                return End::NoNode;
            };
            match node.node_type().port(&end.port) {
                Some(port) if port.direction == direction => End::Port(at, port),
                Some(_) => End::WrongWay(at),
                None => End::NoPort(at),
            }
        };
        let mut edges: Vec<&Edge> = graph.edges.iter().collect();
        edges.sort_by(|a, b| a.id.cmp(&b.id));
        edges.dedup_by(|a, b| a.id == b.id);
        let mut joined = BTreeMap::new();
        let edges = edges
            .into_iter()
            .map(|edge| Route {
                edge,
                source: resolve(&edge.source, Direction::Output),
                target: resolve(&edge.target, Direction::Input),
                twin: match joined.entry((&edge.source, &edge.target)) {
                    Entry::Occupied(first) => Some(*first.get()),
                    Entry::Vacant(place) => {
                        place.insert(&edge.id);
                        None
                    }
                },
            })
            .collect();
        let (schemas, schema_faults) = accept_schemas(graph, memory);
        Self {
            graph,
            catalogue,
            limits,
            nodes,
            edges,
            schema_faults,
            index,
            schemas,
            memory: RefCell::new(memory),
        }
    }

    /// Compares by S6.
    pub(crate) fn compare(&self, source: &Schema, target: &Schema) -> Compatibility {
        self.memory.borrow_mut().compare(source, target)
    }

    /// A schema that is not the graph's own, when it is in the subset.
    pub(crate) fn accept(&self, name: &str, document: &Value) -> Option<Arc<Schema>> {
        self.memory.borrow_mut().accept(name, document).ok()
    }

    /// What a schema says about a place inside its values.
    pub(super) fn place(&self, schema: &Schema, pointer: &Pointer) -> Place {
        self.memory.borrow_mut().place(schema, pointer)
    }

    /// The schema of what mappings with these targets build.
    pub(crate) fn shape(&self, targets: &[Pointer]) -> Option<Arc<Schema>> {
        self.memory.borrow_mut().shape(targets)
    }

    /// All rules are judged: what none of them asked for is forgotten.
    pub(super) fn end(&self) {
        self.memory.borrow_mut().end();
    }

    /// The node with this id.
    pub(crate) fn find(&self, id: &str) -> Option<(NodeIx, &'g Node)> {
        let at = *self.index.get(id)?;
        Some((at, self.nodes.get(at)?))
    }

    /// The sound edges, by id.
    pub(crate) fn wires(&self) -> impl Iterator<Item = Wire> + '_ {
        self.edges.iter().filter_map(Route::wire)
    }

    /// Whether a schema of this id exists, be it sound or not.
    pub(crate) fn has_schema(&self, id: &str) -> bool {
        self.graph.schemas.contains_key(id) || schema::BUILT_IN.contains(&id)
    }

    /// The schema of this id, when it is in the subset.
    pub(crate) fn schema(&self, id: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(id)
    }

    /// The schema that a node's port names, when it exists and is in the subset.
    pub(crate) fn port_schema(&self, node: &Node, port: &str) -> Option<&Arc<Schema>> {
        self.schema(node.ports.get(port)?.as_str())
    }
}

/// Whether a node can settle on one of its output ports (G9): all but a `failure` port that
/// is not emitted.
pub(crate) fn can_choose(node: &Node, port: &Port) -> bool {
    port.direction == Direction::Output
        && (port.name != FAILURE
            || node
                .kind
                .failure_policy()
                .and_then(|policy| policy.on_exhausted.as_deref())
                == Some("emit-failure"))
}

/// The output ports that a node can settle on.
pub(crate) fn choices(node: &Node) -> impl Iterator<Item = &'static Port> + '_ {
    node.node_type()
        .ports()
        .iter()
        .filter(|port| can_choose(node, port))
}

/// Whether a node type has the failure port and so a failure policy (G4, §7).
pub(crate) fn has_policy(node_type: NodeType) -> bool {
    node_type.port(FAILURE).is_some()
}

const FAILURE: &str = "failure";

type Accepted<'g> = (BTreeMap<&'g str, Arc<Schema>>, Vec<(&'g str, Arc<[Fault]>)>);

/// The usable schemas by id, and the faults of the others. A built-in schema cannot be
/// replaced by the graph's (I2).
fn accept_schemas<'g>(graph: &'g Graph, memory: &mut Memory) -> Accepted<'g> {
    let mut schemas = BTreeMap::new();
    let mut faults = Vec::new();
    for (id, document) in &graph.schemas {
        match memory.accept(id.as_str(), document) {
            Ok(schema) => {
                schemas.insert(id.as_str(), schema);
            }
            Err(found) => faults.push((id.as_str(), found)),
        }
    }
    for id in schema::BUILT_IN {
        if let Some(schema) = schema::built_in(id) {
            schemas.insert(id, schema);
        }
    }
    (schemas, faults)
}
