//! Who may write (run-machine.md §7, W1–W9): late workers, reused names, renewals under load,
//! hand-back, fairness, and many workers of one process.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
#[path = "harness/hand.rs"]
mod hand;
mod harness;
#[path = "harness/served.rs"]
mod served;
#[path = "harness/shapes.rs"]
mod shapes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counting::{Business, Count, policy};
use hand::Hand;
use harness::ground::Ground;
use harness::on_both;
use harness::{House, by};
use serde_json::json;
use served::Served;
use shapes::{house, of_type};
use sluicegate_core::ids::{RunId, TenantId, WorkerId};
use sluicegate_core::run::{ChildKind, Command, RunStatus};
use sluicegate_core::time::Millis;
use sluicegate_server::store::{Account, StoreError};
use sluicegate_server::worker::{WorkerSettings, Workers};

const ACTION: ChildKind = ChildKind::Action;
const AGENT: ChildKind = ChildKind::Agent;

async fn stop(workers: Workers) {
    assert!(workers.stop(Duration::from_secs(5)).await);
}

/// W1: a worker that lost its lease writes nothing more, whatever its name: no decision, no
/// renewal, no child's end, no release.
async fn w1(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    let mut late = Hand::claim(&house, "worker", 1).await;
    late.go_on().await;
    let child_id = late.accept_child().await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let mut holder = Hand::claim(&house, "worker", 60_000).await;
    assert!(holder.held.fence > late.held.fence);
    assert_ne!(holder.held.token, late.held.token);
    // W8: the child is the holder's from its first look at it.
    let tenant = by().tenant;
    let taken = house
        .store
        .observe_child(&tenant, &child_id, 1, holder.held.fence);
    taken.await.unwrap();
    let before = house.events(&run).await;
    let settled = late.settled("late");
    assert_eq!(late.decide(settled).await, Err(StoreError::Fenced));
    assert_eq!(
        house.store.renew(&late.held.held(), 60_000).await,
        Err(StoreError::Fenced)
    );
    assert!(!late.child_succeeds(&child_id, 1, &json!("late")).await);
    house.store.release(&late.held.held()).await.unwrap();
    assert_eq!(house.events(&run).await, before);
    // The holder is not disturbed.
    assert!(house.store.renew(&holder.held.held(), 60_000).await.is_ok());
    assert!(holder.child_succeeds(&child_id, 1, &json!("held")).await);
    let settled = holder.settled("held");
    holder.decide(settled).await.unwrap();
    assert_eq!(house.status(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
}

async fn w1_a_late_worker_of_the_same_name_writes_nothing(ground: Ground) {
    w1(&ground).await;
}

/// B064: the first worker comes back with the result of a node that the second has settled
/// long ago; the second child is started once.
async fn b064(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION, ACTION], &policy(1, &[], 0)).await;
    let run = house
        .enqueue("work", json!({"sleepMs": 300}), "k")
        .await
        .run_id;
    let mut late = Hand::claim(&house, "a", 1).await;
    late.go_on().await;
    let child_id = late.accept_child().await;
    let workers = house.workers("b");
    house
        .when(|| async { house.children(&run).await.len() == 2 })
        .await;
    assert!(!late.child_succeeds(&child_id, 1, &json!("late")).await);
    let settled = late.settled("late");
    assert_eq!(late.decide(settled).await, Err(StoreError::Fenced));
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let events = house.events(&run).await;
    let started = of_type(&events, "node.attempt.started");
    let of = |node: &str| {
        started
            .iter()
            .filter(|e| e.payload["nodeId"] == node)
            .count()
    };
    assert_eq!((of("c1"), of("c2")), (1, 1));
    let edges = of_type(&events, "edge.settled");
    assert_eq!(edges.len(), 3, "each edge once");
    assert_eq!(business.effects.lock().unwrap().len(), 2);
    stop(workers).await;
}

async fn b064_a_late_finisher_starts_nothing_a_second_time(ground: Ground) {
    b064(&ground).await;
}

