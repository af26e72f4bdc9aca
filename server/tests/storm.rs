//! Storms (run-machine.md N2, N3, H2; architecture.md "Rules", one writer): many requests of
//! many processes at once make one run, one chain, and no fault that a caller sees.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
mod harness;
#[path = "harness/served.rs"]
mod served;
#[path = "harness/shapes.rs"]
mod shapes;

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use counting::{Business, policy};
use harness::ground::Ground;
use harness::on_both;
use harness::{House, by, of, permissions, text_of};
use serde_json::json;
use served::Served;
use shapes::house;
use sluicegate_core::api::RunAccepted;
use sluicegate_core::audit;
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::value::{self, Value};
use sluicegate_server::engine::{EngineError, Enqueue};
use sluicegate_server::store::{Account, DraftChange, Save, StoreError, by_key};
use tokio::task::JoinSet;

const ACTION: ChildKind = ChildKind::Action;

/// Four houses on one database, with the workflows `work` and `other`.
async fn street(ground: &Ground) -> Vec<Arc<House>> {
    let business = Arc::new(Business::default());
    let first = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let graph = shapes::line(&[ACTION], &policy(1, &[], 0));
    first.publish("other", &graph).await;
    let mut houses = vec![Arc::new(first)];
    for _ in 0..3 {
        let action = counting::Count::new(&business);
        houses.push(Arc::new(ground.open(&[action]).await));
    }
    houses
}

