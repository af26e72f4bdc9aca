//! The audit chain: what an entry says, its hash and the check of a chain
//! (run-machine.md §11, H1–H4; seed A "Authorization and audit").

mod verify;

use serde::{Deserialize, Serialize};

pub use verify::{Break, Check, Covered, Verification, verify};

use crate::actor::{Actor, Origin};
use crate::ids::{Hash, TenantId};
use crate::time::Instant;
use crate::value::{self, JsonError, Map, Value};

/// An entry before it has its place in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The tenant.
    pub tenant_id: TenantId,
    /// Who acted (H4).
    pub actor: Actor,
    /// Through what.
    pub origin: Option<Origin>,
    /// The act: an event's type or a name of H1.
    pub action: String,
    /// On what.
    pub subject: Subject,
    /// Safe details.
    pub metadata: Value,
    /// When.
    pub occurred_at: Instant,
}

/// What an act was done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// `workflow` or `run`.
    pub kind: String,
    /// Which.
    pub id: String,
}

/// An entry of a tenant's chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The tenant.
    pub tenant_id: TenantId,
    /// From 1, without gaps, one count a tenant.
    pub sequence: u64,
    /// Who acted.
    pub actor: Actor,
    /// Through what.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<Origin>,
    /// The act.
    pub action: String,
    /// On what.
    pub subject: Subject,
    /// Safe details.
    pub metadata: Value,
    /// When.
    pub occurred_at: Instant,
    /// The hash of the entry before.
    pub previous_hash: Hash,
    /// The hash of all the other members (H2).
    pub event_hash: Hash,
}

/// The last entry of a chain, kept apart from it, so that a cut tail shows (H2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Its sequence; 0 before the first entry.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            sequence: 0,
            hash: Hash::ZERO,
        }
    }
}

impl Draft {
    /// Gives the entry its place after `head`.
    ///
    /// # Errors
    /// A metadata value that JSON of ours cannot say (J1).
    pub fn seal(self, head: &Head) -> Result<Entry, JsonError> {
        let mut entry = Entry {
            tenant_id: self.tenant_id,
            sequence: head.sequence + 1,
            actor: self.actor,
            origin: self.origin,
            action: self.action,
            subject: self.subject,
            metadata: self.metadata,
            occurred_at: self.occurred_at,
            previous_hash: head.hash,
            event_hash: Hash::ZERO,
        };
        entry.event_hash = entry.content_hash()?;
        Ok(entry)
    }
}

/// A draft written out but for its place: what a store prepares before it holds the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The act.
    pub action: String,
    /// On what.
    pub subject: Subject,
    /// Canonical members before `eventHash`, between it and `previousHash`, and after
    /// `sequence`.
    parts: [String; 3],
}

/// A prepared entry that has its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The head that it makes.
    pub head: Head,
    /// The whole entry, canonical.
    pub text: String,
}

impl Draft {
    /// Writes the entry but for its place.
    ///
    /// # Errors
    /// As [`Draft::seal`].
    pub fn prepare(self) -> Result<Prepared, JsonError> {
        let text = |value: Value| value::canonical(&value);
        let before = format!(
            r#""action":{},"actor":{}"#,
            text(self.action.as_str().into()),
            text(value::to_value(&self.actor)?),
        );
        let mut between = format!(
            r#""metadata":{},"occurredAt":{}"#,
            text(self.metadata),
            self.occurred_at.0,
        );
        if let Some(origin) = &self.origin {
            between.push_str(r#","origin":"#);
            between.push_str(&text(value::to_value(origin)?));
        }
        let after = format!(
            r#""subject":{},"tenantId":{}"#,
            text(value::to_value(&self.subject)?),
            text(self.tenant_id.as_str().into()),
        );
        Ok(Prepared {
            tenant_id: self.tenant_id,
            action: self.action,
            subject: self.subject,
            parts: [before, between, after],
        })
    }
}

impl Prepared {
    /// Gives the entry its place after `head`: the same as [`Draft::seal`], without reading
    /// any of it again.
    #[must_use]
    pub fn seal(&self, head: &Head) -> Sealed {
        let [before, between, after] = &self.parts;
        let sequence = head.sequence + 1;
        let previous = &head.hash;
        let content = format!(
            r#"{{{before},{between},"previousHash":"{previous}","sequence":{sequence},{after}}}"#
        );
        let hash = Hash::of(content.as_bytes());
        let text = format!(
            r#"{{{before},"eventHash":"{hash}",{between},"previousHash":"{previous}","sequence":{sequence},{after}}}"#
        );
        Sealed {
            head: Head { sequence, hash },
            text,
        }
    }
}

impl Entry {
    /// The hash over the canonical object of all members but `eventHash` (H2).
    ///
    /// # Errors
    /// As [`Draft::seal`].
    pub fn content_hash(&self) -> Result<Hash, JsonError> {
        Ok(content_hash(value::to_value(self)?))
    }

