//! The real binary dies at every named point, starts again and ends as one that did not die
//! (architecture.md "Tests", Crash; run-machine.md W6, W8; B-cases of recovery). Effects are
//! counted in the target's own tables.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use harness::{House, by, sample};
use serde_json::json;
use sluicegate_core::ids::{Hash, RunId};
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::value::Value;
use sluicegate_server::engine::crash::CrashPoint;
use sluicegate_server::store::{ApiKey, ChildStatus};

const KEY: &str = "sgk_for-a-test";

/// A running server; it is killed when the test is done with it.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts the binary on a folder, to die at `crash` if one is given.
    fn start(folder: &Path, crash: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--data",
            ])
            .arg(folder)
            .env_remove("SLUICEGATE_CRASH_AT")
            .stdout(Stdio::piped());
        if let Some(crash) = crash {
            command.env("SLUICEGATE_CRASH_AT", crash);
        }
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().map_or_else(String::new, Result::unwrap);
        let address = first.strip_prefix("listening on ").unwrap_or("").to_owned();
        // Read on, so that the server is never blocked by a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// Waits until the process has died by itself.
    fn died(mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.process.try_wait().unwrap() {
                assert!(!status.success(), "it ended in peace");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server never came to the point");
    }

    /// Kills it as the kernel does: nothing is finished.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = ureq::get(format!("{}{path}", self.address))
            .header("Authorization", format!("Bearer {KEY}"))
            .call()
            .unwrap();
        serde_json::from_reader(answer.body_mut().as_reader()).unwrap()
    }

    fn until(&self, run: &RunId, reached: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.get(&format!("/api/workflow-runs/result?runId={run}"));
            let status = answer["status"].as_str().unwrap().to_owned();
            if reached(&status) {
                return status;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it stays {status}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder as a server leaves it: the samples, a slow agent, and a key.
async fn prepare(folder: &Path) -> House {
    let house = House::open(folder).await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    house.agent(slow_agent()).await;
    house.publish("slow.work", &slow_graph()).await;
    let key = ApiKey {
        tenant: by().tenant,
        key_id: "k1".to_owned(),
        label: "test".to_owned(),
        secret: Hash::of(KEY.as_bytes()),
        permissions: vec!["workflows.runs.read".to_owned()],
        created_by: "a1".to_owned(),
        expires_at: None,
    };
    house.store.create_api_key(&key).await.unwrap();
    house
}

fn slow_agent() -> Value {
    json!({
        "agentId": "slow", "name": "Slow", "provider": "scripted", "model": "scripted-1",
        "rules": [{"when": {"literal": true}, "delayMs": 1500, "then": {"text": "done"},
                   "usage": {"inputTokens": 3, "outputTokens": 4}}]
    })
}

fn slow_graph() -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "ask", "type": "agent", "agent": {"agentId": "slow", "revision": 1},
             "failurePolicy": {"maxAttempts": 1, "retryOn": [],
                 "backoff": {"kind": "fixed", "initialMs": 0, "maximumMs": 0},
                 "onExhausted": "fail-run"},
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
    })
}

fn review() -> Value {
    sample("expenses.review/approved.input.json")
}

/// What happened, but for who worked and when: claims and recoveries may differ.
async fn course(house: &House, run: &RunId) -> Vec<Value> {
    let events = house.events(run).await;
    let kept = [
        "nodeId",
        "attempt",
        "edgeId",
        "status",
        "outcomePort",
        "state",
        "code",
        "output",
    ];
    let mut seen = Vec::new();
    for event in events {
        if ["run.claimed", "run.recovered"].contains(&event.event_type.as_str()) {
            continue;
        }
        let members = event.payload.as_object().unwrap().iter();
        let members = members.filter(|(name, _)| kept.contains(&name.as_str()));
        let members: std::collections::BTreeMap<_, _> = members.collect();
        seen.push(json!([event.event_type, members]));
    }
    seen
}

