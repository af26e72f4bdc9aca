//! An agent's definition: what a revision fixes for ever (server.md §6).

use serde::{Deserialize, Serialize};

use sluicegate_core::ids::{AgentId, Permission};
use sluicegate_core::run::Usage;
use sluicegate_core::value::Value;

/// A definition, as it is written and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentDefinition {
    /// The agent.
    pub agent_id: AgentId,
    /// What people call it.
    pub name: String,
    /// Which provider executes it.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// What the model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Whether it can be asked for JSON of a schema.
    #[serde(default)]
    pub structured_output: bool,
    /// What a caller must be allowed.
    #[serde(default)]
    pub required_permissions: Vec<Permission>,
    /// What its tokens cost; none: its runs count as unpriced (U2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Pricing>,
    /// What a `scripted` agent answers; the first rule that fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// Prices in micro-USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pricing {
    /// For a million tokens read.
    pub input_micros_per_million_tokens: u64,
    /// For a million tokens written.
    pub output_micros_per_million_tokens: u64,
}

/// A rule of a scripted agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// An expression of the gate language over the input.
    pub when: Value,
    /// Fits this attempt of the node alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The answer.
    pub then: Then,
    /// What the answer took; nothing: nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long the answer takes, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
}

/// What a rule answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// A text.
    Text(String),
    /// A JSON value.
    Json(Value),
    /// A failure.
    Failure {
        /// A code of wire-format.md §12.
        code: String,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde takes"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
