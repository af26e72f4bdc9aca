//! Children in their tables (run-machine.md N1, W8, C3): one row a key, one more a (key,
//! attempt), owned by a fence, settled once.

use std::collections::HashSet;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::ids::{ChildId, NodeId, RunId, TenantId};
use sluicegate_core::time::Instant;

use super::bulk::{bind, insert, insert_text, parts, prepared, push_rows};
use super::{Columns, SqliteStore, fault};
use crate::store::child::{CHILD_ATTEMPTS, CHILD_RUNS, SETTLEMENT, end, kind_word};
use crate::store::column::int;
use crate::store::flat::Transition;
use crate::store::row::word;
use crate::store::table::Cell;
use crate::store::{
    ChildCancelled, ChildIntent, ChildSettlement, ChildStanding, ChildView, StoreError,
};

/// The child that a key stands for, and whether it is barred.
async fn by_key(
    c: &mut SqliteConnection,
    intent: &ChildIntent,
) -> Result<Option<(ChildId, bool)>, StoreError> {
    let row = sqlx::query(
        "select child_id, barred from child_runs where tenant_id = ? and kind = ? and key = ?",
    )
    .bind(intent.tenant.as_str())
    .bind(kind_word(intent.kind))
    .bind(intent.key.to_string())
    .fetch_optional(c)
    .await
    .map_err(fault)?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((
        ChildId::from(row.text("child_id")?),
        row.number("barred")? != 0,
    )))
}

/// Ends the children that answered at once. All of them, or an error: then one of the
/// decisions is about a child that somebody else has by now.
pub(super) async fn settle_all(
    c: &mut SqliteConnection,
    standing: &[&Transition],
    now: Instant,
) -> Result<(), StoreError> {
    let ends = standing.iter().filter_map(|t| t.children.settle.as_ref());
    let mut cells = Vec::new();
    for end in ends {
        cells.extend(end.cells(now)?);
    }
    let (mut asked, mut settled) = (0, 0);
    for (rows, cells) in parts(&cells, SETTLEMENT.len()) {
        let text = prepared("settle", rows, || settle_text(rows));
        let query = bind(sqlx::query(text), cells.iter());
        asked += rows as u64;
        settled += query.execute(&mut *c).await.map_err(fault)?.rows_affected();
    }
    if asked == settled {
        Ok(())
    } else {
        Err(StoreError::Stale)
    }
}

fn settle_text(rows: usize) -> String {
    let names: Vec<_> = SETTLEMENT
        .iter()
        .map(|(name, _)| format!("v_{name}"))
        .collect();
    let mut text = format!("with v ({}) as (values ", names.join(", "));
    push_rows(&mut text, rows, SETTLEMENT.len());
    text.push_str(
        ") update or fail child_attempts
         set status = v_status, ended_at = v_ended_at, end = v_end,
             output_key_id = v_output_key_id, output = v_output,
             message_key_id = v_message_key_id, message = v_message
         from v
         where tenant_id = v_tenant_id and child_id = v_child_id and attempt = v_attempt
           and fence = v_fence and status = 'running'",
    );
    text
}

/// Starts the children whose keys are new, and gives their ids.
pub(super) async fn start_all(
    c: &mut SqliteConnection,
    standing: &[&Transition],
    now: Instant,
) -> Result<HashSet<String>, StoreError> {
    let starts = || standing.iter().filter_map(|t| t.children.start.as_ref());
    let cells: Vec<Cell> = starts()
        .flat_map(|start| start.run_cells(false, now))
        .collect();
    let mut started = HashSet::new();
    for (rows, cells) in parts(&cells, CHILD_RUNS.columns.len()) {
        let text = prepared("start", rows, || {
            let mut text = insert_text(&CHILD_RUNS, rows);
            text.push_str(" on conflict (tenant_id, kind, key) do nothing returning child_id");
            text
        });
        let query = bind(sqlx::query(text), cells.iter());
        for row in query.fetch_all(&mut *c).await.map_err(fault)? {
            started.insert(row.text("child_id")?);
        }
    }
    let fresh = starts().filter(|start| started.contains(start.new_id.as_str()));
    let cells: Vec<Cell> = fresh
        .flat_map(|start| start.attempt_cells(&start.new_id))
        .collect();
    insert(c, &CHILD_ATTEMPTS, cells.iter()).await?;
    Ok(started)
}

