//! A worker by hand: it holds one run and commits one decision at a time, so that a test can
//! leave a run exactly where a worker would have died. It uses the store's verbs alone.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use sluicegate_core::audit;
use sluicegate_core::ids::{ChildId, Hash, RunId, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    ChildKind, Command, Decision, Effect, Envelopes, Event, Lease, Mode, NewPayload, Queue, Run,
    Start, Time, Usage, WorkflowReference, decide, effects, needs, permission_digest, project,
};
use sluicegate_core::time::Millis;
use sluicegate_core::value::{self, Value};
use sluicegate_server::clock::Clock;
use sluicegate_server::payload::Place;
use sluicegate_server::store::{
    Accepted, AuditDraft, ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus,
    Claim, Claimed, Commit, EnqueueOutcome, Guard, NewRun, RunReference, Sealed, StoreError,
    StoredEvent, by_key,
};

use crate::harness::{House, by, permissions};

/// A run that is held by hand.
pub(crate) struct Hand<'h> {
    pub(crate) house: &'h House,
    pub(crate) held: Claimed,
    pub(crate) plan: Plan,
    pub(crate) run: Run,
    envelopes: Envelopes,
}

impl<'h> Hand<'h> {
    /// Claims the run that is due and commits the claim; the lease ends after `lease_ms`.
    pub(crate) async fn claim(house: &'h House, name: &str, lease_ms: u64) -> Self {
        let mut hand = Self::hold(house, name, lease_ms).await;
        let lease = Lease {
            fence: hand.held.fence,
            expires_at: hand.held.expires_at,
        };
        let claim = Command::Claim {
            worker_id: hand.held.worker_id.clone(),
            lease: Some(lease),
            over: hand.held.over.clone(),
        };
        hand.decide(claim).await.unwrap();
        hand
    }

    /// Takes the lease of the run that is due, and decides nothing.
    async fn hold(house: &'h House, name: &str, lease_ms: u64) -> Self {
        let held = claim(house, name, lease_ms, 1).await.remove(0);
        let detail = house.store.run_detail(&held.tenant, &held.run_id);
        let plan = Plan::read(&detail.await.unwrap().plan).unwrap();
        let run = Run::new(&plan, held.tenant.clone(), held.run_id.clone());
        let mut hand = Self {
            house,
            held,
            plan,
            run,
            envelopes: Envelopes::new(),
        };
        hand.reload().await;
        hand
    }

    /// Folds the run anew, as a worker does whose sequence was stale.
    pub(crate) async fn reload(&mut self) {
        let mut run = Run::new(
            &self.plan,
            self.held.tenant.clone(),
            self.held.run_id.clone(),
        );
        for stored in self.house.events(&self.held.run_id).await {
            run.apply(&self.plan, &stored.read().unwrap()).unwrap();
        }
        self.run = run;
    }

    /// What is owed to the world.
    pub(crate) fn owed(&self) -> Effect {
        effects(&self.plan, &self.run).remove(0)
    }

    /// The start that is owed.
    #[track_caller]
    pub(crate) fn start(&self) -> Start {
        match self.owed() {
            Effect::Start(start) => start,
            other => panic!("no start is owed: {other:?}"),
        }
    }

    /// Goes on to the next intent.
    pub(crate) async fn go_on(&mut self) -> Start {
        self.decide(Command::Continue).await.unwrap();
        self.start()
    }

    /// Goes on to the next intent after `bend` has changed what is stored.
    pub(crate) async fn go_on_with(&mut self, bend: impl FnOnce(&mut Commit)) -> Start {
        let decision = self.decision(Command::Continue).await;
        self.commit(decision, bend).await.unwrap();
        self.start()
    }

    /// Decides and commits.
    pub(crate) async fn decide(&mut self, command: Command) -> Result<(), StoreError> {
        let decision = self.decision(command).await;
        self.commit(decision, |_| {}).await
    }

    /// What follows from a command.
    pub(crate) async fn decision(&mut self, command: Command) -> Decision {
        let wanted: Vec<_> = needs(&self.plan, &self.run)
            .into_iter()
            .filter(|id| !self.envelopes.contains_key(id))
            .collect();
        let (tenant, run_id) = (&self.held.tenant, &self.held.run_id);
        let sealed = self.house.store.payloads(tenant, run_id, &wanted).await;
        for sealed in sealed.unwrap() {
            let place = Place {
                tenant,
                run_id,
                payload: sealed.id.as_str(),
            };
            let keys = &self.house.keys;
            let value = keys.open_sealed(place, &sealed.key_id, &sealed.bytes);
            self.envelopes.insert(sealed.id, Arc::new(value.unwrap()));
        }
        let time = Time::Live(Clock::start().now());
        decide(&self.plan, &self.run, &self.envelopes, time, command).unwrap()
    }

