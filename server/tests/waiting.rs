//! Durable waits and bounds of live runs (run-machine.md A5, A7, A9, W3, W4), and rollups
//! that survive recovery (U1, U2).

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

use counting::{Business, Count, policy};
use hand::{Hand, enqueue_within};
use harness::ground::Ground;
use harness::on_both;
use harness::{House, by};
use serde_json::json;
use shapes::{house, of_type};
use sluicegate_core::code::Code;
use sluicegate_core::ids::RunId;
use sluicegate_core::limits::Limits;
use sluicegate_core::run::{ChildKind, Command, RollupState, RunStatus};
use sluicegate_core::value::Value;
use sluicegate_server::engine::{Simulate, Subject};
use sluicegate_server::store::Parked;
use sluicegate_server::worker::Workers;

const ACTION: ChildKind = ChildKind::Action;
const AGENT: ChildKind = ChildKind::Agent;

async fn stop(workers: Workers) {
    assert!(workers.stop(Duration::from_secs(5)).await);
}

fn brief(duration_ms: u64) -> Limits {
    Limits {
        duration_ms,
        ..Limits::default()
    }
}

/// B062: all workers die while the second action waits for its retry. What came before is not
/// done again, and the wait keeps the time that was stored.
async fn b062(ground: &Ground) {
    let business = Arc::new(Business::default());
    let wait = policy(2, &["x.busy"], 1_500);
    let house = house(ground, &business, &[ACTION, ACTION], &wait).await;
    // The first action passes its output on; only the second is busy at first.
    let graph = busy_second(&wait);
    house.publish("busy", &graph).await;
    let dying = ground
        .mortal(harness::settings("dying"), &[Count::new(&business)])
        .await;
    let run = house.enqueue("busy", json!({}), "k").await.run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingRetry)
        .await;
    dying.kill();
    let scheduled = house.events(&run).await.pop().unwrap();
    assert_eq!(scheduled.event_type, "node.retry.scheduled");
    assert_eq!(scheduled.payload["backoffMs"], 1_500);
    let due = scheduled.payload["nextAttemptAt"].as_u64().unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let workers = house.workers("alive");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let events = house.events(&run).await;
    let started = of_type(&events, "node.retry.started");
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].payload["scheduledSequence"], scheduled.sequence);
    assert!(started[0].recorded_at.0 >= due, "never before its time");
    assert!(started[0].recorded_at.0 < due + 1_000, "woken at its time");
    let attempts = of_type(&events, "node.attempt.started");
    let of = |node: &str| {
        attempts
            .iter()
            .filter(|e| e.payload["nodeId"] == node)
            .count()
    };
    assert_eq!((of("c1"), of("c2")), (1, 2));
    // W4: the wait had handed the lease back, so nothing was recovered.
    assert!(of_type(&events, "run.recovered").is_empty());
    let asked = business.asked.lock().unwrap().clone();
    let first = attempts
        .iter()
        .find(|e| e.payload["nodeId"] == "c1")
        .unwrap();
    let first = first.payload["idempotencyKey"].as_str().unwrap();
    assert_eq!(asked.iter().filter(|key| *key == first).count(), 1);
    assert_eq!(asked.len(), 3);
    assert_eq!(business.effects.lock().unwrap().len(), 2);
    stop(workers).await;
}

/// Two actions in a line; the second fails with `x.busy` when it is first asked.
fn busy_second(policy: &Value) -> Value {
    let mut graph = shapes::line(&[ACTION, ACTION], policy);
    graph["nodes"][2]["mappings"] = json!([{"targetPointer": "/failFirst",
        "binding": {"kind": "literal", "value": "x.busy"}}]);
    graph
}

async fn b062_a_retry_keeps_its_time_through_the_death_of_all_workers(ground: Ground) {
    b062(&ground).await;
}

/// The one word that a run's life ended with, and that nothing followed.
async fn ended_with(house: &House, run: &RunId, code: Code) {
    assert_eq!(house.ended(run).await, RunStatus::Failed);
    assert_eq!(house.code(run).await.as_deref(), Some(code.as_str()));
    house.check(run).await;
    let types = house.types(run).await;
    assert_eq!(types.last().map(String::as_str), Some("run.failed"));
    let detail = house.store.run_detail(&by().tenant, run).await.unwrap();
    assert!(detail.nodes.iter().all(|node| node.status.is_final()));
}

