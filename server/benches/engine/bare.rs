//! The bare writer: the very same rows, by the same driver, in prepared statements of many rows
//! and transactions of the same size. It guards nothing, decides nothing and hashes nothing.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, PgConnection, Postgres, Row, Sqlite, SqliteConnection,
    TypeInfo, ValueRef,
};

use crate::rows::{Cell, Rows, TABLES, Transition, heads};

/// The most rows of one statement on SQLite; fewer go in halves of it.
const ROWS: usize = 64;

/// What events change of a run's own row.
const CHANGED: [&str; 24] = [
    "status",
    "last_sequence",
    "started_at",
    "completed_at",
    "cancel_requested_at",
    "wake_at",
    "nodes_settled",
    "nodes_total",
    "rollup_state",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "included_child_run_ids",
    "priced_child_runs",
    "unpriced_child_runs",
    "action_invocations",
    "unpriced_actions",
    "amount_micros",
    "pricing_snapshot_ids",
    "failure_code",
    "failure_message",
    "failure_node_id",
    "open",
    "claim_at",
];

/// How a table's rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Insert,
    Replace,
    Update,
}

/// A connection and the texts that it has prepared.
pub(crate) enum Bare {
    Sqlite(SqliteConnection, BTreeMap<(usize, Shape, usize), Arc<str>>),
    Postgres(PgConnection, BTreeMap<(usize, Shape), Arc<str>>),
}

