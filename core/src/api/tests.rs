//! What the types of the API must keep (api.md; wire-format.md J4, J7).

use serde_json::json;

use super::*;
use crate::code::Code;

#[test]
fn j4_a_body_with_a_tenant_or_actor_is_refused_by_pointer() {
    for name in ["tenantId", "actor", "origin", "permissions"] {
        let mut body = json!({"workflowKey": "a", "input": null, "idempotencyKey": "k"});
        EnqueueRequest::read(&body).unwrap();
        body[name] = json!("x");
        let error = EnqueueRequest::read(&body).unwrap_err();
        assert_eq!(error.code, Code::JsonUnknownMember);
        assert_eq!(error.pointer, format!("/{name}"));
        let problem = Problem::refused(&error);
        assert_eq!(problem.code, Code::RequestMalformed);
        assert_eq!(problem.pointer.as_deref(), Some(&*error.pointer));
    }
}

#[test]
fn j7_the_place_of_a_refusal_chooses_the_code() {
    let refusal = |pointer: &str| crate::value::JsonError {
        code: Code::JsonNumberRange,
        pointer: pointer.to_owned(),
        position: None,
        detail: String::new(),
    };
    for (pointer, code) in [
        ("/input", Code::WorkflowInputInvalid),
        ("/input/a", Code::WorkflowInputInvalid),
        ("/graph/nodes/0", Code::WorkflowGraphInvalid),
        ("/inputs", Code::RequestMalformed),
        ("/fixtures/nodes", Code::RequestMalformed),
        ("", Code::RequestMalformed),
    ] {
        assert_eq!(refusal_code(&refusal(pointer)), code, "{pointer}");
    }
}

#[test]
fn a_null_preview_is_a_value_and_an_absent_one_is_not() {
    let evidence = json!({"version": 1, "state": "available", "schemaId": "std.any",
        "originalByteSize": 4, "payloadId": "input"});
    let absent: PayloadView = serde_json::from_value(evidence.clone()).unwrap();
    assert_eq!(absent.preview, None);
    let mut with_null = evidence;
    with_null["preview"] = json!(null);
    let null: PayloadView = serde_json::from_value(with_null.clone()).unwrap();
    assert_eq!(null.preview, Some(Value::Null));
    assert_eq!(serde_json::to_value(&null).unwrap(), with_null);
}

#[test]
fn an_event_keeps_its_members_beside_those_of_the_server() {
    let wire = json!({"tenantId": "default", "runId": "r", "eventId": "r:2", "sequence": 2,
        "type": "node.ready", "schemaVersion": 1, "payload": {"nodeId": "in"},
        "recordedAt": 7});
    let event: RunEvent = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(event.event.sequence, 2);
    assert_eq!(serde_json::to_value(&event).unwrap(), wire);
}

#[test]
fn a_simulation_names_a_graph_or_a_workflow_and_never_both() {
    let graph = json!({"graph": {}, "input": 1, "fixtures": {}});
    let read = SimulateRequest::read(&graph).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), graph);
    let both = json!({"graph": {}, "workflowKey": "a", "input": 1, "fixtures": {}});
    let error = SimulateRequest::read(&both).unwrap_err();
    assert_eq!(error.pointer, "/workflowKey");
}

