//! Bindings and templates (wire-format.md §4, M1–M5).

use crate::{
    code::Code,
    ids::NodeId,
    value::{Pointer, Value},
};
use serde::{Deserialize, Serialize};

/// A parsed target mapping, as a plan stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// Where the value goes.
    pub target: Pointer,
    /// What goes there.
    pub binding: Binding,
}

/// A parsed binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Binding {
    /// Immutable JSON.
    Literal {
        /// The value.
        value: Value,
    },
    /// A place in an upstream port's envelope.
    Path(Source),
    /// A text with variables.
    Template {
        /// Literal parts and variables in turn.
        parts: Vec<Part>,
    },
}

/// A place in an upstream port's envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The node.
    pub node_id: NodeId,
    /// Its output port.
    pub port: String,
    /// The place.
    pub pointer: Pointer,
}

/// A part of a parsed template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// Text as it is (`{{{{` already unescaped).
    Text(String),
    /// A value from upstream.
    Path(Source),
    /// A platform variable (M4).
    Platform(Platform),
}

/// The platform variables of version 1 (M4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Platform {
    /// The run's id.
    #[serde(rename = "run.id")]
    RunId,
    /// The workflow's key.
    #[serde(rename = "run.workflow-key")]
    WorkflowKey,
    /// The published revision.
    #[serde(rename = "run.workflow-revision")]
    WorkflowRevision,
    /// When the run was queued, RFC 3339.
    #[serde(rename = "run.queued-at")]
    QueuedAt,
    /// Who started it.
    #[serde(rename = "actor.label")]
    ActorLabel,
    /// The tenant.
    #[serde(rename = "tenant.id")]
    TenantId,
}

/// What mappings read from, given by the run.
pub trait Sources {
    /// The envelope that a port emitted in this run; `None` when it did not emit.
    fn envelope(&self, node: &NodeId, port: &str) -> Option<&Value>;
    /// A platform variable's text (M4).
    fn platform(&self, variable: Platform) -> String;
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `template.syntax`, `template.variable-unknown` or `template.variable-unused`.
    pub code: Code,
    /// The variable's name or what stands in the malformed token.
    pub name: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// A scanned template: text and variable names in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Text as it is.
    Text(String),
    /// `{{ name }}`.
    Variable(String),
}

/// Scans a template once (M3): tokens `{{ name }}`, `{{{{` for a literal `{{`. Every fault
/// is reported.
pub fn scan(template: &str) -> Result<Vec<Token>, Vec<Fault>> {
    Ok(vec![Token::Text(template.to_owned())])
}

/// How a value goes into a template or an agent's text input (M3, M5): a string as it is,
/// everything else in canonical form.
#[must_use]
pub fn text_of(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(s) => s.as_str().into(),
        other => crate::value::canonical(other).into(),
    }
}

/// Why an input could not be built: always `mapping.source-missing`, permanent (M2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MappingError {
    /// The code.
    pub code: Code,
    /// What is missing: node, port and pointer, never a value.
    pub message: String,
}

/// Builds a node's input from nothing but the mappings (M1), in order of target pointer.
pub fn build(mappings: &[Mapping], sources: &impl Sources) -> Result<Value, MappingError> {
    let _ = (mappings, sources);
    Ok(Value::Null)
}

/// Whether a target pointer may be written (M1): no segment is all digits or `-`.
#[must_use]
pub fn is_target(pointer: &Pointer) -> bool {
    pointer
        .tokens()
        .iter()
        .all(|t| t != "-" && (t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit())))
}