/// One of several workflows or inputs, under the same key.
fn variant(n: usize) -> (&'static str, Value) {
    match n % 4 {
        0 => ("work", json!({"a": 1, "b": 2})),
        1 => ("work", json!({"a": 2, "b": 2})),
        2 => ("other", json!({"a": 1, "b": 2})),
        _ => ("work", value::read(r#"{"b":2.0,"a":1e0}"#).unwrap()),
    }
}

/// B122, B123: unequal requests with one key, at once, over several processes. One of them is
/// first; those equal to it get its run, the others a conflict, and nobody anything else.
async fn b123(ground: &Ground) {
    let houses = street(ground).await;
    for round in 0..6 {
        let key = format!("k{round}");
        let mut asking = JoinSet::new();
        for n in 0..28 {
            let (house, key) = (Arc::clone(&houses[n / 4 % 4]), key.clone());
            asking.spawn(async move {
                let (workflow, input) = variant(n);
                (n, house.try_enqueue(workflow, input, &key).await)
            });
        }
        let answers: Vec<(usize, Result<RunAccepted, EngineError>)> = asking.join_all().await;
        let mut created = answers.iter().filter_map(|(n, answer)| {
            let answer = answer.as_ref().ok()?;
            answer.created.then(|| (*n, answer.run_id.clone()))
        });
        let (first, run) = created.next().unwrap();
        assert_eq!(created.next(), None, "exactly one is created");
        for (n, answer) in &answers {
            match answer {
                Ok(accepted) => {
                    assert_eq!(variant(*n), variant(first), "equal requests alone");
                    assert_eq!(accepted.run_id, run);
                }
                Err(error) => {
                    assert_ne!(variant(*n), variant(first), "{error}");
                    assert_eq!(error.code().as_str(), "WORKFLOW_IDEMPOTENCY_CONFLICT");
                }
            }
        }
        houses[0].check(&run).await;
    }
}

async fn b122_b123_unequal_requests_with_one_key_make_one_run_and_conflicts(ground: Ground) {
    b123(&ground).await;
}

/// B122: the first client goes away in the middle of its request. The others share its run,
/// or make the one that there is.
async fn b122_gone(ground: &Ground) {
    let houses = street(ground).await;
    for round in 0..12_u64 {
        let key = format!("k{round}");
        let (house, own) = (Arc::clone(&houses[0]), key.clone());
        let first = tokio::spawn(async move {
            let _ = house.try_enqueue("work", json!({}), &own).await;
        });
        tokio::time::sleep(Duration::from_micros(round * 400)).await;
        first.abort();
        let mut asking = JoinSet::new();
        for n in 0..20 {
            let (house, key) = (Arc::clone(&houses[n % 4]), key.clone());
            asking.spawn(async move { house.enqueue("work", json!({}), &key).await });
        }
        let answers = asking.join_all().await;
        let runs: BTreeSet<&RunId> = answers.iter().map(|answer| &answer.run_id).collect();
        assert_eq!(runs.len(), 1);
        let created = answers.iter().filter(|answer| answer.created).count();
        assert!(created <= 1);
        houses[0].check(&answers[0].run_id).await;
    }
}

async fn b122_a_client_that_goes_away_leaves_one_run_for_the_others(ground: Ground) {
    b122_gone(&ground).await;
}

/// B123: whatever became of the first run, its key means it: after its end, after a newer
/// revision, after an archive. Another tenant's key is another key.
async fn b123_later(ground: &Ground) {
    let houses = street(ground).await;
    let house = &houses[0];
    let first = house.enqueue("work", variant(0).1, "k").await;
    let workers = house.workers("w");
    assert_eq!(house.ended(&first.run_id).await, RunStatus::Succeeded);
    let again = house.enqueue("work", variant(3).1, "k").await;
    assert_eq!((again.created, &again.run_id), (false, &first.run_id));
    assert_eq!(again.status, RunStatus::Succeeded);
    let graph = shapes::line(&[ACTION, ACTION], &policy(1, &[], 0));
    let id = house.republish("work", &graph).await;
    let again = houses[1].enqueue("work", variant(0).1, "k").await;
    assert_eq!((again.created, again.workflow_revision), (false, 1));
    let newer = house.enqueue("work", variant(0).1, "newer").await;
    assert_eq!((newer.created, newer.workflow_revision), (true, 2));
    let version = house.store.workflow(&by().tenant, &by_key("work")).await;
    let version = version.unwrap().row.draft_version;
    house.store.archive(&by(), &id, version).await.unwrap();
    let again = houses[2].enqueue("work", variant(0).1, "k").await;
    assert_eq!((again.created, &again.run_id), (false, &first.run_id));
    let conflict = house
        .try_enqueue("work", variant(1).1, "k")
        .await
        .unwrap_err();
    assert_eq!(conflict.code().as_str(), "WORKFLOW_IDEMPOTENCY_CONFLICT");
    let tenant = newcomer(house, "another").await;
    house.publish_for(&tenant, "work", &graph).await;
    let other = house.enqueue_for(&tenant, "work", variant(0).1, "k").await;
    assert!(other.created && other.run_id != first.run_id);
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn b123_a_key_means_its_run_whatever_became_of_it(ground: Ground) {
    b123_later(&ground).await;
}

async fn newcomer(house: &House, name: &str) -> TenantId {
    let tenant = TenantId::from(name);
    let owner = Account {
        account_id: "a1".to_owned(),
        display_name: "Bea".to_owned(),
        email: None,
        role: "owner".to_owned(),
    };
    house.store.ensure_tenant(&tenant, &owner).await.unwrap();
    tenant
}

impl House {
    /// Saves another graph and publishes it; gives the workflow's id.
    async fn republish(&self, key: &str, graph: &Value) -> String {
        let detail = self.store.workflow(&by().tenant, &by_key(key)).await;
        let row = detail.unwrap().row;
        let save = Save {
            workflow_id: row.workflow_id.clone(),
            expected: row.draft_version,
            change: DraftChange {
                graph: Some(text_of(graph)),
                name: None,
                description: None,
            },
        };
        let saved = self.store.save_draft(&by(), save).await.unwrap();
        self.publish_draft(&by().tenant, &row.workflow_id, saved.draft_version, graph)
            .await;
        row.workflow_id
    }
}

/// B125: 50 saves, 50 enqueues and 50 cancellations at once over several processes, from the
/// very first act of a new tenant on. The chain has no gap and no fork.
async fn b125(ground: &Ground) {
    let houses = street(ground).await;
    let tenant = newcomer(&houses[0], "fresh").await;
    let graph = shapes::line(&[ACTION], &policy(1, &[], 0));
    // The first entries of the chain race each other.
    let mut creating = JoinSet::new();
    for (n, house) in houses.iter().enumerate() {
        let (house, tenant, graph) = (Arc::clone(house), tenant.clone(), graph.clone());
        creating.spawn(async move { house.publish_for(&tenant, &format!("w{n}"), &graph).await });
    }
    let ids = creating.join_all().await;
    let mut acting = JoinSet::new();
    for n in 0..50_usize {
        let house = Arc::clone(&houses[n % 4]);
        let (tenant, id, graph) = (tenant.clone(), ids[n % 4].clone(), graph.clone());
        acting.spawn(async move {
            let by = of(&tenant);
            let save = Save {
                workflow_id: id,
                expected: 1 + n as u64 / 25,
                change: DraftChange {
                    graph: Some(text_of(&graph)),
                    name: Some(format!("name {n}")),
                    description: None,
                },
            };
            match house.store.save_draft(&by, save).await {
                Ok(_) | Err(StoreError::DraftConflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            let request = Enqueue {
                workflow_key: format!("w{}", n % 4).as_str().into(),
                input: json!({}),
                idempotency_key: format!("k{}", n / 2),
            };
            let accepted = house.engine.enqueue(&by, &permissions(), request).await;
            match accepted {
                Ok(accepted) => {
                    let cancelled = house.engine.cancel(&by, &accepted.run_id, None).await;
                    assert!(cancelled.is_ok(), "{cancelled:?}");
                }
                Err(error) => {
                    assert_eq!(error.code().as_str(), "WORKFLOW_IDEMPOTENCY_CONFLICT");
                }
            }
        });
    }
    acting.join_all().await;
    let store = &houses[0].store;
    let head = store.audit_head(&tenant).await.unwrap();
    let entries = store.audit_after(&tenant, 0, 10_000).await.unwrap();
    assert_eq!(entries.len() as u64, head.sequence);
    // Four created and published, 25 keys enqueued and cancelled, and some saves.
    assert!(entries.len() > 8 + 50, "{}", entries.len());
    let mut previous = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry["sequence"], at + 1);
        assert!(previous.insert(entry["previousHash"].to_string()), "a fork");
    }
    let verified = audit::verify(&entries, Some(head), None);
    assert!(verified.valid, "{verified:?}");
}

async fn b125_the_chain_never_forks(ground: Ground) {
    b125(&ground).await;
}

/// What one client saw.
#[derive(Default)]
struct Seen {
    answers: AtomicUsize,
    faults: AtomicUsize,
    slowest_ms: AtomicUsize,
}

impl Seen {
    fn note(&self, status: u16, begun: Instant, allowed: &[u16]) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        let took = usize::try_from(begun.elapsed().as_millis()).unwrap();
        self.slowest_ms.fetch_max(took, Ordering::Relaxed);
        if !allowed.contains(&status) {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// B120: two tabs save one draft, requests come in, workers renew short leases, readers follow
/// streams, all on one SQLite file: nobody is told of a locked database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b120_nobody_hears_of_a_locked_database() {
    let ground = Ground::sqlite();
    let house = ground.open(&[]).await;
    house.agent(shapes::echo()).await;
    let graph = shapes::line(&[ChildKind::Agent], &policy(1, &[], 0));
    let id = house.publish("work", &graph).await;
    let may = [
        "workflows.runs.read",
        "workflows.runs.execute",
        "workflows.runs.cancel",
        "workflows.definitions.manage",
        "workflows.definitions.read",
    ];
    served::allow(&house, "k1", &may).await;
    drop(house);
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = Served::start_logging(
        ground.folder(),
        &[
            ("SLUICEGATE_LEASE_MS", "300"),
            ("SLUICEGATE_RENEW_MS", "50"),
        ],
        log.reopen().unwrap(),
    );
    let over = AtomicBool::new(false);
    let go_on = || !over.load(Ordering::Relaxed);
    let (saves, runs, streams) = (Seen::default(), Seen::default(), Seen::default());
    std::thread::scope(|scope| {
        for tab in 0..2 {
            let (server, saves, graph, id) = (&server, &saves, &graph, &id);
            scope.spawn(move || {
                let mut version = 1;
                for n in 0.. {
                    if !go_on() {
                        break;
                    }
                    let body = json!({"workflowId": id, "expectedRevision": version,
                                      "graph": graph, "name": format!("{tab} {n}")});
                    let begun = Instant::now();
                    let (status, answer) = server.post("/api/workflows/update", &body);
                    saves.note(status, begun, &[200, 409]);
                    version = answer["draftVersion"].as_u64().unwrap_or(version);
                }
            });
        }
        for client in 0..4 {
            let (server, runs, streams) = (&server, &runs, &streams);
            scope.spawn(move || {
                for n in 0.. {
                    if !go_on() {
                        break;
                    }
                    let input = if n % 3 == 0 { "slow" } else { "hello" };
                    let body = json!({"workflowKey": "work", "input": input,
                                      "idempotencyKey": format!("{client} {n}")});
                    let begun = Instant::now();
                    let (status, answer) = server.post("/api/workflow-runs", &body);
                    runs.note(status, begun, &[202]);
                    let run = answer["runId"].as_str().unwrap_or_default().to_owned();
                    let path = format!("/api/workflow-runs/events?runId={run}&afterSequence=0");
                    let begun = Instant::now();
                    streams.note(server.read_whole(&path), begun, &[200]);
                    if n % 5 == 0 {
                        let body = json!({"runId": run});
                        let (status, _) = server.post("/api/workflow-runs/cancel", &body);
                        runs.note(status, Instant::now(), &[200]);
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_secs(5));
        over.store(true, Ordering::Relaxed);
    });
    for (name, seen) in [("saves", &saves), ("runs", &runs), ("streams", &streams)] {
        let answers = seen.answers.load(Ordering::Relaxed);
        assert!(answers > 10, "{name}: {answers}");
        assert_eq!(seen.faults.load(Ordering::Relaxed), 0, "{name}");
    }
    assert!(saves.slowest_ms.load(Ordering::Relaxed) < 5_000);
    assert_eq!(server.terminate(), Some(0));
    let mut said = String::new();
    log.reopen().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains("locked"), "{said}");
    assert!(!said.contains("ERROR"), "{said}");
}

on_both!(
    b122_b123_unequal_requests_with_one_key_make_one_run_and_conflicts,
    b122_a_client_that_goes_away_leaves_one_run_for_the_others,
    b123_a_key_means_its_run_whatever_became_of_it,
    b125_the_chain_never_forks,
);
