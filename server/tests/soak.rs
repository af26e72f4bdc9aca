//! Several real processes on one PostgreSQL (run-machine.md §7; architecture.md "Rules"):
//! they share the work, die, freeze and come back, and nothing is lost or done twice. Effects
//! are counted in the claims module's own tables. `make soak` goes on for ten minutes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
mod harness;
#[path = "harness/served.rs"]
mod served;
#[path = "harness/shapes.rs"]
mod shapes;

use std::time::{Duration, Instant};

use counting::policy;
use harness::ground::Ground;
use harness::{House, by};
use serde_json::json;
use served::Served;
use shapes::of_type;
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::value::Value;
use sluicegate_server::engine::repair::Repair;
use sluicegate_server::store::StoreError;

const LEASES: [(&str, &str); 3] = [
    ("SLUICEGATE_LEASE_MS", "1500"),
    ("SLUICEGATE_RENEW_MS", "300"),
    ("SLUICEGATE_WORKERS", "8"),
];

/// input → approve the input's claim → ask an agent → output. The agent is asked twice where
/// the input says so.
fn graph() -> Value {
    let kinds = [ChildKind::Action, ChildKind::Agent];
    let mut graph = shapes::line(&kinds, &policy(3, &["agent.rate-limited"], 50));
    let path = |target: &str, pointer: &str| {
        json!({"targetPointer": target, "binding": {"kind": "path", "sourceNodeId": "in",
            "sourcePort": "data", "pointer": pointer}})
    };
    let input = json!({"type": "object", "required": ["claimId", "ask"], "properties": {
        "claimId": {"type": "string"}, "ask": {"type": "string"}}});
    graph["schemas"] = json!({"order": input});
    graph["nodes"][0]["ports"]["data"] = "order".into();
    graph["nodes"][1]["action"]["actionId"] = "expenses.claim.approve".into();
    graph["nodes"][1]["mappings"] = json!([path("/claimId", "/claimId"),
        {"targetPointer": "/note", "binding": {"kind": "literal", "value": "fine"}}]);
    graph["nodes"][2]["mappings"] = json!([path("", "/ask")]);
    graph
}

fn agent() -> Value {
    let usage = json!({"inputTokens": 3, "outputTokens": 4});
    let says = |text: &str| json!({"eq": [{"read": ""}, {"literal": text}]});
    json!({
        "agentId": "echo", "name": "Echo", "provider": "scripted", "model": "scripted-1",
        "rules": [
            {"when": says("again"), "attempt": 1,
             "then": {"failure": {"code": "agent.rate-limited"}}, "usage": usage},
            {"when": says("slow"), "delayMs": 900, "then": {"text": "late"}, "usage": usage},
            {"when": {"literal": true}, "then": {"text": "> {{ input }}"}, "usage": usage}
        ]
    })
}

async fn prepared(ground: &Ground) -> House {
    let house = ground.house().await;
    house.agent(agent()).await;
    house.publish("work", &graph()).await;
    served::allow(&house, "k1", &["workflows.runs.read"]).await;
    house
}

async fn enqueue(house: &House, n: usize) -> RunId {
    let ask = ["hello", "again", "slow"][n % 3];
    let input = json!({"claimId": format!("claim-{n}"), "ask": ask});
    house.enqueue("work", input, &format!("k{n}")).await.run_id
}

/// Whatever happened to the processes: the run ended well, its claim was decided once, each
/// of its children counts once, and its log is whole.
async fn whole(house: &House, run: &RunId, n: usize) {
    let events = house.events(run).await;
    assert_eq!(house.status(run).await, RunStatus::Succeeded);
    let tenant = by().tenant;
    let claim = format!("claim-{n}");
    let made = house.claims.claim_mutations(&tenant, &claim).await.unwrap();
    assert_eq!(made, 1, "{claim}");
    let usage = house.row(run).await.usage;
    let asked = if n % 3 == 1 { 2 } else { 1 };
    assert_eq!(
        (usage.total_tokens, usage.action_invocations),
        (7 * asked, 1),
        "{n}"
    );
    let sequences = events.iter().map(|event| event.sequence);
    assert!(sequences.eq(1..=events.len() as u64));
    assert_eq!(of_type(&events, "run.succeeded").len(), 1);
}

