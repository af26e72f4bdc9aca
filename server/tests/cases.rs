//! Reported faults of other systems, as they must not happen here: recovery, retries,
//! cancellation, cost and secrets of live runs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
mod harness;

use std::sync::Arc;
use std::time::{Duration, Instant};

use counting::{Business, Count, counting_graph, policy};
use harness::{House, by};
use serde_json::json;
use sluicegate_core::catalogue::Cancellation;
use sluicegate_core::run::{ChildKind, RollupState, RunStatus};
use sluicegate_server::worker::Workers;

async fn counting_house(
    folder: &std::path::Path,
    count: Arc<Count>,
    policy: serde_json::Value,
) -> House {
    let house = House::open_with(folder, vec![count]).await;
    house
        .publish("count", &counting_graph(&policy, &json!({}), "std.any"))
        .await;
    house
}

async fn stop(workers: Workers) {
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn b059_an_action_that_timed_out_after_its_effect_is_not_done_twice() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let count = Arc::new(Count {
        timeout_ms: 300,
        ..Arc::into_inner(Count::new(&business)).unwrap()
    });
    let house = counting_house(folder.path(), count, policy(3, &["action.timeout"], 20)).await;
    let workers = house.workers("w");
    let run = house
        .enqueue("count", json!({"sleepMs": 60_000}), "k")
        .await
        .run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let effects = business.effects.lock().unwrap().clone();
    assert_eq!(effects.values().collect::<Vec<_>>(), [&1]);
    let asked = business.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1], "N1: one key for the whole run");
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    let ids: std::collections::BTreeSet<_> = children.iter().map(|child| &child.child_id).collect();
    assert_eq!(
        (children.len(), ids.len()),
        (2, 1),
        "one invocation, two attempts"
    );
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    assert_eq!(row.usage.action_invocations, 1);
    stop(workers).await;
}

#[tokio::test]
async fn b062_a_retry_keeps_its_time_through_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = counting_house(
        folder.path(),
        Count::new(&business),
        policy(2, &["x.busy"], 1_200),
    )
    .await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("count", json!({"failFirst": "x.busy"}), "k")
        .await
        .run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingRetry)
        .await;
    let scheduled = house.events(&run).await.pop().unwrap();
    assert_eq!(scheduled.event_type, "node.retry.scheduled");
    let due = scheduled.payload["nextAttemptAt"].as_u64().unwrap();
    stop(workers).await;
    // The lease went back with the wait (W4): nothing to recover, and nothing too early.
    let workers = house.workers("w2");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    let events = house.events(&run).await;
    let started = events
        .iter()
        .find(|event| event.event_type == "node.retry.started")
        .unwrap();
    assert_eq!(started.payload["scheduledSequence"], scheduled.sequence);
    assert!(started.recorded_at.0 >= due);
    assert!(started.recorded_at.0 < due + 1_000, "woken at its time");
    assert!(
        !events
            .iter()
            .any(|event| event.event_type == "run.recovered")
    );
    house.check(&run).await;
    stop(workers).await;
}

#[tokio::test]
async fn b072_a_waiting_retry_is_cancelled_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = counting_house(
        folder.path(),
        Count::new(&business),
        policy(2, &["x.busy"], 600_000),
    )
    .await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("count", json!({"fail": "x.busy"}), "k")
        .await
        .run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingRetry)
        .await;
    let answer = house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::Cancelled);
    house.check(&run).await;
    let before = house.types(&run).await;
    assert!(!before.contains(&"node.retry.started".to_owned()));
    assert_eq!(
        house.engine.cancel(&by(), &run, None).await.unwrap(),
        answer
    );
    assert_eq!(house.types(&run).await, before);
    // B079: nothing is left that runs, waits or is ready.
    let detail = house.store.run_detail(&by().tenant, &run).await.unwrap();
    assert!(
        detail.nodes.iter().all(|node| node.status.is_final()),
        "{:?}",
        detail.nodes
    );
    assert_eq!(detail.edges.len(), 2);
    assert_eq!(detail.row.row.cost.state, RollupState::Final);
    stop(workers).await;
}

#[tokio::test]
async fn b074_a_failure_after_the_cancellation_does_not_fail_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let count = Count::new(&business);
    let house = counting_house(folder.path(), count, policy(1, &[], 0)).await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("count", json!({"sleepMs": 700}), "k")
        .await
        .run_id;
    // The action does not listen (C2): it is observed to its end.
    while business.effects.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = house
        .engine
        .cancel(&by(), &run, Some("enough".to_owned()))
        .await
        .unwrap();
    assert_eq!(answer.status, RunStatus::CancelRequested);
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let events = house.events(&run).await;
    let named = |name: &str| {
        events
            .iter()
            .filter(|event| event.event_type == name)
            .collect::<Vec<_>>()
    };
    let deaf = named("node.cancel.not-acknowledged");
    assert_eq!(deaf[0].payload["reason"], "not-supported");
    assert_eq!(named("node.result.late-ignored").len(), 1);
    assert!(
        named("edge.settled")
            .iter()
            .all(|edge| edge.payload["edgeId"] == "e1" || edge.payload["state"] == "skipped")
    );
    assert_eq!(named("run.cancelled").len(), 1);
    stop(workers).await;
}