    /// Commits a decision after `bend` has changed what would be stored.
    pub(crate) async fn commit(
        &mut self,
        decision: Decision,
        bend: impl FnOnce(&mut Commit),
    ) -> Result<(), StoreError> {
        let guard = Guard::Owner {
            token: self.held.token.clone(),
            fence: self.held.fence,
            sequence: self.run.sequence(),
        };
        let mut run = self.run.clone();
        for event in &decision.events {
            run.apply(&self.plan, event).unwrap();
        }
        let mut commit = whole(self.house, &self.plan, &run, &decision, guard);
        bend(&mut commit);
        self.house.store.commit(commit).await?;
        for NewPayload { id, value, .. } in decision.payloads {
            self.envelopes.insert(id, value);
        }
        self.run = run;
        Ok(())
    }

    /// Tells the child's runtime to start what is owed.
    pub(crate) async fn start_child(&self) -> ChildId {
        let standing = self.house.store.start_child(self.intent()).await.unwrap();
        match standing {
            ChildStanding::Execute { child_id, .. } => child_id,
            other => panic!("the child does not start: {other:?}"),
        }
    }

    /// Starts the child that is owed and commits its acceptance.
    pub(crate) async fn accept_child(&mut self) -> ChildId {
        let child_id = self.start_child().await;
        self.accepted(child_id.clone()).await;
        child_id
    }

    /// Commits that the child is accepted under this id.
    pub(crate) async fn accepted(&mut self, child_id: ChildId) {
        let start = self.start();
        let accepted = Command::ChildAccepted {
            node_id: start.node_id,
            attempt: start.attempt,
            child_id,
            result: None,
        };
        self.decide(accepted).await.unwrap();
    }

    /// The wish to start, or to stop, the attempt in flight.
    pub(crate) fn intent(&self) -> ChildIntent {
        let (node_id, attempt, kind, key) = match self.owed() {
            Effect::Start(e) => (e.node_id, e.attempt, e.child_kind, e.idempotency_key),
            Effect::Observe(e) => (e.node_id, e.attempt, e.child_kind, e.idempotency_key),
            Effect::Cancel(e) => (e.node_id, e.attempt, e.child_kind, e.idempotency_key),
            other => panic!("no child is in flight: {other:?}"),
        };
        ChildIntent {
            tenant: self.held.tenant.clone(),
            run_id: self.held.run_id.clone(),
            node_id,
            kind,
            target: match kind {
                ChildKind::Agent => "echo@1".to_owned(),
                ChildKind::Action => "x.count@1".to_owned(),
            },
            key: key.unwrap(),
            attempt,
            fence: self.held.fence,
            new_id: ChildId::new(uuid::Uuid::now_v7().to_string()),
            deadline_at: Clock::start().now().plus(Millis(60_000)),
        }
    }

    /// The child ends well, as its runtime stores it; `false`: it was shut out.
    pub(crate) async fn child_succeeds(
        &self,
        child_id: &ChildId,
        attempt: u32,
        output: &Value,
    ) -> bool {
        let payload = format!("child/{child_id}/output");
        let place = Place {
            tenant: &self.held.tenant,
            run_id: &self.held.run_id,
            payload: &payload,
        };
        let end = ChildEnd {
            status: ChildStatus::Succeeded,
            output: Some(self.house.keys.seal(place, output).unwrap()),
            code: None,
            message: None,
            usage: Some(Usage {
                input_tokens: 3,
                output_tokens: 4,
            }),
            cost: None,
        };
        self.child_ends(child_id, attempt, end).await
    }

    /// The child's row gets an end that cannot be decrypted: it belongs elsewhere.
    pub(crate) async fn child_end_is_damaged(&self, child_id: &ChildId) {
        let place = Place {
            tenant: &self.held.tenant,
            run_id: &self.held.run_id,
            payload: "elsewhere",
        };
        let end = ChildEnd {
            status: ChildStatus::Succeeded,
            output: Some(self.house.keys.seal(place, &Value::from(7)).unwrap()),
            code: None,
            message: None,
            usage: None,
            cost: None,
        };
        assert!(self.child_ends(child_id, 1, end).await);
    }