async fn a5_queued(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = enqueue_within(&house, "work", json!({}), "k", brief(100)).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    let before = house.store.audit_head(&by().tenant).await.unwrap();
    let workers = house.workers("w");
    ended_with(&house, &run, Code::RunDurationExceeded).await;
    let types = house.types(&run).await;
    assert_eq!(types[1], "run.claimed");
    assert!(!types.contains(&"node.ready".to_owned()), "{types:?}");
    let after = house.store.audit_head(&by().tenant).await.unwrap();
    assert_eq!(
        after.sequence,
        before.sequence + 1,
        "claimed and failed in one commit"
    );
    assert!(business.asked.lock().unwrap().is_empty());
    stop(workers).await;
}

async fn a5_an_overdue_queued_run_is_claimed_and_failed_in_one_commit(ground: Ground) {
    a5_queued(&ground).await;
}

/// The child in flight is awaited and settles first (O3).
async fn a5_running(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION, ACTION], &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    let input = json!({"sleepMs": 4_000});
    let run = enqueue_within(&house, "work", input, "k", brief(2_500)).await;
    ended_with(&house, &run, Code::RunDurationExceeded).await;
    let settled = house.named(&run, "node.attempt.settled").await;
    let first = settled.iter().find(|event| event.payload["nodeId"] == "c1");
    assert_eq!(first.unwrap().payload["status"], "succeeded");
    assert_eq!(
        business.asked.lock().unwrap().len(),
        1,
        "no other node starts"
    );
    stop(workers).await;
}

async fn a5_a_run_whose_time_is_over_awaits_its_child_and_starts_no_other(ground: Ground) {
    a5_running(&ground).await;
}

/// B061: the wait would outlast the run. It ends at its end of time, once, and is not woken
/// over and over before.
async fn b061(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(
        ground,
        &business,
        &[ACTION],
        &policy(2, &["x.busy"], 60_000),
    )
    .await;
    let workers = house.workers("w");
    let input = json!({"fail": "x.busy"});
    let run = enqueue_within(&house, "work", input, "k", brief(2_500)).await;
    ended_with(&house, &run, Code::RunDurationExceeded).await;
    let events = house.events(&run).await;
    let (first, last) = (events.first().unwrap(), events.last().unwrap());
    assert!(last.recorded_at.since(first.recorded_at).0 > 2_500 - 1);
    assert!(last.recorded_at.since(first.recorded_at).0 < 8_000);
    assert_eq!(
        of_type(&events, "run.claimed").len(),
        2,
        "no further claims"
    );
    assert!(of_type(&events, "node.retry.started").is_empty());
    assert_eq!(business.asked.lock().unwrap().len(), 1, "no second attempt");
    stop(workers).await;
}

async fn b061_a_wait_longer_than_the_run_ends_with_the_run(ground: Ground) {
    b061(&ground).await;
}

/// A cancelled run never becomes anything else, overdue or not.
async fn a5_cancelling(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    let input = json!({"sleepMs": 3_500});
    let run = enqueue_within(&house, "work", input, "k", brief(2_500)).await;
    house.until_event(&run, "node.child.waiting").await;
    let asked = house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(asked.status, RunStatus::CancelRequested);
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let row = house.row(&run).await;
    assert!(row.failure.is_none(), "{:?}", row.failure);
    stop(workers).await;
}

async fn a5_an_overdue_run_that_is_being_cancelled_is_cancelled(ground: Ground) {
    a5_cancelling(&ground).await;
}

/// A7: what is left of the events is kept for the ending.
async fn a7(ground: &Ground, cancelled: bool) {
    let business = Arc::new(Business::default());
    let children = [ACTION; 4];
    let house = house(ground, &business, &children, &policy(1, &[], 0)).await;
    let limits = Limits {
        events: Limits::EVENTS_RESERVE + 12,
        ..Limits::default()
    };
    let input = json!({"sleepMs": if cancelled { 4_000 } else { 200 }});
    let run = enqueue_within(&house, "work", input, "k", limits).await;
    let workers = house.workers("w");
    if cancelled {
        house.until_event(&run, "node.child.waiting").await;
        house.engine.cancel(&by(), &run, None).await.unwrap();
        assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
        house.check(&run).await;
    } else {
        ended_with(&house, &run, Code::RunEventLimit).await;
        assert!(business.asked.lock().unwrap().len() < children.len());
    }
    stop(workers).await;
}

async fn a7_a_run_out_of_events_ends_complete(ground: Ground) {
    a7(&ground.another().await, false).await;
    a7(&ground.another().await, true).await;
}

