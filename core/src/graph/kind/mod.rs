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

use crate::code::Code;
use crate::value::{JsonError, Object, Place};

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

/// The name of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeType {
    /// `input`
    Input,
    /// `agent`
    Agent,
    /// `agent-decision`
    AgentDecision,
    /// `gate`
    Gate,
    /// `validator`
    Validator,
    /// `action`
    Action,
    /// `merge`
    Merge,
    /// `output`
    Output,
}

/// Which way envelopes pass a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the node.
    Input,
    /// Out of the node.
    Output,
}

/// A port of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// Its direction.
    pub direction: Direction,
    /// Whether several edges may end here: only a merge's `items`.
    pub many: bool,
    /// The schema that every node of the type has here, whatever the graph (G4, G5).
    pub fixed_schema: Option<&'static str>,
}

const fn port(name: &'static str, direction: Direction) -> Port {
    Port {
        name,
        direction,
        many: false,
        fixed_schema: None,
    }
}

const fn fixed(name: &'static str, schema: &'static str) -> Port {
    Port {
        name,
        direction: Direction::Output,
        many: false,
        fixed_schema: Some(schema),
    }
}

const IN: Port = port("input", Direction::Input);
const FAILURE: Port = fixed("failure", "std.failure");

impl NodeType {
    /// All types, in the order of the palette.
    pub const ALL: [Self; 8] = [
        Self::Input,
        Self::Agent,
        Self::AgentDecision,
        Self::Gate,
        Self::Validator,
        Self::Action,
        Self::Merge,
        Self::Output,
    ];

    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Agent => "agent",
            Self::AgentDecision => "agent-decision",
            Self::Gate => "gate",
            Self::Validator => "validator",
            Self::Action => "action",
            Self::Merge => "merge",
            Self::Output => "output",
        }
    }

    /// The type with this wire name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == text)
    }

    /// The seed's port table, inputs first.
    #[must_use]
    pub fn ports(self) -> &'static [Port] {
        const INPUT: &[Port] = &[port("data", Direction::Output)];
        const WORK: &[Port] = &[IN, port("success", Direction::Output), FAILURE];
        const DECISION: &[Port] = &[
            IN,
            port("pass", Direction::Output),
            port("fail", Direction::Output),
            FAILURE,
        ];
        const GATE: &[Port] = &[
            IN,
            port("pass", Direction::Output),
            port("fail", Direction::Output),
        ];
        const VALIDATOR: &[Port] = &[
            IN,
            port("pass", Direction::Output),
            fixed("fail", "std.validation-errors"),
        ];
        const MERGE: &[Port] = &[
            Port {
                name: "items",
                direction: Direction::Input,
                many: true,
                fixed_schema: None,
            },
            port("data", Direction::Output),
        ];
        const OUTPUT: &[Port] = &[IN];
        match self {
            Self::Input => INPUT,
            Self::Agent | Self::Action => WORK,
            Self::AgentDecision => DECISION,
            Self::Gate => GATE,
            Self::Validator => VALIDATOR,
            Self::Merge => MERGE,
            Self::Output => OUTPUT,
        }
    }

    /// The port with this name.
    #[must_use]
    pub fn port(self, name: &str) -> Option<&'static Port> {
        self.ports().iter().find(|port| port.name == name)
    }

    /// Whether a node of this type starts a child (an agent run or an action invocation).
    #[must_use]
    pub fn has_child(self) -> bool {
        matches!(self, Self::Agent | Self::AgentDecision | Self::Action)
    }

    pub(super) fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let text = place.text()?;
        Self::parse(text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            place.error(
                Code::JsonWrongType,
                format!("{text:?} is not a node type; use one of {known}"),
            )
        })
    }
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
