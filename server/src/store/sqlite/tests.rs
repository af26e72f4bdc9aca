use super::*;
use crate::store::{
    Account, By, ChildCancelled, ChildEnd, ChildIntent, ChildSettlement, ChildStanding,
    ChildStatus, DraftChange, GraphText, NewWorkflow, Publication, Save, Store, WorkflowName,
    WorkflowStatus, by_key,
};
use sluicegate_core::actor::{Actor, Origin, UserActor};
use sluicegate_core::audit;
use sluicegate_core::ids::{ChildId, Hash, NodeId, RunId};
use sluicegate_core::run::ChildKind;
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;
use sqlx::Row;

async fn store(folder: &Path) -> SqliteStore {
    let store = SqliteStore::open(&folder.join("db"), Clock::start()).await;
    let store = store.unwrap();
    let owner = Account {
        account_id: "a1".to_owned(),
        display_name: "Ada".to_owned(),
        email: None,
        role: "owner".to_owned(),
    };
    for tenant in ["default", "other"] {
        store
            .ensure_tenant(&TenantId::from(tenant), &owner)
            .await
            .unwrap();
    }
    store
}

fn by(tenant: &str) -> By {
    By {
        tenant: TenantId::from(tenant),
        actor: Actor::User(UserActor {
            account_id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            email: None,
        }),
        origin: Origin::Manual,
    }
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

#[tokio::test]
async fn drafts_are_saved_with_the_version_that_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let by = by("default");
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

#[tokio::test]
async fn a_draft_equal_to_the_live_revision_makes_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let by = by("default");
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

#[tokio::test]
async fn another_tenants_workflow_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let made = store.create_workflow(&by("default"), new("a")).await;
    let name = WorkflowName::Id(made.unwrap().row.workflow_id);
    let other = TenantId::from("other");
    assert_eq!(
        store.workflow(&other, &name).await,
        Err(StoreError::NotFound)
    );
    store.create_workflow(&by("other"), new("a")).await.unwrap();
}

#[tokio::test]
async fn h2_every_act_is_a_link_of_its_tenants_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    for n in 0..5 {
        let key = format!("w{n}");
        store
            .create_workflow(&by("default"), new(&key))
            .await
            .unwrap();
    }
    // A refused act leaves no entry.
    let _ = store.create_workflow(&by("default"), new("w1")).await;
    store.create_workflow(&by("other"), new("w")).await.unwrap();
    let tenant = TenantId::from("default");
    let entries = store.audit_after(&tenant, 0, 100).await.unwrap();
    let head = store.audit_head(&tenant).await.unwrap();
    let answer = audit::verify(&entries, Some(head), None);
    assert!(answer.valid, "{answer:?}");
    assert_eq!(answer.checked_through_sequence, 5);
}

