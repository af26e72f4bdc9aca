//! `validator` (wire-format.md G4).

use serde::Serialize;

use crate::graph::node::optional_text;
use crate::ids::SchemaId;
use crate::value::{JsonError, Object};

/// A node that validates its input.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ValidatorNode {
    /// Against which schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaId>,
}

impl ValidatorNode {
    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            schema: optional_text(object.optional("schema"))?.map(SchemaId::from),
        })
    }
}
