//! Secrets (server.md §7; wire-format.md S5): they stand nowhere but encrypted, and what a key
//! encrypted stays readable when another one follows it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
mod harness;

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use counting::{Business, Count, counting_graph, policy};
use harness::bare::Bare;
use harness::ground::Ground;
use harness::{House, by, on_both};
use serde_json::json;
use sluicegate_core::catalogue::{ActionDescriptor, Cancellation, Idempotency, Risk};
use sluicegate_core::ids::{Hash, RunId};
use sluicegate_core::run::RunStatus;
use sluicegate_core::value::Value;
use sluicegate_server::actions::{Action, ActionFault, Invocation};
use sluicegate_server::clock::Clock;
use sluicegate_server::http::{self, Server};
use sluicegate_server::payload::Keys;
use sluicegate_server::store::ApiKey;
use sluicegate_server::stream::{Cursors, Hub};

on_both!(
    b106_b108_a_secret_that_goes_every_way_stands_nowhere_but_encrypted,
    b109_what_a_provider_echoes_is_not_kept,
    s7_a_run_goes_on_over_a_rotation_and_old_results_stay_readable,
);

/// A secret by its place: a `writeOnly` member of the input.
const PLACED: &str = "hunter2-ABCDEFGHIJ";
/// A secret by its looks.
const LOOKS: &str = "sk-proj-Zq81mVx0Pw93LkTr57";
const KEY: &str = "sgk_for-a-test";

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `x.leak`: says what it was told in every way that an action can.
struct Leak;

#[async_trait]
impl Action for Leak {
    fn descriptor(&self) -> ActionDescriptor {
        ActionDescriptor {
            id: "x.count".into(),
            contract_version: 1,
            description: "Leaks.".to_owned(),
            required_permissions: Vec::new(),
            input_schema: json!(true),
            output_schema: json!(true),
            timeout_ms: 5_000,
            idempotency: Idempotency::Required,
            risk: Risk::WorkspaceWrite,
            cancellation: Cancellation::NotSupported,
            retryable_codes: vec!["x.busy".to_owned()],
        }
    }

    async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault> {
        let pass = call.input["pass"].as_str().unwrap().to_owned();
        let fault = |code: &str, message: String| {
            Err(ActionFault {
                code: code.to_owned(),
                message,
            })
        };
        let padded = |what: &str| format!("{}postgres://u:{what}@h/db", "x".repeat(180));
        match call.input["how"].as_str().unwrap() {
            "code" => fault(&format!("x.{pass}"), "no".to_owned()),
            "code-of-looks" => fault(LOOKS, "no".to_owned()),
            "message" => fault("action.failed", padded(&pass)),
            "message-of-looks" => fault(
                "action.failed",
                json!({"headers": {"Authorization": format!("Bearer {LOOKS}"), "x-api-key": LOOKS}})
                    .to_string(),
            ),
            "retry" => fault("x.busy", padded(&pass)),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(600)).await;
                fault("action.failed", pass)
            }
            _ => Ok(json!({
                pass.as_str(): 1,
                LOOKS: [[LOOKS], {"deep": [pass]}],
                "text": padded(&pass),
                "session_id": "kept-nowhere-778899",
                "number": pass.len(),
            })),
        }
    }
}

/// A server of this process over a house, and its address.
async fn serve(house: &House) -> String {
    let key = ApiKey {
        tenant: by().tenant,
        key_id: "k1".to_owned(),
        label: "test".to_owned(),
        secret: Hash::of(KEY.as_bytes()),
        permissions: [
            "workflows.runs.read",
            "workflows.runs.execute",
            "workflows.runs.cancel",
        ]
        .map(str::to_owned)
        .to_vec(),
        created_by: "a1".to_owned(),
        expires_at: None,
    };
    house.store.create_api_key(&key).await.unwrap();
    let (_open, closing) = tokio::sync::watch::channel(false);
    let server = Server {
        store: house.store.clone(),
        engine: house.engine.clone(),
        clock: Clock::start(),
        hub: Hub::default(),
        cursors: Cursors::new([7; 32]),
        owner_may: Vec::new(),
        closing,
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        // Kept open for as long as the test lasts.
        let _open = _open;
        axum::serve(listener, http::router(Arc::new(server), None)).await
    });
    format!("http://{address}")
}

/// The whole text of an answer, refusal or not.
async fn ask(address: &str, path: &str, body: Option<Value>) -> String {
    let url = format!("{address}{path}");
    tokio::task::spawn_blocking(move || {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = ureq::Agent::from(config.build());
        let bearer = format!("Bearer {KEY}");
        let answer = match body {
            None => agent.get(url).header("Authorization", bearer).call(),
            Some(body) => agent
                .post(url)
                .header("Authorization", bearer)
                .header("Content-Type", "application/json")
                .send(body.to_string()),
        };
        answer.unwrap().body_mut().read_to_string().unwrap()
    })
    .await
    .unwrap()
}

