//! Driving one run (run-machine.md O4, W2–W4, A8, C2–C3): load, fold, ask what is owed, do
//! it, decide, commit, until the run waits or has ended.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::NodeId;
use sluicegate_core::run::{Command, Effect, Lease, Refusal, RunStatus, Wake, effects};
use tokio::sync::watch;

use super::WorkerSettings;
use super::lease::Keeper;
use crate::engine::crash::{self, CrashPoint};
use crate::engine::{Engine, EngineError, Folded, Step};
use crate::payload::Unreadable;
use crate::store::{Claimed, Guard, StoreError};

/// A held run.
pub(super) struct Drive {
    pub(super) engine: Arc<Engine>,
    pub(super) held: Claimed,
    pub(super) keeper: Keeper,
    pub(super) stopping: watch::Receiver<bool>,
}

/// How far a step brought the run.
pub(super) enum Next {
    /// There may be more to do.
    GoOn,
    /// The run waits or has ended; the lease went back with the commit.
    Over,
    /// The lease is to be handed back.
    HandBack,
    /// The lease is not held any more.
    Lost,
}

impl Drive {
    pub(super) fn new(
        engine: &Arc<Engine>,
        held: Claimed,
        settings: &WorkerSettings,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let keeper = Keeper::new(engine, held.clone(), settings.lease, settings.renew);
        Self {
            engine: Arc::clone(engine),
            held,
            keeper,
            stopping,
        }
    }

    /// Drives the run as far as it goes.
    pub(super) async fn run(self) {
        crash::at(CrashPoint::AfterClaim);
        let (tenant, run_id) = (&self.held.tenant, &self.held.run_id);
        let back = match self.drive().await {
            Ok(Next::Over | Next::Lost | Next::GoOn) => false,
            Ok(Next::HandBack) => true,
            Err(EngineError::Store(StoreError::Fenced)) => false,
            // It is out of work already, and its lease with it.
            Err(EngineError::Parked(_)) => false,
            Err(EngineError::Store(error)) => {
                tracing::warn!(%error, %tenant, %run_id, "a run is handed back");
                // Not at once again: what failed may need a moment.
                tokio::time::sleep(Duration::from_millis(200)).await;
                true
            }
            Err(error) => {
                // The lease is kept until it expires, so that a fault of ours is not tried
                // again in a hurry; the claims that follow count towards the run's events.
                tracing::error!(%error, %tenant, %run_id, "a run cannot be driven");
                false
            }
        };
        if back && let Err(error) = self.engine.store.release(&self.held).await {
            tracing::warn!(%error, %run_id, "a lease was not handed back");
        }
    }

    async fn drive(&self) -> Result<Next, EngineError> {
        // Heard from before the run is loaded, so that no request falls between.
        let mut ear = self.engine.hub.listen(&self.held.run_id);
        let mut folded = self.load().await?;
        match self.claim(&mut folded).await {
            Ok(()) => {}
            // A claim that raced a request ends in peace.
            Err(EngineError::Machine(Refusal::Terminal)) => return Ok(Next::Over),
            Err(EngineError::Store(StoreError::Stale)) => return Ok(Next::HandBack),
            Err(error) => return self.gone(&mut folded, error).await,
        }
        loop {
            if self.keeper.is_lost() {
                return Ok(Next::Lost);
            }
            if *self.stopping.borrow() {
                return Ok(Next::HandBack);
            }
            let owed = effects(&folded.plan, &folded.run).into_iter().next();
            let done = match owed {
                None => return Ok(Next::Over),
                Some(Effect::Continue) => self.go_on(&mut folded).await,
                Some(Effect::WakeAt(wake)) => self.wake(&mut folded, wake).await,
                Some(Effect::Start(start)) => self.start(&mut folded, start).await,
                Some(Effect::Observe(observe)) => {
                    self.observe(&mut folded, observe, &mut ear).await
                }
                Some(Effect::Cancel(cancel)) => self.cancel(&mut folded, cancel).await,
            };
            match done {
                Ok(Next::GoOn) => {}
                Ok(next) => return Ok(next),
                // Somebody else's decision came first: load and decide again (W2).
                Err(
                    EngineError::Store(StoreError::Stale)
                    | EngineError::Machine(Refusal::Stale | Refusal::Terminal),
                ) => folded = self.reload(&folded).await?,
                Err(error) => return self.gone(&mut folded, error).await,
            }
        }
    }

    async fn load(&self) -> Result<Folded, EngineError> {
        let (tenant, run_id) = (&self.held.tenant, &self.held.run_id);
        self.engine.fold(tenant, run_id).await
    }

