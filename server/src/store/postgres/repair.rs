//! Projections compared and built anew (architecture.md decision 1; run-machine.md A9): in one
//! view, and in one transaction that holds the run.

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};

use sluicegate_core::ids::{RunId, TenantId};

use super::{Columns, PostgresStore, bulk, fault, int};
use crate::store::flat::projected_rows;
use crate::store::repair::{EVIDENCE, PROJECTIONS, Wanted, evidence_cells, payload_ids};
use crate::store::table::{Cell, Kind, PROJECTED, RUNS, TABLES};
use crate::store::{Difference, Rebuilt, StoreError};

/// Whether a claim would find an open run later than it may.
const LATE: &str = "(open = 1 and claim_at > case
    when lease_token is not null and lease_void = 0 then greatest(coalesce(lease_expires_at, 0), $3)
    else $3 end)::int::bigint";
/// Whether a preview is shown that retention has removed.
const SHOWN: &str = "(state = 'expired' and preview is not null)::int::bigint";

fn expression(table: &str, name: &str) -> String {
    match (table, name) {
        ("workflow_runs", "claim_at") => LATE.to_owned(),
        ("workflow_payloads", "preview") => SHOWN.to_owned(),
        _ => name.to_owned(),
    }
}

fn cells(row: &PgRow, columns: &[(&str, Kind)]) -> Result<Vec<Cell>, StoreError> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Int => {
                let number: Option<i64> = row.try_get(at).map_err(fault)?;
                number.map_or(Cell::Null, Cell::Int)
            }
            Kind::Text | Kind::Bytes => {
                let text: Option<String> = row.try_get(at).map_err(fault)?;
                text.map_or(Cell::Null, |text| Cell::Text(text.into()))
            }
        })
    };
    columns.iter().enumerate().map(cell).collect()
}

