//! Simulation on a server (run-machine.md §9, V2–V3, D3; wire-format.md X4): core simulates,
//! the store keeps it with one audit entry.

use std::sync::Arc;

use sluicegate_core::api::RunResult;
use sluicegate_core::audit;
use sluicegate_core::compile;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::{Hash, Permission, RunId, WorkflowKey};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, WorkflowReference, permission_digest, project};
use sluicegate_core::simulate::{self, Fixtures, Refused, Simulation};
use sluicegate_core::value::{self, Value};

use super::fold::{node_types, recorded};
use super::{Engine, EngineError};
use crate::store::{
    AuditDraft, By, ChildChanges, Commit, Guard, NewEvent, RunSimulated, WorkflowName,
};

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A document, of a workflow or of none.
    Graph {
        /// The document.
        graph: Graph,
        /// Whose history it belongs to.
        workflow_id: Option<String>,
    },
    /// A published revision.
    Published {
        /// Which workflow.
        workflow_key: WorkflowKey,
        /// Which revision; none: the live one.
        revision: Option<u64>,
    },
}

/// A request for a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulate {
    /// What.
    pub subject: Subject,
    /// The input.
    pub input: Value,
    /// What stands for the children.
    pub fixtures: Fixtures,
}

/// What a subject turned out to be.
struct Found {
    workflow: Option<(String, WorkflowKey, Option<u64>)>,
    graph: Value,
    graph_checksum: Hash,
    plan: Arc<Plan>,
}

impl Engine {
    /// Simulates and keeps the run.
    ///
    /// # Errors
    /// `WORKFLOW_GRAPH_INVALID`, `WORKFLOW_INPUT_INVALID`, `WORKFLOW_FIXTURES_INVALID`,
    /// `WORKFLOW_LIMIT_EXCEEDED`: one audit entry and no run (V3). `WORKFLOW_NOT_FOUND`,
    /// `WORKFLOW_NOT_PUBLISHED`.
    pub async fn simulate(
        &self,
        by: &By,
        permissions: &[Permission],
        request: Simulate,
    ) -> Result<RunResult, EngineError> {
        let known = match &request.subject {
            Subject::Graph { workflow_id, .. } => workflow_id.clone(),
            Subject::Published { .. } => None,
        };
        let simulated = match self.find(by, &request.subject).await {
            Ok(found) => self.run_through(by, permissions, found, &request),
            Err(error) => Err((None, error)),
        };
        let (stored, result) = match simulated {
            Ok(done) => done,
            Err((workflow, error)) => {
                let refused = matches!(
                    error,
                    EngineError::Refused { .. } | EngineError::Graph(_) | EngineError::Fixtures(_)
                );
                if refused {
                    let subject = audit::Subject {
                        kind: "workflow".to_owned(),
                        id: workflow.or(known).unwrap_or_default(),
                    };
                    self.record(by, "run.simulation-refused", subject, &error)
                        .await?;
                }
                return Err(error);
            }
        };
        self.store.store_simulation(stored).await?;
        Ok(result)
    }

    async fn find(&self, by: &By, subject: &Subject) -> Result<Found, EngineError> {
        match subject {
            Subject::Published {
                workflow_key,
                revision,
            } => {
                let name = WorkflowName::Key(workflow_key.clone());
                let found = self.store.revision(&by.tenant, &name, *revision).await?;
                let number = found.row.revision;
                Ok(Found {
                    plan: self.plan(&found.row.plan_hash, &found.plan)?,
                    workflow: Some((found.workflow_id, found.key, Some(number))),
                    graph: found.graph,
                    graph_checksum: found.row.checksum,
                })
            }
            Subject::Graph { graph, workflow_id } => {
                let workflow = match workflow_id {
                    None => None,
                    Some(id) => {
                        let name = WorkflowName::Id(id.clone());
                        let row = self.store.workflow(&by.tenant, &name).await?.row;
                        Some((row.workflow_id, row.key, None))
                    }
                };
                let catalogue = self.catalogue(&by.tenant).await?;
                let compiled = compile::compile(graph, Some(&catalogue), &Limits::default());
                let Some(document) = compiled.plan else {
                    return Err(EngineError::Graph(compiled.issues));
                };
                let broken = |error: String| EngineError::Broken(error);
                let plan = Plan::load(document).map_err(|error| broken(error.to_string()))?;
                Ok(Found {
                    workflow,
                    graph: graph.to_value().map_err(|error| broken(error.detail))?,
                    graph_checksum: plan.document().graph_checksum,
                    plan: Arc::new(plan),
                })
            }
        }
    }

