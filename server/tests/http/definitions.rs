//! Drafts, revisions and lists (api.md "Definitions").

use serde_json::{Value, json};

use crate::client::Running;

/// A gate on an amount, above or below a limit.
pub(crate) fn graph(limit: u64) -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "claim"}},
            {"id": "big", "type": "gate",
             "ports": {"input": "claim", "pass": "claim", "fail": "claim"},
             "logic": {"version": 1,
                       "expr": {"gt": [{"read": "/amount"}, {"literal": limit}]}}},
            {"id": "no", "type": "output", "ports": {"input": "claim"}},
            {"id": "yes", "type": "output", "ports": {"input": "claim"}}],
        "edges": [
            {"id": "e1", "source": {"nodeId": "in", "port": "data"},
             "target": {"nodeId": "big", "port": "input"}},
            {"id": "e2", "source": {"nodeId": "big", "port": "pass"},
             "target": {"nodeId": "yes", "port": "input"}},
            {"id": "e3", "source": {"nodeId": "big", "port": "fail"},
             "target": {"nodeId": "no", "port": "input"}}],
        "schemas": {"claim": {"type": "object", "properties": {"amount": {"type": "number"}},
                              "required": ["amount"], "additionalProperties": false}},
        "layout": {"in": {"x": 0, "y": 0}}})
}

/// Creates a workflow and gives its id.
pub(crate) fn create(server: &Running, key: &str, graph: &Value) -> String {
    let body = json!({"key": key, "name": "Test", "graph": graph});
    let made = server.post("/api/workflows", &body).is(201);
    made["workflowId"].as_str().unwrap().to_owned()
}

#[test]
fn a_draft_is_created_saved_and_published() {
    let server = Running::start();
    let body = json!({"key": "a.b", "name": "A", "graph": graph(10)});
    let answer = server.post("/api/workflows", &body);
    let made = answer.is(201);
    assert_eq!(answer.header("etag"), "\"1\"");
    assert_eq!(made["status"], "draft");
    assert_eq!(made["draftVersion"], 1);
    assert_eq!(made["draft"]["graph"], graph(10));
    assert!(made.get("revision").is_none());
    let id = made["workflowId"].as_str().unwrap();

    let save = json!({"workflowId": id, "expectedRevision": 1, "graph": graph(20), "name": "B"});
    let saved = server.post("/api/workflows/update", &save);
    assert_eq!(saved.header("etag"), "\"2\"");
    let saved = saved.is(200);
    assert_eq!(
        (&saved["draftVersion"], &saved["issues"]),
        (&json!(2), &json!([]))
    );
    assert_ne!(saved["checksum"], made["draft"]["checksum"]);

    let publish = json!({"workflowId": id, "expectedRevision": 2, "note": "first"});
    let published = server.post("/api/workflows/publish", &publish).is(200);
    assert_eq!(published["revision"], 1);
    assert_eq!(published["checksum"], saved["checksum"]);
    assert_eq!(published["references"][0]["kind"], "schema");
    let again = server.post("/api/workflows/publish", &publish).is(200);
    assert_eq!(again, published);

    let detail = server
        .get("/api/workflows/detail?key=a.b&revision=1")
        .is(200);
    assert_eq!(detail["name"], "B");
    assert_eq!(detail["status"], "published");
    assert_eq!(detail["revision"], 1);
    assert_eq!(detail["graph"], graph(20));
    assert_eq!(detail["revisions"][0]["note"], "first");
    assert_eq!(detail["revisions"][0]["draftVersion"], 2);
    let by_id = format!("/api/workflows/detail?workflowId={id}");
    assert!(server.get(&by_id).is(200).get("graph").is_none());
    let absent = server.get("/api/workflows/detail?key=a.b&revision=2");
    absent.refused(404, "WORKFLOW_NOT_FOUND");

    let archive = json!({"workflowId": id, "expectedRevision": 2});
    assert_eq!(server.post("/api/workflows/archive", &archive).status, 204);
    assert_eq!(server.get(&by_id).is(200)["status"], "archived");
    let refused = server.post("/api/workflows/update", &save);
    refused.refused(409, "WORKFLOW_ARCHIVED");
}

