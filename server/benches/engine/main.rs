//! What durability costs (architecture.md "Rules", gathered commits): the engine beside a bare
//! writer of the very same rows, on SQLite and PostgreSQL, everything on that a live run keeps:
//! events, rows, encrypted payloads, the audit chain, fsync. One JSON object a line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

mod bare;
#[path = "../../tests/harness/mod.rs"]
mod harness;
mod rows;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use harness::ground::Ground;
use harness::{House, of};
use serde_json::json;
use sluicegate_core::catalogue::{ActionDescriptor, Cancellation, Idempotency, Risk};
use sluicegate_core::ids::{TenantId, WorkerId};
use sluicegate_core::value::Value;
use sluicegate_server::actions::{Action, ActionFault, Invocation};
use sluicegate_server::store::{Account, RunFilter};
use sluicegate_server::worker::{WorkerSettings, Workers};

const ACTIONS: u32 = 10;
/// Runs in flight when many are.
const FLIGHT: usize = 64;
/// The first argument of a process that only works.
const WORKER: &str = "worker";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(WORKER) {
        let (url, folder) = (arguments.next().unwrap(), arguments.next().unwrap());
        runtime.block_on(work(&url, Path::new(&folder)));
    }
    let mut figures = Figures::default();
    runtime.block_on(async {
        compare(&mut figures, "sqlite", [Ground::sqlite(), Ground::sqlite()]).await;
        let grounds = [Ground::postgres().await, Ground::postgres().await];
        compare(&mut figures, "postgres", grounds).await;
        tenants(&mut figures).await;
        processes(&mut figures).await;
        memory(&mut figures).await;
    });
    idle(&mut figures);
    if figures.missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// What was measured, one line each.
#[derive(Default)]
struct Figures {
    missed: bool,
}

impl Figures {
    fn say(&self, name: &str, value: f64, unit: &str) {
        self.print(name, value, unit, Value::Null);
    }

    fn at_least(&mut self, name: &str, value: f64, unit: &str, limit: f64) {
        self.missed |= value < limit;
        self.print(name, value, unit, json!(limit));
    }

    fn at_most(&mut self, name: &str, value: f64, unit: &str, limit: f64) {
        self.missed |= value > limit;
        self.print(name, value, unit, json!(limit));
    }

    fn within(&mut self, name: &str, value: f64, unit: &str, limits: [f64; 2]) {
        self.missed |= value < limits[0] || value > limits[1];
        self.print(name, value, unit, json!(limits));
    }

    #[expect(clippy::unused_self, reason = "so that every figure goes one way")]
    fn print(&self, name: &str, value: f64, unit: &str, limit: Value) {
        let value = (value * 1_000.0).round() / 1_000.0;
        println!(
            "{}",
            json!({"name": name, "value": value, "unit": unit, "limit": limit})
        );
    }
}

/// The engine and the bare writer on a database, one run alone and many in flight.
async fn compare(figures: &mut Figures, name: &str, [alone, many]: [Ground; 2]) {
    let called = |figure: &str| format!("engine.{name}.{figure}");
    let one = engine(&alone, 1, 300, 1).await;
    let engine_many = engine(&many, 1, 3_000, FLIGHT).await;
    let size = (engine_many.decisions / engine_many.commits)
        .round()
        .max(1.0);
    let bare_one = bare(&alone, 1, 1).await;
    let bare_many = bare(&many, FLIGHT, size as usize).await;
    let second = "workflows/s";
    figures.say(&called("in-flight"), engine_many.per_second(), second);
    figures.say(&called("alone"), one.per_second(), second);
    figures.say(&called("accepted"), engine_many.accepted, second);
    figures.say(&called("bare.in-flight"), bare_many.per_second, second);
    figures.say(&called("bare.alone"), bare_one.per_second, second);
    figures.say(&called("decisions-per-commit"), size, "decisions");
    figures.say(&called("rows-per-run"), bare_many.rows, "rows");
    figures.say(&called("bytes-per-run"), bare_many.bytes, "bytes");
    let share = engine_many.per_second() / bare_many.per_second;
    figures.at_least(&called("vs-bare"), share, "ratio", 0.5);
    let gain = engine_many.per_second() / one.per_second();
    let bare_gain = bare_many.per_second / bare_one.per_second;
    figures.at_least(&called("gain"), gain / bare_gain, "ratio", 0.6);
    let commits = one.commits / f64::from(one.runs * ACTIONS);
    figures.at_most(&called("commits-per-action"), commits, "commits", 3.0);
    let a_run = one.commits / f64::from(one.runs);
    let floor = a_run * bare_one.commit.as_secs_f64() * 1_000.0;
    figures.say(&called("latency-alone-p99"), one.p99_ms, "ms");
    figures.at_most(
        &called("latency-vs-commits"),
        one.p99_ms / floor,
        "ratio",
        3.0,
    );
}