    /// Simulates, and makes what is stored and what is answered.
    fn run_through(
        &self,
        by: &By,
        permissions: &[Permission],
        found: Found,
        request: &Simulate,
    ) -> Result<(RunSimulated, RunResult), (Option<String>, EngineError)> {
        let workflow = found.workflow.as_ref();
        let reference = WorkflowReference {
            workflow_id: workflow.map(|(id, ..)| id.clone()),
            workflow_key: workflow.map(|(_, key, _)| key.clone()),
            workflow_revision: workflow.and_then(|(.., revision)| *revision),
            actor: Some(by.actor.clone()),
            origin: Some(by.origin.clone()),
            permission_digest: Some(permission_digest(permissions)),
        };
        let simulated = simulate::simulate(
            &found.plan,
            Arc::new(request.input.clone()),
            &request.fixtures,
            &Limits::default(),
            reference,
        );
        let id = || workflow.map(|(id, ..)| id.clone());
        let simulated = simulated.map_err(|refused| (id(), refusal(refused)))?;
        self.keep(by, &found, request, simulated)
            .map_err(|error| (id(), error))
    }

    fn keep(
        &self,
        by: &By,
        found: &Found,
        request: &Simulate,
        simulated: Simulation,
    ) -> Result<(RunSimulated, RunResult), EngineError> {
        let (now, run_id) = (
            self.clock.now(),
            RunId::new(uuid::Uuid::now_v7().to_string()),
        );
        // What is stored says when the evidence was persisted; the rows follow from that.
        let events: Vec<Event> = simulated
            .events
            .iter()
            .map(|event| Event {
                recorded_at: Some(now),
                ..event.clone()
            })
            .collect();
        let mut run = sluicegate_core::run::Run::new(
            &found.plan,
            by.tenant.clone(),
            simulated.run.run_id().clone(),
        );
        for event in &events {
            run.apply(&found.plan, event)
                .map_err(|corrupt| EngineError::Broken(corrupt.to_string()))?;
        }
        let queued = run.queued().cloned();
        let queued = queued.ok_or_else(|| EngineError::Broken("nothing is queued".to_owned()))?;
        let rows = project(&found.plan, &run, &events);
        let events: Vec<_> = events
            .iter()
            .map(|event| NewEvent::of(event, now))
            .collect();
        // One entry (V3), and it covers every event, so that a later one can follow it (H1).
        let mut metadata = match recorded(&by.tenant, &run_id, &events) {
            Some((_, Value::Object(metadata))) => metadata,
            _ => value::Map::new(),
        };
        metadata.insert("status".to_owned(), run.status().as_str().into());
        metadata.insert(
            "fixturesHash".to_owned(),
            request.fixtures.hash().to_string().into(),
        );
        let subject = audit::Subject {
            kind: "run".to_owned(),
            id: run_id.to_string(),
        };
        let whole = Commit {
            tenant: by.tenant.clone(),
            run_id: run_id.clone(),
            guard: Guard::Sequence(0),
            node_types: node_types(&found.plan, &rows),
            rows,
            children: ChildChanges::default(),
            payloads: self.seal_payloads(&by.tenant, &run_id, &simulated.payloads)?,
            audit: AuditDraft {
                tenant_id: by.tenant.clone(),
                actor: by.actor.clone(),
                origin: Some(by.origin.clone()),
                action: "run.simulated".to_owned(),
                subject,
                metadata: Value::Object(metadata),
                occurred_at: now,
            },
            hand_back: false,
            events,
        };
        let stored = RunSimulated {
            by: by.clone(),
            workflow: found.workflow.clone(),
            graph: found.graph.clone(),
            graph_checksum: found.graph_checksum,
            plan: value::to_value(found.plan.document())
                .map_err(|error| EngineError::Broken(error.detail))?,
            plan_hash: found.plan.hash(),
            input_hash: value::hash(&request.input),
            queued: Box::new(queued),
            whole,
        };
        // R2, under the id of the stored run (D3).
        let mut answer = simulated.result();
        answer.run_id = run_id;
        Ok((stored, answer))
    }
}

fn refusal(refused: Refused) -> EngineError {
    match refused {
        Refused::Input {
            code,
            pointer,
            message,
        } => EngineError::Refused {
            code,
            detail: message,
            pointer: Some(pointer),
            node_id: None,
        },
        Refused::Fixtures(faults) => EngineError::Fixtures(faults),
        Refused::Broken(detail) => EngineError::Broken(detail),
    }
}
