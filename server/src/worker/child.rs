//! What a driver does about children (run-machine.md W4, W8, A8, C2–C3): start, observe,
//! give up, ask to stop.

use std::time::Duration;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, NodeId, PayloadId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Task;
use sluicegate_core::run::{
    CancelAnswer, CancelChild, ChildKind, ChildOutcome, ChildResult, Command, Observe, Start,
};
use sluicegate_core::time::Millis;
use tokio::sync::watch;
use tokio::time::Instant;

use super::drive::{Drive, Next};
use crate::engine::crash::{self, CrashPoint};
use crate::engine::{Asked, AtOnce, Ended, EngineError, Folded, Reached};
use crate::store::{ChildCancelled, ChildEnd, ChildSettlement, StoreError};
use crate::stream::Listener;

/// What a child that answers at once may take: its result is committed with its acceptance
/// (O4), and its id is durable as soon as it is known (W4).
const AT_ONCE: Duration = Duration::from_millis(20);

impl Drive {
    pub(super) async fn start(
        &mut self,
        folded: &mut Folded,
        start: Start,
    ) -> Result<Next, EngineError> {
        if let Some(message) = self.denied(folded, &start) {
            return self
                .refused(folded, start, Code::PermissionDenied, message)
                .await;
        }
        let asked = self.asked_for(&start)?;
        let begun = match self.begun.take() {
            Some(begun) if begun.is_of(&asked) => begun,
            _ => {
                self.engine.fill(folded).await?;
                crash::at(CrashPoint::BeforeChildStart);
                match self.engine.start_child(folded, &asked).await? {
                    Reached::Begun(begun) => *begun,
                    // A start finds no child that goes on: only an observation does.
                    Reached::Running(_) => return Ok(Next::HandBack),
                    Reached::Settled(child_id, result) => {
                        crash::at(CrashPoint::AfterChildEnd);
                        return self
                            .accepted(folded, start, child_id, Some((result, None)))
                            .await;
                    }
                    Reached::Refused(code, message) => {
                        return self.refused(folded, start, code, message).await;
                    }
                    Reached::Contradiction(what) => {
                        return self.contradict(folded, &asked, what).await;
                    }
                    Reached::ShutOut => return Ok(Next::Lost),
                }
            }
        };
        crash::at(CrashPoint::AfterChildStart);
        let child_id = begun.child_id().clone();
        let ended = match self.engine.execute(begun, AT_ONCE).await? {
            AtOnce::Ended(result, settlement) => Some((result, Some(*settlement))),
            AtOnce::GoesOn => None,
        };
        self.accepted(folded, start, child_id, ended).await
    }

    /// Commits that a child was accepted and, if it answered at once, how it ended.
    async fn accepted(
        &mut self,
        folded: &mut Folded,
        start: Start,
        child_id: ChildId,
        ended: Option<(ChildResult, Option<ChildSettlement>)>,
    ) -> Result<Next, EngineError> {
        let (result, settle) = ended.map_or((None, None), |(result, end)| (Some(result), end));
        let ended = result.clone();
        let accepted = Command::ChildAccepted {
            node_id: start.node_id,
            attempt: start.attempt,
            child_id,
            result,
        };
        let unsettled = settle.clone();
        let done = self.decide_with(folded, accepted, settle).await;
        self.keep_end(&done, unsettled, ended).await?;
        done
    }

    /// A child that answered at once ended, whatever became of the commit that was to say so:
    /// somebody else's decision came between, the lease was lost, or the database was away.
    async fn keep_end(
        &self,
        done: &Result<Next, EngineError>,
        settle: Option<ChildSettlement>,
        result: Option<ChildResult>,
    ) -> Result<(), EngineError> {
        let (Err(error), Some(settlement), Some(result)) = (done, settle, result) else {
            return Ok(());
        };
        match error {
            // The next look, right here, must find it.
            EngineError::Store(StoreError::Stale) => {
                self.engine.store.settle_child(settlement).await?;
            }
            EngineError::Store(_) => self.engine.keep_end(settlement, result),
            _ => {}
        }
        Ok(())
    }

    async fn refused(
        &mut self,
        folded: &mut Folded,
        start: Start,
        code: Code,
        message: String,
    ) -> Result<Next, EngineError> {
        let code = code.as_str().to_owned();
        let outcome = ChildOutcome::Refused { code, message };
        self.decide(folded, settled(start.node_id, start.attempt, outcome))
            .await
    }

