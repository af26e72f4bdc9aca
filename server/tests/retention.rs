//! Retention (server.md §8; run-machine.md O5, H4; seed A "Retention"): the event that names what
//! goes stands before anything goes, it goes once, and all the rest of a run stays.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;
#[path = "harness/served.rs"]
mod served;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use harness::bare::Bare;
use harness::ground::Ground;
use harness::{House, by, on_both, permissions, raw, sample};
use serde_json::json;
use served::Served;
use sluicegate_core::code::Code;
use sluicegate_core::evidence::{Reason, State};
use sluicegate_core::ids::RunId;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{RunStatus, fold_events, overlay};
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;
use sluicegate_server::clock::Clock;
use sluicegate_server::engine::{Simulate, Subject};
use sluicegate_server::retention::Retention;
use sluicegate_server::store::Rule;

on_both!(
    r8_values_and_previews_go_at_their_times_and_all_the_rest_stays,
    r8_several_processes_may_sweep_and_no_page_is_left_out,
    r8_a_run_that_becomes_visible_late_is_not_passed_over,
    a9_a_parked_run_keeps_what_it_has,
    a9_a_repaired_run_is_not_passed_over
);

const DAY: u64 = 86_400_000;

fn review() -> Value {
    sample("expenses.review/approved.input.json")
}

/// So many days from now.
fn after(days: u64) -> Instant {
    Instant(Clock::start().now().0 + days * DAY)
}

async fn sweep(house: &House, values: Option<u64>, previews: Option<u64>, now: Instant) {
    let rules = Rule::of_days(values, previews);
    let mut retention = Retention::new(house.engine.clone(), rules);
    retention.sweep(now).await.unwrap();
}

/// A house with a run that succeeded, one that waits, and a simulation.
async fn lived_in(ground: &Ground) -> (House, RunId, RunId, RunId) {
    let house = ground.house().await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let run = house
        .enqueue("expenses.review", review(), "k1")
        .await
        .run_id;
    let workers = house.workers("w");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    assert!(workers.stop(Duration::from_secs(5)).await);
    let waits = house
        .enqueue("expenses.review", review(), "k2")
        .await
        .run_id;
    let simulation = Simulate {
        subject: Subject::Published {
            workflow_key: "expenses.review".into(),
            revision: None,
        },
        input: review(),
        fixtures: Fixtures::read(&sample("expenses.review/approved.fixtures.json")).unwrap(),
    };
    let (by, may) = (by(), permissions());
    let simulated = house.engine.simulate(&by, &may, simulation).await;
    (house, run, waits, simulated.unwrap().run_id)
}

/// How many rows there are of a kind, and of children that hold something.
async fn counts(bare: &mut Bare, run: &RunId) -> [i64; 5] {
    let mut counts = [0; 5];
    let payloads = |which: &str| {
        format!("select count(*) from workflow_payloads where run_id = '{run}' and {which}")
    };
    for (at, query) in [
        payloads("kind = 'execution'"),
        payloads("kind = 'result'"),
        payloads("preview is not null"),
        payloads("state = 'expired'"),
        format!(
            "select count(*) from child_attempts a join child_runs c
             on c.tenant_id = a.tenant_id and c.child_id = a.child_id
             where c.run_id = '{run}' and (output is not null or message is not null)"
        ),
    ]
    .iter()
    .enumerate()
    {
        counts[at] = bare.number(query).await;
    }
    counts
}