/// Fifty tenants beside one.
async fn tenants(figures: &mut Figures) {
    let one = engine(&Ground::sqlite(), 1, 3_000, FLIGHT).await;
    let fifty = engine(&Ground::sqlite(), 50, 3_000, FLIGHT).await;
    let ratio = fifty.per_second() / one.per_second();
    figures.within("engine.tenants.50-vs-1", ratio, "ratio", [0.8, 1.25]);
}

/// Three worker processes on one PostgreSQL beside one, with ten tenants.
async fn processes(figures: &mut Figures) {
    let mut speeds = Vec::new();
    for count in [1, 3] {
        let ground = Ground::postgres().await;
        let house = furnished(&ground, 10).await;
        queue(&house, 10, 3_000, "k").await;
        let workers: Vec<_> = (0..count)
            .map(|_| {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command
                    .arg(WORKER)
                    .arg(ground.url().unwrap())
                    .arg(ground.folder());
                command.spawn().unwrap()
            })
            .collect();
        // From the first that is done, so that no process' start is measured.
        finished(&house, 10, 200).await;
        let begun = Instant::now();
        finished(&house, 10, 2_900).await;
        speeds.push(2_700.0 / begun.elapsed().as_secs_f64());
        for mut worker in workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
    }
    figures.say("engine.postgres.1-process", speeds[0], "workflows/s");
    figures.say("engine.postgres.3-processes", speeds[1], "workflows/s");
    figures.at_least(
        "engine.postgres.3-vs-1",
        speeds[1] / speeds[0],
        "ratio",
        0.9,
    );
}

/// What a worker process does until it is killed.
async fn work(url: &str, folder: &Path) {
    let house = House::open_shared(url, folder, vec![Arc::new(Nothing)]).await;
    let _workers = Workers::start(Arc::clone(&house.engine), settings(FLIGHT));
    std::future::pending().await
}

/// What queued runs and finished runs cost in memory.
async fn memory(figures: &mut Figures) {
    let ground = Ground::sqlite();
    let house = furnished(&ground, 1).await;
    queue(&house, 1, 1_000, "warm").await;
    let before = resident();
    queue(&house, 1, 10_000, "k").await;
    let queued = (resident() - before) / 10_000.0;
    figures.at_most("engine.memory-per-queued-run", queued / 1_024.0, "KB", 40.0);
    let workers = Workers::start(Arc::clone(&house.engine), settings(FLIGHT));
    finished(&house, 1, 2_000).await;
    let early = resident();
    finished(&house, 1, 11_000).await;
    figures.at_most(
        "engine.memory-over-10000-runs",
        resident() / early,
        "ratio",
        1.1,
    );
    assert!(workers.stop(Duration::from_secs(10)).await);
}

/// A server that has nothing to do.
fn idle(figures: &mut Figures) {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "warn",
            "--data",
        ])
        .arg(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let id = server.id();
    let before = ticks(id);
    std::thread::sleep(Duration::from_secs(20));
    // A tick is a hundredth of a second.
    let share = (ticks(id) - before) / 100.0 / 20.0 * 100.0;
    figures.at_most("engine.idle.core", share, "%", 0.5);
    figures.at_most(
        "engine.idle.memory",
        pages(&format!("/proc/{id}/statm")),
        "MB",
        40.0,
    );
    server.kill().unwrap();
    server.wait().unwrap();
}

