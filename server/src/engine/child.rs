//! Children (run-machine.md N1, W8, A8, C2–C3): each is a durable row with its own key,
//! owned by a fence, executed in this process, settled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, NodeId, PayloadId, RunId, TenantId};
use sluicegate_core::mapping::text_of;
use sluicegate_core::plan::Task;
use sluicegate_core::run::{ChildKind, ChildOutcome, ChildResult, Cost, Usage};
use sluicegate_core::time::{Instant, Millis};
use sluicegate_core::value::Value;
use tokio::sync::watch;

use super::crash::{self, CrashPoint};
use super::{Engine, EngineError, Folded};
use crate::actions::{Invocation, Registered};
use crate::agents::{AgentDefinition, Question};
use crate::payload::Place;
use crate::store::{
    ChildCancelled, ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus, StoreError,
};

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
    Running(ChildId, watch::Receiver<Option<Ended>>),
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
    /// Another owner has it.
    Lost,
}

type Key = (TenantId, ChildId, u32);

/// The children that go on in this process.
#[derive(Default)]
pub(crate) struct Children {
    going_on: Mutex<HashMap<Key, GoingOn>>,
}

#[derive(Clone)]
struct GoingOn {
    fence: u64,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<Ended>>,
}

/// What a child does.
enum Work {
    Agent {
        definition: Box<AgentDefinition>,
        revision: u64,
        question: Question,
        decides: bool,
    },
    Action {
        registered: Arc<Registered>,
        call: Box<Invocation>,
    },
}

/// How the work of a child ended.
struct Done {
    outcome: ChildOutcome,
    usage: Option<Usage>,
    cost: Option<Cost>,
}

impl Children {
    fn find(&self, place: &Key) -> Option<GoingOn> {
        let going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        going_on.get(place).cloned()
    }

