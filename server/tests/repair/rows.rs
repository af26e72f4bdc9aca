//! Rows that are not what the events project.

use std::collections::BTreeSet;
use std::time::Duration;

use sluicegate_core::ids::RunId;
use sluicegate_core::run::RunStatus;
use sluicegate_server::engine::repair::{Finding, Looked, Wrong};
use sluicegate_server::store::RowIs;

use crate::harness::ground::Ground;
use crate::harness::{by, on_both};
use crate::lived::{Lived, lived_in, only, repair};

on_both!(
    what_nobody_touched_is_as_its_events_say,
    every_projected_column_is_found_and_put_right,
    rows_that_are_missing_or_too_many_are_found_and_put_right,
    a_run_that_no_claim_would_find_is_found_again,
    a_preview_that_is_gone_is_told_and_not_invented,
    b110_rollups_are_the_same_after_a_rebuild_from_sequence_one
);

/// What events project, by table; the columns that name a row come first.
const TABLES: [(&str, &str, &[&str], &str); 5] = [
    (
        "workflow_runs",
        "",
        &[
            "open",
            "status",
            "last_sequence",
            "started_at",
            "completed_at",
            "cancel_requested_at",
            "wake_at",
            "nodes_settled",
            "nodes_total",
            "rollup_version",
            "rollup_state",
            "input_tokens",
            "output_tokens",
            "total_tokens",
            "included_child_run_ids",
            "priced_child_runs",
            "unpriced_child_runs",
            "action_invocations",
            "unpriced_actions",
            "amount_micros",
            "pricing_snapshot_ids",
            "failure_code",
            "failure_message",
            "failure_node_id",
        ],
        "",
    ),
    (
        "workflow_node_states",
        "node_id",
        &[
            "status",
            "latest_attempt",
            "outcome_port",
            "next_attempt_at",
            "ready_at",
            "started_at",
            "settled_at",
        ],
        "",
    ),
    (
        "workflow_node_attempts",
        "node_id, attempt",
        &[
            "node_type",
            "status",
            "semantic_group",
            "idempotency_key",
            "outcome_port",
            "child_kind",
            "child_id",
            "code",
            "message",
            "classification",
            "backoff_ms",
            "next_attempt_at",
            "input",
            "input_hash",
            "input_payload_id",
            "output",
            "output_hash",
            "output_payload_id",
            "usage",
            "cost",
            "started_at",
            "completed_at",
            "first_sequence",
            "last_sequence",
        ],
        "",
    ),
    (
        "workflow_edge_transfers",
        "edge_id",
        &[
            "state",
            "source_node_id",
            "source_port",
            "source_attempt",
            "target_node_id",
            "target_port",
            "selected_port",
            "reason",
            "schema_id",
            "payload_hash",
            "payload_id",
            "byte_size",
            "evidence",
            "settled_at",
        ],
        "",
    ),
    (
        "workflow_payloads",
        "payload_id",
        &["schema_id", "hash", "byte_size", "state", "reason"],
        "kind = 'evidence' and ",
    ),
];

/// Damages, finds, puts right, and compares with what was there.
async fn mended(lived: &mut Lived, damage: &str) -> Vec<Finding> {
    let before = lived.bare.dump().await;
    lived.bare.run(damage).await;
    let hurt = lived.bare.dump().await;
    assert_ne!(before, hurt, "{damage} does nothing");
    let (found, looked) = repair(&lived.house, false).await;
    assert_eq!(looked.repaired, 0);
    assert!(!found.is_empty(), "{damage}");
    assert_eq!(lived.bare.dump().await, hurt, "a check changes nothing");
    let (again, looked) = repair(&lived.house, true).await;
    assert_eq!(looked.repaired, looked.wrong, "{damage}: {again:?}");
    assert!(again.iter().all(|finding| finding.repaired));
    let wrong = |found: &[Finding]| found.iter().map(|f| f.wrong.clone()).collect::<Vec<_>>();
    assert_eq!(wrong(&again), wrong(&found));
    let after = lived.bare.dump().await;
    for (table, rows) in &before {
        assert_eq!(rows, &after[table], "{damage}: {table}");
    }
    let (nothing, looked) = repair(&lived.house, false).await;
    assert_eq!((nothing, looked.wrong), (Vec::new(), 0));
    found
}

async fn what_nobody_touched_is_as_its_events_say(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let before = lived.bare.dump().await;
    for apply in [false, true] {
        let (found, looked) = repair(&lived.house, apply).await;
        assert_eq!(found, []);
        assert_eq!(
            looked,
            Looked {
                runs: 7,
                wrong: 0,
                repaired: 0
            }
        );
        assert_eq!(lived.bare.dump().await, before);
    }
}

