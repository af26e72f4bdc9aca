//! Children (run-machine.md N1, W8, A8, C2–C3): each is a durable row with its own key,
//! owned by a fence, executed in this process, settled once.

mod end;
mod going_on;
mod work;

use std::sync::Arc;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, NodeId, PayloadId};
use sluicegate_core::mapping::text_of;
use sluicegate_core::plan::Task;
use sluicegate_core::run::{ChildKind, ChildResult, Refusal};
use sluicegate_core::time::{Instant, Millis};
use sluicegate_core::value::Value;
use tokio::sync::watch;

use super::{Engine, EngineError, Folded, Step};
use crate::actions::Invocation;
use crate::agents::Question;
use crate::store::{ChildCancelled, ChildIntent, ChildStanding, StoreError};

pub(crate) use going_on::{AtOnce, Begun, Children};

use going_on::Owned;
use work::Work;

/// An attempt of a child that a run asks about.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) node_id: NodeId,
    pub(crate) attempt: u32,
    pub(crate) kind: ChildKind,
    /// The child's key; every live child has one.
    pub(crate) key: Hash,
    /// The effective input.
    pub(crate) input: PayloadId,
    pub(crate) timeout: Millis,
    /// The owner's fence.
    pub(crate) fence: u64,
}

/// How a child stands for the one who asked.
pub(crate) enum Reached {
    /// It is going on in this process.
    Running(watch::Receiver<Option<Ended>>),
    /// It is this process' to execute.
    Begun(Box<Begun>),
    /// It has ended.
    Settled(ChildId, ChildResult),
    /// It was not allowed to start.
    Refused(Code, String),
    /// What is stored contradicts the run (A9).
    Contradiction(&'static str),
    /// A higher fence owns it.
    ShutOut,
}

/// How a child ended for its owner.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    /// Durably, in this way.
    Settled(ChildResult),
    /// Its row was settled before or belongs to another owner: it is to be looked at again.
    Overtaken,
    /// It cannot be stored.
    Lost,
}

impl Engine {
    /// The child that a commit may start with the intent it ends with, should its key be new:
    /// what to store and what to execute then. `None` where it takes a look first.
    pub(crate) async fn intend(
        &self,
        folded: &Folded,
        step: &Step,
        asked: &Asked,
    ) -> Result<Option<(ChildIntent, Begun)>, EngineError> {
        let input = step
            .value(&asked.input)
            .or_else(|| folded.envelopes.get(&asked.input));
        // A later attempt may find an earlier one's success (N1).
        let Some(input) = input.filter(|_| asked.attempt == 1) else {
            return Ok(None);
        };
        let Ok(work) = self.work_with(folded, asked, input).await? else {
            return Ok(None);
        };
        let intent = self.intent(folded, asked);
        let begun = Begun {
            owned: owned(folded, asked, intent.new_id.clone(), intent.deadline_at),
            work,
            cancelled: false,
        };
        Ok(Some((intent, begun)))
    }

    /// Starts a child, or finds what became of it: an invocation executes at most once for
    /// each (key, attempt), and again only after its owner is gone (W8).
    pub(crate) async fn start_child(
        &self,
        folded: &Folded,
        asked: &Asked,
    ) -> Result<Reached, EngineError> {
        let work = match self.work_of(folded, asked).await? {
            Ok(work) => work,
            Err((code, message)) => return Ok(Reached::Refused(code, message)),
        };
        let standing = self.store.start_child(self.intent(folded, asked)).await?;
        Ok(self.reach(folded, asked, standing, Some(work)))
    }

    /// Finds a known child again; goes on with it where its owner is gone.
    pub(crate) async fn observe_child(
        &self,
        folded: &Folded,
        asked: &Asked,
        child_id: &ChildId,
    ) -> Result<Reached, EngineError> {
        let place = (folded.tenant.clone(), child_id.clone(), asked.attempt);
        if let Some(child) = self.children.find(&place)
            && child.fence == asked.fence
        {
            return Ok(Reached::Running(child.ended));
        }
        let (tenant, attempt, fence) = (&folded.tenant, asked.attempt, asked.fence);
        let standing = self.store.observe_child(tenant, child_id, attempt, fence);
        let standing = standing.await?;
        let work = match &standing {
            ChildStanding::Execute { .. } => match self.work_of(folded, asked).await? {
                Ok(work) => Some(work),
                Err((code, message)) => return Ok(Reached::Refused(code, message)),
            },
            _ => None,
        };
        Ok(self.reach(folded, asked, standing, work))
    }

    /// Asks a child to stop, by key: what is unknown is kept as refused (C3).
    pub(crate) async fn cancel_child(
        &self,
        folded: &Folded,
        asked: &Asked,
    ) -> Result<ChildCancelled, EngineError> {
        let cancelled = self.store.cancel_child(self.intent(folded, asked)).await?;
        if let ChildCancelled::Told { child_id } = &cancelled {
            let place = (folded.tenant.clone(), child_id.clone(), asked.attempt);
            if let Some(child) = self.children.find(&place) {
                child.stop.send_replace(true);
            }
        }
        Ok(cancelled)
    }

