//! A held lease (run-machine.md W1, W5): renewed while the run is driven; once it is lost,
//! the driver hears of it and writes nothing more.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::time::Millis;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::engine::crash::{self, CrashPoint};
use crate::store::{Held, StoreError};

/// Renews until it is dropped.
pub(super) struct Keeper {
    lost: watch::Receiver<bool>,
    renewing: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn new(engine: &Arc<Engine>, held: Held, lease: Millis, renew: Millis) -> Self {
        let (tell, lost) = watch::channel(false);
        let engine = Arc::clone(engine);
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(renew.0)).await;
                crash::at(CrashPoint::BeforeRenewal);
                match engine.store.renew(&held, lease.0).await {
                    Ok(_) => crash::at(CrashPoint::AfterRenewal),
                    Err(StoreError::Fenced) => {
                        tell.send_replace(true);
                        return;
                    }
                    // The next renewal tries again; an expired lease is lost only to a claim.
                    Err(error) => tracing::warn!(%error, "a lease was not renewed"),
                }
            }
        });
        Self { lost, renewing }
    }

    /// Whether the lease was lost.
    pub(super) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the lease is lost.
    pub(super) async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}
