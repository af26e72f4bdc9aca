//! Retention in its tables (server.md §8; architecture.md "Rules"): each verb a short
//! transaction.

use sqlx::Row;
use sqlx::postgres::PgRow;

use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::run::PayloadKind;
use sluicegate_core::time::Instant;

use super::{Columns, PostgresStore, fault, int};
use crate::store::retention::retained;
use crate::store::{Ended, Kept, Retained, Rule, StoreError};

impl PostgresStore {
    pub(super) async fn do_tenants(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar(
            "select tenant_id from tenants where tenant_id > $1 order by tenant_id limit $2",
        )
        .bind(after.map_or("", TenantId::as_str))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        Ok(ids.into_iter().map(TenantId::from).collect())
    }

    pub(super) async fn do_ended(
        &self,
        tenant: &TenantId,
        rule: Rule,
        until: Instant,
        after: Option<&(Instant, RunId)>,
        limit: u32,
    ) -> Result<Vec<Ended>, StoreError> {
        let (completed_at, run_id) = match after {
            Some((completed_at, run_id)) => (int(completed_at.0), run_id.as_str()),
            None => (-1, ""),
        };
        let rows = sqlx::query(
            "select r.completed_at, r.run_id, r.parked_code is not null as parked, exists (
                 select from workflow_payloads p
                 where p.tenant_id = r.tenant_id and p.run_id = r.run_id
                   and case when $5 then p.kind <> 'evidence'
                       else p.kind = 'evidence' and p.state <> 'expired' end) as holds
             from workflow_runs r
             where r.tenant_id = $1 and r.completed_at <= $2
               and (r.completed_at, r.run_id) > ($3, $4)
             order by r.completed_at, r.run_id limit $6",
        )
        .bind(tenant.as_str())
        .bind(int(until.0))
        .bind(completed_at)
        .bind(run_id)
        .bind(rule.kept == Kept::Values)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        let ended = |row: &PgRow| {
            Ok(Ended {
                completed_at: row.instant("completed_at")?,
                run_id: RunId::from(row.text("run_id")?),
                holds: row.try_get("holds").map_err(fault)?,
                parked: row.try_get("parked").map_err(fault)?,
            })
        };
        rows.iter().map(ended).collect()
    }

    pub(super) async fn do_retained(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
    ) -> Result<Vec<Retained>, StoreError> {
        let rows = sqlx::query(
            "select payload_id, kind, hash, state from workflow_payloads
             where tenant_id = $1 and run_id = $2
               and case when $3 then kind <> 'evidence'
                   else kind = 'evidence' and state <> 'expired' end
             order by payload_id, kind",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(rule.kept == Kept::Values)
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        rows.iter().map(retained).collect()
    }

    pub(super) async fn do_expire(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
        payloads: &[Retained],
    ) -> Result<(), StoreError> {
        let named = payloads.iter().filter(|payload| rule.is_of(payload.kind));
        let (ids, kinds): (Vec<&str>, Vec<&str>) = named
            .map(|payload| (payload.payload_id.as_str(), kind_word(payload.kind)))
            .unzip();
        let query = match rule.kept {
            Kept::Values => sqlx::query(
                "delete from workflow_payloads
                 where tenant_id = $1 and run_id = $2 and kind <> 'evidence'
                   and (payload_id, kind) in (select * from unnest($3::text[], $4::text[]))",
            ),
            Kept::Previews => sqlx::query(
                "update workflow_payloads
                 set preview = null, state = 'expired', reason = 'retention',
                     retention_days = $5,
                     expires_at = $6 + (select r.completed_at from workflow_runs r
                                        where r.tenant_id = $1 and r.run_id = $2)
                 where tenant_id = $1 and run_id = $2 and kind = 'evidence'
                   and (payload_id, kind) in (select * from unnest($3::text[], $4::text[]))",
            ),
        };
        query
            .bind(tenant.as_str())
            .bind(run_id.as_str())
            .bind(ids)
            .bind(kinds)
            .bind(int(rule.days))
            .bind(int(rule.age_ms()))
            .execute(&self.pool)
            .await
            .map_err(fault)?;
        Ok(())
    }

    pub(super) async fn do_expire_children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        limit: usize,
    ) -> Result<bool, StoreError> {
        let gone = sqlx::query(
            "update child_attempts
             set output = null, output_key_id = null, message = null, message_key_id = null
             where (tenant_id, child_id, attempt) in (
                 select a.tenant_id, a.child_id, a.attempt
                 from child_runs c join child_attempts a
                   on a.tenant_id = c.tenant_id and a.child_id = c.child_id
                 where c.tenant_id = $1 and c.run_id = $2
                   and (a.output is not null or a.message is not null)
                 limit $3)",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        Ok(gone.rows_affected() > 0)
    }
}

/// The column's word for a form of payloads.
fn kind_word(kind: PayloadKind) -> &'static str {
    match kind {
        PayloadKind::Execution => "execution",
        PayloadKind::Evidence => "evidence",
        PayloadKind::Result => "result",
    }
}