#[test]
fn a_save_says_which_draft_it_saw() {
    let server = Running::start();
    let id = create(&server, "a", &graph(10));
    let save = |version: Value| {
        let mut body = json!({"workflowId": id, "name": "B"});
        if !version.is_null() {
            body["expectedRevision"] = version;
        }
        body.to_string()
    };
    let update = |headers: &[(&str, &str)], version: Value| {
        server.post_with("/api/workflows/update", headers, &save(version))
    };
    update(&[], json!(1)).is(200);
    let stale = update(&[], json!(1)).refused(409, "WORKFLOW_REVISION_CONFLICT");
    assert_eq!(stale["draftVersion"], 2);
    let stale = update(&[("if-match", "\"1\"")], Value::Null);
    let stale = stale.refused(412, "WORKFLOW_REVISION_CONFLICT");
    assert_eq!(stale["draftVersion"], 2);
    update(&[("if-match", "W/\"2\"")], Value::Null).refused(412, "WORKFLOW_REVISION_CONFLICT");
    update(&[], Value::Null).refused(428, "PRECONDITION_REQUIRED");
    update(&[("if-match", "\"1\"")], json!(2)).refused(400, "REQUEST_MALFORMED");
    assert_eq!(
        update(&[("if-match", "\"2\"")], json!(2)).is(200)["draftVersion"],
        3
    );
    let stale = json!({"workflowId": id, "expectedRevision": 2});
    for path in ["publish", "archive", "delete"] {
        let answer = server.post(&format!("/api/workflows/{path}"), &stale);
        let problem = answer.refused(409, "WORKFLOW_REVISION_CONFLICT");
        assert_eq!(problem["draftVersion"], 3, "{path}");
    }
    let fresh = json!({"workflowId": id, "expectedRevision": 3});
    assert_eq!(server.post("/api/workflows/delete", &fresh).status, 204);
    server
        .post("/api/workflows/delete", &fresh)
        .refused(404, "WORKFLOW_NOT_FOUND");
}

#[test]
fn g8_a_draft_with_faults_of_meaning_is_saved_and_not_published() {
    let server = Running::start();
    let unfinished = json!({"schemaVersion": 1, "nodes": [{"id": "in", "type": "input"}]});
    let id = create(&server, "a", &unfinished);
    let save = json!({"workflowId": id, "expectedRevision": 1, "graph": unfinished});
    let saved = server.post("/api/workflows/update", &save).is(200);
    assert!(!saved["issues"].as_array().unwrap().is_empty());
    let publish = json!({"workflowId": id, "expectedRevision": 2});
    let problem = server.post("/api/workflows/publish", &publish);
    let problem = problem.refused(422, "WORKFLOW_GRAPH_INVALID");
    assert_eq!(problem["issues"], saved["issues"]);
    let taken = json!({"key": "a", "name": "Again"});
    server
        .post("/api/workflows", &taken)
        .refused(409, "WORKFLOW_REVISION_CONFLICT");
    for (key, name) in [("A", "x"), ("", "x"), ("b", "")] {
        let body = json!({"key": key, "name": name});
        server
            .post("/api/workflows", &body)
            .refused(400, "REQUEST_MALFORMED");
    }
}

#[test]
fn a_missing_agent_has_the_code_of_its_family() {
    let server = Running::start();
    let mut graph = graph(10);
    graph["nodes"][1] = json!({"id": "big", "type": "agent",
        "agent": {"agentId": "nobody", "revision": 1}, "mappings": [],
        "ports": {"input": "claim", "success": "claim", "failure": "std.failure"},
        "failurePolicy": {"maxAttempts": 1, "retryOn": [],
            "backoff": {"kind": "fixed", "initialMs": 0, "maximumMs": 0},
            "onExhausted": "emit-failure"}});
    graph["edges"][1]["source"]["port"] = json!("success");
    graph["edges"][2]["source"]["port"] = json!("failure");
    graph["nodes"][2]["ports"]["input"] = json!("std.failure");
    let id = create(&server, "a", &graph);
    let publish = json!({"workflowId": id, "expectedRevision": 1});
    let problem = server.post("/api/workflows/publish", &publish);
    let problem = problem.refused(422, "WORKFLOW_AGENT_REVISION_MISSING");
    assert_eq!(problem["issues"][0]["code"], "agent.revision-missing");
}

