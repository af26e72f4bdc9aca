//! Children that go on in this process (run-machine.md W8, A8): each is a task of its own
//! that ends by itself, by its deadline or by being asked to, and settles its row once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, RunId, TenantId};
use sluicegate_core::run::{ChildKind, ChildOutcome, ChildResult};
use sluicegate_core::time::Instant;
use tokio::sync::watch;

use super::work::{Done, Work};
use super::{Asked, Ended};
use crate::engine::crash::{self, CrashPoint};
use crate::engine::{Engine, EngineError};
use crate::store::{ChildSettlement, StoreError};

/// The first and the longest pause before an end is stored again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

type Key = (TenantId, ChildId, u32);

/// The children that go on in this process.
#[derive(Default)]
pub(crate) struct Children {
    going_on: Mutex<HashMap<Key, GoingOn>>,
}

#[derive(Clone)]
pub(super) struct GoingOn {
    pub(super) fence: u64,
    pub(super) stop: watch::Sender<bool>,
    pub(super) ended: watch::Receiver<Option<Ended>>,
}

impl Children {
    pub(super) fn find(&self, place: &Key) -> Option<GoingOn> {
        let going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        going_on.get(place).cloned()
    }

    fn put(&self, place: Key, child: GoingOn) {
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        // An older owner in this very process has lost it; its answer would not be stored.
        if let Some(older) = going_on.insert(place, child) {
            older.stop.send_replace(true);
        }
    }

    /// Forgets a child, unless a later owner in this process has taken its place.
    fn forget(&self, place: &Key, fence: u64) {
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        if going_on
            .get(place)
            .is_some_and(|child| child.fence == fence)
        {
            going_on.remove(place);
        }
    }
}

/// A child that is durable and this process' to execute.
pub(crate) struct Begun {
    pub(super) owned: Owned,
    pub(super) work: Work,
    /// Whether it was asked to stop already.
    pub(super) cancelled: bool,
}

impl Begun {
    pub(crate) fn child_id(&self) -> &ChildId {
        &self.owned.child_id
    }

    /// Whether this is an attempt of a run's node.
    pub(crate) fn is_of(&self, asked: &Asked) -> bool {
        self.owned.key == asked.key && self.owned.attempt == asked.attempt
    }
}

/// A child that this process owns.
pub(super) struct Owned {
    pub(super) tenant: TenantId,
    pub(super) run_id: RunId,
    pub(super) child_id: ChildId,
    pub(super) key: Hash,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    pub(super) deadline_at: Instant,
    pub(super) kind: ChildKind,
}

impl Owned {
    fn failure(&self, action: Code, agent: Code) -> ChildOutcome {
        let code = match self.kind {
            ChildKind::Action => action,
            ChildKind::Agent => agent,
        };
        ChildOutcome::Failure {
            code: code.as_str().to_owned(),
            message: code.sentence().to_owned(),
        }
    }
}

/// How far a child came at once.
pub(crate) enum AtOnce {
    /// It ended, and this is for its owner to make durable (O4).
    Ended(ChildResult, Box<ChildSettlement>),
    /// It goes on by itself.
    GoesOn,
}

