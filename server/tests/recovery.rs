//! Recovery by the seed's table, for agents and for actions (seed A "Durable execution and
//! recovery"; run-machine.md §6, W8, A5, A7, A9, C3). A worker by hand leaves each run where
//! it would have died.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
#[path = "harness/hand.rs"]
mod hand;
mod harness;
#[path = "harness/shapes.rs"]
mod shapes;

use std::sync::Arc;
use std::time::Duration;

use counting::{Business, policy};
use hand::Hand;
use harness::House;
use harness::ground::Ground;
use harness::on_both;
use serde_json::json;
use shapes::house;
use sluicegate_core::ids::{ChildId, RunId};
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::value::Value;
use sluicegate_server::store::{ChildCancelled, ChildStanding};
use sluicegate_server::worker::Workers;

const KINDS: [ChildKind; 2] = [ChildKind::Agent, ChildKind::Action];
/// A lease that is over as soon as it is looked at.
const BRIEF: u64 = 1;

async fn stop(workers: Workers) {
    assert!(workers.stop(Duration::from_secs(5)).await);
}

fn once() -> Value {
    policy(1, &[], 0)
}

fn input(kind: ChildKind) -> Value {
    match kind {
        ChildKind::Agent => json!("hello"),
        ChildKind::Action => json!({}),
    }
}

fn output(kind: ChildKind) -> Value {
    match kind {
        ChildKind::Agent => json!("> hello"),
        ChildKind::Action => json!({"done": true}),
    }
}

/// A run of one child that ended well after a takeover: one attempt, one child, the usage of
/// one, and an end that the log, the rows and the audit chain agree on.
async fn ended_well(house: &House, run: &RunId, executions: u64) {
    let workers = house.workers("alive");
    assert_eq!(house.ended(run).await, RunStatus::Succeeded);
    house.check(run).await;
    let events = house.events(run).await;
    let recovered = shapes::of_type(&events, "run.recovered");
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].payload["reason"], "lease-expired");
    assert_eq!(recovered[0].payload["prior"]["workerId"], "dead");
    assert_eq!(shapes::of_type(&events, "node.child.waiting").len(), 1);
    let settled = shapes::of_type(&events, "node.attempt.settled");
    let of_child = settled
        .iter()
        .filter(|event| event.payload["nodeId"] == "c1");
    assert_eq!(of_child.count(), 1);
    let children = house.children(run).await;
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(children[0].executions, executions);
    let row = house.row(run).await;
    match children[0].kind {
        ChildKind::Agent => assert_eq!(row.usage.total_tokens, 7, "U1: counted once"),
        ChildKind::Action => assert_eq!(row.usage.action_invocations, 1),
    }
    stop(workers).await;
}

async fn no_call_accepted(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    let key = dead.go_on().await.idempotency_key.unwrap().to_string();
    ended_well(&house, &run, 1).await;
    let started = house.named(&run, "node.attempt.started").await;
    let of_child = started.iter().find(|event| event.payload["nodeId"] == "c1");
    assert_eq!(of_child.unwrap().payload["idempotencyKey"], key.as_str());
    if kind == ChildKind::Action {
        assert_eq!(*business.asked.lock().unwrap(), [key], "the same key");
    }
}

async fn recovery_repeats_the_call_with_the_same_key_if_none_was_accepted(ground: Ground) {
    for kind in KINDS {
        no_call_accepted(&ground.another().await, kind).await;
    }
}

/// B059: the action's effect stands, its worker died; it is asked with the same key and does
/// nothing again.
async fn accepted_and_unknown(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    let key = dead.go_on().await.idempotency_key.unwrap().to_string();
    let child_id = dead.start_child().await;
    if kind == ChildKind::Action {
        let mut effects = business.effects.lock().unwrap();
        effects.insert(key.clone(), 1);
        business.asked.lock().unwrap().push(key.clone());
    }
    ended_well(&house, &run, 2).await;
    let children = house.children(&run).await;
    assert_eq!(children[0].child_id, child_id, "the same child");
    if kind == ChildKind::Action {
        assert_eq!(*business.asked.lock().unwrap(), [key.clone(), key.clone()]);
        let effects = business.effects.lock().unwrap().clone();
        assert_eq!(effects.into_iter().collect::<Vec<_>>(), [(key, 1)]);
    }
}

async fn b059_recovery_finds_the_child_that_accepted_the_key(ground: Ground) {
    for kind in KINDS {
        accepted_and_unknown(&ground.another().await, kind).await;
    }
}

