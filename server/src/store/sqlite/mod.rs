//! The store on SQLite (architecture.md "Rules"; server.md §1): WAL, `synchronous=FULL`,
//! foreign keys, incremental vacuum from creation; one writer and a small pool of readers.

mod agent;
mod audit;
mod bulk;
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
mod repair;
mod retention;
mod run;
mod verbs;
mod verify;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqlitePool};

pub use self::folder::{Folder, FolderFault};

use self::committer::{Committer, Work};
use super::StoreError;
use super::column::{Columns, document, fault, int, json, nat};
use super::turns::Turns;
use crate::clock::Clock;

/// Readers at the same time; SQLite's readers never wait for the writer.
const READERS: u32 = 4;

/// A store in one file.
#[derive(Clone)]
pub struct SqliteStore {
    readers: SqlitePool,
    committer: Committer,
    clock: Clock,
    turns: Arc<Turns>,
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
            // Each statement of the committer for 64, 32 … 1 rows.
            .statement_cache_capacity(512)
            .row_buffer_size(512)
            .disable_statement_logging();
        let writing = options
            .clone()
            .create_if_missing(true)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            // What one gathered transaction touches stays in memory, and the log is carried over
            // into the file by the 16 MiB: rows of many tenants lie far apart.
            .pragma("cache_size", "-16384")
            .pragma("wal_autocheckpoint", "4096");
        let mut writer = writing.connect().await.map_err(fault)?;
        migrate::migrate(&mut writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options.read_only(true))
            .await
            .map_err(fault)?;
        Ok(Self {
            readers,
            committer: Committer::start(writer, writing, clock),
            clock,
            turns: Arc::default(),
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
