//! A database as somebody sees it who holds it: a connection beside the store's, with every rule
//! that the tables keep taken away, on either database.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, SqliteConnection};

use super::ground::Ground;
use super::{cluster, raw};

/// A connection without rules.
pub(crate) enum Bare {
    /// To a file.
    Sqlite(SqliteConnection),
    /// To a server.
    Postgres(PgConnection),
}

/// Takes the checks of columns away.
const UNCHECK: &str = "do $$ declare c record; begin
    for c in select conrelid::regclass as owner, conname from pg_constraint
             where contype = 'c' and connamespace = 'public'::regnamespace
    loop execute format('alter table %s drop constraint %I', c.owner, c.conname);
    end loop; end $$";

impl Bare {
    /// Opens the ground's database beside the store.
    pub(crate) async fn open(ground: &Ground) -> Self {
        match ground.url() {
            None => {
                let mut raw = raw::open(ground.folder()).await;
                raw::disarm(&mut raw).await;
                raw::run(&mut raw, "pragma ignore_check_constraints = on").await;
                Self::Sqlite(raw)
            }
            Some(url) => {
                cluster::disarm(url).await;
                cluster::execute(url, UNCHECK).await;
                let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
                Self::Postgres(options.connect().await.unwrap())
            }
        }
    }

    /// Whether it is PostgreSQL.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Carries out any statements.
    pub(crate) async fn run(&mut self, statements: &str) {
        match self {
            Self::Sqlite(raw) => raw::run(raw, statements).await,
            Self::Postgres(connection) => {
                let statements = AssertSqlSafe(statements.to_owned());
                sqlx::raw_sql(statements).execute(connection).await.unwrap();
            }
        }
    }

    /// The texts of a query's one column.
    pub(crate) async fn texts(&mut self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(query.to_owned());
        match self {
            Self::Sqlite(raw) => sqlx::query_scalar(query).fetch_all(raw).await.unwrap(),
            Self::Postgres(connection) => sqlx::query_scalar(query)
                .fetch_all(connection)
                .await
                .unwrap(),
        }
    }

    /// The number that a query gives.
    pub(crate) async fn number(&mut self, query: &str) -> i64 {
        let query = AssertSqlSafe(query.to_owned());
        match self {
            Self::Sqlite(raw) => sqlx::query_scalar(query).fetch_one(raw).await.unwrap(),
            Self::Postgres(connection) => sqlx::query_scalar(query)
                .fetch_one(connection)
                .await
                .unwrap(),
        }
    }

    /// The columns of a table that hold something of their own, and whether that is a text.
    pub(crate) async fn columns(&mut self, table: &str) -> Vec<(String, bool)> {
        let query = match self {
            Self::Sqlite(_) => {
                format!("select name || ' ' || lower(type) from pragma_table_info('{table}')")
            }
            Self::Postgres(_) => format!(
                "select column_name || ' ' || data_type from information_schema.columns
                 where table_schema = 'public' and table_name = '{table}' and is_generated = 'NEVER'
                 order by ordinal_position"
            ),
        };
        let columns = self.texts(&query).await;
        let column = |line: &String| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), kind == "text")
        };
        columns.iter().map(column).collect()
    }

    /// Every row of every table, by table.
    pub(crate) async fn dump(&mut self) -> BTreeMap<String, Vec<String>> {
        if let Self::Sqlite(raw) = self {
            return raw::dump(raw).await;
        }
        let tables = "select table_name::text from information_schema.tables
                      where table_schema = 'public' order by 1";
        let mut dumped = BTreeMap::new();
        for table in self.texts(tables).await {
            let rows = format!("select (t.*)::text from {table} t order by 1");
            dumped.insert(table, self.texts(&rows).await);
        }
        dumped
    }

    /// The names of the columns, as they stand in a list.
    pub(crate) async fn names(&mut self, table: &str) -> String {
        let columns = self.columns(table).await;
        let names: Vec<_> = columns.into_iter().map(|(name, _)| name).collect();
        names.join(", ")
    }
}
