//! A run in memory: loaded and folded from its events, moved on by decisions, committed
//! whole (architecture.md decisions 1–3; run-machine.md §1, A9, H1, H4).

use std::collections::BTreeMap;
use std::sync::Arc;

use sluicegate_core::actor::{Actor, Origin};
use sluicegate_core::audit;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Hash, NodeId, PayloadId, Permission, RunId, TenantId};
use sluicegate_core::node_type::NodeType;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    Command, Envelopes, Event, NewPayload, Payload, Queued, Rows, Run, RunStatus, Time, advance,
    needs, project,
};
use sluicegate_core::value::Value;

use super::crash::{self, CrashPoint};
use super::{Engine, EngineError};
use crate::payload::Place;
use crate::store::{
    AuditDraft, ChildChanges, Commit, Encrypted, Guard, LoadedRun, NewEvent, Parked, Sealed,
};

/// A folded run and what belongs to it.
pub(crate) struct Folded {
    pub(crate) tenant: TenantId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) run: Run,
    /// The values that the next decision may read; no others.
    pub(crate) envelopes: Envelopes,
    pub(crate) actor: Actor,
    pub(crate) origin: Origin,
    pub(crate) permissions: Vec<Permission>,
}

/// One or more decisions that are not durable yet, and the run as it stands after them.
pub(crate) struct Step {
    events: Vec<Event>,
    payloads: Vec<NewPayload>,
    pub(crate) run: Run,
}

impl Step {
    /// Whether nothing was decided.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// A value that this step makes.
    pub(crate) fn value(&self, id: &PayloadId) -> Option<&Arc<Value>> {
        let found = self.payloads.iter().find(|payload| payload.id == *id);
        found.map(|payload| &payload.value)
    }

    /// The event that queues the run.
    pub(super) fn queued(&self) -> Option<&Queued> {
        self.run.queued()
    }

    /// What kind of commit this is, for those who kill processes beside it.
    fn crash_points(&self) -> (CrashPoint, CrashPoint) {
        let holds = |wanted: fn(&Payload) -> bool| {
            let mut payloads = self.events.iter().map(|event| &event.payload);
            payloads.any(wanted)
        };
        if holds(|event| matches!(event, Payload::RetentionApplied(_))) {
            (CrashPoint::BeforeRetention, CrashPoint::AfterRetention)
        } else if holds(|event| matches!(event, Payload::RunCancelRequested(_))) {
            (CrashPoint::BeforeCancel, CrashPoint::AfterCancel)
        } else if self.run.status().is_terminal() {
            (CrashPoint::BeforeEnd, CrashPoint::AfterEnd)
        } else if self.waits() {
            (CrashPoint::BeforeRetry, CrashPoint::AfterRetry)
        } else if holds(|event| matches!(event, Payload::RunClaimed(_) | Payload::RunRecovered(_)))
        {
            (CrashPoint::BeforeClaim, CrashPoint::AfterClaim)
        } else if holds(|event| matches!(event, Payload::AttemptStarted(_))) {
            (CrashPoint::BeforeIntent, CrashPoint::AfterIntent)
        } else {
            (CrashPoint::BeforeSettlement, CrashPoint::AfterSettlement)
        }
    }

    /// Whether the run waits for a retry from here on.
    fn waits(&self) -> bool {
        let scheduled = |event: &Event| matches!(event.payload, Payload::RetryScheduled(_));
        self.run.status() == RunStatus::WaitingRetry && self.events.iter().any(scheduled)
    }

    /// What follows from a command after this step, joined to it: one commit.
    pub(crate) fn and(
        self,
        engine: &Engine,
        folded: &Folded,
        command: Command,
    ) -> Result<Self, EngineError> {
        let mut next = engine.decide_from(&self.run, folded, command)?;
        next.events.splice(..0, self.events);
        next.payloads.splice(..0, self.payloads);
        Ok(next)
    }
}

