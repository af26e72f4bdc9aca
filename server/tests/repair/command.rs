//! `sluicegate repair`.

use std::process::{Command, Output};

use serde_json::json;
use sluicegate_core::value::Value;
use sluicegate_server::store::sqlite::Folder;

use crate::harness::ground::Ground;
use crate::harness::on_both;
use crate::lived::lived_in;

on_both!(the_command_answers_with_its_exit_code);

/// A repair of the ground's database.
fn sluicegate(ground: &Ground, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.arg("repair").args(arguments);
    match ground.url() {
        None => command.arg("--data").arg(ground.folder()),
        Some(url) => command.args(["--database", url]),
    };
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fault(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_is_made_where_nothing_is() {
    let ground = Ground::sqlite();
    let empty = sluicegate(&ground, &["--check"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(
        fault(&empty).contains("there is no such file"),
        "{}",
        fault(&empty)
    );
    std::fs::remove_dir_all(ground.folder()).unwrap();
    let absent = sluicegate(&ground, &["--check"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(
        fault(&absent).contains("there is no folder"),
        "{}",
        fault(&absent)
    );
    assert!(!ground.folder().exists());
    for wrong in [&[][..], &["--check", "--apply"]] {
        assert_eq!(sluicegate(&ground, wrong).status.code(), Some(2));
    }
}

#[tokio::test]
async fn a_folder_that_a_server_holds_is_refused() {
    let ground = Ground::sqlite();
    drop(ground.house().await);
    let held = Folder::hold(ground.folder()).unwrap();
    let refused = sluicegate(&ground, &["--apply"]);
    assert_eq!(refused.status.code(), Some(2));
    let fault = fault(&refused);
    assert!(fault.contains("is held by another process"), "{fault}");
    drop(held);
    assert_eq!(sluicegate(&ground, &["--apply"]).status.code(), Some(0));
}

async fn the_command_answers_with_its_exit_code(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let whole = sluicegate(&ground, &["--check"]);
    assert_eq!(whole.status.code(), Some(0), "{}", fault(&whole));
    assert_eq!(said(&whole), "7 runs are as their events say\n");
    let done = lived.done.clone();
    let query = format!("select node_id from workflow_node_states where run_id = '{done}' limit 1");
    let first = lived.bare.texts(&query).await.remove(0);
    let place = format!("where run_id = '{done}' and node_id = '{first}'");
    let damage = format!("update workflow_node_states set status = 'ready' {place}");
    lived.bare.run(&damage).await;
    let hurt = sluicegate(&ground, &["--check"]);
    assert_eq!(hurt.status.code(), Some(1));
    let line = format!("run {done}: workflow_node_states {first} differs in status\n");
    assert!(said(&hurt).starts_with(&line), "{}", said(&hurt));
    let hurt = sluicegate(&ground, &["--check", "--json"]);
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
    let applied = sluicegate(&ground, &["--apply"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    assert!(said(&applied).ends_with("1 of 1 runs repaired, 7 looked at\n"));
    assert_eq!(sluicegate(&ground, &["--check"]).status.code(), Some(0));
}
