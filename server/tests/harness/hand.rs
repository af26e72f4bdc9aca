//! A worker by hand: it holds one run and commits one decision at a time, so that a test can
//! leave a run exactly where a worker would have died. It uses the store's verbs alone.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use sluicegate_core::audit;
use sluicegate_core::ids::{ChildId, Hash, RunId, TenantId, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    ChildKind, Command, Decision, Effect, Envelopes, Lease, Mode, NewPayload, PriorLease, Queue,
    RecoveryReason, Rows, Run, Start, Time, Usage, WorkflowReference, decide, effects, needs,
    permission_digest, project,
};
use sluicegate_core::time::Millis;
use sluicegate_core::value::{self, Value};
use sluicegate_server::clock::Clock;
use sluicegate_server::payload::Place;
use sluicegate_server::store::{
    Accepted, AuditDraft, ChildChanges, ChildEnd, ChildIntent, ChildSettlement, ChildStanding,
    ChildStatus, Commit, Committed, Due, EnqueueOutcome, Guard, Held, NewEvent, NewRun,
    RunReference, Sealed, StoreError, by_key,
};

use crate::harness::{House, by, permissions};

/// A lease that was taken by hand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    pub(crate) tenant: TenantId,
    pub(crate) run_id: RunId,
    pub(crate) worker_id: WorkerId,
    pub(crate) token: String,
    pub(crate) fence: u64,
    pub(crate) over: Option<(PriorLease, RecoveryReason)>,
    found: Due,
    lease_ms: u64,
}

impl Taken {
    fn of(due: Due, worker: &str, lease_ms: u64) -> Self {
        Self {
            tenant: due.tenant.clone(),
            run_id: due.run_id.clone(),
            worker_id: WorkerId::from(worker),
            token: uuid::Uuid::new_v4().to_string(),
            fence: due.fence + 1,
            over: due.over.clone(),
            found: due,
            lease_ms,
        }
    }

    /// The guard of the commit that takes the lease.
    pub(crate) fn claims(&self, sequence: u64) -> Guard {
        Guard::Claim {
            worker_id: self.worker_id.clone(),
            token: self.token.clone(),
            fence: self.fence,
            found: self.found.token.clone(),
            lease_ms: self.lease_ms,
            sequence,
        }
    }

    /// The guard of the commits that follow.
    pub(crate) fn owns(&self, sequence: u64) -> Guard {
        Guard::Owner {
            token: self.token.clone(),
            fence: self.fence,
            sequence,
        }
    }

    /// As the store's other verbs want it.
    pub(crate) fn held(&self) -> Held {
        Held {
            tenant: self.tenant.clone(),
            run_id: self.run_id.clone(),
            token: self.token.clone(),
            fence: self.fence,
        }
    }
}

/// A run that is held by hand.
pub(crate) struct Hand<'h> {
    pub(crate) house: &'h House,
    pub(crate) held: Taken,
    pub(crate) plan: Plan,
    pub(crate) run: Run,
    envelopes: Envelopes,
    /// Whether the claim is committed.
    claimed: bool,
}