async fn stored(
    c: &mut PgConnection,
    (tenant, run_id): (&TenantId, &RunId),
    wanted: &Wanted,
    wake_at: i64,
) -> Result<Vec<Vec<Cell>>, StoreError> {
    let columns = wanted.columns.iter();
    let columns: Vec<_> = columns
        .map(|(name, _)| expression(wanted.table, name))
        .collect();
    let kind = match wanted.table {
        "workflow_payloads" => " and kind = 'evidence'",
        _ => "",
    };
    let text = format!(
        "select {} from {}
         where tenant_id = $1 and run_id = $2{kind} and $3::bigint is not null",
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
    c: &mut PgConnection,
    (tenant, run_id): (&TenantId, &RunId),
    rebuilt: &Rebuilt,
) -> Result<(), StoreError> {
    // Whoever moves the run holds its row: from here on nobody does.
    sqlx::query("select from workflow_runs where tenant_id = $1 and run_id = $2 for update")
        .bind(tenant.as_str())
        .bind(run_id.as_str())
        .execute(&mut *c)
        .await
        .map_err(fault)?;
    let last: Option<i64> = sqlx::query_scalar(
        "select max(sequence) from workflow_run_events where tenant_id = $1 and run_id = $2",
    )
    .bind(tenant.as_str())
    .bind(run_id.as_str())
    .fetch_one(&mut *c)
    .await
    .map_err(fault)?;
    if last != Some(int(rebuilt.sequence)) {
        return Err(StoreError::Stale);
    }
    let own = || RUNS.columns.iter().skip(PROJECTED - 1);
    let renamed: Vec<_> = own()
        .map(|(name, kind)| (format!("v_{name}"), *kind))
        .collect();
    let place = [
        ("g_tenant", Kind::Text),
        ("g_run", Kind::Text),
        ("g_wake", Kind::Int),
    ];
    let renamed = renamed.iter().map(|(name, kind)| (name.as_str(), *kind));
    let columns: Vec<_> = place.into_iter().chain(renamed).collect();
    let mut text = String::from("update workflow_runs set ");
    for (name, _) in own() {
        text.push_str(&format!("{name} = v_{name}, "));
    }
    text.push_str(
        "rollup_version = 1, parked_code = null, parked_sequence = null,
         claim_at = least(claim_at, case when lease_token is not null and lease_void = 0
                                         then coalesce(lease_expires_at, 0) else g_wake end) from ",
    );
    text.push_str(&bulk::spread(&columns));
    text.push_str(" where tenant_id = g_tenant and run_id = g_run");
    let mut cells = vec![
        Cell::text(tenant.as_str()),
        Cell::text(run_id.as_str()),
        Cell::Int(rebuilt.wake_at()),
    ];
    cells.extend(rebuilt.own_cells()?);
    let cells: Vec<&Cell> = cells.iter().collect();
    let query = bulk::bind(sqlx::query(AssertSqlSafe(text)), &columns, &cells);
    query.execute(c).await.map_err(fault)?;
    Ok(())
}

async fn evidence_rows(
    c: &mut PgConnection,
    (tenant, run_id): (&TenantId, &RunId),
    rebuilt: &Rebuilt,
) -> Result<(), StoreError> {
    let columns: Vec<_> = EVIDENCE
        .iter()
        .map(|(name, kind)| (format!("v_{name}"), *kind))
        .collect();
    let named = columns.iter().map(|(name, kind)| (name.as_str(), *kind));
    let place = [("g_tenant", Kind::Text), ("g_run", Kind::Text)];
    let columns: Vec<_> = place.into_iter().chain(named).collect();
    let mut cells = Vec::new();
    for evidence in &rebuilt.evidence {
        cells.extend([Cell::text(tenant.as_str()), Cell::text(run_id.as_str())]);
        cells.extend(evidence_cells(evidence)?);
    }
    let text = format!(
        "update workflow_payloads
         set schema_id = v_schema_id, hash = v_hash, byte_size = v_byte_size, state = v_state,
             reason = v_reason,
             preview = case when v_state = 'expired' then null else preview end
         from {}
         where tenant_id = g_tenant and run_id = g_run and kind = 'evidence'
           and payload_id = v_payload_id",
        bulk::spread(&columns)
    );
    let cells: Vec<&Cell> = cells.iter().collect();
    let query = bulk::bind(sqlx::query(AssertSqlSafe(text)), &columns, &cells);
    query.execute(&mut *c).await.map_err(fault)?;
    sqlx::query(
        "delete from workflow_payloads
         where tenant_id = $1 and run_id = $2 and kind = 'evidence' and payload_id <> all ($3)",
    )
    .bind(tenant.as_str())
    .bind(run_id.as_str())
    .bind(payload_ids(&rebuilt.evidence))
    .execute(c)
    .await
    .map_err(fault)?;
    Ok(())
}

impl PostgresStore {
    pub(super) async fn do_run_ids(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>, StoreError> {
        // A run without events, and events without a run, are found too.
        let rows = sqlx::query(
            "(select run_id from workflow_runs
              where tenant_id = $1 and run_id > $2 order by run_id limit $3)
             union
             (select run_id from workflow_run_events
              where tenant_id = $1 and run_id > $2 group by run_id order by run_id limit $3)
             order by run_id limit $3",
        )
        .bind(tenant.as_str())
        .bind(after.map_or("", RunId::as_str))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
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
        let mut view = self.view().await?;
        let mut differences = Vec::new();
        for wanted in rebuilt.wanted(tenant, run_id)? {
            let place = (tenant, run_id);
            let rows = stored(&mut view, place, &wanted, rebuilt.wake_at()).await?;
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
        let mut c = self.begin().await?;
        own_row(&mut c, (tenant, run_id), rebuilt).await?;
        let rows = projected_rows(tenant, run_id, &rebuilt.rows, &rebuilt.node_types)?;
        for ((place, _), cells) in PROJECTIONS.into_iter().zip(rows) {
            let Some(table) = TABLES.get(place) else {
                continue;
            };
            let text = format!(
                "delete from {} where tenant_id = $1 and run_id = $2",
                table.name
            );
            sqlx::query(AssertSqlSafe(text))
                .bind(tenant.as_str())
                .bind(run_id.as_str())
                .execute(&mut *c)
                .await
                .map_err(fault)?;
            bulk::insert(&mut c, table, cells.iter().collect()).await?;
        }
        evidence_rows(&mut c, (tenant, run_id), rebuilt).await?;
        c.commit().await.map_err(fault)
    }
}