#[tokio::test]
async fn c2_a_cooperative_action_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let count = Arc::new(Count {
        cancellation: Cancellation::Cooperative,
        ..Arc::into_inner(Count::new(&business)).unwrap()
    });
    let house = counting_house(folder.path(), count, policy(1, &[], 0)).await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("count", json!({"sleepMs": 60_000}), "k")
        .await
        .run_id;
    while business.effects.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begun = Instant::now();
    house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(2));
    house.check(&run).await;
    let types = house.types(&run).await;
    assert!(
        types.contains(&"node.cancel.acknowledged".to_owned()),
        "{types:?}"
    );
    stop(workers).await;
}

#[tokio::test]
async fn b070_many_runs_by_many_workers_are_each_done_once() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = counting_house(folder.path(), Count::new(&business), policy(1, &[], 0)).await;
    let mut runs = Vec::new();
    for n in 0..60 {
        runs.push(
            house
                .enqueue("count", json!({"n": n}), &format!("k{n}"))
                .await
                .run_id,
        );
    }
    let other = House::open_with(folder.path(), vec![Count::new(&business)]).await;
    let workers = [house.workers("a"), house.workers("b"), other.workers("c")];
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        let types = house.types(run).await;
        assert_eq!(
            types.iter().filter(|name| *name == "run.claimed").count(),
            1
        );
        assert!(!types.contains(&"run.recovered".to_owned()));
    }
    assert_eq!(business.effects.lock().unwrap().len(), 60);
    house.check(&runs[0]).await;
    for workers in workers {
        stop(workers).await;
    }
}

#[tokio::test]
async fn b110_each_child_counts_once_with_the_prices_of_its_revision() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path()).await;
    house
        .agent(json!({
            "agentId": "priced", "name": "Priced", "provider": "scripted", "model": "scripted-1",
            "pricing": {"inputMicrosPerMillionTokens": 4_000_000,
                        "outputMicrosPerMillionTokens": 5_000_000},
            "rules": [
                {"when": {"literal": true}, "attempt": 1,
                 "then": {"failure": {"code": "agent.rate-limited"}},
                 "usage": {"inputTokens": 100, "outputTokens": 20}},
                {"when": {"literal": true}, "then": {"text": "x"},
                 "usage": {"inputTokens": 110, "outputTokens": 30}}]
        }))
        .await;
    let graph = json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "ask", "type": "agent", "agent": {"agentId": "priced", "revision": 1},
             "failurePolicy": policy(2, &["agent.rate-limited"], 10),
             "ports": {"input": "std.any", "success": "std.text", "failure": "std.failure"}},
            {"id": "out", "type": "output", "ports": {"input": "std.text"}}
        ],
        "edges": [
            {"id": "e1", "source": {"nodeId": "in", "port": "data"},
             "target": {"nodeId": "ask", "port": "input"}},
            {"id": "e2", "source": {"nodeId": "ask", "port": "success"},
             "target": {"nodeId": "out", "port": "input"}}
        ],
        "schemas": {}, "layout": {}
    });
    house.publish("priced", &graph).await;
    let workers = house.workers("w");
    let run = house.enqueue("priced", json!("x"), "k").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    let usage = &row.usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.total_tokens),
        (210, 50, 260)
    );
    assert_eq!((usage.priced_child_runs, usage.unpriced_child_runs), (2, 0));
    assert_eq!(row.cost.amount_micros, 500 + 590);
    assert_eq!(row.cost.pricing_snapshot_ids, ["priced@1"]);
    assert_eq!(usage.state, RollupState::Final);
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    let agents: Vec<_> = children
        .iter()
        .filter(|child| child.kind == ChildKind::Agent)
        .collect();
    let ids: Vec<_> = agents.iter().map(|child| child.child_id.clone()).collect();
    assert_eq!(usage.included_child_run_ids, ids);
    stop(workers).await;
}

