//! The real binary against good and bad input (server.md §2): one clear message with the
//! place, exit code 1 or 2, never a panic or a backtrace.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "what helps a test may stop it"
)]

mod hostile;
mod served;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const GOOD: &str = r#"{"schemaVersion":1,
 "nodes":[
  {"id":"in","type":"input","ports":{"data":"claim"}},
  {"id":"big","type":"gate","ports":{"input":"claim","pass":"claim","fail":"claim"},
   "logic":{"version":1,"expr":{"gt":[{"read":"/amount"},{"literal":100}]}}},
  {"id":"yes","type":"output","ports":{"input":"claim"}},
  {"id":"no","type":"output","ports":{"input":"claim"}}],
 "edges":[
  {"id":"e1","source":{"nodeId":"in","port":"data"},"target":{"nodeId":"big","port":"input"}},
  {"id":"e2","source":{"nodeId":"big","port":"pass"},"target":{"nodeId":"yes","port":"input"}},
  {"id":"e3","source":{"nodeId":"big","port":"fail"},"target":{"nodeId":"no","port":"input"}}],
 "schemas":{"claim":{"type":"object","properties":{"amount":{"type":"number"}},
  "required":["amount"],"additionalProperties":false}},
 "layout":{}}"#;

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn sluicegate(arguments: &[&str], standard_input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(arguments)
        .env_remove("SLUICEGATE_SERVER")
        .env_remove("SLUICEGATE_API_KEY")
        .env_remove("SLUICEGATE_CONFIG")
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may have ended by now.
    let _ = child.stdin.take().unwrap().write_all(standard_input);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The one line on standard error, without what begins every one.
#[track_caller]
fn message(output: &Output) -> &str {
    let text = std::str::from_utf8(&output.stderr).unwrap();
    assert!(
        !text.contains("panicked") && !text.contains("backtrace"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().strip_prefix("sluicegate: ").unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_good_graph_is_exit_0_from_a_file_and_from_standard_input() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    for output in [
        sluicegate(&["check", text(&graph)], b""),
        sluicegate(&["check", "-"], GOOD.as_bytes()),
    ] {
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stdout(&output).lines().last(), Some("1 warning"));
        assert!(stdout(&output).starts_with("warning catalogue.absent in the graph: "));
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn what_cannot_be_read_is_exit_2_and_names_the_place() {
    let files = Files::new();
    let folder = text(files.0.path()).to_owned();
    let nested = "[".repeat(65) + &"]".repeat(65);
    let cases: &[(&str, &[u8], &str)] = &[
        ("empty.json", b"", ":1:1: the text is empty"),
        ("blank.json", b" \n", ":1:1: the text is empty"),
        ("words.json", b"{\n \"a\": nope}", ":2:8: "),
        ("cut.json", b"{\"nodes\": [", "(json.syntax)"),
        ("more.json", b"{} {}", "(json.syntax)"),
        (
            "latin.json",
            b"{\"a\": \"\xe9\"}",
            ":1:8: the text is not UTF-8 (",
        ),
        (
            "twice.json",
            b"{\"nodes\": [], \"nodes\": []}",
            "at /nodes: ",
        ),
        ("surrogate.json", b"[\"\\ud800\"]", "(json.lone-surrogate)"),
        (
            "range.json",
            b"{\"layout\": {\"a\": {\"x\": 9007199254740992, \"y\": 0}}}",
            "at /layout/a/x: ",
        ),
        ("deep.json", nested.as_bytes(), "(json.too-deep)"),
        (
            "unknown.json",
            b"{\"schemaVersion\": 1, \"vertices\": []}",
            "at /vertices: ",
        ),
        (
            "type.json",
            b"{\"schemaVersion\": 1, \"nodes\": [{\"id\": \"a\", \"type\": \"loop\"}]}",
            "at /nodes/0/type: ",
        ),
        (
            "missing.json",
            b"{\"schemaVersion\": 1, \"edges\": [{\"id\": \"a\"}]}",
            "at /edges/0: ",
        ),
        ("list.json", b"[]", "(json.wrong-type)"),
    ];
    for (name, bytes, place) in cases {
        let path = files.write(name, bytes);
        for command in ["check", "dry-run"] {
            let output = sluicegate(&[command, text(&path)], b"");
            assert_eq!(output.status.code(), Some(2), "{name}");
            let message = message(&output);
            assert!(message.starts_with(text(&path)), "{message}");
            assert!(message.contains(place), "{name}: {message}");
            assert!(output.stdout.is_empty(), "{name}");
        }
        let output = sluicegate(&["check", "-"], bytes);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(message(&output).starts_with("standard input"), "{name}");
    }
    let output = sluicegate(&["check", &folder], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).ends_with("this is a folder; a file is needed"));
    let endless = std::fs::File::create(files.0.path().join("long.json")).unwrap();
    endless.set_len(16 * 1024 * 1024 + 1).unwrap();
    let output = sluicegate(&["check", &format!("{folder}/long.json")], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("this is longer than"));
    let absent = format!("{folder}/absent.json");
    let output = sluicegate(&["check", &absent], b"");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(message(&output), format!("{absent}: there is no such file"));
}

#[test]
fn a_graph_with_errors_is_exit_1_and_names_them() {
    let files = Files::new();
    let cycle = GOOD.replace(
        r#""source":{"nodeId":"in","port":"data"}"#,
        r#""source":{"nodeId":"big","port":"pass"}"#,
    );
    let port = GOOD.replace(r#""port":"pass"},"target""#, r#""port":"maybe"},"target""#);
    for (name, graph, code) in [
        ("cycle.json", cycle, "graph.cycle"),
        ("port.json", port, "port.unknown"),
        (
            "empty.json",
            r#"{"schemaVersion":1}"#.to_owned(),
            "graph.input-count",
        ),
    ] {
        let path = files.write(name, graph);
        let output = sluicegate(&["check", text(&path)], b"");
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(output.stderr.is_empty());
        let found = stdout(&output)
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(code) && line.starts_with("error "));
        assert!(found, "{name}: {}", stdout(&output));
        let output = sluicegate(&["check", "--json", text(&path)], b"");
        assert_eq!(output.status.code(), Some(1), "{name}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["valid"], false);
        let codes = answer["issues"].as_array().unwrap();
        assert!(codes.iter().any(|issue| issue["code"] == code), "{name}");
    }
}

#[test]
fn dry_run_judges_the_sample_input_and_the_catalogue() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    let fits = files.write("fits.json", r#"{"amount": 1}"#);
    let misfit = files.write("misfit.json", r#"{"amount": "much"}"#);
    let output = sluicegate(&["dry-run", text(&graph), "--input", text(&fits)], b"");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stdout(&output).starts_with("order: in → big → "),
        "{}",
        stdout(&output)
    );
    let output = sluicegate(&["dry-run", text(&graph), "--input", text(&misfit)], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("misfit.json: error input.invalid in the input at /amount: "));
    let catalogue = files.write("catalogue.json", r#"{"agents": [], "actions": []}"#);
    let output = sluicegate(
        &[
            "dry-run",
            "--json",
            text(&graph),
            "--catalogue",
            text(&catalogue),
        ],
        b"",
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"], true);
    assert_eq!(report["issues"], serde_json::json!([]));
}

#[test]
fn a_catalogue_of_another_shape_is_exit_2_and_names_the_place() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    for (catalogue, place) in [
        (r#"{"agents": [], "tools": []}"#, "at /tools: "),
        (
            r#"{"agents": [{"agentId": "a"}]}"#,
            "at /agents/0: the member \"revision\" is missing",
        ),
        (r#"{"agents": 7}"#, "at /agents: "),
        ("[[], []]", "an object is needed here"),
    ] {
        let path = files.write("catalogue.json", catalogue);
        let output = sluicegate(&["check", text(&graph), "--catalogue", text(&path)], b"");
        assert_eq!(output.status.code(), Some(2));
        assert!(message(&output).contains(place), "{}", message(&output));
    }
}

#[test]
fn standard_input_is_read_for_one_thing_only() {
    let output = sluicegate(&["dry-run", "-", "--input", "-"], GOOD.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("standard input is read once"));
}

#[test]
fn usage_is_exit_2_and_help_is_exit_0() {
    for wrong in [
        &["check"][..],
        &["draw", "x"],
        &["check", "--wat", "x"],
        &[],
    ] {
        let output = sluicegate(wrong, b"");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
    for good in ["--help", "--version"] {
        assert_eq!(sluicegate(&[good], b"").status.code(), Some(0));
    }
}

#[test]
fn simulate_prints_canonical_events_byte_identical_twice() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    let input = files.write("input.json", r#"{"amount": 120.0}"#);
    let fixtures = files.write(
        "fixtures.json",
        r#"{"nodes":{"big":{"simulatedDurationMs":5}}}"#,
    );
    let arguments = [
        "simulate",
        text(&graph),
        "--input",
        text(&input),
        "--fixtures",
        text(&fixtures),
        "--events",
    ];
    let first = sluicegate(&arguments, b"");
    assert_eq!(
        first.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    assert!(first.stderr.is_empty());
    assert_eq!(first.stdout, sluicegate(&arguments, b"").stdout);
    for (index, line) in stdout(&first).lines().enumerate() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["sequence"], index as u64 + 1);
        assert_eq!(sluicegate_core::value::canonical(&event), line);
        assert!(event["virtualOffsetMs"].is_u64());
    }
    let last = stdout(&first).lines().last().unwrap();
    assert!(last.contains(r#""type":"run.succeeded""#), "{last}");
}

#[test]
fn simulate_tells_the_result_to_people_and_programs() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    let fixtures = files.write("fixtures.json", "{}");
    let mut arguments = vec![
        "simulate",
        text(&graph),
        "--input",
        "-",
        "--fixtures",
        text(&fixtures),
    ];
    let people = sluicegate(&arguments, br#"{"amount": 1}"#);
    assert_eq!(people.status.code(), Some(0));
    assert_eq!(stdout(&people).lines().last(), Some(r#"no: {"amount":1}"#));
    arguments.push("--json");
    let program = sluicegate(&arguments, br#"{"amount": 1}"#);
    let result: serde_json::Value = serde_json::from_slice(&program.stdout).unwrap();
    assert_eq!(result["status"], "succeeded");
    assert_eq!(result["outputs"], serde_json::json!({"no": {"amount": 1}}));
    assert_eq!(
        result["payloads"]["input"]["preview"],
        serde_json::json!({"amount": 1})
    );
}

#[test]
fn a_simulation_that_cannot_start_is_exit_1_and_names_the_place() {
    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    let cycle = files.write(
        "cycle.json",
        GOOD.replace(
            r#""source":{"nodeId":"in","port":"data"}"#,
            r#""source":{"nodeId":"big","port":"pass"}"#,
        ),
    );
    let input = files.write("input.json", r#"{"amount": 1}"#);
    let misfit = files.write("misfit.json", r#"{"amount": "much"}"#);
    let none = files.write("none.json", "{}");
    let unfit = files.write(
        "unfit.json",
        r#"{"nodes": {"ghost": {"simulatedDurationMs": 1}}}"#,
    );
    for (graph, input, fixtures, place) in [
        (
            &cycle,
            &input,
            &none,
            "cycle.json: error graph.cycle in node big",
        ),
        (
            &graph,
            &misfit,
            &none,
            "misfit.json: error WORKFLOW_INPUT_INVALID in the input at /amount",
        ),
        (
            &graph,
            &input,
            &unfit,
            "unfit.json: node ghost at /nodes/ghost: the graph has no such node",
        ),
    ] {
        let output = sluicegate(
            &[
                "simulate",
                text(graph),
                "--input",
                text(input),
                "--fixtures",
                text(fixtures),
            ],
            b"",
        );
        assert_eq!(output.status.code(), Some(1), "{place}");
        assert!(output.stdout.is_empty());
        let text = std::str::from_utf8(&output.stderr).unwrap();
        assert!(text.contains(place) && !text.contains("panicked"), "{text}");
    }
    let wrong = files.write("wrong.json", r#"{"nodes": {"big": {"wat": 1}}}"#);
    let output = sluicegate(
        &[
            "simulate",
            text(&graph),
            "--input",
            text(&input),
            "--fixtures",
            text(&wrong),
        ],
        b"",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("wrong.json: at /nodes/big/wat: "));
}

/// A graph whose issues are more than a pipe holds.
fn long_answer() -> String {
    let node = |i: usize| format!(r#"{{"id":"Not An Identifier {i}","type":"agent"}}"#);
    let nodes: Vec<_> = (0..90).map(node).collect();
    format!(r#"{{"schemaVersion":1,"nodes":[{}]}}"#, nodes.join(","))
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let files = Files::new();
    let graph = files.write("long.json", long_answer());
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(["check", text(&graph)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn text_of_a_document_does_not_steer_the_terminal() {
    let graph = r#"{"schemaVersion":1,"nodes":[{"id":"a\u001b[31m\nb","type":"input"}]}"#;
    let output = sluicegate(&["check", "-"], graph.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(!stdout(&output).contains('\u{1b}'));
    assert!(stdout(&output).lines().all(|line| line.contains(' ')));
}

#[test]
fn run_without_a_server_or_a_key_is_exit_2() {
    let files = Files::new();
    let input = files.write("input.json", "{}");
    let output = sluicegate(&["run", "a", "--input", text(&input)], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("--api-key"));
    // Nothing listens on port 1 of this machine.
    let output = sluicegate(
        &[
            "run",
            "a",
            "--input",
            text(&input),
            "--idempotency-key",
            "k",
            "--api-key",
            "sgk_x",
            "--server",
            "http://127.0.0.1:1",
        ],
        b"",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).starts_with("http://127.0.0.1:1 did not answer"));
}
