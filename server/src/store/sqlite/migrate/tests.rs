//! Migration 0003 over what an older server left, sound and damaged (server.md §1).

use serde_json::{Value, json};
use sluicegate_core::ids::{RunId, TenantId};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};

use super::MIGRATIONS;
use crate::clock::Clock;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000001";

async fn run(raw: &mut SqliteConnection, text: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(text)).execute(raw).await;
    done.unwrap();
}

async fn number(raw: &mut SqliteConnection, text: String) -> i64 {
    let found = sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(raw);
    found.await.unwrap()
}

fn whole(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn evidence(id: &str) -> Value {
    json!({"version": 1, "state": "available", "payloadId": id, "schemaId": "std.any",
           "hash": HASH, "originalByteSize": 7})
}

fn run_row() -> Value {
    json!({"status": "running", "mode": "live", "lastSequence": 1, "queuedAt": 1000,
           "startedAt": 1500, "wakeAt": 5000, "nodesSettled": 1, "nodesTotal": 2,
           "usage": {"version": 1, "state": "provisional", "inputTokens": 3, "outputTokens": 4,
                     "totalTokens": 7, "includedChildRunIds": ["c"], "pricedChildRuns": 1,
                     "unpricedChildRuns": 0, "actionInvocations": 2, "unpricedActions": 2},
           "cost": {"version": 1, "state": "provisional", "currency": "USD", "amountMicros": 9,
                    "pricingSnapshotIds": ["p"], "unpricedChildRuns": 0, "unpricedActions": 2}})
}

fn node_row() -> Value {
    json!({"nodeId": "a", "status": "running", "latestAttempt": 1, "readyAt": 1500,
           "startedAt": 1600})
}

fn attempt_row() -> Value {
    json!({"nodeId": "a", "attempt": 1, "status": "running", "semanticGroup": 1,
           "startedAt": 1600, "input": evidence("a/1/input"), "firstSequence": 4,
           "lastSequence": 5})
}

fn edge_row() -> Value {
    json!({"edgeId": "e", "state": "emitted", "source": {"nodeId": "s", "port": "out", "attempt": 1},
           "target": {"nodeId": "a", "port": "in"}, "selectedPort": "out",
           "evidence": evidence("a/1/input"), "settledAt": 1550})
}

fn invocation() -> Value {
    json!({"compilerVersion": "9.9", "permissionDigest": HASH, "limits": {"maxNodes": 5},
           "input": {"payloadId": "in/put"}})
}

/// The rows of one run as schema 2 kept them.
struct Old {
    id: &'static str,
    /// Its columns from `open` to `parked_sequence`.
    state: &'static str,
    event: Option<String>,
    /// What stands in place of each projected row, where one is damaged.
    damage: Option<&'static str>,
    evidence_state: &'static str,
}

impl Old {
    fn sql(&self) -> String {
        let Self { id, state, .. } = self;
        let row = |sound: Value| self.damage.map_or_else(|| sound.to_string(), str::to_owned);
        let actor = json!({"kind": "user", "accountId": "u", "displayName": "Una"});
        let mut text = format!(
            "insert into workflow_runs values ('t', '{id}', 'w', 'key', 1, '{HASH}', '{HASH}',
                 'live', 'running', 'user', 'u', '{actor}', 'manual', '{{\"kind\":\"manual\"}}',
                 '[]', '{HASH}', 'k-{id}', 1, 1000, null, 5000, null, '{}', {state});
             insert into workflow_node_states values ('t', '{id}', 'a', 'running', '{}');
             insert into workflow_node_attempts
                 values ('t', '{id}', 'a', 1, 'running', null, null, null, '{}');
             insert into workflow_edge_transfers values ('t', '{id}', 'e', '{}', '{}');
             insert into workflow_payloads values
                 ('t', '{id}', 'a/1/input', 'evidence', 'std.any', '{}', '1', null, null, 1),
                 ('t', '{id}', 'a/1/input', 'execution', 'std.any', '{}', null, 'k', x'01', 1);",
            row(run_row()),
            row(node_row()),
            row(attempt_row()),
            self.evidence_state,
            row(edge_row()),
            row(evidence("a/1/input")),
            row(evidence("a/1/input")),
        );
        if let Some(event) = &self.event {
            text.push_str(&format!(
                "insert into workflow_run_events
                     values ('t', '{id}', 1, 'run.queued', 1, '{event}', 1000, null);"
            ));
        }
        text
    }
}