impl Bare {
    pub(crate) async fn sqlite(file: &Path) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .statement_cache_capacity(512)
            .pragma("cache_size", "-16384")
            .pragma("wal_autocheckpoint", "4096")
            .disable_statement_logging();
        Self::Sqlite(options.connect().await.unwrap(), BTreeMap::new())
    }

    pub(crate) async fn postgres(url: &str) -> Self {
        let options: PgConnectOptions = url.parse().unwrap();
        let connecting = options.disable_statement_logging();
        Self::Postgres(connecting.connect().await.unwrap(), BTreeMap::new())
    }

    /// Reads all tables of a finished database.
    pub(crate) async fn read(&mut self) -> [Rows; 9] {
        let mut all = Vec::new();
        for table in &TABLES {
            all.push(match self {
                Self::Sqlite(c, _) => read_sqlite(c, table.name).await,
                Self::Postgres(c, _) => read_postgres(c, table.name).await,
            });
        }
        all.try_into().ok().unwrap()
    }

    /// Writes batches into a fresh database of the same schema. How long it took after the
    /// first `before` batches.
    pub(crate) async fn write(
        &mut self,
        tables: &[Rows; 9],
        batches: &[Vec<Transition>],
        before: usize,
    ) -> Duration {
        let mut begun = HashSet::new();
        let mut started = Instant::now();
        for (number, batch) in batches.iter().enumerate() {
            if number == before {
                started = Instant::now();
            }
            self.run("begin immediate", "begin").await;
            for (at, table) in TABLES.iter().enumerate() {
                let columns = &tables[at].columns;
                let rows: Vec<&Vec<Cell>> = batch.iter().flat_map(|one| &one.rows[at]).collect();
                if at == 0 {
                    let run = columns
                        .iter()
                        .position(|column| column == "run_id")
                        .unwrap();
                    let (new, old): (Vec<_>, Vec<_>) = rows
                        .into_iter()
                        .partition(|row| begun.insert(row[run].text().to_owned()));
                    self.put(at, Shape::Insert, &tables[at], &new).await;
                    self.put(at, Shape::Update, &tables[at], &old).await;
                } else {
                    let shape = if table.again {
                        Shape::Replace
                    } else {
                        Shape::Insert
                    };
                    self.put(at, shape, &tables[at], &rows).await;
                }
            }
            for (tenant, (sequence, hash)) in heads(&tables[8].columns, batch) {
                self.head(tenant, sequence, hash).await;
            }
            self.run("commit", "commit").await;
        }
        started.elapsed()
    }

    async fn run(&mut self, sqlite: &'static str, postgres: &'static str) {
        match self {
            Self::Sqlite(c, _) => sqlx::query(sqlite).execute(c).await.map(drop),
            Self::Postgres(c, _) => sqlx::raw_sql(postgres).execute(c).await.map(drop),
        }
        .unwrap();
    }

    async fn head(&mut self, tenant: String, sequence: i64, hash: String) {
        const TEXT: &str = "insert into workflow_audit_heads (tenant_id, sequence, hash)
            values ($1, $2, $3) on conflict (tenant_id)
            do update set sequence = excluded.sequence, hash = excluded.hash";
        match self {
            Self::Sqlite(c, _) => {
                let query = sqlx::query::<Sqlite>(TEXT)
                    .bind(tenant)
                    .bind(sequence)
                    .bind(hash);
                query.execute(c).await.map(drop)
            }
            Self::Postgres(c, _) => {
                let query = sqlx::query::<Postgres>(TEXT)
                    .bind(tenant)
                    .bind(sequence)
                    .bind(hash);
                query.execute(c).await.map(drop)
            }
        }
        .unwrap();
    }

    async fn put(&mut self, at: usize, shape: Shape, table: &Rows, rows: &[&Vec<Cell>]) {
        if rows.is_empty() {
            return;
        }
        match self {
            Self::Sqlite(c, texts) => {
                let (mut rest, mut size) = (rows, ROWS);
                while !rest.is_empty() {
                    let Some((part, later)) = rest.split_at_checked(size) else {
                        size /= 2;
                        continue;
                    };
                    rest = later;
                    let text = texts.entry((at, shape, size)).or_insert_with(|| {
                        let row = format!("({})", vec!["?"; table.columns.len()].join(", "));
                        let rows = format!("values {}", vec![row; size].join(", "));
                        text(at, shape, &table.columns, &rows).into()
                    });
                    let mut query = sqlx::query::<Sqlite>(AssertSqlSafe(Arc::clone(text)));
                    for cell in part.iter().copied().flatten() {
                        query = bind(query, cell);
                    }
                    query.execute(&mut *c).await.unwrap();
                }
            }
            Self::Postgres(c, texts) => {
                let text = texts.entry((at, shape)).or_insert_with(|| {
                    let arrays: Vec<_> = (table.kinds.iter().enumerate())
                        .map(|(at, kind)| format!("${}::{kind}[]", at + 1))
                        .collect();
                    let rows = format!("select * from unnest({})", arrays.join(", "));
                    text(at, shape, &table.columns, &rows).into()
                });
                let mut query = sqlx::query::<Postgres>(AssertSqlSafe(Arc::clone(text)));
                for (at, kind) in table.kinds.iter().enumerate() {
                    query = bind_column(query, kind, rows, at);
                }
                query.execute(&mut *c).await.unwrap();
            }
        }
    }
}

async fn read_sqlite(c: &mut SqliteConnection, table: &str) -> Rows {
    let query = format!("select name from pragma_table_info('{table}')");
    let query = sqlx::query_scalar(AssertSqlSafe(query));
    let columns: Vec<String> = query.fetch_all(&mut *c).await.unwrap();
    let query = format!("select {} from {table}", columns.join(", "));
    let found = sqlx::query(AssertSqlSafe(query))
        .fetch_all(c)
        .await
        .unwrap();
    let cell = |row: &sqlx::sqlite::SqliteRow, at: usize| {
        let raw = row.try_get_raw(at).unwrap();
        match raw.type_info().name() {
            _ if raw.is_null() => Cell::Null,
            "INTEGER" => Cell::Int(row.get(at)),
            "BLOB" => Cell::Bytes(row.get(at)),
            _ => Cell::Text(row.get(at)),
        }
    };
    let rows = found.iter().map(|row| {
        let columns = row.columns().iter();
        columns.map(|column| cell(row, column.ordinal())).collect()
    });
    let rows = rows.collect();
    Rows {
        columns,
        kinds: Vec::new(),
        rows,
    }
}