/// Fails where six characters of a secret stand together.
#[track_caller]
fn without(secret: &str, text: &[u8], place: &str) {
    for piece in secret.as_bytes().windows(6) {
        if let Some(at) = text.windows(6).position(|window| window == piece) {
            let from = at.saturating_sub(120);
            let around = &text[from..text.len().min(at + 60)];
            panic!(
                "{secret} is in {place}: … {} …",
                String::from_utf8_lossy(around)
            );
        }
    }
}

fn schemas() -> Value {
    json!({"order": {"type": "object", "properties": {
        "pass": {"type": "string", "writeOnly": true},
        "how": {"type": "string"}}, "required": ["pass", "how"]}})
}

/// What this process logs, from here on.
fn logged() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let begin = || {
        let log = Log::default();
        let written = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::TRACE)
            .with_writer(move || written.clone())
            .init();
        log
    };
    LOG.get_or_init(begin).clone()
}

async fn b106_b108_a_secret_that_goes_every_way_stands_nowhere_but_encrypted(ground: Ground) {
    let log = logged();
    let house = ground.open(&[Arc::new(Leak)]).await;
    house
        .publish(
            "leak",
            &counting_graph(&policy(1, &[], 0), &schemas(), "order"),
        )
        .await;
    let retried = counting_graph(&policy(2, &["x.busy"], 5), &schemas(), "order");
    house.publish("leak.again", &retried).await;
    let address = serve(&house).await;
    let workers = house.workers("w");
    let mut said = Vec::new();
    let mut runs = Vec::new();
    let ways = [
        ("leak", "code", "failed"),
        ("leak", "code-of-looks", "failed"),
        ("leak", "message", "failed"),
        ("leak", "message-of-looks", "failed"),
        ("leak.again", "retry", "failed"),
        ("leak", "slow", "cancelled"),
        ("leak", "output", "succeeded"),
    ];
    for (workflow, how, end) in ways {
        let input = json!({"pass": PLACED, "how": how, "api_key": "kept-nowhere-112233",
                           "note": format!("Authorization: Bearer {LOOKS}")});
        let body = json!({"workflowKey": workflow, "input": input, "idempotencyKey": how});
        let accepted = ask(&address, "/api/workflow-runs", Some(body)).await;
        let run = serde_json::from_str::<Value>(&accepted).unwrap()["runId"].clone();
        let run = RunId::from(run.as_str().unwrap_or_else(|| panic!("{accepted}")));
        if how == "slow" {
            house
                .until(&run, |status| status == RunStatus::Running)
                .await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let reason = format!("it says {PLACED} and {LOOKS}");
            let body = json!({"runId": run, "reason": reason});
            said.push(ask(&address, "/api/workflow-runs/cancel", Some(body)).await);
        }
        assert_eq!(house.ended(&run).await.as_str(), end, "{how}");
        house.check(&run).await;
        said.push(accepted);
        for path in ["detail", "events", "result"] {
            let path = format!("/api/workflow-runs/{path}?runId={run}");
            let answer = ask(&address, &path, None).await;
            assert!(answer.contains(run.as_str()), "{path}: {answer}");
            said.push(answer);
        }
        runs.push(run);
    }
    for (path, body) in [
        ("/api/workflow-runs?limit=100", None),
        ("/api/workflow-audit?limit=100", None),
        ("/api/workflow-audit/verify", None),
        // Refusals quote what is wrong, and not what is secret.
        (
            "/api/workflow-runs",
            Some(json!({"workflowKey": "leak", "idempotencyKey": "n",
                        "input": {"pass": [PLACED], "how": LOOKS}})),
        ),
        (
            "/api/workflow-runs",
            Some(json!({"workflowKey": "leak", "idempotencyKey": "m",
                        "input": {"pass": PLACED, "how": [PLACED, LOOKS]}})),
        ),
        (
            "/api/workflow-runs",
            Some(json!({"workflowKey": "leak", "idempotencyKey": "code",
                        "input": {"pass": format!("{PLACED}!"), "how": "code"}})),
        ),
    ] {
        said.push(ask(&address, path, body).await);
    }
    assert!(
        said.last()
            .unwrap()
            .contains("WORKFLOW_IDEMPOTENCY_CONFLICT")
    );
    assert!(workers.stop(Duration::from_secs(5)).await);

    let secrets = [PLACED, LOOKS, "kept-nowhere-112233", "kept-nowhere-778899"];
    let said = said.join("\n");
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.len() > 1_000, "nothing was logged");
    for secret in secrets {
        without(secret, said.as_bytes(), "an answer");
        without(secret, &logged, "the log");
    }
    let mut bare = Bare::open(&ground).await;
    let mut stored: Vec<(String, Vec<u8>)> = Vec::new();
    for (table, rows) in bare.dump().await {
        stored.push((table, rows.join("\n").into_bytes()));
    }
    // Every byte of the files too, where they are ours.
    for entry in std::fs::read_dir(ground.folder()).unwrap() {
        let path = entry.unwrap().path();
        stored.push((path.display().to_string(), std::fs::read(&path).unwrap()));
    }
    assert!(stored.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > 100_000);
    for (place, bytes) in &stored {
        for secret in secrets {
            without(secret, bytes, place);
            // A dump shows bytes as digits.
            let text = String::from_utf8_lossy(bytes).to_lowercase();
            for piece in secret.as_bytes().windows(6) {
                let digits: String = piece.iter().map(|byte| format!("{byte:02x}")).collect();
                assert!(!text.contains(&digits), "{secret} is in {place} as digits");
            }
        }
    }
    // The message shows its rest, and size and hash are kept.
    let row = house
        .store
        .run_row(&by().tenant, &runs[2])
        .await
        .unwrap()
        .row;
    let message = row.failure.unwrap().message;
    assert!(
        message.starts_with("xxx") && message.contains("***"),
        "{message}"
    );
    assert!(message.ends_with("@h/db"), "{message}");
    let detail = house
        .store
        .run_detail(&by().tenant, &runs[6])
        .await
        .unwrap();
    let output = detail
        .payloads
        .iter()
        .find(|p| p.payload_id.as_str() == "act/1/success");
    let evidence = &output.unwrap().evidence;
    assert_eq!(serde_json::to_value(evidence.state).unwrap(), "redacted");
    assert_eq!(serde_json::to_value(evidence.reason).unwrap(), "secret");
    assert!(evidence.hash.is_some() && evidence.original_byte_size > 250);
}