    /// The child's row gets this end.
    pub(crate) async fn child_ends(&self, child_id: &ChildId, attempt: u32, end: ChildEnd) -> bool {
        let settlement = ChildSettlement {
            tenant: self.held.tenant.clone(),
            child_id: child_id.clone(),
            attempt,
            fence: self.held.fence,
            end,
        };
        self.house.store.settle_child(settlement).await.unwrap()
    }
}

/// Takes the leases of up to `limit` runs that are due, in their order.
pub(crate) async fn claim(house: &House, worker: &str, lease_ms: u64, limit: u32) -> Vec<Claimed> {
    let claim = Claim {
        worker_id: WorkerId::from(worker),
        lease_ms,
        limit,
    };
    house.store.claim(&claim).await.unwrap()
}

/// A decision in the form that is stored.
fn whole(house: &House, plan: &Plan, run: &Run, decision: &Decision, guard: Guard) -> Commit {
    let (tenant, run_id) = (run.tenant_id(), run.run_id());
    let now = Clock::start().now();
    let full = |event: &Event| StoredEvent::of(event, now).full(tenant, run_id);
    let full: Vec<Value> = decision.events.iter().map(full).collect();
    let (action, metadata) = audit::of_decision(&full).unwrap();
    let seal = |payload: &NewPayload| {
        let place = Place {
            tenant,
            run_id,
            payload: payload.id.as_str(),
        };
        let (key_id, bytes) = house.keys.seal(place, &payload.value).unwrap();
        Sealed {
            id: payload.id.clone(),
            kind: payload.kind,
            schema_id: payload.schema_id.clone(),
            key_id,
            bytes,
            evidence: payload.evidence.evidence.clone(),
            preview: payload.evidence.preview.clone(),
        }
    };
    Commit {
        tenant: tenant.clone(),
        run_id: run_id.clone(),
        guard,
        events: decision.events.clone(),
        rows: project(plan, run, &decision.events),
        payloads: decision.payloads.iter().map(seal).collect(),
        audit: AuditDraft {
            tenant_id: tenant.clone(),
            actor: by().actor,
            origin: Some(by().origin),
            action,
            subject: audit::Subject {
                kind: "run".to_owned(),
                id: run_id.to_string(),
            },
            metadata,
            occurred_at: now,
        },
        hand_back: false,
    }
}

/// Queues a run that may use no more than `limits`.
pub(crate) async fn enqueue_within(
    house: &House,
    key: &str,
    input: Value,
    idempotency: &str,
    limits: Limits,
) -> RunId {
    let tenant = by().tenant;
    let name = by_key(key);
    let revision = house.store.revision(&tenant, &name, None).await.unwrap();
    let plan = Plan::read(&revision.plan).unwrap();
    let run_id = RunId::new(uuid::Uuid::now_v7().to_string());
    let mut run = Run::new(&plan, tenant, run_id.clone());
    let reference = RunReference {
        workflow_id: revision.workflow_id,
        workflow_key: key.into(),
        workflow_revision: revision.row.revision,
    };
    let input_hash: Hash = value::hash(&input);
    let queue = Command::Queue(Box::new(Queue {
        mode: Mode::Live,
        limits,
        input: Arc::new(input),
        reference: WorkflowReference {
            workflow_id: Some(reference.workflow_id.clone()),
            workflow_key: Some(reference.workflow_key.clone()),
            workflow_revision: Some(reference.workflow_revision),
            actor: Some(by().actor),
            origin: Some(by().origin),
            permission_digest: Some(permission_digest(&permissions())),
        },
    }));
    let time = Time::Live(Clock::start().now());
    let decision = decide(&plan, &run, &Envelopes::new(), time, queue).unwrap();
    for event in &decision.events {
        run.apply(&plan, event).unwrap();
    }
    let first = whole(house, &plan, &run, &decision, Guard::Sequence(0));
    let queued = house.store.enqueue(NewRun {
        by: by(),
        reference,
        idempotency_key: idempotency.to_owned(),
        input_hash,
        permissions: permissions(),
        graph_checksum: revision.row.checksum,
        plan_hash: revision.row.plan_hash,
        first,
    });
    assert_eq!(queued.await, Ok::<_, StoreError>(EnqueueOutcome::Created));
    let accepted = house.store.accepted(&by().tenant, idempotency).await;
    assert!(matches!(accepted, Ok(Some(Accepted { .. }))));
    run_id
}