/// The time that a process was at work, in ticks.
fn ticks(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
}

/// Resident memory of this process in bytes.
fn resident() -> f64 {
    pages("/proc/self/statm") * 1_048_576.0
}

/// Resident megabytes by a `statm` file, of pages of 4 KiB.
fn pages(file: &str) -> f64 {
    let statm = std::fs::read_to_string(file).unwrap();
    statm
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 256.0
}

struct Bare {
    per_second: f64,
    rows: f64,
    bytes: f64,
    commit: Duration,
}

/// Writes what an engine wrote on this ground into a fresh database.
async fn bare(ground: &Ground, flight: usize, size: usize) -> Bare {
    let open = async |ground: &Ground| match ground.url() {
        None => bare::Bare::sqlite(&ground.folder().join("sluicegate.sqlite")).await,
        Some(url) => bare::Bare::postgres(url).await,
    };
    let tables = open(ground).await.read().await;
    let runs = rows::transitions(&tables);
    let count = runs.len() as f64;
    // What is measured of the engine begins after the runs were accepted.
    let (first, rest): (Vec<_>, Vec<_>) = runs
        .into_iter()
        .map(|mut run| {
            let rest = run.split_off(1);
            (run, rest)
        })
        .unzip();
    let all = first.iter().chain(&rest).flatten();
    let (rows, bytes) = all.fold((0, 0), |(rows, bytes), one| {
        (rows + one.count(), bytes + one.bytes())
    });
    let target = ground.another().await;
    drop(target.house().await);
    let mut first = rows::gathered(first, FLIGHT, FLIGHT);
    let queued = first.len();
    let batches = rows::gathered(rest, flight, size);
    let commits = batches.len();
    first.extend(batches);
    let took = open(&target).await.write(&tables, &first, queued).await;
    Bare {
        per_second: count / took.as_secs_f64(),
        rows: rows as f64 / count,
        bytes: bytes as f64 / count,
        commit: took / u32::try_from(commits).unwrap(),
    }
}

/// Does nothing, so that what is measured is the engine.
struct Nothing;

#[async_trait]
impl Action for Nothing {
    fn descriptor(&self) -> ActionDescriptor {
        let any = json!({"type": "object"});
        ActionDescriptor {
            id: "bench.nothing".into(),
            contract_version: 1,
            description: "Nothing.".to_owned(),
            required_permissions: Vec::new(),
            input_schema: any.clone(),
            output_schema: any,
            timeout_ms: 10_000,
            idempotency: Idempotency::Required,
            risk: Risk::WorkspaceWrite,
            cancellation: Cancellation::NotSupported,
            retryable_codes: Vec::new(),
        }
    }

    async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault> {
        Ok(call.input)
    }
}

/// in → ten actions in a row → out.
fn line() -> Value {
    let mut nodes = vec![json!({"id": "in", "type": "input", "ports": {"data": "thing"}})];
    let mut edges = Vec::new();
    let mut last = ("in".to_owned(), "data");
    for n in 0..ACTIONS {
        let id = format!("a{n}");
        nodes.push(json!({
            "id": id, "type": "action",
            "action": {"actionId": "bench.nothing", "contractVersion": 1},
            "failurePolicy": {"maxAttempts": 1, "retryOn": [],
                "backoff": {"kind": "fixed", "initialMs": 0, "maximumMs": 0},
                "onExhausted": "fail-run"},
            "ports": {"input": "thing", "success": "thing", "failure": "std.failure"},
        }));
        edges.push(json!({
            "id": format!("e{n}"), "source": {"nodeId": last.0, "port": last.1},
            "target": {"nodeId": id, "port": "input"},
        }));
        last = (id, "success");
    }
    nodes.push(json!({"id": "out", "type": "output", "ports": {"input": "thing"}}));
    edges.push(json!({
        "id": "e", "source": {"nodeId": last.0, "port": last.1},
        "target": {"nodeId": "out", "port": "input"},
    }));
    json!({
        "schemaVersion": 1, "nodes": nodes, "edges": edges,
        "schemas": {"thing": {"type": "object"}}, "layout": {},
    })
}

