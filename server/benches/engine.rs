//! Durable runs a second on SQLite, with everything that a live run keeps: events, rows,
//! encrypted payloads and the audit chain, `synchronous=FULL` (architecture.md "Rules";
//! server.md §1). One JSON object a line.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::{House, by, sample};
use serde_json::json;
use sluicegate_core::ids::WorkerId;
use sluicegate_core::value::Value;
use sluicegate_server::worker::{WorkerSettings, Workers};

/// Callers at the same time.
const CALLERS: u32 = 32;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        measure("plain", 2_000).await;
        measure("expenses.review", 500).await;
    });
}

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

async fn measure(key: &'static str, runs: u32) {
    let folder = tempfile::tempdir().unwrap();
    let house = Arc::new(House::open(folder.path()).await);
    house.sample_agents().await;
    let (graph, input) = match key {
        "plain" => (plain(), json!({"n": 1})),
        _ => (
            sample(&format!("{key}.json")),
            sample(&format!("{key}/approved.input.json")),
        ),
    };
    house.publish(key, &graph).await;
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (house, input) = (Arc::clone(&house), input.clone());
            tokio::spawn(async move {
                for n in (caller..runs).step_by(CALLERS as usize) {
                    let mut input = input.clone();
                    // Every claim is another, so that each is decided once.
                    if let Some(claim) = input.get_mut("claimId") {
                        *claim = format!("c-{}", 1_000 + n).into();
                    }
                    house.enqueue(key, input, &format!("k{n}")).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let accepted = begun.elapsed();
    let begun = Instant::now();
    let workers = Workers::start(
        Arc::clone(&house.engine),
        WorkerSettings {
            concurrency: 64,
            ..WorkerSettings::named(WorkerId::from("bench"))
        },
    );
    while house.store.next_due().await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let done = begun.elapsed();
    assert!(workers.stop(Duration::from_secs(10)).await);
    let head = house.store.audit_head(&by().tenant).await.unwrap();
    let per_second = |elapsed: Duration| (f64::from(runs) / elapsed.as_secs_f64()).round();
    println!(
        "{}",
        json!({
            "workflow": key,
            "runs": runs,
            "acceptedPerSecond": per_second(accepted),
            "finishedPerSecond": per_second(done),
            "decisions": head.sequence,
        })
    );
}
