//! The store on SQLite (architecture.md "Rules"; server.md §1): WAL, `synchronous=FULL`,
//! foreign keys, incremental vacuum from creation; one writer and a small pool of readers.

mod agent;
mod audit;
mod child;
mod claim;
mod committer;
mod definition;
mod definition_read;
mod expenses;
mod folder;
mod identity;
mod migrate;
mod publish;
mod read;
mod run;
mod verbs;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Row, SqlitePool};

use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, Value};

pub use self::folder::{Folder, FolderFault};

use self::committer::{Committer, Work};
use super::StoreError;
use crate::clock::Clock;

/// Readers at the same time; SQLite's readers never wait for the writer.
const READERS: u32 = 4;

/// A store in one file.
#[derive(Clone)]
pub struct SqliteStore {
    readers: SqlitePool,
    committer: Committer,
    clock: Clock,
    /// Whose turn it was last (W9).
    turn: Arc<Mutex<Option<TenantId>>>,
}

impl SqliteStore {
    /// Opens the file, creating it and applying pending migrations.
    ///
    /// # Errors
    /// [`StoreError::TooNew`], [`StoreError::Database`].
    pub async fn open(file: &Path, clock: Clock) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .busy_timeout(Duration::from_secs(10))
            .disable_statement_logging();
        let mut writer = options
            .clone()
            .create_if_missing(true)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .connect()
            .await
            .map_err(fault)?;
        migrate::migrate(&mut writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options.read_only(true))
            .await
            .map_err(fault)?;
        Ok(Self {
            readers,
            committer: Committer::start(writer),
            clock,
            turn: Arc::default(),
        })
    }

    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut sqlx::SqliteConnection) -> Work<'c, T> + Send + 'static,
    {
        self.committer.write(work).await
    }
}

/// A fault of the database itself, in its words.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn fault(error: sqlx::Error) -> StoreError {
    StoreError::Database(error.to_string())
}

/// Integers of ours stay below 2^53 (U1), so they fit both ways.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn nat(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Any serializable thing as the JSON text of a column.
fn json<T: serde::Serialize>(thing: &T) -> Result<String, StoreError> {
    serde_json::to_string(thing).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A column's JSON text as the thing it says.
fn thing<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A column's JSON text as a normalised value (J1).
fn document(text: &str) -> Result<Value, StoreError> {
    value::read(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Reads columns by name.
trait Columns {
    fn text(&self, name: &'static str) -> Result<String, StoreError>;
    fn maybe_text(&self, name: &'static str) -> Result<Option<String>, StoreError>;
    fn number(&self, name: &'static str) -> Result<u64, StoreError>;
    fn maybe_number(&self, name: &'static str) -> Result<Option<u64>, StoreError>;
    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError>;

    fn instant(&self, name: &'static str) -> Result<Instant, StoreError> {
        self.number(name).map(Instant)
    }

    fn hash(&self, name: &'static str) -> Result<Hash, StoreError> {
        let text = self.text(name)?;
        Hash::parse(&text).ok_or_else(|| StoreError::Corrupt(format!("{name} is no hash")))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, name: &'static str) -> Result<T, StoreError> {
        thing(&self.text(name)?)
    }

    fn document(&self, name: &'static str) -> Result<Value, StoreError> {
        document(&self.text(name)?)
    }
}

impl Columns for SqliteRow {
    fn text(&self, name: &'static str) -> Result<String, StoreError> {
        self.try_get(name).map_err(fault)
    }

    fn maybe_text(&self, name: &'static str) -> Result<Option<String>, StoreError> {
        self.try_get(name).map_err(fault)
    }

    fn number(&self, name: &'static str) -> Result<u64, StoreError> {
        self.try_get::<i64, _>(name).map(nat).map_err(fault)
    }

    fn maybe_number(&self, name: &'static str) -> Result<Option<u64>, StoreError> {
        let number: Option<i64> = self.try_get(name).map_err(fault)?;
        Ok(number.map(nat))
    }

    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError> {
        self.try_get(name).map_err(fault)
    }
}
