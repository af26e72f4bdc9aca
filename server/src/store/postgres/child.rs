//! Children in their tables (run-machine.md N1, W8, C3): one row a key, one more a (key,
//! attempt), owned by a fence, settled once. Whoever starts or stops a child by its key holds
//! the key's row, so that the two are never at it together.

use std::collections::HashSet;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection};

use sluicegate_core::ids::{ChildId, NodeId, RunId, TenantId};
use sluicegate_core::time::Instant;

use super::bulk::{bind, insert, insert_text, spread};
use super::{Columns, PostgresStore, fault, int};
use crate::store::child::{CHILD_ATTEMPTS, CHILD_RUNS, SETTLEMENT, end, kind_word};
use crate::store::flat::Transition;
use crate::store::row::word;
use crate::store::table::Cell;
use crate::store::{
    ChildCancelled, ChildIntent, ChildSettlement, ChildStanding, ChildView, StoreError,
};

/// Makes the row of a key where there is none. `false`: there is one.
async fn insert_key(
    c: &mut PgConnection,
    intent: &ChildIntent,
    barred: bool,
    now: Instant,
) -> Result<bool, StoreError> {
    let cells = intent.run_cells(barred, now);
    let cells: Vec<&Cell> = cells.iter().collect();
    let mut text = insert_text(&CHILD_RUNS);
    text.push_str(" on conflict (tenant_id, kind, key) do nothing");
    let query = bind(sqlx::query(AssertSqlSafe(text)), CHILD_RUNS.columns, &cells);
    Ok(query.execute(c).await.map_err(fault)?.rows_affected() == 1)
}

/// The child that a key stands for, locked, and whether it is barred.
async fn by_key(c: &mut PgConnection, intent: &ChildIntent) -> Result<(ChildId, bool), StoreError> {
    let row = sqlx::query(
        "select child_id, barred from child_runs
         where tenant_id = $1 and kind = $2 and key = $3 for update",
    )
    .bind(intent.tenant.as_str())
    .bind(kind_word(intent.kind))
    .bind(intent.key.to_string())
    .fetch_one(c)
    .await
    .map_err(fault)?;
    let child_id = ChildId::from(row.text("child_id")?);
    Ok((child_id, row.number("barred")? != 0))
}

/// Ends the children that answered at once. All of them, or an error: then one of the
/// decisions is about a child that somebody else has by now.
pub(super) async fn settle_all(
    c: &mut PgConnection,
    standing: &[&Transition],
    now: Instant,
) -> Result<(), StoreError> {
    let mut cells = Vec::new();
    for end in standing.iter().filter_map(|t| t.children.settle.as_ref()) {
        cells.extend(end.cells(now)?);
    }
    let asked = (cells.len() / SETTLEMENT.len()) as u64;
    match settle(c, &cells).await? == asked {
        true => Ok(()),
        false => Err(StoreError::Stale),
    }
}

/// Ends running attempts of which these are the owners; says how many there were.
async fn settle(c: &mut PgConnection, cells: &[Cell]) -> Result<u64, StoreError> {
    if cells.is_empty() {
        return Ok(0);
    }
    let text = format!(
        "update child_attempts a
         set status = v.status, ended_at = v.ended_at, \"end\" = v.\"end\",
             output_key_id = v.output_key_id, output = v.output,
             message_key_id = v.message_key_id, message = v.message
         from {}
         where a.tenant_id = v.tenant_id and a.child_id = v.child_id and a.attempt = v.attempt
           and a.fence = v.fence and a.status = 'running'",
        spread(&SETTLEMENT)
    );
    let cells: Vec<&Cell> = cells.iter().collect();
    let query = bind(sqlx::query(AssertSqlSafe(text)), &SETTLEMENT, &cells);
    Ok(query.execute(c).await.map_err(fault)?.rows_affected())
}

/// Starts the children whose keys are new, and gives their ids.
pub(super) async fn start_all(
    c: &mut PgConnection,
    standing: &[&Transition],
    now: Instant,
) -> Result<HashSet<String>, StoreError> {
    let starts = || standing.iter().filter_map(|t| t.children.start.as_ref());
    let cells: Vec<Cell> = starts()
        .flat_map(|start| start.run_cells(false, now))
        .collect();
    if cells.is_empty() {
        return Ok(HashSet::new());
    }
    let mut text = insert_text(&CHILD_RUNS);
    text.push_str(" on conflict (tenant_id, kind, key) do nothing returning child_id");
    let cells: Vec<&Cell> = cells.iter().collect();
    let query = bind(sqlx::query(AssertSqlSafe(text)), CHILD_RUNS.columns, &cells);
    let rows = query.fetch_all(&mut *c).await.map_err(fault)?;
    let started: HashSet<String> = rows
        .iter()
        .map(|row| row.text("child_id"))
        .collect::<Result<_, _>>()?;
    let fresh = starts().filter(|start| started.contains(start.new_id.as_str()));
    let cells: Vec<Cell> = fresh
        .flat_map(|start| start.attempt_cells(&start.new_id))
        .collect();
    insert(c, &CHILD_ATTEMPTS, cells.iter().collect()).await?;
    Ok(started)
}

