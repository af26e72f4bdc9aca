use super::*;
use sqlx::Row;

async fn store(folder: &Path) -> SqliteStore {
    let store = SqliteStore::open(&folder.join("db"), Clock::start()).await;
    store.unwrap()
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
