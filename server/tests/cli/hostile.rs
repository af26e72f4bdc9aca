//! Hostile documents, settings and servers against the real binary (server.md §2): what is
//! printed stays short, steers no terminal and says where it comes from.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::{Files, GOOD, message, sluicegate, stdout, text};

/// A server that answers one request with `status` and `body`, and its address.
fn answering(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut part = [0; 4096];
        // The body of every request here ends with the end of its object.
        while !request.ends_with(b"}") {
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "the request was cut off");
            request.extend(part.iter().take(count));
        }
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
    });
    address
}

fn run_at(address: &str, api_key: &str) -> std::process::Output {
    let arguments = [
        "run",
        "a",
        "--input",
        "-",
        "--idempotency-key",
        "k",
        "--server",
        address,
        "--api-key",
        api_key,
    ];
    sluicegate(&arguments, b"{}")
}

/// Whether a text has what moves a cursor or turns the direction of writing.
fn steers(text: &str) -> bool {
    let hidden = |c: char| {
        matches!(
            u32::from(c),
            0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff
        )
    };
    text.chars()
        .any(|c| c != '\n' && (c.is_control() || hidden(c)))
}

#[test]
fn text_of_a_server_does_not_steer_the_terminal() {
    let run_id = "wr\\u001b]0;x\\u0007\\u202ex\\u2066\\u200b\\ufeff";
    let accepted = format!(
        r#"{{"runId":"{run_id}","workflowId":"w","workflowRevision":1,"status":"queued","created":true}}"#
    );
    let output = run_at(&answering("202 Accepted", accepted), "sgk_x");
    let shown = stdout(&output);
    assert!(!steers(shown), "{shown:?}");
    assert!(
        shown.starts_with(r"run wr\u{1b}]0;x\u{7}\u{202e}x\u{2066}\u{200b}\u{feff} is queued"),
        "{shown} {output:?}"
    );
    let problem = format!(
        r#"{{"type":"t","title":"t","status":404,"detail":"{run_id} {}","code":"WORKFLOW_NOT_FOUND","requestId":"r"}}"#,
        "x".repeat(5_000)
    );
    let output = run_at(&answering("404 Not Found", problem), "sgk_x");
    assert_eq!(output.status.code(), Some(2));
    let shown = message(&output);
    assert!(!steers(shown), "{shown:?}");
    assert!(
        shown.starts_with(r"refused: wr\u{1b}]0;x\u{7}\u{202e}x"),
        "{shown}"
    );
    assert!(shown.chars().count() < 300, "{shown}");
}