async fn read_postgres(c: &mut PgConnection, table: &str) -> Rows {
    let query = sqlx::query(
        "select column_name::text, data_type::text from information_schema.columns
         where table_name = $1 and is_generated = 'NEVER' order by ordinal_position",
    );
    let found = query.bind(table).fetch_all(&mut *c).await.unwrap();
    let columns: Vec<String> = found.iter().map(|row| row.get(0)).collect();
    let kinds: Vec<String> = found.iter().map(|row| row.get(1)).collect();
    let wanted: Vec<_> = columns
        .iter()
        .zip(&kinds)
        .map(|(name, kind)| match kind.as_str() {
            "text" | "bytea" => format!("\"{name}\""),
            _ => format!("\"{name}\"::bigint"),
        })
        .collect();
    let query = format!("select {} from {table}", wanted.join(", "));
    let found = sqlx::query(AssertSqlSafe(query))
        .fetch_all(c)
        .await
        .unwrap();
    let cell = |row: &sqlx::postgres::PgRow, at: usize| match kinds[at].as_str() {
        "text" => row
            .get::<Option<String>, _>(at)
            .map_or(Cell::Null, Cell::Text),
        "bytea" => row
            .get::<Option<Vec<u8>>, _>(at)
            .map_or(Cell::Null, Cell::Bytes),
        _ => row.get::<Option<i64>, _>(at).map_or(Cell::Null, Cell::Int),
    };
    let rows = found
        .iter()
        .map(|row| (0..columns.len()).map(|at| cell(row, at)).collect());
    let rows = rows.collect();
    Rows {
        columns,
        kinds,
        rows,
    }
}

fn text(at: usize, shape: Shape, columns: &[String], rows: &str) -> String {
    let table = &TABLES[at];
    let quoted: Vec<_> = columns
        .iter()
        .map(|column| format!("\"{column}\""))
        .collect();
    let insert = format!("insert into {} ({}) {rows}", table.name, quoted.join(", "));
    match shape {
        Shape::Insert => insert,
        Shape::Replace => {
            let changed: Vec<_> = columns
                .iter()
                .filter(|column| !table.key.contains(&column.as_str()))
                .map(|column| format!("\"{column}\" = excluded.\"{column}\""))
                .collect();
            let key = table.key.join(", ");
            // SQLite takes the `on` of a conflict after a select for that of a join.
            let sure = if rows.starts_with("select") {
                " where true"
            } else {
                ""
            };
            format!(
                "{insert}{sure} on conflict ({key}) do update set {}",
                changed.join(", ")
            )
        }
        Shape::Update => {
            let named: Vec<_> = columns.iter().map(|column| format!("v_{column}")).collect();
            let changed: Vec<_> = CHANGED
                .iter()
                .map(|column| format!("{column} = v_{column}"))
                .collect();
            format!(
                "with v ({}) as ({rows}) update workflow_runs set {} from v
                 where tenant_id = v_tenant_id and run_id = v_run_id",
                named.join(", "),
                changed.join(", ")
            )
        }
    }
}

type Query<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

fn bind<'q>(query: Query<'q>, cell: &Cell) -> Query<'q> {
    match cell {
        Cell::Null => query.bind(None::<i64>),
        Cell::Int(number) => query.bind(*number),
        Cell::Text(text) => query.bind(text.clone()),
        Cell::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

type PgQuery<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

fn bind_column<'q>(
    query: PgQuery<'q>,
    kind: &str,
    rows: &[&'q Vec<Cell>],
    at: usize,
) -> PgQuery<'q> {
    let cells = rows.iter().map(|row| &row[at]);
    match kind {
        "text" => {
            let texts = cells.map(|cell| match cell {
                Cell::Text(text) => Some(text.as_str()),
                _ => None,
            });
            query.bind(texts.collect::<Vec<_>>())
        }
        "bytea" => {
            let bytes = cells.map(|cell| match cell {
                Cell::Bytes(bytes) => Some(bytes.as_slice()),
                _ => None,
            });
            query.bind(bytes.collect::<Vec<_>>())
        }
        _ => {
            let numbers = cells.map(|cell| match cell {
                Cell::Int(number) => Some(*number),
                _ => None,
            });
            query.bind(numbers.collect::<Vec<_>>())
        }
    }
}
