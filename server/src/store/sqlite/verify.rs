//! The audit chain as it stands in its tables (run-machine.md H3; api.md "Audit"): texts are
//! read as bytes, so that a damaged one is found and not refused.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::audit::{Covered, Head};
use sluicegate_core::ids::{Hash, RunId, TenantId};
use sluicegate_core::value::Value;

use super::{Columns, SqliteStore, fault, int, json};
use crate::store::audit::{EntryRow, EventRow, last_of};
use crate::store::{AuditFilter, AuditTail, StoreError};

fn entry(row: &SqliteRow) -> Result<Value, StoreError> {
    let entry = EntryRow {
        sequence: row.try_get("sequence").map_err(fault)?,
        action: row.bytes("action")?,
        subject_kind: row.bytes("subject_kind")?,
        subject_id: row.bytes("subject_id")?,
        entry: row.bytes("entry")?,
    };
    Ok(entry.into_value())
}

impl SqliteStore {
    pub(super) async fn do_audit_before(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
    ) -> Result<Vec<Value>, StoreError> {
        let before = filter.before.map_or(i64::MAX, int);
        let rows = match &filter.subject {
            None => sqlx::query(
                "select entry from workflow_audit_events
                 where tenant_id = ?1 and sequence < ?2 and (?3 is null or action = ?3)
                 order by sequence desc limit ?4",
            ),
            Some(_) => sqlx::query(
                "select entry from workflow_audit_events
                 where tenant_id = ?1 and sequence < ?2 and (?3 is null or action = ?3)
                   and subject_kind in ('run', 'workflow') and subject_id = ?5
                 order by sequence desc limit ?4",
            ),
        };
        let rows = rows
            .bind(tenant.as_str())
            .bind(before)
            .bind(filter.action.as_deref())
            .bind(filter.limit)
            .bind(filter.subject.as_deref())
            .fetch_all(&self.readers)
            .await
            .map_err(fault)?;
        rows.iter().map(|row| row.document("entry")).collect()
    }

    pub(super) async fn do_audit_tail(&self, tenant: &TenantId) -> Result<AuditTail, StoreError> {
        // One statement sees one moment.
        let row = sqlx::query(
            "select h.sequence, cast(h.hash as blob) as hash,
                    coalesce((select max(sequence) from workflow_audit_events
                              where tenant_id = ?1), 0) as last
             from (select 1) left join workflow_audit_heads h on h.tenant_id = ?1",
        )
        .bind(tenant.as_str())
        .fetch_one(&self.readers)
        .await
        .map_err(fault)?;
        let hash: Option<Vec<u8>> = row.try_get("hash").map_err(fault)?;
        let hash = hash.and_then(|hash| Hash::parse(std::str::from_utf8(&hash).ok()?));
        Ok(AuditTail {
            head: Head {
                sequence: row.maybe_number("sequence")?.unwrap_or(0),
                // A hash that cannot be read is none that an entry has.
                hash: hash.unwrap_or(Hash::ZERO),
            },
            last: row.number("last")?,
        })
    }

    pub(super) async fn do_entries_as_stored(
        &self,
        tenant: &TenantId,
        after: u64,
        through: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let rows = sqlx::query(
            "select sequence, cast(action as blob) as action,
                    cast(subject_kind as blob) as subject_kind,
                    cast(subject_id as blob) as subject_id, cast(entry as blob) as entry
             from workflow_audit_events
             where tenant_id = ? and sequence > ? and sequence <= ? order by sequence limit ?",
        )
        .bind(tenant.as_str())
        // Rows before the first are none that the chain has.
        .bind(if after == 0 { i64::MIN } else { int(after) })
        .bind(int(through))
        .bind(limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(entry).collect()
    }

    pub(super) async fn do_entry_about(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
    ) -> Result<Option<Value>, StoreError> {
        let row = sqlx::query(
            "select sequence, cast(action as blob) as action,
                    cast(subject_kind as blob) as subject_kind,
                    cast(subject_id as blob) as subject_id, cast(entry as blob) as entry
             from workflow_audit_events
             where tenant_id = ? and subject_kind = 'run' and subject_id = ? and sequence > ?
             order by sequence limit 1",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(int(after))
        .fetch_optional(&self.readers)
        .await
        .map_err(fault)?;
        row.as_ref().map(entry).transpose()
    }

    pub(super) async fn do_events_as_stored(
        &self,
        tenant: &TenantId,
        covered: &[Covered],
    ) -> Result<Vec<Vec<Value>>, StoreError> {
        let ranges = covered.iter().map(|c| (&c.run_id, c.first, last_of(c)));
        let ranges: Vec<_> = ranges.collect();
        let rows = sqlx::query(
            "select v.key as place, e.sequence, cast(e.event_type as blob) as event_type,
                    e.schema_version, cast(e.payload as blob) as payload, e.recorded_at,
                    e.virtual_offset_ms
             from json_each(?2) v cross join workflow_run_events e
             where e.tenant_id = ?1 and e.run_id = v.value ->> 0
               and e.sequence between v.value ->> 1 and v.value ->> 2
             order by v.key, e.sequence",
        )
        .bind(tenant.as_str())
        .bind(json(&ranges)?)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        let mut events = vec![Vec::new(); covered.len()];
        for row in &rows {
            let event = EventRow {
                sequence: row.try_get("sequence").map_err(fault)?,
                event_type: row.bytes("event_type")?,
                schema_version: row.try_get("schema_version").map_err(fault)?,
                payload: row.bytes("payload")?,
                recorded_at: row.try_get("recorded_at").map_err(fault)?,
                virtual_offset_ms: row.try_get("virtual_offset_ms").map_err(fault)?,
            };
            let place = usize::try_from(row.number("place")?).unwrap_or(usize::MAX);
            if let (Some(own), Some(covered)) = (events.get_mut(place), covered.get(place)) {
                own.push(event.into_value(tenant, &covered.run_id));
            }
        }
        Ok(events)
    }

    pub(super) async fn do_last_events(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<(RunId, u64)>, StoreError> {
        let rows = sqlx::query(
            "select cast(run_id as blob) as run_id, max(max(sequence), count(*)) as last
             from workflow_run_events where tenant_id = ?1 and run_id > ?2
             group by workflow_run_events.run_id order by workflow_run_events.run_id limit ?3",
        )
        .bind(tenant.as_str())
        .bind(after.map_or("", RunId::as_str))
        .bind(limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        let last = |row: &SqliteRow| {
            let run_id = row.bytes("run_id")?;
            let run_id = RunId::from(String::from_utf8_lossy(&run_id).as_ref());
            Ok((run_id, row.number("last")?))
        };
        rows.iter().map(last).collect()
    }
}