/// W2: a request's decision lands between two of the owner's. The owner, whose lease holds,
/// folds again and goes on; expiry alone takes nothing from it.
async fn w2(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[AGENT], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!("x"), "k").await.run_id;
    let mut owner = Hand::claim(&house, "owner", 1).await;
    owner.go_on().await;
    let child_id = owner.accept_child().await;
    house.engine.cancel(&by(), &run, None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let settled = owner.settled("x");
    assert_eq!(owner.decide(settled).await, Err(StoreError::Stale));
    owner.reload().await;
    assert!(owner.child_succeeds(&child_id, 1, &json!("x")).await);
    let settled = owner.settled("x");
    owner.decide(settled).await.unwrap();
    assert_eq!(house.status(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
}

async fn w2_an_owner_whose_sequence_is_stale_decides_again(ground: Ground) {
    w2(&ground).await;
}

/// W4, W3: a wait for a retry has no holder, and nobody claims it before its time.
async fn w3(ground: &Ground) {
    let business = Arc::new(Business::default());
    let wait = policy(2, &["x.busy"], 60_000);
    let house = house(ground, &business, &[ACTION], &wait).await;
    let workers = house.workers("w");
    let input = json!({"fail": "x.busy"});
    let run = house.enqueue("work", input, "k").await.run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingRetry)
        .await;
    for _ in 0..3 {
        assert!(hand::claim(&house, "greedy", 60_000, 8).await.is_empty());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let due = house.store.next_due().await.unwrap().unwrap();
    let scheduled = house.events(&run).await.pop().unwrap();
    assert_eq!(scheduled.payload["nextAttemptAt"], due.0);
    stop(workers).await;
}

async fn w3_a_wait_has_no_holder_and_is_not_claimed_early(ground: Ground) {
    w3(&ground).await;
}

/// W5: many held runs outlast their leases by far, and are renewed all along.
async fn w5(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let own = WorkerSettings {
        concurrency: 40,
        lease: Millis(1_500),
        renew: Millis(300),
        ..harness::settings("renews")
    };
    let other = ground.open(&[Count::new(&business)]).await;
    let workers = [
        Workers::start(Arc::clone(&house.engine), own.clone()),
        Workers::start(Arc::clone(&other.engine), own),
    ];
    let mut runs = Vec::new();
    for n in 0..40 {
        let input = json!({"sleepMs": 4_000});
        runs.push(house.enqueue("work", input, &format!("k{n}")).await.run_id);
    }
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        let events = house.events(run).await;
        assert_eq!(of_type(&events, "run.claimed").len(), 1);
        assert!(of_type(&events, "run.recovered").is_empty());
    }
    assert_eq!(business.asked.lock().unwrap().len(), 40);
    for workers in workers {
        stop(workers).await;
    }
}

async fn w5_leases_are_renewed_under_load(ground: Ground) {
    w5(&ground).await;
}

/// Whose runs a claim takes, in order.
async fn turns(house: &House, limit: u32) -> Vec<TenantId> {
    let claimed = hand::claim(house, "w", 600_000, limit).await;
    claimed.into_iter().map(|held| held.tenant).collect()
}

/// W9: of 50 tenants, one has a hundred runs more than the others. It gets its turn, and no
/// more, whatever the size of a claim.
async fn w9(ground: &Ground) {
    let house = ground.open(&[]).await;
    let graph = shapes::line(&[], &json!(null));
    let mut tenants = vec![by().tenant];
    for n in 0..49 {
        let tenant = TenantId::new(format!("t{n:02}"));
        let owner = Account {
            account_id: "a1".to_owned(),
            display_name: "Bea".to_owned(),
            email: None,
            role: "owner".to_owned(),
        };
        house.store.ensure_tenant(&tenant, &owner).await.unwrap();
        tenants.push(tenant);
    }
    for tenant in &tenants {
        house.publish_for(tenant, "plain", &graph).await;
    }
    for n in 0..100 {
        let tenant = &tenants[0];
        house
            .enqueue_for(tenant, "plain", json!(n), &format!("k{n}"))
            .await;
    }
    for tenant in &tenants[1..] {
        for n in 0..2 {
            house
                .enqueue_for(tenant, "plain", json!(n), &format!("k{n}"))
                .await;
        }
    }
    // Two rounds of all 50 tenants, in claims of odd sizes.
    let mut order = Vec::new();
    for limit in [7, 16, 1, 26, 30, 20] {
        order.extend(turns(&house, limit).await);
    }
    let mut counts = BTreeMap::<&TenantId, u32>::new();
    for tenant in &order {
        *counts.entry(tenant).or_default() += 1;
    }
    assert_eq!(order.len(), 100);
    assert_eq!(counts.len(), 50);
    assert!(counts.values().all(|count| *count == 2), "{counts:?}");
    for round in order.chunks(50) {
        let different: std::collections::BTreeSet<_> = round.iter().collect();
        assert_eq!(different.len(), 50, "one run per tenant and turn");
    }
    // The one that has work left gets all that a claim can give.
    assert_eq!(turns(&house, 64).await, vec![tenants[0].clone(); 64]);
}

async fn w9_one_of_fifty_tenants_does_not_starve_the_others(ground: Ground) {
    w9(&ground).await;
}

/// B070: 200 queued runs, eight workers in four engines: each is done once.
async fn b070(ground: &Ground, runs: usize) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let mut queued = Vec::new();
    for n in 0..runs {
        queued.push(
            house
                .enqueue("work", json!({}), &format!("k{n}"))
                .await
                .run_id,
        );
    }
    let mut engines = vec![Arc::clone(&house.engine)];
    for _ in 0..3 {
        engines.push(ground.open(&[Count::new(&business)]).await.engine);
    }
    let calm = WorkerSettings {
        concurrency: 8,
        lease: Millis(30_000),
        renew: Millis(10_000),
        ..harness::settings("w")
    };
    let workers = (0..8).map(|n| {
        let settings = WorkerSettings {
            worker_id: WorkerId::new(format!("w{n}")),
            ..calm.clone()
        };
        Workers::start(Arc::clone(&engines[n % 4]), settings)
    });
    let workers: Vec<_> = workers.collect();
    for run in &queued {
        house.long_ended(run).await;
        assert_eq!(house.status(run).await, RunStatus::Succeeded);
        let events = house.events(run).await;
        assert_eq!(of_type(&events, "run.claimed").len(), 1);
        assert!(of_type(&events, "run.recovered").is_empty());
    }
    assert_eq!(business.effects.lock().unwrap().len(), runs);
    assert_eq!(business.asked.lock().unwrap().len(), runs);
    house.check(&queued[0]).await;
    for workers in workers {
        stop(workers).await;
    }
}

