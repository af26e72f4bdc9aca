//! Leases, fences and expected sequences on real SQLite (run-machine.md §7).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;

use std::time::Duration;

use harness::{House, by};
use serde_json::json;
use sluicegate_core::ids::{TenantId, WorkerId};
use sluicegate_core::run::{Rows, RunStatus};
use sluicegate_server::store::{Account, Claim, Claimed, Commit, Guard, Parked, StoreError};

/// input → output: a run that needs nobody but a worker.
fn plain() -> sluicegate_core::value::Value {
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

async fn house(folder: &std::path::Path) -> House {
    let house = House::open(folder).await;
    house.publish("plain", &plain()).await;
    house
}

fn claim(worker: &str, lease_ms: u64, limit: u32) -> Claim {
    Claim {
        worker_id: WorkerId::from(worker),
        lease_ms,
        limit,
    }
}

/// A commit of nothing but the run's own row, to see what its guard finds.
async fn touch(house: &House, held: &Claimed, sequence: u64) -> Result<u64, StoreError> {
    let detail = house
        .store
        .run_detail(&held.tenant, &held.run_id)
        .await
        .unwrap();
    let draft = sluicegate_core::audit::Draft {
        tenant_id: held.tenant.clone(),
        actor: by().actor,
        origin: Some(by().origin),
        action: "node.ready".to_owned(),
        subject: sluicegate_core::audit::Subject {
            kind: "run".to_owned(),
            id: held.run_id.to_string(),
        },
        metadata: json!({}),
        occurred_at: held.expires_at,
    };
    house
        .store
        .commit(Commit {
            tenant: held.tenant.clone(),
            run_id: held.run_id.clone(),
            guard: Guard::Owner {
                token: held.token.clone(),
                fence: held.fence,
                sequence,
            },
            events: Vec::new(),
            rows: Rows {
                run: Some(detail.row.row),
                ..Rows::default()
            },
            payloads: Vec::new(),
            audit: draft,
            hand_back: false,
        })
        .await
}

#[tokio::test]
async fn w1_w2_a_worker_that_lost_its_lease_writes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    house.enqueue("plain", json!(1), "a").await;
    let first = house
        .store
        .claim(&claim("w", 30, 1))
        .await
        .unwrap()
        .remove(0);
    assert!(touch(&house, &first, 1).await.is_ok());
    assert_eq!(touch(&house, &first, 2).await, Err(StoreError::Stale));
    // Expiry alone refuses nothing (W2).
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(touch(&house, &first, 1).await.is_ok());
    // The same name, another claim: only the token counts.
    let second = house
        .store
        .claim(&claim("w", 60_000, 1))
        .await
        .unwrap()
        .remove(0);
    assert!(second.fence > first.fence);
    assert_eq!(touch(&house, &first, 1).await, Err(StoreError::Fenced));
    assert_eq!(
        house.store.renew(&first, 1_000).await,
        Err(StoreError::Fenced)
    );
    house.store.release(&first).await.unwrap();
    assert!(touch(&house, &second, 1).await.is_ok());
    let (prior, _) = second.over.unwrap();
    assert_eq!(prior.fence, first.fence);
}

#[tokio::test]
async fn w3_a_held_run_is_not_claimed_twice_and_a_released_one_is_not_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    house.enqueue("plain", json!(1), "a").await;
    let held = house.store.claim(&claim("a", 60_000, 8)).await.unwrap();
    assert_eq!(held.len(), 1);
    assert!(
        house
            .store
            .claim(&claim("b", 60_000, 8))
            .await
            .unwrap()
            .is_empty()
    );
    house.store.release(&held[0]).await.unwrap();
    let again = house.store.claim(&claim("b", 60_000, 8)).await.unwrap();
    assert_eq!(again[0].over, None);
    assert!(again[0].fence > held[0].fence);
}

