//! The graph document, schema version 1 (wire-format.md §3, G1–G8; seed A "Graph document").
//!
//! A [`Graph`] may be an unfinished draft: whatever G8 calls an issue is representable
//! here, whatever it calls *wrong shape* is refused by [`Graph::read`] with the pointer.
//! Nothing that was read is lost on the way back out, except that absent members of the
//! document itself (`nodes`, `edges`, `schemas`, `layout`) are filled in.

mod edge;
mod kind;
mod node;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ids::{Hash, NodeId, SchemaId};
use crate::value::{self, JsonError, Place, Value};

pub use crate::ids::Endpoint;
pub use crate::node_type::{Direction, NodeType, Port};
pub use edge::Edge;
pub use kind::{
    ActionNode, ActionReference, AgentNode, AgentReference, Backoff, Binding, FailurePolicy,
    GateNode, Kind, Logic, Mapping, MergeNode, OutputNode, PathBinding, TemplateVariable,
    ValidatorNode, VariableSource,
};
pub use node::Node;

/// The only schema version that this crate reads as a whole.
pub const SCHEMA_VERSION: i64 = 1;

/// A workflow's document, draft or published.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// 1 in every graph that can be published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<i64>,
    /// The nodes; their order carries no meaning (G1).
    pub nodes: Vec<Node>,
    /// The edges; their order carries no meaning (G1).
    pub edges: Vec<Edge>,
    /// The graph's own schemas, judged only when the graph is validated.
    pub schemas: BTreeMap<SchemaId, Value>,
    /// Where the canvas draws each node; no part of the meaning.
    pub layout: BTreeMap<NodeId, Point>,
}

/// A place on the canvas, in canvas units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Point {
    /// To the right.
    pub x: i64,
    /// Downwards.
    pub y: i64,
}

/// What the semantic checksum covers (G1): the document without its layout.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meaning<'g> {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<i64>,
    nodes: Vec<&'g Node>,
    edges: Vec<&'g Edge>,
    schemas: &'g BTreeMap<SchemaId, Value>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            schema_version: Some(SCHEMA_VERSION),
            nodes: Vec::new(),
            edges: Vec::new(),
            schemas: BTreeMap::new(),
            layout: BTreeMap::new(),
        }
    }
}

impl Graph {
    /// Reads a document's shape (G8). The error names the pointer of the first offender.
    pub fn read(document: &Value) -> Result<Self, JsonError> {
        Self::read_at(&Place::root(document))
    }

    /// As [`Graph::read`], for a document that is a part of another one (a request body).
    pub fn read_at(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let schema_version = object
            .optional("schemaVersion")
            .map(|p| p.integer())
            .transpose()?;
        let nodes = read_list(object.optional("nodes"), Node::read)?;
        let edges = read_list(object.optional("edges"), Edge::read)?;
        let mut schemas = BTreeMap::new();
        if let Some(place) = object.optional("schemas") {
            for (id, place) in place.entries()? {
                schemas.insert(SchemaId::from(id), place.value().clone());
            }
        }
        let mut layout = BTreeMap::new();
        if let Some(place) = object.optional("layout") {
            for (id, place) in place.entries()? {
                layout.insert(NodeId::from(id), Point::read(&place)?);
            }
        }
        object.done()?;
        Ok(Self {
            schema_version,
            nodes,
            edges,
            schemas,
            layout,
        })
    }

    /// The document as a value.
    ///
    /// # Errors
    /// None for a graph that was read; a literal built by hand may hold a number that J1 refuses.
    pub fn to_value(&self) -> Result<Value, JsonError> {
        value::to_value(self)
    }

    /// The semantic checksum (G1): the hash of the document without `layout`, with nodes
    /// and edges sorted by id.
    ///
    /// # Errors
    /// As [`Graph::to_value`].
    pub fn checksum(&self) -> Result<Hash, JsonError> {
        let mut meaning = Meaning {
            schema_version: self.schema_version,
            nodes: self.nodes.iter().collect(),
            edges: self.edges.iter().collect(),
            schemas: &self.schemas,
        };
        meaning.nodes.sort_by(|a, b| a.id.cmp(&b.id));
        meaning.edges.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(value::hash(&value::to_value(&meaning)?))
    }

    /// The node with this id; the first one, should a draft use an id twice.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == *id)
    }

    /// The edge with this id; the first one, should a draft use an id twice.
    #[must_use]
    pub fn edge(&self, id: &str) -> Option<&Edge> {
        self.edges.iter().find(|edge| edge.id == *id)
    }
}

impl Point {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let point = Self {
            x: object.required("x")?.integer()?,
            y: object.required("y")?.integer()?,
        };
        object.done()?;
        Ok(point)
    }
}

/// Reads an optional array item by item.
fn read_list<T>(
    place: Option<Place<'_>>,
    read: impl Fn(&Place<'_>) -> Result<T, JsonError>,
) -> Result<Vec<T>, JsonError> {
    match place {
        None => Ok(Vec::new()),
        Some(place) => place.array()?.iter().map(read).collect(),
    }
}

#[cfg(test)]
mod tests;
