//! An engine with workers in a folder of its own, and the samples.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub(crate) mod bare;
pub(crate) mod cluster;
pub(crate) mod ground;
pub(crate) mod raw;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::actor::{Actor, Origin, UserActor};
use sluicegate_core::api::RunAccepted;
use sluicegate_core::audit;
use sluicegate_core::compile::compile;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::{RunId, TenantId, WorkerId};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Run, RunStatus, project};
use sluicegate_core::time::Millis;
use sluicegate_core::value::{self, Value};
use sluicegate_server::actions::{Action, Registry};
use sluicegate_server::agents::AgentDefinition;
use sluicegate_server::clock::Clock;
use sluicegate_server::engine::{Engine, EngineError, Enqueue, Parts};
use sluicegate_server::modules::expenses::{self, Claims};
use sluicegate_server::payload::Keys;
use sluicegate_server::store::postgres::{Address, PostgresStore};
use sluicegate_server::store::sqlite::SqliteStore;
use sluicegate_server::store::{
    Account, By, GraphText, NewWorkflow, Publication, Store, StoredEvent,
};
use sluicegate_server::stream::Hub;
use sluicegate_server::worker::{WorkerSettings, Workers};

/// Makes a test on each database of every scenario that takes a [`ground::Ground`].
#[allow(unused_macros, reason = "each test file uses its own part")]
macro_rules! on_both {
    ($($scenario:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                super::$scenario(crate::harness::ground::Ground::sqlite()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                super::$scenario(crate::harness::ground::Ground::postgres().await).await;
            })*
        }
    };
}
#[allow(unused_imports, reason = "each test file uses its own part")]
pub(crate) use on_both;

pub(crate) struct House {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) claims: Arc<dyn Claims>,
    pub(crate) engine: Arc<Engine>,
    /// The keys of the engine.
    pub(crate) keys: Keys,
    /// Who is told that a run moved.
    pub(crate) hub: Hub,
}

pub(crate) fn by() -> By {
    By {
        tenant: TenantId::from("default"),
        actor: Actor::User(UserActor {
            account_id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            email: None,
        }),
        origin: Origin::Manual,
    }
}

pub(crate) fn of(tenant: &TenantId) -> By {
    By {
        tenant: tenant.clone(),
        ..by()
    }
}

pub(crate) fn permissions() -> Vec<String> {
    ["expenses.claims.read", "expenses.claims.write"]
        .map(str::to_owned)
        .to_vec()
}

