//! The one committer of a process (architecture.md "Rules"): it gathers the decisions that
//! are ready at the same moment into one transaction. None is answered before all are
//! durable, and none is answered as written whose commit the database did not confirm.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::bulk::{self, Verdict};
use super::news::Teller;
use super::{PATIENCE, fault};
use crate::clock::Clock;
use crate::engine::crash::{self, CrashPoint};
use crate::store::StoreError;
use crate::store::flat::{Begins, Transition};
use crate::store::stood::Stood;

/// The most decisions of one transaction.
const GATHERED: usize = 128;
/// The most decisions that wait; whoever comes beyond waits for room.
const WAITING: usize = 1_024;
/// How long a transaction may take before its connection is given up.
const SLOWEST: Duration = Duration::from_secs(12);

struct Job {
    transition: Transition,
    tell: oneshot::Sender<Verdict>,
}

/// The door to the committer.
#[derive(Clone)]
pub(super) struct Committer {
    jobs: mpsc::Sender<Job>,
    committed: Arc<AtomicU64>,
}

impl Committer {
    /// Starts the task; it ends with the last door, after the last waiting decision.
    pub(super) fn start(options: PgConnectOptions, clock: Clock, teller: Teller) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING);
        let link = Link {
            options,
            clock,
            connection: None,
            committed: Arc::default(),
        };
        let committed = Arc::clone(&link.committed);
        tokio::spawn(run(link, queue, teller));
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
        let gone = || StoreError::Database("the committer has stopped".to_owned());
        let job = Job { transition, tell };
        self.jobs.send(job).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

async fn run(mut link: Link, mut queue: mpsc::Receiver<Job>, teller: Teller) {
    let mut waiting: Vec<Job> = Vec::new();
    loop {
        if waiting.is_empty() && queue.recv_many(&mut waiting, GATHERED).await == 0 {
            break;
        }
        while waiting.len() < GATHERED
            && let Ok(job) = queue.try_recv()
        {
            waiting.push(job);
        }
        let (batch, later) = round(std::mem::take(&mut waiting));
        waiting = later;
        let transitions: Vec<&Transition> = batch.iter().map(|job| &job.transition).collect();
        let verdicts = link.write(&transitions).await;
        for (job, verdict) in batch.into_iter().zip(verdicts) {
            if let Ok(Stood::Written(_)) = &verdict {
                teller.wrote(&job.transition);
            }
            // A caller that went away needs no answer.
            let _ = job.tell.send(verdict);
        }
    }
    if let Some(connection) = link.connection {
        // Nothing hangs on it any more.
        let _ = connection.close().await;
    }
}

/// Those that may be written together, and those that wait for them: a run moves once a
/// transaction, and so does the key of a new one.
fn round(jobs: Vec<Job>) -> (Vec<Job>, Vec<Job>) {
    let mut seen = HashSet::new();
    jobs.into_iter().partition(|job| {
        let transition = &job.transition;
        let name = match &transition.begins {
            Begins::New {
                accepted: Some((key, _)),
                ..
            } => key,
            _ => transition.run_id.as_str(),
        };
        seen.insert((transition.tenant.clone(), name.to_owned()))
    })
}

/// Why a transaction was not carried out.
enum Failed {
    /// A statement was refused; the connection is well and nothing stays.
    Refused(StoreError),
    /// The connection broke before the commit was asked for: nothing stays.
    Lost(StoreError),
    /// The commit was asked for and not confirmed.
    Unknown(StoreError),
}

/// The committer's own connection, made anew when it breaks.
struct Link {
    options: PgConnectOptions,
    clock: Clock,
    connection: Option<PgConnection>,
    committed: Arc<AtomicU64>,
}

impl Link {
    async fn write(&mut self, batch: &[&Transition]) -> Vec<Verdict> {
        let mut again = true;
        loop {
            match self.transact(batch).await {
                Ok(verdicts) => return verdicts,
                // The connection may have been dead for long: the database was restarted.
                Err(Failed::Lost(_)) if again => again = false,
                // One of them is to blame, and the others shall not pay for it.
                Err(Failed::Refused(_)) if batch.len() > 1 => {
                    let mut verdicts = Vec::with_capacity(batch.len());
                    for transition in batch {
                        verdicts.extend(Box::pin(self.write(&[transition])).await);
                    }
                    return verdicts;
                }
                Err(Failed::Refused(error) | Failed::Lost(error) | Failed::Unknown(error)) => {
                    tracing::error!(%error, "a transaction failed");
                    return batch.iter().map(|_| Err(error.clone())).collect();
                }
            }
        }
    }

    async fn transact(&mut self, batch: &[&Transition]) -> Result<Vec<Verdict>, Failed> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.options).await.map_err(Failed::Lost)?,
        };
        let now = self.clock.now();
        let done = timeout(SLOWEST, transact(&mut connection, batch, now)).await;
        let late = || StoreError::Database("the database does not answer".to_owned());
        let done = done.unwrap_or_else(|_| Err(Failed::Unknown(late())));
        if done.is_ok() {
            self.committed.fetch_add(1, Ordering::Relaxed);
        }
        // A connection that broke, or of which nobody knows where it stands, is not used again.
        if matches!(done, Ok(_) | Err(Failed::Refused(_))) {
            self.connection = Some(connection);
        }
        done
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let late = || StoreError::Database("the database cannot be reached".to_owned());
    let connecting = timeout(PATIENCE, options.connect()).await;
    connecting.map_err(|_| late())?.map_err(fault)
}

async fn transact(
    connection: &mut PgConnection,
    batch: &[&Transition],
    now: sluicegate_core::time::Instant,
) -> Result<Vec<Verdict>, Failed> {
    let begun = connection.begin().await;
    let mut own = begun.map_err(|error| Failed::Lost(fault(error)))?;
    match bulk::write(&mut own, batch, now).await {
        Ok(verdicts) => {
            crash::at(CrashPoint::BeforeDatabaseCommit);
            let done = own.commit().await;
            done.map_err(|error| Failed::Unknown(fault(error)))?;
            crash::at(CrashPoint::AfterDatabaseCommit);
            Ok(verdicts)
        }
        Err(error) => match own.rollback().await {
            Ok(()) => Err(Failed::Refused(error)),
            Err(_) => Err(Failed::Lost(error)),
        },
    }
}
