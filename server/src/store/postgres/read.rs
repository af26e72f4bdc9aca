//! Runs as they are read (api.md "Runs"; run-machine.md §1): a detail is one consistent view
//! of all its tables.

use sqlx::postgres::PgRow;

use sluicegate_core::ids::{PayloadId, RunId, TenantId, WorkflowKey};
use sluicegate_core::run::Mode;
use sluicegate_core::value::Value;

use super::{Columns, PostgresStore, document, fault, int};
use crate::store::row::{attempt, edge, encrypted, list_row, node, parked, preview, stored_event};
use crate::store::{
    Encrypted, LoadedRun, RunDetailRows, RunFilter, RunListRow, RunReference, StoreError,
    StoredEvent,
};

/// All rows of a run's table, read one by one.
async fn rows<T>(
    reading: &mut sqlx::PgConnection,
    query: &'static str,
    (tenant, run_id): (&TenantId, &RunId),
    read: impl Fn(&PgRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let found = sqlx::query(query)
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_all(reading)
        .await
        .map_err(fault)?;
    found.iter().map(read).collect()
}

/// The graph and the plan of a run: of its revision, or its own.
async fn documents(
    reading: &mut sqlx::PgConnection,
    tenant: &TenantId,
    run_id: &RunId,
) -> Result<(Value, Value), StoreError> {
    let row = sqlx::query(
        "select coalesce(v.graph, d.graph) as graph, coalesce(v.plan, d.plan) as plan
         from workflow_runs r
         left join workflow_revisions v
           on v.tenant_id = r.tenant_id and v.workflow_id = r.workflow_id
          and v.revision = r.workflow_revision
         left join workflow_run_documents d
           on d.tenant_id = r.tenant_id and d.run_id = r.run_id
         where r.tenant_id = $1 and r.run_id = $2",
    )
    .bind(tenant.as_str())
    .bind(run_id.as_str())
    .fetch_optional(reading)
    .await
    .map_err(fault)?
    .ok_or(StoreError::NotFound)?;
    Ok((row.document("graph")?, row.document("plan")?))
}

impl PostgresStore {
    pub(super) async fn do_load_run(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<LoadedRun, StoreError> {
        let mut reading = self.view().await?;
        let row = sqlx::query(
            "select mode, plan_hash, workflow_id, workflow_key, workflow_revision, actor, origin,
                    permissions, parked_code, parked_sequence
             from workflow_runs where tenant_id = $1 and run_id = $2",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_optional(&mut *reading)
        .await
        .map_err(fault)?
        .ok_or(StoreError::NotFound)?;
        let events = sqlx::query(
            "select sequence, event_type, schema_version, payload, recorded_at, virtual_offset_ms
             from workflow_run_events where tenant_id = $1 and run_id = $2 order by sequence",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_all(&mut *reading)
        .await
        .map_err(fault)?;
        let reference = match (
            row.maybe_text("workflow_id")?,
            row.maybe_text("workflow_key")?,
            row.maybe_number("workflow_revision")?,
        ) {
            (Some(workflow_id), Some(key), Some(workflow_revision)) => Some(RunReference {
                workflow_id,
                workflow_key: WorkflowKey::from(key),
                workflow_revision,
            }),
            _ => None,
        };
        let live = row.text("mode")? == "live";
        Ok(LoadedRun {
            mode: if live { Mode::Live } else { Mode::Simulate },
            plan_hash: row.hash("plan_hash")?,
            reference,
            actor: row.json("actor")?,
            origin: row.json("origin")?,
            permissions: row.json("permissions")?,
            parked: parked(&row)?,
            events: events.iter().map(stored_event).collect::<Result<_, _>>()?,
        })
    }

    pub(super) async fn do_run_plan(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Value, StoreError> {
        let mut reading = self.pool.acquire().await.map_err(fault)?;
        let (_, plan) = documents(&mut reading, tenant, run_id).await?;
        Ok(plan)
    }

    pub(super) async fn do_payloads(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        ids: &[PayloadId],
    ) -> Result<Vec<Encrypted>, StoreError> {
        let rows = sqlx::query(
            "select payload_id, key_id, bytes from workflow_payloads
             where tenant_id = $1 and run_id = $2 and kind = 'execution'
               and payload_id = any($3)",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(ids.iter().map(PayloadId::as_str).collect::<Vec<_>>())
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        rows.iter().map(encrypted).collect()
    }

    pub(super) async fn do_payload_keys(&self) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar(
            "select key_id from workflow_payloads where key_id is not null
             union select output_key_id from child_attempts where output_key_id is not null
             union select message_key_id from child_attempts where message_key_id is not null",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(fault)
    }

    pub(super) async fn do_result_payload(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Option<Encrypted>, StoreError> {
        let row = sqlx::query(
            "select payload_id, key_id, bytes from workflow_payloads
             where tenant_id = $1 and run_id = $2 and kind = 'result'",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        row.as_ref().map(encrypted).transpose()
    }

    pub(super) async fn do_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
    ) -> Result<Vec<RunListRow>, StoreError> {
        let statuses: Vec<&str> = filter.status.iter().map(|s| s.as_str()).collect();
        let mode = filter.mode.map(|mode| match mode {
            Mode::Live => "live",
            Mode::Simulate => "simulate",
        });
        let before = filter.before.as_ref();
        let rows = sqlx::query(
            "select * from workflow_runs
             where tenant_id = $1
               and ($2 is null or workflow_id = $2)
               and ($3 is null or workflow_key = $3)
               and ($4 is null or workflow_revision = $4)
               and ($5 is null or mode = $5)
               and ($6 is null or status = any($6))
               and ($7 is null or (queued_at, run_id) < ($7, $8))
             order by queued_at desc, run_id desc limit $9",
        )
        .bind(tenant.as_str())
        .bind(filter.workflow_id.as_deref())
        .bind(filter.workflow_key.as_ref().map(WorkflowKey::as_str))
        .bind(filter.revision.map(int))
        .bind(mode)
        .bind((!statuses.is_empty()).then_some(statuses))
        .bind(before.map(|cursor| int(cursor.queued_at.0)))
        .bind(before.map(|cursor| cursor.run_id.as_str()))
        .bind(i64::from(filter.limit))
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        rows.iter().map(list_row).collect()
    }

    pub(super) async fn do_run_row(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<RunListRow, StoreError> {
        let mut reading = self.pool.acquire().await.map_err(fault)?;
        run_row(&mut reading, tenant, run_id).await
    }

    pub(super) async fn do_run_detail(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<RunDetailRows, StoreError> {
        let mut reading = self.view().await?;
        let c = &mut *reading;
        let row = run_row(&mut *c, tenant, run_id).await?;
        let (graph, plan) = documents(&mut *c, tenant, run_id).await?;
        let place = (tenant, run_id);
        let nodes = "select * from workflow_node_states
                     where tenant_id = $1 and run_id = $2 order by node_id";
        let nodes = rows(&mut *c, nodes, place, node).await?;
        let attempts = "select * from workflow_node_attempts
                        where tenant_id = $1 and run_id = $2 order by node_id, attempt";
        let attempts = rows(&mut *c, attempts, place, attempt).await?;
        let edges = "select * from workflow_edge_transfers
                     where tenant_id = $1 and run_id = $2 order by edge_id";
        let edges = rows(&mut *c, edges, place, edge).await?;
        let payloads = "select * from workflow_payloads
                        where tenant_id = $1 and run_id = $2 and kind = 'evidence'
                        order by payload_id";
        let payloads = rows(&mut *c, payloads, place, preview).await?;
        let cancellation = "select * from workflow_run_events
             where tenant_id = $1 and run_id = $2
               and event_type in ('run.cancel.requested', 'node.cancel.requested',
                                  'node.cancel.acknowledged', 'node.cancel.not-acknowledged')
             order by sequence";
        let cancellation = rows(&mut *c, cancellation, place, stored_event).await?;
        let audit = "select sequence from workflow_audit_events
             where tenant_id = $1 and subject_kind = 'run' and subject_id = $2 order by sequence";
        let audit_sequences = rows(&mut *c, audit, place, |row| row.number("sequence")).await?;
        let invocation: String = sqlx::query_scalar(
            "select payload from workflow_run_events
             where tenant_id = $1 and run_id = $2 and sequence = 1",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_one(&mut *c)
        .await
        .map_err(fault)?;
        Ok(RunDetailRows {
            row,
            invocation: document(&invocation)?,
            graph,
            plan,
            nodes,
            attempts,
            edges,
            payloads,
            cancellation,
            audit_sequences,
        })
    }

    pub(super) async fn do_events_after(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut reading = self.view().await?;
        let rows = sqlx::query(
            "select sequence, event_type, schema_version, payload, recorded_at, virtual_offset_ms
             from workflow_run_events
             where tenant_id = $1 and run_id = $2 and sequence > $3 order by sequence limit $4",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(int(after))
        .bind(i64::from(limit))
        .fetch_all(&mut *reading)
        .await
        .map_err(fault)?;
        if rows.is_empty() {
            // Nothing new, or no such run: only the run's row tells them apart.
            run_row(&mut reading, tenant, run_id).await?;
        }
        rows.iter().map(stored_event).collect()
    }
}

async fn run_row(
    reading: &mut sqlx::PgConnection,
    tenant: &TenantId,
    run_id: &RunId,
) -> Result<RunListRow, StoreError> {
    let row = sqlx::query("select * from workflow_runs where tenant_id = $1 and run_id = $2")
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_optional(reading)
        .await
        .map_err(fault)?;
    list_row(&row.ok_or(StoreError::NotFound)?)
}
