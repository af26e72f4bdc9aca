//! Enqueue (run-machine.md N2–N4, A10; seed A "Public execution capability"): the run is
//! durable before the answer.

use std::sync::Arc;

use sluicegate_core::api::RunAccepted;
use sluicegate_core::audit::Subject;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Hash, Permission, RunId, WorkflowKey};
use sluicegate_core::limits::Limits;
use sluicegate_core::run::{
    Command, Envelopes, Mode, Queue, Refusal, Run, RunStatus, WorkflowReference, permission_digest,
};
use sluicegate_core::value::{self, Value};

use super::crash::{self, CrashPoint};
use super::{Engine, EngineError, Folded};
use crate::actions;
use crate::store::{
    Accepted, AuditDraft, By, EnqueueOutcome, Guard, NewRun, RunReference, WorkflowName,
};

/// How often a workflow may be published anew while a run of it is being accepted.
const MOVES: u32 = 8;

/// A request for a live run of a published workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueue {
    /// Which workflow; always its published revision.
    pub workflow_key: WorkflowKey,
    /// The input, as it was read (J1).
    pub input: Value,
    /// The same key means the same run.
    pub idempotency_key: String,
}

impl Engine {
    /// Accepts a run, or gives the one that the key stands for.
    ///
    /// # Errors
    /// `WORKFLOW_IDEMPOTENCY_CONFLICT`, `WORKFLOW_NOT_FOUND`, `WORKFLOW_NOT_PUBLISHED`,
    /// `WORKFLOW_ARCHIVED`, `WORKFLOW_INPUT_INVALID`, `WORKFLOW_LIMIT_EXCEEDED`, and the codes
    /// of a preflight (A10). Inside an action: `action.reentrant` (N4).
    pub async fn enqueue(
        &self,
        by: &By,
        permissions: &[Permission],
        request: Enqueue,
    ) -> Result<RunAccepted, EngineError> {
        if actions::inside() {
            let code = Code::ActionReentrant;
            return Err(EngineError::refused(code, code.sentence()));
        }
        let request = Request {
            input_hash: value::hash(&request.input),
            input: Arc::new(request.input),
            workflow_key: request.workflow_key,
            idempotency_key: request.idempotency_key,
        };
        let key = &request.idempotency_key;
        if let Some(first) = self.store.accepted(&by.tenant, key).await? {
            return request.same_as(&first);
        }
        for _ in 0..MOVES {
            let run = self.prepare(by, permissions, &request).await?;
            let (run_id, reference) = (run.first.run_id.clone(), run.reference.clone());
            crash::at(CrashPoint::BeforeEnqueue);
            match self.store.enqueue(run).await? {
                EnqueueOutcome::Existing(first) => return request.same_as(&first),
                EnqueueOutcome::Moved => {}
                EnqueueOutcome::Created => {
                    crash::at(CrashPoint::AfterEnqueue);
                    self.hub.tell(&run_id, 1);
                    self.work.notify_one();
                    return Ok(RunAccepted {
                        run_id,
                        workflow_id: reference.workflow_id,
                        workflow_revision: reference.workflow_revision,
                        status: RunStatus::Queued,
                        created: true,
                    });
                }
            }
        }
        let busy = "the workflow is being published over and over; try again";
        Err(EngineError::refused(Code::Unavailable, busy))
    }