#[test]
fn j4_a_run_s_detail_has_every_member_once() {
    let graph = crate::graph::Graph::read(&json!({"schemaVersion": 1,
        "nodes": [{"id": "in", "type": "input", "ports": {"data": "std.any"}},
                  {"id": "out", "type": "output", "ports": {"input": "std.any"}}],
        "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"},
                   "target": {"nodeId": "out", "port": "input"}}]}))
    .unwrap();
    let limits = crate::limits::Limits::default();
    let plan = crate::compile::compile(&graph, None, &limits).plan.unwrap();
    let invocation = json!({"mode": "live", "graphChecksum": graph.checksum().unwrap(),
        "planHash": graph.checksum().unwrap(), "compilerVersion": "1", "limits": limits,
        "input": {"version": 1, "state": "absent", "schemaId": "std.any", "originalByteSize": 0}});
    let usage = json!({"version": 1, "state": "final", "inputTokens": 0, "outputTokens": 0,
        "totalTokens": 0, "includedChildRunIds": [], "pricedChildRuns": 0,
        "unpricedChildRuns": 0, "actionInvocations": 0, "unpricedActions": 0});
    let cost = json!({"version": 1, "state": "final", "currency": "USD", "amountMicros": 0,
        "pricingSnapshotIds": [], "unpricedChildRuns": 0, "unpricedActions": 0});
    let actor = json!({"kind": "user", "accountId": "a", "displayName": "A"});
    let wire = json!({"runId": "r", "mode": "live", "status": "queued", "actor": actor,
        "origin": {"kind": "manual"}, "queuedAt": 1, "usage": usage, "cost": cost,
        "invocation": invocation, "graph": graph.to_value().unwrap(), "plan": plan,
        "compiledOrder": ["in", "out"], "edges": [], "payloads": {}, "auditSequences": [],
        "correlations": [], "nodes": [{"nodeId": "in", "status": "pending", "attempts": []}]});
    let detail: RunDetail = serde_json::from_value(wire.clone()).unwrap();
    let text = serde_json::to_string(&detail).unwrap();
    assert_eq!(crate::value::read(&text).unwrap(), wire);
}

/// Reads a body and writes what was read.
type Door = fn(&Value) -> Result<Value, crate::value::JsonError>;

#[test]
fn j7_every_body_about_a_workflow_reads_whole_and_refuses_by_pointer() {
    let doors: [(Value, Door); 6] = [
        (
            json!({"key": "k", "name": "n", "description": "d", "graph": {"nodes": []}}),
            |body| CreateRequest::read(body).map(|read| json!(read)),
        ),
        (
            json!({"workflowId": "w", "expectedRevision": 0, "graph": {}, "name": "n",
                "description": "d"}),
            |body| UpdateRequest::read(body).map(|read| json!(read)),
        ),
        (json!({"graph": {}, "input": null}), |body| {
            ValidateRequest::read(body).map(|read| json!(read))
        }),
        (
            json!({"workflowId": "w", "expectedRevision": 7, "note": "n"}),
            |body| PublishRequest::read(body).map(|read| json!(read)),
        ),
        (json!({"workflowId": "w", "expectedRevision": 7}), |body| {
            ChangeRequest::read(body).map(|read| json!(read))
        }),
        (json!({"runId": "r", "reason": "late"}), |body| {
            CancelRequest::read(body).map(|read| json!(read))
        }),
    ];
    let optional = ["description", "expectedRevision", "input", "note", "reason"];
    for (body, read) in doors {
        assert_eq!(read(&body).unwrap(), body);
        for (name, value) in body.as_object().unwrap() {
            let mut less = body.clone();
            less.as_object_mut().unwrap().remove(name);
            match read(&less) {
                Ok(read) => assert_eq!(read, less, "what is absent stays absent"),
                Err(error) => {
                    assert!(!optional.contains(&name.as_str()), "{name}");
                    assert_eq!(error.code, Code::JsonMissingMember);
                    assert_eq!(error.pointer, "");
                }
            }
            // A document and an input may be anything here; graph and schema judge them.
            if !value.is_object() && !value.is_null() {
                for wrong in [json!([]), json!(-1)] {
                    let mut worse = body.clone();
                    worse[name] = wrong;
                    let error = read(&worse).unwrap_err();
                    let at = (error.code, error.pointer);
                    assert_eq!(at, (Code::JsonWrongType, format!("/{name}")));
                }
            }
        }
        let mut more = body;
        more["tenantId"] = json!("t");
        let error = read(&more).unwrap_err();
        let at = (error.code, error.pointer.as_str());
        assert_eq!(at, (Code::JsonUnknownMember, "/tenantId"));
    }
}

#[test]
fn a_whole_page_has_no_next_one() {
    let page = json!(Page::whole(vec![1, 2]));
    assert_eq!(page["items"], json!([1, 2]));
    assert!(page.get("nextCursor").is_none_or(Value::is_null));
}