/// The child ended, and nobody told the run: its stored end is the answer.
async fn ended_and_unknown(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    dead.go_on().await;
    let child_id = dead.start_child().await;
    assert!(dead.child_succeeds(&child_id, 1, &json!("stored")).await);
    ended_well_with(&house, &run, json!("stored")).await;
    assert!(business.asked.lock().unwrap().is_empty(), "never asked");
}

async fn ended_well_with(house: &House, run: &RunId, expected: Value) {
    let workers = house.workers("alive");
    assert_eq!(house.ended(run).await, RunStatus::Succeeded);
    house.check(run).await;
    let children = house.children(run).await;
    assert_eq!((children.len(), children[0].executions), (1, 1));
    let result = house.engine.result(&harness::by().tenant, run).await;
    let outputs = result.unwrap().outputs.unwrap();
    assert_eq!(outputs.values().collect::<Vec<_>>(), [&expected]);
    stop(workers).await;
}

async fn recovery_reads_the_stored_end_of_a_child_that_nobody_knows(ground: Ground) {
    for kind in KINDS {
        ended_and_unknown(&ground.another().await, kind).await;
    }
}

/// The child is known and goes on: exactly this one is observed, under its id.
async fn known_and_running(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    dead.go_on().await;
    let child_id = dead.accept_child().await;
    ended_well(&house, &run, 2).await;
    assert_eq!(house.children(&run).await[0].child_id, child_id);
    let result = house.engine.result(&harness::by().tenant, &run).await;
    let outputs = result.unwrap().outputs.unwrap();
    assert_eq!(outputs.values().next(), Some(&output(kind)));
    // W8: the older owner was shut out; what it has to say comes too late.
    assert!(!dead.child_succeeds(&child_id, 1, &json!("stale")).await);
    house.check(&run).await;
}

async fn w8_recovery_observes_the_exact_child_and_shuts_the_older_owner_out(ground: Ground) {
    for kind in KINDS {
        known_and_running(&ground.another().await, kind).await;
    }
}

/// B067: the child ends well after its run's worker lost the lease. The next owner reads that
/// end; there is no second child, and the usage counts once.
async fn b067_finished_without_owner(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    dead.go_on().await;
    let child_id = dead.accept_child().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(dead.child_succeeds(&child_id, 1, &json!("kept")).await);
    ended_well(&house, &run, 1).await;
    assert!(business.asked.lock().unwrap().is_empty());
}

async fn b067_a_result_that_outlived_its_worker_is_used(ground: Ground) {
    for kind in KINDS {
        b067_finished_without_owner(&ground.another().await, kind).await;
    }
}

/// What contradicts the run, and whether a cancellation was asked for before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Contradiction {
    /// The run names a child that nobody has.
    ChildMissing,
    /// The key is refused, and nobody asked for that.
    KeyBarred,
    /// The stored end of the child cannot be read.
    EndDamaged,
    /// The intent's input is gone.
    InputGone,
    /// The intent's input cannot be decrypted.
    InputDamaged,
}

async fn contradicted(ground: &Ground, kind: ChildKind, what: Contradiction, cancelled: bool) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    if let Contradiction::InputGone | Contradiction::InputDamaged = what {
        dead.go_on_with(|commit| {
            commit.payloads.retain_mut(|payload| {
                payload.bytes.reverse();
                what == Contradiction::InputDamaged
            });
        })
        .await;
    } else {
        dead.go_on().await;
    }
    match what {
        Contradiction::ChildMissing => dead.accepted(ChildId::from("nobody")).await,
        Contradiction::KeyBarred => {
            let barred = house.store.cancel_child(dead.intent()).await;
            assert_eq!(barred, Ok(ChildCancelled::Barred));
        }
        Contradiction::EndDamaged => {
            let child_id = dead.accept_child().await;
            dead.child_end_is_damaged(&child_id).await;
        }
        Contradiction::InputGone | Contradiction::InputDamaged => {}
    }
    if cancelled {
        let by = harness::by();
        house.engine.cancel(&by, &run, None).await.unwrap();
    }
    let workers = house.workers("alive");
    let status = house.ended(&run).await;
    let told = format!("{kind:?} {what:?}, cancelled: {cancelled}");
    house.check(&run).await;
    if cancelled {
        assert_eq!(status, RunStatus::Cancelled, "{told}");
    } else {
        assert_eq!(status, RunStatus::Failed, "{told}");
        let code = house.code(&run).await;
        assert_eq!(
            code.as_deref(),
            Some("WORKFLOW_RECOVERY_INCONSISTENT"),
            "{told}"
        );
    }
    assert!(
        business.asked.lock().unwrap().is_empty(),
        "{told}: nothing is guessed"
    );
    stop(workers).await;
}

