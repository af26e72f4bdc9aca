//! The audit chain over HTTP (api.md "Audit"; run-machine.md §11).

use serde_json::{Value, json};

use crate::client::Running;
use crate::definitions::{create, graph};

fn sequences(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|entry| entry["sequence"].as_u64().unwrap())
        .collect()
}

/// A server whose chain has entries about three workflows besides the samples'.
fn server() -> (Running, Vec<String>) {
    let server = Running::start();
    let ids: Vec<_> = ["a", "b", "c"]
        .map(|key| create(&server, key, &graph(100)))
        .into();
    for id in &ids {
        let body = json!({"workflowId": id, "expectedRevision": 1});
        server.post("/api/workflows/publish", &body).is(200);
    }
    (server, ids)
}

#[test]
fn b093_audit_pages_list_every_entry_once_newest_first() {
    let (server, ids) = server();
    let whole = server.get("/api/workflow-audit?limit=100").is(200);
    let all = sequences(&whole);
    assert!(whole.get("nextCursor").is_none());
    let expected: Vec<u64> = (1..=all.len() as u64).rev().collect();
    assert_eq!(all, expected);
    let mut paged = Vec::new();
    let mut path = "/api/workflow-audit?limit=2".to_owned();
    loop {
        let page = server.get(&path).is(200);
        paged.extend(sequences(&page));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        assert!(cursor.starts_with("wfac1."), "{cursor}");
        path = format!("/api/workflow-audit?limit=2&cursor={cursor}");
        // What is added while somebody reads does not move the rest.
        create(&server, &format!("w{}", paged.len()), &graph(100));
    }
    assert_eq!(paged, all);

    let of = |query: &str| server.get(&format!("/api/workflow-audit?{query}")).is(200);
    let about = of(&format!("subject={}", ids[1]));
    let items = about["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["action"], "workflow.published");
    assert_eq!(items[1]["action"], "workflow.created");
    for entry in items {
        assert_eq!(entry["subject"], json!({"kind": "workflow", "id": ids[1]}));
        assert_eq!(entry["tenantId"], "default");
        for member in ["actor", "origin", "metadata", "occurredAt"] {
            assert!(entry.get(member).is_some(), "{member}");
        }
    }
    let created = of(&format!("subject={}&action=workflow.created", ids[1]));
    assert_eq!(sequences(&created).len(), 1);
    assert!(sequences(&of("action=run.queued")).is_empty());
}

#[test]
fn b094_an_audit_cursor_is_good_for_its_own_list_alone() {
    let (server, _) = server();
    let first = server.get("/api/workflow-audit?limit=1&action=workflow.created");
    let first = first.is(200);
    let cursor = first["nextCursor"].as_str().unwrap();
    let next = |query: &str, cursor: &str| {
        server.get(&format!("/api/workflow-audit?{query}&cursor={cursor}"))
    };
    assert_eq!(
        sequences(&next("action=workflow.created", cursor).is(200)).len(),
        5
    );
    for query in ["action=workflow.published", "subject=x", "limit=2"] {
        next(query, cursor).refused(400, "WORKFLOW_CURSOR_MISMATCH");
    }
    let query = "action=workflow.created";
    let bent = cursor.replacen("wfac1", "wfac0", 1);
    next(query, &bent).refused(400, "WORKFLOW_CURSOR_INVALID");
    let bent = cursor.replacen("wfac1.e", "wfac1.f", 1);
    assert_ne!(bent, cursor);
    next(query, &bent).refused(400, "WORKFLOW_CURSOR_INVALID");
    let runs = server.get(&format!("/api/workflow-runs?cursor={cursor}"));
    runs.refused(400, "WORKFLOW_CURSOR_INVALID");
    let other = server.key_with("other", &["workflows.runs.read"]);
    let bearer = format!("Bearer {other}");
    let path = format!("/api/workflow-audit?{query}&cursor={cursor}");
    let answer = server.send("GET", &path, &[("authorization", &bearer)], None);
    answer.refused(400, "WORKFLOW_CURSOR_INVALID");
}

#[test]
fn h3_a_check_answers_for_its_own_tenant() {
    let (server, _) = server();
    let count = sequences(&server.get("/api/workflow-audit?limit=100").is(200)).len();
    let answer = server.get("/api/workflow-audit/verify").is(200);
    assert_eq!(answer["valid"], true);
    assert_eq!(answer["checkedThroughSequence"], count);
    assert_eq!(answer["head"]["sequence"], count);
    assert!(answer.get("reason").is_none());
    let other = server.key_with("other", &["workflows.runs.read"]);
    let bearer = format!("Bearer {other}");
    let verify = "/api/workflow-audit/verify";
    let answer = server.send("GET", verify, &[("authorization", &bearer)], None);
    let answer = answer.is(200);
    assert_eq!(answer["valid"], true);
    assert_eq!(answer["checkedThroughSequence"], 0);
}