async fn settled(house: &House, runs: &[RunId]) {
    let begun = Instant::now();
    for (n, run) in runs.iter().enumerate() {
        while !house.status(run).await.is_terminal() {
            let late = begun.elapsed() > Duration::from_secs(90);
            assert!(!late, "run {n} stays {:?}", house.types(run).await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        whole(house, run, n).await;
    }
    let mut wrong = Vec::new();
    let repair = Repair::new(&*house.store, false);
    let looked = repair.run(|finding| {
        wrong.push(finding.clone());
        Ok::<_, StoreError>(())
    });
    assert_eq!(looked.await.unwrap().runs, runs.len() as u64);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(house.engine.verify_audit(&by().tenant).await.unwrap().valid);
}

/// B070: many queued runs, four processes of two workers each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b070_four_processes_do_each_run_once() {
    let ground = Ground::postgres().await;
    let house = prepared(&ground).await;
    let mut runs = Vec::new();
    for n in 0..100 {
        runs.push(enqueue(&house, n).await);
    }
    let processes: Vec<_> = (0..4)
        .map(|_| Served::on(&ground, &[("SLUICEGATE_WORKERS", "2")]))
        .collect();
    settled(&house, &runs).await;
    let mut workers = std::collections::BTreeSet::new();
    for (n, run) in runs.iter().enumerate() {
        let events = house.events(run).await;
        // One for the wait for a retry, if there was one.
        let claimed = of_type(&events, "run.claimed");
        assert_eq!(claimed.len(), 1 + usize::from(n % 3 == 1));
        assert!(of_type(&events, "run.recovered").is_empty());
        workers.insert(claimed[0].payload["workerId"].to_string());
    }
    assert!(workers.len() > 1, "one did everything: {workers:?}");
    for process in processes {
        assert_eq!(process.terminate(), Some(0));
    }
}

/// W1, W5: a process stands still for longer than its leases; another takes its runs over.
/// When it wakes, it writes nothing about them, and goes on with what is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w1_a_frozen_process_that_wakes_late_writes_nothing() {
    let ground = Ground::postgres().await;
    let house = prepared(&ground).await;
    let mut named = LEASES.to_vec();
    named.push(("SLUICEGATE_WORKER_NAME", "frozen"));
    let frozen = Served::on(&ground, &named);
    let mut runs = Vec::new();
    for n in 0..6 {
        runs.push(enqueue(&house, n).await);
    }
    let held = &runs[2];
    house
        .until(held, |status| status == RunStatus::WaitingAgent)
        .await;
    frozen.signal("STOP");
    named.pop();
    let other = Served::on(&ground, &named);
    settled(&house, &runs).await;
    let recovered = house.named(held, "run.recovered").await;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].payload["prior"]["workerId"], "frozen");
    let before = house.events(held).await;
    let audit = house.store.audit_head(&by().tenant).await.unwrap();
    frozen.signal("CONT");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(house.events(held).await, before);
    assert_eq!(house.store.audit_head(&by().tenant).await.unwrap(), audit);
    assert_eq!(other.terminate(), Some(0));
    // It is still good for work.
    runs.push(enqueue(&house, 6).await);
    settled(&house, &runs).await;
    assert_eq!(frozen.terminate(), Some(0));
}

/// Three processes, one of which is killed or stopped again and again while runs come in.
async fn soak(whole: Duration) {
    let ground = Ground::postgres().await;
    let house = prepared(&ground).await;
    let start = || Served::on(&ground, &LEASES);
    let mut processes = [start(), start(), start()];
    let (begun, mut runs, mut deaths) = (Instant::now(), Vec::new(), 0_usize);
    while begun.elapsed() < whole {
        for _ in 0..10 {
            runs.push(enqueue(&house, runs.len()).await);
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        // Which and how goes by the clock, which nobody here controls.
        let chance = begun.elapsed().subsec_micros() as usize;
        let dies = std::mem::replace(&mut processes[chance % 3], start());
        if chance.is_multiple_of(5) {
            assert_eq!(dies.terminate(), Some(0));
        } else {
            dies.kill();
        }
        deaths += 1;
    }
    settled(&house, &runs).await;
    println!("{} runs, {deaths} deaths, all ended well once", runs.len());
    assert!(deaths > 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_die_all_the_time_lose_nothing_and_double_nothing() {
    soak(Duration::from_secs(8)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes: make soak"]
async fn ten_minutes_of_deaths() {
    soak(Duration::from_secs(600)).await;
}
