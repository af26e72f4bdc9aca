//! The one writer (architecture.md "Rules"): every write passes this task, which gathers the
//! transitions that are ready at the same moment into one transaction. Each stands or falls
//! alone; none is answered before all are durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection, Transaction};
use tokio::sync::{mpsc, oneshot};

use sluicegate_core::time::Instant;

use super::bulk;
use super::fault;
use crate::clock::Clock;
use crate::engine::crash::{self, CrashPoint};
use crate::store::StoreError;
use crate::store::flat::Transition;
use crate::store::stood::Stood;

/// The most transitions of one transaction.
const GATHERED: usize = 128;
/// The most transitions that wait; a writer beyond waits for room.
const WAITING: usize = 1_024;

/// A transition's work, borrowed from the connection.
pub(super) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'c>>;
type Answer = Box<dyn FnOnce(Option<StoreError>) + Send>;
type Own = Box<
    dyn for<'c> FnOnce(
            &'c mut SqliteConnection,
        ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'c>>
        + Send,
>;

/// What waits to be written.
enum Job {
    /// A decision, written in the same few statements as the others.
    Decision(Box<Transition>, oneshot::Sender<Result<Stood, StoreError>>),
    /// Anything else, by itself.
    Own(Own),
}

/// What a transition did, and how to tell its caller once that is durable.
struct Outcome {
    stands: bool,
    answer: Answer,
}

/// The door to the writer.
#[derive(Clone)]
pub(super) struct Committer {
    jobs: mpsc::Sender<Job>,
    committed: Arc<AtomicU64>,
}

impl Committer {
    /// Starts the task; it ends with the last door, after the last waiting transition.
    pub(super) fn start(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        clock: Clock,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING);
        let committed = Arc::default();
        let link = Link {
            connection: Some(connection),
            options,
        };
        tokio::spawn(run(link, clock, queue, Arc::clone(&committed)));
        Self { jobs, committed }
    }

    /// How many transactions were committed.
    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Writes a decision. Once this returns `Ok`, it is durable. After
    /// [`StoreError::Database`] nobody knows whether it is: load and decide again.
    pub(super) async fn decide(&self, transition: Transition) -> Result<Stood, StoreError> {
        let (tell, told) = oneshot::channel();
        self.send(Job::Decision(Box::new(transition), tell)).await?;
        told.await.map_err(|_| gone())?
    }

    async fn send(&self, job: Job) -> Result<(), StoreError> {
        self.jobs.send(job).await.map_err(|_| gone())
    }

    /// Carries a transition out. Once this returns `Ok`, it is durable; after a refusal
    /// nothing of it is.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> Work<'c, T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let job: Own = Box::new(move |connection| {
            Box::pin(async move {
                let result = work(connection).await;
                Outcome {
                    stands: result.is_ok(),
                    answer: answer(tell, result),
                }
            })
        });
        self.send(Job::Own(job)).await?;
        told.await.map_err(|_| gone())?
    }
}

fn gone() -> StoreError {
    StoreError::Database("the writer has stopped".to_owned())
}

/// The writer's connection. One whose transaction failed is not used again: a full disk has
/// SQLite take the transaction back by itself, and nobody knows where the connection stands.
struct Link {
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
}

impl Link {
    async fn write(
        &mut self,
        now: Instant,
        jobs: Vec<Job>,
        answers: &mut Vec<Answer>,
    ) -> Result<(), StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(fault)?,
        };
        transact(&mut connection, now, jobs, answers).await?;
        self.connection = Some(connection);
        Ok(())
    }
}

async fn run(
    mut link: Link,
    clock: Clock,
    mut queue: mpsc::Receiver<Job>,
    committed: Arc<AtomicU64>,
) {
    let mut jobs = Vec::new();
    while queue.recv_many(&mut jobs, GATHERED).await > 0 {
        let mut answers = Vec::with_capacity(jobs.len());
        let jobs = std::mem::take(&mut jobs);
        let failed = link.write(clock.now(), jobs, &mut answers).await.err();
        match &failed {
            None => committed.fetch_add(1, Ordering::Relaxed),
            Some(error) => {
                tracing::error!(%error, "a transaction failed");
                0
            }
        };
        // Jobs that were not reached are dropped, which tells their callers.
        for answer in answers {
            answer(failed.clone());
        }
    }
    if let Some(connection) = link.connection
        && let Err(error) = connection.close().await
    {
        tracing::warn!(%error, "the database was not closed cleanly");
    }
}

async fn transact(
    connection: &mut SqliteConnection,
    now: Instant,
    jobs: Vec<Job>,
    answers: &mut Vec<Answer>,
) -> Result<(), StoreError> {
    let (mut decisions, mut told, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Decision(transition, tell) => {
                decisions.push(*transition);
                told.push(tell);
            }
            Job::Own(own) => others.push(own),
        }
    }
    let mut transaction = begin(connection).await?;
    let verdicts = match bulk::write(&mut transaction, &decisions, now).await {
        Ok(verdicts) => verdicts,
        Err(_) => {
            transaction.rollback().await.map_err(fault)?;
            transaction = begin(connection).await?;
            bulk::write_alone(&mut transaction, &decisions, now).await?
        }
    };
    for (verdict, tell) in verdicts.into_iter().zip(told) {
        answers.push(answer(tell, verdict));
    }
    for own in others {
        let mut savepoint = transaction.begin().await.map_err(fault)?;
        let outcome = own(&mut savepoint).await;
        answers.push(outcome.answer);
        if outcome.stands {
            savepoint.commit().await.map_err(fault)?;
        } else {
            savepoint.rollback().await.map_err(fault)?;
        }
    }
    crash::at(CrashPoint::BeforeDatabaseCommit);
    transaction.commit().await.map_err(fault)?;
    crash::at(CrashPoint::AfterDatabaseCommit);
    Ok(())
}

async fn begin(
    connection: &mut SqliteConnection,
) -> Result<Transaction<'_, sqlx::Sqlite>, StoreError> {
    connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(fault)
}

/// Tells a caller, once it is known whether the transaction is durable.
fn answer<T: Send + 'static>(
    tell: oneshot::Sender<Result<T, StoreError>>,
    result: Result<T, StoreError>,
) -> Answer {
    Box::new(move |failed| {
        // A caller that went away needs no answer.
        let _ = tell.send(match failed {
            // Even a refusal may have seen what was taken back.
            Some(error) => Err(error),
            None => result,
        });
    })
}
