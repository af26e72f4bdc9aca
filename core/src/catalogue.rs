//! What a graph may refer to: agent revisions and action contracts, as the editor, the
//! checks and the npm package know them (seed A "Required agent and action capabilities";
//! wire-format.md §11 `catalogue`; api.md "Catalogue").

mod read;

use serde::{Deserialize, Serialize};

use crate::ids::{ActionId, AgentId, Permission};
use crate::value::Value;

/// Everything that publishing can pin. Without one, rules about agents, actions and
/// permissions are not judged (wire-format.md Q3).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Catalogue {
    /// Agent revisions.
    pub agents: Vec<AgentRow>,
    /// Action contracts.
    pub actions: Vec<ActionDescriptor>,
    /// What the caller may do; none: permissions are not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<Permission>>,
}

/// One exact agent revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentRow {
    /// The agent.
    pub agent_id: AgentId,
    /// The revision, from 1.
    pub revision: u64,
    /// What people call it.
    pub name: String,
    /// Whether it may run.
    pub status: AgentStatus,
    /// Which provider executes it.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Whether it can be asked for JSON of a schema.
    pub structured_output: bool,
    /// What a caller must be allowed.
    pub required_permissions: Vec<Permission>,
}

/// Whether an agent may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// It may.
    Active,
    /// Not for now.
    Paused,
    /// Not any more.
    Archived,
}

/// One exact action contract: the seed's `VersionedActionDescriptor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionDescriptor {
    /// The action.
    pub id: ActionId,
    /// The contract version, from 1.
    pub contract_version: u64,
    /// What it does, for people.
    pub description: String,
    /// What a caller must be allowed.
    pub required_permissions: Vec<Permission>,
    /// What it takes.
    pub input_schema: Value,
    /// What it gives.
    pub output_schema: Value,
    /// Time limit of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Whether the same key means the same effect.
    pub idempotency: Idempotency,
    /// What it may touch.
    pub risk: Risk,
    /// Whether a running invocation can be stopped.
    pub cancellation: Cancellation,
    /// Codes of this contract that may be retried (wire-format.md §12).
    #[serde(default)]
    pub retryable_codes: Vec<String>,
}

/// Whether the same key means the same effect. Only `required` may enter a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idempotency {
    /// It does.
    Required,
    /// Nothing is promised.
    None,
}

/// What an action may touch. Only the first two may enter a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Reads only.
    Read,
    /// Writes inside this workspace.
    WorkspaceWrite,
    /// Reaches outside.
    External,
    /// Cannot be taken back.
    Destructive,
}

/// Whether a running invocation can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cancellation {
    /// It listens.
    Cooperative,
    /// It runs to its end.
    NotSupported,
}

impl Catalogue {
    /// The exact agent revision, if it is here.
    #[must_use]
    pub fn agent(&self, id: &str, revision: u64) -> Option<&AgentRow> {
        self.agents
            .iter()
            .find(|row| row.agent_id == *id && row.revision == revision)
    }

    /// The exact action contract, if it is here.
    #[must_use]
    pub fn action(&self, id: &str, contract_version: u64) -> Option<&ActionDescriptor> {
        self.actions
            .iter()
            .find(|row| row.id == *id && row.contract_version == contract_version)
    }
}
