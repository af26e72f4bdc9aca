//! Retention in its tables (server.md §8; architecture.md "Rules"): each verb a short transition
//! of the one writer, so that nobody waits for long.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::time::Instant;

use super::SqliteStore;
use crate::store::column::{Columns, fault, int, json};
use crate::store::retention::retained;
use crate::store::{Ended, Kept, Retained, Rule, StoreError};

impl SqliteStore {
    pub(super) async fn do_tenants(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar(
            "select tenant_id from tenants where tenant_id > ? order by tenant_id limit ?",
        )
        .bind(after.map_or("", TenantId::as_str))
        .bind(limit)
        .fetch_all(&self.readers)
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
                 select 1 from workflow_payloads p
                 where p.tenant_id = r.tenant_id and p.run_id = r.run_id
                   and case when ?5 then p.kind <> 'evidence'
                       else p.kind = 'evidence' and p.state <> 'expired' end) as holds
             from workflow_runs r
             where r.tenant_id = ?1 and r.completed_at <= ?2
               and (r.completed_at, r.run_id) > (?3, ?4)
             order by r.completed_at, r.run_id limit ?6",
        )
        .bind(tenant.as_str())
        .bind(int(until.0))
        .bind(completed_at)
        .bind(run_id)
        .bind(rule.kept == Kept::Values)
        .bind(limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        let ended = |row: &SqliteRow| {
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
             where tenant_id = ?1 and run_id = ?2
               and case when ?3 then kind <> 'evidence'
                   else kind = 'evidence' and state <> 'expired' end
             order by payload_id, kind",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(rule.kept == Kept::Values)
        .fetch_all(&self.readers)
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
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        let named = payloads.iter().filter(|payload| rule.is_of(payload.kind));
        let named: Vec<_> = named.map(|p| (&p.payload_id, p.kind)).collect();
        let named = json(&named)?;
        self.write(move |c| {
            Box::pin(async move {
                let query = match rule.kept {
                    Kept::Values => sqlx::query(
                        "delete from workflow_payloads
                         where tenant_id = ?1 and run_id = ?2 and kind <> 'evidence'
                           and (payload_id, kind) in
                               (select value ->> 0, value ->> 1 from json_each(?3))",
                    ),
                    Kept::Previews => sqlx::query(
                        "update workflow_payloads
                         set preview = null, state = 'expired', reason = 'retention',
                             retention_days = ?4,
                             expires_at = ?5 + (select r.completed_at from workflow_runs r
                                                where r.tenant_id = ?1 and r.run_id = ?2)
                         where tenant_id = ?1 and run_id = ?2 and kind = 'evidence'
                           and (payload_id, kind) in
                               (select value ->> 0, value ->> 1 from json_each(?3))",
                    ),
                };
                query
                    .bind(tenant.as_str())
                    .bind(run_id.as_str())
                    .bind(named)
                    .bind(int(rule.days))
                    .bind(int(rule.age_ms()))
                    .execute(c)
                    .await
                    .map_err(fault)?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn do_expire_children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        limit: usize,
    ) -> Result<bool, StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.write(move |c| {
            Box::pin(async move {
                let gone = sqlx::query(
                    "update child_attempts
                     set output = null, output_key_id = null, message = null,
                         message_key_id = null
                     where (tenant_id, child_id, attempt) in (
                         select a.tenant_id, a.child_id, a.attempt
                         from child_runs c join child_attempts a
                           on a.tenant_id = c.tenant_id and a.child_id = c.child_id
                         where c.tenant_id = ? and c.run_id = ?
                           and (a.output is not null or a.message is not null)
                         limit ?)",
                )
                .bind(tenant.as_str())
                .bind(run_id.as_str())
                .bind(limit)
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(gone.rows_affected() > 0)
            })
        })
        .await
    }

    pub(super) async fn do_reclaim(&self, pages: u32) -> Result<bool, StoreError> {
        self.write(move |c| {
            Box::pin(async move {
                let free = "pragma freelist_count";
                let before: i64 = sqlx::query_scalar(free)
                    .fetch_one(&mut *c)
                    .await
                    .map_err(fault)?;
                // A pragma takes no bound value; the text is a number of ours. It does one page a
                // step, so that all its rows are read.
                let give = format!("pragma incremental_vacuum({pages})");
                sqlx::raw_sql(sqlx::AssertSqlSafe(give))
                    .fetch_all(&mut *c)
                    .await
                    .map_err(fault)?;
                let after: i64 = sqlx::query_scalar(free)
                    .fetch_one(&mut *c)
                    .await
                    .map_err(fault)?;
                Ok(0 < after && after < before)
            })
        })
        .await
    }
}
