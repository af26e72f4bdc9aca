//! The plan as it is stored (run-machine.md §1). Every member is fixed at publication;
//! golden files keep it loading for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::Cancellation;
use crate::gate::Gate;
use crate::ids::{ActionId, AgentId, EdgeId, Hash, NodeId, Permission, SchemaId};
use crate::mapping::Mapping;
use crate::time::Millis;
use crate::value::Value;
use crate::{ids::Endpoint, node_type::NodeType};

/// A compiled graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// [`super::PLAN_VERSION`].
    pub plan_version: u32,
    /// [`super::COMPILER_VERSION`] of the compiler that made it.
    pub compiler_version: String,
    /// The semantic checksum of the graph (G1).
    pub graph_checksum: Hash,
    /// The nodes in plan order (O1).
    pub nodes: Vec<Node>,
    /// The edges by id.
    pub edges: Vec<Edge>,
    /// The graph's own schemas that anything here names. Built-in ones are known by name.
    pub schemas: BTreeMap<SchemaId, Value>,
}

/// A node of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The node's id in the graph.
    pub id: NodeId,
    /// Port name → schema id, for every port of the type.
    pub ports: BTreeMap<String, SchemaId>,
    /// What it does.
    #[serde(flatten)]
    pub task: Task,
    /// How its input is built, in order of target pointer; empty: the incoming envelope (M1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// What happens when an attempt fails; none for types that cannot choose (A3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Task {
    /// Emits the invocation's input.
    Input,
    /// Runs an agent.
    Agent(AgentTask),
    /// Runs an agent that must decide.
    AgentDecision(AgentTask),
    /// Evaluates.
    Gate {
        /// The parsed logic.
        expr: Gate,
    },
    /// Validates.
    Validator {
        /// Against which schema.
        schema: SchemaId,
    },
    /// Invokes an action.
    Action(ActionTask),
    /// Collects.
    Merge,
    /// Ends a path.
    Output,
}

/// A pinned agent revision and its bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTask {
    /// The agent.
    pub agent_id: AgentId,
    /// Its exact revision.
    pub revision: u64,
    /// Time limit of one attempt.
    pub timeout_ms: Millis,
    /// What the run must be allowed, fixed at publication.
    #[serde(default)]
    pub required_permissions: Vec<Permission>,
}

/// A pinned action contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionTask {
    /// The action.
    pub action_id: ActionId,
    /// Its exact contract version.
    pub contract_version: u64,
    /// What the contract fixed; none when the plan was made without a catalogue, which
    /// can be simulated but not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ActionContract>,
}

/// What an action's contract fixed at publication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionContract {
    /// Time limit of one attempt.
    pub timeout_ms: Millis,
    /// Whether it listens to a cancellation.
    pub cancellation: Cancellation,
    /// What the run must be allowed.
    pub required_permissions: Vec<Permission>,
    /// Its own codes that may be retried.
    pub retryable_codes: Vec<String>,
}

/// A failure policy within its bounds (wire-format.md §7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// 1 to 5.
    pub max_attempts: u32,
    /// Exact codes that are retried.
    pub retry_on: Vec<String>,
    /// The wait before a retry.
    pub backoff: Backoff,
    /// What happens after the last attempt.
    pub on_exhausted: OnExhausted,
}

/// The wait before a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backoff {
    /// How it grows.
    pub kind: BackoffKind,
    /// Before the second attempt.
    pub initial_ms: Millis,
    /// The longest wait.
    pub maximum_ms: Millis,
}

/// How a wait grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackoffKind {
    /// Always the same.
    Fixed,
    /// Doubles each time, up to the longest.
    Exponential,
}

/// What happens when no attempt is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExhausted {
    /// The `failure` port emits.
    EmitFailure,
    /// The run ends.
    FailRun,
}

/// An edge of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edge {
    /// The edge's id in the graph.
    pub id: EdgeId,
    /// Where the envelope comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub target: Endpoint,
}

impl Task {
    /// The node type.
    #[must_use]
    pub fn node_type(&self) -> NodeType {
        match self {
            Self::Input => NodeType::Input,
            Self::Agent(_) => NodeType::Agent,
            Self::AgentDecision(_) => NodeType::AgentDecision,
            Self::Gate { .. } => NodeType::Gate,
            Self::Validator { .. } => NodeType::Validator,
            Self::Action(_) => NodeType::Action,
            Self::Merge => NodeType::Merge,
            Self::Output => NodeType::Output,
        }
    }

    /// Time limit of a child's attempt, where it is known.
    #[must_use]
    pub fn timeout(&self) -> Option<Millis> {
        match self {
            Self::Agent(task) | Self::AgentDecision(task) => Some(task.timeout_ms),
            Self::Action(task) => task.contract.as_ref().map(|contract| contract.timeout_ms),
            _ => None,
        }
    }

    /// What the run must be allowed for this node.
    #[must_use]
    pub fn required_permissions(&self) -> &[Permission] {
        match self {
            Self::Agent(task) | Self::AgentDecision(task) => &task.required_permissions,
            Self::Action(ActionTask {
                contract: Some(contract),
                ..
            }) => &contract.required_permissions,
            _ => &[],
        }
    }

    /// Codes of the action's own contract that may be retried.
    #[must_use]
    pub fn retryable_codes(&self) -> &[String] {
        match self {
            Self::Action(ActionTask {
                contract: Some(contract),
                ..
            }) => &contract.retryable_codes,
            _ => &[],
        }
    }

    /// Whether a running child of this node can be asked to stop.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        match self {
            Self::Action(ActionTask {
                contract: Some(contract),
                ..
            }) => contract.cancellation,
            Self::Action(_) => Cancellation::NotSupported,
            _ => Cancellation::Cooperative,
        }
    }
}

impl Policy {
    /// The wait after attempt `n` (from 1), in milliseconds (wire-format.md §7).
    #[must_use]
    pub fn delay_after(&self, n: u32) -> Millis {
        let Backoff {
            kind,
            initial_ms,
            maximum_ms,
        } = self.backoff;
        match kind {
            BackoffKind::Fixed => initial_ms,
            BackoffKind::Exponential => {
                let factor = 1u64.checked_shl(n.saturating_sub(1)).unwrap_or(u64::MAX);
                Millis(initial_ms.0.saturating_mul(factor).min(maximum_ms.0))
            }
        }
    }
}