/// The runs, and when each may be claimed.
fn runs() -> Vec<(Old, i64)> {
    const DUE: &str = "1, null, null, 0, null, 0, null, null";
    const HELD: &str = "1, 'w', 'token', 3, 9000, 0, null, null";
    const VOID: &str = "1, 'w', 'token', 3, 9000, 1, null, null";
    const PARKED: &str = "0, null, null, 0, null, 0, 'WORKFLOW_EVENT_TRANSITION_INVALID', 1";
    let old = |id, state| Old {
        id,
        state,
        event: Some(invocation().to_string()),
        damage: None,
        evidence_state: "emitted",
    };
    let event = |id, state, event: Option<&str>| Old {
        event: event.map(str::to_owned),
        ..old(id, state)
    };
    let damage = |id, damage| Old {
        damage: Some(damage),
        evidence_state: "unheard",
        ..old(id, DUE)
    };
    vec![
        (old("sound", HELD), 9000),
        (old("void", VOID), 5000),
        (event("parked", PARKED, Some("{\"no")), 5000),
        (event("empty", PARKED, Some("{}")), 5000),
        (event("list", DUE, Some("[1]")), 5000),
        (event("beheaded", DUE, None), 5000),
        (damage("broken", "{\"startedAt\":"), 5000),
        (damage("hollow", "{}"), 5000),
        (
            damage(
                "words",
                r#"{"startedAt":"soon","nodesTotal":[],"latestAttempt":"x","semanticGroup":{},
                    "firstSequence":"y","settledAt":"z","originalByteSize":"much","state":"odd",
                    "usage":7,"source":"s"}"#,
            ),
            5000,
        ),
    ]
}

async fn old_database(raw: &mut SqliteConnection) {
    for text in MIGRATIONS.iter().take(2) {
        run(raw, (*text).to_owned()).await;
    }
    let graph = json!({"nodes": ["odd", {"id": "a", "type": "std.wait"}]});
    run(
        raw,
        format!(
            "pragma journal_mode = wal;
             insert into tenants values ('t', 1);
             insert into workflow_definitions values ('t', 'w', 'key', 'Name', '', 'published', 1,
                 '{graph}', '{HASH}', 1, 'u', 1, 1, 'u', 1, 'u');
             insert into workflow_revisions values
                 ('t', 'w', 1, 1, '{graph}', '{HASH}', '9.9', '{{}}', '{HASH}', 1, 'u', null);"
        ),
    )
    .await;
    for (old, _) in runs() {
        run(raw, old.sql()).await;
    }
    run(raw, "pragma user_version = 2".to_owned()).await;
}

#[tokio::test]
async fn a9_an_older_database_loses_nothing_however_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let options = SqliteConnectOptions::new().filename(&file);
    let mut raw = options.create_if_missing(true).connect().await.unwrap();
    old_database(&mut raw).await;
    let store = SqliteStore::open(&file, Clock::start()).await.unwrap();

    let all = runs();
    for (table, each) in [
        ("workflow_runs", 1),
        ("workflow_node_states", 1),
        ("workflow_node_attempts", 1),
        ("workflow_edge_transfers", 1),
        ("workflow_payloads", 2),
    ] {
        let count = number(&mut raw, format!("select count(*) from {table}")).await;
        assert_eq!(count, all.len() as i64 * each, "{table}");
    }
    let tenant = TenantId::from("t");
    for (old, claim_at) in &all {
        let query = format!(
            "select claim_at from workflow_runs where run_id = '{}'",
            old.id
        );
        assert_eq!(number(&mut raw, query).await, *claim_at, "{}", old.id);
        let id = RunId::from(old.id);
        let row = store.run_row(&tenant, &id).await;
        assert!(row.is_ok(), "{}: {row:?}", old.id);
        let loaded = store.load_run(&tenant, &id).await.unwrap();
        assert_eq!(loaded.events.len(), usize::from(old.event.is_some()));
    }

    let detail = store.run_detail(&tenant, &RunId::from("sound")).await;
    let detail = detail.unwrap();
    assert_eq!(whole(&detail.row.row), run_row());
    assert_eq!(whole(&detail.nodes), json!([node_row()]));
    assert_eq!(whole(&detail.attempts), json!([attempt_row()]));
    assert_eq!(whole(&detail.edges), json!([edge_row()]));
    let [payload] = detail.payloads.as_slice() else {
        panic!("{:?}", detail.payloads);
    };
    assert_eq!(whole(&payload.evidence), evidence("a/1/input"));
    assert_eq!(payload.preview, Some(json!(1)));
    assert_eq!(detail.invocation, invocation());
    let kept = "select count(*) from workflow_runs r join workflow_node_attempts a using (run_id)
                where run_id = 'sound' and r.compiler_version = '9.9' and r.actor_label = 'Una'
                  and r.input_payload_id = 'in/put' and r.limits = '{\"maxNodes\":5}'
                  and a.node_type = 'std.wait' and r.lease_fence = 3";
    assert_eq!(number(&mut raw, kept.to_owned()).await, 1);
}
