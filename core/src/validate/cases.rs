//! What the cases beside the rules share: a sound graph to start from, and findings as short
//! texts, `code kind id path` (wire-format.md §8).

use serde_json::json;

use super::{Issue, Location, check};
use crate::catalogue::Catalogue;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::value::{Value, to_value};

/// The smallest graph without an issue: an input and an output.
pub(crate) fn sound() -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "out", "type": "output", "ports": {"input": "std.any"}},
        ],
        "edges": [edge("e", "in.data", "out.input")],
        "schemas": {},
        "layout": {},
    })
}

/// A graph of these nodes and edges with some schemas.
pub(crate) fn graph(nodes: Value, edges: &[(&str, &str, &str)], schemas: Value) -> Value {
    let edges: Vec<Value> = edges
        .iter()
        .map(|(id, from, to)| edge(id, from, to))
        .collect();
    json!({"schemaVersion": 1, "nodes": nodes, "edges": edges, "schemas": schemas, "layout": {}})
}

/// Adds a node or an edge.
pub(crate) fn push(document: &mut Value, list: &str, entry: Value) {
    document[list].as_array_mut().unwrap().push(entry);
}

/// An edge between `node.port` and `node.port`.
pub(crate) fn edge(id: &str, source: &str, target: &str) -> Value {
    let end = |text: &str| {
        let (node, port) = text.rsplit_once('.').unwrap();
        json!({"nodeId": node, "port": port})
    };
    json!({"id": id, "source": end(source), "target": end(target)})
}

pub(crate) fn input(id: &str, schema: &str) -> Value {
    json!({"id": id, "type": "input", "ports": {"data": schema}})
}

pub(crate) fn output(id: &str, schema: &str) -> Value {
    json!({"id": id, "type": "output", "ports": {"input": schema}})
}

/// A gate that asks whether `/n` is there.
pub(crate) fn gate(id: &str, schema: &str) -> Value {
    json!({"id": id, "type": "gate", "logic": {"version": 1, "expr": {"exists": "/n"}},
        "ports": {"input": schema, "pass": schema, "fail": schema}})
}

pub(crate) fn merge(id: &str) -> Value {
    json!({"id": id, "type": "merge", "mode": "all",
        "ports": {"items": "std.any", "data": "std.merged"}})
}

pub(crate) fn policy(on_exhausted: &str) -> Value {
    json!({"maxAttempts": 1, "retryOn": [], "onExhausted": on_exhausted,
        "backoff": {"kind": "fixed", "initialMs": 0, "maximumMs": 0}})
}

/// An agent whose failure ends the run.
pub(crate) fn agent(id: &str) -> Value {
    json!({"id": id, "type": "agent", "agent": {"agentId": "writer", "revision": 1},
        "failurePolicy": policy("fail-run"),
        "ports": {"input": "std.any", "success": "std.text", "failure": "std.failure"}})
}

pub(crate) fn decision(id: &str) -> Value {
    json!({"id": id, "type": "agent-decision", "agent": {"agentId": "writer", "revision": 1},
        "failurePolicy": policy("fail-run"),
        "ports": {"input": "std.any", "pass": "std.any", "fail": "std.any",
            "failure": "std.failure"}})
}

pub(crate) fn action(id: &str) -> Value {
    json!({"id": id, "type": "action", "action": {"actionId": "claim.read", "contractVersion": 1},
        "failurePolicy": policy("fail-run"),
        "ports": {"input": "std.any", "success": "std.any", "failure": "std.failure"}})
}

/// `input → node → output` around one node with one output port in use.
pub(crate) fn around(node: Value, into: &str, out_of: &str) -> Value {
    let id = node["id"].as_str().unwrap().to_owned();
    graph(
        json!([input("in", "std.any"), node, output("out", "std.any")]),
        &[
            ("e1", "in.data", &format!("{id}.{into}")),
            ("e2", &format!("{id}.{out_of}"), "out.input"),
        ],
        json!({}),
    )
}

/// What the cases' agents and actions refer to.
pub(crate) fn catalogue() -> Value {
    json!({
        "agents": [{"agentId": "writer", "revision": 1, "name": "Writer", "status": "active",
            "provider": "scripted", "model": "m", "structuredOutput": true,
            "requiredPermissions": ["agents.use"]}],
        "actions": [{"id": "claim.read", "contractVersion": 1, "description": "Reads a claim.",
            "requiredPermissions": ["claims.read"], "inputSchema": true, "outputSchema": true,
            "timeoutMs": 1000, "idempotency": "required", "risk": "read",
            "cancellation": "cooperative"}],
    })
}

/// The findings with the cases' catalogue.
pub(crate) fn found(document: &Value) -> Vec<String> {
    found_within(document, &Limits::default())
}

pub(crate) fn found_within(document: &Value, limits: &Limits) -> Vec<String> {
    found_with(document, Some(&catalogue()), limits)
}

pub(crate) fn found_with(
    document: &Value,
    catalogue: Option<&Value>,
    limits: &Limits,
) -> Vec<String> {
    let graph = Graph::read(document).unwrap();
    let catalogue = catalogue.map(|catalogue| Catalogue::read(catalogue).unwrap());
    let issues = check(&graph, catalogue.as_ref(), limits);
    issues.iter().map(short).collect()
}

/// The contract's part of an issue as one text.
pub(crate) fn short(issue: &Issue) -> String {
    let location = to_value(&issue.location).unwrap();
    let id = match &issue.location {
        Location::Node { node_id, .. } => node_id.as_str(),
        Location::Edge { edge_id, .. } => edge_id.as_str(),
        _ => "",
    };
    let kind = location["kind"].as_str().unwrap();
    [
        issue.code.as_str(),
        kind,
        id,
        issue.location.path().unwrap_or(""),
    ]
    .iter()
    .filter(|part| !part.is_empty())
    .copied()
    .collect::<Vec<_>>()
    .join(" ")
}