#[test]
fn a_dry_run_answers_also_when_invalid_and_leaves_nothing() {
    let server = Running::start();
    let before = server.get("/api/workflows").is(200);
    let body = json!({"graph": graph(10), "input": {"amount": "much"}});
    let report = server.post("/api/workflows/validate", &body).is(200);
    assert_eq!(report["valid"], false);
    assert_eq!(report["issues"][0]["code"], "input.invalid");
    assert_eq!(report["compiledOrder"][0], "in");
    assert_eq!(server.get("/api/workflows").is(200), before);
}

#[test]
fn b094_a_list_pages_by_key_and_a_cursor_is_of_its_own_list() {
    let server = Running::start();
    for key in ["z.c", "z.a", "z.e", "z.b", "z.d"] {
        create(&server, key, &graph(10));
    }
    let mut keys = Vec::new();
    let mut next = "/api/workflows?q=z.&limit=2".to_owned();
    let mut cursors = Vec::new();
    loop {
        let page = server.get(&next).is(200);
        for row in page["items"].as_array().unwrap() {
            keys.push(row["key"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = page.get("nextCursor") else {
            break;
        };
        let cursor = cursor.as_str().unwrap();
        cursors.push(cursor.to_owned());
        next = format!("/api/workflows?limit=2&cursor={cursor}&q=z.");
    }
    assert_eq!(keys, ["z.a", "z.b", "z.c", "z.d", "z.e"]);
    let cursor = &cursors[0];
    let other = server.get(&format!("/api/workflows?q=z&cursor={cursor}"));
    other.refused(400, "WORKFLOW_CURSOR_MISMATCH");
    let bent = cursor.replace('.', "-");
    let bent = server.get(&format!("/api/workflows?q=z.&cursor={bent}"));
    bent.refused(400, "WORKFLOW_CURSOR_INVALID");
    let runs = server.get(&format!("/api/workflow-runs?cursor={cursor}"));
    runs.refused(400, "WORKFLOW_CURSOR_INVALID");
}

#[test]
fn both_catalogues_list_what_a_graph_may_pin() {
    let server = Running::start();
    let agents = server.get("/api/workflow-catalog/agents").is(200);
    assert!(agents["items"].is_array());
    let actions = server.get("/api/workflow-catalog/actions").is(200);
    assert!(actions["items"].is_array());
}

#[test]
fn u_0000_is_refused_where_a_column_keeps_the_text() {
    let running = Running::start();
    let post = |path: &str, body: &serde_json::Value| running.post(path, body);
    let create = |name: &str| json!({"key": "nul", "name": name});
    let refused = post("/api/workflows", &create("a\0b")).refused(400, "REQUEST_MALFORMED");
    assert_eq!(refused["pointer"], "/name");
    let made = post("/api/workflows", &create("ab")).is(201);
    let id = made["workflowId"].as_str().unwrap();
    let save = json!({"workflowId": id, "expectedRevision": 1, "description": "\0"});
    let refused = post("/api/workflows/update", &save).refused(400, "REQUEST_MALFORMED");
    assert_eq!(refused["pointer"], "/description");
    let publish = json!({"workflowId": id, "expectedRevision": 1, "note": "\0"});
    let refused = post("/api/workflows/publish", &publish).refused(400, "REQUEST_MALFORMED");
    assert_eq!(refused["pointer"], "/note");
    let run = json!({"workflowKey": "expenses.review", "idempotencyKey": "\0", "input": {}});
    let refused = post("/api/workflow-runs", &run).refused(400, "REQUEST_MALFORMED");
    assert_eq!(refused["pointer"], "/idempotencyKey");
    // Nothing has a name or an id with it, and looking for one is no fault of ours.
    for path in [
        "/api/workflows?q=%00",
        "/api/workflows/detail?key=%00",
        "/api/workflow-runs/detail?runId=%00",
        "/api/workflow-runs?workflowId=%00",
        "/api/workflow-audit?action=%00",
    ] {
        let status = running.get(path).status;
        assert!(status < 500, "{path}: {status}");
    }
}