async fn b109_what_a_provider_echoes_is_not_kept(ground: Ground) {
    let house = ground.house().await;
    let echo = json!({"headers": {"Authorization": format!("Bearer {LOOKS}"), "x-api-key": LOOKS}});
    house
        .agent(json!({
            "agentId": "echo", "name": "Echo", "provider": "scripted", "model": "scripted-1",
            "rules": [{"when": {"literal": true},
                       "then": {"failure": {"code": "agent.unavailable",
                                            "message": echo.to_string()}}}]
        }))
        .await;
    let graph = json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "ask", "type": "agent", "agent": {"agentId": "echo", "revision": 1},
             "failurePolicy": policy(1, &[], 0),
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
    house.publish("echo", &graph).await;
    let workers = house.workers("w");
    let run = house.enqueue("echo", json!("x"), "k").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    assert!(workers.stop(Duration::from_secs(5)).await);
    let failure = house
        .store
        .run_row(&by().tenant, &run)
        .await
        .unwrap()
        .row
        .failure;
    assert_eq!(failure.unwrap().code, "agent.unavailable");
    // Where its author wrote it stands outside; what was made of it is looked through.
    let mut bare = Bare::open(&ground).await;
    let mut dumped = bare.dump().await;
    dumped.remove("agent_definition_revisions").unwrap();
    for (table, rows) in dumped {
        without(LOOKS, rows.join("\n").as_bytes(), &table);
    }
}

async fn s7_a_run_goes_on_over_a_rotation_and_old_results_stay_readable(ground: Ground) {
    let business = Arc::new(Business::default());
    let more: [Arc<dyn Action>; 1] = [Count::new(&business)];
    let open = || ground.open(&more);
    let house = open().await;
    let graph = counting_graph(&policy(2, &["x.busy"], 400), &json!({}), "std.any");
    house.publish("count", &graph).await;
    let workers = house.workers("w1");
    let done = house.enqueue("count", json!({"n": 1}), "k1").await.run_id;
    assert_eq!(house.ended(&done).await, RunStatus::Succeeded);
    let first = house.engine.result(&by().tenant, &done).await.unwrap();
    let waits = house
        .enqueue("count", json!({"failFirst": "x.busy"}), "k2")
        .await
        .run_id;
    house
        .until(&waits, |status| status == RunStatus::WaitingRetry)
        .await;
    assert!(workers.stop(Duration::from_secs(5)).await);
    let old = house.store.payload_keys().await.unwrap();
    assert_eq!(old.len(), 1);
    drop(house);

    let file = ground.folder().join("keys");
    let key = Keys::rotate(&file).unwrap();
    let house = open().await;
    let workers = house.workers("w2");
    assert_eq!(
        house.engine.result(&by().tenant, &done).await.unwrap(),
        first
    );
    assert_eq!(house.ended(&waits).await, RunStatus::Succeeded);
    let result = house.engine.result(&by().tenant, &waits).await.unwrap();
    assert_eq!(result.outputs, first.outputs);
    assert!(workers.stop(Duration::from_secs(5)).await);
    let mut named = house.store.payload_keys().await.unwrap();
    named.retain(|id| !old.contains(id));
    assert_eq!(named, [key], "what is new is written with the newest");
    assert!(Keys::open(&file).unwrap().cover(&file, &old).is_ok());

    // Without the old key nothing begins.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.lines().nth(1).unwrap()).unwrap();
    let named = house.store.payload_keys().await.unwrap();
    let lacks = Keys::open(&file).unwrap().cover(&file, &named).unwrap_err();
    assert!(lacks.to_string().contains(&old[0]), "{lacks}");
}
