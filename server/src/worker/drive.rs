//! Driving one run (run-machine.md O4, W2–W4, A8, C2–C3): load, fold, ask what is owed, do
//! it, decide, commit, until the run waits or has ended.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, PayloadId};
use sluicegate_core::limits::Limits;
use sluicegate_core::run::{
    CancelAnswer, CancelChild, ChildKind, ChildOutcome, ChildResult, Command, Effect, Lease,
    Observe, Refusal, Start, Wake, effects,
};
use sluicegate_core::time::{Instant, Millis};
use tokio::sync::watch;

use super::WorkerSettings;
use super::lease::Keeper;
use crate::engine::crash::{self, CrashPoint};
use crate::engine::{Asked, Ended, Engine, EngineError, Folded, Reached, Step};
use crate::store::{ChildCancelled, Claimed, Guard, StoreError};
use crate::stream::Listener;

/// What a child that answers at once may take: its result is committed with its acceptance
/// (O4), and its id is durable as soon as it is known (W4).
const AT_ONCE: Duration = Duration::from_millis(20);

/// A held run.
pub(super) struct Drive {
    engine: Arc<Engine>,
    held: Claimed,
    keeper: Keeper,
    stopping: watch::Receiver<bool>,
}

/// How far a step brought the run.
enum Next {
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
            Err(error) => {
                tracing::error!(%error, %tenant, %run_id, "a run cannot be driven");
                // Not at once again: what failed may need a moment.
                tokio::time::sleep(Duration::from_millis(200)).await;
                true
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
        if let Some(next) = self.settle(self.claim(&mut folded).await)? {
            return Ok(next);
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
                Err(error) => return Err(error),
            }
        }
    }

    /// A claim that raced a request ends the drive in peace.
    fn settle(&self, claimed: Result<(), EngineError>) -> Result<Option<Next>, EngineError> {
        match claimed {
            Ok(()) => Ok(None),
            Err(EngineError::Machine(Refusal::Terminal)) => Ok(Some(Next::Over)),
            Err(EngineError::Store(StoreError::Stale)) => Ok(Some(Next::HandBack)),
            Err(error) => Err(error),
        }
    }

    async fn load(&self) -> Result<Folded, EngineError> {
        let folded = self.engine.fold(&self.held.tenant, &self.held.run_id);
        let mut folded = folded.await?;
        self.engine.fill(&mut folded).await?;
        Ok(folded)
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

    async fn decide(&self, folded: &mut Folded, command: Command) -> Result<Next, EngineError> {
        self.engine.fill(folded).await?;
        let step = self.engine.decide(folded, command)?;
        self.commit(folded, step).await?;
        Ok(
            if folded.run.status().is_terminal()
                || folded.run.status() == sluicegate_core::run::RunStatus::WaitingRetry
            {
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

    async fn start(&self, folded: &mut Folded, start: Start) -> Result<Next, EngineError> {
        if let Some(message) = self.denied(folded, &start) {
            let code = Code::PermissionDenied.as_str().to_owned();
            let outcome = ChildOutcome::Refused { code, message };
            let settled = settled(start.node_id, start.attempt, outcome);
            return self.decide(folded, settled).await;
        }
        self.engine.fill(folded).await?;
        let (key, timeout) = (start.idempotency_key, start.timeout);
        let asked = self.asked(
            &start.node_id,
            start.attempt,
            start.child_kind,
            key,
            start.input,
        );
        let asked = Asked {
            timeout: timeout.unwrap_or(Millis(Limits::AGENT_TIMEOUT_DEFAULT_MS)),
            ..asked?
        };
        let (child_id, result) = match self.engine.start_child(folded, &asked).await? {
            Reached::Running(child_id, mut ended) => {
                crash::at(CrashPoint::AfterChildStart);
                let at_once = tokio::time::timeout(AT_ONCE, end_of(&mut ended)).await;
                match at_once {
                    Ok(Some(result)) => (child_id, Some(result)),
                    // Another owner has it; the commit below will say so.
                    Ok(None) | Err(_) => (child_id, None),
                }
            }
            Reached::Settled(child_id, result) => (child_id, Some(result)),
            Reached::Refused(code, message) => {
                let code = code.as_str().to_owned();
                let outcome = ChildOutcome::Refused { code, message };
                let settled = settled(start.node_id, start.attempt, outcome);
                return self.decide(folded, settled).await;
            }
            Reached::Contradiction(what) => return self.contradict(folded, &asked, what).await,
            Reached::ShutOut => return Ok(Next::Lost),
        };
        if result.is_some() {
            crash::at(CrashPoint::AfterChildEnd);
        }
        let accepted = Command::ChildAccepted {
            node_id: start.node_id,
            attempt: start.attempt,
            child_id,
            result,
        };
        self.decide(folded, accepted).await
    }

    fn denied(&self, folded: &Folded, start: &Start) -> Option<String> {
        let index = folded.plan.find_node(start.node_id.as_str())?;
        crate::engine::denied(&folded.plan.node(index).task, &folded.permissions)
    }

    async fn observe(
        &self,
        folded: &mut Folded,
        observe: Observe,
        ear: &mut Listener,
    ) -> Result<Next, EngineError> {
        self.engine.fill(folded).await?;
        let input = input_of(folded, &observe.node_id);
        let (kind, key) = (observe.child_kind, observe.idempotency_key);
        let asked = self.asked(&observe.node_id, observe.attempt, kind, key, input?)?;
        let reached = self
            .engine
            .observe_child(folded, &asked, &observe.child_id)
            .await?;
        let result = match reached {
            Reached::Running(_, ended) => {
                match self.wait(folded, &asked, &observe, ended, ear).await? {
                    Ok(result) => result,
                    Err(next) => return Ok(next),
                }
            }
            Reached::Settled(_, result) => result,
            Reached::Refused(code, message) => ChildResult {
                outcome: ChildOutcome::Refused {
                    code: code.as_str().to_owned(),
                    message,
                },
                terminal: true,
                usage: None,
                cost: None,
            },
            Reached::Contradiction(what) => return self.contradict(folded, &asked, what).await,
            Reached::ShutOut => return Ok(Next::Lost),
        };
        crash::at(CrashPoint::AfterChildEnd);
        let settled = Command::ChildSettled {
            node_id: observe.node_id,
            attempt: observe.attempt,
            result,
        };
        self.decide(folded, settled).await
    }

    /// Waits for a child that goes on in this process, until it ends, it is deaf (A8), the
    /// run is to be looked at again, or this worker must let go.
    async fn wait(
        &self,
        folded: &Folded,
        asked: &Asked,
        observe: &Observe,
        mut ended: watch::Receiver<Option<Ended>>,
        ear: &mut Listener,
    ) -> Result<Result<ChildResult, Next>, EngineError> {
        let left = observe
            .give_up_at
            .map_or(Duration::MAX, |at| self.until(at));
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                result = end_of(&mut ended) => return Ok(result.ok_or(Next::Lost)),
                () = tokio::time::sleep(left) => {
                    return self.give_up(folded, asked).await.map(Ok);
                }
                () = self.keeper.lost() => return Ok(Err(Next::Lost)),
                () = super::stopped(&mut stopping) => return Ok(Err(Next::HandBack)),
                () = ear.moved() => {
                    let row = self.engine.store.run_row(&folded.tenant, folded.run.run_id());
                    if row.await?.row.last_sequence != folded.run.sequence() {
                        return Err(StoreError::Stale.into());
                    }
                }
            }
        }
    }

    /// A8: the child is cancelled by key; if it is not known to have ended, the timeout is
    /// permanent.
    async fn give_up(&self, folded: &Folded, asked: &Asked) -> Result<ChildResult, EngineError> {
        if let ChildCancelled::Ended { child_id, end } =
            self.engine.cancel_child(folded, asked).await?
        {
            return self.open(folded, asked, &child_id, end);
        }
        let code = match asked.kind {
            ChildKind::Agent => Code::AgentTimeout,
            ChildKind::Action => Code::ActionTimeout,
        };
        Ok(ChildResult {
            outcome: ChildOutcome::Failure {
                code: code.as_str().to_owned(),
                message: code.sentence().to_owned(),
            },
            terminal: false,
            usage: None,
            cost: None,
        })
    }

    async fn cancel(&self, folded: &mut Folded, cancel: CancelChild) -> Result<Next, EngineError> {
        let CancelChild {
            node_id,
            attempt,
            child_kind,
            child_id: known,
            idempotency_key,
            cooperative,
        } = cancel;
        // The input is not looked at; a cancellation needs none.
        let input = PayloadId::from("input");
        let asked = self.asked(&node_id, attempt, child_kind, idempotency_key, input)?;
        let answered =
            |child_id: Option<ChildId>, refusal: Option<CancelAnswer>| Command::CancelAnswered {
                node_id: node_id.clone(),
                attempt,
                child_id,
                refusal,
            };
        let grace = Duration::from_millis(Limits::CHILD_GRACE_MS);
        let asking = self.engine.cancel_child(folded, &asked);
        let command = match tokio::time::timeout(grace, asking).await {
            Err(_) => answered(known, Some(CancelAnswer::Timeout)),
            Ok(cancelled) => match cancelled? {
                ChildCancelled::Told { child_id } => {
                    let refusal = (!cooperative).then_some(CancelAnswer::NotSupported);
                    answered(Some(child_id), refusal)
                }
                ChildCancelled::Ended { child_id, end } if known.is_some() => {
                    Command::ChildSettled {
                        node_id: node_id.clone(),
                        attempt,
                        result: self.open(folded, &asked, &child_id, end)?,
                    }
                }
                ChildCancelled::Ended { child_id, .. } => {
                    answered(Some(child_id), Some(CancelAnswer::Rejected))
                }
                ChildCancelled::Barred if known.is_some() => {
                    let what = "the run names a child whose key is unknown";
                    return self.contradict(folded, &asked, what).await;
                }
                ChildCancelled::Barred => answered(None, None),
            },
        };
        self.decide(folded, command).await
    }

    fn open(
        &self,
        folded: &Folded,
        asked: &Asked,
        child_id: &ChildId,
        end: crate::store::ChildEnd,
    ) -> Result<ChildResult, EngineError> {
        use sluicegate_core::plan::Task;
        let index = folded.plan.find_node(asked.node_id.as_str());
        let decides = index
            .is_some_and(|index| matches!(folded.plan.node(index).task, Task::AgentDecision(_)));
        let run_id = folded.run.run_id();
        self.engine
            .open_end(&folded.tenant, run_id, child_id, end, decides)
    }

    async fn contradict(
        &self,
        folded: &mut Folded,
        asked: &Asked,
        what: &str,
    ) -> Result<Next, EngineError> {
        let command = Command::Inconsistent {
            message: what.to_owned(),
            node_id: Some(asked.node_id.clone()),
        };
        self.decide(folded, command).await
    }

    fn asked(
        &self,
        node_id: &sluicegate_core::ids::NodeId,
        attempt: u32,
        kind: ChildKind,
        key: Option<Hash>,
        input: PayloadId,
    ) -> Result<Asked, EngineError> {
        let key = key.ok_or_else(|| EngineError::Broken("a live child has a key".to_owned()))?;
        Ok(Asked {
            node_id: node_id.clone(),
            attempt,
            kind,
            key,
            input,
            timeout: Millis(Limits::AGENT_TIMEOUT_DEFAULT_MS),
            fence: self.held.fence,
        })
    }

    fn until(&self, at: Instant) -> Duration {
        Duration::from_millis(at.since(self.engine.clock.now()).0)
    }
}

fn settled(node_id: sluicegate_core::ids::NodeId, attempt: u32, outcome: ChildOutcome) -> Command {
    Command::ChildSettled {
        node_id,
        attempt,
        result: ChildResult {
            outcome,
            terminal: true,
            usage: None,
            cost: None,
        },
    }
}

/// The effective input of the attempt in flight.
fn input_of(
    folded: &Folded,
    node_id: &sluicegate_core::ids::NodeId,
) -> Result<PayloadId, EngineError> {
    let mut nodes = folded.plan.nodes().iter().zip(folded.run.nodes());
    let state = nodes.find(|(node, _)| node.id == *node_id);
    let attempt = state.and_then(|(_, state)| state.attempts.last());
    let input = attempt.and_then(|attempt| attempt.input.payload_id.clone());
    input.ok_or_else(|| EngineError::Broken("an attempt in flight has an input".to_owned()))
}

/// How a child ended; `None`: another owner has it.
async fn end_of(ended: &mut watch::Receiver<Option<Ended>>) -> Option<ChildResult> {
    match ended.wait_for(Option::is_some).await {
        Ok(ended) => match &*ended {
            Some(Ended::Settled(result)) => Some(result.clone()),
            _ => None,
        },
        // The task that executed it is gone; somebody has to look again.
        Err(_) => None,
    }
}