async fn b070_two_hundred_runs_by_eight_workers_are_each_done_once(ground: Ground) {
    b070(&ground, 200).await;
}

/// B068: everything goes down in the middle of taking over dead workers' runs; nothing is
/// marked as handled in memory alone.
async fn b068(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let mut runs = Vec::new();
    for n in 0..10 {
        let input = json!({"sleepMs": 700});
        let run = house.enqueue("work", input, &format!("k{n}")).await;
        runs.push(run.run_id);
    }
    for _ in 0..10 {
        Hand::claim(&house, "dead", 1_500).await.go_on().await;
    }
    let slow = WorkerSettings {
        concurrency: 3,
        ..harness::settings("scan")
    };
    let dying = ground.mortal(slow, &[Count::new(&business)]).await;
    house
        .when(|| async {
            let mut recovered = 0;
            for run in &runs {
                recovered += house.named(run, "run.recovered").await.len();
            }
            recovered >= 3
        })
        .await;
    dying.kill();
    let workers = house.workers("alive");
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        house.check(run).await;
        let recovered = house.named(run, "run.recovered").await;
        let fences: Vec<_> = recovered
            .iter()
            .map(|event| event.payload["fence"].clone())
            .collect();
        let mut different = fences.clone();
        different.dedup();
        assert_eq!(fences, different, "one for each claim");
        assert!(recovered.len() <= 2);
    }
    assert_eq!(business.effects.lock().unwrap().len(), 10);
    stop(workers).await;
}

async fn b068_a_take_over_that_is_cut_short_strands_no_run(ground: Ground) {
    b068(&ground).await;
}

