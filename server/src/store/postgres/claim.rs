//! Leases (run-machine.md §7, W1, W3, W5, W9): what may be claimed is read, and taken by the
//! commit that records the claim. Every end of a lease is written and compared by the
//! database's clock, whatever this process's clock says.

use sluicegate_core::time::Instant;

use super::{Columns, PostgresStore, fault, int, nat};
use crate::store::row::due;
use crate::store::{Due, Held, StoreError};

impl PostgresStore {
    /// The first `each` due runs of every tenant.
    async fn heads(&self, each: u32) -> Result<Vec<Due>, StoreError> {
        let rows = sqlx::query(
            "with clock as materialized (select now_ms() as now)
             select r.tenant_id, r.run_id, r.lease_owner, r.lease_token, r.lease_fence,
                    r.lease_expires_at, r.lease_void, clock.now
             from clock cross join tenants t cross join lateral (
                 select * from workflow_runs
                 where tenant_id = t.tenant_id and open = 1 and claim_at <= clock.now
                 order by claim_at, queued_at, run_id limit $1) r
             order by t.tenant_id, r.claim_at, r.queued_at, r.run_id",
        )
        .bind(i64::from(each))
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        let found = rows.iter().map(|row| due(row, row.instant("now")?));
        let found: Vec<Due> = found.collect::<Result<_, StoreError>>()?;
        // What is due by the database's clock is due by ours, or a run that waits for its time
        // would be claimed and handed back over and over.
        if let Some(due) = found.first() {
            self.clock.catch_up(due.found_at);
        }
        Ok(found)
    }

    pub(super) async fn do_due(&self, limit: u32) -> Result<Vec<Due>, StoreError> {
        self.turns.deal(limit, |each| self.heads(each)).await
    }

    pub(super) async fn do_renew(&self, held: &Held, lease_ms: u64) -> Result<Instant, StoreError> {
        let until: Option<i64> = sqlx::query_scalar(
            "with clock as materialized (select now_ms() + $5 as until)
             update workflow_runs set lease_expires_at = until, claim_at = until from clock
             where tenant_id = $1 and run_id = $2 and lease_token = $3 and lease_fence = $4
               and lease_void = 0
             returning until",
        )
        .bind(held.tenant.as_str())
        .bind(held.run_id.as_str())
        .bind(&held.token)
        .bind(int(held.fence))
        .bind(int(lease_ms))
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        until.map(nat).map(Instant).ok_or(StoreError::Fenced)
    }

    pub(super) async fn do_release(&self, held: &Held) -> Result<(), StoreError> {
        let released = sqlx::query(
            "update workflow_runs
             set lease_owner = null, lease_token = null, lease_expires_at = null,
                 claim_at = coalesce(wake_at, 0)
             where tenant_id = $1 and run_id = $2 and lease_token = $3 and lease_fence = $4",
        )
        .bind(held.tenant.as_str())
        .bind(held.run_id.as_str())
        .bind(&held.token)
        .bind(int(held.fence))
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        if released.rows_affected() > 0 {
            self.teller.work();
        }
        Ok(())
    }

    pub(super) async fn do_void_leases(&self) -> Result<u64, StoreError> {
        let void = sqlx::query(
            "update workflow_runs set lease_void = 1, claim_at = coalesce(wake_at, 0)
             where open = 1 and lease_token is not null",
        )
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        Ok(void.rows_affected())
    }

    pub(super) async fn do_next_due(&self) -> Result<Option<Instant>, StoreError> {
        // The first of each tenant by its index, not a look at every run.
        let due: Option<i64> = sqlx::query_scalar(
            "select min((select claim_at from workflow_runs
                         where tenant_id = t.tenant_id and open = 1
                         order by claim_at limit 1))
             from tenants t",
        )
        .fetch_one(&self.pool)
        .await
        .map_err(fault)?;
        Ok(due.map(nat).map(Instant))
    }
}
