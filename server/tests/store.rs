//! What a store does, on both databases (architecture.md "Tests"; run-machine.md N1, W8, C3,
//! H2; api.md "Definitions").

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use counting::{Count, counting_graph, policy};
use harness::ground::Ground;
use harness::{by, of, on_both};
use serde_json::json;
use sluicegate_core::audit;
use sluicegate_core::ids::{ChildId, Hash, NodeId, RunId, TenantId};
use sluicegate_core::run::ChildKind;
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;
use sluicegate_server::actions::Action;
use sluicegate_server::store::{
    Account, ChildCancelled, ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus,
    DraftChange, GraphText, NewWorkflow, Publication, Save, Store, StoreError, WorkflowName,
    WorkflowStatus, by_key,
};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

fn other() -> TenantId {
    TenantId::from("other")
}

fn owner() -> Account {
    Account {
        account_id: "a1".to_owned(),
        display_name: "Ada".to_owned(),
        email: None,
        role: "owner".to_owned(),
    }
}

/// A store with the tenants `default` and `other`.
async fn store(ground: &Ground) -> Arc<dyn Store> {
    let store = ground.house().await.store;
    store.ensure_tenant(&other(), &owner()).await.unwrap();
    store
}

fn graph(text: &str) -> GraphText {
    GraphText {
        canonical: text.to_owned(),
        checksum: Hash::of(text.as_bytes()),
    }
}

fn new(key: &str) -> NewWorkflow {
    NewWorkflow {
        key: key.into(),
        name: key.to_uppercase(),
        description: String::new(),
        graph: graph("{}"),
    }
}

fn publication(workflow_id: &str, expected: u64, text: &str) -> Publication {
    Publication {
        workflow_id: workflow_id.to_owned(),
        expected,
        graph: graph(text),
        plan: Value::Null,
        plan_hash: Hash::of(text.as_bytes()),
        compiler_version: "1".to_owned(),
        note: None,
    }
}