#[tokio::test]
async fn many_writers_at_once_each_stand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let made = (0..40).map(|n| {
        let store = store.clone();
        // Every key twice: one of the two is refused, and takes nothing down with it.
        tokio::spawn(async move {
            let key = format!("w{}", n / 2);
            store.create_workflow(&by("default"), new(&key)).await
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

#[tokio::test]
async fn w8_a_higher_fence_takes_a_child_over_and_shuts_the_older_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let first = store.start_child(intent(1, 1)).await.unwrap();
    let ChildStanding::Execute {
        child_id, fresh, ..
    } = first
    else {
        panic!("{first:?}");
    };
    assert!(fresh);
    let taken = store.start_child(intent(1, 2)).await.unwrap();
    let expected = ChildStanding::Execute {
        child_id: child_id.clone(),
        deadline_at: Instant(100),
        fresh: false,
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

#[tokio::test]
async fn n1_a_success_answers_every_later_attempt_and_a_failure_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    store.start_child(intent(1, 1)).await.unwrap();
    let failed = settlement("c1-1", 1, 1, ChildStatus::Failed);
    assert!(store.settle_child(failed).await.unwrap());
    let second = store.start_child(intent(2, 1)).await.unwrap();
    assert!(
        matches!(second, ChildStanding::Execute { fresh: true, child_id, .. }
        if child_id == "c1-1")
    );
    let done = settlement("c1-1", 2, 1, ChildStatus::Succeeded);
    assert!(store.settle_child(done).await.unwrap());
    let third = store.start_child(intent(3, 1)).await.unwrap();
    assert!(matches!(third, ChildStanding::Settled { end, .. }
        if end.status == ChildStatus::Succeeded));
    let first = store.start_child(intent(1, 1)).await.unwrap();
    assert!(matches!(first, ChildStanding::Settled { end, .. }
        if end.status == ChildStatus::Failed));
}

#[tokio::test]
async fn c3_an_unknown_key_is_kept_as_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    assert_eq!(
        store.cancel_child(intent(1, 1)).await.unwrap(),
        ChildCancelled::Barred
    );
    assert_eq!(
        store.start_child(intent(1, 2)).await.unwrap(),
        ChildStanding::Barred
    );
}

#[tokio::test]
async fn the_file_is_what_the_architecture_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let pragma = |query: &'static str| {
        let readers = store.readers.clone();
        async move {
            let row = sqlx::query(query).fetch_one(&readers).await.unwrap();
            row.try_get::<i64, _>(0)
                .map(|n| n.to_string())
                .or_else(|_| row.try_get(0))
                .unwrap()
        }
    };
    assert_eq!(pragma("pragma auto_vacuum").await, "2");
    assert_eq!(pragma("pragma journal_mode").await, "wal");
    let synchronous = store.write(|c| {
        Box::pin(async move {
            let found: i64 = sqlx::query_scalar("pragma synchronous")
                .fetch_one(c)
                .await
                .map_err(fault)?;
            Ok(found)
        })
    });
    assert_eq!(synchronous.await, Ok(2), "full");
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(store(folder.path()).await);
    let mut raw = SqliteConnectOptions::new()
        .filename(folder.path().join("db"))
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql("pragma user_version = 999")
        .execute(&mut raw)
        .await
        .unwrap();
    let opened = SqliteStore::open(&folder.path().join("db"), Clock::start()).await;
    assert!(matches!(
        opened.err(),
        Some(StoreError::TooNew { found: 999, .. })
    ));
}

#[test]
fn w6_a_folder_is_held_once() {
    let folder = tempfile::tempdir().unwrap();
    let held = Folder::hold(folder.path()).unwrap();
    assert!(matches!(
        Folder::hold(folder.path()),
        Err(FolderFault::Held(_))
    ));
    drop(held);
    Folder::hold(folder.path()).unwrap();
}

#[test]
fn every_statement_names_the_tenant() {
    // Claims go through the tenants one after the other; a hash finds its own tenant; the
    // start looks at all keys and all leases.
    let exempt = [
        "select tenant_id from tenants",
        "update workflow_runs set lease_void = 1",
        // Of a table's own columns, which begin with the tenant; see below.
        "insert into {} ({}) values",
        "select key_id from workflow_payloads",
        "pragma user_version",
        "update api_keys set last_used_at",
        "from api_keys k join accounts",
        "update sign_in_links set spent_at",
        "from sessions s join accounts",
        "update sessions set idle_until",
        "delete from sessions where token_hash",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/sqlite");
    let mut statements = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for literal in text.split('"').skip(1).step_by(2) {
            let words = ["select ", "insert ", "update ", "delete "];
            if !words
                .iter()
                .any(|word| literal.trim_start().starts_with(word))
            {
                continue;
            }
            statements += 1;
            let squeezed = literal.split_whitespace().collect::<Vec<_>>().join(" ");
            let names = squeezed.contains("tenant_id");
            let spared = exempt.iter().any(|part| squeezed.contains(part));
            assert!(names || spared, "{}: {squeezed}", path.display());
        }
    }
    assert!(statements > 40, "the statements were not found");
    use crate::store::table::{AUDIT, RUNS, TABLES};
    for table in TABLES.iter().chain([&AUDIT, &RUNS]) {
        assert_eq!(table.columns[0].0, "tenant_id", "{}", table.name);
    }
}
