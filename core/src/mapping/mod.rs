//! Bindings and templates (wire-format.md §4, M1–M5).
//!
//! A template is scanned once, when the graph is compiled; what a run inserts is never
//! scanned again, so a value that looks like a token stays a value (M3).

mod template;

pub use template::{Fault, Token, compile_template, render_template, scan};

use crate::{
    code::Code,
    ids::NodeId,
    value::{Map, Pointer, Value},
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
    /// The longest text that may be built, in bytes: a short template can name a long value
    /// very often.
    fn longest_text(&self) -> u64;
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

/// Why an input could not be built, permanent: `mapping.source-missing` (M2), or
/// `node.output-too-large` for a text beyond [`Sources::longest_text`] (run-machine.md A6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MappingError {
    /// The code.
    pub code: Code,
    /// What is missing: node, port and pointer, never a value.
    pub message: String,
}

/// Builds a node's input from nothing but the mappings (M1), in order of target pointer, so
/// the first missing source in that order is the one reported. An empty list, which a run
/// does not build from, gives an empty object.
///
/// Targets do not overlap in a compiled plan; were it otherwise, the later one would win.
pub fn build(mappings: &[Mapping], sources: &impl Sources) -> Result<Value, MappingError> {
    let mut ordered: Vec<_> = mappings.iter().collect();
    ordered.sort_by(|a, b| a.target.cmp(&b.target));
    let mut input = Value::Object(Map::new());
    for mapping in ordered {
        *place(&mut input, &mapping.target) = mapping.binding.resolve(sources)?;
    }
    Ok(input)
}

/// The place of a target, with the objects on the way created.
fn place<'v>(whole: &'v mut Value, target: &Pointer) -> &'v mut Value {
    target.tokens().iter().fold(whole, |at, token| {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        match at {
            Value::Object(members) => members.entry(token.as_str()).or_insert(Value::Null),
            other => other,
        }
    })
}

impl Binding {
    /// The value that goes to the target.
    pub fn resolve(&self, sources: &impl Sources) -> Result<Value, MappingError> {
        match self {
            Self::Literal { value } => Ok(value.clone()),
            Self::Path(source) => source.read(sources).cloned(),
            Self::Template { parts } => render(parts, sources).map(Value::String),
        }
    }
}

impl Source {
    /// The value at this place; `mapping.source-missing` when the port did not emit in this
    /// run or its envelope has nothing there.
    pub fn read<'v>(&self, sources: &'v impl Sources) -> Result<&'v Value, MappingError> {
        let missing = |message: String| MappingError {
            code: Code::MappingSourceMissing,
            message,
        };
        let (node, port) = (&self.node_id, self.port.as_str());
        let envelope = sources.envelope(node, port).ok_or_else(|| {
            missing(format!(
                "node {node} did not emit on port {port} in this run"
            ))
        })?;
        self.pointer.read(envelope).ok_or_else(|| {
            let pointer = self.pointer.to_string();
            missing(format!(
                "what node {node} emitted on port {port} has nothing at {pointer:?}"
            ))
        })
    }
}

/// The text of a compiled template. Values go in by [`text_of`] and are not scanned (M3).
pub fn render(parts: &[Part], sources: &impl Sources) -> Result<String, MappingError> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Path(source) => text.push_str(&text_of(source.read(sources)?)),
            Part::Platform(variable) => text.push_str(&sources.platform(*variable)),
        }
        let limit = sources.longest_text();
        if text.len() as u64 > limit {
            return Err(MappingError {
                code: Code::NodeOutputTooLarge,
                message: format!("a template's text has more than {limit} bytes"),
            });
        }
    }
    Ok(text)
}

/// Whether a target pointer may be written (M1): no segment is all digits or `-`.
#[must_use]
pub fn is_target(pointer: &Pointer) -> bool {
    pointer
        .tokens()
        .iter()
        .all(|t| t != "-" && (t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit())))
}

#[cfg(test)]
mod tests;
