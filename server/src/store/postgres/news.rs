//! What the processes on one database tell each other (architecture.md "Rules"; server.md
//! §5): that there is work, and which runs moved. It is a hint: it is sent after the
//! transaction that it is about, it may be lost, and a slow look stands behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, PgConnection};
use tokio::sync::Notify;

use sluicegate_core::ids::RunId;
use sluicegate_core::time::Instant;

use super::{PostgresStore, fault, nat};
use crate::store::flat::{Begins, Transition};
use crate::store::table::Cell;
use crate::store::{News, StoreError};

const CHANNEL: &str = "sluicegate";
/// How long what happens is gathered before it is told.
const GATHERING: Duration = Duration::from_millis(10);
/// A message is shorter than the 8,000 bytes that the database takes.
const LONGEST: usize = 7_000;
/// How long to wait before a broken connection is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How often the process's clock is compared with the database's.
const COMPARING: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Heap {
    work: bool,
    moved: HashMap<RunId, u64>,
}

/// Gathers what other processes want to know.
#[derive(Clone)]
pub(super) struct Teller {
    /// Which process says so: none listens to itself.
    name: Arc<str>,
    heap: Arc<Mutex<Heap>>,
    more: Arc<Notify>,
}

impl Teller {
    /// Starts the task that tells; it ends with the last teller.
    pub(super) fn start(options: PgConnectOptions) -> Self {
        let teller = Self {
            name: uuid::Uuid::new_v4().simple().to_string().into(),
            heap: Arc::default(),
            more: Arc::default(),
        };
        // What is told is worth no wait for a disk.
        let options = options.options([("synchronous_commit", "off")]);
        tokio::spawn(tell(
            teller.name.clone(),
            Arc::downgrade(&teller.heap),
            Arc::clone(&teller.more),
            options,
        ));
        teller
    }

    /// A decision is durable.
    pub(super) fn wrote(&self, transition: &Transition) {
        let sequence = match transition.projected.get(1) {
            Some(Cell::Int(sequence)) => nat(*sequence),
            _ => 0,
        };
        let new = matches!(
            transition.begins,
            Begins::New {
                accepted: Some(_),
                ..
            }
        );
        let handed_back = transition.hand_back && transition.wake_at == 0;
        let work = !transition.ended && (new || handed_back);
        self.put(|heap| {
            heap.work |= work;
            let known = heap.moved.entry(transition.run_id.clone()).or_default();
            *known = sequence.max(*known);
        });
    }

    /// There may be work to claim.
    pub(super) fn work(&self) {
        self.put(|heap| heap.work = true);
    }

    fn put(&self, change: impl FnOnce(&mut Heap)) {
        change(&mut self.heap.lock().unwrap_or_else(PoisonError::into_inner));
        self.more.notify_one();
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.more.notify_one();
    }
}

async fn tell(
    name: Arc<str>,
    heap: std::sync::Weak<Mutex<Heap>>,
    more: Arc<Notify>,
    options: PgConnectOptions,
) {
    let mut connection = None;
    loop {
        more.notified().await;
        tokio::time::sleep(GATHERING).await;
        let Some(heap) = heap.upgrade() else { return };
        let gathered = std::mem::take(&mut *heap.lock().unwrap_or_else(PoisonError::into_inner));
        drop(heap);
        for message in messages(&name, gathered) {
            // What cannot be told is found by the slow look.
            if let Err(error) = send(&mut connection, &options, &message).await {
                tracing::debug!(%error, "other processes were not told");
                connection = None;
                tokio::time::sleep(PAUSE).await;
                break;
            }
        }
    }
}

/// `<name> <work> <run>:<sequence> …`, in as many messages as it takes.
fn messages(name: &str, gathered: Heap) -> Vec<String> {
    let begin = |work: bool| format!("{name} {}", u8::from(work));
    let mut messages = Vec::new();
    let mut message = begin(gathered.work);
    for (run_id, sequence) in gathered.moved {
        let item = format!(" {run_id}:{sequence}");
        if message.len() + item.len() > LONGEST {
            messages.push(std::mem::replace(&mut message, begin(false)));
        }
        message.push_str(&item);
    }
    if message != begin(false) {
        messages.push(message);
    }
    messages
}

async fn send(
    connection: &mut Option<PgConnection>,
    options: &PgConnectOptions,
    message: &str,
) -> Result<(), sqlx::Error> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(options.connect().await?),
    };
    sqlx::query("select pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(message)
        .execute(open)
        .await?;
    Ok(())
}

/// What a message of another process says.
fn heard(own: &str, message: &str, told: &impl Fn(News)) {
    let mut words = message.split(' ');
    if words.next() == Some(own) {
        return;
    }
    if words.next() == Some("1") {
        told(News::Work);
    }
    for word in words {
        if let Some((run_id, sequence)) = word.rsplit_once(':')
            && let Ok(sequence) = sequence.parse()
        {
            let run_id = RunId::from(run_id);
            told(News::Moved { run_id, sequence });
        }
    }
}

impl PostgresStore {
    /// Hands on what other processes say, for as long as the process lives. A connection that
    /// breaks is made anew, and then something may have been missed.
    pub fn listen(&self, told: impl Fn(News) + Send + Sync + 'static) {
        let store = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(COMPARING).await;
                if let Err(error) = store.compare_clocks().await {
                    tracing::debug!(%error, "the clocks were not compared");
                }
            }
        });
        let store = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = store.hear(&told).await {
                    tracing::warn!(%error, "other processes cannot be heard; trying again");
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    async fn hear(&self, told: &(impl Fn(News) + Sync)) -> Result<(), StoreError> {
        // A pool of one, so that no reader's connection is kept.
        let pool = PgPoolOptions::new().max_connections(1);
        let pool = pool.connect_with(self.options.clone()).await;
        let mut listener = PgListener::connect_with(&pool.map_err(fault)?)
            .await
            .map_err(fault)?;
        listener.listen(CHANNEL).await.map_err(fault)?;
        told(News::Missed);
        loop {
            match listener.try_recv().await.map_err(fault)? {
                Some(message) => heard(&self.teller.name, message.payload(), told),
                None => told(News::Missed),
            }
        }
    }

    /// Sets the process's clock forward where it falls behind the database's, so that what is
    /// due there is due here (W5).
    async fn compare_clocks(&self) -> Result<(), StoreError> {
        let now: i64 = sqlx::query_scalar("select now_ms()")
            .fetch_one(&self.pool)
            .await
            .map_err(fault)?;
        self.clock.catch_up(Instant(nat(now)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_by_others_alone_and_fits_a_message() {
        let runs: HashMap<RunId, u64> = (0..500)
            .map(|n| (RunId::new(format!("01890f3e-0000-7000-8000-{n:012}")), n))
            .collect();
        let heap = Heap {
            work: true,
            moved: runs.clone(),
        };
        let messages = messages("a", heap);
        assert!(messages.len() > 1 && messages.iter().all(|message| message.len() < 8_000));
        let (work, moved) = (Mutex::new(0), Mutex::new(HashMap::new()));
        for message in &messages {
            heard("a", message, &|news| panic!("{news:?}"));
            heard("b", message, &|news| match news {
                News::Work => *work.lock().unwrap() += 1,
                News::Moved { run_id, sequence } => {
                    moved.lock().unwrap().insert(run_id, sequence);
                }
                News::Missed => panic!("nothing was missed"),
            });
        }
        assert_eq!(
            (work.into_inner().unwrap(), moved.into_inner().unwrap()),
            (1, runs)
        );
        assert!(super::messages("a", Heap::default()).is_empty());
    }
}
