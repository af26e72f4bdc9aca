//! A house with runs of every kind, and a repair of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluicegate_core::ids::RunId;
use sluicegate_core::run::RunStatus;
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::value::Value;
use sluicegate_server::clock::Clock;
use sluicegate_server::engine::repair::{Finding, Looked, Repair, Wrong};
use sluicegate_server::engine::{Simulate, Subject};
use sluicegate_server::retention::Retention;
use sluicegate_server::store::{RowIs, Rule, StoreError};

use crate::counting::{Business, Count, counting_graph, policy};
use crate::harness::bare::Bare;
use crate::harness::ground::Ground;
use crate::harness::{House, by, permissions, sample};

pub(crate) fn review() -> Value {
    sample("expenses.review/approved.input.json")
}

/// Runs that are over in every way, one of them without its payloads, and some that go on.
pub(crate) struct Lived {
    pub(crate) house: House,
    pub(crate) bare: Bare,
    /// A run that succeeded.
    pub(crate) done: RunId,
    /// One that waits for a retry.
    pub(crate) waits: RunId,
}

pub(crate) async fn lived_in(ground: &Ground) -> Lived {
    let business = Arc::new(Business::default());
    let house = ground.open(&[Count::new(&business)]).await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let graph = counting_graph(&policy(2, &["x.busy"], 600_000), &json!({}), "std.any");
    house.publish("count", &graph).await;
    let workers = house.workers("w");
    let old = house
        .enqueue("expenses.review", review(), "old")
        .await
        .run_id;
    house.ended(&old).await;
    let retired = Instant::of_day(8);
    let mut retention = Retention::new(house.engine.clone(), Rule::of_days(Some(7), Some(7)));
    retention.sweep(retired.0).await.unwrap();
    let done = house
        .enqueue("expenses.review", review(), "done")
        .await
        .run_id;
    assert_eq!(house.ended(&done).await, RunStatus::Succeeded);
    let failed = house
        .enqueue("count", json!({"fail": "action.failed"}), "failed")
        .await
        .run_id;
    assert_eq!(house.ended(&failed).await, RunStatus::Failed);
    let waits = house
        .enqueue("count", json!({"failFirst": "x.busy"}), "waits")
        .await
        .run_id;
    house
        .until(&waits, |status| status == RunStatus::WaitingRetry)
        .await;
    assert!(workers.stop(Duration::from_secs(5)).await);
    house.enqueue("count", json!({}), "queued").await;
    let cancelled = house.enqueue("count", json!({}), "cancelled").await.run_id;
    house.engine.cancel(&by(), &cancelled, None).await.unwrap();
    let simulation = Simulate {
        subject: Subject::Published {
            workflow_key: "expenses.review".into(),
            revision: None,
        },
        input: review(),
        fixtures: Fixtures::read(&sample(
            "expenses.review/approved-after-a-retry.fixtures.json",
        ))
        .unwrap(),
    };
    let (by, may) = (by(), permissions());
    house.engine.simulate(&by, &may, simulation).await.unwrap();
    Lived {
        house,
        bare: Bare::open(ground).await,
        done,
        waits,
    }
}

/// A time some days from now.
pub(crate) struct Instant(sluicegate_core::time::Instant);

impl Instant {
    fn of_day(days: u64) -> Self {
        let now = Clock::start().now().0;
        Self(sluicegate_core::time::Instant(now + days * 86_400_000))
    }
}

pub(crate) async fn repair(house: &House, apply: bool) -> (Vec<Finding>, Looked) {
    let mut found = Vec::new();
    let looked = Repair::new(&*house.store, apply)
        .run(|finding| {
            found.push(finding.clone());
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    (found, looked)
}

/// The one difference of the one run that has any.
#[track_caller]
pub(crate) fn only(found: &[Finding]) -> (String, RowIs, Vec<&'static str>) {
    let [finding] = found else {
        panic!("{found:#?}");
    };
    let Wrong::Rows { differences, .. } = &finding.wrong else {
        panic!("{finding:?}");
    };
    let [difference] = differences.as_slice() else {
        panic!("{differences:?}");
    };
    let table = difference.table.to_owned();
    (table, difference.is, difference.columns.clone())
}