/// A9: an illegal event is in the log. Nobody claims the run, its row and detail say why, and
/// a cancellation is answered with that.
async fn a9_illegal(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    let mut mad = Hand::claim(&house, "mad", 1).await;
    let decision = mad.decision(Command::Continue).await;
    // The second event of the decision is made the first one again.
    mad.commit(decision, |commit| {
        let first = commit.events[0].clone();
        let second = &mut commit.events[1];
        (second.event_type, second.payload) = (first.event_type, first.payload);
    })
    .await
    .unwrap();
    let stored = house.events(&run).await;
    let workers = house.workers("w");
    let parked = Parked {
        code: Code::WorkflowEventTransitionInvalid,
        sequence: stored[3].sequence,
    };
    house
        .when(|| async {
            let row = house.store.run_row(&by().tenant, &run).await.unwrap();
            row.parked.is_some()
        })
        .await;
    let row = house.store.run_row(&by().tenant, &run).await.unwrap();
    assert_eq!(row.parked.as_ref(), Some(&parked));
    let detail = house.store.run_detail(&by().tenant, &run).await.unwrap();
    assert_eq!(detail.row.parked.as_ref(), Some(&parked));
    let refused = house.engine.cancel(&by(), &run, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::WorkflowEventTransitionInvalid);
    // Others go on; this one is never looked at again.
    let well = house.enqueue("work", json!({}), "well").await.run_id;
    assert_eq!(house.ended(&well).await, RunStatus::Succeeded);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(house.events(&run).await, stored, "no event is added");
    assert_eq!(business.asked.lock().unwrap().len(), 1);
    stop(workers).await;
}

async fn a9_an_illegal_event_parks_its_run_and_no_other(ground: Ground) {
    a9_illegal(&ground).await;
}

fn priced() -> Value {
    let says = |text: &str| json!({"eq": [{"read": ""}, {"literal": text}]});
    let pricing = json!({"inputMicrosPerMillionTokens": 4_000_000,
                         "outputMicrosPerMillionTokens": 5_000_000});
    let first = json!({"inputTokens": 100, "outputTokens": 20});
    json!({
        "agentId": "echo", "name": "Priced", "provider": "scripted", "model": "scripted-1",
        "pricing": pricing,
        "rules": [
            {"when": says("late"), "delayMs": 700, "then": {"text": "x"},
             "usage": {"inputTokens": 40, "outputTokens": 10}},
            {"when": {"literal": true}, "attempt": 1,
             "then": {"failure": {"code": "agent.rate-limited"}}, "usage": first},
            {"when": says("hopeless"), "then": {"failure": {"code": "agent.rate-limited"}},
             "usage": {"inputTokens": 110, "outputTokens": 30}},
            {"when": {"literal": true}, "delayMs": 400, "then": {"text": "x"},
             "usage": {"inputTokens": 110, "outputTokens": 30}}
        ]
    })
}

/// B110: workers die again and again while the second child settles; each child counts once.
async fn b110(ground: &Ground) {
    let house = ground.open(&[]).await;
    house.agent(priced()).await;
    let retry = policy(2, &["agent.rate-limited"], 10);
    house.publish("work", &shapes::line(&[AGENT], &retry)).await;
    let run = house.enqueue("work", json!("x"), "k").await.run_id;
    for n in 0..3 {
        let dying = ground
            .mortal(harness::settings(&format!("d{n}")), &[])
            .await;
        let claims = n + 2;
        house
            .when(|| async {
                let events = house.events(&run).await;
                let claimed = of_type(&events, "run.claimed").len();
                let recovered = of_type(&events, "run.recovered").len();
                of_type(&events, "node.retry.started").len() == 1 && claimed + recovered >= claims
            })
            .await;
        dying.kill();
    }
    let workers = house.workers("alive");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let row = house.row(&run).await;
    let usage = &row.usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.total_tokens),
        (210, 50, 260)
    );
    assert_eq!((usage.priced_child_runs, usage.unpriced_child_runs), (2, 0));
    assert_eq!(
        (row.cost.amount_micros, row.cost.state),
        (500 + 590, RollupState::Final)
    );
    let children = house.children(&run).await;
    let ids: Vec<_> = children
        .iter()
        .map(|child| child.child_id.clone())
        .collect();
    assert_eq!(usage.included_child_run_ids, ids);
    assert_eq!(children[0].executions, 1);
    stop(workers).await;
}

async fn b110_the_usage_of_a_child_counts_once_however_often_its_worker_dies(ground: Ground) {
    b110(&ground).await;
}

