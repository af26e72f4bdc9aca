//! What is PostgreSQL's own (server.md §§1, 5; run-machine.md W5): many processes on one
//! database, its clock, and connections that break.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/faulty.rs"]
mod faulty;
#[path = "harness/hand.rs"]
mod hand;
mod harness;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use faulty::{Faulty, Lose};
use harness::cluster::{self, Cluster, execute};
use harness::ground::Ground;
use harness::{House, by, sample, settings};
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::run::RunStatus;
use sluicegate_core::time::{Instant, Millis};
use sluicegate_core::value::Value;
use sluicegate_server::clock::Clock;
use sluicegate_server::store::StoreError;
use sluicegate_server::store::postgres::{Address, PostgresStore};
use sluicegate_server::worker::{WorkerSettings, Workers};

async fn open(url: &str) -> Result<PostgresStore, StoreError> {
    let address: Address = url.parse().unwrap();
    PostgresStore::open(&address, Clock::start()).await
}

#[tokio::test]
async fn processes_that_start_at_the_same_moment_migrate_once() {
    let url = Cluster::shared().database().await;
    let opening: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url).await.map(|_| ()) })
        })
        .collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    open(&url).await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let url = Cluster::shared().database().await;
    drop(open(&url).await.unwrap());
    execute(&url, "insert into schema_migrations (number) values (999)").await;
    let refused = open(&url).await.err();
    assert!(
        matches!(refused, Some(StoreError::TooNew { found: 999, .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_append_only_is_refused_by_the_database_too() {
    let url = Cluster::shared().database().await;
    drop(open(&url).await.unwrap());
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let pool = sqlx::PgPool::connect_with(options).await.unwrap();
    let fill = "insert into workflow_audit_events values ('t', 1, 'a', 'run', 'r', '{}');
        insert into workflow_run_events values ('t', 'r', 1, 'run.queued', 1, '{}', 1, null);";
    sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    for change in [
        "update workflow_audit_events set action = 'b'",
        "delete from workflow_audit_events",
        "truncate workflow_audit_events",
        "update workflow_run_events set event_type = 'b'",
        "delete from workflow_run_events",
        "truncate workflow_run_events",
    ] {
        let refused = sqlx::raw_sql(change).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
}

/// input → output: a run that needs nobody but a worker.
fn plain() -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "out", "type": "output", "ports": {"input": "std.any"}}
        ],
        "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"},
                   "target": {"nodeId": "out", "port": "input"}}],
        "schemas": {}, "layout": {}
    })
}

const HOUR: u64 = 3_600_000;

/// A process whose clock is wrong by so much.
async fn astray(ground: &Ground, wrong: impl Fn(u64) -> u64) -> House {
    let address: Address = ground.url().unwrap().parse().unwrap();
    let right = address.clock().await.unwrap().now();
    let clock = Clock::at(Instant(wrong(right.0)));
    let store = PostgresStore::open(&address, clock).await.unwrap();
    House::furnish(store, clock, ground.folder(), Vec::new()).await
}

#[tokio::test]
async fn w5_leases_end_by_the_databases_clock_however_wrong_a_processs_is() {
    let ground = Ground::postgres().await;
    let ahead = astray(&ground, |now| now + HOUR).await;
    let behind = astray(&ground, |now| now - HOUR).await;
    ahead.publish("plain", &plain()).await;
    behind.enqueue("plain", json!(1), "a").await;
    // Held for a minute, and for everybody: an hour ahead is not beyond its end.
    let held = hand::claim(&behind, "w", 60_000, 1).await.remove(0);
    assert!(ahead.store.due(1).await.unwrap().is_empty());
    assert!(behind.store.due(1).await.unwrap().is_empty());
    let until = behind.store.renew(&held.held(), 60_000).await.unwrap();
    let now = address_of(&ground).clock().await.unwrap().now();
    assert!(until.since(now).0 > 50_000 && until.since(now).0 <= 60_000);
    // Held for a moment, and then for nobody: an hour behind is not before its end.
    behind.store.renew(&held.held(), 30).await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    let due = behind.store.due(1).await.unwrap().remove(0);
    assert!(due.over.is_some());
    let taken = hand::take(&behind, due, "w2", 60_000).await.unwrap();
    assert_eq!(taken.fence, held.fence + 1);
    assert!(ahead.store.due(1).await.unwrap().is_empty());
}

fn address_of(ground: &Ground) -> Address {
    ground.url().unwrap().parse().unwrap()
}

#[tokio::test]
async fn w5_a_process_takes_its_clock_from_the_database() {
    let ground = Ground::postgres().await;
    let clock = address_of(&ground).clock().await.unwrap();
    let wall = Clock::start();
    // The same machine, so the same time.
    assert!(clock.now().since(wall.now()).0 < 2_000 && wall.now().since(clock.now()).0 < 2_000);
}

