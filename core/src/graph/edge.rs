//! Edges (wire-format.md G6).

use serde::{Deserialize, Serialize};

use crate::ids::{EdgeId, NodeId};
use crate::value::{JsonError, Place};

/// A connection from an output port to an input port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Edge {
    /// Its identifier.
    pub id: EdgeId,
    /// Where the envelope comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub target: Endpoint,
    /// Free text (I3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// One end of an edge. A plan and an event store it too, so it can be read by serde.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Endpoint {
    /// The node.
    pub node_id: NodeId,
    /// Its port.
    pub port: String,
}

impl Edge {
    pub(super) fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let edge = Self {
            id: object.required("id")?.text()?.into(),
            source: Endpoint::read(&object.required("source")?)?,
            target: Endpoint::read(&object.required("target")?)?,
            label: super::node::optional_text(object.optional("label"))?,
        };
        object.done()?;
        Ok(edge)
    }
}

impl Endpoint {
    /// An end at a node's port.
    #[must_use]
    pub fn new(node_id: impl Into<NodeId>, port: impl Into<String>) -> Self {
        Self {
            node_id: node_id.into(),
            port: port.into(),
        }
    }

    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let endpoint = Self {
            node_id: object.required("nodeId")?.text()?.into(),
            port: object.required("port")?.text()?.to_owned(),
        };
        object.done()?;
        Ok(endpoint)
    }
}
