//! The frames of one stream (server.md §5): durable events carry an `id`, control events and
//! heartbeats never do, so that a browser's resume position is always a durable one.

use sluicegate_core::value::{self, Value};

/// A durable event.
pub(super) fn event(id: &str, event_type: &str, event: &Value) -> String {
    // Canonical JSON has no line break, so one data line is enough.
    format!(
        "id: {id}\nevent: {event_type}\ndata: {}\n\n",
        value::canonical(event)
    )
}

/// Where the next connection begins: at once.
pub(super) fn replay_boundary(next_after: u64) -> String {
    format!(
        "retry: 0\nevent: workflow.replay-boundary\n\
         data: {{\"hasMore\":true,\"nextAfterSequence\":{next_after}}}\n\n"
    )
}

/// The run has ended and everything was sent.
pub(super) fn complete(terminal_sequence: u64, status: &str) -> String {
    format!(
        "event: workflow.stream-complete\n\
         data: {{\"status\":\"{status}\",\"terminalSequence\":{terminal_sequence}}}\n\n"
    )
}

/// How long a browser waits before it comes back, in milliseconds.
pub(super) const RETRY: &str = "retry: 2000\n\n";

/// Shows that somebody is still there.
pub(super) const HEARTBEAT: &str = ": heartbeat\n\n";
