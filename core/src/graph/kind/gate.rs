//! `gate` (wire-format.md G4, §5).

use serde::Serialize;

use crate::graph::node::optional_integer;
use crate::value::{JsonError, Object, Value};

/// A node that evaluates gate logic.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GateNode {
    /// What decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logic: Option<Logic>,
}

/// Gate logic as it stands in the document; what is inside `expr` is judged by
/// [`crate::gate::Expr::parse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Logic {
    /// The language's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expr: Option<Value>,
}

impl GateNode {
    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        let Some(place) = object.optional("logic") else {
            return Ok(Self::default());
        };
        let mut object = place.object()?;
        let logic = Logic {
            version: optional_integer(object.optional("version"))?,
            expr: object.optional("expr").map(|place| place.value().clone()),
        };
        object.done()?;
        Ok(Self { logic: Some(logic) })
    }
}