impl Engine {
    /// Loads and folds a run. A log that cannot be folded parks the run.
    pub(crate) async fn fold(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Folded, EngineError> {
        let loaded = self.store.load_run(tenant, run_id).await?;
        if let Some(parked) = loaded.parked {
            return Err(EngineError::Parked(parked));
        }
        let plan = match self.plans.find(&loaded.plan_hash) {
            Some(plan) => plan,
            None => {
                let document = self.store.run_plan(tenant, run_id).await?;
                self.plans.load(&loaded.plan_hash, &document)?
            }
        };
        match refold(&plan, tenant, run_id, &loaded) {
            Ok(run) => Ok(Folded {
                tenant: tenant.clone(),
                plan,
                run,
                envelopes: Envelopes::new(),
                actor: loaded.actor,
                origin: loaded.origin,
                permissions: loaded.permissions,
            }),
            Err((parked, detail)) => {
                tracing::error!(%tenant, %run_id, detail, "the run's log cannot be folded");
                self.store.park(tenant, run_id, &parked).await?;
                Err(EngineError::Parked(parked))
            }
        }
    }

    /// Brings the values that the next decision may read, and drops the others.
    pub(crate) async fn fill(&self, folded: &mut Folded) -> Result<(), EngineError> {
        let wanted = needs(&folded.plan, &folded.run);
        folded.envelopes.retain(|id, _| wanted.contains(id));
        let missing: Vec<_> = wanted
            .into_iter()
            .filter(|id| !folded.envelopes.contains_key(id))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let run_id = folded.run.run_id();
        for sealed in self
            .store
            .payloads(&folded.tenant, run_id, &missing)
            .await?
        {
            let value = self.unseal(&folded.tenant, run_id, &sealed)?;
            folded.envelopes.insert(sealed.id, Arc::new(value));
        }
        Ok(())
    }

    pub(crate) fn unseal(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        sealed: &Encrypted,
    ) -> Result<Value, EngineError> {
        let place = Place {
            tenant,
            run_id,
            payload: sealed.id.as_str(),
        };
        Ok(self
            .keys
            .open_sealed(place, &sealed.key_id, &sealed.bytes)?)
    }

    /// What follows from a command now.
    pub(crate) fn decide(&self, folded: &Folded, command: Command) -> Result<Step, EngineError> {
        self.decide_from(&folded.run, folded, command)
    }

    fn decide_from(
        &self,
        run: &Run,
        folded: &Folded,
        command: Command,
    ) -> Result<Step, EngineError> {
        let time = Time::Live(self.clock.now());
        let (decision, run) = advance(&folded.plan, run, &folded.envelopes, time, command)?;
        Ok(Step {
            events: decision.events,
            payloads: decision.payloads,
            run,
        })
    }

    /// Commits a step and moves the run on. A retry wait hands the lease back (W4).
    pub(crate) async fn commit(
        &self,
        folded: &mut Folded,
        step: Step,
        guard: Guard,
        by: (Actor, Origin),
        children: ChildChanges,
    ) -> Result<bool, EngineError> {
        if step.is_empty() {
            return Ok(false);
        }
        let commit = Commit {
            children,
            ..self.seal_step(folded, &step, guard, by)?
        };
        let (before, after) = step.crash_points();
        crash::at(before);
        let committed = self.store.commit(commit).await?;
        crash::at(after);
        for payload in step.payloads {
            folded.envelopes.insert(payload.id, payload.value);
        }
        folded.run = step.run;
        self.hub.tell(folded.run.run_id(), folded.run.sequence());
        Ok(committed.started)
    }

    /// A step in the form that is stored.
    pub(super) fn seal_step(
        &self,
        folded: &Folded,
        step: &Step,
        guard: Guard,
        (actor, origin): (Actor, Origin),
    ) -> Result<Commit, EngineError> {
        let (tenant, run_id) = (&folded.tenant, step.run.run_id());
        let now = self.clock.now();
        let events: Vec<_> = step
            .events
            .iter()
            .map(|event| NewEvent::of(event, now))
            .collect();
        let nothing = || EngineError::Broken("a commit without events".to_owned());
        let (action, metadata) = recorded(tenant, run_id, &events).ok_or_else(nothing)?;
        let rows = project(&folded.plan, &step.run, &step.events);
        Ok(Commit {
            tenant: tenant.clone(),
            run_id: run_id.clone(),
            guard,
            node_types: node_types(&folded.plan, &rows),
            rows,
            payloads: self.seal_payloads(tenant, run_id, &step.payloads)?,
            children: ChildChanges::default(),
            audit: AuditDraft {
                tenant_id: tenant.clone(),
                actor,
                origin: Some(origin),
                action,
                subject: audit::Subject {
                    kind: "run".to_owned(),
                    id: run_id.to_string(),
                },
                metadata,
                occurred_at: events.last().map_or(now, |event| event.recorded_at),
            },
            // A claim of a waiting run keeps it: only the wait itself hands back (W4).
            hand_back: step.waits(),
            events,
        })
    }

    pub(super) fn seal_payloads(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        payloads: &[NewPayload],
    ) -> Result<Vec<Sealed>, EngineError> {
        let mut sealed = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let place = Place {
                tenant,
                run_id,
                payload: payload.id.as_str(),
            };
            let (key_id, bytes) = self.keys.seal(place, &payload.value)?;
            sealed.push(Sealed {
                id: payload.id.clone(),
                kind: payload.kind,
                schema_id: payload.schema_id.clone(),
                key_id,
                bytes,
                evidence: payload.evidence.evidence.clone(),
                preview: payload.evidence.preview.clone(),
            });
        }
        Ok(sealed)
    }

