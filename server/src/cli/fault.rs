//! Why a command has no answer: one line on standard error, exit code 2 (server.md §2).

use sluicegate_core::value::JsonError;

use super::output::{Output, plain};

/// Why there is no answer, with the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(String);

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A refusal of J7, placed in its file: by line and column, else by pointer.
    pub(super) fn refused(name: &str, error: &JsonError) -> Self {
        let JsonError {
            code,
            pointer,
            position,
            detail,
        } = error;
        let place = match (position, pointer.as_str()) {
            (Some((line, column)), "") => format!("{name}:{line}:{column}"),
            (Some((line, column)), pointer) => format!("{name}:{line}:{column}: at {pointer}"),
            (None, "") => name.to_owned(),
            (None, pointer) => format!("{name}: at {pointer}"),
        };
        Self(format!("{place}: {detail} ({code})"))
    }

    /// Prints the line.
    pub(super) fn print(&self) {
        // A message may quote a file: it stays on one line and rings no bell.
        Output::fault(&plain(&self.0));
    }
}
