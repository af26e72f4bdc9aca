//! Migrations of PostgreSQL (server.md §1): the numbers and names of SQLite's, applied in
//! order in one transaction under a lock, so that several processes may start at once.

use sqlx::PgConnection;

use super::{fault, int, nat};
use crate::store::StoreError;

/// Every migration, in order; the place in this list is its number, from 1.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../../migrations/postgres/0001_begin.sql"),
    include_str!("../../../../migrations/postgres/0002_expenses.sql"),
    include_str!("../../../../migrations/postgres/0003_columns.sql"),
];

/// The newest schema that this binary knows.
pub(super) const NEWEST: u64 = MIGRATIONS.len() as u64;

/// What processes that migrate the same database agree on.
const LOCK: i64 = 0x0073_6c75_6963_6567;

/// The schema's number; 0 for a database that was migrated but never begun.
pub(super) async fn version(connection: &mut PgConnection) -> Result<u64, StoreError> {
    let found: Option<i64> = sqlx::query_scalar("select max(number) from schema_migrations")
        .fetch_one(connection)
        .await
        .map_err(fault)?;
    Ok(found.map_or(0, nat))
}

/// Brings the schema to [`NEWEST`], inside the caller's transaction.
///
/// # Errors
/// [`StoreError::TooNew`] for a database of a newer binary.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), StoreError> {
    // Held until the transaction ends; whoever waits finds everything done.
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *connection)
        .await
        .map_err(fault)?;
    sqlx::raw_sql(
        "create table if not exists schema_migrations
             (number bigint primary key, applied_at timestamptz not null default now())",
    )
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    let found = version(&mut *connection).await?;
    if found > NEWEST {
        return Err(StoreError::TooNew {
            found,
            known: NEWEST,
        });
    }
    for (number, text) in (1..).zip(MIGRATIONS) {
        if number <= found {
            continue;
        }
        sqlx::raw_sql(text)
            .execute(&mut *connection)
            .await
            .map_err(fault)?;
        sqlx::query("insert into schema_migrations (number) values ($1)")
            .bind(int(number))
            .execute(&mut *connection)
            .await
            .map_err(fault)?;
    }
    Ok(())
}
