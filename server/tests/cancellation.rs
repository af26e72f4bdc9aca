//! Cancellation in every state and against every kind of child (run-machine.md §8, C1–C4;
//! W2): those that listen, those that do not, and those whose worker is dead.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
#[path = "harness/hand.rs"]
mod hand;
mod harness;
#[path = "harness/shapes.rs"]
mod shapes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use counting::{Business, Count, policy};
use hand::Hand;
use harness::ground::Ground;
use harness::on_both;
use harness::{House, by};
use serde_json::json;
use shapes::{house, house_with};
use sluicegate_core::api::{CancelState, Cancelled};
use sluicegate_core::catalogue::{ActionDescriptor, Cancellation};
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{ChildKind, Command, RollupState, RunStatus};
use sluicegate_core::value::Value;
use sluicegate_server::actions::{Action, ActionFault, Invocation};
use sluicegate_server::store::StoreError;
use sluicegate_server::worker::Workers;

const ACTION: ChildKind = ChildKind::Action;
const AGENT: ChildKind = ChildKind::Agent;

async fn stop(workers: Workers) {
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn cancel(house: &House, run: &RunId) -> Cancelled {
    house.engine.cancel(&by(), run, None).await.unwrap()
}

fn counting(business: &Arc<Business>, cancellation: Cancellation, timeout_ms: u64) -> Arc<Count> {
    Arc::new(Count {
        business: Arc::clone(business),
        cancellation,
        timeout_ms,
    })
}

/// What is true of every cancelled run: one request, one end and nothing after it, every node
/// and edge with its final word (B079), rollups final.
async fn cancelled(house: &House, run: &RunId) {
    assert_eq!(house.ended(run).await, RunStatus::Cancelled);
    house.check(run).await;
    let types = house.types(run).await;
    let count = |name: &str| types.iter().filter(|found| *found == name).count();
    assert_eq!(count("run.cancel.requested"), 1);
    assert_eq!(count("run.cancelled"), 1);
    assert_eq!(types.last().unwrap(), "run.cancelled");
    let detail = house.store.run_detail(&by().tenant, run).await.unwrap();
    assert!(detail.nodes.iter().all(|node| node.status.is_final()));
    assert!(
        detail
            .attempts
            .iter()
            .all(|attempt| attempt.completed_at.is_some())
    );
    let edges = detail.plan["edges"].as_array().unwrap().len();
    assert_eq!(detail.edges.len(), edges);
    assert_eq!(detail.row.row.cost.state, RollupState::Final);
    assert!(detail.row.row.failure.is_none());
    // C4: asked again, it says the same and nothing happens.
    let again = cancel(house, run).await;
    assert_eq!(again.status, RunStatus::Cancelled);
    assert_eq!(again.cancellation.state, CancelState::Cancelled);
    assert_eq!(house.types(run).await, types);
}

/// A run is held, and nothing of it runs: the request itself ends it, and the worker that
/// holds it finds that out when it commits (W2).
async fn c1_held(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    let mut holder = Hand::claim(&house, "holder", 60_000).await;
    assert_eq!(cancel(&house, &run).await.status, RunStatus::Cancelled);
    let late = holder.decide(Command::Continue).await;
    assert!(
        matches!(late, Err(StoreError::Stale | StoreError::Fenced)),
        "{late:?}"
    );
    cancelled(&house, &run).await;
    let types = house.types(&run).await;
    assert!(!types.contains(&"node.ready".to_owned()), "{types:?}");
}

async fn c1_a_held_run_between_nodes_is_cancelled_in_the_request(ground: Ground) {
    c1_held(&ground).await;
}

/// B076: without any worker, a queued run is cancelled at once, and no later worker runs it.
async fn b076_queued(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    assert_eq!(cancel(&house, &run).await.status, RunStatus::Cancelled);
    cancelled(&house, &run).await;
    let workers = house.workers("later");
    let other = house.enqueue("work", json!({}), "other").await.run_id;
    assert_eq!(house.ended(&other).await, RunStatus::Succeeded);
    cancelled(&house, &run).await;
    assert!(!house.types(&run).await.contains(&"run.claimed".to_owned()));
    assert_eq!(business.asked.lock().unwrap().len(), 1);
    stop(workers).await;
}

async fn b076_a_queued_run_needs_no_worker_to_be_cancelled(ground: Ground) {
    b076_queued(&ground).await;
}

/// B076: the worker is killed with a child in flight, then the run is cancelled. It stays
/// `cancel-requested` no longer than a lease, and is executed no further.
async fn b076_dead(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let action = counting(&business, Cancellation::Cooperative, 60_000);
    let house = house_with(ground, action.clone(), &[kind, ACTION], &policy(1, &[], 0)).await;
    let dying = ground.mortal(harness::settings("dying"), &[action]).await;
    let input = match kind {
        ChildKind::Agent => json!("never"),
        ChildKind::Action => json!({"sleepMs": 600_000}),
    };
    let run = house.enqueue("work", input, "k").await.run_id;
    house.until_event(&run, "node.child.waiting").await;
    dying.kill();
    let answer = cancel(&house, &run).await;
    assert_eq!(answer.status, RunStatus::CancelRequested);
    assert_eq!(answer.cancellation.state, CancelState::Requested);
    let begun = Instant::now();
    let workers = house.workers("alive");
    cancelled(&house, &run).await;
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(house.children(&run).await.len(), 1);
    assert_eq!(house.named(&run, "node.cancel.acknowledged").await.len(), 1);
    stop(workers).await;
}

async fn b076_a_run_whose_worker_died_is_cancelled_by_the_next_one(ground: Ground) {
    for kind in [AGENT, ACTION] {
        b076_dead(&ground.another().await, kind).await;
    }
}

/// An action that does not listen is observed to its own end, whatever that is.
async fn c2_deaf(ground: &Ground, input: Value, timeout_ms: u64, late: &str) {
    let business = Arc::new(Business::default());
    let action = counting(&business, Cancellation::NotSupported, timeout_ms);
    let house = house_with(
        ground,
        action,
        &[ACTION, ACTION],
        &policy(3, &["x.busy"], 10),
    )
    .await;
    let workers = house.workers("w");
    let run = house.enqueue("work", input, "k").await.run_id;
    house.until_event(&run, "node.child.waiting").await;
    let answer = cancel(&house, &run).await;
    assert_eq!(answer.status, RunStatus::CancelRequested);
    assert_eq!(answer.cancellation.state, CancelState::NotAcknowledged);
    let again = cancel(&house, &run).await;
    assert_eq!(again, answer, "C4");
    cancelled(&house, &run).await;
    let deaf = house.named(&run, "node.cancel.not-acknowledged").await;
    assert_eq!(deaf.len(), 1);
    assert_eq!(deaf[0].payload["reason"], "not-supported");
    let ignored = house.named(&run, "node.result.late-ignored").await;
    assert_eq!(ignored.len(), 1);
    assert_eq!(ignored[0].payload["status"], late);
    assert_eq!(
        business.asked.lock().unwrap().len(),
        1,
        "no retry, no other node"
    );
    stop(workers).await;
}

async fn b074_c2_a_child_that_does_not_listen_is_observed_to_its_end(ground: Ground) {
    c2_deaf(
        &ground.another().await,
        json!({"sleepMs": 600}),
        5_000,
        "succeeded",
    )
    .await;
    // It runs into its own time limit.
    c2_deaf(
        &ground.another().await,
        json!({"sleepMs": 600_000}),
        700,
        "failed",
    )
    .await;
}

/// Does nothing for a while, and lets nobody interrupt it: it holds its thread.
struct Blocks(ActionDescriptor, Duration);

#[async_trait]
impl Action for Blocks {
    fn descriptor(&self) -> ActionDescriptor {
        self.0.clone()
    }

    async fn invoke(&self, _: Invocation) -> Result<Value, ActionFault> {
        std::thread::sleep(self.1);
        Ok(json!("blocked"))
    }
}

/// A cooperative action that in fact holds its thread: told to stop, it does not; the run
/// does not wait for it.
async fn c2_blocking(ground: &Ground) {
    let business = Arc::new(Business::default());
    let contract = counting(&business, Cancellation::Cooperative, 10_000).descriptor();
    let action = Arc::new(Blocks(contract, Duration::from_millis(5_000)));
    let house = house_with(ground, action, &[ACTION], &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    house.until_event(&run, "node.child.waiting").await;
    let begun = Instant::now();
    cancel(&house, &run).await;
    cancelled(&house, &run).await;
    assert!(
        begun.elapsed() < Duration::from_millis(4_000),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(house.named(&run, "node.cancel.acknowledged").await.len(), 1);
    stop(workers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c2_a_child_that_holds_its_thread_does_not_hold_the_run() {
    c2_blocking(&Ground::sqlite()).await;
    c2_blocking(&Ground::postgres().await).await;
}

/// A8: beyond its deadline a child that holds its thread is given up, and the run goes on.
async fn a8_blocking(ground: &Ground) {
    let business = Arc::new(Business::default());
    let contract = counting(&business, Cancellation::NotSupported, 300).descriptor();
    let action = Arc::new(Blocks(contract, Duration::from_millis(5_000)));
    let house = house_with(ground, action, &[ACTION], &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    let begun = Instant::now();
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    assert!(
        begun.elapsed() < Duration::from_millis(4_000),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(house.code(&run).await.as_deref(), Some("action.timeout"));
    house.check(&run).await;
    stop(workers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a8_a_child_that_holds_its_thread_times_out() {
    a8_blocking(&Ground::sqlite()).await;
    a8_blocking(&Ground::postgres().await).await;
}

/// Falls over.
struct Panics(ActionDescriptor);

#[async_trait]
impl Action for Panics {
    fn descriptor(&self) -> ActionDescriptor {
        self.0.clone()
    }

    async fn invoke(&self, _: Invocation) -> Result<Value, ActionFault> {
        panic!("a fault of the module, with a secret in its words")
    }
}

/// A module that panics fails its own node, in words of ours; the process and other runs go on.
async fn a_module_that_panics_fails_its_node_alone(ground: Ground) {
    let business = Arc::new(Business::default());
    let contract = counting(&business, Cancellation::Cooperative, 5_000).descriptor();
    let house = house_with(
        &ground,
        Arc::new(Panics(contract)),
        &[ACTION],
        &policy(1, &[], 0),
    )
    .await;
    house
        .publish("plain", &shapes::line(&[AGENT], &policy(1, &[], 0)))
        .await;
    let workers = house.workers("w");
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    house.check(&run).await;
    let failure = house.row(&run).await.failure.unwrap();
    assert_eq!(failure.code, "action.failed");
    assert!(!failure.message.contains("secret"), "{failure:?}");
    assert_eq!(house.children(&run).await.len(), 1);
    let well = house.enqueue("plain", json!("x"), "well").await.run_id;
    assert_eq!(house.ended(&well).await, RunStatus::Succeeded);
    stop(workers).await;
}

/// B075: it said yes, and then finished all the same, before it stopped.
async fn b075(ground: &Ground, kind: ChildKind) {
    let business = Arc::new(Business::default());
    let action = counting(&business, Cancellation::Cooperative, 60_000);
    let house = house_with(ground, action, &[kind, ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!("x"), "k").await.run_id;
    let mut dead = Hand::claim(&house, "dead", 1).await;
    dead.go_on().await;
    let child_id = dead.accept_child().await;
    cancel(&house, &run).await;
    dead.reload().await;
    house.store.cancel_child(dead.intent()).await.unwrap();
    let acknowledged = Command::CancelAnswered {
        node_id: "c1".into(),
        attempt: 1,
        child_id: Some(child_id.clone()),
        refusal: None,
    };
    dead.decide(acknowledged).await.unwrap();
    let standing = cancel(&house, &run).await;
    assert_eq!(standing.cancellation.state, CancelState::Acknowledged);
    assert!(dead.child_succeeds(&child_id, 1, &json!("too late")).await);
    let workers = house.workers("alive");
    cancelled(&house, &run).await;
    let count = async |name: &str| house.named(&run, name).await.len();
    assert_eq!(count("node.cancel.requested").await, 1);
    assert_eq!(count("node.cancel.acknowledged").await, 1);
    assert_eq!(count("node.result.late-ignored").await, 1);
    let settled = house.named(&run, "node.attempt.settled").await;
    let of_child = settled
        .iter()
        .filter(|event| event.payload["nodeId"] == "c1");
    assert_eq!(of_child.count(), 1);
    let edges = house.named(&run, "edge.settled").await;
    let beyond = edges
        .iter()
        .filter(|edge| edge.payload["source"]["nodeId"] != "in");
    assert!(
        beyond
            .into_iter()
            .all(|edge| edge.payload["state"] == "skipped")
    );
    assert!(business.asked.lock().unwrap().is_empty());
    stop(workers).await;
}

async fn b075_a_completion_after_the_acknowledgement_is_ignored_once(ground: Ground) {
    for kind in [AGENT, ACTION] {
        b075(&ground.another().await, kind).await;
    }
}

/// A run that has ended stays as it is, and says so.
async fn c4_ended(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    for (input, ended) in [
        (json!({}), RunStatus::Succeeded),
        (json!({"fail": "x.busy"}), RunStatus::Failed),
        (json!({"fail": "permission.denied"}), RunStatus::Refused),
    ] {
        let run = house.enqueue("work", input, ended.as_str()).await.run_id;
        assert_eq!(house.ended(&run).await, ended);
        let events = house.events(&run).await;
        let answer = cancel(&house, &run).await;
        assert_eq!(
            (answer.status, answer.cancellation.state),
            (ended, CancelState::None)
        );
        assert_eq!(house.events(&run).await, events);
    }
    stop(workers).await;
}

async fn c4_a_run_that_has_ended_says_how_and_changes_nothing(ground: Ground) {
    c4_ended(&ground).await;
}

/// C4: cancellations that race the end. Each run gets one terminal event, and every answer
/// agrees with it. The wait before the request follows the runs, so that it stays close to
/// their ends however busy the machine is.
async fn c4_race(ground: &Ground, rounds: u32) {
    let business = Arc::new(Business::default());
    let action = counting(&business, Cancellation::Cooperative, 60_000);
    let line = [ACTION, AGENT, ACTION];
    let house = house_with(ground, action, &line, &policy(1, &[], 0)).await;
    let workers = house.workers("w");
    let mut wait = Duration::from_millis(5);
    let (mut stopped, mut finished) = (0, 0);
    for round in 0..rounds {
        let run = house
            .enqueue("work", json!({}), &format!("k{round}"))
            .await
            .run_id;
        tokio::time::sleep(wait).await;
        let answers = tokio::join!(cancel(&house, &run), cancel(&house, &run));
        let status = house.ended(&run).await;
        let types = house.types(&run).await;
        let ends = [
            "run.succeeded",
            "run.failed",
            "run.refused",
            "run.cancelled",
        ];
        let terminal = types.iter().filter(|name| ends.contains(&name.as_str()));
        assert_eq!(terminal.count(), 1, "{types:?}");
        for answer in [answers.0, answers.1] {
            let agrees = match answer.status {
                RunStatus::CancelRequested | RunStatus::Cancelled => status == RunStatus::Cancelled,
                ended => status == ended && answer.cancellation.state == CancelState::None,
            };
            assert!(agrees, "it was answered {answer:?} and ended {status:?}");
        }
        let (count, share) = match status {
            RunStatus::Cancelled => (&mut stopped, 1.1),
            _ => (&mut finished, 0.9),
        };
        *count += 1;
        wait = wait.mul_f64(share);
        // Looking at everything costs more than the race; some of both kinds will do.
        if *count % 8 == 1 && status == RunStatus::Cancelled {
            cancelled(&house, &run).await;
        } else if *count % 8 == 1 {
            house.check(&run).await;
        }
    }
    assert!(
        stopped > 9 && finished > 9,
        "no race: {stopped} and {finished}"
    );
    stop(workers).await;
}

async fn c4_a_cancellation_that_races_the_end_agrees_with_it(ground: Ground) {
    c4_race(&ground, 100).await;
}

on_both!(
    a_module_that_panics_fails_its_node_alone,
    c1_a_held_run_between_nodes_is_cancelled_in_the_request,
    b076_a_queued_run_needs_no_worker_to_be_cancelled,
    b076_a_run_whose_worker_died_is_cancelled_by_the_next_one,
    b074_c2_a_child_that_does_not_listen_is_observed_to_its_end,
    b075_a_completion_after_the_acknowledgement_is_ignored_once,
    c4_a_run_that_has_ended_says_how_and_changes_nothing,
    c4_a_cancellation_that_races_the_end_agrees_with_it,
);