/// B111: one rule for every ending.
async fn b111(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION, ACTION], &policy(1, &[], 0)).await;
    let agent = json!({"agentId": "p", "revision": 1});
    let mut graph = shapes::line(&[AGENT], &policy(2, &["agent.rate-limited"], 10));
    graph["nodes"][1]["agent"] = agent;
    let mut definition = priced();
    definition["agentId"] = "p".into();
    house.agent(definition).await;
    house.publish("priced", &graph).await;
    house
        .publish("plain", &shapes::line(&[AGENT], &policy(1, &[], 0)))
        .await;
    let workers = house.workers("w");
    let spent = async |key: &str, input: Value, name: &str| {
        let run = house.enqueue(key, input, name).await.run_id;
        if name == "c" {
            house.until_event(&run, "node.child.waiting").await;
            house.engine.cancel(&by(), &run, None).await.unwrap();
        }
        let status = house.ended(&run).await;
        house.check(&run).await;
        let row = house.row(&run).await;
        assert_eq!(
            (row.usage.state, row.cost.state),
            (RollupState::Final, RollupState::Final)
        );
        (status, row.usage, row.cost.amount_micros)
    };
    let (status, usage, amount) = spent("priced", json!("x"), "a").await;
    assert_eq!(
        (status, usage.total_tokens, amount),
        (RunStatus::Succeeded, 260, 1_090)
    );
    let (status, usage, amount) = spent("priced", json!("hopeless"), "b").await;
    assert_eq!(
        (status, usage.total_tokens, amount),
        (RunStatus::Failed, 260, 1_090)
    );
    assert_eq!(usage.included_child_run_ids.len(), 2);
    let (status, usage, amount) = spent("plain", json!("hello"), "d").await;
    assert_eq!(
        (status, usage.unpriced_child_runs, amount),
        (RunStatus::Succeeded, 1, 0)
    );
    let (status, usage, amount) = spent("work", json!({}), "e").await;
    assert_eq!((status, amount), (RunStatus::Succeeded, 0));
    assert_eq!((usage.action_invocations, usage.unpriced_actions), (2, 2));
    // F: a simulation costs nothing.
    let request = Simulate {
        subject: Subject::Published {
            workflow_key: "plain".into(),
            revision: None,
        },
        input: json!("x"),
        fixtures: sluicegate_core::simulate::Fixtures::read(&json!({"nodes": {"c1": {"attempts": [
            {"outcome": "success", "output": "y", "simulatedDurationMs": 5}]}}}))
        .unwrap(),
    };
    let (by, permissions) = (by(), harness::permissions());
    let simulated = house.engine.simulate(&by, &permissions, request).await;
    let run = simulated.unwrap().run_id;
    let row = house.row(&run).await;
    assert_eq!(row.usage.state, RollupState::NotApplicable);
    assert_eq!((row.usage.total_tokens, row.cost.amount_micros), (0, 0));
    stop(workers).await;
}

async fn b111_usage_and_cost_follow_one_rule_for_every_ending(ground: Ground) {
    b111(&ground).await;
}

/// B111 C: a child that ended after the cancellation was paid for, so it counts, once.
async fn b111_late(ground: &Ground) {
    let house = ground.open(&[]).await;
    house.agent(priced()).await;
    house
        .publish("work", &shapes::line(&[AGENT], &policy(1, &[], 0)))
        .await;
    let run = house.enqueue("work", json!("late"), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", 1).await;
    dead.go_on().await;
    let child_id = dead.accept_child().await;
    house.engine.cancel(&by(), &run, None).await.unwrap();
    assert!(dead.child_succeeds(&child_id, 1, &json!("late")).await);
    let workers = house.workers("w");
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let row = house.row(&run).await;
    assert_eq!(row.usage.total_tokens, 7);
    assert_eq!(row.usage.included_child_run_ids, [child_id]);
    assert_eq!(row.usage.state, RollupState::Final);
    assert_eq!(house.named(&run, "node.result.late-ignored").await.len(), 1);
    stop(workers).await;
}

async fn b111_a_late_child_of_a_cancelled_run_is_counted_once(ground: Ground) {
    b111_late(&ground).await;
}

on_both!(
    b062_a_retry_keeps_its_time_through_the_death_of_all_workers,
    a5_an_overdue_queued_run_is_claimed_and_failed_in_one_commit,
    a5_a_run_whose_time_is_over_awaits_its_child_and_starts_no_other,
    b061_a_wait_longer_than_the_run_ends_with_the_run,
    a5_an_overdue_run_that_is_being_cancelled_is_cancelled,
    a7_a_run_out_of_events_ends_complete,
    a9_an_illegal_event_parks_its_run_and_no_other,
    b110_the_usage_of_a_child_counts_once_however_often_its_worker_dies,
    b111_usage_and_cost_follow_one_rule_for_every_ending,
    b111_a_late_child_of_a_cancelled_run_is_counted_once,
);
