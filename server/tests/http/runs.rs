//! Live runs, simulations, streams and cancellation (api.md "Runs"; server.md §5).

use serde_json::{Value, json};

use crate::client::Running;
use crate::definitions::{create, graph};
use crate::stream::Stream;

/// A published workflow that needs no agent and no action.
fn published(server: &Running, key: &str) -> String {
    let id = create(server, key, &graph(100));
    let body = json!({"workflowId": id, "expectedRevision": 1});
    server.post("/api/workflows/publish", &body).is(200);
    id
}

fn enqueue(server: &Running, workflow: &str, input: Value, key: &str) -> Value {
    let body = json!({"workflowKey": workflow, "input": input, "idempotencyKey": key});
    server.post("/api/workflow-runs", &body).is(202)
}

/// Enqueues and waits for the end.
fn finished(server: &Running, workflow: &str, input: Value, key: &str) -> String {
    let run = enqueue(server, workflow, input, key);
    let id = run["runId"].as_str().unwrap().to_owned();
    let path = format!("/api/workflow-runs/result?runId={id}&waitMs=20000");
    let result = server.get(&path).is(200);
    assert_eq!(result["status"], "succeeded", "{result}");
    id
}

#[test]
fn a_run_is_accepted_followed_to_its_end_and_shown() {
    let server = Running::start();
    let workflow = published(&server, "a");
    let body = json!({"workflowKey": "a", "input": {"amount": 120}, "idempotencyKey": "k"});
    let answer = server.post("/api/workflow-runs", &body);
    let accepted = answer.is(202);
    assert_eq!(accepted["created"], true);
    assert_eq!(accepted["status"], "queued");
    assert_eq!(accepted["workflowId"], workflow);
    assert_eq!(accepted["workflowRevision"], 1);
    let id = accepted["runId"].as_str().unwrap();
    let place = answer.header("location").to_owned();
    assert_eq!(place, format!("/api/workflow-runs/detail?runId={id}"));

    let stream = Stream::open(&server, id, &[]);
    assert_eq!(stream.header("content-type"), "text/event-stream");
    assert_eq!(stream.header("cache-control"), "no-store");
    assert_eq!(stream.header("x-accel-buffering"), "no");
    let frames = stream.whole();
    let events: Vec<_> = frames.iter().filter(|frame| frame.id.is_some()).collect();
    for (index, event) in events.iter().enumerate() {
        let data = event.json();
        assert_eq!(data["sequence"], index as u64 + 1);
        assert_eq!(data["type"], event.event.as_str());
        assert_eq!(data["runId"], id);
        assert_eq!(data["tenantId"], "default");
        assert_eq!(data["eventId"], format!("{id}:{}", index + 1));
        assert!(data["recordedAt"].is_u64());
    }
    assert_eq!(events[0].event, "run.queued");
    let end = events.last().unwrap();
    assert_eq!(end.event, "run.succeeded");
    let last = frames.last().unwrap();
    assert_eq!(last.event, "workflow.stream-complete");
    assert_eq!(
        last.json(),
        json!({"terminalSequence": events.len(), "status": "succeeded"})
    );

    let again = server.post("/api/workflow-runs", &body).is(202);
    assert_eq!(again["runId"], id);
    assert_eq!(again["created"], false);
    assert_eq!(again["status"], "succeeded");

    let detail = server.get(&place).is(200);
    assert_eq!(detail["status"], "succeeded");
    assert_eq!(detail["invocation"]["workflowKey"], "a");
    assert_eq!(detail["compiledOrder"].as_array().unwrap().len(), 4);
    assert_eq!(detail["graph"]["nodes"].as_array().unwrap().len(), 4);
    let states: Vec<_> = detail["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["state"])
        .collect();
    assert_eq!(states, ["emitted", "emitted", "closed"]);
    assert_eq!(
        detail["payloads"]["input"]["preview"],
        json!({"amount": 120})
    );
    assert!(!detail["auditSequences"].as_array().unwrap().is_empty());
    for node in detail["nodes"].as_array().unwrap() {
        let skipped = node["nodeId"] == "no";
        assert_eq!(
            node["status"],
            if skipped { "skipped" } else { "succeeded" }
        );
    }

    let path = format!("/api/workflow-runs/result?runId={id}");
    let result = server.get(&path).is(200);
    assert_eq!(result["outputs"], json!({"yes": {"amount": 120}}));

    let cancel = json!({"runId": id, "reason": "too late"});
    let cancelled = server.post("/api/workflow-runs/cancel", &cancel).is(200);
    assert_eq!(cancelled["status"], "succeeded");
    assert_eq!(cancelled["cancellation"]["state"], "none");
}

#[test]
fn b123_an_idempotency_key_means_one_request() {
    let server = Running::start();
    published(&server, "a");
    published(&server, "b");
    let first = enqueue(&server, "a", json!({"amount": 1}), "k");
    let same = server.post_with(
        "/api/workflow-runs",
        &[("idempotency-key", "\"k\"")],
        r#"{"workflowKey": "a", "input": {"amount": 1.0}}"#,
    );
    assert_eq!(same.is(202)["runId"], first["runId"]);
    for (workflow, amount) in [("a", 2), ("b", 1)] {
        let body =
            json!({"workflowKey": workflow, "input": {"amount": amount}, "idempotencyKey": "k"});
        let answer = server.post("/api/workflow-runs", &body);
        answer.refused(409, "WORKFLOW_IDEMPOTENCY_CONFLICT");
    }
    let body = r#"{"workflowKey": "a", "input": {"amount": 1}, "idempotencyKey": "k"}"#;
    let both = server.post_with("/api/workflow-runs", &[("idempotency-key", "other")], body);
    both.refused(400, "REQUEST_MALFORMED");
    for key in [json!(""), json!("k".repeat(201)), json!(7)] {
        let body = json!({"workflowKey": "a", "input": {"amount": 1}, "idempotencyKey": key});
        let answer = server.post("/api/workflow-runs", &body);
        let problem = answer.refused(400, "REQUEST_MALFORMED");
        assert_eq!(problem["pointer"], "/idempotencyKey");
    }
    let none = json!({"workflowKey": "a", "input": {"amount": 1}});
    server
        .post("/api/workflow-runs", &none)
        .refused(400, "REQUEST_MALFORMED");
}

#[test]
fn b122_twenty_requests_with_one_key_make_one_run() {
    let server = Running::start();
    published(&server, "a");
    let send = || enqueue(&server, "a", json!({"amount": 1}), "k");
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..20).map(|_| scope.spawn(send)).collect();
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect()
    });
    let created = answers.iter().filter(|answer| answer["created"] == true);
    assert_eq!(created.count(), 1);
    assert!(
        answers
            .iter()
            .all(|answer| answer["runId"] == answers[0]["runId"])
    );
    let runs = server.get("/api/workflow-runs").is(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_start_is_refused_and_makes_no_run() {
    let server = Running::start();
    create(&server, "draft", &graph(1));
    published(&server, "a");
    let post = |workflow: &str, input: Value| {
        let body = json!({"workflowKey": workflow, "input": input, "idempotencyKey": "k"});
        server.post("/api/workflow-runs", &body)
    };
    post("nothing", json!({})).refused(404, "WORKFLOW_NOT_FOUND");
    post("draft", json!({})).refused(409, "WORKFLOW_NOT_PUBLISHED");
    let misfit = post("a", json!({"amount": "much"}));
    let misfit = misfit.refused(422, "WORKFLOW_INPUT_INVALID");
    assert_eq!(misfit["pointer"], "/input/amount");
    let long = post("a", json!({"amount": 1, "note": "x".repeat(70_000)}));
    long.refused(413, "WORKFLOW_LIMIT_EXCEEDED");
    let runs = server.get("/api/workflow-runs").is(200);
    assert_eq!(runs["items"], json!([]));
    server
        .post("/api/workflow-runs/cancel", &json!({"runId": "unknown"}))
        .refused(404, "WORKFLOW_NOT_FOUND");
}

#[test]
fn b084_a_position_of_another_run_or_beyond_the_end_is_a_problem_and_no_stream() {
    let server = Running::start();
    published(&server, "a");
    let first = finished(&server, "a", json!({"amount": 1}), "k1");
    let second = finished(&server, "a", json!({"amount": 1}), "k2");
    let frames = Stream::open(&server, &first, &[]).whole();
    let events: Vec<_> = frames.iter().filter(|frame| frame.id.is_some()).collect();
    let id = |sequence: usize| events[sequence - 1].id.clone().unwrap();
    let tail = events.len();
    let bearer = format!("Bearer {}", server.key);
    let ask = |run: &str, query: &str, cursor: Option<&str>| {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(cursor.map(|cursor| ("last-event-id", cursor)));
        let path = format!("/api/workflow-runs/events?runId={run}{query}");
        server.send("GET", &path, &headers, None)
    };
    let invalid = "WORKFLOW_EVENT_CURSOR_INVALID";
    ask(&second, "", Some(&id(3))).refused(400, invalid);
    let mut bent = id(3);
    let flipped = if bent.pop() == Some('A') { 'B' } else { 'A' };
    bent.push(flipped);
    ask(&first, "", Some(&bent)).refused(400, invalid);
    ask(&first, "", Some("3")).refused(400, invalid);
    let conflict = ask(&first, "&afterSequence=4", Some(&id(3)));
    conflict.refused(409, "WORKFLOW_EVENT_CURSOR_CONFLICT");
    let ahead = ask(&first, &format!("&afterSequence={}", tail + 1), None);
    ahead.refused(409, "WORKFLOW_EVENT_CURSOR_AHEAD");
    for bad in ["-1", "1.5", "abc", ""] {
        ask(&first, &format!("&afterSequence={bad}"), None).refused(400, "REQUEST_MALFORMED");
    }
    assert_eq!(ask(&first, "", Some(&id(tail))).status, 204);
    assert_eq!(
        ask(&first, &format!("&afterSequence={tail}"), None).status,
        204
    );

    let rest = Stream::open(&server, &first, &[("last-event-id", &id(3))]).whole();
    assert_eq!(rest[0].json()["sequence"], 4);
    let same = Stream::after(&server, &first, 3).whole();
    assert_eq!(rest, same);
}

#[test]
fn a_simulation_is_stored_and_gives_r2() {
    let server = Running::start();
    let workflow = published(&server, "a");
    let body = json!({"graph": graph(5), "workflowId": workflow, "input": {"amount": 7},
                      "fixtures": {"nodes": {"big": {"simulatedDurationMs": 40}}}});
    let result = server.post("/api/workflow-runs/simulate", &body).is(201);
    assert_eq!(result["status"], "succeeded");
    assert_eq!(result["outputs"], json!({"yes": {"amount": 7}}));
    assert_eq!(result["virtualDurationMs"], 40);
    let again = server.post("/api/workflow-runs/simulate", &body).is(201);
    assert_ne!(again["runId"], result["runId"]);
    let body = json!({"workflowKey": "a", "input": {"amount": 7}, "fixtures": {}});
    let by_key = server.post("/api/workflow-runs/simulate", &body).is(201);
    assert_eq!(by_key["outputs"], json!({"no": {"amount": 7}}));
    let runs = server.get("/api/workflow-runs?mode=simulate").is(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 3);
    assert_eq!(
        server.get("/api/workflow-runs?mode=live").is(200)["items"],
        json!([])
    );
    let id = result["runId"].as_str().unwrap();
    let frames = Stream::open(&server, id, &[]).whole();
    assert_eq!(frames.last().unwrap().event, "workflow.stream-complete");
}

#[test]
fn x5_unfit_fixtures_name_their_node() {
    let server = Running::start();
    let simulate = |fixtures: Value| {
        let body = json!({"graph": graph(5), "input": {"amount": 7}, "fixtures": fixtures});
        server.post("/api/workflow-runs/simulate", &body)
    };
    let unfit = simulate(json!({"nodes": {"ghost": {"simulatedDurationMs": 1}}}));
    let unfit = unfit.refused(422, "WORKFLOW_FIXTURES_INVALID");
    assert_eq!(unfit["errors"][0]["nodeId"], "ghost");
    let wrong = simulate(json!({"nodes": {"big": {"wat": 1}}}));
    let wrong = wrong.refused(400, "REQUEST_MALFORMED");
    assert_eq!(wrong["pointer"], "/fixtures/nodes/big/wat");
    let body = json!({"graph": {"schemaVersion": 1}, "input": 1, "fixtures": {}});
    let answer = server.post("/api/workflow-runs/simulate", &body);
    let invalid = answer.refused(422, "WORKFLOW_GRAPH_INVALID");
    assert!(!invalid["issues"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/api/workflow-runs").is(200)["items"], json!([]));
}

#[test]
fn b093_the_history_pages_newest_first_without_gaps() {
    let server = Running::start();
    published(&server, "a");
    let mut ids: Vec<String> = (0..7)
        .map(|i| finished(&server, "a", json!({"amount": i}), &format!("k{i}")))
        .collect();
    ids.reverse();
    let mut seen = Vec::new();
    let mut next = "/api/workflow-runs?limit=2&status=succeeded&status=failed".to_owned();
    let mut begun = false;
    loop {
        let page = server.get(&next).is(200);
        for row in page["items"].as_array().unwrap() {
            seen.push(row["runId"].as_str().unwrap().to_owned());
        }
        if !begun {
            begun = true;
            finished(&server, "a", json!({"amount": 9}), "later");
        }
        let Some(cursor) = page.get("nextCursor") else {
            break;
        };
        // The order of the parameters is no part of the filter.
        let cursor = cursor.as_str().unwrap();
        next = format!("/api/workflow-runs?status=failed&status=succeeded&cursor={cursor}&limit=2");
        let other = format!("/api/workflow-runs?status=failed&cursor={cursor}");
        server.get(&other).refused(400, "WORKFLOW_CURSOR_MISMATCH");
    }
    assert_eq!(seen, ids);
}

/// A chain of validators, long enough for more than a page of events.
fn chain(length: usize) -> Value {
    let mut nodes = vec![
        json!({"id": "in", "type": "input", "ports": {"data": "std.any"}}),
        json!({"id": "out", "type": "output", "ports": {"input": "std.any"}}),
        json!({"id": "errors", "type": "output", "ports": {"input": "std.merged"}}),
        json!({"id": "all", "type": "merge", "mode": "all",
               "ports": {"items": "std.validation-errors", "data": "std.merged"}}),
    ];
    let edge = |id: String, from: &str, port: &str, to: &str, input: &str| {
        json!({"id": id, "source": {"nodeId": from, "port": port},
               "target": {"nodeId": to, "port": input}})
    };
    let mut edges = vec![edge("last".to_owned(), "all", "data", "errors", "input")];
    let mut before = ("in".to_owned(), "data");
    for i in 0..length {
        let id = format!("v{i}");
        nodes.push(json!({"id": id, "type": "validator", "schema": "std.any",
            "ports": {"input": "std.any", "pass": "std.any", "fail": "std.validation-errors"}}));
        edges.push(edge(format!("p{i}"), &before.0, before.1, &id, "input"));
        edges.push(edge(format!("f{i}"), &id, "fail", "all", "items"));
        before = (id, "pass");
    }
    edges.push(edge("end".to_owned(), &before.0, before.1, "out", "input"));
    json!({"schemaVersion": 1, "nodes": nodes, "edges": edges})
}

#[test]
fn b080_a_connection_replays_100_events_and_says_where_to_go_on() {
    let server = Running::start();
    let body = json!({"graph": chain(50), "input": 1, "fixtures": {}});
    let result = server.post("/api/workflow-runs/simulate", &body).is(201);
    let total = result["events"].as_array().unwrap().len();
    assert!(total > 200, "{total}");
    let id = result["runId"].as_str().unwrap();
    let mut seen = Vec::new();
    let mut last_id: Option<String> = None;
    loop {
        let resume: Vec<_> = last_id
            .iter()
            .map(|id| ("last-event-id", id.as_str()))
            .collect();
        let frames = Stream::open(&server, id, &resume).whole();
        let (control, events) = frames.split_last().unwrap();
        assert!(events.len() <= 100);
        assert!(events.iter().all(|event| event.id.is_some()));
        assert_eq!(control.id, None);
        seen.extend(
            events
                .iter()
                .map(|event| event.json()["sequence"].as_u64().unwrap()),
        );
        if let Some(event) = events.last() {
            last_id.clone_from(&event.id);
        }
        if control.event == "workflow.stream-complete" {
            assert_eq!(control.json()["terminalSequence"], total);
            break;
        }
        assert_eq!(control.event, "workflow.replay-boundary");
        assert_eq!(control.retry, Some(0));
        let next = *seen.last().unwrap();
        assert_eq!(
            control.json(),
            json!({"hasMore": true, "nextAfterSequence": next})
        );
        assert_eq!(events.len(), 100);
    }
    assert_eq!(seen, (1..=total as u64).collect::<Vec<_>>());
}

/// A run that waits ten minutes for its retry.
fn waiting(server: &Running) -> String {
    let mut graph = graph(100);
    // An agent that is not there fails permanently; one that cannot be reached is retried.
    graph["nodes"][1] = json!({"id": "big", "type": "agent",
        "agent": {"agentId": "claims.reviewer", "revision": 1},
        "ports": {"input": "claim", "success": "std.text", "failure": "std.failure"},
        "failurePolicy": {"maxAttempts": 2, "retryOn": ["agent.unavailable"],
            "backoff": {"kind": "fixed", "initialMs": 600_000, "maximumMs": 600_000},
            "onExhausted": "emit-failure"}});
    graph["nodes"][2]["ports"]["input"] = json!("std.failure");
    graph["nodes"][3]["ports"]["input"] = json!("std.text");
    graph["edges"][1]["source"]["port"] = json!("success");
    graph["edges"][2]["source"]["port"] = json!("failure");
    graph["schemas"]["claim"] = json!({"type": "object", "properties": {"claimId": {"type": "string"}},
                                       "required": ["claimId"], "additionalProperties": false});
    let workflow = create(server, "waits", &graph);
    let body = json!({"workflowId": workflow, "expectedRevision": 1});
    server.post("/api/workflows/publish", &body).is(200);
    let run = enqueue(server, "waits", json!({"claimId": "c-5"}), "k");
    run["runId"].as_str().unwrap().to_owned()
}

#[test]
fn an_open_stream_follows_a_run_that_waits_and_is_cancelled() {
    let server = Running::start();
    let id = waiting(&server);
    let id = id.as_str();
    let mut stream = Stream::open(&server, id, &[]);
    let begun = stream.until("node.retry.scheduled");
    assert_eq!(begun[0].event, "run.queued");
    let row = server
        .get("/api/workflow-runs?status=waiting-retry")
        .is(200);
    assert_eq!(row["items"][0]["runId"], id);
    let cancel = json!({"runId": id, "reason": "enough"});
    let cancelled = server.post("/api/workflow-runs/cancel", &cancel).is(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["cancellation"]["state"], "cancelled");
    assert_eq!(cancelled["cancellation"]["requestedBy"]["kind"], "service");
    // Live events reach the stream that was open all the time.
    let rest = stream.whole();
    let names: Vec<_> = rest.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(names[0], "run.cancel.requested");
    assert!(
        names.ends_with(&["run.cancelled", "workflow.stream-complete"]),
        "{names:?}"
    );
    let again = server.post("/api/workflow-runs/cancel", &cancel).is(200);
    assert_eq!(again, cancelled);
    let detail = server
        .get(&format!("/api/workflow-runs/detail?runId={id}"))
        .is(200);
    assert_eq!(detail["cancellation"], cancelled["cancellation"]);
    assert_eq!(detail["correlations"][0]["childKind"], "agent");
    let result = server
        .get(&format!("/api/workflow-runs/result?runId={id}"))
        .is(200);
    assert_eq!(result["status"], "cancelled");
    assert!(result.get("outputs").is_none());
}

#[test]
fn b087_an_open_stream_does_not_hold_the_process() {
    let server = Running::start();
    let id = waiting(&server);
    let mut stream = Stream::open(&server, &id, &[]);
    stream.until("node.retry.scheduled");
    let begun = std::time::Instant::now();
    drop(server);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    // It ends between two frames, without a word: the browser comes back by itself.
    assert_eq!(stream.whole(), []);
}

#[test]
fn b087_a_stream_resumes_after_a_restart_without_a_gap() {
    let server = Running::start();
    let id = waiting(&server);
    let mut stream = Stream::open(&server, &id, &[]);
    let before = stream.until("node.retry.scheduled");
    let last = before.last().unwrap();
    let server = server.restart();
    let resume = [("last-event-id", last.id.as_deref().unwrap())];
    let stream = Stream::open(&server, &id, &resume);
    let cancel = json!({"runId": id});
    server.post("/api/workflow-runs/cancel", &cancel).is(200);
    let after = stream.whole();
    let next = last.json()["sequence"].as_u64().unwrap() + 1;
    assert_eq!(after[0].json()["sequence"], next);
    assert_eq!(after.last().unwrap().event, "workflow.stream-complete");
}

#[test]
fn the_sample_runs_from_its_key_to_its_end() {
    let server = Running::start();
    let input = include_str!("../../../samples/expenses.review/approved.input.json");
    let input: Value = serde_json::from_str(input).unwrap();
    let id = finished(&server, "expenses.review", input, "k");
    let detail = server
        .get(&format!("/api/workflow-runs/detail?runId={id}"))
        .is(200);
    assert_eq!(detail["workflowKey"], "expenses.review");
    let kinds: Vec<_> = detail["correlations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["childKind"])
        .collect();
    assert_eq!(kinds, ["agent", "action"]);
    assert_eq!(detail["usage"]["state"], "final");
    assert!(detail["usage"]["totalTokens"].as_u64().unwrap() > 0);
}