fn settings(flight: usize) -> WorkerSettings {
    WorkerSettings {
        concurrency: flight,
        ..WorkerSettings::named(WorkerId::from("bench"))
    }
}

fn tenant(n: u32) -> TenantId {
    match n {
        0 => TenantId::from("default"),
        n => TenantId::new(format!("tenant-{n}")),
    }
}

/// Queues runs, dealt to the tenants.
async fn queue(house: &Arc<House>, tenants: u32, runs: u32, key: &'static str) {
    let callers: Vec<_> = (0..32)
        .map(|caller| {
            let house = Arc::clone(house);
            tokio::spawn(async move {
                for n in (caller..runs).step_by(32) {
                    let input =
                        json!({"claimId": format!("c-{n}"), "amount": n, "note": "a few words"});
                    let tenant = tenant(n % tenants);
                    house
                        .enqueue_for(&tenant, "line", input, &format!("{key}{n}"))
                        .await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Waits until so many runs have ended, in decisions of the chains.
async fn finished(house: &House, tenants: u32, runs: u32) {
    loop {
        let mut ended = 0;
        for n in 0..tenants {
            // The enqueue, the claim, the first intent and one settlement an action.
            let head = house.store.audit_head(&tenant(n)).await.unwrap().sequence;
            ended += head.saturating_sub(2) / u64::from(ACTIONS + 3);
        }
        if ended >= u64::from(runs) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

struct Measured {
    runs: u32,
    accepted: f64,
    took: Duration,
    decisions: f64,
    commits: f64,
    p99_ms: f64,
}

impl Measured {
    fn per_second(&self) -> f64 {
        f64::from(self.runs) / self.took.as_secs_f64()
    }
}

/// A house in which every tenant has the workflow.
async fn furnished(ground: &Ground, tenants: u32) -> Arc<House> {
    let house = Arc::new(ground.open(&[Arc::new(Nothing)]).await);
    for n in 0..tenants {
        let tenant = tenant(n);
        let owner = Account {
            account_id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            email: None,
            role: "owner".to_owned(),
        };
        house.store.ensure_tenant(&tenant, &owner).await.unwrap();
        house.publish_for(&tenant, "line", &line()).await;
    }
    house
}

/// Lets the engine finish runs that are queued already.
async fn engine(ground: &Ground, tenants: u32, runs: u32, flight: usize) -> Measured {
    let house = furnished(ground, tenants).await;
    let begun = Instant::now();
    queue(&house, tenants, runs, "k").await;
    let accepted = f64::from(runs) / begun.elapsed().as_secs_f64();
    let heads = async || {
        let mut all = 0;
        for n in 0..tenants {
            all += house.store.audit_head(&tenant(n)).await.unwrap().sequence;
        }
        all as f64
    };
    let (decisions, commits) = (heads().await, house.store.committed());
    let begun = Instant::now();
    let workers = Workers::start(Arc::clone(&house.engine), settings(flight));
    while house.store.next_due().await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = begun.elapsed();
    assert!(workers.stop(Duration::from_secs(10)).await);
    Measured {
        runs,
        accepted,
        took,
        decisions: heads().await - decisions,
        commits: (house.store.committed() - commits) as f64,
        p99_ms: p99(&house).await,
    }
}

/// From the claim to the end, by the rows of up to a thousand runs; times are milliseconds.
async fn p99(house: &House) -> f64 {
    let filter = RunFilter {
        limit: 1_000,
        ..RunFilter::default()
    };
    let rows = house
        .store
        .runs(&of(&tenant(0)).tenant, &filter)
        .await
        .unwrap();
    let mut took: Vec<u64> = rows
        .iter()
        .map(|row| {
            row.row
                .completed_at
                .unwrap()
                .since(row.row.started_at.unwrap())
                .0
        })
        .collect();
    took.sort_unstable();
    took[took.len() * 99 / 100] as f64
}