async fn r8_values_and_previews_go_at_their_times_and_all_the_rest_stays(ground: Ground) {
    let (house, run, waits, simulated) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let tenant = by().tenant;
    let before = house.store.run_detail(&tenant, &run).await.unwrap();
    let result = house.engine.result(&tenant, &run).await.unwrap();
    let length = house.events(&run).await.len() as u64;
    let whole = counts(&mut bare, &run).await;
    assert!(
        whole
            .iter()
            .enumerate()
            .all(|(at, n)| (*n > 0) == (at != 3)),
        "{whole:?}"
    );

    // A moment before its time nothing goes.
    let end = before.row.row.completed_at.unwrap();
    sweep(&house, Some(7), None, Instant(end.0 + 7 * DAY - 1)).await;
    assert_eq!(counts(&mut bare, &run).await, whole);
    assert_eq!(house.events(&run).await.len() as u64, length);
    assert_eq!(house.engine.result(&tenant, &run).await.unwrap(), result);

    sweep(&house, Some(7), None, Instant(end.0 + 7 * DAY)).await;
    sweep(&house, Some(7), None, after(8)).await;
    assert_eq!(counts(&mut bare, &run).await, [0, 0, whole[2], 0, 0]);
    let refused = house.engine.result(&tenant, &run).await.unwrap_err();
    assert_eq!(refused.code(), Code::WorkflowResultExpired);
    let events = house.events(&run).await;
    assert_eq!(events.len() as u64, length + 1, "one event a run and sweep");
    let event = events.last().unwrap();
    assert_eq!(event.event_type, "payload.retention.applied");
    assert_eq!(
        event.payload["policy"],
        json!({"kind": "execution", "days": 7})
    );
    let named = event.payload["payloads"].as_array().unwrap();
    assert_eq!(named.len() as i64, whole[0] + whole[1]);
    assert!(
        named
            .iter()
            .all(|one| one["hash"].is_string() && one.get("priorState").is_none())
    );
    // What a run is stays as it was.
    let now = house.store.run_detail(&tenant, &run).await.unwrap();
    assert_eq!(now.payloads, before.payloads);
    assert_eq!(
        (&now.nodes, &now.attempts, &now.edges),
        (&before.nodes, &before.attempts, &before.edges)
    );
    assert_eq!(now.row.row.usage, before.row.row.usage);
    assert_eq!(now.row.row.completed_at, before.row.row.completed_at);
    house.check(&run).await;
    // Its entry names who acted, and by whom that was configured (H4).
    let entries = house.store.audit_after(&tenant, 0, 1_000).await.unwrap();
    let own = entries
        .iter()
        .rfind(|entry| entry["subject"]["id"] == run.as_str())
        .unwrap();
    assert_eq!(own["action"], "payload.retention.applied");
    assert_eq!(own["actor"]["id"], "sluicegate.retention");
    assert_eq!(own["actor"]["configuredBy"]["accountId"], "a1");
    // What is not over keeps everything; a simulation goes too, at the end of its own time.
    assert!(counts(&mut bare, &waits).await[0] > 0);
    let simulated_events = house.events(&simulated).await;
    let [.., end, retired] = simulated_events.as_slice() else {
        panic!("no events");
    };
    assert_eq!(retired.event_type, "payload.retention.applied");
    assert_eq!(retired.virtual_offset_ms, end.virtual_offset_ms);
    assert!(end.virtual_offset_ms.is_some());
    house.check(&simulated).await;

    // Previews, by their own rule.
    sweep(&house, Some(7), Some(30), after(31)).await;
    let gone = counts(&mut bare, &run).await;
    assert_eq!(gone[2], 0);
    assert!(gone[3] > 0);
    let detail = house.store.run_detail(&tenant, &run).await.unwrap();
    for (row, was) in detail.payloads.iter().zip(&before.payloads) {
        assert_eq!(row.evidence.state, State::Expired);
        assert_eq!(row.evidence.reason, Some(Reason::Retention));
        assert_eq!(row.preview, None);
        assert_eq!(row.evidence.hash, was.evidence.hash);
        assert_eq!(
            row.evidence.original_byte_size,
            was.evidence.original_byte_size
        );
    }
    let events = house.events(&run).await;
    assert_eq!(events.len() as u64, length + 2);
    let named = events.last().unwrap().payload["payloads"]
        .as_array()
        .unwrap();
    assert!(
        named
            .iter()
            .all(|one| one["kind"] == "evidence" && one["priorState"].is_string())
    );
    house.check(&run).await;
    // The picture of the run shows it too.
    let plan = Plan::read(&detail.plan).unwrap();
    let full: Vec<_> = events
        .iter()
        .map(|event| event.full(&tenant, &run))
        .collect();
    let picture = overlay(&plan, &fold_events(&plan, &full).unwrap());
    let mut shown = picture.nodes.iter().flat_map(|node| &node.attempts);
    assert!(shown.all(|attempt| attempt.input.state == State::Expired));

    // Once named, never again.
    let dumped = bare.dump().await;
    sweep(&house, Some(7), Some(30), after(32)).await;
    assert_eq!(bare.dump().await, dumped);
    assert!(house.engine.verify_audit(&tenant).await.unwrap().valid);
}