async fn a9_contradictory_evidence_ends_the_run_and_nothing_is_guessed(ground: Ground) {
    for kind in KINDS {
        for what in [
            Contradiction::ChildMissing,
            Contradiction::KeyBarred,
            Contradiction::EndDamaged,
            Contradiction::InputGone,
            Contradiction::InputDamaged,
        ] {
            contradicted(&ground.another().await, kind, what, false).await;
        }
    }
}

async fn a9_contradictory_evidence_of_a_run_that_is_being_cancelled_lets_it_be_cancelled(
    ground: Ground,
) {
    for kind in KINDS {
        for what in [Contradiction::ChildMissing, Contradiction::EndDamaged] {
            contradicted(&ground.another().await, kind, what, true).await;
        }
    }
}

/// C3: the intent is durable and nobody knows a child. The key is kept as refused.
async fn c3_unknown(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    dead.go_on().await;
    let intent = dead.intent();
    let by = harness::by();
    let answer = house.engine.cancel(&by, &run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::CancelRequested);
    let workers = house.workers("alive");
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let acknowledged = house.named(&run, "node.cancel.acknowledged").await;
    assert_eq!(acknowledged.len(), 1);
    assert_eq!(acknowledged[0].payload.get("childId"), None);
    let settled = house
        .named(&run, "node.attempt.settled")
        .await
        .pop()
        .unwrap();
    assert_eq!(settled.payload["status"], "cancelled");
    let code = match kind {
        ChildKind::Agent => "agent.cancelled",
        ChildKind::Action => "action.cancelled",
    };
    assert_eq!(settled.payload["code"], code);
    // The worker that wakes late cannot start it any more.
    let late = house.store.start_child(intent).await.unwrap();
    assert_eq!(late, ChildStanding::Barred);
    assert!(business.asked.lock().unwrap().is_empty());
    stop(workers).await;
}

async fn c3_a_child_that_nobody_knows_can_never_start_late(ground: Ground) {
    for kind in KINDS {
        c3_unknown(&ground.another().await, kind).await;
    }
}

/// C3: the runtime knows the key, so it returns the child, which then is observed.
async fn c3_known_to_its_runtime(ground: &Ground, kind: ChildKind, ended: bool) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[kind], &once()).await;
    let run = house.enqueue("work", input(kind), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", BRIEF).await;
    dead.go_on().await;
    let child_id = dead.start_child().await;
    if ended {
        assert!(dead.child_succeeds(&child_id, 1, &json!("kept")).await);
    }
    house
        .engine
        .cancel(&harness::by(), &run, None)
        .await
        .unwrap();
    let workers = house.workers("alive");
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let waiting = house.named(&run, "node.child.waiting").await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].payload["childId"], child_id.as_str());
    let acknowledged = house.named(&run, "node.cancel.acknowledged").await;
    let late = house.named(&run, "node.result.late-ignored").await;
    if ended {
        assert_eq!((acknowledged.len(), late.len()), (0, 1));
        assert_eq!(late[0].payload["status"], "succeeded");
    } else if kind == ChildKind::Agent {
        assert_eq!((acknowledged.len(), late.len()), (1, 0));
    }
    let transfers = house.named(&run, "edge.settled").await;
    let mut emitted = transfers
        .iter()
        .filter(|edge| edge.payload["state"] == "emitted");
    assert!(emitted.all(|edge| edge.payload["source"]["nodeId"] == "in"));
    stop(workers).await;
}

async fn c3_a_child_that_its_runtime_knows_is_returned_and_observed(ground: Ground) {
    for kind in KINDS {
        for ended in [false, true] {
            c3_known_to_its_runtime(&ground.another().await, kind, ended).await;
        }
    }
}

on_both!(
    recovery_repeats_the_call_with_the_same_key_if_none_was_accepted,
    b059_recovery_finds_the_child_that_accepted_the_key,
    recovery_reads_the_stored_end_of_a_child_that_nobody_knows,
    w8_recovery_observes_the_exact_child_and_shuts_the_older_owner_out,
    b067_a_result_that_outlived_its_worker_is_used,
    a9_contradictory_evidence_ends_the_run_and_nothing_is_guessed,
    a9_contradictory_evidence_of_a_run_that_is_being_cancelled_lets_it_be_cancelled,
    c3_a_child_that_nobody_knows_can_never_start_late,
    c3_a_child_that_its_runtime_knows_is_returned_and_observed,
);
