//! `merge` (wire-format.md G4).

use serde::Serialize;

use crate::graph::node::optional_text;
use crate::value::{JsonError, Object};

/// A node that collects every incoming envelope.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MergeNode {
    /// `all` is the only mode of version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

impl MergeNode {
    /// The mode of version 1.
    pub const ALL: &'static str = "all";

    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            mode: optional_text(object.optional("mode"))?,
        })
    }
}
