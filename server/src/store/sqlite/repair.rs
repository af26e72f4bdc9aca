//! Projections compared and built anew (architecture.md decision 1; run-machine.md A9): in one
//! read, and in one transition of the writer.

use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use sluicegate_core::ids::{RunId, TenantId};

use super::{SqliteStore, bulk, fault, int, json};
use crate::store::column::Columns;
use crate::store::flat::projected_rows;
use crate::store::repair::{PROJECTIONS, Wanted, evidence_cells, payload_ids};
use crate::store::table::{Cell, Kind, PROJECTED, RUNS, TABLES};
use crate::store::{Difference, Rebuilt, StoreError};

/// Whether a claim would find an open run later than it may.
const LATE: &str = "open = 1 and claim_at > case
    when lease_token is not null and lease_void = 0 then max(coalesce(lease_expires_at, 0), ?3)
    else ?3 end";
/// Whether a preview is shown that retention has removed.
const SHOWN: &str = "state = 'expired' and preview is not null";

/// A column as it is read: texts as bytes, so that a damaged one can be read too.
fn expression(table: &str, (name, kind): (&str, Kind)) -> String {
    match (table, name, kind) {
        ("workflow_runs", "claim_at", _) => LATE.to_owned(),
        ("workflow_payloads", "preview", _) => SHOWN.to_owned(),
        (_, _, Kind::Text) => format!("cast({name} as blob)"),
        _ => name.to_owned(),
    }
}

fn cells(row: &SqliteRow, columns: &[(&str, Kind)]) -> Result<Vec<Cell>, StoreError> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Int => {
                let number: Option<i64> = row.try_get(at).map_err(fault)?;
                number.map_or(Cell::Null, Cell::Int)
            }
            Kind::Text | Kind::Bytes => {
                let text: Option<Vec<u8>> = row.try_get(at).map_err(fault)?;
                text.map_or(Cell::Null, |text| {
                    Cell::text(&String::from_utf8_lossy(&text))
                })
            }
        })
    };
    columns.iter().enumerate().map(cell).collect()
}

