//! What happens to the process from outside (server.md §1; run-machine.md W5, W6): a second
//! server on one folder, a full disk, a folder that cannot be written, a clock that is set.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/counting.rs"]
mod counting;
#[path = "harness/hand.rs"]
mod hand;
mod harness;
#[path = "harness/served.rs"]
mod served;
#[path = "harness/shapes.rs"]
mod shapes;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use counting::{Business, Count, policy};
use hand::Hand;
use harness::House;
use harness::cluster::Cluster;
use harness::ground::Ground;
use serde_json::json;
use served::Served;
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::time::Instant as Time;
use sluicegate_core::value::Value;
use sluicegate_server::clock::Clock;
use sluicegate_server::store::RunFilter;

const AGENT: ChildKind = ChildKind::Agent;
const ACTION: ChildKind = ChildKind::Action;
const HOUR: i64 = 3_600_000;

/// A folder with the workflow `work` of one agent, and a key.
async fn prepared(ground: &Ground) {
    let house = ground.open(&[]).await;
    house.agent(shapes::echo()).await;
    let graph = shapes::line(&[AGENT], &policy(1, &[], 0));
    house.publish("work", &graph).await;
    let may = ["workflows.runs.read", "workflows.runs.execute"];
    served::allow(&house, "k1", &may).await;
}

