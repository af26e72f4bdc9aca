//! Validation issues: their shape and their order (wire-format.md §8; seed A
//! `WorkflowValidationIssueV1`).

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::code::{Class, Code};
use crate::ids::{EdgeId, NodeId};

/// One finding about a graph or a sample input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Which rule.
    pub code: Code,
    /// Whether it prevents publication.
    pub severity: Severity,
    /// What is wrong and what to do; no part of the contract.
    pub message: String,
    /// Where.
    pub location: Location,
}

/// Whether an issue prevents publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// Where an issue stands. A path is a JSON Pointer: into the document for the graph, into
/// the sample input, or relative to the node's or edge's own object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum Location {
    /// The document.
    Graph {
        /// The place, e.g. `/schemas/claim/type`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
    },
    /// A dry-run's sample input.
    Input {
        /// The place.
        path: String,
    },
    /// A node.
    Node {
        /// Which.
        node_id: NodeId,
        /// The place inside it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
    },
    /// An edge.
    Edge {
        /// Which.
        edge_id: EdgeId,
        /// The place inside it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
    },
}

impl Issue {
    /// An issue whose severity follows from its code (Q1).
    #[must_use]
    pub fn new(code: Code, location: Location, message: impl Into<String>) -> Self {
        let severity = match code.class() {
            Class::Warning => Severity::Warning,
            _ => Severity::Error,
        };
        Self {
            code,
            severity,
            message: message.into(),
            location,
        }
    }

    /// Whether it prevents publication.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The order of §8: graph, input, nodes by id, edges by id; then code, path. The message
    /// only breaks ties between issues that the contract cannot tell apart.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        self.location
            .rank()
            .cmp(&other.location.rank())
            .then_with(|| self.code.as_str().cmp(other.code.as_str()))
            .then_with(|| self.location.path().cmp(&other.location.path()))
            .then_with(|| self.message.cmp(&other.message))
    }
}

impl Location {
    /// The document as a whole.
    #[must_use]
    pub fn graph() -> Self {
        Self::Graph { path: None }
    }

    /// A place in the document.
    #[must_use]
    pub fn graph_at(path: impl Into<String>) -> Self {
        Self::Graph {
            path: Some(path.into()),
        }
    }

    /// A node as a whole.
    #[must_use]
    pub fn node(id: &NodeId) -> Self {
        Self::Node {
            node_id: id.clone(),
            path: None,
        }
    }

    /// A place in a node.
    #[must_use]
    pub fn node_at(id: &NodeId, path: impl Into<String>) -> Self {
        Self::Node {
            node_id: id.clone(),
            path: Some(path.into()),
        }
    }

    /// An edge as a whole.
    #[must_use]
    pub fn edge(id: &EdgeId) -> Self {
        Self::Edge {
            edge_id: id.clone(),
            path: None,
        }
    }

    /// A place in an edge.
    #[must_use]
    pub fn edge_at(id: &EdgeId, path: impl Into<String>) -> Self {
        Self::Edge {
            edge_id: id.clone(),
            path: Some(path.into()),
        }
    }

    /// The path, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Input { path } => Some(path),
            Self::Graph { path } | Self::Node { path, .. } | Self::Edge { path, .. } => {
                path.as_deref()
            }
        }
    }

    fn rank(&self) -> (u8, &str) {
        match self {
            Self::Graph { .. } => (0, ""),
            Self::Input { .. } => (1, ""),
            Self::Node { node_id, .. } => (2, node_id.as_str()),
            Self::Edge { edge_id, .. } => (3, edge_id.as_str()),
        }
    }
}