    /// A plan that some run has loaded before.
    pub(super) fn known_plan(&self, hash: &Hash) -> Option<Arc<Plan>> {
        self.plans.find(hash)
    }

    /// The plan of a document, shared with every run of it.
    pub(super) fn plan(&self, hash: &Hash, document: &Value) -> Result<Arc<Plan>, EngineError> {
        self.plans.load(hash, document)
    }
}

/// The action and the metadata of a decision's audit entry (H1).
pub(super) fn recorded(
    tenant: &TenantId,
    run_id: &RunId,
    events: &[NewEvent],
) -> Option<(String, Value)> {
    let mut full = String::from("[");
    for event in events {
        if full.len() > 1 {
            full.push(',');
        }
        event.write_full(tenant, run_id, &mut full);
    }
    full.push(']');
    let types: Vec<_> = events
        .iter()
        .map(|event| (event.event_type, event.sequence))
        .collect();
    audit::of_types(&types, Hash::of(full.as_bytes()))
}

/// The types of the nodes whose attempts these rows hold.
pub(super) fn node_types(plan: &Plan, rows: &Rows) -> BTreeMap<NodeId, NodeType> {
    let attempts = rows.attempts.iter();
    attempts
        .filter_map(|row| {
            let node = plan.node(plan.find_node(row.node_id.as_str())?);
            Some((row.node_id.clone(), node.task.node_type()))
        })
        .collect()
}

/// Folds a stored log; else which event does not fit, and why (A9).
pub(super) fn refold(
    plan: &Plan,
    tenant: &TenantId,
    run_id: &RunId,
    loaded: &LoadedRun,
) -> Result<Run, (Parked, String)> {
    let parked = |code: Code, sequence| Parked { code, sequence };
    let mut run = Run::new(plan, tenant.clone(), run_id.clone());
    for stored in &loaded.events {
        let event = stored
            .read()
            .map_err(|error| (parked(error.code, stored.sequence), error.detail))?;
        run.apply(plan, &event)
            .map_err(|corrupt| (parked(corrupt.code, stored.sequence), corrupt.detail))?;
    }
    if run.queued().is_none() {
        let code = Code::WorkflowEventTransitionInvalid;
        return Err((parked(code, 0), "the log is empty".to_owned()));
    }
    Ok(run)
}
