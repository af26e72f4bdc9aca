//! Experiments: a script is carried out against a process that dies, and what is left is
//! compared with what is left without a death.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sluicegate_core::ids::RunId;
use sluicegate_core::value::Value;
use sluicegate_server::engine::crash::CrashPoint;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::harness::ground::Ground;
use crate::left::{Left, look};
use crate::script::Script;
use crate::served::{self, Served};
use crate::shapes;

/// The workflow of every script.
pub(crate) const KEY: &str = "work";
/// Longer than any experiment takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many passings of one point are tried: every one of the longest graph's nodes.
const MOST: u32 = 12;

/// Experiments at the same time; they mostly wait.
pub(crate) const AT_ONCE: usize = 4;

/// How often a point was passed and survived, and the first loss, by point and script.
type Cells = BTreeMap<(CrashPoint, &'static str), (u32, Option<String>)>;

/// What the next process calls itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Name {
    /// As the dead one.
    Same,
    /// Otherwise.
    Another,
}

impl Name {
    fn as_str(self) -> &'static str {
        match self {
            Self::Same => "the same name",
            Self::Another => "another name",
        }
    }
}

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    async fn ground(self) -> Ground {
        match self {
            Self::Sqlite => Ground::sqlite(),
            Self::Postgres => Ground::postgres().await,
        }
    }
}

/// One death.
pub(crate) struct Experiment<'l> {
    pub(crate) database: Database,
    pub(crate) script: &'l Script,
    pub(crate) point: CrashPoint,
    /// At which passing of the point.
    pub(crate) nth: u32,
    pub(crate) name: Name,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// The script does not come by this point, or not as often.
    NotReached,
    /// As without a death.
    Same,
    /// Otherwise, and how.
    Different(String),
}

/// The scripts and what each leaves behind without a death.
pub(crate) struct Lab {
    scripts: Vec<(Script, Left)>,
}

impl Lab {
    pub(crate) async fn new(scripts: Vec<Script>) -> Self {
        let mut known = Vec::new();
        for script in scripts {
            let (left, died) = live(Database::Sqlite, &script, None, Name::Another)
                .await
                .unwrap();
            assert!(!died);
            assert_eq!(left.status, script.ends.as_str(), "{}", script.name);
            assert!(
                left.effects.values().all(|made| *made == 1),
                "{}",
                script.name
            );
            known.push((script, left));
        }
        Self { scripts: known }
    }

    pub(crate) fn script(&self, name: &str) -> &Script {
        let found = self.scripts.iter().find(|(script, _)| script.name == name);
        &found.unwrap().0
    }

    pub(crate) async fn carry_out(&self, experiment: &Experiment<'_>) -> Found {
        let Experiment {
            database,
            script,
            point,
            nth,
            name,
        } = experiment;
        let known = self
            .scripts
            .iter()
            .find(|(known, _)| known.name == script.name);
        let expected = &known.unwrap().1;
        let death = format!("{}:{nth}", point.as_str());
        match live(*database, script, Some(&death), *name).await {
            Err(what) => Found::Different(what),
            Ok((_, false)) => Found::NotReached,
            Ok((left, true)) => match expected.differs_from(&left, script) {
                None => Found::Same,
                Some(what) => Found::Different(what),
            },
        }
    }

    /// Every experiment, as a matrix: a cell is how often the point was passed and survived.
    /// Whether nothing was lost and nothing was done twice.
    pub(crate) async fn matrix(self: &Arc<Self>) -> bool {
        let (mut total, mut losses) = (0, Vec::new());
        for database in Database::ALL {
            for name in [Name::Another, Name::Same] {
                let cells = self.cells(database, name).await;
                print!(
                    "\n{:<30}",
                    format!("{}, {}", database.as_str(), name.as_str())
                );
                for (script, _) in &self.scripts {
                    print!("{:>12}", script.name);
                }
                println!();
                for point in CrashPoint::ALL {
                    print!("{:<30}", point.as_str());
                    for (script, _) in &self.scripts {
                        let (survived, lost) = &cells[&(*point, script.name)];
                        let shown = match (survived, lost) {
                            (_, Some(_)) => "LOST".to_owned(),
                            (0, None) => "-".to_owned(),
                            (survived, None) => survived.to_string(),
                        };
                        print!("{shown:>12}");
                        total += survived;
                        losses.extend(lost.clone());
                    }
                    println!();
                }
            }
        }
        println!("\n{total} deaths survived; {} were not", losses.len());
        for lost in &losses {
            println!("{lost}");
        }
        losses.is_empty()
    }

