//! `serve` and `run` as a person starts and stops them (server.md §§1–2).

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Files, message, sluicegate, stdout, text};

/// A server of the real binary on a port of its own.
struct Served {
    child: std::process::Child,
    address: String,
    key: Option<String>,
    links: usize,
}

impl Served {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
            .args([
                "serve",
                "--demo",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "off",
                "--data",
            ])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut address, mut key, mut links) = (None, None, 0);
        while links == 0 {
            let line = lines.next().unwrap().unwrap();
            address = address.or(line.strip_prefix("listening on ").map(str::to_owned));
            key = key.or(line.find("sgk_").map(|at| line[at..].to_owned()));
            links += usize::from(line.contains("/sign-in?token="));
        }
        Self {
            child,
            address: address.unwrap(),
            key,
            links,
        }
    }

    /// Asks it to stop, as a supervisor does, and gives its exit code.
    fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(asked.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn serve_prints_a_key_once_and_a_link_each_time_and_stops_with_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Served::start(&data);
    assert!(first.key.is_some());
    assert_eq!(first.links, 1);
    assert_eq!(first.terminate(), Some(0));
    let second = Served::start(&data);
    assert_eq!(second.key, None);
    assert_eq!(second.terminate(), Some(0));
}

#[test]
fn serve_says_in_one_line_why_it_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let running = Served::start(&data);
    let port = running.address.strip_prefix("http://").unwrap();
    let other = folder.path().join("other");
    let absent = folder.path().join("absent");
    for (arguments, place) in [
        (
            ["--data", text(&data), "--listen", "127.0.0.1:0"],
            "is held by another process",
        ),
        (
            ["--data", text(&other), "--listen", port],
            "is in use; stop what listens there",
        ),
        (
            ["--listen", "everywhere", "--data", text(&other)],
            "--listen: \"everywhere\" is not accepted",
        ),
        (
            ["--web", text(&absent), "--data", text(&other)],
            "index.html: there is no such file",
        ),
        (
            ["--config", text(&absent), "--data", text(&other)],
            "absent: ",
        ),
    ] {
        let output = sluicegate(&[&["serve"][..], &arguments].concat(), b"");
        assert_eq!(output.status.code(), Some(2), "{place}");
        assert!(message(&output).contains(place), "{}", message(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn serve_refuses_a_database_of_a_newer_binary() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(Served::start(&data).terminate(), Some(0));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection, SqliteConnection};
        let file = format!("sqlite://{}/sluicegate.sqlite", data.display());
        let mut database = SqliteConnection::connect(&file).await.unwrap();
        let newer = sqlx::query("pragma user_version = 999");
        newer.execute(&mut database).await.unwrap();
        database.close().await.unwrap();
    });
    let output = sluicegate(
        &["serve", "--data", text(&data), "--listen", "127.0.0.1:0"],
        b"",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message(&output).contains("schema 999"),
        "{}",
        message(&output)
    );
}