async fn drafts_are_saved_with_the_version_that_was_seen(ground: Ground) {
    let store = store(&ground).await;
    let by = by();
    let made = store.create_workflow(&by, new("a.b")).await.unwrap();
    assert_eq!(made.row.status, WorkflowStatus::Draft);
    assert_eq!(
        store.create_workflow(&by, new("a.b")).await,
        Err(StoreError::KeyTaken)
    );
    let save = |expected| Save {
        workflow_id: made.row.workflow_id.clone(),
        expected,
        change: DraftChange {
            graph: Some(graph(r#"{"a":1}"#)),
            ..DraftChange::default()
        },
    };
    assert_eq!(
        store.save_draft(&by, save(1)).await.unwrap().draft_version,
        2
    );
    assert_eq!(
        store.save_draft(&by, save(1)).await,
        Err(StoreError::DraftConflict { draft_version: 2 })
    );
    let read = store.workflow(&by.tenant, &by_key("a.b")).await.unwrap();
    assert_eq!(read.draft.graph, serde_json::json!({"a": 1}));
    assert_eq!(read.row.name, "A.B");
}

async fn a_draft_equal_to_the_live_revision_makes_no_new_one(ground: Ground) {
    let store = store(&ground).await;
    let by = by();
    let made = store.create_workflow(&by, new("a")).await.unwrap();
    let id = made.row.workflow_id;
    let name = WorkflowName::Id(id.clone());
    assert_eq!(
        store.revision(&by.tenant, &name, None).await.unwrap_err(),
        StoreError::NotPublished
    );
    let first = store.publish(&by, publication(&id, 1, "{}")).await.unwrap();
    let again = store.publish(&by, publication(&id, 1, "{}")).await.unwrap();
    assert_eq!((first.revision, first.created), (1, true));
    assert_eq!((again.revision, again.created), (1, false));
    let unseen = store.publish(&by, publication(&id, 1, "{\"a\":1}")).await;
    assert_eq!(unseen, Err(StoreError::Stale));
    let delete = store.delete_workflow(&by, &id, 1).await;
    assert_eq!(delete, Err(StoreError::InUse));
    store.archive(&by, &id, 1).await.unwrap();
    assert!(
        store
            .revision(&by.tenant, &name, None)
            .await
            .unwrap()
            .archived
    );
    let late = store.publish(&by, publication(&id, 1, "{}")).await;
    assert_eq!(late, Err(StoreError::Archived));
}

async fn another_tenants_workflow_does_not_exist(ground: Ground) {
    let store = store(&ground).await;
    let made = store.create_workflow(&by(), new("a")).await;
    let name = WorkflowName::Id(made.unwrap().row.workflow_id);
    assert_eq!(
        store.workflow(&other(), &name).await,
        Err(StoreError::NotFound)
    );
    store
        .create_workflow(&of(&other()), new("a"))
        .await
        .unwrap();
}

async fn h2_every_act_is_a_link_of_its_tenants_chain(ground: Ground) {
    let store = store(&ground).await;
    for n in 0..5 {
        let key = format!("w{n}");
        store.create_workflow(&by(), new(&key)).await.unwrap();
    }
    // A refused act leaves no entry.
    let _ = store.create_workflow(&by(), new("w1")).await;
    store
        .create_workflow(&of(&other()), new("w"))
        .await
        .unwrap();
    let tenant = TenantId::from("default");
    let entries = store.audit_after(&tenant, 0, 100).await.unwrap();
    let head = store.audit_head(&tenant).await.unwrap();
    let answer = audit::verify(&entries, Some(head), None);
    assert!(answer.valid, "{answer:?}");
    assert_eq!(answer.checked_through_sequence, 5);
}

async fn many_writers_at_once_each_stand_alone(ground: Ground) {
    let store = store(&ground).await;
    let made = (0..40).map(|n| {
        let store = store.clone();
        // Every key twice: one of the two is refused, and takes nothing down with it.
        tokio::spawn(async move {
            let key = format!("w{}", n / 2);
            store.create_workflow(&by(), new(&key)).await
        })
    });
    let mut stood = 0;
    for made in made.collect::<Vec<_>>() {
        stood += usize::from(made.await.unwrap().is_ok());
    }
    assert_eq!(stood, 20);
    let head = store.audit_head(&TenantId::from("default")).await.unwrap();
    assert_eq!(head.sequence, 20);
}

fn intent(attempt: u32, fence: u64) -> ChildIntent {
    ChildIntent {
        tenant: TenantId::from("default"),
        run_id: RunId::from("r"),
        node_id: NodeId::from("n"),
        kind: ChildKind::Action,
        target: "x@1".to_owned(),
        key: Hash::of(b"key"),
        attempt,
        fence,
        new_id: ChildId::new(format!("c{attempt}-{fence}")),
        deadline_at: Instant(u64::from(attempt) * 100),
    }
}

fn settlement(child: &str, attempt: u32, fence: u64, status: ChildStatus) -> ChildSettlement {
    ChildSettlement {
        tenant: TenantId::from("default"),
        child_id: ChildId::from(child),
        attempt,
        fence,
        end: ChildEnd {
            status,
            output: Some(("k".to_owned(), vec![1, 2])),
            code: None,
            message: None,
            usage: None,
            cost: None,
        },
    }
}

async fn w8_a_higher_fence_takes_a_child_over_and_shuts_the_older_out(ground: Ground) {
    let store = store(&ground).await;
    let first = store.start_child(intent(1, 1)).await.unwrap();
    let ChildStanding::Execute { child_id, .. } = first else {
        panic!("{first:?}");
    };
    let taken = store.start_child(intent(1, 2)).await.unwrap();
    let expected = ChildStanding::Execute {
        child_id: child_id.clone(),
        deadline_at: Instant(100),
        cancelled: false,
    };
    assert_eq!(taken, expected);
    assert_eq!(
        store.start_child(intent(1, 1)).await.unwrap(),
        ChildStanding::ShutOut
    );
    let settle =
        |fence, status| store.settle_child(settlement(child_id.as_str(), 1, fence, status));
    assert!(!settle(1, ChildStatus::Succeeded).await.unwrap());
    assert!(settle(2, ChildStatus::Succeeded).await.unwrap());
    assert!(!settle(2, ChildStatus::Failed).await.unwrap());
    let tenant = TenantId::from("default");
    let standing = store.observe_child(&tenant, &child_id, 1, 9).await.unwrap();
    assert!(matches!(standing, ChildStanding::Settled { end, .. }
        if end.status == ChildStatus::Succeeded && end.output == Some(("k".to_owned(), vec![1, 2]))));
}

async fn n1_a_success_answers_every_later_attempt_and_a_failure_does_not(ground: Ground) {
    let store = store(&ground).await;
    store.start_child(intent(1, 1)).await.unwrap();
    let failed = settlement("c1-1", 1, 1, ChildStatus::Failed);
    assert!(store.settle_child(failed).await.unwrap());
    let second = store.start_child(intent(2, 1)).await.unwrap();
    assert!(matches!(second, ChildStanding::Execute { child_id, .. }
        if child_id == "c1-1"));
    let done = settlement("c1-1", 2, 1, ChildStatus::Succeeded);
    assert!(store.settle_child(done).await.unwrap());
    let third = store.start_child(intent(3, 1)).await.unwrap();
    assert!(matches!(third, ChildStanding::Settled { end, .. }
        if end.status == ChildStatus::Succeeded));
    let first = store.start_child(intent(1, 1)).await.unwrap();
    assert!(matches!(first, ChildStanding::Settled { end, .. }
        if end.status == ChildStatus::Failed));
}

async fn c3_an_unknown_key_is_kept_as_refused(ground: Ground) {
    let store = store(&ground).await;
    assert_eq!(
        store.cancel_child(intent(1, 1)).await.unwrap(),
        ChildCancelled::Barred
    );
    assert_eq!(
        store.start_child(intent(1, 2)).await.unwrap(),
        ChildStanding::Barred
    );
}

async fn a_failure_with_u_0000_in_its_words_ends_a_run_all_the_same(ground: Ground) {
    let count = Count::new(&Arc::default());
    let house = ground.open(&[count as Arc<dyn Action>]).await;
    let graph = counting_graph(&policy(1, &[], 0), &json!({}), "std.any");
    house.publish("count", &graph).await;
    let input = json!({"fail": "x.\u{0}", "message": "a\u{0}b"});
    let run = house.enqueue("count", input, "k").await.run_id;
    let workers = house.workers("w");
    house.ended(&run).await;
    house.check(&run).await;
    let detail = house.store.run_detail(&by().tenant, &run).await.unwrap();
    let attempt = &detail.attempts[0];
    assert_eq!(attempt.code.as_deref(), Some("x.\u{fffd}"));
    assert_eq!(attempt.message.as_deref(), Some("a\u{fffd}b"));
    assert!(workers.stop(Duration::from_secs(5)).await);
}

/// What the tables and their named indexes are called, column by column.
type Shape = BTreeMap<String, BTreeSet<String>>;

fn shape(rows: Vec<(String, String)>) -> Shape {
    let mut shape = Shape::new();
    for (of, part) in rows {
        shape.entry(of).or_default().insert(part);
    }
    shape
}

async fn shape_of_sqlite(ground: &Ground) -> Shape {
    let mut raw = harness::raw::open(ground.folder()).await;
    let rows = sqlx::query_as(
        "select m.name, c.name from sqlite_schema m, pragma_table_xinfo(m.name) c
         where m.type = 'table' and m.name not like 'sqlite_%'
         union all
         select m.name, c.seqno || ' ' || c.name from sqlite_schema m, pragma_index_info(m.name) c
         where m.type = 'index' and m.sql is not null",
    );
    shape(rows.fetch_all(&mut raw).await.unwrap())
}

async fn shape_of_postgres(ground: &Ground) -> Shape {
    let options: PgConnectOptions = ground.url().unwrap().parse().unwrap();
    let mut raw = options.connect().await.unwrap();
    let rows = sqlx::query_as(
        "select table_name::text, column_name::text from information_schema.columns
         where table_schema = 'public' and table_name <> 'schema_migrations'
         union all
         select i.relname::text, (a.attnum - 1) || ' ' || a.attname
         from pg_index x join pg_class i on i.oid = x.indexrelid
         join pg_attribute a on a.attrelid = i.oid
         join pg_namespace n on n.oid = i.relnamespace
         where n.nspname = 'public'
           and not exists (select from pg_constraint c where c.conindid = i.oid)",
    );
    shape(rows.fetch_all(&mut raw).await.unwrap())
}

#[tokio::test]
async fn both_databases_have_the_same_tables_columns_and_indexes() {
    let (sqlite, postgres) = (Ground::sqlite(), Ground::postgres().await);
    store(&sqlite).await;
    store(&postgres).await;
    let (sqlite, postgres) = (
        shape_of_sqlite(&sqlite).await,
        shape_of_postgres(&postgres).await,
    );
    assert!(sqlite.len() > 20, "{sqlite:?}");
    for (of, parts) in &sqlite {
        assert_eq!(Some(parts), postgres.get(of), "{of}");
    }
    assert_eq!(sqlite.len(), postgres.len(), "{postgres:#?}");
}

/// The answer of the database itself to a statement behind the store's back.
async fn asked(ground: &Ground, sql: String) -> Result<(), sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(sql);
    match ground.url() {
        None => {
            let mut raw = harness::raw::open(ground.folder()).await;
            sqlx::raw_sql(sql).execute(&mut raw).await.map(drop)
        }
        Some(url) => {
            let options: PgConnectOptions = url.parse().unwrap();
            let mut raw = options.connect().await.unwrap();
            sqlx::raw_sql(sql).execute(&mut raw).await.map(drop)
        }
    }
}

/// Seed A "Persistence outline": an execution row never carries a preview, an evidence row never
/// an encrypted value, whoever writes it.
async fn the_database_keeps_encrypted_values_and_evidence_apart(ground: Ground) {
    store(&ground).await;
    let bytes = match ground.url() {
        None => "x'00'",
        Some(_) => "'\\x00'",
    };
    let row = async |kind: &str, state: &str, preview: &str, key_id: &str, bytes: &str| {
        let sql = format!(
            "insert into workflow_payloads
                 (tenant_id, run_id, payload_id, kind, schema_id, byte_size, state, preview,
                  key_id, bytes, created_at)
             values ('default', 'r', 'p', '{kind}', 'std.any', 1, {state}, {preview}, {key_id},
                     {bytes}, 0)"
        );
        asked(&ground, sql).await
    };
    let (shown, sealed) = ("'available'", "'k'");
    assert!(
        row("execution", "null", "'1'", sealed, bytes)
            .await
            .is_err()
    );
    assert!(
        row("execution", shown, "null", sealed, bytes)
            .await
            .is_err()
    );
    assert!(
        row("execution", "null", "null", "null", "null")
            .await
            .is_err()
    );
    assert!(row("result", "null", "'1'", sealed, bytes).await.is_err());
    assert!(row("evidence", shown, "'1'", sealed, bytes).await.is_err());
    assert!(row("evidence", shown, "'1'", "null", bytes).await.is_err());
    assert!(
        row("evidence", "null", "'1'", "null", "null")
            .await
            .is_err()
    );
    assert!(row("preview", shown, "'1'", "null", "null").await.is_err());
    row("execution", "null", "null", sealed, bytes)
        .await
        .unwrap();
    row("evidence", shown, "'1'", "null", "null").await.unwrap();
}

on_both! {
    the_database_keeps_encrypted_values_and_evidence_apart,
    a_failure_with_u_0000_in_its_words_ends_a_run_all_the_same,
    drafts_are_saved_with_the_version_that_was_seen,
    a_draft_equal_to_the_live_revision_makes_no_new_one,
    another_tenants_workflow_does_not_exist,
    h2_every_act_is_a_link_of_its_tenants_chain,
    many_writers_at_once_each_stand_alone,
    w8_a_higher_fence_takes_a_child_over_and_shuts_the_older_out,
    n1_a_success_answers_every_later_attempt_and_a_failure_does_not,
    c3_an_unknown_key_is_kept_as_refused,
}
