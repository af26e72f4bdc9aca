//! Why a verb of the store did not do what it says (server.md §1, §4; api.md "Codes").

use sluicegate_core::code::Code;

/// A refusal or a fault of the store. After any of them nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// This tenant has no such thing.
    #[error("there is no such thing here")]
    NotFound,
    /// Another workflow has the key.
    #[error("another workflow has this key")]
    KeyTaken,
    /// The draft was saved in the meantime.
    #[error("the draft is at version {draft_version}")]
    DraftConflict {
        /// The present version.
        draft_version: u64,
    },
    /// The workflow takes no more of this.
    #[error("the workflow is archived")]
    Archived,
    /// Nothing was published yet.
    #[error("the workflow has no published revision")]
    NotPublished,
    /// A published or used workflow is kept.
    #[error("the workflow was published or has runs; archive it instead")]
    InUse,
    /// The lease is not held any more: this worker writes nothing (W1).
    #[error("the lease is held by someone else")]
    Fenced,
    /// The run has moved on: load and decide again (W2).
    #[error("the run has moved on")]
    Stale,
    /// What is stored cannot be read back.
    #[error("what is stored cannot be read: {0}")]
    Corrupt(String),
    /// The database was made by a newer binary.
    #[error("the database has schema {found}, this binary knows {known}; use a newer binary")]
    TooNew {
        /// In the database.
        found: u64,
        /// In this binary.
        known: u64,
    },
    /// PostgreSQL keeps no text with U+0000 in it.
    #[error("a text with the character U+0000 cannot be stored or looked for here")]
    Nul,
    /// The database did not answer or refused.
    #[error("the database failed: {0}")]
    Database(String),
}

impl StoreError {
    /// The stable code that a caller is told.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound => Code::WorkflowNotFound,
            Self::KeyTaken | Self::DraftConflict { .. } | Self::InUse => {
                Code::WorkflowRevisionConflict
            }
            Self::Archived => Code::WorkflowArchived,
            Self::NotPublished => Code::WorkflowNotPublished,
            Self::Fenced | Self::Stale | Self::Database(_) => Code::Unavailable,
            Self::Nul => Code::RequestMalformed,
            Self::Corrupt(_) | Self::TooNew { .. } => Code::Internal,
        }
    }
}
