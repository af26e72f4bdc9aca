//! A database that houses are opened on, one after the other or several at once, and
//! processes that die on it.

use std::path::Path;
use std::sync::Arc;

use sluicegate_server::actions::Action;
use sluicegate_server::worker::{WorkerSettings, Workers};
use tokio::runtime::Runtime;

use super::House;

/// A database of its own.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    /// SQLite in a folder.
    pub(crate) fn sqlite() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a house on it; what is there stays.
    pub(crate) async fn open(&self, more: &[Arc<dyn Action>]) -> House {
        House::open_with(self.folder(), more.to_vec()).await
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
        let (folder, more) = (self.folder().to_owned(), more.to_vec());
        let opened = runtime.spawn(async move {
            let house = House::open_with(&folder, more).await;
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
