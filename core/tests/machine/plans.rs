//! Plans for tests, written as short as they can be.

use serde_json::{Map, Value, json};
use sluicegate_core::node_type::NodeType;
use sluicegate_core::plan::{Document, Plan};

/// A node: its id and type; `extra` members overwrite what is made up.
pub(crate) fn node(id: &str, node_type: &str, extra: Value) -> Value {
    let ports: Map<String, Value> = NodeType::parse(node_type)
        .unwrap()
        .ports()
        .iter()
        .map(|port| {
            let schema = port.fixed_schema.unwrap_or("std.any");
            (port.name.to_owned(), schema.into())
        })
        .collect();
    let mut node = json!({"id": id, "type": node_type, "ports": ports});
    let members = node.as_object_mut().unwrap();
    match node_type {
        "agent" | "agent-decision" => members.extend(object(
            json!({"agentId": "ag", "revision": 1, "timeoutMs": 60_000, "policy": policy(1, &[], "fail-run")}),
        )),
        "action" => members.extend(object(
            json!({"actionId": "ac", "contractVersion": 1, "policy": policy(1, &[], "fail-run"),
                "contract": {"timeoutMs": 1000, "cancellation": "cooperative", "requiredPermissions": [], "retryableCodes": ["x.busy"]}}),
        )),
        "gate" => members.extend(object(json!({"expr": {"literal": true}}))),
        "validator" => members.extend(object(json!({"schema": "std.text"}))),
        _ => {}
    }
    members.extend(object(extra));
    node
}

/// A failure policy with a fixed wait of 10 ms.
pub(crate) fn policy(max_attempts: u32, retry_on: &[&str], on_exhausted: &str) -> Value {
    json!({"maxAttempts": max_attempts, "retryOn": retry_on,
        "backoff": {"kind": "fixed", "initialMs": 10, "maximumMs": 10}, "onExhausted": on_exhausted})
}

/// Edges as `id: node.port > node.port`, nodes in plan order.
pub(crate) fn plan(nodes: &[Value], edges: &[&str]) -> Plan {
    plan_with(nodes, edges, json!({}))
}

pub(crate) fn plan_with(nodes: &[Value], edges: &[&str], schemas: Value) -> Plan {
    let mut parsed: Vec<(String, Value)> = edges
        .iter()
        .map(|edge| {
            let (id, ends) = edge.split_once(": ").unwrap();
            let (source, target) = ends.split_once(" > ").unwrap();
            let end = |end: &str| {
                let (node, port) = end.rsplit_once('.').unwrap();
                json!({"nodeId": node, "port": port})
            };
            let edge = json!({"id": id, "source": end(source), "target": end(target)});
            (id.to_owned(), edge)
        })
        .collect();
    parsed.sort_by(|a, b| a.0.cmp(&b.0));
    let edges: Vec<Value> = parsed.into_iter().map(|(_, edge)| edge).collect();
    let zero = format!("sha256:{}", "0".repeat(64));
    let document: Document = serde_json::from_value(json!({
        "planVersion": 1, "compilerVersion": "1", "graphChecksum": zero,
        "nodes": nodes, "edges": edges, "schemas": schemas
    }))
    .unwrap();
    Plan::load(document).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is not an object"),
    }
}