#[tokio::test]
async fn w6_leases_found_at_start_are_void_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    house.enqueue("plain", json!(1), "a").await;
    let held = house
        .store
        .claim(&claim("dead", 3_600_000, 1))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(house.store.void_leases().await.unwrap(), 1);
    assert_eq!(
        house.store.renew(&held, 1_000).await,
        Err(StoreError::Fenced)
    );
    let workers = house.workers("alive");
    assert_eq!(house.ended(&held.run_id).await, RunStatus::Succeeded);
    house.check(&held.run_id).await;
    let events = house.events(&held.run_id).await;
    let recovered = events
        .iter()
        .find(|event| event.event_type == "run.recovered")
        .unwrap();
    assert_eq!(recovered.payload["reason"], "owner-gone");
    assert_eq!(recovered.payload["prior"]["workerId"], "dead");
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn w9_a_tenant_with_many_runs_does_not_starve_another() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    let owner = Account {
        account_id: "a1".to_owned(),
        display_name: "Bea".to_owned(),
        email: None,
        role: "owner".to_owned(),
    };
    let other = TenantId::from("zebra");
    house.store.ensure_tenant(&other, &owner).await.unwrap();
    for n in 0..6 {
        house.enqueue("plain", json!(n), &format!("k{n}")).await;
    }
    house.publish_for(&other, "plain", &plain()).await;
    house.enqueue_for(&other, "plain", json!(0), "k").await;
    let claimed = house.store.claim(&claim("w", 60_000, 2)).await.unwrap();
    let tenants: Vec<_> = claimed.iter().map(|held| held.tenant.as_str()).collect();
    assert_eq!(tenants, ["default", "zebra"]);
    // One claim at a time keeps the turn as well.
    house.enqueue_for(&other, "plain", json!(1), "k2").await;
    let mut order = Vec::new();
    for _ in 0..3 {
        let held = house.store.claim(&claim("w", 60_000, 1)).await.unwrap();
        order.push(held[0].tenant.to_string());
    }
    assert_eq!(order, ["default", "zebra", "default"]);
}

#[tokio::test]
async fn a9_a_parked_run_is_left_alone_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    let run = house.enqueue("plain", json!(1), "a").await.run_id;
    let code = sluicegate_core::code::Code::WorkflowEventSchemaUnsupported;
    let parked = Parked { code, sequence: 7 };
    house.store.park(&by().tenant, &run, &parked).await.unwrap();
    assert!(
        house
            .store
            .claim(&claim("w", 1_000, 1))
            .await
            .unwrap()
            .is_empty()
    );
    let row = house.store.run_row(&by().tenant, &run).await.unwrap();
    assert_eq!(row.parked, Some(parked));
    let refused = house.engine.cancel(&by(), &run, None).await.unwrap_err();
    assert_eq!(refused.code(), code);
}

#[tokio::test]
async fn a_refused_commit_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    let run = house.enqueue("plain", json!(1), "a").await.run_id;
    let head = house.store.audit_head(&by().tenant).await.unwrap();
    let held = house
        .store
        .claim(&claim("w", 60_000, 1))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(touch(&house, &held, 9).await, Err(StoreError::Stale));
    assert_eq!(house.store.audit_head(&by().tenant).await.unwrap(), head);
    assert_eq!(house.events(&run).await.len(), 1);
}

/// Changes the database behind the store's back, as damage would.
async fn damage(folder: &std::path::Path, sql: &'static str) {
    use sqlx::{ConnectOptions, Connection};
    let options =
        sqlx::sqlite::SqliteConnectOptions::new().filename(folder.join("sluicegate.sqlite"));
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a9_a_log_that_cannot_be_folded_parks_its_run_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path()).await;
    let hurt = house.enqueue("plain", json!(1), "a").await.run_id;
    damage(
        folder.path(),
        "drop trigger workflow_run_events_stay;
         update workflow_run_events set event_type = 'run.imagined'",
    )
    .await;
    let well = house.enqueue("plain", json!(2), "b").await.run_id;
    let workers = house.workers("w");
    assert_eq!(house.ended(&well).await, RunStatus::Succeeded);
    let row = house.store.run_row(&by().tenant, &hurt).await.unwrap();
    let code = sluicegate_core::code::Code::WorkflowEventSchemaUnsupported;
    assert_eq!(row.parked, Some(Parked { code, sequence: 1 }));
    assert_eq!(row.row.status, RunStatus::Queued);
    assert_eq!(house.events(&hurt).await.len(), 1, "no event is added");
    assert!(workers.stop(Duration::from_secs(5)).await);
}
