//! Driving one run (run-machine.md O4, W2–W4, A8, C2–C3): load, fold, ask what is owed, do
//! it, decide, commit, until the run waits or has ended.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::NodeId;
use sluicegate_core::run::{Command, Effect, Lease, Refusal, RunStatus, Wake, effects};
use tokio::sync::watch;

use super::WorkerSettings;
use super::lease::Keeper;
use crate::engine::{Begun, Engine, EngineError, Folded, Step};
use crate::payload::Unreadable;
use crate::store::{ChildChanges, ChildSettlement, Due, Guard, Held, StoreError};
use crate::stream::Listener;

/// What a database that failed may need before it is asked again.
const A_MOMENT: Duration = Duration::from_millis(200);
/// The first and the longest pause before a lease is handed back again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A held run.
pub(super) struct Drive {
    pub(super) engine: Arc<Engine>,
    pub(super) held: Held,
    pub(super) keeper: Keeper,
    pub(super) stopping: watch::Receiver<bool>,
    /// The child that the last commit started, not executed yet.
    pub(super) begun: Option<Begun>,
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

/// What became of a wish for a run.
pub(super) enum Claimed {
    /// It is held, and folded as the claim left it.
    Held(Box<(Drive, Folded, Listener)>),
    /// The claim was all that was left to do, or it cannot be folded (A9).
    Over,
    /// Somebody else has it, or it has moved on.
    Lost,
    /// It cannot be claimed; what is wrong stays so for a while.
    Faulty,
}

impl Drive {
    /// Takes the lease and records the claim in one commit (O4).
    pub(super) async fn claim(
        engine: &Arc<Engine>,
        due: Due,
        settings: &WorkerSettings,
        stopping: watch::Receiver<bool>,
    ) -> Claimed {
        let (tenant, run_id) = (due.tenant.clone(), due.run_id.clone());
        // Heard from before the run is loaded, so that no request falls between.
        let ear = engine.hub.listen(&run_id);
        match take(engine, due, settings).await {
            Ok((folded, _)) if folded.run.status().is_terminal() => Claimed::Over,
            Ok((folded, held)) => {
                let keeper = Keeper::new(engine, held.clone(), settings.lease, settings.renew);
                let drive = Self {
                    engine: Arc::clone(engine),
                    held,
                    keeper,
                    stopping,
                    begun: None,
                };
                Claimed::Held(Box::new((drive, folded, ear)))
            }
            // A claim that raced a request or another claim ends in peace.
            Err(
                EngineError::Machine(Refusal::Terminal)
                | EngineError::Store(StoreError::Stale | StoreError::Fenced),
            ) => Claimed::Lost,
            Err(EngineError::Parked(_)) => Claimed::Over,
            // The database is away: no fault of the run, which is claimed when it is back.
            Err(EngineError::Store(StoreError::Database(error))) => {
                tracing::warn!(%error, %tenant, %run_id, "a run is not claimed now");
                tokio::time::sleep(A_MOMENT).await;
                Claimed::Lost
            }
            Err(error) => {
                tracing::error!(%error, %tenant, %run_id, "a run cannot be claimed");
                Claimed::Faulty
            }
        }
    }

    /// Drives the run as far as it goes. Whether it may be due again soon.
    pub(super) async fn run(mut self, mut folded: Folded, mut ear: Listener) -> bool {
        let driven = self.drive(&mut folded, &mut ear).await;
        let (tenant, run_id) = (&self.held.tenant, &self.held.run_id);
        let back = match driven {
            Ok(Next::Over | Next::Lost | Next::GoOn) => false,
            Ok(Next::HandBack) => true,
            Err(EngineError::Store(StoreError::Fenced)) => false,
            // It is out of work already, and its lease with it.
            Err(EngineError::Parked(_)) => false,
            Err(EngineError::Store(error)) => {
                tracing::warn!(%error, %tenant, %run_id, "a run is handed back");
                tokio::time::sleep(A_MOMENT).await;
                true
            }
            Err(error) => {
                // The lease is kept until it expires, so that a fault of ours is not tried
                // again in a hurry; the claims that follow count towards the run's events.
                tracing::error!(%error, %tenant, %run_id, "a run cannot be driven");
                false
            }
        };
        if back {
            self.hand_back().await;
        }
        !folded.run.status().is_terminal()
    }

