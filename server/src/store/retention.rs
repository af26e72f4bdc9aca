//! Retention as the store keeps it (server.md §8): rules over the payloads of ended runs.

use sluicegate_core::evidence::State;
use sluicegate_core::ids::{Hash, PayloadId, RunId};
use sluicegate_core::run::PayloadKind;
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;

use super::StoreError;
use super::column::Columns;

/// In milliseconds.
const DAY: u64 = 86_400_000;

/// For how long something of an ended run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What.
    pub kept: Kept,
    /// For this many days from the run's end.
    pub days: u64,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The encrypted values: those that execution needed, and results.
    Values,
    /// What readers see of them.
    Previews,
}

/// An ended run, in the order of the ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub completed_at: Instant,
    /// The run.
    pub run_id: RunId,
    /// Whether it has something that a rule is about.
    pub holds: bool,
    /// Whether its log cannot be folded, so that nothing of it may go.
    pub parked: bool,
}

/// A stored payload that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retained {
    /// Which.
    pub payload_id: PayloadId,
    /// Which form of it.
    pub kind: PayloadKind,
    /// Its hash.
    pub hash: Option<Hash>,
    /// What a reader may see of it; of evidence alone.
    pub state: Option<State>,
}

impl Rule {
    /// What its events call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.kept {
            Kept::Values => "execution",
            Kept::Previews => "preview",
        }
    }

    /// How long that is, in milliseconds.
    #[must_use]
    pub fn age_ms(self) -> u64 {
        self.days.saturating_mul(DAY)
    }

    /// Whether it is about this form of payloads.
    #[must_use]
    pub fn is_of(self, kind: PayloadKind) -> bool {
        match self.kept {
            Kept::Values => matches!(kind, PayloadKind::Execution | PayloadKind::Result),
            Kept::Previews => kind == PayloadKind::Evidence,
        }
    }
}

/// A payload's row.
pub(super) fn retained(row: &impl Columns) -> Result<Retained, StoreError> {
    let word = |name| Ok(row.maybe_text(name)?.map(Value::String));
    let corrupt = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
    let kind: PayloadKind = serde_json::from_value(row.text("kind")?.into()).map_err(corrupt)?;
    let state = word("state")?.map(serde_json::from_value).transpose();
    Ok(Retained {
        payload_id: PayloadId::from(row.text("payload_id")?),
        kind,
        hash: row.maybe_text("hash")?.as_deref().and_then(Hash::parse),
        state: state.map_err(corrupt)?,
    })
}
