//! The audit chain in its tables (run-machine.md §11): an entry and the new head are written
//! with what they record, or none of them.

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use sluicegate_core::audit::{Draft, Head};
use sluicegate_core::ids::TenantId;
use sluicegate_core::value::{self, Value};

use super::{Columns, PostgresStore, fault, int};
use crate::store::StoreError;

/// Appends an entry after the tenant's head and gives its sequence. The head stays locked
/// until the transaction ends, so that the chain never forks; it is always the last lock.
pub(super) async fn append(connection: &mut PgConnection, draft: Draft) -> Result<u64, StoreError> {
    let head = locked_head(&mut *connection, &draft.tenant_id).await?;
    let entry = draft
        .seal(&head)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let text = value::to_value(&entry).map(|entry| value::canonical(&entry));
    let text = text.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    sqlx::query(
        "insert into workflow_audit_events
             (tenant_id, sequence, action, subject_kind, subject_id, entry)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(entry.tenant_id.as_str())
    .bind(int(entry.sequence))
    .bind(&entry.action)
    .bind(&entry.subject.kind)
    .bind(&entry.subject.id)
    .bind(text)
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    sqlx::query("update workflow_audit_heads set sequence = $2, hash = $3 where tenant_id = $1")
        .bind(entry.tenant_id.as_str())
        .bind(int(entry.sequence))
        .bind(entry.event_hash.to_string())
        .execute(connection)
        .await
        .map_err(fault)?;
    Ok(entry.sequence)
}

/// The head of a tenant's chain, locked; made where the tenant has none.
async fn locked_head(c: &mut PgConnection, tenant: &TenantId) -> Result<Head, StoreError> {
    loop {
        let row = sqlx::query(
            "select sequence, hash from workflow_audit_heads where tenant_id = $1 for update",
        )
        .bind(tenant.as_str())
        .fetch_optional(&mut *c)
        .await
        .map_err(fault)?;
        if let Some(row) = row {
            return head(&row);
        }
        begin_chain(&mut *c, tenant).await?;
    }
}

/// The head of an empty chain.
pub(super) async fn begin_chain(c: &mut PgConnection, tenant: &TenantId) -> Result<(), StoreError> {
    let empty = Head::default();
    sqlx::query(
        "insert into workflow_audit_heads (tenant_id, sequence, hash) values ($1, $2, $3)
         on conflict do nothing",
    )
    .bind(tenant.as_str())
    .bind(int(empty.sequence))
    .bind(empty.hash.to_string())
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
}

fn head(row: &PgRow) -> Result<Head, StoreError> {
    Ok(Head {
        sequence: row.number("sequence")?,
        hash: row.hash("hash")?,
    })
}

impl PostgresStore {
    pub(super) async fn do_audit_after(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let rows = sqlx::query(
            "select entry from workflow_audit_events
             where tenant_id = $1 and sequence > $2 order by sequence limit $3",
        )
        .bind(tenant.as_str())
        .bind(int(after))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        rows.iter().map(|row| row.document("entry")).collect()
    }

    pub(super) async fn do_audit_head(&self, tenant: &TenantId) -> Result<Head, StoreError> {
        let row =
            sqlx::query("select sequence, hash from workflow_audit_heads where tenant_id = $1")
                .bind(tenant.as_str())
                .fetch_optional(&self.pool)
                .await
                .map_err(fault)?;
        row.as_ref().map_or_else(|| Ok(Head::default()), head)
    }
}