    fn put(&self, place: Key, child: GoingOn) {
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        going_on.insert(place, child);
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

impl Engine {
    /// Starts a child, or finds what became of it: an invocation executes at most once for
    /// each (key, attempt), and again only after its owner is gone (W8).
    pub(crate) async fn start_child(
        self: &Arc<Self>,
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
        self: &Arc<Self>,
        folded: &Folded,
        asked: &Asked,
        child_id: &ChildId,
    ) -> Result<Reached, EngineError> {
        let place = (folded.tenant.clone(), child_id.clone(), asked.attempt);
        if let Some(child) = self.children.find(&place)
            && child.fence == asked.fence
        {
            return Ok(Reached::Running(child_id.clone(), child.ended));
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
        let broken = |what: &str| EngineError::Broken(format!("node {}: {what}", asked.node_id));
        let index = folded.plan.find_node(asked.node_id.as_str());
        let index = index.ok_or_else(|| broken("is not of the plan"))?;
        let input = folded.envelopes.get(&asked.input);
        let input = input.ok_or_else(|| broken("its input is gone"))?;
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
        self: &Arc<Self>,
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
            ) => {
                let owned = Owned {
                    tenant: folded.tenant.clone(),
                    run_id: folded.run.run_id().clone(),
                    child_id: child_id.clone(),
                    attempt: asked.attempt,
                    fence: asked.fence,
                    deadline_at,
                    kind: asked.kind,
                };
                Reached::Running(child_id, self.execute(owned, work, cancelled))
            }
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

    /// Lets a child go on in this process.
    fn execute(
        self: &Arc<Self>,
        owned: Owned,
        work: Work,
        cancelled: bool,
    ) -> watch::Receiver<Option<Ended>> {
        let (stop, stopped) = watch::channel(cancelled);
        let (tell, ended) = watch::channel(None);
        let place = (owned.tenant.clone(), owned.child_id.clone(), owned.attempt);
        let child = GoingOn {
            fence: owned.fence,
            stop,
            ended: ended.clone(),
        };
        self.children.put(place.clone(), child);
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            let done = engine.carry_out(&owned, work, stopped).await;
            crash::at(CrashPoint::DuringChild);
            let end = engine.settle(&owned, done).await;
            engine.children.forget(&place, owned.fence);
            // Whoever waits for it is told last, when it is durable and forgotten here.
            tell.send_replace(Some(end));
        });
        ended
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

    /// Makes an end durable, once (W8).
    async fn settle(&self, owned: &Owned, done: Done) -> Ended {
        let result = ChildResult {
            outcome: done.outcome,
            terminal: true,
            usage: done.usage,
            cost: done.cost,
        };
        let settled = match self.close_end(owned, &result) {
            Ok(end) => {
                let settlement = ChildSettlement {
                    tenant: owned.tenant.clone(),
                    child_id: owned.child_id.clone(),
                    attempt: owned.attempt,
                    fence: owned.fence,
                    end,
                };
                self.store.settle_child(settlement).await
            }
            Err(error) => Err(StoreError::Corrupt(error.to_string())),
        };
        match settled {
            Ok(true) => Ended::Settled(result),
            Ok(false) => Ended::Lost,
            Err(error) => {
                tracing::error!(%error, child_id = %owned.child_id, "a child's end is not stored");
                Ended::Lost
            }
        }
    }

    fn close_end(&self, owned: &Owned, result: &ChildResult) -> Result<ChildEnd, EngineError> {
        let text = |text: &String| Value::String(text.clone());
        let (status, output, code, message) = match &result.outcome {
            ChildOutcome::Success { output } | ChildOutcome::Decision { answer: output } => (
                ChildStatus::Succeeded,
                Some(Value::clone(output)),
                None,
                None,
            ),
            ChildOutcome::Failure { code, message } => (
                ChildStatus::Failed,
                None,
                Some(code.clone()),
                Some(text(message)),
            ),
            ChildOutcome::Refused { code, message } => (
                ChildStatus::Refused,
                None,
                Some(code.clone()),
                Some(text(message)),
            ),
            ChildOutcome::Cancelled => (ChildStatus::Cancelled, None, None, None),
        };
        let seal = |name: &str, value: &Value| {
            let payload = format!("child/{}/{name}", owned.child_id);
            let place = Place {
                tenant: &owned.tenant,
                run_id: &owned.run_id,
                payload: &payload,
            };
            self.keys.seal(place, value)
        };
        Ok(ChildEnd {
            status,
            output: output.map(|value| seal("output", &value)).transpose()?,
            code,
            message: message.map(|value| seal("message", &value)).transpose()?,
            usage: result.usage,
            cost: result.cost.clone(),
        })
    }

    /// A stored end as the run machine takes it.
    pub(crate) fn open_end(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        child_id: &ChildId,
        end: ChildEnd,
        decides: bool,
    ) -> Result<ChildResult, EngineError> {
        let open = |name: &str, sealed: Option<(String, Vec<u8>)>| {
            let payload = format!("child/{child_id}/{name}");
            let place = Place {
                tenant,
                run_id,
                payload: &payload,
            };
            sealed
                .map(|(key_id, bytes)| self.keys.open_sealed(place, &key_id, &bytes))
                .transpose()
        };
        let code = end.code.unwrap_or_default();
        let message = open("message", end.message)?;
        let message = message.map_or_else(|| code.clone(), |text| text_of(&text).into_owned());
        let output = Arc::new(open("output", end.output)?.unwrap_or_default());
        let outcome = match end.status {
            ChildStatus::Succeeded if decides => ChildOutcome::Decision { answer: output },
            ChildStatus::Succeeded => ChildOutcome::Success { output },
            ChildStatus::Failed => ChildOutcome::Failure { code, message },
            ChildStatus::Refused => ChildOutcome::Refused { code, message },
            ChildStatus::Cancelled => ChildOutcome::Cancelled,
            ChildStatus::Running => {
                return Err(EngineError::Broken(
                    "a child that runs has no end".to_owned(),
                ));
            }
        };
        Ok(ChildResult {
            outcome,
            terminal: true,
            usage: end.usage,
            cost: end.cost,
        })
    }
}

/// A child that this process owns.
struct Owned {
    tenant: TenantId,
    run_id: RunId,
    child_id: ChildId,
    attempt: u32,
    fence: u64,
    deadline_at: Instant,
    kind: ChildKind,
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

impl Work {
    fn is_cooperative(&self) -> bool {
        use sluicegate_core::catalogue::Cancellation;
        match self {
            Self::Agent { .. } => true,
            Self::Action { registered, .. } => {
                registered.descriptor.cancellation == Cancellation::Cooperative
            }
        }
    }

    async fn run(self) -> Done {
        match self {
            Self::Agent {
                definition,
                revision,
                question,
                decides,
            } => {
                let reply = definition.ask(&question);
                if !reply.delay.is_zero() {
                    tokio::time::sleep(reply.delay).await;
                }
                let outcome = match reply.answer {
                    Ok(answer) if decides => ChildOutcome::Decision {
                        answer: Arc::new(answer),
                    },
                    Ok(output) => ChildOutcome::Success {
                        output: Arc::new(output),
                    },
                    Err((code, message)) => failure(code, message),
                };
                Done {
                    outcome,
                    usage: reply.usage,
                    cost: reply
                        .usage
                        .and_then(|usage| definition.price(revision, usage)),
                }
            }
            Self::Action { registered, call } => Done {
                outcome: match registered.invoke(*call).await {
                    Ok(output) => ChildOutcome::Success {
                        output: Arc::new(output),
                    },
                    Err(fault) => failure(fault.code, fault.message),
                },
                usage: None,
                cost: None,
            },
        }
    }
}

/// A code of the refused class is a refusal, any other a failure (A2).
fn failure(code: String, message: String) -> ChildOutcome {
    use sluicegate_core::code::Class;
    match Code::classify(&code, &[]) {
        Class::Refused => ChildOutcome::Refused { code, message },
        _ => ChildOutcome::Failure { code, message },
    }
}
