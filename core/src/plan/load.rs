//! Loading a stored plan: its references are checked once, so that the run machine never
//! meets an index that leads nowhere (run-machine.md §1).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::document::{Document, Edge, Node, Task};
use super::secret::{self, Mark, Marks};
use super::{COMPILER_VERSION, PLAN_VERSION};
use crate::ids::{EdgeId, Hash, NodeId, SchemaId};
use crate::node_type::{Direction, NodeType};
use crate::schema::{self, Schema};
use crate::value::{self, Value};

/// Position of a node in plan order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(crate) usize);

/// Position of an edge in id order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIndex(pub(crate) usize);

/// A checked, indexed plan. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Plan {
    document: Document,
    hash: Hash,
    schemas: BTreeMap<SchemaId, Arc<Schema>>,
    any: Arc<Schema>,
    nodes: BTreeMap<NodeId, NodeIndex>,
    edges: BTreeMap<EdgeId, EdgeIndex>,
    incoming: Vec<Vec<EdgeIndex>>,
    outgoing: Vec<Vec<EdgeIndex>>,
    /// Made when first asked for, and then always the same.
    marks: OnceLock<Marks>,
}

/// Why a stored plan cannot be used: it was not made by a compiler that this binary knows,
/// or was changed since.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not the shape of a plan.
    #[error("the stored plan cannot be read: {0}")]
    Shape(String),
    /// Another version.
    #[error("the stored plan has version {plan} of compiler {compiler:?}, which is not known here")]
    Version {
        /// `planVersion`
        plan: u64,
        /// `compilerVersion`
        compiler: String,
    },
    /// It refers to something that it does not hold.
    #[error("the stored plan contradicts itself: {0}")]
    Broken(String),
}

impl Plan {
    /// Reads a stored plan's value.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn read(stored: &Value) -> Result<Self, PlanError> {
        // The version is judged first, since another one may have any shape.
        let text = |name| stored.get(name).and_then(Value::as_str);
        let plan = stored.get("planVersion").and_then(Value::as_u64);
        if let (Some(plan), Some(compiler)) = (plan, text("compilerVersion"))
            && (plan != u64::from(PLAN_VERSION) || compiler != COMPILER_VERSION)
        {
            return Err(PlanError::Version {
                plan,
                compiler: compiler.to_owned(),
            });
        }
        let read = Self::load(Document::deserialize(stored)?)?;
        // The hash is over what is written; what is read must be the same, unknown members too.
        if read.hash != value::hash(stored) {
            return Err(PlanError::Shape(
                "it holds members that are not known here".to_owned(),
            ));
        }
        Ok(read)
    }

    /// Checks and indexes a document.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn load(document: Document) -> Result<Self, PlanError> {
        if document.plan_version != PLAN_VERSION || document.compiler_version != COMPILER_VERSION {
            return Err(PlanError::Version {
                plan: document.plan_version.into(),
                compiler: document.compiler_version,
            });
        }
        let broken = |what: String| PlanError::Broken(what);
        let stored = value::to_value(&document).map_err(|e| PlanError::Shape(e.detail))?;
        let mut nodes = BTreeMap::new();
        for (index, node) in document.nodes.iter().enumerate() {
            if nodes.insert(node.id.clone(), NodeIndex(index)).is_some() {
                return Err(broken(format!("node {} stands twice", node.id)));
            }
        }
        let schemas = accept_schemas(&document)?;
        let any = schema::built_in("std.any").ok_or_else(|| broken("std.any".to_owned()))?;
        let mut incoming = vec![Vec::new(); document.nodes.len()];
        let mut outgoing = vec![Vec::new(); document.nodes.len()];
        let mut edges = BTreeMap::new();
        for (index, edge) in document.edges.iter().enumerate() {
            let index = EdgeIndex(index);
            if edges.insert(edge.id.clone(), index).is_some() {
                return Err(broken(format!("edge {} stands twice", edge.id)));
            }
            let ends = [
                (&edge.source, Direction::Output, &mut outgoing),
                (&edge.target, Direction::Input, &mut incoming),
            ];
            for (end, direction, list) in ends {
                let node = nodes.get(&end.node_id);
                let slot = node.and_then(|NodeIndex(at)| {
                    let node = document.nodes.get(*at)?;
                    let port = node.task.node_type().port(&end.port)?;
                    (port.direction == direction).then_some(())?;
                    list.get_mut(*at)
                });
                match slot {
                    Some(list) => list.push(index),
                    None => return Err(broken(format!("edge {} has a loose end", edge.id))),
                }
            }
        }
        if !edges.keys().eq(document.edges.iter().map(|edge| &edge.id)) {
            return Err(broken("edges are not in order of their ids".to_owned()));
        }
        let inputs = document
            .nodes
            .iter()
            .filter(|node| node.task == Task::Input);
        if inputs.count() != 1 {
            return Err(broken("a plan has exactly one input node".to_owned()));
        }
        judge_order(&document, &nodes, &incoming)?;
        Ok(Self {
            hash: value::hash(&stored),
            document,
            schemas,
            any,
            nodes,
            edges,
            incoming,
            outgoing,
            marks: OnceLock::new(),
        })
    }

    /// What is stored.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The plan's own hash.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The nodes in plan order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.document.nodes
    }

    /// The edges in id order.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.document.edges
    }

    /// All node positions, in plan order.
    pub fn node_indices(&self) -> impl DoubleEndedIterator<Item = NodeIndex> + use<> {
        (0..self.document.nodes.len()).map(NodeIndex)
    }

    /// The position of a node.
    #[must_use]
    pub fn find_node(&self, id: &str) -> Option<NodeIndex> {
        self.nodes.get(id).copied()
    }

    /// The position of an edge.
    #[must_use]
    pub fn find_edge(&self, id: &str) -> Option<EdgeIndex> {
        self.edges.get(id).copied()
    }

    /// A node by its position in this plan.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "a NodeIndex is only made by this plan, from positions in `nodes`"
    )]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.document.nodes[index.0]
    }

    /// An edge by its position in this plan.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "an EdgeIndex is only made by this plan, from positions in `edges`"
    )]
    pub fn edge(&self, index: EdgeIndex) -> &Edge {
        &self.document.edges[index.0]
    }

    /// The edges into a node, by id.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "one list a node, made by `load` for exactly these positions"
    )]
    pub fn incoming(&self, index: NodeIndex) -> &[EdgeIndex] {
        &self.incoming[index.0]
    }

    /// The edges out of a node, by id.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "one list a node, made by `load` for exactly these positions"
    )]
    pub fn outgoing(&self, index: NodeIndex) -> &[EdgeIndex] {
        &self.outgoing[index.0]
    }

    /// The node an edge leads to.
    #[must_use]
    pub fn target(&self, edge: EdgeIndex) -> Option<NodeIndex> {
        self.find_node(self.edge(edge).target.node_id.as_str())
    }

    /// Whether any schema of this plan marks a place `writeOnly` (S5).
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.schemas.values().any(|schema| schema.holds_secret())
    }

    /// Where what stands at a port, or as a node's effective input at `input`, is marked secret,
    /// there or further on (S5).
    #[must_use]
    pub fn marks(&self, index: NodeIndex, port: &str) -> &[Mark] {
        let known = self.node(index).task.node_type().port(port);
        let marks = self.marks.get_or_init(|| secret::of(self));
        known
            .and_then(|port| marks.get(&(index, port.name)))
            .map_or(&[], Vec::as_slice)
    }

    /// The input node.
    #[must_use]
    pub fn input(&self) -> Option<NodeIndex> {
        self.node_indices()
            .find(|index| self.node(*index).task == Task::Input)
    }

    /// The schema with an id that this plan names; `std.any` stands in for one that it does
    /// not, which `load` has excluded for every id in the plan.
    #[must_use]
    pub fn schema(&self, id: &SchemaId) -> &Arc<Schema> {
        self.schemas.get(id).unwrap_or(&self.any)
    }

    /// The schema of a node's port, with its id.
    #[must_use]
    pub fn port_schema(&self, index: NodeIndex, port: &str) -> (SchemaId, &Arc<Schema>) {
        match self.node(index).ports.get(port) {
            Some(id) => (id.clone(), self.schema(id)),
            None => (SchemaId::from("std.any"), &self.any),
        }
    }
}

