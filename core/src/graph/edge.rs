//! Edges (wire-format.md G6).

use serde::Serialize;

use crate::ids::{EdgeId, Endpoint};
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

impl Edge {
    pub(super) fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let edge = Self {
            id: object.required("id")?.text()?.into(),
            source: read_endpoint(&object.required("source")?)?,
            target: read_endpoint(&object.required("target")?)?,
            label: super::node::optional_text(object.optional("label"))?,
        };
        object.done()?;
        Ok(edge)
    }
}

fn read_endpoint(place: &Place<'_>) -> Result<Endpoint, JsonError> {
    let mut object = place.object()?;
    let endpoint = Endpoint {
        node_id: object.required("nodeId")?.text()?.into(),
        port: object.required("port")?.text()?.to_owned(),
    };
    object.done()?;
    Ok(endpoint)
}