#[tokio::test]
async fn r8_the_event_stands_before_the_deletion_and_is_a_promise() {
    let ground = Ground::sqlite();
    let folder = ground.folder();
    let (house, run, _, _) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let whole = counts(&mut bare, &run).await;
    let mut raw = raw::open(folder).await;
    let refuse = |act: &str| {
        format!("create trigger refuse before {act} begin select raise(abort, 'refused'); end")
    };
    // Without its event nothing goes.
    raw::run(&mut raw, &refuse("insert on workflow_audit_events")).await;
    let before = raw::dump(&mut raw).await;
    sweep(&house, Some(7), Some(7), after(8)).await;
    assert_eq!(raw::dump(&mut raw).await, before);
    raw::run(&mut raw, "drop trigger refuse").await;
    // What was named and did not go is gone after the next sweep, and is named once.
    let rules = Rule::of_days(Some(7), Some(7));
    let mut retention = Retention::new(house.engine.clone(), rules);
    for act in [
        "update of output on child_attempts",
        "delete on workflow_payloads",
    ] {
        raw::run(&mut raw, &refuse(act)).await;
        retention.sweep(after(8)).await.unwrap();
        assert_eq!(counts(&mut bare, &run).await[0], whole[0]);
        raw::run(&mut raw, "drop trigger refuse").await;
    }
    retention.sweep(after(8)).await.unwrap();
    assert_eq!(counts(&mut bare, &run).await, [0, 0, 0, whole[2], 0]);
    let types = house.types(&run).await;
    let named = types
        .iter()
        .filter(|name| *name == "payload.retention.applied");
    assert_eq!(named.count(), 2, "one a rule");
    house.check(&run).await;
}

async fn r8_several_processes_may_sweep_and_no_page_is_left_out(ground: Ground) {
    let (house, ..) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let mut runs = Vec::new();
    for n in 0..230 {
        let key = format!("n{n}");
        let run = house
            .enqueue("expenses.review", review(), &key)
            .await
            .run_id;
        house.engine.cancel(&by(), &run, None).await.unwrap();
        runs.push(run);
    }
    let others = [ground.house().await, ground.house().await];
    let now = after(1);
    tokio::join!(
        sweep(&house, Some(1), Some(1), now),
        sweep(&others[0], Some(1), Some(1), now),
        sweep(&others[1], Some(1), Some(1), now),
    );
    for run in &runs {
        let types = house.types(run).await;
        let named = types
            .iter()
            .filter(|name| *name == "payload.retention.applied");
        assert_eq!(named.count(), 2, "{types:?}");
        let left = counts(&mut bare, run).await;
        assert_eq!((left[0], left[2]), (0, 0));
    }
    house.check(&runs[0]).await;
    assert!(house.engine.verify_audit(&by().tenant).await.unwrap().valid);
}

async fn r8_a_run_that_becomes_visible_late_is_not_passed_over(ground: Ground) {
    let (house, run, waits, _) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let mut retention = Retention::new(house.engine.clone(), Rule::of_days(Some(0), None));
    retention.sweep(after(0)).await.unwrap();
    assert_eq!(counts(&mut bare, &run).await[0], 0);
    house.engine.cancel(&by(), &waits, None).await.unwrap();
    assert!(counts(&mut bare, &waits).await[0] > 0);
    bare.run(&format!(
        "update workflow_runs set completed_at =
             (select min(completed_at) - 1 from workflow_runs where completed_at is not null)
         where run_id = '{waits}'"
    ))
    .await;
    retention.sweep(after(0)).await.unwrap();
    assert_eq!(counts(&mut bare, &waits).await[0], 0);
}

#[tokio::test]
async fn r8_space_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path()).await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let mut input = review();
    input["text"] = "word ".repeat(8_000).into();
    for n in 0..40 {
        let run = house
            .enqueue("expenses.review", input.clone(), &format!("k{n}"))
            .await
            .run_id;
        house.engine.cancel(&by(), &run, None).await.unwrap();
    }
    let mut raw = raw::open(folder.path()).await;
    let file = folder.path().join("sluicegate.sqlite");
    let checkpoint = "pragma wal_checkpoint(truncate)";
    raw::run(&mut raw, checkpoint).await;
    let before = std::fs::metadata(&file).unwrap().len();
    sweep(&house, Some(7), Some(7), after(8)).await;
    let free: i64 = sqlx::query_scalar("pragma freelist_count")
        .fetch_one(&mut raw)
        .await
        .unwrap();
    assert_eq!(free, 0);
    raw::run(&mut raw, checkpoint).await;
    let now = std::fs::metadata(&file).unwrap().len();
    assert!(before - now > 40 * 40_000, "{before} → {now}");
}