#[test]
fn text_of_a_document_does_not_turn_the_direction_of_writing() {
    let id = "a\\u202eb\\u2028c\\u200fd\\u009be\\u007f";
    let graph = format!(r#"{{"schemaVersion":1,"nodes":[{{"id":"{id}","type":"input"}}]}}"#);
    let output = sluicegate(&["check", "-"], graph.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    assert!(!steers(shown), "{shown:?}");
    let escaped = r"in node a\u{202e}b\u{2028}c\u{200f}d\u{9b}e\u{7f}";
    assert!(shown.contains(escaped), "{shown}");
}

#[test]
fn long_names_and_long_lists_are_cut_and_say_so() {
    let long = "x".repeat(60_000);
    let graph = format!(
        r#"{{"schemaVersion":1,"nodes":[{{"id":"{long}","type":"input","ports":{{"data":"{long}"}}}}]}}"#
    );
    let output = sluicegate(&["check", "-"], graph.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    for line in stdout(&output).lines() {
        assert!(line.chars().count() < 600, "{line}");
    }
    let member = format!(r#"{{"{long}": 1}}"#);
    let output = sluicegate(&["check", "-"], member.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).chars().count() < 600, "{output:?}");

    let files = Files::new();
    let graph = files.write("good.json", GOOD);
    let ghosts: Vec<_> = (0..250)
        .map(|i| format!(r#""ghost{i}":{{"simulatedDurationMs":1}}"#))
        .collect();
    let fixtures = files.write(
        "many.json",
        format!(r#"{{"nodes":{{{}}}}}"#, ghosts.join(",")),
    );
    let arguments = [
        "simulate",
        text(&graph),
        "--input",
        "-",
        "--fixtures",
        text(&fixtures),
    ];
    let output = sluicegate(&arguments, br#"{"amount": 1}"#);
    assert_eq!(output.status.code(), Some(1));
    let errors = std::str::from_utf8(&output.stderr).unwrap();
    assert_eq!(errors.lines().count(), 101);
    assert_eq!(errors.lines().last(), Some("sluicegate: and 150 more"));

    let output = sluicegate(&["check", "-"], crate::long_answer().as_bytes());
    let shown = stdout(&output);
    assert_eq!(shown.lines().count(), 102, "{shown}");
    assert!(
        shown.lines().nth(100).unwrap().starts_with("and "),
        "{shown}"
    );
}

#[test]
fn a_place_and_a_name_are_told_once() {
    let files = Files::new();
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let graph = samples.join("expenses.review.json");
    let input = samples.join("expenses.review/approved.input.json");
    let simulate = |fixtures: &str| {
        let fixtures = files.write("f.json", fixtures);
        let arguments = [
            "simulate",
            text(&graph),
            "--input",
            text(&input),
            "--fixtures",
            text(&fixtures),
        ];
        let output = sluicegate(&arguments, b"");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let missing = simulate("{}");
    assert!(
        missing.contains("f.json: node review: it needs a fixture"),
        "{missing}"
    );
    let wrong = simulate(r#"{"nodes":{"review":{"attempts":[{"outcome":"success","output":1}]}}}"#);
    assert!(wrong.contains(": an agent-decision node takes "), "{wrong}");

    let output = sluicegate(&["check", "-"], b"{\"a\": nope}");
    assert!(
        message(&output).starts_with("standard input:1:8: the text is not JSON: "),
        "{output:?}"
    );
    let output = sluicegate(&["check", "-"], br#"{"a": 1, "a": 2}"#);
    assert!(
        message(&output)
            .ends_with("at /a: the member stands twice; keep one (json.duplicate-member)"),
        "{output:?}"
    );
    // A graph with faults has no order, so there is no line for it.
    let output = sluicegate(&["dry-run", "-"], br#"{"schemaVersion":1}"#);
    assert!(
        stdout(&output).starts_with("standard input: warning catalogue.absent "),
        "{output:?}"
    );
}

#[test]
fn run_takes_its_server_and_key_from_the_environment_and_the_file() {
    let files = Files::new();
    let settings = files.write(
        "settings.toml",
        "server = \"http://127.0.0.1:1\"\napi-key = \"sgk_file\"\n",
    );
    // Nothing listens on port 1 of this machine.
    let run = [
        "run",
        "a",
        "--input",
        "-",
        "--idempotency-key",
        "k",
        "--config",
        text(&settings),
    ];
    let output = sluicegate(&run, b"{}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        message(&output),
        "http://127.0.0.1:1 did not answer: nothing listens there"
    );
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .arg("config")
        .env("SLUICEGATE_CONFIG", text(&settings))
        .output()
        .unwrap();
    assert!(
        stdout(&output)
            .ends_with("server = \"http://127.0.0.1:1\"\n# api-key is set and not shown\n"),
        "{output:?}"
    );
}

#[test]
fn a_wrong_server_or_key_is_named_before_anything_is_sent_and_tells_no_secret() {
    for (server, key, place) in [
        ("http://127.0.0.1:1", "a\nb", "--api-key: this value"),
        ("http://127.0.0.1:1", "", "--api-key: this value"),
        ("http://me:pass@127.0.0.1:1", "k", "--server: this value"),
        ("ftp://me:pass@h", "k", "--server: this value"),
        ("http://h:99999", "k", "--server: \"http://h:99999\" is not"),
        ("http://", "k", "--server: \"http://\" is not accepted"),
        ("https://h", "k", "--server: \"https://h\" is not accepted"),
        ("http://h?a=b", "k", "--server: "),
    ] {
        let output = run_at(server, key);
        assert_eq!(output.status.code(), Some(2), "{server}");
        let shown = message(&output);
        assert!(shown.starts_with(place), "{shown}");
        assert!(
            !shown.contains("pass@") && !shown.contains("me:"),
            "{shown}"
        );
    }
}

#[test]
fn a_settings_file_that_never_ends_or_is_too_long_is_refused() {
    let files = Files::new();
    let long = files.write("long.toml", vec![b'\n'; 1_048_577]);
    let folder = text(files.0.path());
    let below = format!("{}/below", text(&long));
    for (file, reason) in [
        ("/dev/zero", "this is not a regular file"),
        (
            text(&long),
            "this is longer than 1048576 bytes; no settings are",
        ),
        (folder, "this is a folder; a file is needed"),
        (
            &below,
            "a part of this path is a file where a folder is needed",
        ),
    ] {
        let output = sluicegate(&["config", "--config", file], b"");
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(message(&output).ends_with(reason), "{output:?}");
    }
}

#[test]
fn a_setting_that_does_not_stand_says_what_is_accepted_and_names_its_flag() {
    let files = Files::new();
    let file = files.write("file", "");
    let below = format!("{}/below", text(&file));
    for (arguments, place) in [
        (
            ["config", "--workers", "-1"],
            "--workers: \"-1\" is not accepted; it takes a number from 1 to 1000",
        ),
        (
            ["config", "--lease-ms", "5000"],
            "renew-ms 10000 (its default) is not less than lease-ms 5000",
        ),
        (["serve", "--web", &below], "--web: "),
        (["serve", "--data", &below], "--data: "),
        (["serve", "--data", text(&file)], "--data: "),
    ] {
        let output = sluicegate(&arguments, b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let shown = message(&output);
        assert!(shown.starts_with(place), "{shown}");
        assert!(!shown.contains("os error"), "{shown}");
    }
}

#[test]
fn config_prints_what_reads_back() {
    let files = Files::new();
    let data = "a\u{7f}b\u{202e}c\u{85}d\te\"f\\";
    let first = sluicegate(&["config", "--data", data], b"");
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert!(!steers(stdout(&first)), "{first:?}");
    let printed = files.write("printed.toml", &first.stdout);
    let again = sluicegate(&["config", "--config", text(&printed)], b"");
    assert_eq!(first.stdout, again.stdout, "{again:?}");
    let read: toml::Table = stdout(&first).parse().unwrap();
    assert_eq!(read["data"].as_str(), Some(data));
}
