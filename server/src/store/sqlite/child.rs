//! Children in their tables (run-machine.md N1, W8, C3): one row a key, one more a (key,
//! attempt), owned by a fence, settled once.

use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::ids::{ChildId, NodeId, RunId, TenantId};
use sluicegate_core::run::{ChildKind, Cost, Usage};
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;

use super::{Columns, SqliteStore, fault, int, json, thing};
use crate::store::{
    ChildCancelled, ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus, ChildView,
    StoreError,
};

/// What an end says that is not secret.
#[derive(Serialize, Deserialize)]
struct End {
    code: Option<String>,
    usage: Option<Usage>,
    cost: Option<Cost>,
}

fn kind_word(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Agent => "agent",
        ChildKind::Action => "action",
    }
}

fn status_word(status: ChildStatus) -> &'static str {
    match status {
        ChildStatus::Running => "running",
        ChildStatus::Succeeded => "succeeded",
        ChildStatus::Failed => "failed",
        ChildStatus::Refused => "refused",
        ChildStatus::Cancelled => "cancelled",
    }
}

fn read<T: serde::de::DeserializeOwned>(word: String) -> Result<T, StoreError> {
    serde_json::from_value(Value::String(word)).map_err(|e| StoreError::Corrupt(e.to_string()))
}

fn sealed(
    row: &SqliteRow,
    key: &'static str,
    bytes: &'static str,
) -> Result<Option<(String, Vec<u8>)>, StoreError> {
    match row.maybe_text(key)? {
        None => Ok(None),
        Some(key_id) => Ok(Some((key_id, row.bytes(bytes)?))),
    }
}

fn end(row: &SqliteRow) -> Result<ChildEnd, StoreError> {
    let said: End = match row.maybe_text("end")? {
        Some(text) => thing(&text)?,
        None => {
            return Err(StoreError::Corrupt(
                "a child that ended without an end".to_owned(),
            ));
        }
    };
    Ok(ChildEnd {
        status: read(row.text("status")?)?,
        output: sealed(row, "output_key_id", "output")?,
        code: said.code,
        message: sealed(row, "message_key_id", "message")?,
        usage: said.usage,
        cost: said.cost,
    })
}

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

async fn insert_child(
    c: &mut SqliteConnection,
    intent: &ChildIntent,
    barred: bool,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into child_runs
             (tenant_id, child_id, kind, key, run_id, node_id, target, barred, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(intent.tenant.as_str())
    .bind(intent.new_id.as_str())
    .bind(kind_word(intent.kind))
    .bind(intent.key.to_string())
    .bind(intent.run_id.as_str())
    .bind(intent.node_id.as_str())
    .bind(&intent.target)
    .bind(barred)
    .bind(int(now.0))
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
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
        fresh: false,
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
                        insert_child(&mut *c, &intent, false, now).await?;
                        intent.new_id.clone()
                    }
                };
                let (tenant, attempt, fence) = (&intent.tenant, intent.attempt, intent.fence);
                if let Some(standing) = stand(&mut *c, tenant, &child_id, attempt, fence).await? {
                    return Ok(standing);
                }
                sqlx::query(
                    "insert into child_attempts
                         (tenant_id, child_id, attempt, fence, status, executions, deadline_at)
                     values (?, ?, ?, ?, 'running', 1, ?)",
                )
                .bind(tenant.as_str())
                .bind(child_id.as_str())
                .bind(attempt)
                .bind(int(fence))
                .bind(int(intent.deadline_at.0))
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(ChildStanding::Execute {
                    child_id,
                    deadline_at: intent.deadline_at,
                    fresh: true,
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
                let ChildEnd {
                    status,
                    output,
                    code,
                    message,
                    usage,
                    cost,
                } = settlement.end;
                let (output_key, output) = output.unzip();
                let (message_key, message) = message.unzip();
                let settled = sqlx::query(
                    "update child_attempts
                     set status = ?5, ended_at = ?6, end = ?7, output_key_id = ?8, output = ?9,
                         message_key_id = ?10, message = ?11
                     where tenant_id = ?1 and child_id = ?2 and attempt = ?3 and fence = ?4
                       and status = 'running'",
                )
                .bind(settlement.tenant.as_str())
                .bind(settlement.child_id.as_str())
                .bind(settlement.attempt)
                .bind(int(settlement.fence))
                .bind(status_word(status))
                .bind(int(now.0))
                .bind(json(&End { code, usage, cost })?)
                .bind(output_key)
                .bind(output)
                .bind(message_key)
                .bind(message)
                .execute(c)
                .await
                .map_err(fault)?;
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
                        insert_child(c, &intent, true, now).await?;
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
                kind: read(row.text("kind")?)?,
                target: row.text("target")?,
                node_id: NodeId::from(row.text("node_id")?),
                attempt: u32::try_from(row.number("attempt")?).unwrap_or(u32::MAX),
                status: read(row.text("status")?)?,
                executions: row.number("executions")?,
            })
        };
        rows.iter().map(view).collect()
    }
}