#[test]
fn b087_an_idle_connection_does_not_hold_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&folder.path().join("data"));
    let address = served.address.strip_prefix("http://").unwrap().to_owned();
    let mut idle = std::net::TcpStream::connect(&address).unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let begun = std::time::Instant::now();
    assert_eq!(served.terminate(), Some(0));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn run_starts_a_workflow_waits_for_its_end_and_knows_its_key_again() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&folder.path().join("data"));
    let files = Files::new();
    let input = files.write(
        "input.json",
        include_str!("../../../samples/expenses.review/approved.input.json"),
    );
    let key = served.key.clone().unwrap();
    let run = |workflow: &str, idempotency_key: &str, more: &[&str]| {
        let own = [
            "run",
            workflow,
            "--input",
            text(&input),
            "--server",
            &served.address,
            "--api-key",
            &key,
            "--idempotency-key",
            idempotency_key,
        ];
        sluicegate(&[&own[..], more].concat(), b"")
    };
    let first = run("expenses.review", "k", &["--wait", "--json"]);
    assert_eq!(
        first.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    let result: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(result["status"], "succeeded");
    assert!(result["outputs"].is_object());
    let again = run("expenses.review", "k", &["--json"]);
    assert_eq!(again.status.code(), Some(0));
    let accepted: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(accepted["created"], false);
    assert_eq!(accepted["runId"], result["runId"]);
    let people = run("expenses.review", "k", &["--wait"]);
    assert!(stdout(&people).starts_with(&format!(
        "run {} succeeded\n",
        result["runId"].as_str().unwrap()
    )));

    let unknown = run("nothing", "other", &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(message(&unknown).ends_with("(WORKFLOW_NOT_FOUND)"));
    assert_eq!(served.terminate(), Some(0));
}

#[test]
fn h3_audit_verify_tells_a_whole_chain_from_a_broken_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let served = Served::start(&data);
    let (address, key) = (served.address.clone(), served.key.clone().unwrap());
    let verify = |more: &[&str]| {
        let own = ["audit", "verify", "--server", &address, "--api-key", &key];
        sluicegate(&[&own[..], more].concat(), b"")
    };
    let whole = verify(&[]);
    assert_eq!(whole.status.code(), Some(0), "{}", message(&whole));
    assert!(stdout(&whole).starts_with("the audit chain is whole: "));
    let whole = verify(&["--json"]);
    assert_eq!(whole.status.code(), Some(0));
    let answer: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(answer["valid"], true);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection, SqliteConnection};
        let file = format!("sqlite://{}/sluicegate.sqlite", data.display());
        let mut database = SqliteConnection::connect(&file).await.unwrap();
        let damage = "drop trigger workflow_audit_events_stay;
                      update workflow_audit_events set entry = replace(entry, 'workflow', 'w0rkflow')
                      where sequence = 2";
        sqlx::raw_sql(damage).execute(&mut database).await.unwrap();
        database.close().await.unwrap();
    });
    let broken = verify(&[]);
    assert_eq!(broken.status.code(), Some(1));
    let said = stdout(&broken);
    assert!(
        said.starts_with("the audit chain is broken at entry 2: "),
        "{said}"
    );
    assert!(said.ends_with("entries up to 1 are whole\n"), "{said}");
    let broken = verify(&["--json"]);
    assert_eq!(broken.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&broken.stdout).unwrap();
    assert_eq!(answer["firstBrokenSequence"], 2);

    assert_eq!(served.terminate(), Some(0));
    let nobody = verify(&[]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(message(&nobody).contains("did not answer"));
}

#[test]
fn s7_payload_keys_are_rotated_by_a_command_and_a_lost_one_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let nothing = sluicegate(&["payload-keys", "rotate", "--data", text(&data)], b"");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(message(&nothing).contains("there is no such file"));

    let served = Served::start(&data);
    let key = served.key.clone().unwrap();
    let files = Files::new();
    let input = files.write(
        "input.json",
        include_str!("../../../samples/expenses.review/approved.input.json"),
    );
    let run = |address: &str| {
        let arguments = [
            "run",
            "expenses.review",
            "--wait",
            "--json",
            "--input",
            text(&input),
            "--server",
            address,
            "--api-key",
            &key,
            "--idempotency-key",
            "k",
        ];
        let output = sluicegate(&arguments, b"");
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        output.stdout
    };
    let first = run(&served.address);
    // It may be rotated while a server runs; the next one writes with the new key.
    let rotated = sluicegate(&["payload-keys", "rotate", "--data", text(&data)], b"");
    assert_eq!(rotated.status.code(), Some(0), "{}", message(&rotated));
    assert!(stdout(&rotated).starts_with("key "), "{}", stdout(&rotated));
    assert_eq!(served.terminate(), Some(0));
    let served = Served::start(&data);
    assert_eq!(
        run(&served.address),
        first,
        "what the old key encrypted is read"
    );
    assert_eq!(served.terminate(), Some(0));

    let file = data.join("keys");
    let keys = std::fs::read_to_string(&file).unwrap();
    assert_eq!(keys.lines().count(), 2);
    std::fs::write(&file, format!("{}\n", keys.lines().nth(1).unwrap())).unwrap();
    let refused = sluicegate(
        &["serve", "--data", text(&data), "--listen", "127.0.0.1:0"],
        b"",
    );
    assert_eq!(refused.status.code(), Some(2));
    let said = message(&refused);
    assert!(said.contains("lacks the key"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1);
}
