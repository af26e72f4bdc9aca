//! The real binary on a folder: started, asked, terminated, killed.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluicegate_core::ids::{Hash, RunId};
use sluicegate_server::store::ApiKey;

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
    process: Child,
    pub(crate) address: String,
}

impl Served {
    /// Starts the binary on a folder, with more environment variables.
    pub(crate) fn start(folder: &Path, environment: &[(&str, &str)]) -> Self {
        Self::begin(command(folder, environment))
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logging(folder: &Path, environment: &[(&str, &str)], log: File) -> Self {
        let mut command = command(folder, environment);
        command.stderr(log);
        Self::begin(command)
    }

    fn begin(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().map_or_else(String::new, Result::unwrap);
        let address = first.strip_prefix("listening on ").unwrap_or("").to_owned();
        // Read on, so that the server is never blocked by a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// Kills it as the kernel does: nothing is finished.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks it to stop (SIGTERM), and gives its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(asked.success());
        self.process.wait().unwrap().code()
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

    /// Sends a document; gives the status and the answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = ureq::post(format!("{}{path}", self.address))
            .config()
            .http_status_as_error(false)
            .build()
            .header("Authorization", format!("Bearer {SECRET}"))
            .header("Content-Type", "application/json")
            .send(body.to_string());
        let mut answer = answer.unwrap();
        let status = answer.status().as_u16();
        (
            status,
            serde_json::from_reader(answer.body_mut().as_reader()).unwrap_or_default(),
        )
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
        let _ = self.process.kill();
        let _ = self.process.wait();
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
