//! Nodes: what all types have in common (wire-format.md G2).

use std::collections::BTreeMap;

use serde::Serialize;

use super::kind::Kind;
use crate::ids::{NodeId, SchemaId};
use crate::node_type::NodeType;
use crate::value::{JsonError, Place};

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its identifier; renaming the label does not change it.
    pub id: NodeId,
    /// Free text, at most 120 characters (I3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Free text, at most 2,000 characters (I3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Port name → schema id. A draft may leave ports out (G8).
    pub ports: BTreeMap<String, SchemaId>,
    /// The type, and what only nodes of this type have.
    #[serde(flatten)]
    pub kind: Kind,
}

impl Node {
    /// An empty node of a type, as the palette drops it: incomplete until it is configured.
    #[must_use]
    pub fn new(id: impl Into<NodeId>, node_type: NodeType) -> Self {
        Self {
            id: id.into(),
            label: None,
            description: None,
            ports: BTreeMap::new(),
            kind: Kind::new(node_type),
        }
    }

    /// What people call it: the label, or the id where there is none.
    #[must_use]
    pub fn title(&self) -> &str {
        match &self.label {
            Some(label) if !label.is_empty() => label,
            _ => self.id.as_str(),
        }
    }

    /// The type.
    #[must_use]
    pub fn node_type(&self) -> NodeType {
        self.kind.node_type()
    }

    pub(super) fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let id = object.required("id")?.text()?.into();
        let node_type = NodeType::read(&object.required("type")?)?;
        let label = optional_text(object.optional("label"))?;
        let description = optional_text(object.optional("description"))?;
        let mut ports = BTreeMap::new();
        if let Some(place) = object.optional("ports") {
            for (name, place) in place.entries()? {
                ports.insert(name.to_owned(), place.text()?.into());
            }
        }
        let kind = Kind::read(node_type, &mut object)?;
        object.done()?;
        Ok(Self {
            id,
            label,
            description,
            ports,
            kind,
        })
    }
}

pub(super) fn optional_text(place: Option<Place<'_>>) -> Result<Option<String>, JsonError> {
    place.map(|p| p.text().map(str::to_owned)).transpose()
}

pub(super) fn optional_integer(place: Option<Place<'_>>) -> Result<Option<i64>, JsonError> {
    place.map(|p| p.integer()).transpose()
}
