//! Decisions of runs as verbs (run-machine.md §§1, 6, 7): each is handed to the committer.

use std::collections::HashSet;

use sqlx::PgConnection;

use sluicegate_core::ids::{RunId, TenantId, WorkflowKey};
use sluicegate_core::value::Value;

use super::{Columns, PostgresStore, fault, int};
use crate::store::flat::{Begins, Transition};
use crate::store::{
    Accepted, Commit, Committed, EnqueueOutcome, NewRun, Parked, RunReference, RunSimulated,
    StoreError,
};

/// A workflow's revision, by tenant, workflow and number.
type Revision = (String, String, i64);

pub(super) fn named(tenant: &TenantId, reference: &RunReference) -> Revision {
    (
        tenant.as_str().to_owned(),
        reference.workflow_id.clone(),
        int(reference.workflow_revision),
    )
}

/// The revisions among those that new runs want which are the published ones (N3). They stay
/// so until the transaction ends: an archive or a publish waits.
pub(super) async fn lock_live(
    c: &mut PgConnection,
    batch: &[&Transition],
) -> Result<HashSet<Revision>, StoreError> {
    let mut wanted = HashSet::new();
    for transition in batch {
        if let Begins::New {
            accepted: Some((_, reference)),
            ..
        } = &transition.begins
        {
            wanted.insert((transition.tenant.as_str(), reference.workflow_id.as_str()));
        }
    }
    if wanted.is_empty() {
        return Ok(HashSet::new());
    }
    let (tenants, workflows): (Vec<&str>, Vec<&str>) = wanted.into_iter().unzip();
    let rows = sqlx::query(
        "select d.tenant_id, d.workflow_id, d.revision
         from workflow_definitions d
         join unnest($1::text[], $2::text[]) as v (tenant_id, workflow_id)
           on d.tenant_id = v.tenant_id and d.workflow_id = v.workflow_id
         where d.status = 'published' and d.revision is not null
         order by d.tenant_id, d.workflow_id for share of d",
    )
    .bind(tenants)
    .bind(workflows)
    .fetch_all(c)
    .await
    .map_err(fault)?;
    let revision = |row: &sqlx::postgres::PgRow| {
        let number = int(row.number("revision")?);
        Ok((row.text("tenant_id")?, row.text("workflow_id")?, number))
    };
    rows.iter().map(revision).collect()
}

pub(super) async fn accepted<'e, E>(
    executor: E,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<Accepted>, StoreError>
where
    E: sqlx::Executor<'e, Database = sqlx::Postgres>,
{
    let row = sqlx::query(
        "select run_id, workflow_id, workflow_key, workflow_revision, input_hash, status
         from workflow_runs where tenant_id = $1 and idempotency_key = $2",
    )
    .bind(tenant.as_str())
    .bind(key)
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

impl PostgresStore {
    pub(super) async fn do_accepted(
        &self,
        tenant: &TenantId,
        idempotency_key: &str,
    ) -> Result<Option<Accepted>, StoreError> {
        accepted(&self.pool, tenant, idempotency_key).await
    }

    pub(super) async fn do_enqueue(&self, run: NewRun) -> Result<EnqueueOutcome, StoreError> {
        let transition = Transition::enqueued(run, self.clock.now())?;
        Ok(self.committer.decide(transition).await?.enqueued())
    }

    pub(super) async fn do_store_simulation(&self, run: RunSimulated) -> Result<(), StoreError> {
        let transition = Transition::simulated(run, self.clock.now())?;
        self.committer.decide(transition).await?.written()?;
        Ok(())
    }

    pub(super) async fn do_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let transition = Transition::of(commit, self.clock.now())?;
        self.committer.decide(transition).await?.written()
    }

    pub(super) async fn do_park(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        parked: &Parked,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "update workflow_runs
             set parked_code = $3, parked_sequence = $4, open = 0, lease_token = null,
                 lease_owner = null, lease_expires_at = null, lease_void = 0
             where tenant_id = $1 and run_id = $2",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(parked.code.as_str())
        .bind(int(parked.sequence))
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        Ok(())
    }
}