/// How an attempt of a known child stands for a fence; a running one is taken over by a
/// higher fence. `None`: there is no such attempt.
async fn stand(
    c: &mut PgConnection,
    tenant: &TenantId,
    child_id: &ChildId,
    attempt: u32,
    fence: u64,
) -> Result<Option<ChildStanding>, StoreError> {
    // A success answers every later attempt (N1).
    let row = sqlx::query(
        "select attempt, fence, status, cancel_requested, deadline_at, \"end\", output_key_id,
                output, message_key_id, message
         from child_attempts
         where tenant_id = $1 and child_id = $2
           and (attempt = $3 or (attempt < $3 and status = 'succeeded'))
         order by (status = 'succeeded') desc, attempt limit 1 for update",
    )
    .bind(tenant.as_str())
    .bind(child_id.as_str())
    .bind(i64::from(attempt))
    .fetch_optional(&mut *c)
    .await
    .map_err(fault)?;
    let Some(row) = row else { return Ok(None) };
    if row.text("status")? != "running" {
        return Ok(Some(ChildStanding::Settled {
            child_id: child_id.clone(),
            end: end(&row)?,
        }));
    }
    if row.number("fence")? > fence {
        return Ok(Some(ChildStanding::ShutOut));
    }
    sqlx::query(
        "update child_attempts set fence = $4, executions = executions + 1
         where tenant_id = $1 and child_id = $2 and attempt = $3",
    )
    .bind(tenant.as_str())
    .bind(child_id.as_str())
    .bind(i64::from(attempt))
    .bind(int(fence))
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(Some(ChildStanding::Execute {
        child_id: child_id.clone(),
        deadline_at: row.instant("deadline_at")?,
        cancelled: row.number("cancel_requested")? != 0,
    }))
}

impl PostgresStore {
    pub(super) async fn do_start_child(
        &self,
        intent: ChildIntent,
    ) -> Result<ChildStanding, StoreError> {
        let mut c = self.begin().await?;
        insert_key(&mut c, &intent, false, self.clock.now()).await?;
        let (child_id, barred) = by_key(&mut c, &intent).await?;
        if barred {
            return Ok(ChildStanding::Barred);
        }
        let (tenant, attempt, fence) = (&intent.tenant, intent.attempt, intent.fence);
        let standing = match stand(&mut c, tenant, &child_id, attempt, fence).await? {
            Some(standing) => standing,
            None => {
                let cells = intent.attempt_cells(&child_id);
                insert(&mut c, &CHILD_ATTEMPTS, cells.iter().collect()).await?;
                ChildStanding::Execute {
                    child_id,
                    deadline_at: intent.deadline_at,
                    cancelled: false,
                }
            }
        };
        c.commit().await.map_err(fault)?;
        Ok(standing)
    }

    pub(super) async fn do_settle_child(
        &self,
        settlement: ChildSettlement,
    ) -> Result<bool, StoreError> {
        let cells = settlement.cells(self.clock.now())?;
        let mut c = self.pool.acquire().await.map_err(fault)?;
        Ok(settle(&mut c, &cells).await? == 1)
    }

    pub(super) async fn do_observe_child(
        &self,
        tenant: &TenantId,
        child_id: &ChildId,
        attempt: u32,
        fence: u64,
    ) -> Result<ChildStanding, StoreError> {
        let mut c = self.begin().await?;
        let standing = stand(&mut c, tenant, child_id, attempt, fence).await?;
        c.commit().await.map_err(fault)?;
        Ok(standing.unwrap_or(ChildStanding::Unknown))
    }

    pub(super) async fn do_cancel_child(
        &self,
        intent: ChildIntent,
    ) -> Result<ChildCancelled, StoreError> {
        let mut c = self.begin().await?;
        let new = insert_key(&mut c, &intent, true, self.clock.now()).await?;
        let (child_id, barred) = by_key(&mut c, &intent).await?;
        let cancelled = match new || barred {
            true => ChildCancelled::Barred,
            false => cancel(&mut c, &intent, child_id).await?,
        };
        c.commit().await.map_err(fault)?;
        Ok(cancelled)
    }

    pub(super) async fn do_children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Vec<ChildView>, StoreError> {
        let rows = sqlx::query(
            "select r.child_id, r.kind, r.target, r.node_id, a.attempt, a.status, a.executions
             from child_runs r join child_attempts a
               on a.tenant_id = r.tenant_id and a.child_id = r.child_id
             where r.tenant_id = $1 and r.run_id = $2
             order by r.created_at, r.child_id, a.attempt",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        let view = |row: &PgRow| {
            Ok(ChildView {
                child_id: ChildId::from(row.text("child_id")?),
                kind: word(row.text("kind")?)?,
                target: row.text("target")?,
                node_id: NodeId::from(row.text("node_id")?),
                attempt: u32::try_from(row.number("attempt")?).unwrap_or(u32::MAX),
                status: word(row.text("status")?)?,
                executions: row.number("executions")?,
            })
        };
        rows.iter().map(view).collect()
    }
}

/// Asks a known child to stop.
async fn cancel(
    c: &mut PgConnection,
    intent: &ChildIntent,
    child_id: ChildId,
) -> Result<ChildCancelled, StoreError> {
    let row = sqlx::query(
        "update child_attempts set cancel_requested = 1
         where tenant_id = $1 and child_id = $2 and attempt = $3
         returning status, \"end\", output_key_id, output, message_key_id, message",
    )
    .bind(intent.tenant.as_str())
    .bind(child_id.as_str())
    .bind(i64::from(intent.attempt))
    .fetch_optional(&mut *c)
    .await
    .map_err(fault)?;
    let Some(row) = row else {
        // The key is known from an earlier attempt; this one must not start late.
        sqlx::query("update child_runs set barred = 1 where tenant_id = $1 and child_id = $2")
            .bind(intent.tenant.as_str())
            .bind(child_id.as_str())
            .execute(c)
            .await
            .map_err(fault)?;
        return Ok(ChildCancelled::Barred);
    };
    if row.text("status")? == "running" {
        return Ok(ChildCancelled::Told { child_id });
    }
    let end = end(&row)?;
    Ok(ChildCancelled::Ended { child_id, end })
}
