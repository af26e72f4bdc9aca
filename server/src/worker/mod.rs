//! Workers of one process (run-machine.md §7): they claim runs and drive each as far as it
//! goes. A notifier wakes them; a slow poll stands behind it.

mod child;
mod drive;
mod found;
mod lease;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::WorkerId;
use sluicegate_core::time::Millis;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::engine::Engine;

use drive::{Claimed, Drive};
use found::Found;

/// The shortest pause before work is looked for again.
const SOON: Duration = Duration::from_millis(20);

/// How workers work.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// What events call this process.
    pub worker_id: WorkerId,
    /// How many runs are driven at once.
    pub concurrency: usize,
    /// How long a lease lasts (W5).
    pub lease: Millis,
    /// How often it is renewed (W5).
    pub renew: Millis,
    /// How often to look for work that nobody told about.
    pub poll: Duration,
}

impl WorkerSettings {
    /// The defaults of W5, for a process of this name.
    #[must_use]
    pub fn named(worker_id: WorkerId) -> Self {
        Self {
            worker_id,
            concurrency: 16,
            lease: Millis(30_000),
            renew: Millis(10_000),
            poll: Duration::from_secs(2),
        }
    }
}

/// The workers of this process.
pub struct Workers {
    stop: watch::Sender<bool>,
    claiming: JoinHandle<()>,
    busy: Arc<Semaphore>,
    concurrency: usize,
}

impl Workers {
    /// Starts them.
    #[must_use]
    pub fn start(engine: Arc<Engine>, settings: WorkerSettings) -> Self {
        let (stop, stopping) = watch::channel(false);
        let busy = Arc::new(Semaphore::new(settings.concurrency));
        let concurrency = settings.concurrency;
        let claiming = tokio::spawn(claim_on(engine, settings, Arc::clone(&busy), stopping));
        Self {
            stop,
            claiming,
            busy,
            concurrency,
        }
    }

    /// Stops claiming, and waits until what is held is finished or handed back, for as long
    /// as `grace` (W7). `false`: something is still held; its lease will expire.
    pub async fn stop(self, grace: Duration) -> bool {
        self.stop.send_replace(true);
        let all = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        let handed_back = tokio::time::timeout(grace, self.busy.acquire_many(all)).await;
        self.claiming.abort();
        handed_back.is_ok()
    }
}

async fn claim_on(
    engine: Arc<Engine>,
    settings: WorkerSettings,
    busy: Arc<Semaphore>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut found = Found::default();
    let mut hurry = SOON;
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&busy).acquire_owned() => permit,
            () = stopped(&mut stopping) => return,
        };
        let Ok(permit) = permit else { return };
        if *stopping.borrow() {
            return;
        }
        let Some(due) = found.next(&engine).await else {
            drop(permit);
            rest(&engine, &settings, hurry, &mut stopping).await;
            // What stays due and is not to be had is asked about less and less often.
            hurry = (hurry * 2).min(settings.poll);
            continue;
        };
        hurry = SOON;
        let mut claiming = found.claiming(&due);
        let (engine, settings) = (Arc::clone(&engine), settings.clone());
        let stopping = stopping.clone();
        tokio::spawn(async move {
            match Drive::claim(&engine, due, &settings, stopping).await {
                Claimed::Held(held) => {
                    let (drive, folded, ear) = *held;
                    let again = drive.run(folded, ear).await;
                    drop(claiming);
                    if again {
                        // It may be due sooner than the next look.
                        engine.work.notify_one();
                    }
                }
                Claimed::Faulty => claiming.is_faulty(settings.lease),
                Claimed::Over | Claimed::Lost => {}
            }
            drop(permit);
        });
    }
}

/// Waits until there may be work.
async fn rest(
    engine: &Engine,
    settings: &WorkerSettings,
    hurry: Duration,
    stopping: &mut watch::Receiver<bool>,
) {
    let due = match engine.store.next_due().await {
        Ok(Some(due)) => Duration::from_millis(due.since(engine.clock.now()).0),
        Ok(None) | Err(_) => settings.poll,
    };
    // A run that is due and was not claimed is held by somebody: not asked about in a hurry.
    let pause = due.max(hurry).min(settings.poll);
    tokio::select! {
        () = engine.work.notified() => {}
        () = tokio::time::sleep(pause) => {}
        () = stopped(stopping) => {}
    }
}

/// Waits until the process stops; a process that ends without saying so stops too.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}
