//! Mappings as they stand in the document (wire-format.md §4; seed A "Data mappings").
//! Pointers, names and templates are text here; validation judges and parses them.

use serde::Serialize;

use crate::code::Code;
use crate::ids::NodeId;
use crate::value::{JsonError, Place, Value};

/// One target and what goes there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// JSON Pointer into the node's input.
    pub target_pointer: String,
    /// What goes there.
    pub binding: Binding,
}

/// Where a mapped value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Binding {
    /// Immutable JSON.
    Literal {
        /// The value.
        value: Value,
    },
    /// A place in an upstream port's envelope.
    #[serde(rename_all = "camelCase")]
    Path {
        /// The node.
        source_node_id: NodeId,
        /// Its output port.
        source_port: String,
        /// JSON Pointer into the envelope.
        pointer: String,
    },
    /// A text with variables.
    Template {
        /// The text with `{{ name }}` tokens.
        template: String,
        /// What the names stand for.
        variables: Vec<TemplateVariable>,
    },
}

/// A declared template variable (M3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemplateVariable {
    /// `[A-Za-z_][A-Za-z0-9_.]*`
    pub name: String,
    /// What it stands for.
    #[serde(flatten)]
    pub source: VariableSource,
}

/// What a template variable stands for: `binding` of kind `path`, or `platform`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableSource {
    /// A place in an upstream port's envelope.
    Binding(PathBinding),
    /// The id of a platform variable (M4).
    Platform(String),
}

/// The path binding inside a template variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "path", rename_all = "camelCase")]
pub struct PathBinding {
    /// The node.
    pub source_node_id: NodeId,
    /// Its output port.
    pub source_port: String,
    /// JSON Pointer into the envelope.
    pub pointer: String,
}

impl Mapping {
    pub(super) fn read_list(place: Option<Place<'_>>) -> Result<Option<Vec<Self>>, JsonError> {
        place
            .map(|place| place.array()?.iter().map(Self::read).collect())
            .transpose()
    }

    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let mapping = Self {
            target_pointer: object.required("targetPointer")?.text()?.to_owned(),
            binding: Binding::read(&object.required("binding")?)?,
        };
        object.done()?;
        Ok(mapping)
    }
}

impl Binding {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let kind = object.required("kind")?;
        let binding = match kind.text()? {
            "literal" => Self::Literal {
                value: object.required("value")?.value().clone(),
            },
            "path" => {
                let path = PathBinding::members(&mut object)?;
                Self::Path {
                    source_node_id: path.source_node_id,
                    source_port: path.source_port,
                    pointer: path.pointer,
                }
            }
            "template" => Self::Template {
                template: object.required("template")?.text()?.to_owned(),
                variables: crate::graph::read_list(
                    object.optional("variables"),
                    TemplateVariable::read,
                )?,
            },
            other => {
                return Err(kind.error(
                    Code::JsonWrongType,
                    format!("{other:?} is not a binding kind; use literal, path or template"),
                ));
            }
        };
        object.done()?;
        Ok(binding)
    }
}

impl PathBinding {
    fn members(object: &mut crate::value::Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            source_node_id: object.required("sourceNodeId")?.text()?.into(),
            source_port: object.required("sourcePort")?.text()?.to_owned(),
            pointer: object.required("pointer")?.text()?.to_owned(),
        })
    }
}

impl TemplateVariable {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let name = object.required("name")?.text()?.to_owned();
        let source = match (object.optional("binding"), object.optional("platform")) {
            (Some(place), None) => {
                let mut object = place.object()?;
                let kind = object.required("kind")?;
                if kind.text()? != "path" {
                    return Err(kind.error(
                        Code::JsonWrongType,
                        "a template variable's binding is of kind path",
                    ));
                }
                let path = PathBinding::members(&mut object)?;
                object.done()?;
                VariableSource::Binding(path)
            }
            (None, Some(place)) => VariableSource::Platform(place.text()?.to_owned()),
            (Some(_), Some(place)) => {
                return Err(place.error(
                    Code::JsonUnknownMember,
                    "a template variable has either a binding or a platform variable",
                ));
            }
            (None, None) => {
                return Err(place.error(
                    Code::JsonMissingMember,
                    "a template variable needs a binding or a platform variable",
                ));
            }
        };
        object.done()?;
        Ok(Self { name, source })
    }
}
