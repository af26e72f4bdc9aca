//! The eight node types and their ports (wire-format.md G4, G5; seed A "Ports"). The graph,
//! the plan and the run all speak of them.

use crate::code::Code;
use crate::value::{JsonError, Place};

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

    /// Reads a wire name; else `json.wrong-type`, naming the known ones.
    pub(crate) fn read(place: &Place<'_>) -> Result<Self, JsonError> {
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
