//! Decisions of runs in their tables (run-machine.md §§1, 6, 7, 11; architecture.md decision
//! 3): events, rows, payloads and the audit entry are one transition, or nothing.

use sqlx::SqliteConnection;

use sluicegate_core::ids::{RunId, TenantId, WorkflowKey};
use sluicegate_core::run::{Mode, PayloadKind, RunRow};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, Value};

use super::{Columns, SqliteStore, audit, fault, int, json};
use crate::store::{
    Accepted, Commit, EnqueueOutcome, Guard, NewRun, Parked, RunReference, RunSimulated, Sealed,
    StoreError, StoredEvent,
};

/// What the run's own row takes from a new run or simulation.
struct Invocation<'a> {
    workflow_id: Option<&'a str>,
    workflow_key: Option<&'a str>,
    workflow_revision: Option<u64>,
    graph_checksum: String,
    plan_hash: String,
    permissions: &'a [String],
    input_hash: String,
    idempotency_key: Option<&'a str>,
}

fn run_row(commit: &Commit) -> Result<&RunRow, StoreError> {
    let row = commit.rows.run.as_ref();
    row.ok_or_else(|| StoreError::Corrupt("a decision without the run's row".to_owned()))
}

/// The run's row, brought to what the decision says, if the guard holds.
async fn move_run(c: &mut SqliteConnection, commit: &Commit) -> Result<(), StoreError> {
    let row = run_row(commit)?;
    let ended = row.status.is_terminal();
    let (token, fence, sequence) = match &commit.guard {
        Guard::Owner {
            token,
            fence,
            sequence,
        } => (Some(token.as_str()), Some(int(*fence)), *sequence),
        Guard::Sequence(sequence) => (None, None, *sequence),
    };
    let moved = sqlx::query(
        "update workflow_runs
         set status = ?6, last_sequence = ?7, completed_at = ?8, wake_at = ?9, failure_code = ?10,
             row = ?11, open = case when ?12 then 0 else open end,
             lease_owner = case when ?13 then null else lease_owner end,
             lease_token = case when ?13 then null else lease_token end,
             lease_expires_at = case when ?13 then null else lease_expires_at end,
             lease_void = case when ?13 then 0 else lease_void end
         where tenant_id = ?1 and run_id = ?2 and last_sequence = ?3
           and (?4 is null or (lease_token = ?4 and lease_fence = ?5))
           and parked_code is null",
    )
    .bind(commit.tenant.as_str())
    .bind(commit.run_id.as_str())
    .bind(int(sequence))
    .bind(token)
    .bind(fence)
    .bind(row.status.as_str())
    .bind(int(row.last_sequence))
    .bind(row.completed_at.map(|at| int(at.0)))
    .bind(row.wake_at.map(|at| int(at.0)))
    .bind(row.failure.as_ref().map(|failure| failure.code.as_str()))
    .bind(json(row)?)
    .bind(ended)
    .bind(ended || commit.hand_back)
    .execute(&mut *c)
    .await
    .map_err(fault)?;
    if moved.rows_affected() == 1 {
        return Ok(());
    }
    let found = sqlx::query(
        "select lease_token, lease_fence from workflow_runs where tenant_id = ? and run_id = ?",
    )
    .bind(commit.tenant.as_str())
    .bind(commit.run_id.as_str())
    .fetch_optional(c)
    .await
    .map_err(fault)?
    .ok_or(StoreError::NotFound)?;
    let held = token.is_none()
        || (found.maybe_text("lease_token")?.as_deref() == token
            && Some(int(found.number("lease_fence")?)) == fence);
    Err(if held {
        StoreError::Stale
    } else {
        StoreError::Fenced
    })
}

/// Rows of one kind go in one statement: the array is spread by the database. Documents
/// travel as text inside it, so that their bytes stay as they are.
async fn insert_events(
    c: &mut SqliteConnection,
    commit: &Commit,
    now: Instant,
) -> Result<(), StoreError> {
    let mut items = Vec::with_capacity(commit.events.len());
    for event in &commit.events {
        let stored = StoredEvent::of(event, now);
        items.push(serde_json::json!({
            "sequence": stored.sequence,
            "type": stored.event_type,
            "version": stored.schema_version,
            "payload": value::canonical(&stored.payload),
            "at": stored.recorded_at,
            "offset": stored.virtual_offset_ms,
        }));
    }
    sqlx::query(
        "insert into workflow_run_events
             (tenant_id, run_id, sequence, event_type, schema_version, payload, recorded_at,
              virtual_offset_ms)
         select ?1, ?2, value ->> 'sequence', value ->> 'type', value ->> 'version',
                value ->> 'payload', value ->> 'at', value ->> 'offset'
         from json_each(?3)",
    )
    .bind(commit.tenant.as_str())
    .bind(commit.run_id.as_str())
    .bind(json(&items)?)
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
}