    fn intent(&self, folded: &Folded, asked: &Asked) -> ChildIntent {
        let node = folded.plan.find_node(asked.node_id.as_str());
        let target = node.map(|index| match &folded.plan.node(index).task {
            Task::Agent(task) | Task::AgentDecision(task) => {
                format!("{}@{}", task.agent_id, task.revision)
            }
            Task::Action(task) => format!("{}@{}", task.action_id, task.contract_version),
            _ => String::new(),
        });
        ChildIntent {
            tenant: folded.tenant.clone(),
            run_id: folded.run.run_id().clone(),
            node_id: asked.node_id.clone(),
            kind: asked.kind,
            target: target.unwrap_or_default(),
            key: asked.key,
            attempt: asked.attempt,
            fence: asked.fence,
            new_id: ChildId::new(uuid::Uuid::now_v7().to_string()),
            deadline_at: self.clock.now().plus(asked.timeout),
        }
    }

    /// What the node's child does with its input, or why it may not.
    async fn work_of(
        &self,
        folded: &Folded,
        asked: &Asked,
    ) -> Result<Result<Work, (Code, String)>, EngineError> {
        let input = folded.envelopes.get(&asked.input);
        let gone = || Refusal::EnvelopeMissing(asked.input.clone());
        self.work_with(folded, asked, input.ok_or_else(gone)?).await
    }

    async fn work_with(
        &self,
        folded: &Folded,
        asked: &Asked,
        input: &Arc<Value>,
    ) -> Result<Result<Work, (Code, String)>, EngineError> {
        let broken = |what: &str| EngineError::Broken(format!("node {}: {what}", asked.node_id));
        let index = folded.plan.find_node(asked.node_id.as_str());
        let index = index.ok_or_else(|| broken("is not of the plan"))?;
        let task = &folded.plan.node(index).task;
        let missing = |code: Code| Ok(Err((code, code.sentence().to_owned())));
        match task {
            Task::Agent(agent) | Task::AgentDecision(agent) => {
                let (id, revision) = (&agent.agent_id, agent.revision);
                let found = match self.store.agent(&folded.tenant, id, revision).await {
                    Ok(found) => found,
                    Err(StoreError::NotFound) => return missing(Code::AgentRevisionMissing),
                    Err(error) => return Err(error.into()),
                };
                Ok(Ok(Work::Agent {
                    definition: Box::new(found.definition),
                    revision,
                    question: Question {
                        input: text_of(input).into_owned(),
                        attempt: asked.attempt,
                    },
                    decides: matches!(task, Task::AgentDecision(_)),
                }))
            }
            Task::Action(action) => {
                let found = self
                    .actions
                    .find(&action.action_id, action.contract_version);
                let Some(registered) = found else {
                    return missing(Code::ActionVersionMissing);
                };
                Ok(Ok(Work::Action {
                    registered: Arc::clone(registered),
                    call: Box::new(Invocation {
                        tenant: folded.tenant.clone(),
                        actor: folded.actor.clone(),
                        run_id: folded.run.run_id().clone(),
                        idempotency_key: asked.key,
                        input: Value::clone(input),
                    }),
                }))
            }
            _ => Err(broken("has no child")),
        }
    }

    fn reach(
        &self,
        folded: &Folded,
        asked: &Asked,
        standing: ChildStanding,
        work: Option<Work>,
    ) -> Reached {
        match (standing, work) {
            (
                ChildStanding::Execute {
                    child_id,
                    deadline_at,
                    cancelled,
                    ..
                },
                Some(work),
            ) => Reached::Begun(Box::new(Begun {
                owned: owned(folded, asked, child_id, deadline_at),
                work,
                cancelled,
            })),
            (ChildStanding::Execute { .. }, None) => {
                Reached::Contradiction("a child goes on without work")
            }
            (ChildStanding::Settled { child_id, end }, _) => {
                let decides = folded
                    .plan
                    .find_node(asked.node_id.as_str())
                    .is_some_and(|i| matches!(folded.plan.node(i).task, Task::AgentDecision(_)));
                let run_id = folded.run.run_id();
                match self.open_end(&folded.tenant, run_id, &child_id, end, decides) {
                    Ok(result) => Reached::Settled(child_id, result),
                    Err(error) => {
                        tracing::error!(%error, %child_id, "a child's end cannot be read");
                        Reached::Contradiction("a child's stored end cannot be read")
                    }
                }
            }
            (ChildStanding::Barred, _) => {
                Reached::Contradiction("the child's key is refused, but the run is not cancelled")
            }
            (ChildStanding::ShutOut, _) => Reached::ShutOut,
            (ChildStanding::Unknown, _) => {
                Reached::Contradiction("the run names a child that does not exist")
            }
        }
    }
}

fn owned(folded: &Folded, asked: &Asked, child_id: ChildId, deadline_at: Instant) -> Owned {
    Owned {
        tenant: folded.tenant.clone(),
        run_id: folded.run.run_id().clone(),
        child_id,
        key: asked.key,
        attempt: asked.attempt,
        fence: asked.fence,
        deadline_at,
        kind: asked.kind,
    }
}