async fn a9_a_parked_run_keeps_what_it_has(ground: Ground) {
    let (house, run, ..) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let damage = format!(
        "update workflow_run_events set event_type = 'node.unheard' where run_id = '{run}' and sequence = 4"
    );
    bare.run(&damage).await;
    let whole = counts(&mut bare, &run).await;
    for _ in 0..2 {
        sweep(&house, Some(7), Some(7), after(8)).await;
        assert_eq!(counts(&mut bare, &run).await, whole);
    }
    let row = house.store.run_row(&by().tenant, &run).await.unwrap();
    assert_eq!(row.parked.unwrap().sequence, 4);
}

async fn a9_a_repaired_run_is_not_passed_over(ground: Ground) {
    let (house, run, ..) = lived_in(&ground).await;
    let mut bare = Bare::open(&ground).await;
    let fourth = format!("where run_id = '{run}' and sequence = 4");
    let sound = format!("select event_type from workflow_run_events {fourth}");
    let sound = bare.texts(&sound).await.remove(0);
    let damage = format!("update workflow_run_events set event_type = 'node.unheard' {fourth}");
    bare.run(&damage).await;
    let rules = Rule::of_days(Some(7), None);
    let mut retention = Retention::new(house.engine.clone(), rules);
    for days in [8, 9] {
        retention.sweep(after(days)).await.unwrap();
        let row = house.store.run_row(&by().tenant, &run).await.unwrap();
        assert!(row.parked.is_some());
    }
    assert!(counts(&mut bare, &run).await[0] > 0);
    let mend = format!(
        "update workflow_run_events set event_type = '{sound}' {fourth};
         update workflow_runs set parked_code = null, parked_sequence = null
         where run_id = '{run}'"
    );
    bare.run(&mend).await;
    retention.sweep(after(10)).await.unwrap();
    assert_eq!(counts(&mut bare, &run).await[..2], [0, 0]);
}

/// Starts the binary with rules under which all that has ended goes at once.
fn served(folder: &Path, crash: Option<&str>) -> Served {
    let mut environment = vec![
        ("SLUICEGATE_RETENTION_DAYS", "0"),
        ("SLUICEGATE_PREVIEW_RETENTION_DAYS", "0"),
    ];
    environment.extend(crash.map(|crash| ("SLUICEGATE_CRASH_AT", crash)));
    Served::start(folder, &environment)
}

#[tokio::test]
async fn r8_a_death_in_a_sweep_loses_no_promise_and_names_nothing_twice() {
    let points = [
        "before-retention",
        "before-retention:2",
        "after-retention",
        "after-retention:2",
        "before-deletion",
        "before-deletion:2",
        "during-deletion",
        "during-deletion:2",
    ];
    for point in points {
        let ground = Ground::sqlite();
        let (house, run, _, simulated) = lived_in(&ground).await;
        drop(house);
        served(ground.folder(), Some(point)).died(point);
        let lives = served(ground.folder(), None);
        let mut bare = Bare::open(&ground).await;
        for run in [&run, &simulated] {
            let begun = std::time::Instant::now();
            loop {
                let [execution, result, previews, _, children] = counts(&mut bare, run).await;
                if [execution, result, previews, children] == [0; 4] {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "{point}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        lives.kill();
        let house = ground.house().await;
        for run in [&run, &simulated] {
            let mut named = BTreeSet::new();
            for event in house.events(run).await {
                for one in event.payload["payloads"].as_array().into_iter().flatten() {
                    let key = format!("{} {}", one["payloadId"], one["kind"]);
                    assert!(named.insert(key), "{point}: named twice");
                }
            }
            assert!(!named.is_empty());
            house.check(run).await;
        }
        assert!(house.engine.verify_audit(&by().tenant).await.unwrap().valid);
    }
}
