//! The audit chain in its tables (run-machine.md §11): an entry and the new head are written
//! with what they record, or none of them.

use sqlx::SqliteConnection;

use sluicegate_core::audit::{Draft, Head};
use sluicegate_core::ids::TenantId;
use sluicegate_core::value::Value;

use super::{Columns, SqliteStore, fault};
use crate::store::StoreError;
use crate::store::column::int;

/// Appends an entry after the tenant's head and gives its sequence.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    draft: Draft,
) -> Result<u64, StoreError> {
    let head = head(&mut *connection, &draft.tenant_id).await?;
    let prepared = draft.prepare();
    let prepared = prepared.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let sealed = prepared.seal(&head);
    sqlx::query(
        "insert into workflow_audit_events
             (tenant_id, sequence, action, subject_kind, subject_id, entry)
         values (?, ?, ?, ?, ?, ?)",
    )
    .bind(prepared.tenant_id.as_str())
    .bind(int(sealed.head.sequence))
    .bind(&prepared.action)
    .bind(&prepared.subject.kind)
    .bind(&prepared.subject.id)
    .bind(sealed.text)
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    set_head(connection, &prepared.tenant_id, &sealed.head).await?;
    Ok(sealed.head.sequence)
}

/// Moves the tenant's head on.
async fn set_head(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    head: &Head,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into workflow_audit_heads (tenant_id, sequence, hash) values (?, ?, ?)
         on conflict (tenant_id) do update set sequence = excluded.sequence, hash = excluded.hash",
    )
    .bind(tenant.as_str())
    .bind(int(head.sequence))
    .bind(head.hash.to_string())
    .execute(connection)
    .await
    .map_err(fault)?;
    Ok(())
}

/// The tenant's head.
pub(super) async fn head<'e, E>(executor: E, tenant: &TenantId) -> Result<Head, StoreError>
where
    E: sqlx::Executor<'e, Database = sqlx::Sqlite>,
{
    let row = sqlx::query("select sequence, hash from workflow_audit_heads where tenant_id = ?")
        .bind(tenant.as_str().to_owned())
        .fetch_optional(executor)
        .await
        .map_err(fault)?;
    match row {
        None => Ok(Head::default()),
        Some(row) => Ok(Head {
            sequence: row.number("sequence")?,
            hash: row.hash("hash")?,
        }),
    }
}

impl SqliteStore {
    pub(super) async fn do_audit_after(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let rows = sqlx::query(
            "select entry from workflow_audit_events
             where tenant_id = ? and sequence > ? order by sequence limit ?",
        )
        .bind(tenant.as_str())
        .bind(int(after))
        .bind(limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(|row| row.document("entry")).collect()
    }

    pub(super) async fn do_audit_head(&self, tenant: &TenantId) -> Result<Head, StoreError> {
        head(&self.readers, tenant).await
    }
}