    /// The cells of one database and name, some at a time.
    async fn cells(self: &Arc<Self>, database: Database, name: Name) -> Cells {
        let (room, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
        for point in CrashPoint::ALL {
            for at in 0..self.scripts.len() {
                let (lab, room) = (Arc::clone(self), Arc::clone(&room));
                running.spawn(async move {
                    let _room = room.acquire().await;
                    let (script, _) = &lab.scripts[at];
                    let cell = lab.cell(database, script, *point, name).await;
                    ((*point, script.name), cell)
                });
            }
        }
        running.join_all().await.into_iter().collect()
    }

    /// All passings of one point in one script.
    async fn cell(
        &self,
        database: Database,
        script: &Script,
        point: CrashPoint,
        name: Name,
    ) -> (u32, Option<String>) {
        // One death a point shows what a name could change.
        let most = if name == Name::Same { 1 } else { MOST };
        let mut survived = 0;
        while survived < most {
            let nth = survived + 1;
            let experiment = Experiment {
                database,
                script,
                point,
                nth,
                name,
            };
            match self.carry_out(&experiment).await {
                Found::NotReached => break,
                Found::Same => survived += 1,
                Found::Different(what) => {
                    let place = format!(
                        "{} {} {} {nth}",
                        database.as_str(),
                        script.name,
                        point.as_str()
                    );
                    return (survived, Some(format!("{place}: {what}")));
                }
            }
        }
        (survived, None)
    }
}

/// Carries a script out, with a death or without. Gives what is left, and whether the death
/// was reached.
async fn live(
    database: Database,
    script: &Script,
    death: Option<&str>,
    name: Name,
) -> Result<(Left, bool), String> {
    let ground = Arc::new(database.ground().await);
    let prepared = Arc::clone(&ground);
    apart(async move { prepare(&prepared).await }).await?;
    let (there, own) = (Arc::clone(&ground), script.clone());
    let death = death.map(str::to_owned);
    let asking = tokio::task::spawn_blocking(move || {
        let mut caller = Caller::new(there, death.as_deref(), name);
        let run = caller.carry_out(&own)?;
        let died = caller.died;
        caller.server.kill();
        Ok::<_, String>((run, died))
    });
    let (run, died) = asking.await.map_err(|error| error.to_string())??;
    let script = script.clone();
    let left = apart(async move { look(&ground, &script, &run).await }).await?;
    Ok((left, died))
}

/// Does something in a runtime of its own, which takes every connection with it when it ends.
async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.unwrap().block_on(work)
    });
    done.await.map_err(|error| format!("it panicked: {error}"))
}

async fn prepare(ground: &Ground) {
    let house = ground.open(&[]).await;
    house.sample_agents().await;
    house.agent(shapes::echo()).await;
    let may = [
        "workflows.runs.read",
        "workflows.runs.execute",
        "workflows.runs.cancel",
        "workflows.definitions.manage",
        "workflows.definitions.read",
        "workflows.definitions.publish",
        "expenses.claims.read",
        "expenses.claims.write",
    ];
    served::allow(&house, "k1", &may).await;
}

/// Whoever asks, and asks again when no answer comes.
struct Caller {
    ground: Arc<Ground>,
    server: Served,
    name: &'static str,
    died: bool,
    begun: Instant,
}

impl Caller {
    fn new(ground: Arc<Ground>, death: Option<&str>, name: Name) -> Self {
        let mut environment = vec![("SLUICEGATE_WORKER_NAME", "first")];
        environment.extend(death.map(|death| ("SLUICEGATE_CRASH_AT", death)));
        Self {
            server: start(&ground, &environment),
            ground,
            name: if name == Name::Same {
                "first"
            } else {
                "second"
            },
            died: false,
            begun: Instant::now(),
        }
    }

