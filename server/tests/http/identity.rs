//! Who may ask for what (server.md §3).

use serde_json::json;
use sluicegate_server::http::{Rule, rules};

use crate::client::{Answer, Running};

fn send(server: &Running, rule: &Rule, headers: &[(&str, &str)]) -> Answer {
    let mut all = headers.to_vec();
    if rule.post {
        all.push(("content-type", "application/json"));
        server.send("POST", rule.path, &all, Some("{}"))
    } else {
        server.send("GET", rule.path, &all, None)
    }
}

/// The cookie and the CSRF token of a new session.
fn sign_in(server: &Running) -> (String, String) {
    let path = server
        .sign_in
        .split_once(&server.address.to_string())
        .unwrap()
        .1;
    let answer = server.send("GET", path, &[], None);
    assert_eq!(answer.status, 303, "{}", answer.text);
    assert_eq!(answer.header("location"), "/");
    let cookie = answer.header("set-cookie");
    for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let session = server.send("GET", "/api/session", &[("cookie", &cookie)], None);
    let session = session.is(200);
    assert_eq!(session["actor"]["kind"], "user");
    assert_eq!(session["tenantId"], "default");
    (cookie, session["csrfToken"].as_str().unwrap().to_owned())
}

#[test]
fn every_endpoint_refuses_a_request_without_credentials() {
    let server = Running::start();
    let wrong = [
        &[][..],
        &[("authorization", "Bearer sgk_unknown")],
        &[("authorization", "Basic b3duZXI6")],
        &[("authorization", "Bearer ")],
        &[("cookie", "sluicegate_session=unknown")],
    ];
    for rule in rules() {
        for headers in wrong {
            let answer = send(&server, &rule, headers);
            answer.refused(401, "AUTHENTICATION_REQUIRED");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[test]
fn every_endpoint_asks_for_its_own_permission_and_no_other() {
    let server = Running::start();
    let mut all: Vec<_> = rules().iter().filter_map(|rule| rule.permission).collect();
    all.sort_unstable();
    all.dedup();
    for missing in &all {
        let others: Vec<_> = all.iter().copied().filter(|p| p != missing).collect();
        let key = format!("Bearer {}", server.key_with("default", &others));
        for rule in rules() {
            let answer = send(&server, &rule, &[("authorization", &key)]);
            if rule.permission == Some(missing) {
                let problem = answer.refused(403, "WORKFLOW_PERMISSION_DENIED");
                assert!(problem["detail"].as_str().unwrap().contains(missing));
            } else {
                assert_ne!(answer.status, 403, "{} {}", rule.path, answer.text);
            }
        }
    }
}

#[test]
fn a_cookie_changes_nothing_without_its_own_page() {
    let server = Running::start();
    let (cookie, csrf) = sign_in(&server);
    let own = format!("http://{}", server.address);
    let cookie = ("cookie", cookie.as_str());
    let token = ("x-csrf-token", csrf.as_str());
    let refused: &[&[(&str, &str)]] = &[
        &[cookie],
        &[cookie, token],
        &[cookie, ("origin", &own)],
        &[cookie, ("x-csrf-token", "guess"), ("origin", &own)],
        &[cookie, token, ("origin", "http://elsewhere.example")],
        &[cookie, token, ("origin", "null")],
    ];
    for rule in rules() {
        if rule.post {
            for headers in refused {
                send(&server, &rule, headers).refused(403, "CSRF_REJECTED");
            }
        } else {
            assert_ne!(send(&server, &rule, &[cookie]).status, 403, "{}", rule.path);
        }
    }
    let good = [
        cookie,
        token,
        ("origin", own.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({"key": "by.cookie", "name": "By cookie"}).to_string();
    let made = server.send("POST", "/api/workflows", &good, Some(&body));
    assert_eq!(made.is(201)["updatedBy"]["kind"], "user");
    let ended = server.send("POST", "/api/session/end", &good, Some("{}"));
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").contains("Max-Age=0"));
    let after = server.send("GET", "/api/session", &[cookie], None);
    after.refused(401, "AUTHENTICATION_REQUIRED");
}

#[test]
fn a_sign_in_link_works_once() {
    let server = Running::start();
    sign_in(&server);
    let path = server
        .sign_in
        .split_once(&server.address.to_string())
        .unwrap()
        .1;
    for path in [path, "/sign-in?token=guess"] {
        let answer = server.send("GET", path, &[], None);
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("set-cookie"), "");
        assert!(answer.text.contains("This link opens nothing"));
    }
}

#[test]
fn an_api_key_acts_as_a_service_of_its_creator() {
    let server = Running::start();
    let body = json!({"key": "by.key", "name": "By key"});
    let made = server.post("/api/workflows", &body).is(201);
    let actor = &made["updatedBy"];
    assert_eq!(actor["kind"], "service");
    assert_eq!(actor["configuredBy"]["kind"], "user");
}

#[test]
fn b114_another_tenant_s_things_are_answered_as_those_that_do_not_exist() {
    let server = Running::start();
    let id = crate::definitions::create(&server, "own", &crate::definitions::graph(1));
    let publish = json!({"workflowId": id, "expectedRevision": 1});
    server.post("/api/workflows/publish", &publish).is(200);
    let start = json!({"workflowKey": "own", "input": {"amount": 2}, "idempotencyKey": "k"});
    let run = server.post("/api/workflow-runs", &start).is(202);
    let run = run["runId"].as_str().unwrap();
    let all = sluicegate_server::auth::permission::ALL;
    let key = format!("Bearer {}", server.key_with("other", &all));
    let key = ("authorization", key.as_str());
    let same = |answer: &Answer| {
        let mut problem = answer.refused(404, "WORKFLOW_NOT_FOUND");
        problem["requestId"] = json!("");
        problem
    };
    for path in [
        "/api/workflows/detail?workflowId={}",
        "/api/workflows/detail?key={}",
        "/api/workflow-runs/detail?runId={}",
        "/api/workflow-runs/events?runId={}",
        "/api/workflow-runs/result?runId={}",
    ] {
        let name = if path.contains("runId") { run } else { &id };
        let name = if path.contains("key=") { "own" } else { name };
        assert_eq!(server.get(&path.replace("{}", name)).status, 200, "{path}");
        let theirs = server.send("GET", &path.replace("{}", name), &[key], None);
        let nobody = server.send("GET", &path.replace("{}", "nobody"), &[key], None);
        assert_eq!(same(&theirs), same(&nobody), "{path}");
    }
    for (path, theirs, nobody) in [
        (
            "workflows/update",
            &publish,
            json!({"workflowId": "nobody", "expectedRevision": 1}),
        ),
        (
            "workflows/publish",
            &publish,
            json!({"workflowId": "nobody", "expectedRevision": 1}),
        ),
        (
            "workflows/archive",
            &publish,
            json!({"workflowId": "nobody", "expectedRevision": 1}),
        ),
        (
            "workflows/delete",
            &publish,
            json!({"workflowId": "nobody", "expectedRevision": 1}),
        ),
        (
            "workflow-runs/cancel",
            &json!({"runId": run}),
            json!({"runId": "nobody"}),
        ),
        (
            "workflow-runs",
            &start,
            json!({"workflowKey": "nobody", "input": 1, "idempotencyKey": "k"}),
        ),
    ] {
        let post = |body: &serde_json::Value| {
            let headers = [key, ("content-type", "application/json")];
            server.send(
                "POST",
                &format!("/api/{path}"),
                &headers,
                Some(&body.to_string()),
            )
        };
        assert_eq!(same(&post(theirs)), same(&post(&nobody)), "{path}");
    }
    for path in ["/api/workflows", "/api/workflow-runs"] {
        let theirs = server.send("GET", path, &[key], None);
        assert_eq!(theirs.is(200)["items"], json!([]), "{path}");
    }
    let agents = server.send("GET", "/api/workflow-catalog/agents", &[key], None);
    assert_eq!(agents.is(200)["items"], json!([]));
}
