//! Everything that is refused is a problem with a stable code (api.md; RFC 9457).

use serde_json::json;

use crate::client::Running;

#[test]
fn unknown_addresses_and_methods_are_problems() {
    let server = Running::start();
    for path in [
        "/api",
        "/api/",
        "/api/workflow",
        "/api/workflows/",
        "/api/workflows/x/y",
    ] {
        server.get(path).refused(404, "ROUTE_NOT_FOUND");
    }
    server
        .post("/nothing", &json!({}))
        .refused(404, "ROUTE_NOT_FOUND");
    let answer = server.send("DELETE", "/api/workflows", &[], None);
    answer.refused(405, "METHOD_NOT_ALLOWED");
    let allow: Vec<_> = answer.header("allow").split(',').collect();
    assert!(
        allow.contains(&"GET") && allow.contains(&"POST"),
        "{allow:?}"
    );
}

#[test]
fn every_answer_carries_the_headers_of_server_md_4() {
    let server = Running::start();
    for path in [
        "/healthz",
        "/readyz",
        "/api/workflows",
        "/api/nothing",
        "/nothing.js",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert!(!answer.header("x-request-id").is_empty());
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        assert!(!policy.contains("'unsafe-eval'"), "{policy}");
        let scripts = policy.split("script-src").nth(1).unwrap();
        assert!(!scripts.split(';').next().unwrap().contains("unsafe-inline"));
        assert_eq!(answer.header("access-control-allow-origin"), "");
        if path.starts_with("/api") {
            assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        }
    }
}

#[test]
fn j7_bodies_that_are_no_json_are_refused_at_their_place() {
    let server = Running::start();
    let graph = |graph: &str| format!(r#"{{"graph": {graph}}}"#);
    let cases = [
        ("", 400, "REQUEST_MALFORMED", "", "json.syntax"),
        ("{\"graph\": ", 400, "REQUEST_MALFORMED", "", "json.syntax"),
        ("[]", 400, "REQUEST_MALFORMED", "", "json.wrong-type"),
        ("{}", 400, "REQUEST_MALFORMED", "", "json.missing-member"),
        (
            r#"{"graph": {}, "graph": {}}"#,
            422,
            "WORKFLOW_GRAPH_INVALID",
            "/graph",
            "json.duplicate-member",
        ),
        (
            r#"{"graph": {}, "actor": {}}"#,
            400,
            "REQUEST_MALFORMED",
            "/actor",
            "json.unknown-member",
        ),
        (
            r#"{"graph": {}, "tenantId": "t"}"#,
            400,
            "REQUEST_MALFORMED",
            "/tenantId",
            "json.unknown-member",
        ),
        (
            &graph(r#"{"vertices": []}"#),
            422,
            "WORKFLOW_GRAPH_INVALID",
            "/graph/vertices",
            "json.unknown-member",
        ),
        (
            &graph(r#"{"layout": {"a": {"x": 9007199254740992, "y": 0}}}"#),
            422,
            "WORKFLOW_GRAPH_INVALID",
            "/graph/layout/a/x",
            "json.number-range",
        ),
        (
            r#"{"graph": {}, "input": {"n": 1e300}}"#,
            422,
            "WORKFLOW_INPUT_INVALID",
            "/input/n",
            "json.number-range",
        ),
    ];
    for (body, status, code, pointer, inner) in cases {
        let answer = server.post_with("/api/workflows/validate", &[], body);
        let problem = answer.refused(status, code);
        assert_eq!(
            problem["pointer"].as_str().unwrap_or(""),
            pointer,
            "{problem}"
        );
        assert_eq!(problem["errors"][0]["code"], inner, "{problem}");
    }
}

#[test]
fn bodies_of_another_kind_or_size_are_refused() {
    let server = Running::start();
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let bearer = format!("Bearer {}", server.key);
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        let answer = server.send("POST", "/api/workflows", &headers, Some("{}"));
        answer.refused(415, "MEDIA_TYPE_UNSUPPORTED");
    }
    let long = format!(r#"{{"graph": "{}"}}"#, "x".repeat(256 * 1024));
    let answer = server.post_with("/api/workflows/validate", &[], &long);
    answer.refused(413, "PAYLOAD_TOO_LARGE");
    let layout: serde_json::Map<_, _> = (0..4_000)
        .map(|i| (format!("node-{i}"), json!({"x": 1, "y": 1})))
        .collect();
    let graph = json!({"schemaVersion": 1, "layout": layout});
    let body = json!({"key": "too.large", "name": "Too large", "graph": graph});
    let problem = server
        .post("/api/workflows", &body)
        .refused(413, "WORKFLOW_LIMIT_EXCEEDED");
    assert_eq!(problem["pointer"], "/graph");
}

#[test]
fn unknown_and_repeated_parameters_are_refused() {
    let server = Running::start();
    for path in [
        "/api/workflows?colour=red",
        "/api/workflows?limit=0",
        "/api/workflows?limit=101",
        "/api/workflows?limit=1.5",
        "/api/workflows?limit=1&limit=2",
        "/api/workflows?status=gone",
        "/api/workflows/detail",
        "/api/workflows/detail?workflowId=a&key=b",
        "/api/workflow-runs/detail",
        "/api/workflow-runs?mode=live&mode=simulate",
        "/api/workflow-runs?status=asleep",
    ] {
        server.get(path).refused(400, "REQUEST_MALFORMED");
    }
    for path in [
        "/api/workflows/detail?workflowId=unknown",
        "/api/workflows/detail?key=unknown",
        "/api/workflow-runs/detail?runId=unknown",
        "/api/workflow-runs/events?runId=unknown",
    ] {
        server.get(path).refused(404, "WORKFLOW_NOT_FOUND");
    }
}
