//! Leases (run-machine.md §7, W1, W3, W5, W6, W9): a claim is a conditional update with a
//! token of its own and a fence that only grows.

use sqlx::SqliteConnection;

use sluicegate_core::ids::{RunId, TenantId, WorkerId};
use sluicegate_core::run::{PriorLease, RecoveryReason};
use sluicegate_core::time::{Instant, Millis};

use super::{Columns, SqliteStore, fault, int};
use crate::store::{Claim, Claimed, StoreError};

/// Claims the oldest run of a tenant that may be claimed.
async fn claim_one(
    c: &mut SqliteConnection,
    tenant: &TenantId,
    claim: &Claim,
    now: Instant,
) -> Result<Option<Claimed>, StoreError> {
    let found = sqlx::query(
        "select run_id, lease_owner, lease_token, lease_fence, lease_expires_at, lease_void
         from workflow_runs
         where tenant_id = ?1 and open = 1
           and (lease_token is null or lease_void = 1 or lease_expires_at <= ?2)
           and (wake_at is null or wake_at <= ?2)
         order by queued_at, run_id limit 1",
    )
    .bind(tenant.as_str())
    .bind(int(now.0))
    .fetch_optional(&mut *c)
    .await
    .map_err(fault)?;
    let Some(found) = found else { return Ok(None) };
    let run_id = RunId::from(found.text("run_id")?);
    let fence = found.number("lease_fence")?;
    let over = match found.maybe_text("lease_owner")? {
        None => None,
        Some(owner) => {
            let prior = PriorLease {
                worker_id: WorkerId::from(owner),
                fence,
                lease_expires_at: Instant(found.maybe_number("lease_expires_at")?.unwrap_or(0)),
            };
            let reason = match found.number("lease_void")? {
                0 => RecoveryReason::LeaseExpired,
                _ => RecoveryReason::OwnerGone,
            };
            Some((prior, reason))
        }
    };
    let claimed = Claimed {
        tenant: tenant.clone(),
        run_id,
        worker_id: claim.worker_id.clone(),
        token: uuid::Uuid::new_v4().to_string(),
        fence: fence + 1,
        expires_at: now.plus(Millis(claim.lease_ms)),
        over,
    };
    sqlx::query(
        "update workflow_runs
         set lease_owner = ?3, lease_token = ?4, lease_fence = ?5, lease_expires_at = ?6,
             lease_void = 0
         where tenant_id = ?1 and run_id = ?2",
    )
    .bind(tenant.as_str())
    .bind(claimed.run_id.as_str())
    .bind(claimed.worker_id.as_str())
    .bind(&claimed.token)
    .bind(int(claimed.fence))
    .bind(int(claimed.expires_at.0))
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(Some(claimed))
}

/// The tenants, beginning after the one whose turn it was last.
async fn turns(
    c: &mut SqliteConnection,
    last: Option<&TenantId>,
) -> Result<Vec<TenantId>, StoreError> {
    let tenants: Vec<String> =
        sqlx::query_scalar("select tenant_id from tenants order by tenant_id <= ?1, tenant_id")
            .bind(last.map_or("", TenantId::as_str))
            .fetch_all(c)
            .await
            .map_err(fault)?;
    Ok(tenants.into_iter().map(TenantId::from).collect())
}

impl SqliteStore {
    pub(super) async fn do_claim(&self, claim: &Claim) -> Result<Vec<Claimed>, StoreError> {
        let (clock, claim, turn) = (self.clock, claim.clone(), self.turn.clone());
        self.write(move |c| {
            Box::pin(async move {
                let now = clock.now();
                let last = turn.lock().ok().and_then(|last| last.clone());
                let mut waiting = turns(&mut *c, last.as_ref()).await?;
                let mut claimed = Vec::new();
                while !waiting.is_empty() {
                    let mut again = Vec::with_capacity(waiting.len());
                    for tenant in waiting {
                        if claimed.len() >= claim.limit as usize {
                            return Ok(claimed);
                        }
                        if let Some(run) = claim_one(&mut *c, &tenant, &claim, now).await? {
                            if let Ok(mut last) = turn.lock() {
                                *last = Some(tenant.clone());
                            }
                            claimed.push(run);
                            again.push(tenant);
                        }
                    }
                    waiting = again;
                }
                Ok(claimed)
            })
        })
        .await
    }

    pub(super) async fn do_renew(
        &self,
        held: &Claimed,
        lease_ms: u64,
    ) -> Result<Instant, StoreError> {
        let (clock, held) = (self.clock, held.clone());
        self.write(move |c| {
            Box::pin(async move {
                let until = clock.now().plus(Millis(lease_ms));
                let kept = sqlx::query(
                    "update workflow_runs set lease_expires_at = ?5
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

    pub(super) async fn do_release(&self, held: &Claimed) -> Result<(), StoreError> {
        let held = held.clone();
        self.write(move |c| {
            Box::pin(async move {
                sqlx::query(
                    "update workflow_runs
                     set lease_owner = null, lease_token = null, lease_expires_at = null
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
                    "update workflow_runs set lease_void = 1
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
        let due: Option<i64> = sqlx::query_scalar(
            "select min(case when lease_token is not null and lease_void = 0
                             then max(lease_expires_at, coalesce(wake_at, 0))
                             else coalesce(wake_at, 0) end)
             from workflow_runs where open = 1",
        )
        .fetch_one(&self.readers)
        .await
        .map_err(fault)?;
        Ok(due.map(super::nat).map(Instant))
    }
}
