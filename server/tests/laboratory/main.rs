//! The crash laboratory (architecture.md "Tests", Crash): the real process is killed at every
//! named point, started again, and must end as one that was never killed. Effects are counted
//! in the target's own tables. `make crash` runs every point on every graph and database, by
//! the same and by another worker's name, and prints the matrix.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../harness/counting.rs"]
mod counting;
#[path = "../harness/mod.rs"]
mod harness;
mod lab;
mod left;
mod script;
#[path = "../harness/served.rs"]
mod served;
#[path = "../harness/shapes.rs"]
mod shapes;

use std::sync::Arc;

use lab::{AT_ONCE, Database, Experiment, Found, Lab, Name};
use sluicegate_server::engine::crash::CrashPoint;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A script that comes by the point.
fn passes(point: CrashPoint) -> &'static str {
    match point {
        CrashPoint::BeforeChildStart | CrashPoint::BeforeRetry | CrashPoint::AfterRetry => "retry",
        CrashPoint::AfterChildEnd
        | CrashPoint::BeforeSettlement
        | CrashPoint::AfterSettlement
        | CrashPoint::BeforeCancel
        | CrashPoint::AfterCancel
        | CrashPoint::BeforeRenewal
        | CrashPoint::AfterRenewal => "cancel",
        _ => "review",
    }
}

/// The bounded pass: every point once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_at_any_point_changes_nothing_but_who_worked() {
    let lab = Arc::new(Lab::new(script::all()).await);
    let (room, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    // Retention goes along days: tests/retention.rs has its points.
    let sweeping = CrashPoint::BeforeRetention..=CrashPoint::DuringDeletion;
    let points = CrashPoint::ALL
        .iter()
        .filter(|point| !sweeping.contains(point));
    let each = points.flat_map(|point| Database::ALL.map(|database| (database, *point)));
    for (database, point) in each {
        let (lab, room) = (Arc::clone(&lab), Arc::clone(&room));
        running.spawn(async move {
            let _room = room.acquire().await;
            let experiment = Experiment {
                database,
                script: lab.script(passes(point)),
                point,
                nth: 1,
                name: Name::Another,
            };
            (database, point, lab.carry_out(&experiment).await)
        });
    }
    let found = running.join_all().await;
    let other: Vec<_> = found
        .iter()
        .filter(|(.., found)| *found != Found::Same)
        .collect();
    assert!(other.is_empty(), "{other:#?}");
}

/// Every point, as often as it is passed, on every graph and database, by both names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes many minutes: make crash"]
async fn the_whole_matrix() {
    let lab = Arc::new(Lab::new(script::all()).await);
    assert!(lab.matrix().await, "something was lost or done twice");
}
