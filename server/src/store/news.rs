//! What processes on one database tell each other (server.md §5).

use sluicegate_core::ids::RunId;

/// What another process did. It is a hint, and it may be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// There may be work to claim.
    Work,
    /// A run's events up to a sequence are durable.
    Moved {
        /// The run.
        run_id: RunId,
        /// Its last event's sequence.
        sequence: u64,
    },
    /// Something may have been missed.
    Missed,
}
