//! Refusals on their way out (api.md "Shared shapes", `Problem`): this file is the HTTP door
//! of the stable codes.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::{Problem, ProblemError};
use sluicegate_core::code::Code;
use sluicegate_core::simulate::FixtureError;
use sluicegate_core::validate::Issue;
use sluicegate_core::value::JsonError;

use crate::auth;
use crate::engine::EngineError;
use crate::store::StoreError;
use crate::stream::CursorError;

/// Why a request is not carried out.
#[derive(Debug, Clone)]
pub struct Refusal(pub(super) Box<Problem>);

impl Refusal {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Code::RequestMalformed, detail)
    }

    /// A task of ours that stopped where it never should.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the shape that map_err takes"
    )]
    pub(crate) fn panicked(error: tokio::task::JoinError) -> Self {
        tracing::error!(%error, "a task of a request stopped");
        Self::new(Code::Internal, Code::Internal.sentence())
    }

    pub(crate) fn issues(mut self, issues: Vec<Issue>) -> Self {
        self.0.issues = Some(issues);
        self
    }

    pub(crate) fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.0.pointer = Some(pointer.into());
        self
    }

    /// A draft version named by a header that is not the present one is 412, not 409.
    pub(crate) fn by_header(mut self) -> Self {
        if self.0.code == Code::WorkflowRevisionConflict && self.0.draft_version.is_some() {
            self.0.status = StatusCode::PRECONDITION_FAILED.as_u16();
        }
        self
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let code = error.code();
        let detail = match (&error, code) {
            // The words of a database stay in the log.
            (_, Code::Internal | Code::Unavailable) => {
                tracing::error!(%error, "the store failed");
                code.sentence().to_owned()
            }
            (StoreError::DraftConflict { draft_version }, _) => {
                format!("the draft is at version {draft_version}; load it and try again")
            }
            _ => error.to_string(),
        };
        let mut refusal = Self::new(code, detail);
        if let StoreError::DraftConflict { draft_version } = error {
            refusal.0.draft_version = Some(draft_version);
        }
        refusal
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let code = error.code();
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Graph(issues) => Self::new(code, code.sentence()).issues(issues),
            EngineError::Fixtures(errors) => {
                let mut refusal = Self::new(code, code.sentence());
                refusal.0.errors = errors.into_iter().map(fixture).collect();
                refusal
            }
            EngineError::Refused {
                detail,
                pointer,
                node_id,
                ..
            } => {
                let mut refusal = Self::new(code, detail.clone());
                // The engine sees the input alone, a caller the body around it.
                refusal.0.pointer = pointer.map(|pointer| format!("/input{pointer}"));
                refusal.0.errors = node_id
                    .map(|node_id| ProblemError {
                        code: None,
                        node_id: Some(node_id),
                        pointer: None,
                        reason: detail,
                    })
                    .into_iter()
                    .collect();
                refusal
            }
            EngineError::Parked(_) => Self::new(code, error.to_string()),
            EngineError::Unreadable(_) | EngineError::Machine(_) | EngineError::Broken(_) => {
                tracing::error!(%error, "the engine failed");
                Self::new(code, code.sentence())
            }
        }
    }
}

fn fixture(error: FixtureError) -> ProblemError {
    ProblemError {
        code: None,
        node_id: Some(error.node_id),
        pointer: error.pointer,
        reason: error.reason,
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self(Box::new(Problem::refused(&error)))
    }
}

impl From<auth::Refused> for Refusal {
    fn from(refused: auth::Refused) -> Self {
        match refused {
            auth::Refused::Code(code, detail) => Self::new(code, detail),
            auth::Refused::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Refusal {
    /// The body follows in [`super::outer`], which knows the request's id.
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<CursorError> for Refusal {
    fn from(_: CursorError) -> Self {
        let code = Code::WorkflowCursorInvalid;
        Self::new(code, code.sentence())
    }
}