async fn every_projected_column_is_found_and_put_right(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    for (table, key, columns, of) in TABLES {
        let types = lived.bare.columns(table).await;
        let mut damage = String::new();
        for (index, column) in columns.iter().enumerate() {
            let is_text = types.iter().any(|(name, text)| name == column && *text);
            let other = match is_text {
                // What is no text any more, too, where the database lets that happen.
                true if index % 3 == 0 && !lived.bare.is_postgres() => {
                    "cast(x'ff' as text)".to_owned()
                }
                true => format!("coalesce({column}, '') || 'x'"),
                false => format!("coalesce({column}, 0) + 1"),
            };
            // Another row every time, of runs in every state.
            let named = if key.is_empty() {
                String::new()
            } else {
                format!(", {key}")
            };
            damage.push_str(&format!(
                "update {table} set {column} = {other} where {of}(tenant_id, run_id{named}) in
                     (select tenant_id, run_id{named} from {table} where {of}1 = 1
                      order by run_id{named} limit 1
                      offset {index} % (select count(*) from {table} where {of}1 = 1));"
            ));
        }
        let found = mended(&mut lived, &damage).await;
        let mut differ = BTreeSet::new();
        for finding in &found {
            let Wrong::Rows { differences, .. } = &finding.wrong else {
                panic!("{finding:?}");
            };
            for difference in differences {
                assert_eq!((difference.table, difference.is), (table, RowIs::Different));
                assert!(!difference.columns.is_empty());
                differ.extend(&difference.columns);
            }
        }
        assert_eq!(differ, columns.iter().copied().collect(), "{table}");
    }
}

async fn rows_that_are_missing_or_too_many_are_found_and_put_right(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let done = lived.done.clone();
    for (table, key, _, of) in &TABLES[1..] {
        let first =
            format!("{key} = (select {key} from {table} where {of}run_id = '{done}' limit 1)");
        let first = first
            .replace("node_id, attempt =", "node_id =")
            .replace("select node_id, attempt", "select node_id");
        if *table != "workflow_payloads" {
            let damage = format!("delete from {table} where run_id = '{done}' and {first}");
            let found = mended(&mut lived, &damage).await;
            assert_eq!(only(&found), ((*table).to_owned(), RowIs::Missing, vec![]));
        }
        let columns = lived.bare.names(table).await;
        let name = key.split(',').next().unwrap();
        let copied: Vec<_> = columns
            .split(", ")
            .map(|column| if column == name { "'added'" } else { column })
            .collect();
        let damage = format!(
            "insert into {table} ({columns})
             select {} from {table} where {of}run_id = '{done}' limit 1",
            copied.join(", ")
        );
        let found = mended(&mut lived, &damage).await;
        assert_eq!(only(&found), ((*table).to_owned(), RowIs::Extra, vec![]));
    }
    // All of a run at once.
    let damage = TABLES[1..4]
        .iter()
        .map(|(table, ..)| format!("delete from {table} where run_id = '{done}';"));
    let damage: String = damage.collect();
    let found = mended(&mut lived, &damage).await;
    let Wrong::Rows { differences, .. } = &found[0].wrong else {
        panic!("{found:?}");
    };
    assert!(differences.len() > 10);
    lived.house.check(&done).await;
}

async fn a_run_that_no_claim_would_find_is_found_again(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let waits = lived.waits.clone();
    lived
        .bare
        .run("update workflow_runs set claim_at = 9000000000000 where status = 'queued';")
        .await;
    let (found, _) = repair(&lived.house, true).await;
    let expected = (
        "workflow_runs".to_owned(),
        RowIs::Different,
        vec!["claim_at"],
    );
    assert_eq!(only(&found), expected);
    let workers = lived.house.workers("w");
    let query = "select run_id from workflow_runs where idempotency_key = 'queued'";
    let queued = RunId::from(lived.bare.texts(query).await.remove(0));
    assert_eq!(lived.house.ended(&queued).await, RunStatus::Succeeded);
    assert_eq!(lived.house.status(&waits).await, RunStatus::WaitingRetry);
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn a_preview_that_is_gone_is_told_and_not_invented(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let done = lived.done.clone();
    let damage = format!(
        "delete from workflow_payloads where run_id = '{done}' and kind = 'evidence' and payload_id = 'input'"
    );
    lived.bare.run(&damage).await;
    for apply in [false, true, false] {
        let (found, looked) = repair(&lived.house, apply).await;
        assert_eq!(
            only(&found),
            ("workflow_payloads".to_owned(), RowIs::Missing, vec![])
        );
        assert_eq!(looked.repaired, 0);
    }
}

async fn b110_rollups_are_the_same_after_a_rebuild_from_sequence_one(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let tenant = by().tenant;
    let before = lived
        .house
        .store
        .run_row(&tenant, &lived.done)
        .await
        .unwrap();
    assert!(before.row.usage.total_tokens > 0);
    let damage = format!(
        "update workflow_runs set input_tokens = 0, output_tokens = 7, total_tokens = 1,
             included_child_run_ids = '[]', priced_child_runs = 9, amount_micros = 1,
             pricing_snapshot_ids = '[\"x\"]', rollup_state = 'provisional'
         where run_id = '{}'",
        lived.done
    );
    mended(&mut lived, &damage).await;
    let after = lived
        .house
        .store
        .run_row(&tenant, &lived.done)
        .await
        .unwrap();
    assert_eq!(after, before);
}
