//! The eight node types (wire-format.md G4; seed A "Ports"). One file per type; what
//! several share (mappings, the failure policy) stands in files of its own.

mod action;
mod agent;
mod gate;
mod mapping;
mod merge;
mod output;
mod policy;
mod validator;

use serde::Serialize;

use crate::node_type::NodeType;
use crate::value::{JsonError, Object};

pub use action::{ActionNode, ActionReference};
pub use agent::{AgentNode, AgentReference};
pub use gate::{GateNode, Logic};
pub use mapping::{Binding, Mapping, PathBinding, TemplateVariable, VariableSource};
pub use merge::MergeNode;
pub use output::OutputNode;
pub use policy::{Backoff, FailurePolicy};
pub use validator::ValidatorNode;

/// A node's type and what only this type has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Kind {
    /// Validates and emits the invocation's input. Exactly one in a graph.
    Input,
    /// Executes a pinned agent revision.
    Agent(AgentNode),
    /// Executes a pinned agent revision that must decide pass or fail.
    AgentDecision(AgentNode),
    /// Evaluates gate logic and forwards its input unchanged.
    Gate(GateNode),
    /// Validates its input against a schema.
    Validator(ValidatorNode),
    /// Invokes a pinned action contract.
    Action(ActionNode),
    /// Collects every incoming envelope.
    Merge(MergeNode),
    /// One result of the workflow. At least one in a graph.
    Output(OutputNode),
}

impl Kind {
    /// An unconfigured node of a type.
    #[must_use]
    pub fn new(node_type: NodeType) -> Self {
        match node_type {
            NodeType::Input => Self::Input,
            NodeType::Agent => Self::Agent(AgentNode::default()),
            NodeType::AgentDecision => Self::AgentDecision(AgentNode::default()),
            NodeType::Gate => Self::Gate(GateNode::default()),
            NodeType::Validator => Self::Validator(ValidatorNode::default()),
            NodeType::Action => Self::Action(ActionNode::default()),
            NodeType::Merge => Self::Merge(MergeNode::default()),
            NodeType::Output => Self::Output(OutputNode::default()),
        }
    }

    /// The type.
    #[must_use]
    pub fn node_type(&self) -> NodeType {
        match self {
            Self::Input => NodeType::Input,
            Self::Agent(_) => NodeType::Agent,
            Self::AgentDecision(_) => NodeType::AgentDecision,
            Self::Gate(_) => NodeType::Gate,
            Self::Validator(_) => NodeType::Validator,
            Self::Action(_) => NodeType::Action,
            Self::Merge(_) => NodeType::Merge,
            Self::Output(_) => NodeType::Output,
        }
    }

    /// The mappings, for the types that may have them; empty where there are none.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        let mappings = match self {
            Self::Agent(node) | Self::AgentDecision(node) => &node.mappings,
            Self::Action(node) => &node.mappings,
            Self::Output(node) => &node.mappings,
            Self::Input | Self::Gate(_) | Self::Validator(_) | Self::Merge(_) => &None,
        };
        mappings.as_deref().unwrap_or_default()
    }

    /// The failure policy, where one is given.
    #[must_use]
    pub fn failure_policy(&self) -> Option<&FailurePolicy> {
        match self {
            Self::Agent(node) | Self::AgentDecision(node) => node.failure_policy.as_ref(),
            Self::Action(node) => node.failure_policy.as_ref(),
            _ => None,
        }
    }

    pub(super) fn read(node_type: NodeType, object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(match node_type {
            NodeType::Input => Self::Input,
            NodeType::Agent => Self::Agent(AgentNode::read(object)?),
            NodeType::AgentDecision => Self::AgentDecision(AgentNode::read(object)?),
            NodeType::Gate => Self::Gate(GateNode::read(object)?),
            NodeType::Validator => Self::Validator(ValidatorNode::read(object)?),
            NodeType::Action => Self::Action(ActionNode::read(object)?),
            NodeType::Merge => Self::Merge(MergeNode::read(object)?),
            NodeType::Output => Self::Output(OutputNode::read(object)?),
        })
    }
}
