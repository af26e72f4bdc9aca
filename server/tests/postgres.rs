//! What is PostgreSQL's own (server.md §1): how it is opened, by many processes at once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;

use harness::cluster::{Cluster, execute};
use sluicegate_server::clock::Clock;
use sluicegate_server::store::StoreError;
use sluicegate_server::store::postgres::{Address, PostgresStore};

async fn open(url: &str) -> Result<PostgresStore, StoreError> {
    let address: Address = url.parse().unwrap();
    PostgresStore::open(&address, Clock::start()).await
}

#[tokio::test]
async fn processes_that_start_at_the_same_moment_migrate_once() {
    let url = Cluster::shared().database().await;
    let opening: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url).await.map(|_| ()) })
        })
        .collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    open(&url).await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let url = Cluster::shared().database().await;
    drop(open(&url).await.unwrap());
    execute(&url, "insert into schema_migrations (number) values (999)").await;
    let refused = open(&url).await.err();
    assert!(
        matches!(refused, Some(StoreError::TooNew { found: 999, .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_append_only_is_refused_by_the_database_too() {
    let url = Cluster::shared().database().await;
    drop(open(&url).await.unwrap());
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let pool = sqlx::PgPool::connect_with(options).await.unwrap();
    let fill = "insert into workflow_audit_events values ('t', 1, 'a', 'run', 'r', '{}');
        insert into workflow_run_events values ('t', 'r', 1, 'run.queued', 1, '{}', 1, null);";
    sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    for change in [
        "update workflow_audit_events set action = 'b'",
        "delete from workflow_audit_events",
        "truncate workflow_audit_events",
        "update workflow_run_events set event_type = 'b'",
        "delete from workflow_run_events",
        "truncate workflow_run_events",
    ] {
        let refused = sqlx::raw_sql(change).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
}
