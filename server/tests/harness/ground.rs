//! A database that houses are opened on, one after the other or several at once, and
//! processes that die on it.

use std::path::Path;
use std::sync::Arc;

use sluicegate_server::actions::Action;
use sluicegate_server::clock::Clock;
use sluicegate_server::worker::{WorkerSettings, Workers};
use tokio::runtime::Runtime;

use super::cluster::{self, Cluster};
use super::{House, raw};

/// A database of its own.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    /// Where the database is; none: in the folder.
    url: Option<String>,
}

impl Ground {
    /// SQLite in a folder.
    pub(crate) fn sqlite() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            url: None,
        }
    }

    /// PostgreSQL, in the cluster of this test binary; the keys are in a folder.
    pub(crate) async fn postgres() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            url: Some(Cluster::shared().database().await),
        }
    }

    /// A PostgreSQL database by its address.
    pub(crate) fn at(url: String) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            url: Some(url),
        }
    }

    /// Another database of the same kind.
    pub(crate) async fn another(&self) -> Self {
        match self.url {
            None => Self::sqlite(),
            Some(_) => Self::postgres().await,
        }
    }

    /// The address of the PostgreSQL database.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a house on it; what is there stays.
    pub(crate) async fn open(&self, more: &[Arc<dyn Action>]) -> House {
        open(self.url.as_deref(), self.folder(), more.to_vec()).await
    }

    /// The same, by a clock of its own.
    pub(crate) async fn open_at(&self, clock: Clock, more: &[Arc<dyn Action>]) -> House {
        let (folder, more) = (self.folder(), more.to_vec());
        match &self.url {
            None => House::open_at(folder, clock, more).await,
            Some(url) => House::open_shared_at(url, folder, Some(clock), more).await,
        }
    }

    /// Opens a house without more actions.
    pub(crate) async fn house(&self) -> House {
        self.open(&[]).await
    }

    /// Changes the database behind the store's back, as damage would: every rule that refuses
    /// a change is taken away first.
    pub(crate) async fn damage(&self, sql: &str) {
        match &self.url {
            None => {
                let mut raw = raw::open(self.folder()).await;
                raw::disarm(&mut raw).await;
                raw::run(&mut raw, sql).await;
            }
            Some(url) => {
                cluster::disarm(url).await;
                cluster::execute(url, sql).await;
            }
        }
    }

    /// The claims module takes no decision from now on: its own table says so.
    pub(crate) async fn busy_claims(&self) {
        let name = "trigger claims_are_busy before insert on expenses_decisions";
        self.execute(&match self.url {
            None => format!("create {name} begin select raise(abort, 'busy'); end"),
            Some(_) => format!(
                "create function claims_are_busy() returns trigger language plpgsql as
                     'begin raise exception ''busy''; end';
                 create {name} for each row execute function claims_are_busy()"
            ),
        })
        .await;
    }

    /// It takes decisions again.
    pub(crate) async fn idle_claims(&self) {
        self.execute(match self.url {
            None => "drop trigger claims_are_busy",
            Some(_) => "drop trigger claims_are_busy on expenses_decisions",
        })
        .await;
    }

    /// Runs statements behind the store's back.
    async fn execute(&self, sql: &str) {
        match &self.url {
            None => raw::run(&mut raw::open(self.folder()).await, sql).await,
            Some(url) => cluster::execute(url, sql).await,
        }
    }

    /// Starts workers that can be killed.
    pub(crate) async fn mortal(
        &self,
        settings: WorkerSettings,
        more: &[Arc<dyn Action>],
    ) -> Mortal {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (url, folder) = (self.url.clone(), self.folder().to_owned());
        let more = more.to_vec();
        let opened = runtime.spawn(async move {
            let house = open(url.as_deref(), &folder, more).await;
            let workers = Workers::start(Arc::clone(&house.engine), settings);
            (house, workers)
        });
        let (house, workers) = opened.await.unwrap();
        Mortal {
            runtime: Some(runtime),
            _house: house,
            workers: Some(workers),
        }
    }
}

async fn open(url: Option<&str>, folder: &Path, more: Vec<Arc<dyn Action>>) -> House {
    match url {
        None => House::open_with(folder, more).await,
        Some(url) => House::open_shared(url, folder, more).await,
    }
}

/// Workers in a runtime of their own, which can end between any two steps as a process that
/// is killed does: nothing is finished, nothing is handed back.
pub(crate) struct Mortal {
    runtime: Option<Runtime>,
    _house: House,
    workers: Option<Workers>,
}

impl Mortal {
    /// Ends everything at once.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // Workers that are dropped take it for a stop; the dead hear of nothing.
        std::mem::forget(self.workers.take());
    }
}