    fn carry_out(&mut self, script: &Script) -> Result<RunId, String> {
        let created = self.post("/api/workflows", &json!({"key": KEY, "name": "Work"}))?;
        if !matches!(created.0, 201 | 409) {
            return Err(format!("create: {created:?}"));
        }
        let detail = self.get(&format!("/api/workflows/detail?key={KEY}"))?;
        let id = detail["workflowId"].clone();
        let save = json!({"workflowId": id, "expectedRevision": 1, "graph": script.graph});
        let saved = self.post("/api/workflows/update", &save)?;
        // A save whose answer was lost is found out by its conflict.
        if saved.0 != 200 && saved.1["draftVersion"] != 2 {
            return Err(format!("save: {saved:?}"));
        }
        let publish = json!({"workflowId": id, "expectedRevision": 2});
        let published = self.post("/api/workflows/publish", &publish)?;
        if (published.0, &published.1["revision"]) != (200, &json!(1)) {
            return Err(format!("publish: {published:?}"));
        }
        if script.busy {
            tokio::runtime::Handle::current().block_on(self.ground.busy_claims());
        }
        let body = json!({"workflowKey": KEY, "input": script.input, "idempotencyKey": "k"});
        let accepted = self.post("/api/workflow-runs", &body)?;
        let run = accepted.1["runId"].as_str().unwrap_or_default().to_owned();
        if accepted.0 != 202 {
            return Err(format!("enqueue: {accepted:?}"));
        }
        if script.busy {
            self.until(&run, |status| status == "waiting-retry" || is_over(status))?;
            tokio::runtime::Handle::current().block_on(self.ground.idle_claims());
        }
        if script.cancels {
            self.until(&run, |status| status == "waiting-agent" || is_over(status))?;
            // Its lease is renewed meanwhile.
            std::thread::sleep(Duration::from_millis(250));
            let cancel = json!({"runId": run});
            let cancelled = self.post("/api/workflow-runs/cancel", &cancel)?;
            if cancelled.0 != 200 {
                return Err(format!("cancel: {cancelled:?}"));
            }
        }
        self.until(&run, is_over)?;
        // What comes after the end may still be reached.
        std::thread::sleep(Duration::from_millis(30));
        self.alive()?;
        Ok(RunId::new(run))
    }

    fn until(&mut self, run: &str, reached: impl Fn(&str) -> bool) -> Result<(), String> {
        loop {
            let answer = self.get(&format!("/api/workflow-runs/result?runId={run}"))?;
            let status = answer["status"].as_str().unwrap_or_default();
            if reached(status) {
                return Ok(());
            }
            if self.begun.elapsed() > PATIENCE {
                return Err(format!("the run stays {status}"));
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<(u16, Value), String> {
        self.again(|server| server.try_post(path, body))
    }

    fn get(&mut self, path: &str) -> Result<Value, String> {
        self.again(|server| server.try_get(path))
    }

    fn again<T>(&mut self, ask: impl Fn(&Served) -> Option<T>) -> Result<T, String> {
        loop {
            self.alive()?;
            if let Some(answer) = ask(&self.server) {
                return Ok(answer);
            }
            if self.begun.elapsed() > PATIENCE {
                return Err("no answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts another process where this one is dead.
    fn alive(&mut self) -> Result<(), String> {
        if !self.server.is_dead() {
            return Ok(());
        }
        if self.died {
            return Err("the process died a second time".to_owned());
        }
        self.died = true;
        self.server = start(&self.ground, &[("SLUICEGATE_WORKER_NAME", self.name)]);
        Ok(())
    }
}

fn is_over(status: &str) -> bool {
    ["succeeded", "failed", "refused", "cancelled"].contains(&status)
}

fn start(ground: &Ground, environment: &[(&str, &str)]) -> Served {
    let mut all = vec![
        ("SLUICEGATE_LEASE_MS", "1000"),
        ("SLUICEGATE_RENEW_MS", "100"),
    ];
    all.extend(environment);
    Served::on(ground, &all)
}