    /// The run with its first decision, from the revision that is live now.
    async fn prepare(
        &self,
        by: &By,
        permissions: &[Permission],
        request: &Request,
    ) -> Result<NewRun, EngineError> {
        let key = &request.workflow_key;
        let live = self.store.live_revision(&by.tenant, key).await?;
        if live.archived {
            let code = Code::WorkflowArchived;
            return Err(EngineError::refused(code, code.sentence()));
        }
        let plan = match self.known_plan(&live.plan_hash) {
            Some(plan) => plan,
            None => {
                let name = WorkflowName::Id(live.workflow_id.clone());
                let whole = self.store.revision(&by.tenant, &name, Some(live.revision));
                self.plan(&live.plan_hash, &whole.await?.plan)?
            }
        };
        let mut permissions = permissions.to_vec();
        permissions.sort_unstable();
        permissions.dedup();
        if let Some(obstacle) = self.obstacle(&by.tenant, &plan, &permissions).await? {
            let error = EngineError::Refused {
                code: obstacle.request_code(),
                detail: obstacle.message,
                pointer: None,
                node_id: Some(obstacle.node_id),
            };
            return Err(self.refuse(by, &live.workflow_id, error).await?);
        }
        let run_id = RunId::new(uuid::Uuid::now_v7().to_string());
        let reference = RunReference {
            workflow_id: live.workflow_id.clone(),
            workflow_key: request.workflow_key.clone(),
            workflow_revision: live.revision,
        };
        let folded = Folded {
            tenant: by.tenant.clone(),
            run: Run::new(&plan, by.tenant.clone(), run_id),
            plan,
            envelopes: Envelopes::new(),
            actor: by.actor.clone(),
            origin: by.origin.clone(),
            permissions: permissions.clone(),
        };
        let queue = Queue {
            mode: Mode::Live,
            limits: Limits::default(),
            input: Arc::clone(&request.input),
            reference: WorkflowReference {
                workflow_id: Some(reference.workflow_id.clone()),
                workflow_key: Some(reference.workflow_key.clone()),
                workflow_revision: Some(reference.workflow_revision),
                actor: Some(by.actor.clone()),
                origin: Some(by.origin.clone()),
                permission_digest: Some(permission_digest(&permissions)),
            },
        };
        let step = match self.decide(&folded, Command::Queue(Box::new(queue))) {
            Ok(step) => step,
            Err(error) => {
                let error = input_refused(error);
                return Err(self.refuse(by, &live.workflow_id, error).await?);
            }
        };
        let acting = (by.actor.clone(), by.origin.clone());
        let first = self.seal_step(&folded, &step, Guard::Sequence(0), acting)?;
        let queued = step.queued().cloned();
        let queued = queued.ok_or_else(|| EngineError::Broken("nothing is queued".to_owned()))?;
        Ok(NewRun {
            by: by.clone(),
            queued: Box::new(queued),
            reference,
            idempotency_key: request.idempotency_key.clone(),
            input_hash: request.input_hash,
            permissions,
            graph_checksum: live.checksum,
            plan_hash: live.plan_hash,
            first,
        })
    }

    /// Records that a run was refused (A10), and gives the refusal back.
    async fn refuse(
        &self,
        by: &By,
        workflow_id: &str,
        error: EngineError,
    ) -> Result<EngineError, EngineError> {
        if matches!(error, EngineError::Refused { .. }) {
            let subject = Subject {
                kind: "workflow".to_owned(),
                id: workflow_id.to_owned(),
            };
            self.record(by, "run.enqueue-refused", subject, &error)
                .await?;
        }
        Ok(error)
    }

    /// Appends the audit entry of a refusal: its code and its place, no values.
    pub(super) async fn record(
        &self,
        by: &By,
        action: &str,
        subject: Subject,
        error: &EngineError,
    ) -> Result<(), EngineError> {
        let mut metadata = value::Map::new();
        metadata.insert("code".to_owned(), error.code().as_str().into());
        if let EngineError::Refused {
            node_id: Some(node_id),
            ..
        } = error
        {
            metadata.insert("nodeId".to_owned(), node_id.as_str().into());
        }
        let draft = AuditDraft {
            tenant_id: by.tenant.clone(),
            actor: by.actor.clone(),
            origin: Some(by.origin.clone()),
            action: action.to_owned(),
            subject,
            metadata: Value::Object(metadata),
            occurred_at: self.clock.now(),
        };
        self.store.record_act(draft).await?;
        Ok(())
    }
}

/// A refusal of the machine as a refusal of the request.
fn input_refused(error: EngineError) -> EngineError {
    match error {
        EngineError::Machine(Refusal::Input {
            code,
            pointer,
            message,
        }) => EngineError::Refused {
            code,
            detail: message,
            pointer: Some(pointer),
            node_id: None,
        },
        other => other,
    }
}

struct Request {
    workflow_key: WorkflowKey,
    input: Arc<Value>,
    input_hash: Hash,
    idempotency_key: String,
}

impl Request {
    /// The first run's answer, if the request is the same (N2).
    fn same_as(&self, first: &Accepted) -> Result<RunAccepted, EngineError> {
        if first.workflow_key != self.workflow_key || first.input_hash != self.input_hash {
            let code = Code::WorkflowIdempotencyConflict;
            return Err(EngineError::refused(code, code.sentence()));
        }
        Ok(RunAccepted {
            run_id: first.run_id.clone(),
            workflow_id: first.workflow_id.clone(),
            workflow_revision: first.workflow_revision,
            status: first.status,
            created: false,
        })
    }
}