pub(crate) fn sample(path: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../samples")
        .join(path);
    value::read(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Workers with short leases.
pub(crate) fn settings(name: &str) -> WorkerSettings {
    WorkerSettings {
        lease: Millis(600),
        renew: Millis(150),
        poll: Duration::from_millis(200),
        ..WorkerSettings::named(WorkerId::from(name))
    }
}

/// A graph as drafts keep it.
pub(crate) fn text_of(graph: &Value) -> GraphText {
    let graph = Graph::read(graph).unwrap();
    GraphText {
        canonical: value::canonical(&graph.to_value().unwrap()),
        checksum: graph.checksum().unwrap(),
    }
}

impl House {
    /// Opens the folder; what is there stays.
    pub(crate) async fn open(folder: &Path) -> Self {
        Self::open_with(folder, Vec::new()).await
    }

    /// Opens the folder with more actions than the samples'.
    pub(crate) async fn open_with(folder: &Path, more: Vec<Arc<dyn Action>>) -> Self {
        Self::open_at(folder, Clock::start(), more).await
    }

    /// The same, by a clock of its own.
    pub(crate) async fn open_at(folder: &Path, clock: Clock, more: Vec<Arc<dyn Action>>) -> Self {
        let store = SqliteStore::open(&folder.join("sluicegate.sqlite"), clock)
            .await
            .unwrap();
        Self::furnish(store, clock, folder, more).await
    }

    /// Opens a PostgreSQL database, with the keys in a folder; what is there stays.
    pub(crate) async fn open_shared(url: &str, folder: &Path, more: Vec<Arc<dyn Action>>) -> Self {
        Self::open_shared_at(url, folder, None, more).await
    }

    /// The same, by another clock than the database's.
    pub(crate) async fn open_shared_at(
        url: &str,
        folder: &Path,
        clock: Option<Clock>,
        more: Vec<Arc<dyn Action>>,
    ) -> Self {
        let address: Address = url.parse().unwrap();
        let clock = match clock {
            Some(clock) => clock,
            None => address.clock().await.unwrap(),
        };
        let store = PostgresStore::open(&address, clock).await.unwrap();
        let house = Self::furnish(store.clone(), clock, folder, more).await;
        let engine = Arc::clone(&house.engine);
        store.listen(move |news| engine.hear(news));
        house
    }

    pub(crate) async fn furnish(
        store: impl Store + Claims + Clone + 'static,
        clock: Clock,
        folder: &Path,
        more: Vec<Arc<dyn Action>>,
    ) -> Self {
        let owner = Account {
            account_id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            email: None,
            role: "owner".to_owned(),
        };
        store.ensure_tenant(&by().tenant, &owner).await.unwrap();
        let mut actions = Registry::default();
        let claims: Arc<dyn Claims> = Arc::new(store.clone());
        let store: Arc<dyn Store> = Arc::new(store);
        expenses::register(&mut actions, &claims).unwrap();
        for action in more {
            actions.register(action).unwrap();
        }
        let keys = Keys::open(&folder.join("keys")).unwrap();
        let hub = Hub::default();
        let engine = Engine::new(Parts {
            store: Arc::clone(&store),
            clock,
            keys: keys.clone(),
            hub: hub.clone(),
            actions,
        });
        Self {
            store,
            claims,
            engine,
            keys,
            hub,
        }
    }

    pub(crate) async fn agent(&self, definition: Value) {
        let definition: AgentDefinition = serde_json::from_value(definition).unwrap();
        definition.judge().unwrap();
        self.store
            .revise_agent(&by().tenant, &definition)
            .await
            .unwrap();
    }

    pub(crate) async fn sample_agents(&self) {
        for definition in sample("agents.json").as_array().unwrap() {
            self.agent(definition.clone()).await;
        }
    }

    pub(crate) async fn publish(&self, key: &str, graph: &Value) -> String {
        self.publish_for(&by().tenant, key, graph).await
    }

    pub(crate) async fn publish_for(&self, tenant: &TenantId, key: &str, graph: &Value) -> String {
        let by = of(tenant);
        let made = self.store.create_workflow(
            &by,
            NewWorkflow {
                key: key.into(),
                name: key.to_owned(),
                description: String::new(),
                graph: text_of(graph),
            },
        );
        let id = made.await.unwrap().row.workflow_id;
        self.publish_draft(tenant, &id, 1, graph).await;
        id
    }

    /// Publishes the draft of this version, which is this graph.
    pub(crate) async fn publish_draft(
        &self,
        tenant: &TenantId,
        workflow_id: &str,
        version: u64,
        graph: &Value,
    ) {
        let text = text_of(graph);
        let graph = Graph::read(graph).unwrap();
        let catalogue = self.engine.catalogue(tenant).await.unwrap();
        let compiled = compile(&graph, Some(&catalogue), &Limits::default());
        let plan = compiled
            .plan
            .unwrap_or_else(|| panic!("{:?}", compiled.issues));
        let document = value::to_value(&plan).unwrap();
        let publication = Publication {
            workflow_id: workflow_id.to_owned(),
            expected: version,
            graph: text,
            plan_hash: value::hash(&document),
            plan: document,
            compiler_version: "1".to_owned(),
            note: None,
        };
        self.store.publish(&of(tenant), publication).await.unwrap();
    }

    pub(crate) async fn publish_sample(&self, key: &str) -> String {
        self.publish(key, &sample(&format!("{key}.json"))).await
    }

    pub(crate) async fn enqueue(&self, key: &str, input: Value, idempotency: &str) -> RunAccepted {
        self.try_enqueue(key, input, idempotency).await.unwrap()
    }

    pub(crate) async fn enqueue_for(
        &self,
        tenant: &TenantId,
        key: &str,
        input: Value,
        idempotency: &str,
    ) -> RunAccepted {
        let request = Enqueue {
            workflow_key: key.into(),
            input,
            idempotency_key: idempotency.to_owned(),
        };
        let (by, permissions) = (of(tenant), permissions());
        let accepted = self.engine.enqueue(&by, &permissions, request);
        accepted.await.unwrap()
    }

    pub(crate) async fn try_enqueue(
        &self,
        key: &str,
        input: Value,
        idempotency: &str,
    ) -> Result<RunAccepted, EngineError> {
        let request = Enqueue {
            workflow_key: key.into(),
            input,
            idempotency_key: idempotency.to_owned(),
        };
        self.engine.enqueue(&by(), &permissions(), request).await
    }

    /// Workers whose leases outlast a busy machine.
    pub(crate) fn workers(&self, name: &str) -> Workers {
        let calm = WorkerSettings {
            lease: Millis(30_000),
            renew: Millis(10_000),
            ..settings(name)
        };
        Workers::start(Arc::clone(&self.engine), calm)
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        self.store
            .run_row(&by().tenant, run)
            .await
            .unwrap()
            .row
            .status
    }

    /// Waits until the run's status is one of these.
    pub(crate) async fn until(
        &self,
        run: &RunId,
        reached: impl Fn(RunStatus) -> bool,
    ) -> RunStatus {
        for _ in 0..1_000 {
            let status = self.status(run).await;
            if reached(status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!(
            "the run stays {:?}: {:#?}",
            self.status(run).await,
            self.types(run).await
        );
    }

    pub(crate) async fn ended(&self, run: &RunId) -> RunStatus {
        self.until(run, RunStatus::is_terminal).await
    }

    pub(crate) async fn events(&self, run: &RunId) -> Vec<StoredEvent> {
        self.store
            .events_after(&by().tenant, run, 0, 20_000)
            .await
            .unwrap()
    }

    pub(crate) async fn types(&self, run: &RunId) -> Vec<String> {
        let events = self.events(run).await;
        events.into_iter().map(|event| event.event_type).collect()
    }

    /// What must be true of every stored run: its log folds, its rows are what the log
    /// projects, and the audit chain covers it.
    pub(crate) async fn check(&self, run_id: &RunId) {
        let tenant = by().tenant;
        let detail = self.store.run_detail(&tenant, run_id).await.unwrap();
        let plan = Plan::read(&detail.plan).unwrap();
        let stored = self.events(run_id).await;
        let events: Vec<_> = stored.iter().map(|event| event.read().unwrap()).collect();
        let mut run = Run::new(&plan, tenant.clone(), run_id.clone());
        for event in &events {
            run.apply(&plan, event).unwrap();
        }
        let rows = project(&plan, &run, &events);
        assert_eq!(Some(&detail.row.row), rows.run.as_ref());
        let mut nodes = rows.nodes;
        nodes.sort_by(|a, b| a.node_id.cmp(&b.node_id));
        assert_eq!(detail.nodes, nodes);
        let mut attempts = rows.attempts;
        attempts.sort_by(|a, b| (&a.node_id, a.attempt).cmp(&(&b.node_id, b.attempt)));
        assert_eq!(detail.attempts, attempts);
        assert_eq!(detail.edges, rows.edges);
        // The head first: others may append meanwhile.
        let head = self.store.audit_head(&tenant).await.unwrap();
        let entries = u32::try_from(head.sequence).unwrap();
        let entries = self.store.audit_after(&tenant, 0, entries).await.unwrap();
        assert!(audit::verify(&entries, Some(head), None).valid);
        let entries: Vec<audit::Entry> = entries
            .into_iter()
            .map(|entry| serde_json::from_value(entry).unwrap())
            .collect();
        let mut next = 1;
        for entry in entries
            .iter()
            .filter(|entry| entry.subject.id == run_id.as_str())
        {
            let first = entry.metadata["firstSequence"].as_u64().unwrap();
            let last = entry.metadata["lastSequence"].as_u64().unwrap();
            assert_eq!(first, next, "H1: every event is covered once");
            let covered =
                &stored[usize::try_from(first - 1).unwrap()..usize::try_from(last).unwrap()];
            let full: Vec<_> = covered.iter().map(|e| e.full(&tenant, run_id)).collect();
            let hash = audit::events_hash(&full).to_string();
            assert_eq!(entry.metadata["eventsHash"], hash.as_str());
            next = last + 1;
        }
        assert_eq!(next, stored.len() as u64 + 1);
    }
}