/// Workers that would look for work by themselves once a minute.
fn sleepy(house: &House) -> Workers {
    let settings = WorkerSettings {
        poll: Duration::from_secs(60),
        lease: Millis(30_000),
        renew: Millis(10_000),
        ..settings("sleepy")
    };
    Workers::start(Arc::clone(&house.engine), settings)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_does_wakes_the_workers_and_streams_of_the_others() {
    let ground = Ground::postgres().await;
    let (asking, working) = (ground.house().await, ground.house().await);
    asking.publish("plain", &plain()).await;
    let workers = sleepy(&working);
    // Until the listeners listen, a hint may be missed.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for n in 0..3 {
        let begun = Moment::now();
        let accepted = asking.enqueue("plain", json!(n), &format!("k{n}")).await;
        let mut ear = asking.hub.listen(&accepted.run_id);
        while !asking.status(&accepted.run_id).await.is_terminal() {
            let heard = tokio::time::timeout(Duration::from_secs(20), ear.moved()).await;
            heard.expect("the stream was not woken");
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the workers were not woken"
        );
        asking.check(&accepted.run_id).await;
    }
    assert!(workers.stop(Duration::from_secs(5)).await);
}

/// A house behind a way that loses what it is told to.
async fn behind_a_faulty_way(folder: &Path) -> (House, Faulty) {
    let cluster = Cluster::shared();
    let url = cluster.database().await;
    let name = url.rsplit('/').next().unwrap();
    let way = Faulty::to(cluster.port()).await;
    let house = House::open_shared(&cluster::url(way.port, name), folder, Vec::new()).await;
    house.publish("plain", &plain()).await;
    (house, way)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_the_database_did_not_confirm_is_never_answered_as_done() {
    let folder = tempfile::tempdir().unwrap();
    let (house, way) = behind_a_faulty_way(folder.path()).await;
    for (lost, stood) in [(Lose::Wish, false), (Lose::Answer, true)] {
        let key = format!("{lost:?}");
        let before = house.store.audit_head(&by().tenant).await.unwrap();
        way.lose(lost);
        let unknown = house.try_enqueue("plain", json!(1), &key).await;
        assert_eq!(unknown.unwrap_err().code(), Code::Unavailable);
        assert!(way.has_lost());
        let after = house.store.audit_head(&by().tenant).await.unwrap();
        assert_eq!(after.sequence - before.sequence, u64::from(stood));
        // The same request again finds out, and there is one run.
        let accepted = house.enqueue("plain", json!(1), &key).await;
        assert_eq!(accepted.created, !stood);
        house.check(&accepted.run_id).await;
        // So with a decision of a stored run.
        way.lose(lost);
        let unknown = house.engine.cancel(&by(), &accepted.run_id, None).await;
        assert_eq!(unknown.unwrap_err().code(), Code::Unavailable);
        let status = house.status(&accepted.run_id).await;
        assert_eq!(status == RunStatus::Cancelled, stood);
        let again = house.engine.cancel(&by(), &accepted.run_id, None).await;
        assert_eq!(again.unwrap().status, RunStatus::Cancelled);
        let types = house.types(&accepted.run_id).await;
        let ends = types.iter().filter(|word| *word == "run.cancelled");
        assert_eq!(ends.count(), 1);
        house.check(&accepted.run_id).await;
    }
}

/// Workers that soon find what a dead connection left.
fn hasty(house: &House) -> Workers {
    Workers::start(Arc::clone(&house.engine), settings("hasty"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_all_the_time_lose_nothing_and_double_nothing() {
    let ground = Ground::postgres().await;
    let house = ground.house().await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let workers = hasty(&house);
    let mut runs = Vec::new();
    for n in 0..12 {
        let mut input = sample("expenses.review/approved.input.json");
        input["claimId"] = json!(format!("claim-{n}"));
        let run = house
            .enqueue("expenses.review", input, &format!("k{n}"))
            .await;
        runs.push(run.run_id);
    }
    let name = ground.url().unwrap().rsplit('/').next().unwrap().to_owned();
    let cut = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'sluicegate' and datname = '{name}'"
    );
    for _ in 0..25 {
        execute(&Cluster::shared().url("postgres"), &cut).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    for (n, run) in runs.iter().enumerate() {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        house.check(run).await;
        // An action that found no database often enough has failed; one that says that it
        // succeeded did it once.
        let detail = house.store.run_detail(&by().tenant, run).await.unwrap();
        let approved = detail.nodes.iter().any(|node| {
            node.node_id == "approve" && node.outcome_port.as_deref() == Some("success")
        });
        let claim = format!("claim-{n}");
        let mutations = house.claims.claim_mutations(&by().tenant, &claim).await;
        let mutations = mutations.unwrap();
        assert!(
            mutations == 1 || (mutations == 0 && !approved),
            "{claim}: {mutations}"
        );
    }
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b069_a_database_that_was_away_is_used_again_without_a_restart() {
    let cluster = Cluster::begin();
    let folder = tempfile::tempdir().unwrap();
    let url = cluster.database().await;
    let house = House::open_shared(&url, folder.path(), Vec::new()).await;
    house.publish("plain", &plain()).await;
    let workers = hasty(&house);
    let first = house.enqueue("plain", json!(1), "a").await.run_id;
    house.ended(&first).await;
    cluster.stop();
    let begun = Moment::now();
    let refused = house.try_enqueue("plain", json!(2), "b").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(house.store.ready().await.is_err());
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.start();
    let begun = Moment::now();
    let second = loop {
        match house.try_enqueue("plain", json!(2), "b").await {
            Ok(accepted) => break accepted.run_id,
            Err(_) if begun.elapsed() < Duration::from_secs(10) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("it is not used again: {error}"),
        }
    };
    assert_eq!(house.ended(&second).await, RunStatus::Succeeded);
    house.check(&first).await;
    house.check(&second).await;
    assert!(workers.stop(Duration::from_secs(5)).await);
}