impl Engine {
    /// Executes a child. One that ends within `patience` is given back, to be settled with
    /// its acceptance; one that does not goes on as a task of its own and settles itself.
    pub(crate) async fn execute(
        self: &Arc<Self>,
        begun: Begun,
        patience: Duration,
    ) -> Result<AtOnce, EngineError> {
        let Begun {
            owned,
            work,
            cancelled,
        } = begun;
        let (stop, stopped) = watch::channel(cancelled);
        let (tell, ended) = watch::channel(None);
        let place = (owned.tenant.clone(), owned.child_id.clone(), owned.attempt);
        let fence = owned.fence;
        let child = GoingOn { fence, stop, ended };
        self.children.put(place.clone(), child);
        let owned = Arc::new(owned);
        let mut working = Box::pin({
            let (engine, owned) = (Arc::clone(self), Arc::clone(&owned));
            async move { engine.carry_out(&owned, work, stopped).await }
        });
        if let Ok(done) = tokio::time::timeout(patience, &mut working).await {
            crash::at(CrashPoint::DuringChild);
            self.children.forget(&place, fence);
            let result = done.result();
            let settlement = self.settlement(&owned, &result)?;
            return Ok(AtOnce::Ended(result, Box::new(settlement)));
        }
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            let done = working.await;
            crash::at(CrashPoint::DuringChild);
            let end = engine.settle(&owned, done).await;
            engine.children.forget(&place, fence);
            // Whoever waits for it is told last, when it is durable and forgotten here.
            tell.send_replace(Some(end));
        });
        Ok(AtOnce::GoesOn)
    }

    /// Does the work until it ends, its deadline passes (A8) or it is asked to stop.
    async fn carry_out(
        &self,
        owned: &Owned,
        work: Work,
        mut stopped: watch::Receiver<bool>,
    ) -> Done {
        let left = Duration::from_millis(owned.deadline_at.since(self.clock.now()).0);
        let cooperative = work.is_cooperative();
        if cooperative && *stopped.borrow() {
            // Taken over to be stopped: it does not begin again.
            return Done {
                outcome: ChildOutcome::Cancelled,
                usage: None,
                cost: None,
            };
        }
        // A task of its own, so that a panic of a module stays there.
        let mut working = tokio::spawn(work.run());
        let asked = async {
            if !cooperative || stopped.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let (outcome, abort) = tokio::select! {
            biased;
            done = &mut working => match done {
                Ok(done) => return done,
                Err(_) => (owned.failure(Code::ActionFailed, Code::AgentUnavailable), false),
            },
            () = asked => (ChildOutcome::Cancelled, true),
            () = tokio::time::sleep(left) => {
                (owned.failure(Code::ActionTimeout, Code::AgentTimeout), true)
            }
        };
        if abort {
            working.abort();
        }
        Done {
            outcome,
            usage: None,
            cost: None,
        }
    }

    fn settlement(
        &self,
        owned: &Owned,
        result: &ChildResult,
    ) -> Result<ChildSettlement, EngineError> {
        Ok(ChildSettlement {
            tenant: owned.tenant.clone(),
            child_id: owned.child_id.clone(),
            attempt: owned.attempt,
            fence: owned.fence,
            end: self.close_end(owned, result)?,
        })
    }

    /// Makes an end durable, once (W8). While the database does not take it, it is kept: it may
    /// have been paid for.
    async fn settle(&self, owned: &Owned, done: Done) -> Ended {
        let result = done.result();
        match self.settlement(owned, &result) {
            Ok(settlement) => self.store_end(settlement, result).await,
            Err(error) => {
                tracing::error!(%error, child_id = %owned.child_id, "a child's end is not stored");
                Ended::Lost
            }
        }
    }

    /// Makes the end of a child durable that answered at once and whose commit failed, for as
    /// long as it takes: whoever looks for it next finds it, and does not execute it again.
    pub(crate) fn keep_end(self: &Arc<Self>, settlement: ChildSettlement, result: ChildResult) {
        let engine = Arc::clone(self);
        tokio::spawn(async move { engine.store_end(settlement, result).await });
    }

    async fn store_end(&self, settlement: ChildSettlement, result: ChildResult) -> Ended {
        let child_id = settlement.child_id.clone();
        let mut pause = PAUSE.0;
        loop {
            match self.store.settle_child(settlement.clone()).await {
                Ok(true) => return Ended::Settled(result),
                Ok(false) => return Ended::Overtaken,
                Err(StoreError::Database(error)) => {
                    tracing::warn!(%error, %child_id, "a child's end is kept until it is stored");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                Err(error) => {
                    tracing::error!(%error, %child_id, "a child's end is not stored");
                    return Ended::Lost;
                }
            }
        }
    }

    /// Ends a child that was begun and is not to be executed after all.
    pub(crate) async fn call_off(&self, begun: Begun) -> Result<(), EngineError> {
        let done = Done {
            outcome: ChildOutcome::Cancelled,
            usage: None,
            cost: None,
        };
        let settlement = self.settlement(&begun.owned, &done.result())?;
        self.store.settle_child(settlement).await?;
        Ok(())
    }
}