async fn replace_nodes(c: &mut SqliteConnection, commit: &Commit) -> Result<(), StoreError> {
    let mut nodes = Vec::with_capacity(commit.rows.nodes.len());
    for row in &commit.rows.nodes {
        nodes.push(serde_json::json!({
            "node": row.node_id,
            "status": row.status,
            "row": json(row)?,
        }));
    }
    if !nodes.is_empty() {
        sqlx::query(
            "insert or replace into workflow_node_states (tenant_id, run_id, node_id, status, row)
             select ?1, ?2, value ->> 'node', value ->> 'status', value ->> 'row'
             from json_each(?3)",
        )
        .bind(commit.tenant.as_str())
        .bind(commit.run_id.as_str())
        .bind(json(&nodes)?)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
    }
    let mut attempts = Vec::with_capacity(commit.rows.attempts.len());
    for row in &commit.rows.attempts {
        attempts.push(serde_json::json!({
            "node": row.node_id,
            "attempt": row.attempt,
            "status": row.status,
            "kind": row.child_kind,
            "child": row.child_id,
            "code": row.code,
            "row": json(row)?,
        }));
    }
    if !attempts.is_empty() {
        sqlx::query(
            "insert or replace into workflow_node_attempts
                 (tenant_id, run_id, node_id, attempt, status, child_kind, child_id, code, row)
             select ?1, ?2, value ->> 'node', value ->> 'attempt', value ->> 'status',
                    value ->> 'kind', value ->> 'child', value ->> 'code', value ->> 'row'
             from json_each(?3)",
        )
        .bind(commit.tenant.as_str())
        .bind(commit.run_id.as_str())
        .bind(json(&attempts)?)
        .execute(c)
        .await
        .map_err(fault)?;
    }
    Ok(())
}

async fn insert_edges(c: &mut SqliteConnection, commit: &Commit) -> Result<(), StoreError> {
    let mut edges = Vec::with_capacity(commit.rows.edges.len());
    for row in &commit.rows.edges {
        edges.push(serde_json::json!({
            "edge": row.settled.edge_id,
            "state": row.settled.state,
            "row": json(row)?,
        }));
    }
    if edges.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into workflow_edge_transfers (tenant_id, run_id, edge_id, state, row)
         select ?1, ?2, value ->> 'edge', value ->> 'state', value ->> 'row'
         from json_each(?3)",
    )
    .bind(commit.tenant.as_str())
    .bind(commit.run_id.as_str())
    .bind(json(&edges)?)
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
}