async fn stored(
    c: &mut SqliteConnection,
    (tenant, run_id): (&TenantId, &RunId),
    wanted: &Wanted,
    wake_at: i64,
) -> Result<Vec<Vec<Cell>>, StoreError> {
    let columns = wanted.columns.iter();
    let columns: Vec<_> = columns
        .map(|column| expression(wanted.table, *column))
        .collect();
    let kind = match wanted.table {
        "workflow_payloads" => " and kind = 'evidence'",
        _ => "",
    };
    let text = format!(
        "select {} from {} where tenant_id = ?1 and run_id = ?2{kind} and ?3 is not null",
        columns.join(", "),
        wanted.table
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .bind(wake_at)
        .fetch_all(c)
        .await
        .map_err(fault)?;
    rows.iter().map(|row| cells(row, &wanted.columns)).collect()
}

/// The run's own row, open again if it is not over.
async fn own_row(
    c: &mut SqliteConnection,
    (tenant, run_id): (&TenantId, &RunId),
    rebuilt: &Rebuilt,
) -> Result<(), StoreError> {
    let mut text = String::from("update workflow_runs set ");
    for (name, _) in RUNS.columns.iter().skip(PROJECTED - 1) {
        text.push_str(name);
        text.push_str(" = ?, ");
    }
    text.push_str(
        "rollup_version = 1, parked_code = null, parked_sequence = null,
         claim_at = min(claim_at, case when lease_token is not null and lease_void = 0
                                       then coalesce(lease_expires_at, 0) else ? end)
         where tenant_id = ? and run_id = ?
           and ? = (select max(sequence) from workflow_run_events e
                    where e.tenant_id = workflow_runs.tenant_id
                      and e.run_id = workflow_runs.run_id)",
    );
    let cells = rebuilt.own_cells()?;
    let moved = bulk::bind(sqlx::query(AssertSqlSafe(text)), cells.iter())
        .bind(rebuilt.wake_at())
        .bind(tenant.as_str().to_owned())
        .bind(run_id.as_str().to_owned())
        .bind(int(rebuilt.sequence))
        .execute(c)
        .await
        .map_err(fault)?;
    match moved.rows_affected() {
        1 => Ok(()),
        _ => Err(StoreError::Stale),
    }
}

async fn evidence_rows(
    c: &mut SqliteConnection,
    (tenant, run_id): (&TenantId, &RunId),
    rebuilt: &Rebuilt,
) -> Result<(), StoreError> {
    for evidence in &rebuilt.evidence {
        let cells = evidence_cells(evidence)?;
        let [id, schema_id, hash, size, state, reason, _] = &cells;
        let text = "update workflow_payloads
                    set schema_id = ?1, hash = ?2, byte_size = ?3, state = ?4, reason = ?5,
                        preview = case when ?4 = 'expired' then null else preview end
                    where payload_id = ?6 and tenant_id = ?7 and run_id = ?8
                      and kind = 'evidence'";
        let own = [Cell::text(tenant.as_str()), Cell::text(run_id.as_str())];
        let [tenant, run_id] = &own;
        let bound = [schema_id, hash, size, state, reason, id, tenant, run_id];
        bulk::bind(sqlx::query(text), bound.into_iter())
            .execute(&mut *c)
            .await
            .map_err(fault)?;
    }
    let ids = Cell::Text(json(&payload_ids(&rebuilt.evidence))?.into());
    let own = [
        Cell::text(tenant.as_str()),
        Cell::text(run_id.as_str()),
        ids,
    ];
    let text = "delete from workflow_payloads
                where tenant_id = ? and run_id = ? and kind = 'evidence'
                  and payload_id not in (select value from json_each(?))";
    bulk::bind(sqlx::query(text), own.iter())
        .execute(c)
        .await
        .map_err(fault)?;
    Ok(())
}

impl SqliteStore {
    pub(super) async fn do_run_ids(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>, StoreError> {
        // A run without events, and events without a run, are found too.
        let rows = sqlx::query(
            "select run_id from (select run_id from workflow_runs
                                 where tenant_id = ?1 and run_id > ?2 order by run_id limit ?3)
             union
             select run_id from (select run_id from workflow_run_events
                                 where tenant_id = ?1 and run_id > ?2
                                 group by run_id order by run_id limit ?3)
             order by run_id limit ?3",
        )
        .bind(tenant.as_str())
        .bind(after.map_or("", RunId::as_str))
        .bind(limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter()
            .map(|row| row.text("run_id").map(RunId::from))
            .collect()
    }

    pub(super) async fn do_differences(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<Vec<Difference>, StoreError> {
        let mut reading = self.readers.begin().await.map_err(fault)?;
        let mut differences = Vec::new();
        for wanted in rebuilt.wanted(tenant, run_id)? {
            let place = (tenant, run_id);
            let rows = stored(&mut reading, place, &wanted, rebuilt.wake_at()).await?;
            wanted.compare(rows, &mut differences);
        }
        Ok(differences)
    }

    pub(super) async fn do_rebuild(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<(), StoreError> {
        let (tenant, run_id, rebuilt) = (tenant.clone(), run_id.clone(), rebuilt.clone());
        self.write(move |c| {
            Box::pin(async move {
                own_row(&mut *c, (&tenant, &run_id), &rebuilt).await?;
                let rows = projected_rows(&tenant, &run_id, &rebuilt.rows, &rebuilt.node_types)?;
                for ((place, _), cells) in PROJECTIONS.into_iter().zip(rows) {
                    let Some(table) = TABLES.get(place) else {
                        continue;
                    };
                    let text = format!(
                        "delete from {} where tenant_id = ? and run_id = ?",
                        table.name
                    );
                    sqlx::query(AssertSqlSafe(text))
                        .bind(tenant.as_str())
                        .bind(run_id.as_str())
                        .execute(&mut *c)
                        .await
                        .map_err(fault)?;
                    bulk::insert(&mut *c, table, cells.iter()).await?;
                }
                evidence_rows(c, (&tenant, &run_id), &rebuilt).await
            })
        })
        .await
    }
}
