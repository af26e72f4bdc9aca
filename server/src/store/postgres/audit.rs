//! The audit chain in its tables (run-machine.md §11): an entry and the new head are written
//! with what they record, or none of them.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use sluicegate_core::audit::{Draft, Head};
use sluicegate_core::ids::TenantId;
use sluicegate_core::value::Value;

use super::{Columns, PostgresStore, fault, int};
use crate::store::StoreError;

/// Appends an entry after the tenant's head and gives its sequence. The head stays locked
/// until the transaction ends, so that the chain never forks; it is always the last lock.
pub(super) async fn append(connection: &mut PgConnection, draft: Draft) -> Result<u64, StoreError> {
    let prepared = draft.prepare();
    let prepared = prepared.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let mut heads = BTreeMap::from([(&prepared.tenant_id, None)]);
    lock_heads(&mut *connection, &mut heads).await?;
    let head = heads.values().next().copied().flatten();
    let sealed = prepared.seal(&head.unwrap_or_default());
    sqlx::query(
        "insert into workflow_audit_events
             (tenant_id, sequence, action, subject_kind, subject_id, entry)
         values ($1, $2, $3, $4, $5, $6)",
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
    let heads = BTreeMap::from([(&prepared.tenant_id, Some(sealed.head))]);
    set_heads(connection, &heads).await?;
    Ok(sealed.head.sequence)
}

/// Tenants and the heads of their chains.
pub(super) type Heads<'a> = BTreeMap<&'a TenantId, Option<Head>>;

/// Locks the heads of these tenants, in the tenants' order, and reads them. A tenant without
/// one gets one first.
pub(super) async fn lock_heads(
    c: &mut PgConnection,
    heads: &mut Heads<'_>,
) -> Result<(), StoreError> {
    while heads.values().any(Option::is_none) {
        let tenants: Vec<&str> = heads.keys().map(|tenant| tenant.as_str()).collect();
        let rows = sqlx::query(
            "select tenant_id, sequence, hash from workflow_audit_heads
             where tenant_id = any($1) order by tenant_id for update",
        )
        .bind(tenants)
        .fetch_all(&mut *c)
        .await
        .map_err(fault)?;
        for row in &rows {
            let tenant = TenantId::from(row.text("tenant_id")?);
            if let Some(place) = heads.get_mut(&tenant) {
                *place = Some(head(row)?);
            }
        }
        for (tenant, _) in heads.iter().filter(|(_, head)| head.is_none()) {
            begin_chain(&mut *c, tenant).await?;
        }
    }
    Ok(())
}

/// Moves the heads on.
pub(super) async fn set_heads(c: &mut PgConnection, heads: &Heads<'_>) -> Result<(), StoreError> {
    let moved = || {
        heads
            .iter()
            .filter_map(|(tenant, head)| Some((tenant, head.as_ref()?)))
    };
    let tenants: Vec<&str> = moved().map(|(tenant, _)| tenant.as_str()).collect();
    let sequences: Vec<i64> = moved().map(|(_, head)| int(head.sequence)).collect();
    let hashes: Vec<String> = moved().map(|(_, head)| head.hash.to_string()).collect();
    sqlx::query(
        "update workflow_audit_heads h set sequence = v.sequence, hash = v.hash
         from unnest($1::text[], $2::bigint[], $3::text[]) as v (tenant_id, sequence, hash)
         where h.tenant_id = v.tenant_id",
    )
    .bind(tenants)
    .bind(sequences)
    .bind(hashes)
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
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
