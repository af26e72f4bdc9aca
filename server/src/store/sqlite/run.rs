//! Decisions of runs in their tables (run-machine.md §§1, 6, 7, 11; architecture.md decision
//! 3): events, rows, payloads and the audit entry are one transition, or nothing.

use sqlx::SqliteConnection;

use sluicegate_core::ids::{RunId, TenantId, WorkflowKey};
use sluicegate_core::value::Value;

use super::{Columns, SqliteStore, fault};
use crate::store::column::int;
use crate::store::flat::Transition;
use crate::store::{
    Accepted, Commit, Committed, EnqueueOutcome, Guard, NewRun, Parked, RunReference, RunSimulated,
    StoreError,
};

/// Why a guard does not hold.
pub(super) async fn unmoved(
    c: &mut SqliteConnection,
    transition: &Transition,
    guard: &Guard,
) -> Result<StoreError, StoreError> {
    let found = sqlx::query(
        "select lease_token, lease_fence from workflow_runs where tenant_id = ? and run_id = ?",
    )
    .bind(transition.tenant.as_str())
    .bind(transition.run_id.as_str())
    .fetch_optional(c)
    .await
    .map_err(fault)?
    .ok_or(StoreError::NotFound)?;
    let held = match guard {
        Guard::Sequence(_) => true,
        Guard::Owner { token, fence, .. } => {
            found.maybe_text("lease_token")?.as_ref() == Some(token)
                && found.number("lease_fence")? == *fence
        }
        Guard::Claim {
            found: over, fence, ..
        } => {
            found.maybe_text("lease_token")? == *over && found.number("lease_fence")? + 1 == *fence
        }
    };
    Ok(if held {
        StoreError::Stale
    } else {
        StoreError::Fenced
    })
}

pub(super) async fn accepted<'e, E>(
    executor: E,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<Accepted>, StoreError>
where
    E: sqlx::Executor<'e, Database = sqlx::Sqlite>,
{
    let row = sqlx::query(
        "select run_id, workflow_id, workflow_key, workflow_revision, input_hash, status
         from workflow_runs where tenant_id = ? and idempotency_key = ?",
    )
    .bind(tenant.as_str().to_owned())
    .bind(key.to_owned())
    .fetch_optional(executor)
    .await
    .map_err(fault)?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Accepted {
        run_id: RunId::from(row.text("run_id")?),
        workflow_id: row.text("workflow_id")?,
        workflow_key: WorkflowKey::from(row.text("workflow_key")?),
        workflow_revision: row.number("workflow_revision")?,
        input_hash: row.hash("input_hash")?,
        status: serde_json::from_value(Value::String(row.text("status")?))
            .map_err(|error| StoreError::Corrupt(error.to_string()))?,
    }))
}

/// Whether a revision is the one that new runs take (N3).
pub(super) async fn is_live(
    c: &mut SqliteConnection,
    tenant: &TenantId,
    reference: &RunReference,
) -> Result<bool, StoreError> {
    let found: Option<i64> = sqlx::query_scalar(
        "select 1 from workflow_definitions
         where tenant_id = ? and workflow_id = ? and revision = ? and status = 'published'",
    )
    .bind(tenant.as_str())
    .bind(&reference.workflow_id)
    .bind(int(reference.workflow_revision))
    .fetch_optional(c)
    .await
    .map_err(fault)?;
    Ok(found.is_some())
}

impl SqliteStore {
    pub(super) async fn do_accepted(
        &self,
        tenant: &TenantId,
        idempotency_key: &str,
    ) -> Result<Option<Accepted>, StoreError> {
        accepted(&self.readers, tenant, idempotency_key).await
    }

    pub(super) async fn do_enqueue(&self, run: NewRun) -> Result<EnqueueOutcome, StoreError> {
        let transition = Transition::enqueued(run, self.clock.now())?;
        Ok(self.committer.decide(transition).await?.enqueued())
    }

    pub(super) async fn do_store_simulation(&self, run: RunSimulated) -> Result<(), StoreError> {
        self.committer
            .decide(Transition::simulated(run, self.clock.now())?)
            .await?
            .written()?;
        Ok(())
    }

    pub(super) async fn do_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.committer
            .decide(Transition::of(commit, self.clock.now())?)
            .await?
            .written()
    }

    pub(super) async fn do_park(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        parked: &Parked,
    ) -> Result<(), StoreError> {
        let (tenant, run_id, parked) = (tenant.clone(), run_id.clone(), parked.clone());
        self.write(move |c| {
            Box::pin(async move {
                sqlx::query(
                    "update workflow_runs
                     set parked_code = ?3, parked_sequence = ?4, open = 0, lease_token = null,
                         lease_owner = null, lease_expires_at = null, lease_void = 0
                     where tenant_id = ?1 and run_id = ?2",
                )
                .bind(tenant.as_str())
                .bind(run_id.as_str())
                .bind(parked.code.as_str())
                .bind(int(parked.sequence))
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(())
            })
        })
        .await
    }
}