    /// The head, should this be the last entry.
    #[must_use]
    pub fn head(&self) -> Head {
        Head {
            sequence: self.sequence,
            hash: self.event_hash,
        }
    }
}

/// As [`Entry::content_hash`], of an entry as it stands in a table or an answer. Nothing is read
/// out of it first, so no member can hide from the hash.
fn content_hash(mut entry: Value) -> Hash {
    if let Value::Object(members) = &mut entry {
        members.remove("eventHash");
    }
    value::hash(&entry)
}

/// Event types that the seed calls audit-required, in the order of their weight (H1).
const REQUIRED: [&str; 14] = [
    "run.succeeded",
    "run.failed",
    "run.refused",
    "run.cancelled",
    "payload.retention.applied",
    "run.cancel.requested",
    "run.queued",
    "run.recovered",
    "run.claimed",
    "node.attempt.settled",
    "node.child.waiting",
    "node.retry.scheduled",
    "node.attempt.started",
    "node.skipped",
];

/// The action and the metadata of the entry for one decision, from its full events in order
/// (H1). `None` for a decision without events, which makes no entry.
#[must_use]
pub fn of_decision(events: &[Value]) -> Option<(String, Value)> {
    let named = |event| -> Option<(&str, u64)> {
        let event: &Value = event;
        Some((
            event.get("type")?.as_str()?,
            event.get("sequence")?.as_u64()?,
        ))
    };
    let named: Vec<(&str, u64)> = events.iter().filter_map(named).collect();
    of_types(&named, events_hash(events))
}

/// As [`of_decision`], from the types and sequences of the events and the hash over them.
#[must_use]
pub fn of_types(named: &[(&str, u64)], events_hash: Hash) -> Option<(String, Value)> {
    let weight = |name: &str| {
        let place = REQUIRED.iter().position(|required| *required == name);
        place.unwrap_or(REQUIRED.len())
    };
    let (action, _) = named
        .iter()
        .min_by_key(|(name, sequence)| (weight(name), *sequence))?;
    let (first, last) = (named.first()?.1, named.last()?.1);
    let required: Vec<Value> = named
        .iter()
        .filter(|(name, _)| REQUIRED.contains(name))
        .map(|(name, sequence)| {
            let mut item = Map::new();
            item.insert("sequence".to_owned(), (*sequence).into());
            item.insert("type".to_owned(), (*name).into());
            Value::Object(item)
        })
        .collect();
    let mut metadata = Map::new();
    metadata.insert("events".to_owned(), Value::Array(required));
    metadata.insert("firstSequence".to_owned(), first.into());
    metadata.insert("lastSequence".to_owned(), last.into());
    metadata.insert("eventsHash".to_owned(), events_hash.to_string().into());
    Some(((*action).to_owned(), Value::Object(metadata)))
}

/// The hash over the canonical array of full events (H1).
#[must_use]
pub fn events_hash(events: &[Value]) -> Hash {
    value::hash(&Value::Array(events.to_vec()))
}

#[cfg(test)]
mod tests;
