//! The one writer (architecture.md "Rules"): every write passes this task, which gathers the
//! transitions that are ready at the same moment into one transaction. Each has a savepoint
//! of its own and stands or falls alone; none is answered before all are durable.

use std::future::Future;
use std::pin::Pin;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use super::fault;
use crate::store::StoreError;

/// The most transitions of one transaction.
const GATHERED: usize = 128;
/// The most transitions that wait; a writer beyond waits for room.
const WAITING: usize = 1_024;

/// A transition's work, borrowed from the connection.
pub(super) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'c>>;
type Answer = Box<dyn FnOnce(Option<StoreError>) + Send>;
type Job = Box<
    dyn for<'c> FnOnce(
            &'c mut SqliteConnection,
        ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'c>>
        + Send,
>;

/// What a transition did, and how to tell its caller once that is durable.
struct Outcome {
    stands: bool,
    answer: Answer,
}

/// The door to the writer.
#[derive(Clone)]
pub(super) struct Committer {
    jobs: mpsc::Sender<Job>,
}

impl Committer {
    /// Starts the task; it ends with the last door, after the last waiting transition.
    pub(super) fn start(connection: SqliteConnection) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING);
        tokio::spawn(run(connection, queue));
        Self { jobs }
    }

    /// Carries a transition out. Once this returns `Ok`, it is durable; after an error
    /// nothing of it is.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> Work<'c, T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            Box::pin(async move {
                let result = work(connection).await;
                Outcome {
                    stands: result.is_ok(),
                    answer: Box::new(move |failed| {
                        // A caller that went away needs no answer.
                        let _ = tell.send(match failed {
                            Some(error) if result.is_ok() => Err(error),
                            _ => result,
                        });
                    }),
                }
            })
        });
        let gone = || StoreError::Database("the writer has stopped".to_owned());
        self.jobs.send(job).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

async fn run(mut connection: SqliteConnection, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while queue.recv_many(&mut jobs, GATHERED).await > 0 {
        let mut answers = Vec::with_capacity(jobs.len());
        let failed = transact(&mut connection, &mut jobs, &mut answers)
            .await
            .err();
        if let Some(error) = &failed {
            tracing::error!(%error, "a transaction failed");
        }
        for answer in answers {
            answer(failed.clone());
        }
        // Jobs that were not reached are dropped, which tells their callers.
        jobs.clear();
    }
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "the database was not closed cleanly");
    }
}

async fn transact(
    connection: &mut SqliteConnection,
    jobs: &mut Vec<Job>,
    answers: &mut Vec<Answer>,
) -> Result<(), StoreError> {
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(fault)?;
    for job in jobs.drain(..) {
        let mut own = transaction.begin().await.map_err(fault)?;
        let outcome = job(&mut own).await;
        answers.push(outcome.answer);
        if outcome.stands {
            own.commit().await.map_err(fault)?;
        } else {
            own.rollback().await.map_err(fault)?;
        }
    }
    transaction.commit().await.map_err(fault)
}
