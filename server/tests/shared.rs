//! Several real processes on one PostgreSQL (server.md §1): roles, a shared key file, and
//! every way in which one does not start.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;
#[path = "harness/served.rs"]
mod served;

use std::path::Path;
use std::process::Command;

use harness::cluster::execute;
use harness::ground::Ground;
use harness::sample;
use serde_json::json;
use sluicegate_core::ids::RunId;

use served::{Served, allow};

/// Runs `sluicegate` to its end; gives its exit code, output and message.
fn sluicegate(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_answers_and_two_work_and_one_of_those_may_die() {
    let ground = Ground::postgres().await;
    let house = ground.house().await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let may = [
        "workflows.runs.execute",
        "workflows.runs.read",
        "expenses.claims.write",
    ];
    allow(&house, "k1", &may).await;
    let keys = ground.folder().join("keys");
    let (url, keys) = (ground.url().unwrap(), keys.to_str().unwrap());
    let start = |role: &str| {
        let folder = ground.folder().join(role);
        let environment = [
            ("SLUICEGATE_DATABASE_URL", url),
            ("SLUICEGATE_KEY_FILE", keys),
            ("SLUICEGATE_ROLE", role),
            ("SLUICEGATE_LEASE_MS", "1000"),
            ("SLUICEGATE_RENEW_MS", "300"),
        ];
        Served::start(&folder, &environment)
    };
    let (api, worker, other) = (start("api"), start("worker"), start("worker"));
    assert!(worker.address.is_empty(), "a worker answers nobody");
    let mut runs = Vec::new();
    for n in 0..6 {
        let body = json!({
            "workflowKey": "expenses.review",
            "idempotencyKey": format!("k{n}"),
            "input": sample("expenses.review/approved.input.json"),
        });
        let (status, answer) = api.post("/api/workflow-runs", &body);
        assert_eq!(status, 202, "{answer}");
        runs.push(RunId::from(answer["runId"].as_str().unwrap()));
    }
    other.kill();
    for run in &runs {
        assert_eq!(api.until(run, |status| status == "succeeded"), "succeeded");
        house.check(run).await;
    }
    assert_eq!(worker.terminate(), Some(0));
    assert_eq!(api.terminate(), Some(0));
    assert!(
        !ground.folder().join("api").exists(),
        "no data folder is needed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_a_process_from_a_database_is_one_line_without_its_password() {
    let ground = Ground::postgres().await;
    let house = ground.house().await;
    let url = ground.url().unwrap();
    let data = ground.folder().join("data");
    let refused = |url: &str, place: &str, more: &[&str]| {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", text(&data)];
        let arguments = [&arguments[..], more].concat();
        let said = sluicegate(&arguments, &[("SLUICEGATE_DATABASE_URL", url)]);
        let (code, output, message) = said;
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(place) && output.is_empty(), "{message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(!message.contains("test-only"), "{message}");
    };
    let port = harness::cluster::Cluster::shared().port().to_string();
    refused(&url.replace(&port, "1"), "Connection refused", &[]);
    refused(
        &url.replace("test-only", "wrong"),
        "password authentication failed",
        &[],
    );
    refused(&format!("{url}x"), "does not exist", &[]);
    refused("mysql://u:test-only@h/d", "SLUICEGATE_DATABASE_URL", &[]);
    // Something is stored with a key that this process does not have.
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let input = sample("expenses.review/approved.input.json");
    house.enqueue("expenses.review", input, "a").await;
    refused(url, "lacks the key", &[]);
    let role = ["--role", "worker"];
    refused(url, "lacks the key", &role);
    execute(url, "insert into schema_migrations (number) values (999)").await;
    refused(url, "use a newer binary", &[]);
    let alone = ["serve", "--role", "worker", "--data", text(&data)];
    let (code, _, message) = sluicegate(&alone, &[]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("role worker: this needs a --database"),
        "{message}"
    );
}

#[test]
fn a_password_is_not_printed_with_the_settings() {
    let url = "postgres://ada:s3cret@127.0.0.1:5432/flows";
    let (code, output, _) = sluicegate(&["config", "--database", url], &[]);
    assert_eq!(code, Some(0));
    assert!(
        output.contains("# database = \"postgres://ada@127.0.0.1:5432/flows\""),
        "{output}"
    );
    assert!(!output.contains("s3cret"));
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
