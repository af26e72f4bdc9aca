//! The real binary on a folder: started, asked, terminated, killed.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluicegate_core::ids::{Hash, RunId};
use sluicegate_server::store::ApiKey;

use crate::harness::ground::Ground;
use crate::harness::{House, by};

const SECRET: &str = "sgk_for-a-test";

/// Lets a client with [`Served::get`] and [`Served::post`] do these things.
pub(crate) async fn allow(house: &House, key_id: &str, permissions: &[&str]) {
    let key = ApiKey {
        tenant: by().tenant,
        key_id: key_id.to_owned(),
        label: "test".to_owned(),
        secret: Hash::of(SECRET.as_bytes()),
        permissions: permissions.iter().map(|name| (*name).to_owned()).collect(),
        created_by: "a1".to_owned(),
        expires_at: None,
    };
    house.store.create_api_key(&key).await.unwrap();
}

/// A running server; it is killed when the test is done with it.
pub(crate) struct Served {
    process: Arc<Mutex<Child>>,
    pub(crate) address: String,
}

impl Served {
    /// Starts the binary on a folder, with more environment variables.
    pub(crate) fn start(folder: &Path, environment: &[(&str, &str)]) -> Self {
        Self::begin(command(folder, environment))
    }

    /// Starts it on a database, with more environment variables.
    pub(crate) fn on(ground: &Ground, environment: &[(&str, &str)]) -> Self {
        let mut all = environment.to_vec();
        all.extend(ground.url().map(|url| ("SLUICEGATE_DATABASE_URL", url)));
        Self::start(ground.folder(), &all)
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logging(folder: &Path, environment: &[(&str, &str)], log: File) -> Self {
        let mut command = command(folder, environment);
        command.stderr(log);
        Self::begin(command)
    }

    /// Starts what serves the folder.
    pub(crate) fn begin(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let process = Arc::new(Mutex::new(process));
        let mut address = String::new();
        for line in &mut lines {
            let line = line.unwrap();
            if let Some(there) = line.strip_prefix("listening on ") {
                address = there.to_owned();
                break;
            }
            // A worker answers nobody, and has no address.
            if line.starts_with("working") {
                break;
            }
            kill_if_still(&process, &line);
        }
        // Read on: the server is never blocked by a full pipe, and is killed where it stands.
        let watched = Arc::clone(&process);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kill_if_still(&watched, &line);
            }
        });
        Self { process, address }
    }

    /// Waits until it was killed where it stands still.
    pub(crate) fn died(self, point: &str) {
        let begun = Instant::now();
        while !self.is_dead() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it never came to {point}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.process.lock().unwrap().try_wait().unwrap().is_some()
    }

    /// Kills it as the kernel does: nothing is finished.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Asks it to stop (SIGTERM), and gives its exit code.
    pub(crate) fn terminate(self) -> Option<i32> {
        self.signal("TERM");
        self.process.lock().unwrap().wait().unwrap().code()
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn id(&self) -> u32 {
        self.process.lock().unwrap().id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let mut answer = self.request(path).call().unwrap();
        serde_json::from_reader(answer.body_mut().as_reader()).unwrap()
    }

    /// Reads an answer to its end, and gives its status.
    pub(crate) fn read_whole(&self, path: &str) -> u16 {
        let mut answer = self.request(path).call().unwrap();
        let status = answer.status().as_u16();
        answer.body_mut().read_to_string().unwrap();
        status
    }

    /// A document, if there is an answer and it is one.
    pub(crate) fn try_get(&self, path: &str) -> Option<Value> {
        let mut answer = self.request(path).call().ok()?;
        let good = answer.status().is_success();
        let read = serde_json::from_reader(answer.body_mut().as_reader());
        read.ok().filter(|_| good)
    }

    /// The lines of an answer as they come, until it ends or breaks off.
    pub(crate) fn lines(&self, path: &str) -> impl Iterator<Item = String> {
        let answer = self.request(path).call().ok();
        let good = answer.filter(|answer| answer.status().is_success());
        let lines = good.map(|answer| BufReader::new(answer.into_body().into_reader()).lines());
        lines.into_iter().flatten().map_while(Result::ok)
    }

    /// The status of an answer.
    pub(crate) fn status(&self, path: &str) -> u16 {
        self.request(path).call().unwrap().status().as_u16()
    }

    /// Sends a document; gives the status and the answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.try_post(path, body).unwrap()
    }

    /// The same; nothing when the connection breaks.
    pub(crate) fn try_post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let answer = ureq::post(format!("{}{path}", self.address))
            .config()
            .http_status_as_error(false)
            .build()
            .header("Authorization", format!("Bearer {SECRET}"))
            .header("Content-Type", "application/json")
            .send(body.to_string());
        let mut answer = answer.ok()?;
        let status = answer.status().as_u16();
        let mut text = String::new();
        let read = answer.body_mut().as_reader().read_to_string(&mut text);
        read.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    fn request(&self, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        ureq::get(format!("{}{path}", self.address))
            .config()
            .http_status_as_error(false)
            .build()
            .header("Authorization", format!("Bearer {SECRET}"))
    }

    /// Waits until the run's status is one of these.
    pub(crate) fn until(&self, run: &RunId, reached: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.get(&format!("/api/workflow-runs/result?runId={run}"));
            let status = answer["status"].as_str().unwrap().to_owned();
            if reached(&status) {
                return status;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it stays {status}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Kills a process that says that it stands still where it was asked to.
fn kill_if_still(process: &Mutex<Child>, line: &str) {
    if line.starts_with("stands still at ") {
        let mut process = process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

/// `sluicegate serve` on a folder and a free port.
pub(crate) fn command(folder: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "warn",
            "--data",
        ])
        .arg(folder)
        .env_remove("SLUICEGATE_CRASH_AT")
        .envs(environment.iter().copied());
    command
}