    /// Gives the lease back, however long the database is away: until then nobody could take
    /// the run, and after that nobody shall wait for the lease to end.
    async fn hand_back(&self) {
        let (run_id, mut pause) = (&self.held.run_id, PAUSE.0);
        let mut stopping = self.stopping.clone();
        while let Err(error) = self.engine.store.release(&self.held).await {
            tracing::warn!(%error, %run_id, "a lease was not handed back");
            if *stopping.borrow() || !matches!(error, StoreError::Database(_)) {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = super::stopped(&mut stopping) => {}
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn drive(
        &mut self,
        folded: &mut Folded,
        ear: &mut Listener,
    ) -> Result<Next, EngineError> {
        loop {
            if self.keeper.is_lost() {
                return Ok(Next::Lost);
            }
            if *self.stopping.borrow() {
                // A child that was begun with its intent stays so: the next owner executes it.
                return Ok(Next::HandBack);
            }
            let owed = effects(&folded.plan, &folded.run).into_iter().next();
            let done = match owed {
                None => return Ok(Next::Over),
                Some(Effect::Continue) => self.go_on(folded).await,
                Some(Effect::WakeAt(wake)) => self.wake(folded, wake).await,
                Some(Effect::Start(start)) => self.start(folded, start).await,
                Some(Effect::Observe(observe)) => self.observe(folded, observe, ear).await,
                Some(Effect::Cancel(cancel)) => self.cancel(folded, cancel).await,
            };
            match done {
                Ok(Next::GoOn) => {}
                Ok(next) => return Ok(next),
                // Somebody else's decision came first: load and decide again (W2).
                Err(
                    EngineError::Store(StoreError::Stale)
                    | EngineError::Machine(Refusal::Stale | Refusal::Terminal),
                ) => *folded = self.reload(folded).await?,
                Err(error) => return self.gone(folded, error).await,
            }
        }
    }

    /// A child that was begun with its intent, before somebody asked for the run to stop, ends
    /// as if it had been asked before it began.
    async fn call_off(&mut self) -> Result<(), EngineError> {
        match self.begun.take() {
            Some(begun) => self.engine.call_off(begun).await,
            None => Ok(()),
        }
    }

    async fn load(&self) -> Result<Folded, EngineError> {
        let (tenant, run_id) = (&self.held.tenant, &self.held.run_id);
        self.engine.fold(tenant, run_id).await
    }

    /// Loads again; a run that has not moved since would be decided the same way for ever.
    async fn reload(&mut self, before: &Folded) -> Result<Folded, EngineError> {
        self.call_off().await?;
        let folded = self.load().await?;
        if folded.run.sequence() == before.run.sequence() {
            let stuck = "the run machine refuses what it owes itself";
            return Err(EngineError::Broken(stuck.to_owned()));
        }
        Ok(folded)
    }

    async fn go_on(&mut self, folded: &mut Folded) -> Result<Next, EngineError> {
        self.decide(folded, Command::Continue).await
    }

    async fn wake(&mut self, folded: &mut Folded, wake: Wake) -> Result<Next, EngineError> {
        match wake {
            Wake::At(at) if at <= self.engine.clock.now() => self.go_on(folded).await,
            // The commit that scheduled it handed the lease back; a claim that found it too
            // early, for the run's end of time, has ended it.
            _ => Ok(Next::HandBack),
        }
    }

    /// What the run needs is missing or damaged: it ends, and nothing is guessed (A9). Any
    /// other error stays one.
    async fn gone(&mut self, folded: &mut Folded, error: EngineError) -> Result<Next, EngineError> {
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
        &mut self,
        folded: &mut Folded,
        message: String,
        node_id: Option<NodeId>,
    ) -> Result<Next, EngineError> {
        let command = Command::Inconsistent { message, node_id };
        let step = self.engine.decide(folded, command)?;
        self.commit(folded, step, None).await?;
        Ok(Next::Over)
    }

    pub(super) async fn decide(
        &mut self,
        folded: &mut Folded,
        command: Command,
    ) -> Result<Next, EngineError> {
        self.decide_with(folded, command, None).await
    }

    /// Decides and commits, with the end of a child that answered at once.
    pub(super) async fn decide_with(
        &mut self,
        folded: &mut Folded,
        command: Command,
        settle: Option<ChildSettlement>,
    ) -> Result<Next, EngineError> {
        self.engine.fill(folded).await?;
        let step = self.engine.decide(folded, command)?;
        self.commit(folded, step, settle).await?;
        Ok(
            if folded.run.status().is_terminal() || folded.run.status() == RunStatus::WaitingRetry {
                Next::Over
            } else {
                Next::GoOn
            },
        )
    }

    async fn commit(
        &mut self,
        folded: &mut Folded,
        step: Step,
        settle: Option<ChildSettlement>,
    ) -> Result<(), EngineError> {
        let intended = match effects(&folded.plan, &step.run).into_iter().next() {
            Some(Effect::Start(start)) => Some(start),
            _ => None,
        };
        let allowed = intended
            .as_ref()
            .filter(|start| self.denied(folded, start).is_none());
        let starts = match allowed {
            Some(start) => {
                let asked = self.asked_for(start)?;
                self.engine.intend(folded, &step, &asked).await?
            }
            None => None,
        };
        let (start, begun) = starts.unzip();
        let guard = Guard::Owner {
            token: self.held.token.clone(),
            fence: self.held.fence,
            sequence: folded.run.sequence(),
        };
        let by = (folded.actor.clone(), folded.origin.clone());
        let children = ChildChanges { settle, start };
        let started = self
            .engine
            .commit(folded, step, guard, by, children)
            .await?;
        self.begun = begun.filter(|_| started);
        Ok(())
    }
}

/// Loads a due run and commits its claim.
async fn take(
    engine: &Arc<Engine>,
    due: Due,
    settings: &WorkerSettings,
) -> Result<(Folded, Held), EngineError> {
    let mut folded = engine.fold(&due.tenant, &due.run_id).await?;
    match engine.fill(&mut folded).await {
        // The run begins; the first decision that reads the damage ends it.
        Ok(()) | Err(EngineError::Unreadable(Unreadable::Broken)) => {}
        Err(error) => return Err(error),
    }
    let fence = due.fence + 1;
    let claim = Command::Claim {
        worker_id: settings.worker_id.clone(),
        lease: Some(Lease {
            fence,
            expires_at: due.found_at.plus(settings.lease),
        }),
        over: due.over,
    };
    let first = folded.run.first_claim().is_none();
    let mut step = engine.decide(&folded, claim)?;
    if first && !step.run.status().is_terminal() {
        let (tenant, plan) = (&folded.tenant, &folded.plan);
        let obstacle = engine.obstacle(tenant, plan, &folded.permissions).await?;
        if let Some(obstacle) = obstacle {
            let failed = Command::PreflightFailed {
                code: obstacle.code,
                message: obstacle.message,
                node_id: Some(obstacle.node_id),
            };
            step = step.and(engine, &folded, failed)?;
        }
    }
    let held = Held {
        tenant: due.tenant,
        run_id: due.run_id,
        token: uuid::Uuid::new_v4().to_string(),
        fence,
    };
    let guard = Guard::Claim {
        worker_id: settings.worker_id.clone(),
        token: held.token.clone(),
        fence,
        found: due.token,
        lease_ms: settings.lease.0,
        sequence: folded.run.sequence(),
    };
    let by = (folded.actor.clone(), folded.origin.clone());
    let children = ChildChanges::default();
    engine
        .commit(&mut folded, step, guard, by, children)
        .await?;
    Ok((folded, held))
}
