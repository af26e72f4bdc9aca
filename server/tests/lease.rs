//! Leases, fences and expected sequences on both databases (run-machine.md §7).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/hand.rs"]
mod hand;
mod harness;

use std::time::Duration;

use hand::{Taken, claim, take, touch};
use harness::ground::Ground;
use harness::{House, by, on_both};
use serde_json::json;
use sluicegate_core::ids::TenantId;
use sluicegate_core::run::RunStatus;
use sluicegate_server::store::{Account, Committed, Parked, StoreError};

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

async fn house(ground: &Ground) -> House {
    let house = ground.house().await;
    house.publish("plain", &plain()).await;
    house
}

/// A commit of the lease's owner.
async fn own(house: &House, held: &Taken, sequence: u64) -> Result<Committed, StoreError> {
    touch(house, held, held.owns(sequence)).await
}

async fn w1_w2_a_worker_that_lost_its_lease_writes_nothing_more(ground: Ground) {
    let house = house(&ground).await;
    house.enqueue("plain", json!(1), "a").await;
    let first = claim(&house, "w", 30, 1).await.remove(0);
    assert!(own(&house, &first, 1).await.is_ok());
    assert_eq!(own(&house, &first, 2).await, Err(StoreError::Stale));
    // Expiry alone refuses nothing (W2).
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(own(&house, &first, 1).await.is_ok());
    // The same name, another claim: only the token counts.
    let due = house.store.due(1).await.unwrap().remove(0);
    let second = take(&house, due.clone(), "w", 60_000).await.unwrap();
    assert!(second.fence > first.fence);
    assert_eq!(own(&house, &first, 1).await, Err(StoreError::Fenced));
    assert_eq!(
        house.store.renew(&first.held(), 1_000).await,
        Err(StoreError::Fenced)
    );
    house.store.release(&first.held()).await.unwrap();
    assert!(own(&house, &second, 1).await.is_ok());
    let (prior, _) = due.over.clone().unwrap();
    assert_eq!(prior.fence, first.fence);
    // Who found it too comes too late.
    let late = take(&house, due.clone(), "x", 60_000).await;
    assert_eq!(late, Err(StoreError::Fenced));
}

async fn w3_a_held_run_is_not_claimed_twice_and_a_released_one_is_not_recovered(ground: Ground) {
    let house = house(&ground).await;
    house.enqueue("plain", json!(1), "a").await;
    let held = claim(&house, "a", 60_000, 8).await;
    assert_eq!(held.len(), 1);
    assert!(claim(&house, "b", 60_000, 8).await.is_empty());
    house.store.release(&held[0].held()).await.unwrap();
    let again = house.store.due(8).await.unwrap();
    assert_eq!(again[0].over, None);
    assert_eq!(again[0].fence, held[0].fence);
}

async fn w6_leases_found_at_start_are_void_at_once(ground: Ground) {
    let house = house(&ground).await;
    house.enqueue("plain", json!(1), "a").await;
    let held = claim(&house, "dead", 3_600_000, 1).await.remove(0);
    assert_eq!(house.store.void_leases().await.unwrap(), 1);
    assert_eq!(
        house.store.renew(&held.held(), 1_000).await,
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

async fn w9_a_tenant_with_many_runs_does_not_starve_another(ground: Ground) {
    let house = house(&ground).await;
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
    let claimed = claim(&house, "w", 60_000, 2).await;
    let tenants: Vec<_> = claimed.iter().map(|held| held.tenant.as_str()).collect();
    assert_eq!(tenants, ["default", "zebra"]);
    // One claim at a time keeps the turn as well.
    house.enqueue_for(&other, "plain", json!(1), "k2").await;
    let mut order = Vec::new();
    for _ in 0..3 {
        let held = claim(&house, "w", 60_000, 1).await;
        order.push(held[0].tenant.to_string());
    }
    assert_eq!(order, ["default", "zebra", "default"]);
}

async fn a9_a_parked_run_is_left_alone_and_says_why(ground: Ground) {
    let house = house(&ground).await;
    let run = house.enqueue("plain", json!(1), "a").await.run_id;
    let code = sluicegate_core::code::Code::WorkflowEventSchemaUnsupported;
    let parked = Parked { code, sequence: 7 };
    house.store.park(&by().tenant, &run, &parked).await.unwrap();
    assert!(claim(&house, "w", 1_000, 1).await.is_empty());
    let row = house.store.run_row(&by().tenant, &run).await.unwrap();
    assert_eq!(row.parked, Some(parked));
    let refused = house.engine.cancel(&by(), &run, None).await.unwrap_err();
    assert_eq!(refused.code(), code);
}

async fn a_refused_commit_leaves_nothing_behind(ground: Ground) {
    let house = house(&ground).await;
    let run = house.enqueue("plain", json!(1), "a").await.run_id;
    let held = claim(&house, "w", 60_000, 1).await.remove(0);
    let head = house.store.audit_head(&by().tenant).await.unwrap();
    assert_eq!(own(&house, &held, 9).await, Err(StoreError::Stale));
    assert_eq!(house.store.audit_head(&by().tenant).await.unwrap(), head);
    assert_eq!(house.events(&run).await.len(), 1);
}

async fn a9_a_log_that_cannot_be_folded_parks_its_run_and_no_other(ground: Ground) {
    let house = house(&ground).await;
    let hurt = house.enqueue("plain", json!(1), "a").await.run_id;
    let sql = "update workflow_run_events set event_type = 'run.imagined'";
    ground.damage(sql).await;
    let well = house.enqueue("plain", json!(2), "b").await.run_id;
    let workers = house.workers("w");
    assert_eq!(house.ended(&well).await, RunStatus::Succeeded);
    let mut row = house.store.run_row(&by().tenant, &hurt).await.unwrap();
    while row.parked.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        row = house.store.run_row(&by().tenant, &hurt).await.unwrap();
    }
    let code = sluicegate_core::code::Code::WorkflowEventSchemaUnsupported;
    assert_eq!(row.parked, Some(Parked { code, sequence: 1 }));
    assert_eq!(row.row.status, RunStatus::Queued);
    assert_eq!(house.events(&hurt).await.len(), 1, "no event is added");
    assert!(workers.stop(Duration::from_secs(5)).await);
}

on_both! {
    w1_w2_a_worker_that_lost_its_lease_writes_nothing_more,
    w3_a_held_run_is_not_claimed_twice_and_a_released_one_is_not_recovered,
    w6_leases_found_at_start_are_void_at_once,
    w9_a_tenant_with_many_runs_does_not_starve_another,
    a9_a_parked_run_is_left_alone_and_says_why,
    a_refused_commit_leaves_nothing_behind,
    a9_a_log_that_cannot_be_folded_parks_its_run_and_no_other,
}
