//! Why the engine does not do something (api.md "Codes of requests"; run-machine.md A9).

use sluicegate_core::code::Code;
use sluicegate_core::ids::NodeId;
use sluicegate_core::run::Refusal;
use sluicegate_core::simulate::FixtureError;
use sluicegate_core::validate::Issue;

use crate::payload::Unreadable;
use crate::store::{Parked, StoreError};

/// A refusal or a fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A request is refused with a stable code.
    #[error("{detail}")]
    Refused {
        /// The code.
        code: Code,
        /// Why, for people.
        detail: String,
        /// JSON Pointer into the input, where a place in it is wrong.
        pointer: Option<String>,
        /// The node, where one is the reason.
        node_id: Option<NodeId>,
    },
    /// The graph is not valid.
    #[error("the graph is not valid")]
    Graph(Vec<Issue>),
    /// The fixtures do not fit the graph (X5).
    #[error("the fixtures do not fit the graph")]
    Fixtures(Vec<FixtureError>),
    /// The run's log cannot be folded; nobody works on it until it is repaired (A9).
    #[error("the run is parked at event {}", .0.sequence)]
    Parked(Parked),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A payload cannot be had back.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The run machine refused a command.
    #[error(transparent)]
    Machine(#[from] Refusal),
    /// A fault of ours.
    #[error("{0}")]
    Broken(String),
}

impl EngineError {
    pub(crate) fn refused(code: Code, detail: impl Into<String>) -> Self {
        Self::Refused {
            code,
            detail: detail.into(),
            pointer: None,
            node_id: None,
        }
    }

    /// The stable code that a caller is told.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } => *code,
            Self::Graph(_) => Code::WorkflowGraphInvalid,
            Self::Fixtures(_) => Code::WorkflowFixturesInvalid,
            Self::Parked(parked) => parked.code,
            Self::Store(error) => error.code(),
            Self::Unreadable(_) | Self::Machine(_) | Self::Broken(_) => Code::Internal,
        }
    }
}
