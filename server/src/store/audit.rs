//! The audit chain as it is read (run-machine.md H3): what stands in a row is given as it is,
//! so that the check sees every byte of it.

use sluicegate_core::audit::{Covered, Head};
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::limits::Limits;
use sluicegate_core::value::{self, Map, Value};

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditTail {
    /// What is kept apart from the chain.
    pub head: Head,
    /// The last entry's sequence; 0: none. The head's, unless somebody cut or added one.
    pub last: u64,
}

/// Which entries to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// About the run or the workflow with this id.
    pub subject: Option<String>,
    /// Of this act.
    pub action: Option<String>,
    /// Before this sequence; none: from the newest.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: u32,
}

/// An entry's row; texts as bytes, because damage need not leave them UTF-8.
pub(super) struct EntryRow {
    pub(super) sequence: i64,
    pub(super) action: Vec<u8>,
    pub(super) subject_kind: Vec<u8>,
    pub(super) subject_id: Vec<u8>,
    pub(super) entry: Vec<u8>,
}

impl EntryRow {
    /// The entry, if its row is as it was written; else something that no hash fits.
    pub(super) fn into_value(self) -> Value {
        let Some(entry) = canonical(&self.entry) else {
            return Value::Null;
        };
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
        let same = entry.get("sequence").and_then(Value::as_i64) == Some(self.sequence)
            && text("/action").map(str::as_bytes) == Some(self.action.as_slice())
            && text("/subject/kind").map(str::as_bytes) == Some(self.subject_kind.as_slice())
            && text("/subject/id").map(str::as_bytes) == Some(self.subject_id.as_slice());
        if same { entry } else { Value::Null }
    }
}

/// An event's row, as [`EntryRow`].
pub(super) struct EventRow {
    pub(super) sequence: i64,
    pub(super) event_type: Vec<u8>,
    pub(super) schema_version: i64,
    pub(super) payload: Vec<u8>,
    pub(super) recorded_at: i64,
    pub(super) virtual_offset_ms: Option<i64>,
}

impl EventRow {
    /// The full event (run-machine.md §2), as [`EntryRow::into_value`].
    pub(super) fn into_value(self, tenant: &TenantId, run_id: &RunId) -> Value {
        let (Some(payload), Ok(event_type)) =
            (canonical(&self.payload), String::from_utf8(self.event_type))
        else {
            return Value::Null;
        };
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("eventId", format!("{run_id}:{}", self.sequence).into());
        put("schemaVersion", self.schema_version.into());
        put("tenantId", tenant.as_str().into());
        put("runId", run_id.as_str().into());
        put("sequence", self.sequence.into());
        put("type", event_type.into());
        put("recordedAt", self.recorded_at.into());
        if let Some(offset) = self.virtual_offset_ms {
            put("virtualOffsetMs", offset.into());
        }
        put("payload", payload);
        Value::Object(members)
    }
}

/// The last event that is read for an entry: what it says need not be so, and one more than a run
/// can have shows that too.
pub(super) fn last_of(covered: &Covered) -> u64 {
    let most = covered.first.saturating_add(Limits::default().events);
    covered.last.min(most)
}

/// A document that stands in the canonical form in which it is written: another text of the
/// same value was not written here.
fn canonical(text: &[u8]) -> Option<Value> {
    let read = value::read_bytes(text).ok()?;
    (value::canonical(&read).as_bytes() == text).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(entry: &str) -> EntryRow {
        EntryRow {
            sequence: 7,
            action: b"act".to_vec(),
            subject_kind: b"run".to_vec(),
            subject_id: b"r".to_vec(),
            entry: entry.into(),
        }
    }

    #[test]
    fn h3_an_entry_is_given_only_as_it_was_written() {
        let entry = json!({"action": "act", "sequence": 7, "subject": {"id": "r", "kind": "run"},
                           "n": 1e-7});
        let text = value::canonical(&entry);
        assert_eq!(row(&text).into_value(), entry);
        // The same value in another text, and every other text.
        assert_eq!(row(&text.replace("1e", "1E")).into_value(), Value::Null);
        assert_eq!(row(&text.replace(":7", ": 7")).into_value(), Value::Null);
        assert_eq!(row("{").into_value(), Value::Null);
        // A column that the entry contradicts.
        for change in 0..4 {
            let mut row = row(&text);
            match change {
                0 => row.sequence = 8,
                1 => row.action = b"acu".to_vec(),
                2 => row.subject_kind = vec![0xff],
                _ => row.subject_id = b"s".to_vec(),
            }
            assert_eq!(row.into_value(), Value::Null, "{change}");
        }
    }
}
