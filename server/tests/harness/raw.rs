//! The database file as somebody sees it who holds it: a second connection, with every rule that
//! the tables keep taken away.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Row, SqliteConnection};

/// A connection to the store of a folder.
pub(crate) async fn open(folder: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(folder.join("sluicegate.sqlite"))
        .busy_timeout(std::time::Duration::from_secs(10))
        .connect()
        .await
        .unwrap()
}

/// Carries out any statements.
pub(crate) async fn run(raw: &mut SqliteConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(raw)
        .await
        .unwrap();
}

/// Takes the triggers away that refuse changes.
pub(crate) async fn disarm(raw: &mut SqliteConnection) {
    for name in names(raw, "trigger").await {
        run(raw, &format!("drop trigger {name}")).await;
    }
}

async fn names(raw: &mut SqliteConnection, kind: &str) -> Vec<String> {
    sqlx::query_scalar(
        "select name from sqlite_schema
         where type = ? and name not like 'sqlite_%' order by name",
    )
    .bind(kind)
    .fetch_all(raw)
    .await
    .unwrap()
}

/// The columns of a table that hold something of their own.
pub(crate) async fn columns(raw: &mut SqliteConnection, table: &str) -> Vec<String> {
    let query = format!("select name from pragma_table_info('{table}')");
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(raw)
        .await
        .unwrap()
}

/// Every row of every table, each column as a literal.
pub(crate) async fn dump(raw: &mut SqliteConnection) -> BTreeMap<String, Vec<String>> {
    let mut dumped = BTreeMap::new();
    for table in names(raw, "table").await {
        let columns = columns(raw, &table).await;
        let literals: Vec<_> = columns.iter().map(|c| format!("quote({c})")).collect();
        // A text need not be UTF-8 any more.
        let literals = literals.join(" || ', ' || ");
        let query = format!("select cast({literals} as blob) from {table}");
        let rows = sqlx::query(AssertSqlSafe(query))
            .fetch_all(&mut *raw)
            .await
            .unwrap();
        let text = |row: Vec<u8>| String::from_utf8_lossy(&row).into_owned();
        let mut rows: Vec<String> = rows.iter().map(|row| text(row.get(0))).collect();
        rows.sort();
        dumped.insert(table, rows);
    }
    dumped
}
