//! Migrations of SQLite (server.md §1): numbered files, applied in order, each in one
//! transaction with the number that it brings the schema to.

use sqlx::{Connection, SqliteConnection};

use super::{fault, nat};
use crate::store::StoreError;

/// Every migration, in order; the place in this list is its number, from 1.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../../migrations/sqlite/0001_begin.sql"),
    include_str!("../../../../migrations/sqlite/0002_expenses.sql"),
    include_str!("../../../../migrations/sqlite/0003_columns.sql"),
];

/// The newest schema that this binary knows.
pub(super) const NEWEST: u64 = MIGRATIONS.len() as u64;

/// The schema's number; 0 for a new database.
pub(super) async fn version(connection: &mut SqliteConnection) -> Result<u64, StoreError> {
    let found: i64 = sqlx::query_scalar("pragma user_version")
        .fetch_one(connection)
        .await
        .map_err(fault)?;
    Ok(nat(found))
}

/// Brings the schema to [`NEWEST`].
///
/// # Errors
/// [`StoreError::TooNew`] for a database of a newer binary.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let found = version(connection).await?;
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
        let mut transaction = connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(fault)?;
        sqlx::raw_sql(text)
            .execute(&mut *transaction)
            .await
            .map_err(fault)?;
        // A pragma takes no bound value; the text is a number of ours.
        let stamp = format!("pragma user_version = {number}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(stamp))
            .execute(&mut *transaction)
            .await
            .map_err(fault)?;
        transaction.commit().await.map_err(fault)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