    /// Loads again; a run that has not moved since would be decided the same way for ever.
    async fn reload(&self, before: &Folded) -> Result<Folded, EngineError> {
        let folded = self.load().await?;
        if folded.run.sequence() == before.run.sequence() {
            let stuck = "the run machine refuses what it owes itself";
            return Err(EngineError::Broken(stuck.to_owned()));
        }
        Ok(folded)
    }

    async fn claim(&self, folded: &mut Folded) -> Result<(), EngineError> {
        match self.engine.fill(folded).await {
            // The run begins; the first decision that reads the damage ends it.
            Ok(()) | Err(EngineError::Unreadable(Unreadable::Broken)) => {}
            Err(error) => return Err(error),
        }
        let first = folded.run.first_claim().is_none();
        let claim = Command::Claim {
            worker_id: self.held.worker_id.clone(),
            lease: Some(Lease {
                fence: self.held.fence,
                expires_at: self.held.expires_at,
            }),
            over: self.held.over.clone(),
        };
        let mut step = self.engine.decide(folded, claim)?;
        if first && !step.run.status().is_terminal() {
            let (tenant, plan) = (&folded.tenant, &folded.plan);
            let obstacle = self
                .engine
                .obstacle(tenant, plan, &folded.permissions)
                .await?;
            if let Some(obstacle) = obstacle {
                let failed = Command::PreflightFailed {
                    code: obstacle.code,
                    message: obstacle.message,
                    node_id: Some(obstacle.node_id),
                };
                step = step.and(&self.engine, folded, failed)?;
            }
        }
        self.commit(folded, step).await
    }

    async fn go_on(&self, folded: &mut Folded) -> Result<Next, EngineError> {
        self.decide(folded, Command::Continue).await
    }

    async fn wake(&self, folded: &mut Folded, wake: Wake) -> Result<Next, EngineError> {
        match wake {
            Wake::At(at) if at <= self.engine.clock.now() => self.go_on(folded).await,
            // The commit that scheduled it handed the lease back; a claim that found it too
            // early, for the run's end of time, has ended it.
            _ => Ok(Next::HandBack),
        }
    }

    /// What the run needs is missing or damaged: it ends, and nothing is guessed (A9). Any
    /// other error stays one.
    async fn gone(&self, folded: &mut Folded, error: EngineError) -> Result<Next, EngineError> {
        let message = match error {
            EngineError::Machine(Refusal::EnvelopeMissing(id)) => {
                format!("the payload {id} is gone")
            }
            EngineError::Unreadable(Unreadable::Broken) => "a stored payload is damaged".to_owned(),
            other => return Err(other),
        };
        self.inconsistent(folded, message, None).await
    }

    /// Ends a run whose evidence contradicts itself (A9).
    pub(super) async fn inconsistent(
        &self,
        folded: &mut Folded,
        message: String,
        node_id: Option<NodeId>,
    ) -> Result<Next, EngineError> {
        let command = Command::Inconsistent { message, node_id };
        let step = self.engine.decide(folded, command)?;
        self.commit(folded, step).await?;
        Ok(Next::Over)
    }

    pub(super) async fn decide(
        &self,
        folded: &mut Folded,
        command: Command,
    ) -> Result<Next, EngineError> {
        self.engine.fill(folded).await?;
        let step = self.engine.decide(folded, command)?;
        self.commit(folded, step).await?;
        Ok(
            if folded.run.status().is_terminal() || folded.run.status() == RunStatus::WaitingRetry {
                Next::Over
            } else {
                Next::GoOn
            },
        )
    }

    async fn commit(&self, folded: &mut Folded, step: Step) -> Result<(), EngineError> {
        let ends = step.run.status().is_terminal();
        let intends = matches!(
            effects(&folded.plan, &step.run).first(),
            Some(Effect::Start(_))
        );
        if intends {
            crash::at(CrashPoint::BeforeIntent);
        }
        if ends {
            crash::at(CrashPoint::BeforeEnd);
        }
        let guard = Guard::Owner {
            token: self.held.token.clone(),
            fence: self.held.fence,
            sequence: folded.run.sequence(),
        };
        let by = (folded.actor.clone(), folded.origin.clone());
        self.engine.commit(folded, step, guard, by).await?;
        if intends {
            crash::at(CrashPoint::AfterIntent);
        }
        if ends {
            crash::at(CrashPoint::AfterEnd);
        }
        Ok(())
    }
}