impl From<serde_json::Error> for PlanError {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape(error.to_string())
    }
}

/// Every node stands after those that feed it, and every one but the input is fed: by one edge, a
/// merge by one or more. So each of them comes to its one final word (O1, K3).
fn judge_order(
    document: &Document,
    nodes: &BTreeMap<NodeId, NodeIndex>,
    incoming: &[Vec<EdgeIndex>],
) -> Result<(), PlanError> {
    for (at, (node, incoming)) in document.nodes.iter().zip(incoming).enumerate() {
        let takes = match node.task.node_type() {
            NodeType::Input => 0..=0,
            NodeType::Merge => 1..=usize::MAX,
            _ => 1..=1,
        };
        let fed = incoming.iter().all(|EdgeIndex(edge)| {
            let edge = document.edges.get(*edge);
            let source = edge.and_then(|edge| nodes.get(&edge.source.node_id));
            source.is_some_and(|NodeIndex(source)| *source < at)
        });
        if !fed || !takes.contains(&incoming.len()) {
            return Err(PlanError::Broken(format!(
                "node {} is not fed by the nodes before it as its type needs",
                node.id
            )));
        }
    }
    Ok(())
}

/// Accepts the schemas of the document and checks that every name has one.
fn accept_schemas(document: &Document) -> Result<BTreeMap<SchemaId, Arc<Schema>>, PlanError> {
    let mut schemas = BTreeMap::new();
    for (id, schema) in &document.schemas {
        let accepted = Schema::accept(schema).map_err(|faults| {
            let first = faults.first().map(|fault| fault.message.as_str());
            PlanError::Broken(format!("schema {id}: {}", first.unwrap_or("refused")))
        })?;
        schemas.insert(id.clone(), Arc::new(accepted));
    }
    for id in schema::BUILT_IN {
        if let Some(schema) = schema::built_in(id) {
            schemas.insert(SchemaId::from(id), schema);
        }
    }
    for node in &document.nodes {
        let validated = match &node.task {
            Task::Validator { schema } => Some(schema),
            _ => None,
        };
        for id in node.ports.values().chain(validated) {
            if !schemas.contains_key(id) {
                return Err(PlanError::Broken(format!(
                    "node {} names schema {id}, which the plan does not hold",
                    node.id
                )));
            }
        }
        for port in node.task.node_type().ports() {
            if !node.ports.contains_key(port.name) {
                return Err(PlanError::Broken(format!(
                    "node {} has no schema at port {}",
                    node.id, port.name
                )));
            }
        }
    }
    Ok(schemas)
}