    pub(super) fn asked_for(&self, start: &Start) -> Result<Asked, EngineError> {
        let (node_id, attempt, kind) = (&start.node_id, start.attempt, start.child_kind);
        let key = start.idempotency_key;
        let asked = self.asked(node_id, attempt, kind, key, start.input.clone())?;
        let timeout = start.timeout;
        Ok(Asked {
            timeout: timeout.unwrap_or(Millis(Limits::AGENT_TIMEOUT_DEFAULT_MS)),
            ..asked
        })
    }

    pub(super) fn denied(&self, folded: &Folded, start: &Start) -> Option<String> {
        let index = folded.plan.find_node(start.node_id.as_str())?;
        crate::engine::denied(&folded.plan.node(index).task, &folded.permissions)
    }

    pub(super) async fn observe(
        &mut self,
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
            Reached::Running(ended) => {
                match self.wait(folded, &asked, &observe, ended, ear).await? {
                    Ok(result) => result,
                    Err(next) => return Ok(next),
                }
            }
            Reached::Begun(begun) => match self.engine.execute(*begun, AT_ONCE).await? {
                AtOnce::GoesOn => return Ok(Next::GoOn),
                AtOnce::Ended(result, settlement) => {
                    return self
                        .observed(folded, observe, result, Some(*settlement))
                        .await;
                }
            },
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
        self.observed(folded, observe, result, None).await
    }

    /// Commits how a child ended that was accepted before.
    async fn observed(
        &mut self,
        folded: &mut Folded,
        observe: Observe,
        result: ChildResult,
        settle: Option<ChildSettlement>,
    ) -> Result<Next, EngineError> {
        let ended = Some(result.clone());
        let settled = Command::ChildSettled {
            node_id: observe.node_id,
            attempt: observe.attempt,
            result,
        };
        let unsettled = settle.clone();
        let done = self.decide_with(folded, settled, settle).await;
        self.keep_end(&done, unsettled, ended).await?;
        done
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
            .map(|at| Duration::from_millis(at.since(self.engine.clock.now()).0));
        // Without a deadline it is never deaf.
        let give_up = left.and_then(|left| Instant::now().checked_add(left));
        let deaf = async {
            match give_up {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut deaf = std::pin::pin!(deaf);
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                result = end_of(&mut ended) => return Ok(result),
                () = &mut deaf => {
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

    pub(super) async fn cancel(
        &mut self,
        folded: &mut Folded,
        cancel: CancelChild,
    ) -> Result<Next, EngineError> {
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
        end: ChildEnd,
    ) -> Result<ChildResult, EngineError> {
        let index = folded.plan.find_node(asked.node_id.as_str());
        let decides = index
            .is_some_and(|index| matches!(folded.plan.node(index).task, Task::AgentDecision(_)));
        let run_id = folded.run.run_id();
        self.engine
            .open_end(&folded.tenant, run_id, child_id, end, decides)
    }

    async fn contradict(
        &mut self,
        folded: &mut Folded,
        asked: &Asked,
        what: &str,
    ) -> Result<Next, EngineError> {
        let node_id = Some(asked.node_id.clone());
        self.inconsistent(folded, what.to_owned(), node_id).await
    }

    fn asked(
        &self,
        node_id: &NodeId,
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
}

fn settled(node_id: NodeId, attempt: u32, outcome: ChildOutcome) -> Command {
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
fn input_of(folded: &Folded, node_id: &NodeId) -> Result<PayloadId, EngineError> {
    let mut nodes = folded.plan.nodes().iter().zip(folded.run.nodes());
    let state = nodes.find(|(node, _)| node.id == *node_id);
    let attempt = state.and_then(|(_, state)| state.attempts.last());
    let input = attempt.and_then(|attempt| attempt.input.payload_id.clone());
    input.ok_or_else(|| EngineError::Broken("an attempt in flight has an input".to_owned()))
}

/// How a child ended, or what is next where this owner does not know.
async fn end_of(ended: &mut watch::Receiver<Option<Ended>>) -> Result<ChildResult, Next> {
    match ended.wait_for(Option::is_some).await {
        Ok(ended) => match &*ended {
            Some(Ended::Settled(result)) => Ok(result.clone()),
            Some(Ended::Overtaken) => Err(Next::GoOn),
            _ => Err(Next::Lost),
        },
        // The task that executed it is gone; somebody has to look again.
        Err(_) => Err(Next::Lost),
    }
}
