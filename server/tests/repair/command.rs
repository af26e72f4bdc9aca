//! `sluicegate repair`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use sluicegate_core::value::Value;

use crate::harness::raw;
use crate::lived::lived_in;

fn sluicegate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(arguments)
        .arg("--data")
        .arg(folder)
        .output()
        .unwrap()
}

#[tokio::test]
async fn the_command_answers_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let fault = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    // Nothing is made where nothing is.
    let absent = sluicegate(&data, &["repair", "--check"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(
        fault(&absent).contains("there is no folder"),
        "{}",
        fault(&absent)
    );
    assert!(!data.exists());
    std::fs::create_dir(&data).unwrap();
    let empty = sluicegate(&data, &["repair", "--check"]);
    assert_eq!(empty.status.code(), Some(2));
    let neither = sluicegate(&data, &["repair"]);
    assert_eq!(neither.status.code(), Some(2));
    let both = sluicegate(&data, &["repair", "--check", "--apply"]);
    assert_eq!(both.status.code(), Some(2));

    let mut lived = lived_in(&data).await;
    let whole = sluicegate(&data, &["repair", "--check"]);
    assert_eq!(whole.status.code(), Some(0), "{}", fault(&whole));
    assert_eq!(said(&whole), "7 runs are as their events say\n");
    let damage = format!(
        "update workflow_node_states set status = 'ready' where run_id = '{}' and node_id = 'in'",
        lived.done
    );
    let first: String =
        sqlx::query_scalar("select node_id from workflow_node_states where run_id = ? limit 1")
            .bind(lived.done.as_str())
            .fetch_one(&mut lived.raw)
            .await
            .unwrap();
    let damage = damage.replace("'in'", &format!("'{first}'"));
    raw::run(&mut lived.raw, &damage).await;
    let hurt = sluicegate(&data, &["repair", "--check"]);
    assert_eq!(hurt.status.code(), Some(1));
    let line = format!(
        "run {}: workflow_node_states {first} differs in status\n",
        lived.done
    );
    assert!(said(&hurt).starts_with(&line), "{}", said(&hurt));
    let hurt = sluicegate(&data, &["repair", "--check", "--json"]);
    assert_eq!(hurt.status.code(), Some(1));
    let lines: Vec<Value> = said(&hurt)
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[0]["wrong"], "rows");
    assert_eq!(lines[0]["differences"][0]["columns"], json!(["status"]));
    assert_eq!(
        lines[1]["looked"],
        json!({"runs": 7, "wrong": 1, "repaired": 0})
    );
    let applied = sluicegate(&data, &["repair", "--apply"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    assert!(said(&applied).ends_with("1 of 1 runs repaired, 7 looked at\n"));
    assert_eq!(
        sluicegate(&data, &["repair", "--check"]).status.code(),
        Some(0)
    );

    let held = sluicegate_server::store::sqlite::Folder::hold(&data).unwrap();
    let refused = sluicegate(&data, &["repair", "--apply"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        fault(&refused).contains("is held by another process"),
        "{}",
        fault(&refused)
    );
    drop(held);
}
