//! The store on PostgreSQL (architecture.md "Rules"; server.md §1): any number of processes
//! share one database. Locks are always taken in the same order, the tenants' audit heads
//! last.

mod agent;
mod audit;
mod bulk;
mod child;
mod claim;
mod committer;
mod connect;
mod definition;
mod definition_read;
mod expenses;
mod identity;
mod migrate;
mod news;
mod publish;
mod read;
mod repair;
mod retention;
mod run;
mod verbs;
mod verify;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres, Transaction};

pub use self::connect::Address;

use self::committer::Committer;
use self::news::Teller;
use super::StoreError;
use super::column::{Columns, document, int, json, nat};
use super::turns::Turns;
use crate::clock::Clock;

/// Connections of requests and of workers that read.
const CONNECTIONS: u32 = 8;
/// How long a request waits for a connection before it is told that there is none.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it waits for its answer.
const ANSWER: Duration = Duration::from_secs(15);

/// A store in one database, shared with other processes.
#[derive(Clone)]
pub struct PostgresStore {
    options: PgConnectOptions,
    pool: PgPool,
    committer: Committer,
    teller: Teller,
    clock: Clock,
    turns: Arc<Turns>,
}

impl PostgresStore {
    /// Opens the database, applying pending migrations.
    ///
    /// # Errors
    /// [`StoreError::TooNew`], [`StoreError::Database`].
    pub async fn open(address: &Address, clock: Clock) -> Result<Self, StoreError> {
        let options = address.options();
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .connect_with(options.clone())
            .await
            .map_err(fault)?;
        let mut migrating = pool.begin().await.map_err(fault)?;
        migrate::migrate(&mut migrating).await?;
        migrating.commit().await.map_err(fault)?;
        let teller = Teller::start(options.clone());
        Ok(Self {
            committer: Committer::start(options.clone(), clock, teller.clone()),
            options,
            pool,
            teller,
            clock,
            turns: Arc::default(),
        })
    }

    /// A transaction that writes; without a commit nothing of it stays.
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.pool.begin().await.map_err(fault)
    }

    /// A transaction that reads all tables as they were at one moment.
    async fn view(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        let how = "begin isolation level repeatable read read only";
        self.pool.begin_with(how).await.map_err(fault)
    }
}

/// Gives a verb up when the database hangs: a caller is told so within seconds.
async fn timely<T>(verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = || StoreError::Database("the database does not answer".to_owned());
    tokio::time::timeout(ANSWER, verb)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// A fault of the database, in its words. Text that it cannot hold is the asker's fault.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn fault(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|fault| fault.code());
    match code.as_deref() {
        Some("22021") => StoreError::Nul,
        _ => StoreError::Database(error.to_string()),
    }
}