/// An encrypted row and, beside an execution payload, the row that readers see.
async fn insert_payload(
    c: &mut SqliteConnection,
    commit: &Commit,
    payload: &Sealed,
    now: Instant,
) -> Result<(), StoreError> {
    let kind = match payload.kind {
        PayloadKind::Execution => Some("execution"),
        PayloadKind::Result => Some("result"),
        PayloadKind::Evidence => None,
    };
    let evidence = json(&payload.evidence)?;
    if let Some(kind) = kind {
        sqlx::query(
            "insert into workflow_payloads
                 (tenant_id, run_id, payload_id, kind, schema_id, evidence, key_id, bytes,
                  created_at)
             values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(commit.tenant.as_str())
        .bind(commit.run_id.as_str())
        .bind(payload.id.as_str())
        .bind(kind)
        .bind(payload.schema_id.as_str())
        .bind(&evidence)
        .bind(&payload.key_id)
        .bind(&payload.bytes)
        .bind(int(now.0))
        .execute(&mut *c)
        .await
        .map_err(fault)?;
    }
    if payload.kind != PayloadKind::Result {
        sqlx::query(
            "insert into workflow_payloads
                 (tenant_id, run_id, payload_id, kind, schema_id, evidence, preview, created_at)
             values (?, ?, ?, 'evidence', ?, ?, ?, ?)",
        )
        .bind(commit.tenant.as_str())
        .bind(commit.run_id.as_str())
        .bind(payload.id.as_str())
        .bind(payload.schema_id.as_str())
        .bind(&evidence)
        .bind(payload.preview.as_ref().map(value::canonical))
        .bind(int(now.0))
        .execute(c)
        .await
        .map_err(fault)?;
    }
    Ok(())
}

/// What a decision brings beside the run's own row.
async fn append(c: &mut SqliteConnection, commit: Commit, now: Instant) -> Result<u64, StoreError> {
    insert_events(&mut *c, &commit, now).await?;
    replace_nodes(&mut *c, &commit).await?;
    insert_edges(&mut *c, &commit).await?;
    for payload in &commit.payloads {
        insert_payload(&mut *c, &commit, payload, now).await?;
    }
    audit::append(c, commit.audit).await
}

/// The run's own row. `false`: its idempotency key is taken.
async fn insert_run(
    c: &mut SqliteConnection,
    commit: &Commit,
    invocation: &Invocation<'_>,
) -> Result<bool, StoreError> {
    let row = run_row(commit)?;
    let Some(origin) = &commit.audit.origin else {
        return Err(StoreError::Corrupt("a run without an origin".to_owned()));
    };
    let actor = &commit.audit.actor;
    let origin = serde_json::to_value(origin).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let queued_at = row.queued_at.unwrap_or(commit.audit.occurred_at);
    let live = row.mode == Mode::Live;
    let made = sqlx::query(
        "insert into workflow_runs
             (tenant_id, run_id, workflow_id, workflow_key, workflow_revision, graph_checksum,
              plan_hash, mode, status, actor_kind, actor_id, actor, origin_kind, origin,
              permissions, input_hash, idempotency_key, last_sequence, queued_at, completed_at,
              wake_at, failure_code, row, open)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                 ?19, ?20, ?21, ?22, ?23, ?24)
         on conflict (tenant_id, idempotency_key) do nothing",
    )
    .bind(commit.tenant.as_str())
    .bind(commit.run_id.as_str())
    .bind(invocation.workflow_id)
    .bind(invocation.workflow_key)
    .bind(invocation.workflow_revision.map(int))
    .bind(&invocation.graph_checksum)
    .bind(&invocation.plan_hash)
    .bind(if live { "live" } else { "simulate" })
    .bind(row.status.as_str())
    .bind(actor.kind())
    .bind(actor.id())
    .bind(json(actor)?)
    .bind(origin.get("kind").and_then(Value::as_str).unwrap_or(""))
    .bind(json(&origin)?)
    .bind(json(&invocation.permissions)?)
    .bind(&invocation.input_hash)
    .bind(invocation.idempotency_key)
    .bind(int(row.last_sequence))
    .bind(int(queued_at.0))
    .bind(row.completed_at.map(|at| int(at.0)))
    .bind(row.wake_at.map(|at| int(at.0)))
    .bind(row.failure.as_ref().map(|failure| failure.code.as_str()))
    .bind(json(row)?)
    .bind(live && !row.status.is_terminal())
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(made.rows_affected() == 1)
}

async fn accepted<'e, E>(
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
async fn is_live(
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
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let tenant = &run.by.tenant;
                if let Some(first) = accepted(&mut *c, tenant, &run.idempotency_key).await? {
                    return Ok(EnqueueOutcome::Existing(first));
                }
                if !is_live(&mut *c, tenant, &run.reference).await? {
                    return Ok(EnqueueOutcome::Moved);
                }
                let invocation = Invocation {
                    workflow_id: Some(&run.reference.workflow_id),
                    workflow_key: Some(run.reference.workflow_key.as_str()),
                    workflow_revision: Some(run.reference.workflow_revision),
                    graph_checksum: run.graph_checksum.to_string(),
                    plan_hash: run.plan_hash.to_string(),
                    permissions: &run.permissions,
                    input_hash: run.input_hash.to_string(),
                    idempotency_key: Some(&run.idempotency_key),
                };
                if !insert_run(&mut *c, &run.first, &invocation).await? {
                    return Err(StoreError::Corrupt("two runs of one key".to_owned()));
                }
                append(c, run.first, now).await?;
                Ok(EnqueueOutcome::Created)
            })
        })
        .await
    }

    pub(super) async fn do_store_simulation(&self, run: RunSimulated) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let (id, key, revision) = match &run.workflow {
                    Some((id, key, revision)) => (Some(id.as_str()), Some(key.as_str()), *revision),
                    None => (None, None, None),
                };
                let invocation = Invocation {
                    workflow_id: id,
                    workflow_key: key,
                    workflow_revision: revision,
                    graph_checksum: run.graph_checksum.to_string(),
                    plan_hash: run.plan_hash.to_string(),
                    permissions: &[],
                    input_hash: run.input_hash.to_string(),
                    idempotency_key: None,
                };
                insert_run(&mut *c, &run.whole, &invocation).await?;
                if revision.is_none() {
                    sqlx::query(
                        "insert into workflow_run_documents (tenant_id, run_id, graph, plan)
                         values (?, ?, ?, ?)",
                    )
                    .bind(run.whole.tenant.as_str())
                    .bind(run.whole.run_id.as_str())
                    .bind(value::canonical(&run.graph))
                    .bind(value::canonical(&run.plan))
                    .execute(&mut *c)
                    .await
                    .map_err(fault)?;
                }
                append(c, run.whole, now).await?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn do_commit(&self, commit: Commit) -> Result<u64, StoreError> {
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                move_run(&mut *c, &commit).await?;
                append(c, commit, now).await
            })
        })
        .await
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
