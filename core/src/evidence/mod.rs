//! Payload evidence: hashes, redaction and previews (seed A "Payload execution and
//! evidence"; wire-format.md S5; run-machine.md §2, A6; server.md §7).
//!
//! The order is fixed: redact, hash, cut. A cut before redaction could leave half a secret
//! that no longer matches; a hash before it would let a reader guess secrets by trying.

mod credentials;
mod cut;
mod occurrences;
mod secrets;

pub use secrets::{MARK, Secrets};

use crate::{
    ids::{Hash, PayloadId, SchemaId},
    limits::Limits,
    schema::Schema,
    value::{Value, canonical, canonical_len},
};
use serde::{Deserialize, Serialize};

/// `Ev` of run-machine.md §2: the seed's payload evidence without `preview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Evidence {
    /// Always 1.
    pub version: u32,
    /// What a reader may see of it.
    pub state: State,
    /// Which payload; none when absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload_id: Option<PayloadId>,
    /// The schema that the value was checked against.
    pub schema_id: SchemaId,
    /// Hash over the redacted form (S5); none when absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hash: Option<Hash>,
    /// Canonical bytes of the value itself.
    pub original_byte_size: u64,
    /// Why the state is not `available`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
}

impl Evidence {
    /// What retention leaves of it: all that is known of the value, and nothing to show.
    pub fn expire(&mut self) {
        (self.state, self.reason) = (State::Expired, Some(Reason::Retention));
    }
}

/// The five states. State and reason together lose nothing: a preview that was cut is
/// `truncated` whatever else happened to it, and its reason says whether secrets were
/// replaced too (`secret`) or not (`size-limit`); `redacted` is a whole preview with secrets
/// replaced. So a reader who sees `truncated` knows that there was more, and one who sees
/// `secret` knows that not all of what is left is literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The whole value may be shown.
    Available,
    /// Secrets were replaced, nothing was cut.
    Redacted,
    /// It was cut to the preview limit, or left out for want of room (A6).
    Truncated,
    /// Retention removed it.
    Expired,
    /// Nothing was emitted.
    Absent,
}

/// Why a state is not `available`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A secret was replaced (and, when the state is `truncated`, the rest was cut).
    Secret,
    /// The reader lacks a scope.
    ScopeDenied,
    /// It was too large; nothing in it was secret.
    SizeLimit,
    /// Retention removed it.
    Retention,
    /// Nothing was emitted.
    NotEmitted,
}

/// Evidence and the bounded, redacted preview that goes into a payload row (D1).
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// What events carry.
    pub evidence: Evidence,
    /// What readers see; none where it does not fit (A6).
    pub preview: Option<Value>,
}

/// Makes evidence of a value: redacted by place and by value, hashed in that form, then cut
/// to the preview limit (4 KiB canonical). `room` is what the run's previews may still take
/// (A6); a payload that [`counted`] does not fit gives `truncated` without preview.
#[must_use]
pub fn make(
    payload_id: PayloadId,
    schema_id: SchemaId,
    schema: &Schema,
    value: &Value,
    secrets: &Secrets,
    room: u64,
) -> Made {
    let redacted = secrets.redact(Some(schema), value);
    let text = canonical(&redacted);
    let original_byte_size = canonical_len(value) as u64;
    let limit = Limits::ONE_PREVIEW_BYTES;
    let too_large = text.len() as u64 > limit;
    let no_room = counted(original_byte_size) > room;
    let hides = redacted != *value;
    let hash = Hash::of(text.as_bytes());
    let preview = match (no_room, too_large) {
        (true, _) => None,
        (false, true) => Some(cut::cut(&redacted, usize::try_from(limit).unwrap_or(0))),
        (false, false) => Some(redacted),
    };
    let (state, reason) = match (too_large || no_room, hides) {
        (true, true) => (State::Truncated, Some(Reason::Secret)),
        (true, false) => (State::Truncated, Some(Reason::SizeLimit)),
        (false, true) => (State::Redacted, Some(Reason::Secret)),
        (false, false) => (State::Available, None),
    };
    Made {
        evidence: Evidence {
            version: 1,
            state,
            payload_id: Some(payload_id),
            schema_id,
            hash: Some(hash),
            original_byte_size,
            reason,
        },
        preview,
    }
}

/// Evidence of something that was not emitted (run-machine.md §2).
#[must_use]
pub fn absent(schema_id: SchemaId) -> Evidence {
    Evidence {
        version: 1,
        state: State::Absent,
        payload_id: None,
        schema_id,
        hash: None,
        original_byte_size: 0,
        reason: Some(Reason::NotEmitted),
    }
}

/// What a payload counts against the run's preview budget (A6).
#[must_use]
pub fn counted(original_byte_size: u64) -> u64 {
    original_byte_size.min(Limits::ONE_PREVIEW_BYTES)
}

#[cfg(test)]
mod tests;
