//! Why a command has no answer: one line on standard error, exit code 2 (server.md §2).

use sluicegate_core::value::JsonError;

use super::output::{Output, message, name as shown, plain};

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
            ..
        } = error;
        let pointer = &shown(pointer);
        let place = match (position, pointer.as_str()) {
            (Some((line, column)), "") => format!("{name}:{line}:{column}"),
            (Some((line, column)), pointer) => format!("{name}:{line}:{column}: at {pointer}"),
            (None, "") => name.to_owned(),
            (None, pointer) => format!("{name}: at {pointer}"),
        };
        let detail = message(&Self::unplaced(error));
        Self(format!("{place}: {detail} ({code})"))
    }

    /// The message of a refusal without the place, which the line begins with already.
    fn unplaced(error: &JsonError) -> String {
        let mut detail = error.detail.clone();
        if let Some((line, column)) = error.position {
            detail = detail.replace(&format!(" at line {line}, column {column}"), "");
        }
        detail.replace(&format!(" at {:?}", error.pointer), "")
    }

    /// Prints the line.
    pub(super) fn print(&self) {
        // A message may quote a file: it stays on one line and rings no bell.
        Output::fault(&plain(&self.0));
    }
}
