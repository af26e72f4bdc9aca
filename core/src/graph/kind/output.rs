//! `output` (wire-format.md G4).

use serde::Serialize;

use super::Mapping;
use crate::value::{JsonError, Object};

/// A node that is one result of the workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct OutputNode {
    /// How the result is built; none: the incoming envelope as it is (M1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<Mapping>>,
}

impl OutputNode {
    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            mappings: Mapping::read_list(object.optional("mappings"))?,
        })
    }
}