impl<'h> Hand<'h> {
    /// Claims the run that is due and commits the claim; the lease ends after `lease_ms`.
    pub(crate) async fn claim(house: &'h House, name: &str, lease_ms: u64) -> Self {
        let due = house.store.due(1).await.unwrap().remove(0);
        let held = Taken::of(due, name, lease_ms);
        let detail = house.store.run_detail(&held.tenant, &held.run_id);
        let plan = Plan::read(&detail.await.unwrap().plan).unwrap();
        let run = Run::new(&plan, held.tenant.clone(), held.run_id.clone());
        let mut hand = Self {
            house,
            held,
            plan,
            run,
            envelopes: Envelopes::new(),
            claimed: false,
        };
        hand.reload().await;
        let lease = Lease {
            fence: hand.held.fence,
            expires_at: hand.held.found.found_at.plus(Millis(lease_ms)),
        };
        let claim = Command::Claim {
            worker_id: hand.held.worker_id.clone(),
            lease: Some(lease),
            over: hand.held.over.clone(),
        };
        hand.decide(claim).await.unwrap();
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
        let guard = match self.claimed {
            true => self.held.owns(self.run.sequence()),
            false => self.held.claims(self.run.sequence()),
        };
        let mut run = self.run.clone();
        for event in &decision.events {
            run.apply(&self.plan, event).unwrap();
        }
        let mut commit = whole(self.house, &self.plan, &run, &decision, guard);
        bend(&mut commit);
        self.house.store.commit(commit).await?;
        self.claimed = true;
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

/// Takes the leases of up to `limit` runs that are due, in their order, without an event.
pub(crate) async fn claim(house: &House, worker: &str, lease_ms: u64, limit: u32) -> Vec<Taken> {
    let mut taken = Vec::new();
    for due in house.store.due(limit).await.unwrap() {
        taken.push(take(house, due, worker, lease_ms).await.unwrap());
    }
    taken
}

/// Takes the lease of a run that was found, without an event.
pub(crate) async fn take(
    house: &House,
    due: Due,
    worker: &str,
    lease_ms: u64,
) -> Result<Taken, StoreError> {
    let taken = Taken::of(due, worker, lease_ms);
    let row = house.store.run_row(&taken.tenant, &taken.run_id).await?;
    touch(house, &taken, taken.claims(row.row.last_sequence)).await?;
    Ok(taken)
}

/// A commit of nothing but the run's own row, to see what its guard finds.
pub(crate) async fn touch(
    house: &House,
    taken: &Taken,
    guard: Guard,
) -> Result<Committed, StoreError> {
    let row = house.store.run_row(&taken.tenant, &taken.run_id).await?.row;
    let commit = Commit {
        tenant: taken.tenant.clone(),
        run_id: taken.run_id.clone(),
        guard,
        events: Vec::new(),
        payloads: Vec::new(),
        children: ChildChanges::default(),
        node_types: BTreeMap::default(),
        audit: AuditDraft {
            tenant_id: taken.tenant.clone(),
            actor: by().actor,
            origin: Some(by().origin),
            action: "touch".to_owned(),
            // Not the run: its entries would have to cover events (H1).
            subject: audit::Subject {
                kind: "workflow".to_owned(),
                id: "a touch".to_owned(),
            },
            metadata: Value::Object(value::Map::new()),
            occurred_at: row.queued_at.unwrap(),
        },
        rows: Rows {
            run: Some(row),
            ..Rows::default()
        },
        hand_back: false,
    };
    house.store.commit(commit).await
}

/// A decision in the form that is stored.
fn whole(house: &House, plan: &Plan, run: &Run, decision: &Decision, guard: Guard) -> Commit {
    let (tenant, run_id) = (run.tenant_id(), run.run_id());
    let now = Clock::start().now();
    let events: Vec<_> = decision
        .events
        .iter()
        .map(|event| NewEvent::of(event, now))
        .collect();
    let full = |event: &NewEvent| {
        let mut text = String::new();
        event.write_full(tenant, run_id, &mut text);
        value::read(&text).unwrap()
    };
    let full: Vec<Value> = events.iter().map(full).collect();
    let (action, metadata) = audit::of_decision(&full).unwrap();
    let rows = project(plan, run, &decision.events);
    let node_types = rows.attempts.iter().map(|row| {
        let index = plan.find_node(row.node_id.as_str()).unwrap();
        (row.node_id.clone(), plan.node(index).task.node_type())
    });
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
        events,
        node_types: node_types.collect(),
        rows,
        children: ChildChanges::default(),
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
    let queued = run.queued().cloned().unwrap();
    let first = whole(house, &plan, &run, &decision, Guard::Sequence(0));
    let queued = house.store.enqueue(NewRun {
        by: by(),
        reference,
        idempotency_key: idempotency.to_owned(),
        input_hash,
        permissions: permissions(),
        graph_checksum: revision.row.checksum,
        plan_hash: revision.row.plan_hash,
        queued: Box::new(queued),
        first,
    });
    assert_eq!(queued.await, Ok::<_, StoreError>(EnqueueOutcome::Created));
    let accepted = house.store.accepted(&by().tenant, idempotency).await;
    assert!(matches!(accepted, Ok(Some(Accepted { .. }))));
    run_id
}