/// A fault while driving a run: here its payload's key is not in the key file. Nothing is
/// guessed and nothing spins; others go on; with the key, it goes on too.
async fn fault(ground: &Ground) {
    let business = Arc::new(Business::default());
    let house = house(ground, &business, &[ACTION], &policy(1, &[], 0)).await;
    let run = house.enqueue("work", json!({}), "k").await.run_id;
    let mut mad = Hand::claim(&house, "mad", 1).await;
    mad.go_on_with(|commit| {
        for payload in &mut commit.payloads {
            payload.key_id = "0123456789abcdef".to_owned();
        }
    })
    .await;
    let before = house.events(&run).await;
    let hasty = WorkerSettings {
        lease: Millis(400),
        renew: Millis(100),
        ..harness::settings("w")
    };
    let workers = Workers::start(Arc::clone(&house.engine), hasty);
    for n in 0..5 {
        let well = house
            .enqueue("work", json!({}), &format!("w{n}"))
            .await
            .run_id;
        assert_eq!(house.ended(&well).await, RunStatus::Succeeded);
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = house.events(&run).await;
    assert!(
        !house.status(&run).await.is_terminal(),
        "nothing is guessed"
    );
    // A claim that cannot go on says nothing in the log, or one word a lease.
    assert!(
        after.len() - before.len() <= 6,
        "{:?}",
        house.types(&run).await
    );
    stop(workers).await;
}

async fn a_fault_of_ours_stops_one_run_and_spins_nowhere(ground: Ground) {
    fault(&ground).await;
}

/// W7: SIGTERM ends the real process in time, with exit code 0; what it held is picked up by
/// the next one at once, as handed back and not as recovered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w7_sigterm_hands_back_what_is_held() {
    let ground = Ground::sqlite();
    let house = ground.open(&[]).await;
    house.agent(shapes::echo()).await;
    house
        .publish("work", &shapes::line(&[AGENT], &policy(1, &[], 0)))
        .await;
    served::allow(&house, "k1", &["workflows.runs.read"]).await;
    let mut runs: Vec<RunId> = Vec::new();
    for n in 0..5 {
        runs.push(
            house
                .enqueue("work", json!("slow"), &format!("k{n}"))
                .await
                .run_id,
        );
    }
    drop(house);
    let server = Served::start(ground.folder(), &[]);
    for run in &runs {
        server.until(run, |status| status == "waiting-agent");
    }
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let house = ground.open(&[]).await;
    for run in &runs {
        let row = house.row(run).await;
        assert_eq!(row.status, RunStatus::WaitingAgent);
    }
    let claimed = hand::claim(&house, "next", 1, 8).await;
    assert_eq!(claimed.len(), 5, "nothing waits for a lease");
    assert!(claimed.iter().all(|held| held.over.is_none()));
    for held in &claimed {
        house.store.release(&held.held()).await.unwrap();
    }
    let begun = Instant::now();
    let workers = house.workers("next");
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        house.check(run).await;
        assert!(house.named(run, "run.recovered").await.is_empty());
        let children = house.children(run).await;
        assert_eq!((children.len(), children[0].executions), (1, 2));
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    stop(workers).await;
}

/// W7: workers are stopped at any moment, over and over. A stop fails no run, executes no
/// node anew that had ended, and leaves nothing to recover.
async fn w7_over_and_over(ground: &Ground) {
    let business = Arc::new(Business::default());
    let line = [ACTION, AGENT, ACTION];
    let house = house(ground, &business, &line, &policy(1, &[], 0)).await;
    let mut runs = Vec::new();
    for n in 0..30 {
        runs.push(
            house
                .enqueue("work", json!({}), &format!("k{n}"))
                .await
                .run_id,
        );
    }
    for n in 0..25 {
        let workers = house.workers(&format!("w{n}"));
        tokio::time::sleep(Duration::from_millis(n * 37 % 50)).await;
        stop(workers).await;
    }
    let workers = house.workers("last");
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        let events = house.events(run).await;
        assert!(of_type(&events, "run.recovered").is_empty());
        assert_eq!(of_type(&events, "node.attempt.started").len(), 5);
        house.check(run).await;
    }
    assert_eq!(business.effects.lock().unwrap().len(), 60);
    stop(workers).await;
}

async fn w7_a_stop_at_any_moment_fails_no_run(ground: Ground) {
    w7_over_and_over(&ground).await;
}

impl House {
    /// Waits longer than [`House::ended`], for a run behind many others.
    async fn long_ended(&self, run: &RunId) {
        for _ in 0..6 {
            if self.status(run).await.is_terminal() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.ended(run).await;
    }
}

impl Hand<'_> {
    /// The command that the attempt in flight ended well.
    fn settled(&self, output: &str) -> Command {
        let intent = self.intent();
        Command::ChildSettled {
            node_id: intent.node_id,
            attempt: intent.attempt,
            result: sluicegate_core::run::ChildResult {
                outcome: sluicegate_core::run::ChildOutcome::Success {
                    output: Arc::new(json!(output)),
                },
                terminal: true,
                usage: None,
                cost: None,
            },
        }
    }
}

on_both!(
    w1_a_late_worker_of_the_same_name_writes_nothing,
    b064_a_late_finisher_starts_nothing_a_second_time,
    w2_an_owner_whose_sequence_is_stale_decides_again,
    w3_a_wait_has_no_holder_and_is_not_claimed_early,
    w5_leases_are_renewed_under_load,
    w9_one_of_fifty_tenants_does_not_starve_the_others,
    b070_two_hundred_runs_by_eight_workers_are_each_done_once,
    b068_a_take_over_that_is_cut_short_strands_no_run,
    a_fault_of_ours_stops_one_run_and_spins_nowhere,
    w7_a_stop_at_any_moment_fails_no_run,
);
