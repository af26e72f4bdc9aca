//! Agents (server.md §6): definitions, and the providers that execute them. A provider is
//! asked with a text and answers with a text or a JSON value, or fails with a code of
//! wire-format.md §12; all else about a child is the engine's.

mod definition;
mod scripted;

use std::time::Duration;

use sluicegate_core::catalogue::{AgentRow, AgentStatus};
use sluicegate_core::code::Code;
use sluicegate_core::run::{Cost, Usage};
use sluicegate_core::value::Value;

pub use definition::{AgentDefinition, Pricing, Rule, Then};

/// What an agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The effective input, as text (M5).
    pub input: String,
    /// Which attempt of its node this is.
    pub attempt: u32,
}

/// How an agent answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer, or a code and why.
    pub answer: Result<Value, (String, String)>,
    /// Tokens, where they are known.
    pub usage: Option<Usage>,
    /// How long the provider takes.
    pub delay: Duration,
}

impl AgentDefinition {
    /// Whether a provider of this binary can execute the definition.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn judge(&self) -> Result<(), String> {
        match self.provider.as_str() {
            "scripted" => scripted::judge(&self.rules),
            other => Err(format!("the provider {other:?} is not known here")),
        }
    }

    /// Asks the agent.
    #[must_use]
    pub fn ask(&self, question: &Question) -> Reply {
        match self.provider.as_str() {
            "scripted" => scripted::answer(&self.rules, question),
            other => Reply {
                answer: Err((
                    Code::AgentRefused.as_str().to_owned(),
                    format!("the provider {other:?} is not known here"),
                )),
                usage: None,
                delay: Duration::ZERO,
            },
        }
    }

    /// What tokens cost by this revision's own prices, in micro-USD rounded up (U1, U2).
    #[must_use]
    pub fn price(&self, revision: u64, usage: Usage) -> Option<Cost> {
        let pricing = self.pricing?;
        let million = 1_000_000_u128;
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = part(usage.input_tokens, pricing.input_micros_per_million_tokens)
            + part(
                usage.output_tokens,
                pricing.output_micros_per_million_tokens,
            );
        Some(Cost {
            amount_micros: u64::try_from(sum.div_ceil(million)).unwrap_or(u64::MAX),
            pricing_snapshot_id: format!("{}@{revision}", self.agent_id),
        })
    }

    /// The catalogue's row of a revision.
    #[must_use]
    pub fn row(&self, revision: u64, status: AgentStatus) -> AgentRow {
        AgentRow {
            agent_id: self.agent_id.clone(),
            revision,
            name: self.name.clone(),
            status,
            provider: self.provider.clone(),
            model: self.model.clone(),
            structured_output: self.structured_output,
            required_permissions: self.required_permissions.clone(),
        }
    }
}
