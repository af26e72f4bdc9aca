//! The engine (architecture.md; run-machine.md §§1, 6–8): it loads, folds, asks core what
//! is owed or decided, and commits. It decides nothing itself; what it adds is the world:
//! storage, encryption, children and the time.

mod audit;
mod cancel;
mod child;
pub mod crash;
mod enqueue;
mod error;
mod fold;
mod plans;
mod preflight;
pub mod repair;
mod result;
mod retire;
mod simulate;

use std::sync::Arc;

use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::ids::TenantId;
use tokio::sync::Notify;

use crate::actions::Registry;
use crate::clock::Clock;
use crate::payload::Keys;
use crate::store::{News, Store};
use crate::stream::Hub;

pub use enqueue::Enqueue;
pub use error::EngineError;
pub use simulate::{Simulate, Subject};

pub(crate) use child::{Asked, AtOnce, Begun, Children, Ended, Reached};
pub(crate) use fold::{Folded, Step};
pub(crate) use preflight::denied;

/// What an engine works with.
pub struct Parts {
    /// Storage.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Clock,
    /// The keys of payloads.
    pub keys: Keys,
    /// Who is told that a run moved.
    pub hub: Hub,
    /// The actions of this process.
    pub actions: Registry,
}

/// One process' engine: requests and workers share it.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) keys: Keys,
    pub(crate) hub: Hub,
    pub(crate) actions: Registry,
    pub(crate) children: Children,
    /// Says that there may be work to claim.
    pub(crate) work: Notify,
    plans: plans::Plans,
}

impl Engine {
    /// An engine without workers; [`crate::worker::Workers`] lets it run.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            store: parts.store,
            clock: parts.clock,
            keys: parts.keys,
            hub: parts.hub,
            actions: parts.actions,
            children: Children::default(),
            work: Notify::new(),
            plans: plans::Plans::default(),
        })
    }

    /// Hands on what another process on the same database did.
    pub fn hear(&self, news: News) {
        match news {
            News::Work => self.work.notify_one(),
            News::Moved { run_id, sequence } => self.hub.tell(&run_id, sequence),
            News::Missed => {
                self.work.notify_one();
                self.hub.tell_all();
            }
        }
    }

    /// Everything that a graph of the tenant may pin: every agent revision and every
    /// registered action.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn catalogue(&self, tenant: &TenantId) -> Result<Catalogue, EngineError> {
        let agents = self.store.agents(tenant).await?;
        let agents = agents
            .iter()
            .map(|agent| agent.definition.row(agent.revision, agent.status))
            .collect();
        Ok(Catalogue {
            agents,
            actions: self.actions.descriptors(),
            permissions: None,
        })
    }
}