#[tokio::test]
async fn b106_a_secret_stands_nowhere_in_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = House::open_with(folder.path(), vec![Count::new(&business)]).await;
    let schemas = json!({"order": {"type": "object", "properties": {
        "pass": {"type": "string", "writeOnly": true}}}});
    house
        .publish(
            "secret",
            &counting_graph(&policy(1, &[], 0), &schemas, "order"),
        )
        .await;
    let secret = "hunter2-ABCDEFGHIJ";
    let message = format!("{}postgres://u:{secret}@h/db", "x".repeat(180));
    let input = json!({"pass": secret, "fail": "action.failed", "message": message});
    let workers = house.workers("w");
    let run = house.enqueue("secret", input, "k").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    house.check(&run).await;
    stop(workers).await;
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    let failure = row.failure.unwrap();
    assert!(!failure.message.contains("hunter"), "{failure:?}");
    drop(house);
    let mut looked = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        looked += bytes.len();
        for piece in secret.as_bytes().windows(6) {
            let found = bytes.windows(6).position(|window| window == piece);
            assert_eq!(found, None, "{}", String::from_utf8_lossy(piece));
        }
    }
    assert!(looked > 10_000);
}

#[tokio::test]
async fn n4_an_action_that_calls_back_into_workflows_is_refused() {
    use async_trait::async_trait;
    use sluicegate_core::catalogue::ActionDescriptor;
    use sluicegate_core::value::Value;
    use sluicegate_server::actions::{Action, ActionFault, Invocation};
    use sluicegate_server::engine::{Engine, Enqueue};
    use std::sync::OnceLock;

    struct CallsBack(ActionDescriptor, Arc<OnceLock<Arc<Engine>>>);

    #[async_trait]
    impl Action for CallsBack {
        fn descriptor(&self) -> ActionDescriptor {
            self.0.clone()
        }

        async fn invoke(&self, _: Invocation) -> Result<Value, ActionFault> {
            let request = Enqueue {
                workflow_key: "count".into(),
                input: json!(1),
                idempotency_key: "inner".to_owned(),
            };
            let engine = self.1.get().unwrap();
            match engine.enqueue(&by(), &[], request).await {
                Ok(_) => Ok(json!("it went through")),
                Err(error) => Err(ActionFault {
                    code: error.code().as_str().to_owned(),
                    message: error.to_string(),
                }),
            }
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let descriptor = Count::new(&Arc::default());
    let engine = Arc::new(OnceLock::new());
    let action = CallsBack(descriptor.descriptor(), Arc::clone(&engine));
    let house = House::open_with(folder.path(), vec![Arc::new(action)]).await;
    engine.set(Arc::clone(&house.engine)).ok().unwrap();
    house
        .publish(
            "count",
            &counting_graph(&policy(1, &[], 0), &json!({}), "std.any"),
        )
        .await;
    let workers = house.workers("w");
    let run = house.enqueue("count", json!({}), "outer").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Refused);
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    assert_eq!(row.failure.unwrap().code, "action.reentrant");
    stop(workers).await;
}

#[tokio::test]
async fn a9_a_run_that_names_a_child_that_does_not_exist_is_not_guessed_about() {
    use sqlx::{ConnectOptions, Connection};
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = counting_house(folder.path(), Count::new(&business), policy(1, &[], 0)).await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("count", json!({"sleepMs": 3_000}), "k")
        .await
        .run_id;
    loop {
        let types = house.types(&run).await;
        if types.contains(&"node.child.waiting".to_owned()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop(workers).await;
    let file = folder.path().join("sluicegate.sqlite");
    let mut raw = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap();
    let gone = "delete from child_attempts; delete from child_runs";
    sqlx::raw_sql(gone).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
    let house = House::open_with(folder.path(), vec![Count::new(&business)]).await;
    let workers = house.workers("w2");
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    assert_eq!(row.failure.unwrap().code, "WORKFLOW_RECOVERY_INCONSISTENT");
    house.check(&run).await;
    stop(workers).await;
}

#[tokio::test]
async fn a9_a_damaged_payload_ends_the_run_and_is_not_guessed_about() {
    use sqlx::{ConnectOptions, Connection};
    let folder = tempfile::tempdir().unwrap();
    let business = Arc::new(Business::default());
    let house = counting_house(folder.path(), Count::new(&business), policy(1, &[], 0)).await;
    let file = folder.path().join("sluicegate.sqlite");
    let mut raw = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap();
    let hurts = [
        "update workflow_payloads set bytes = zeroblob(64) where kind = 'execution'",
        "delete from workflow_payloads where kind = 'execution'",
    ];
    for hurt in hurts {
        let run = house.enqueue("count", json!({}), hurt).await.run_id;
        sqlx::raw_sql(hurt).execute(&mut raw).await.unwrap();
        let workers = house.workers("w");
        assert_eq!(house.ended(&run).await, RunStatus::Failed);
        let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
        assert_eq!(row.failure.unwrap().code, "WORKFLOW_RECOVERY_INCONSISTENT");
        house.check(&run).await;
        stop(workers).await;
    }
    raw.close().await.unwrap();
    assert!(business.asked.lock().unwrap().is_empty());
}