/// A start that is refused: exit code 2 and one line.
fn refused(folder: &Path) -> String {
    let Output { status, stderr, .. } = served::command(folder, &[]).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

fn enqueue(server: &Served, input: &Value, key: &str) -> RunId {
    let body = json!({"workflowKey": "work", "input": input, "idempotencyKey": key});
    let (status, answer) = server.post("/api/workflow-runs", &body);
    assert_eq!(status, 202, "{answer}");
    RunId::from(answer["runId"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w6_a_second_server_on_a_folder_refuses_and_disturbs_nothing() {
    let ground = Ground::sqlite();
    prepared(&ground).await;
    let server = Served::start(ground.folder(), &[]);
    let run = enqueue(&server, &json!("slow"), "k");
    server.until(&run, |status| status == "waiting-agent");
    assert!(refused(ground.folder()).contains("held by another process"));
    // A process that stands still holds it too.
    server.signal("STOP");
    assert!(refused(ground.folder()).contains("held by another process"));
    server.signal("CONT");
    server.until(&run, |status| status == "succeeded");
    server.kill();
    let server = Served::start(ground.folder(), &[]);
    server.until(&enqueue(&server, &json!("x"), "k2"), |status| {
        status == "succeeded"
    });
    server.kill();
    let house = ground.open(&[]).await;
    house.check(&run).await;
    assert!(house.named(&run, "run.recovered").await.is_empty());
    assert_eq!(house.children(&run).await[0].executions, 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_in_one_line() {
    let said = refused(Path::new("/proc/sluicegate"));
    assert!(said.contains("/proc/sluicegate"), "{said}");
}

/// Files may not grow beyond this many blocks of 512 bytes: the disk is full.
const FULL: u32 = 4_000;

fn start_on_a_full_disk(folder: &Path, log: std::fs::File) -> Served {
    let real = served::command(folder, &[]);
    let mut limited = Command::new("/bin/sh");
    let script = format!("trap '' XFSZ; ulimit -S -f {FULL}; exec \"$0\" \"$@\"");
    limited
        .args(["-c", &script])
        .arg(real.get_program())
        .args(real.get_args());
    limited.stderr(log);
    Served::begin(limited)
}

/// A transaction that the full disk broke does not break the ones after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_writes_again_once_its_disk_has_room() {
    let ground = Ground::sqlite();
    prepared(&ground).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = start_on_a_full_disk(ground.folder(), log.reopen().unwrap());
    let big = json!("x".repeat(30_000));
    let ask = |n: u32| {
        let body = json!({"workflowKey": "work", "input": big,
                          "idempotencyKey": format!("k{n}")});
        server.post("/api/workflow-runs", &body).0
    };
    assert!((0..400).any(|n| ask(n) == 503), "the disk was never full");
    let id = server.id().to_string();
    let more = Command::new("prlimit")
        .args(["--pid", &id, "--fsize=unlimited"])
        .status();
    assert!(more.unwrap().success());
    let begun = Instant::now();
    while ask(1_000) != 202 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it stays refused"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let run = enqueue(&server, &json!("small"), "after");
    server.until(&run, |status| status == "succeeded");
    server.kill();
    ground.open(&[]).await.check(&run).await;
}

/// What was accepted before the disk was full is there and ends well once there is room; what
/// was not accepted is not there. Readers are answered all along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_loses_nothing() {
    let ground = Ground::sqlite();
    prepared(&ground).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = start_on_a_full_disk(ground.folder(), log.reopen().unwrap());
    let big = json!("x".repeat(30_000));
    let mut accepted = Vec::new();
    let refused = (0..400).find_map(|n| {
        let body = json!({"workflowKey": "work", "input": big,
                          "idempotencyKey": format!("k{n}")});
        let (status, answer) = server.post("/api/workflow-runs", &body);
        if status == 202 {
            accepted.push(RunId::from(answer["runId"].as_str().unwrap()));
            return None;
        }
        Some((status, answer))
    });
    let (status, problem) = refused.unwrap();
    assert_eq!((status, &problem["code"]), (503, &json!("UNAVAILABLE")));
    assert!(
        !problem.to_string().contains("disk"),
        "the database's words stay inside"
    );
    assert!(accepted.len() > 5);
    // It lives, and readers are answered.
    for run in &accepted {
        let row = server.get(&format!("/api/workflow-runs/detail?runId={run}"));
        assert_eq!(row["runId"], run.as_str());
    }
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let mut said = String::new();
    log.reopen().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("a transaction failed"), "{said}");
    assert!(
        said.lines().count() < 2_000,
        "it does not spin: {}",
        said.lines().count()
    );
    let server = Served::start(ground.folder(), &[]);
    for run in &accepted {
        server.until(run, |status| status == "succeeded");
    }
    server.kill();
    let house = ground.open(&[]).await;
    for run in &accepted {
        house.check(run).await;
        assert_eq!(house.children(run).await.len(), 1);
    }
    let runs = house.all_runs().await;
    assert_eq!(runs.len(), accepted.len(), "what was refused is not there");
}

impl House {
    async fn all_runs(&self) -> Vec<RunId> {
        let filter = RunFilter {
            limit: 1_000,
            ..RunFilter::default()
        };
        let runs = self.store.runs(&harness::by().tenant, &filter).await;
        runs.unwrap().into_iter().map(|row| row.run_id).collect()
    }
}

/// The clock of a process that begins after the machine's was set by so many milliseconds.
fn set_by(by_ms: i64) -> Clock {
    let now = Clock::start().now().0;
    Clock::at(Time(now.saturating_add_signed(by_ms)))
}

/// The machine's clock is set by an hour between two processes: nobody waits for leases of
/// the dead, time never runs back in a log, nothing is done twice.
async fn stepped(ground: &Ground, by: i64) {
    let business = Arc::new(Business::default());
    let house = shapes::house(ground, &business, &[ACTION, ACTION], &policy(1, &[], 0)).await;
    let held = house.enqueue("work", json!({}), "held").await.run_id;
    let queued = house.enqueue("work", json!({}), "queued").await.run_id;
    let mut dead = Hand::claim(&house, "dead", 30_000).await;
    dead.go_on().await;
    drop(house);
    let clock = set_by(by);
    let house = ground.open_at(clock, &[Count::new(&business)]).await;
    house.store.void_leases().await.unwrap();
    let begun = Instant::now();
    let workers = house.workers("alive");
    for run in [&held, &queued] {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
        house.check(run).await;
        let events = house.events(run).await;
        assert!(events.is_sorted_by_key(|event| event.recorded_at));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(business.effects.lock().unwrap().len(), 4);
    let workflows = house.enqueue("work", json!({}), "later").await.run_id;
    assert_eq!(house.ended(&workflows).await, RunStatus::Succeeded);
    house.check(&workflows).await;
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn w5_a_clock_that_is_set_by_an_hour_between_processes_changes_nothing() {
    stepped(&Ground::sqlite(), HOUR).await;
    stepped(&Ground::sqlite(), -HOUR).await;
}

/// The clock is set back during a retry wait: the retry keeps the time that was stored, and
/// is not begun before it.
async fn stepped_wait(ground: &Ground) {
    let business = Arc::new(Business::default());
    let wait = policy(2, &["x.busy"], 1_000);
    let house = shapes::house(ground, &business, &[ACTION], &wait).await;
    let workers = house.workers("w1");
    let run = house
        .enqueue("work", json!({"failFirst": "x.busy"}), "k")
        .await
        .run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingRetry)
        .await;
    assert!(workers.stop(Duration::from_secs(5)).await);
    let scheduled = house.events(&run).await.pop().unwrap();
    let due = scheduled.payload["nextAttemptAt"].as_u64().unwrap();
    let clock = set_by(-1_500);
    let house = ground.open_at(clock, &[Count::new(&business)]).await;
    let workers = house.workers("w2");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let started = house.named(&run, "node.retry.started").await.remove(0);
    assert!(started.recorded_at.0 >= due);
    assert!(started.recorded_at.0 < due + 1_000);
    assert!(workers.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn b062_a_clock_that_is_set_back_begins_no_retry_early() {
    stepped_wait(&Ground::sqlite()).await;
}

/// Follows a run's stream, again whenever it breaks off, until it is complete. Gives the
/// sequences in the order in which they came.
fn followed(server: &Served, run: &RunId) -> Vec<u64> {
    let mut seen = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let after = seen.last().copied().unwrap_or(0);
        let path = format!("/api/workflow-runs/events?runId={run}&afterSequence={after}");
        for line in server.lines(&path) {
            if line == "event: workflow.stream-complete" {
                return seen;
            }
            let data = line.strip_prefix("data: ").and_then(|data| {
                let data: Value = serde_json::from_str(data).ok()?;
                data["eventId"].as_str()?;
                data["sequence"].as_u64()
            });
            seen.extend(data);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("the stream was never complete: {seen:?}");
}

/// B069: the database is away for a while. Callers are told so at once and not kept waiting;
/// afterwards the same process works, and who followed a stream has missed nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b069_a_server_outlives_its_database() {
    let cluster = Cluster::begin();
    let ground = Ground::at(cluster.database().await);
    prepared(&ground).await;
    let leases = [
        ("SLUICEGATE_LEASE_MS", "2000"),
        ("SLUICEGATE_RENEW_MS", "300"),
    ];
    let server = Served::on(&ground, &leases);
    let run = enqueue(&server, &json!("slow"), "k");
    server.until(&run, |status| status == "waiting-agent");
    std::thread::scope(|scope| {
        let following = scope.spawn(|| followed(&server, &run));
        std::thread::sleep(Duration::from_millis(200));
        cluster.stop();
        let body = json!({"workflowKey": "work", "input": "x", "idempotencyKey": "k2"});
        for _ in 0..2 {
            let begun = Instant::now();
            let (status, problem) = server.post("/api/workflow-runs", &body);
            assert_eq!((status, &problem["code"]), (503, &json!("UNAVAILABLE")));
            assert!(
                !problem["detail"].as_str().unwrap().contains("127.0.0.1"),
                "{problem}"
            );
            assert_eq!(server.status("/api/workflow-runs"), 503);
            assert_eq!(server.status("/readyz"), 503);
            assert_eq!(server.status("/healthz"), 200);
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "{:?}",
                begun.elapsed()
            );
            std::thread::sleep(Duration::from_millis(1_000));
        }
        cluster.start();
        let begun = Instant::now();
        while server.status("/readyz") != 200 {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(50));
        }
        let second = enqueue(&server, &json!("x"), "k2");
        for run in [&second, &run] {
            server.until(run, |status| status == "succeeded");
        }
        let seen = following.join().unwrap();
        assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    });
    // Asked to stop while the database is away, it stops in time.
    let third = enqueue(&server, &json!("never"), "k3");
    server.until(&third, |status| status == "waiting-agent");
    cluster.stop();
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
    cluster.start();
    let house = ground.house().await;
    let cancelled = house.engine.cancel(&harness::by(), &third, None).await;
    assert_eq!(cancelled.unwrap().status, RunStatus::CancelRequested);
    let workers = house.workers("next");
    assert_eq!(house.ended(&third).await, RunStatus::Cancelled);
    assert!(workers.stop(Duration::from_secs(5)).await);
    house.check(&third).await;
    let mut runs = house.all_runs().await;
    runs.retain(|run| *run != third);
    assert_eq!(runs.len(), 2);
    for run in runs {
        house.check(&run).await;
        // The agent ended while the database was away: its answer was kept, it is not asked
        // again, and the one process there is recovers nothing from itself.
        let children = house.children(&run).await;
        assert_eq!((children.len(), children[0].executions), (1, 1));
        assert!(house.named(&run, "run.recovered").await.is_empty());
    }
}

/// B068, B069: the database goes away for a moment, in the middle of many runs. They go on as
/// soon as it is back: nobody waits for leases to end, and no effect is made twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b069_runs_go_on_as_soon_as_the_database_is_back() {
    let cluster = Cluster::begin();
    let ground = Ground::at(cluster.database().await);
    let business = Arc::new(Business::default());
    let line = [ACTION; 6];
    let house = shapes::house(&ground, &business, &line, &policy(1, &[], 0)).await;
    let mut runs = Vec::new();
    for n in 0..12 {
        runs.push(
            house
                .enqueue("work", json!({}), &format!("k{n}"))
                .await
                .run_id,
        );
    }
    // Their leases last half a minute.
    let workers = house.workers("w");
    house
        .when(|| async { business.asked.lock().unwrap().len() > 8 })
        .await;
    cluster.stop();
    assert!(
        business.effects.lock().unwrap().len() < 72,
        "all was over before"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.start();
    let begun = Instant::now();
    while house.store.ready().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Succeeded);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    for run in &runs {
        house.check(run).await;
    }
    assert_eq!(business.effects.lock().unwrap().len(), 72);
    assert!(workers.stop(Duration::from_secs(5)).await);
}