/// How an attempt of a known child stands for a fence; a running one is taken over by a
/// higher fence. `None`: there is no such attempt.
async fn stand(
    c: &mut SqliteConnection,
    tenant: &TenantId,
    child_id: &ChildId,
    attempt: u32,
    fence: u64,
) -> Result<Option<ChildStanding>, StoreError> {
    // A success answers every later attempt (N1).
    let row = sqlx::query(
        "select attempt, fence, status, cancel_requested, deadline_at, end, output_key_id, output,
                message_key_id, message
         from child_attempts
         where tenant_id = ?1 and child_id = ?2
           and (attempt = ?3 or (attempt < ?3 and status = 'succeeded'))
         order by status = 'succeeded' desc, attempt limit 1",
    )
    .bind(tenant.as_str())
    .bind(child_id.as_str())
    .bind(attempt)
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
        "update child_attempts set fence = ?4, executions = executions + 1
         where tenant_id = ?1 and child_id = ?2 and attempt = ?3",
    )
    .bind(tenant.as_str())
    .bind(child_id.as_str())
    .bind(attempt)
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

impl SqliteStore {
    pub(super) async fn do_start_child(
        &self,
        intent: ChildIntent,
    ) -> Result<ChildStanding, StoreError> {
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let child_id = match by_key(&mut *c, &intent).await? {
                    Some((_, true)) => return Ok(ChildStanding::Barred),
                    Some((child_id, false)) => child_id,
                    None => {
                        insert(&mut *c, &CHILD_RUNS, intent.run_cells(false, now).iter()).await?;
                        intent.new_id.clone()
                    }
                };
                let (tenant, attempt, fence) = (&intent.tenant, intent.attempt, intent.fence);
                if let Some(standing) = stand(&mut *c, tenant, &child_id, attempt, fence).await? {
                    return Ok(standing);
                }
                let cells = intent.attempt_cells(&child_id);
                insert(c, &CHILD_ATTEMPTS, cells.iter()).await?;
                Ok(ChildStanding::Execute {
                    child_id,
                    deadline_at: intent.deadline_at,
                    cancelled: false,
                })
            })
        })
        .await
    }

    pub(super) async fn do_settle_child(
        &self,
        settlement: ChildSettlement,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let mut query = sqlx::query(
                    "update child_attempts
                     set status = ?5, ended_at = ?6, end = ?7, output_key_id = ?8, output = ?9,
                         message_key_id = ?10, message = ?11
                     where tenant_id = ?1 and child_id = ?2 and attempt = ?3 and fence = ?4
                       and status = 'running'",
                );
                query = bind(query, settlement.cells(now)?.iter());
                let settled = query.execute(c).await.map_err(fault)?;
                Ok(settled.rows_affected() == 1)
            })
        })
        .await
    }

    pub(super) async fn do_observe_child(
        &self,
        tenant: &TenantId,
        child_id: &ChildId,
        attempt: u32,
        fence: u64,
    ) -> Result<ChildStanding, StoreError> {
        let (tenant, child_id) = (tenant.clone(), child_id.clone());
        self.write(move |c| {
            Box::pin(async move {
                let standing = stand(c, &tenant, &child_id, attempt, fence).await?;
                Ok(standing.unwrap_or(ChildStanding::Unknown))
            })
        })
        .await
    }

    pub(super) async fn do_cancel_child(
        &self,
        intent: ChildIntent,
    ) -> Result<ChildCancelled, StoreError> {
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let child_id = match by_key(&mut *c, &intent).await? {
                    None => {
                        insert(c, &CHILD_RUNS, intent.run_cells(true, now).iter()).await?;
                        return Ok(ChildCancelled::Barred);
                    }
                    Some((_, true)) => return Ok(ChildCancelled::Barred),
                    Some((child_id, false)) => child_id,
                };
                let row = sqlx::query(
                    "update child_attempts set cancel_requested = 1
                     where tenant_id = ?1 and child_id = ?2 and attempt = ?3
                     returning status, end, output_key_id, output, message_key_id, message",
                )
                .bind(intent.tenant.as_str())
                .bind(child_id.as_str())
                .bind(intent.attempt)
                .fetch_optional(&mut *c)
                .await
                .map_err(fault)?;
                let Some(row) = row else {
                    // The key is known from an earlier attempt; this one must not start late.
                    sqlx::query(
                        "update child_runs set barred = 1 where tenant_id = ? and child_id = ?",
                    )
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
            })
        })
        .await
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
             where r.tenant_id = ? and r.run_id = ?
             order by r.created_at, r.child_id, a.attempt",
        )
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        let view = |row: &SqliteRow| {
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
