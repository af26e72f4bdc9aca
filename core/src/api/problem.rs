//! The body of every refusal: a problem by RFC 9457 (api.md "Shared shapes"; seed A "Stable
//! errors"; wire-format.md J7, X5).

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::ids::NodeId;
use crate::validate::Issue;
use crate::value::JsonError;

/// Why a request was refused, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A stable documentation path for the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong here and what to do. Never quotes a secret.
    pub detail: String,
    /// The stable code.
    pub code: Code,
    /// The request, as in the server's log.
    pub request_id: String,
    /// JSON Pointer into the request's body.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<String>,
    /// Findings about a graph.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub issues: Option<Vec<Issue>>,
    /// The present draft version, when the request saw another one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub draft_version: Option<u64>,
    /// Details, one an item.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<ProblemError>,
}

/// One detail of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemError {
    /// A code of J7, where a value has the wrong shape.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<Code>,
    /// The node whose fixtures are meant (X5).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node_id: Option<NodeId>,
    /// JSON Pointer: into the body, or into the node's fixtures.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<String>,
    /// What is wrong, for people.
    pub reason: String,
}

impl Problem {
    /// A problem with the code's own status and title.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/docs/codes#{code}"),
            title: code.sentence().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            request_id: String::new(),
            pointer: None,
            issues: None,
            draft_version: None,
            errors: Vec::new(),
        }
    }

    /// The problem that a misshapen request body is (J7).
    #[must_use]
    pub fn refused(error: &JsonError) -> Self {
        let pointer = (!error.pointer.is_empty()).then(|| error.pointer.clone());
        let detail = match error.position {
            Some((line, column)) => format!("line {line}, column {column}: {}", error.detail),
            None => error.detail.clone(),
        };
        Self {
            pointer: pointer.clone(),
            errors: vec![ProblemError {
                code: Some(error.code),
                node_id: None,
                pointer,
                reason: error.detail.clone(),
            }],
            ..Self::new(refusal_code(error), detail)
        }
    }
}

/// The code of the request that a refusal of J7 makes: below `/input` the input is invalid,
/// below `/graph` the graph, anywhere else the request is malformed.
#[must_use]
pub fn refusal_code(error: &JsonError) -> Code {
    match error.pointer.split('/').nth(1) {
        Some("input") => Code::WorkflowInputInvalid,
        Some("graph") => Code::WorkflowGraphInvalid,
        _ => Code::RequestMalformed,
    }
}
