//! What became of a decision that was handed to a committer (run-machine.md N2, N3, W1).

use super::{Accepted, Committed, EnqueueOutcome, StoreError};

/// How a decision stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stood {
    /// It is written.
    Written(Committed),
    /// Its run was accepted before (N2).
    Existing(Accepted),
    /// Another revision is published by now (N3).
    Moved,
}

impl Stood {
    /// Of an enqueue.
    pub(super) fn enqueued(self) -> EnqueueOutcome {
        match self {
            Self::Written(_) => EnqueueOutcome::Created,
            Self::Existing(first) => EnqueueOutcome::Existing(first),
            Self::Moved => EnqueueOutcome::Moved,
        }
    }

    /// Of any other decision.
    pub(super) fn written(self) -> Result<Committed, StoreError> {
        match self {
            Self::Written(committed) => Ok(committed),
            Self::Existing(_) | Self::Moved => Err(StoreError::Corrupt(
                "a decision was taken for an enqueue".to_owned(),
            )),
        }
    }
}
