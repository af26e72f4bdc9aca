//! Leases (run-machine.md §7, W1, W3, W5, W6, W9): what may be claimed is read, and taken by
//! the commit that records the claim.

use sluicegate_core::time::{Instant, Millis};

use super::{SqliteStore, fault};
use crate::store::column::int;
use crate::store::row::due;
use crate::store::{Due, Held, StoreError};

impl SqliteStore {
    /// The first `each` due runs of every tenant.
    async fn heads(&self, now: Instant, each: u32) -> Result<Vec<Due>, StoreError> {
        let rows = sqlx::query(
            "select r.tenant_id, r.run_id, r.lease_owner, r.lease_token, r.lease_fence,
                    r.lease_expires_at, r.lease_void
             from tenants t join workflow_runs r on r.rowid in (
                 select rowid from workflow_runs
                 where tenant_id = t.tenant_id and open = 1 and claim_at <= ?1
                 order by claim_at, queued_at, run_id limit ?2)
             order by t.tenant_id, r.claim_at, r.queued_at, r.run_id",
        )
        .bind(int(now.0))
        .bind(each)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(|row| due(row, now)).collect()
    }

    pub(super) async fn do_due(&self, limit: u32) -> Result<Vec<Due>, StoreError> {
        let now = self.clock.now();
        self.turns.deal(limit, |each| self.heads(now, each)).await
    }

    pub(super) async fn do_renew(&self, held: &Held, lease_ms: u64) -> Result<Instant, StoreError> {
        let (clock, held) = (self.clock, held.clone());
        self.write(move |c| {
            Box::pin(async move {
                let until = clock.now().plus(Millis(lease_ms));
                let kept = sqlx::query(
                    "update workflow_runs set lease_expires_at = ?5, claim_at = ?5
                     where tenant_id = ?1 and run_id = ?2 and lease_token = ?3
                       and lease_fence = ?4 and lease_void = 0",
                )
                .bind(held.tenant.as_str())
                .bind(held.run_id.as_str())
                .bind(&held.token)
                .bind(int(held.fence))
                .bind(int(until.0))
                .execute(c)
                .await
                .map_err(fault)?;
                match kept.rows_affected() {
                    0 => Err(StoreError::Fenced),
                    _ => Ok(until),
                }
            })
        })
        .await
    }

    pub(super) async fn do_release(&self, held: &Held) -> Result<(), StoreError> {
        let held = held.clone();
        self.write(move |c| {
            Box::pin(async move {
                sqlx::query(
                    "update workflow_runs
                     set lease_owner = null, lease_token = null, lease_expires_at = null,
                         claim_at = coalesce(wake_at, 0)
                     where tenant_id = ?1 and run_id = ?2 and lease_token = ?3
                       and lease_fence = ?4",
                )
                .bind(held.tenant.as_str())
                .bind(held.run_id.as_str())
                .bind(&held.token)
                .bind(int(held.fence))
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn do_void_leases(&self) -> Result<u64, StoreError> {
        self.write(move |c| {
            Box::pin(async move {
                let void = sqlx::query(
                    "update workflow_runs set lease_void = 1, claim_at = coalesce(wake_at, 0)
                     where open = 1 and lease_token is not null",
                )
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(void.rows_affected())
            })
        })
        .await
    }

    pub(super) async fn do_next_due(&self) -> Result<Option<Instant>, StoreError> {
        // The first of each tenant by its index, not a look at every run.
        let due: Option<i64> = sqlx::query_scalar(
            "select min((select claim_at from workflow_runs
                         where tenant_id = t.tenant_id and open = 1
                         order by claim_at limit 1))
             from tenants t",
        )
        .fetch_one(&self.readers)
        .await
        .map_err(fault)?;
        Ok(due.map(super::nat).map(Instant))
    }
}
