//! Request and response types shared by the server, the app and other clients (api.md).
//!
//! Requests are read by [`crate::value::Place`], so that an unknown member is refused by its
//! pointer (wire-format.md J4); answers derive serde both ways. A graph travels as a value:
//! [`crate::graph::Graph::read`] is the only reader of its shape.

mod problem;
mod run;
mod session;
mod workflow;

pub use problem::{Problem, ProblemError, refusal_code};
pub use run::{
    AttemptCorrelation, CancelRequest, CancelState, Cancellation, Cancelled, EXPORT_FORMAT,
    EnqueueRequest, ExportedRun, NodeDetail, NodeProgress, Parked, RunAccepted, RunDetail,
    RunEvent, RunResult, RunSummary, SimulateRequest, SimulateSubject,
};
pub use session::Session;
pub use workflow::{
    ChangeRequest, CreateRequest, Draft, PublishRequest, Published, Revision, Saved, UpdateRequest,
    ValidateRequest, WorkflowDetail, WorkflowRow, WorkflowStatus,
};

pub use crate::audit::{Entry as AuditEntry, Verification as AuditVerification};
pub use crate::compile::{DryRunReport, Reference};
pub use crate::simulate::PayloadView;

use serde::{Deserialize, Deserializer, Serialize};

use crate::value::Value;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The rows, in the list's fixed order.
    pub items: Vec<T>,
    /// Where the next page begins; none on the last one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Rows a page has when nobody asks.
    pub const DEFAULT_LIMIT: usize = 50;
    /// The most rows that a page has.
    pub const MAX_LIMIT: usize = 100;
    /// The most rows that a page of an export has.
    pub const EXPORT_LIMIT: usize = 1_000;

    /// All there is, on one page.
    #[must_use]
    pub fn whole(items: Vec<T>) -> Self {
        Self {
            items,
            next_cursor: None,
        }
    }
}

/// Reads a member whose `null` is a value and not an absence.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