/// One child a kind, settled; one decision in the claims table.
async fn counted(house: &House, run: &RunId, point: &str) {
    let children = house.store.children(&by().tenant, run).await.unwrap();
    for kind in [ChildKind::Agent, ChildKind::Action] {
        let of_kind = children.iter().filter(|child| child.kind == kind);
        assert_eq!(of_kind.count(), 1, "{point}: {children:?}");
    }
    let claim = review()["claimId"].as_str().unwrap().to_owned();
    let tenant = by().tenant;
    let mutations = house.claims.claim_mutations(&tenant, &claim).await;
    assert_eq!(mutations.unwrap(), 1, "{point}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_point_changes_nothing_but_who_worked() {
    let expected = {
        let folder = tempfile::tempdir().unwrap();
        let house = prepare(folder.path()).await;
        let run = house.enqueue("expenses.review", review(), "k").await.run_id;
        drop(house);
        let server = Server::start(folder.path(), None);
        assert_eq!(
            server.until(&run, |status| status == "succeeded"),
            "succeeded"
        );
        server.kill();
        let house = House::open(folder.path()).await;
        counted(&house, &run, "no crash").await;
        course(&house, &run).await
    };
    // The first child of the run is an agent's, the second an action's.
    let twice = [
        CrashPoint::BeforeIntent,
        CrashPoint::AfterIntent,
        CrashPoint::AfterChildStart,
        CrashPoint::DuringChild,
    ];
    let mut points = Vec::new();
    for point in CrashPoint::ALL {
        match point {
            // Tests of their own: the request dies with the server; a child that answers at once
            // ends in the commit that settles it.
            CrashPoint::AfterEnqueue | CrashPoint::AfterChildEnd => {}
            // Points of sweeps, in their own file.
            CrashPoint::BeforeRetention
            | CrashPoint::BeforeDeletion
            | CrashPoint::DuringDeletion => {}
            point if twice.contains(point) => {
                points.extend([1, 2].map(|nth| format!("{}:{nth}", point.as_str())));
            }
            point => points.push(point.as_str().to_owned()),
        }
    }
    for point in points {
        let folder = tempfile::tempdir().unwrap();
        let house = prepare(folder.path()).await;
        let run = house.enqueue("expenses.review", review(), "k").await.run_id;
        drop(house);
        Server::start(folder.path(), Some(&point)).died();
        let server = Server::start(folder.path(), None);
        let status = server.until(&run, |status| {
            ["succeeded", "failed", "refused", "cancelled"].contains(&status)
        });
        assert_eq!(status, "succeeded", "{point}");
        server.kill();
        let house = House::open(folder.path()).await;
        house.check(&run).await;
        counted(&house, &run, &point).await;
        assert_eq!(course(&house, &run).await, expected, "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w8_a_kill_while_an_agent_works_leaves_one_child_run() {
    let folder = tempfile::tempdir().unwrap();
    let house = prepare(folder.path()).await;
    let run = house.enqueue("slow.work", json!("x"), "k").await.run_id;
    drop(house);
    let server = Server::start(folder.path(), None);
    server.until(&run, |status| status == "waiting-agent");
    server.kill();
    let server = Server::start(folder.path(), None);
    server.until(&run, |status| status == "succeeded");
    server.kill();
    let house = House::open(folder.path()).await;
    house.check(&run).await;
    assert_eq!(house.status(&run).await, RunStatus::Succeeded);
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].executions, 2, "taken over under the same id");
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    assert_eq!(row.usage.total_tokens, 7, "U1: counted once");
    let types = house.types(&run).await;
    assert_eq!(
        types.iter().filter(|name| *name == "run.recovered").count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn w8_a_death_between_a_childs_end_and_its_settlement_settles_with_that_end() {
    let folder = tempfile::tempdir().unwrap();
    let house = prepare(folder.path()).await;
    let run = house.enqueue("slow.work", json!("x"), "k").await.run_id;
    drop(house);
    Server::start(folder.path(), Some(CrashPoint::AfterChildEnd.as_str())).died();
    let server = Server::start(folder.path(), None);
    server.until(&run, |status| status == "succeeded");
    server.kill();
    let house = House::open(folder.path()).await;
    house.check(&run).await;
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].executions, 1, "it is not executed again");
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_request_that_died_with_the_server_finds_its_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let house = prepare(folder.path()).await;
    let key = ApiKey {
        tenant: by().tenant,
        key_id: "k2".to_owned(),
        label: "test".to_owned(),
        secret: Hash::of(b"sgk_executes"),
        permissions: [
            "workflows.runs.execute",
            "expenses.claims.read",
            "expenses.claims.write",
        ]
        .map(str::to_owned)
        .to_vec(),
        created_by: "a1".to_owned(),
        expires_at: None,
    };
    house.store.create_api_key(&key).await.unwrap();
    drop(house);
    let ask = |server: &Server| {
        let body = json!({"workflowKey": "expenses.review", "input": review(),
                          "idempotencyKey": "k"});
        ureq::post(format!("{}/api/workflow-runs", server.address))
            .header("Authorization", "Bearer sgk_executes")
            .header("Content-Type", "application/json")
            .send(body.to_string())
    };
    let server = Server::start(folder.path(), Some(CrashPoint::AfterEnqueue.as_str()));
    assert!(ask(&server).is_err(), "the answer died with the server");
    server.died();
    let server = Server::start(folder.path(), None);
    let mut answer = ask(&server).unwrap();
    let answer: Value = serde_json::from_reader(answer.body_mut().as_reader()).unwrap();
    assert_eq!(answer["created"], false);
    let run = RunId::from(answer["runId"].as_str().unwrap());
    server.until(&run, |status| status == "succeeded");
    server.kill();
    let house = House::open(folder.path()).await;
    house.check(&run).await;
    counted(&house, &run, "after-enqueue").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c3_a_child_that_was_intended_and_never_called_does_not_start_late() {
    let folder = tempfile::tempdir().unwrap();
    let house = prepare(folder.path()).await;
    let run = house.enqueue("slow.work", json!("x"), "k").await.run_id;
    drop(house);
    Server::start(folder.path(), Some(CrashPoint::AfterIntent.as_str())).died();
    let house = House::open(folder.path()).await;
    house.store.void_leases().await.unwrap();
    let answer = house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::CancelRequested);
    let begun = Instant::now();
    let workers = house.workers("w");
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    assert!(
        begun.elapsed() < Duration::from_millis(1_200),
        "it was not executed"
    );
    house.check(&run).await;
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].status, ChildStatus::Cancelled);
    let events = house.events(&run).await;
    let acknowledged = events
        .iter()
        .find(|event| event.event_type == "node.cancel.acknowledged");
    assert_eq!(
        acknowledged.unwrap().payload["childId"],
        children[0].child_id.as_str()
    );
    let settled = events
        .iter()
        .rfind(|event| event.event_type == "node.attempt.settled")
        .unwrap();
    assert_eq!(settled.payload["status"], "cancelled");
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn c2_a_cancellation_outlives_the_worker_that_would_have_carried_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let house = prepare(folder.path()).await;
    let run = house.enqueue("slow.work", json!("x"), "k").await.run_id;
    drop(house);
    let server = Server::start(folder.path(), None);
    server.until(&run, |status| status == "waiting-agent");
    server.kill();
    let house = House::open(folder.path()).await;
    house.store.void_leases().await.unwrap();
    house.engine.cancel(&by(), &run, None).await.unwrap();
    let begun = Instant::now();
    let workers = house.workers("w");
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    assert!(
        begun.elapsed() < Duration::from_millis(1_200),
        "it was not executed to its end"
    );
    house.check(&run).await;
    assert_eq!(
        house
            .store
            .children(&by().tenant, &run)
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(workers.stop(Duration::from_secs(5)).await);
}
