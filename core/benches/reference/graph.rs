//! The reference graph of the benchmarks: 100 nodes, 200 edges, 32 schemas, mappings and
//! gates everywhere; `layers` makes it larger.

use serde_json::{Map, Value, json};

/// A graph and the fixtures that run it from end to end.
pub(crate) struct Reference {
    pub(crate) graph: Value,
    pub(crate) fixtures: Value,
    pub(crate) input: Value,
}

/// 16 layers are 100 nodes and 200 edges.
pub(crate) fn reference(layers: usize) -> Reference {
    let mut made = Maker::default();
    made.node("in", json!({"type": "input", "ports": {"data": "claim"}}));
    let mut from = ("in".to_owned(), "data");
    // Gates and validators forward what they get, so they are fed from something small.
    let mut small = from.clone();
    for layer in 0..layers {
        from = made.layer(layer, &from, &small);
        small = (format!("l{layer:03}.act"), "success");
    }
    for step in 0..2 {
        let id = format!("z.action-{step}");
        made.edge(&from, &id, "input");
        made.action(&id, false);
        from = (id, "success");
    }
    made.edge(&from, "z.out", "input");
    made.node(
        "z.out",
        json!({"type": "output", "ports": {"input": "std.any"}}),
    );
    let graph = json!({"schemaVersion": 1, "nodes": made.nodes, "edges": made.edges,
        "schemas": schemas(), "layout": {}});
    Reference {
        graph,
        fixtures: json!({ "nodes": made.fixtures }),
        input: json!({"id": "c-1", "amount": 120, "lines": [{"sku": "a", "price": 3}]}),
    }
}

/// A node's output port.
type End = (String, &'static str);

#[derive(Default)]
struct Maker {
    nodes: Vec<Value>,
    edges: Vec<Value>,
    fixtures: Map<String, Value>,
    failing: usize,
}

impl Maker {
    fn node(&mut self, id: &str, members: Value) {
        let mut node = json!({ "id": id });
        if let (Value::Object(node), Value::Object(members)) = (&mut node, members) {
            node.extend(members);
        }
        self.nodes.push(node);
    }

    fn edge(&mut self, from: &End, to: &str, port: &str) {
        let id = format!("e{:04}", self.edges.len());
        self.edges.push(
            json!({"id": id, "source": {"nodeId": from.0, "port": from.1},
            "target": {"nodeId": to, "port": port}}),
        );
    }

    /// A gate, a validator, two agents and an action that all meet in a merge.
    fn layer(&mut self, layer: usize, from: &End, small: &End) -> End {
        let name = |kind: &str| format!("l{layer:03}.{kind}");
        let merge = name("merge");
        let gate = name("gate");
        self.edge(small, &gate, "input");
        self.node(
            &gate,
            json!({"type": "gate",
            "ports": {"input": "std.any", "pass": "std.any", "fail": "std.any"},
            "logic": {"version": 1, "expr": {"or": [
                {"exists": "/amount"},
                {"and": [{"exists": "/0"}, {"ne": [{"read": "/0"}, {"literal": layer}]}]}]}}}),
        );
        let check = name("check");
        self.edge(small, &check, "input");
        let schema = format!("s{:02}", layer % 30);
        self.node(
            &check,
            json!({"type": "validator", "schema": schema,
            "ports": {"input": "std.any", "pass": schema, "fail": "std.validation-errors"}}),
        );
        let mut ends = vec![
            (gate.clone(), "pass"),
            (gate, "fail"),
            (check.clone(), "pass"),
            (check, "fail"),
        ];
        for kind in ["a", "b"] {
            let id = name(kind);
            self.edge(from, &id, "input");
            let emits = self.failing < 5;
            self.failing += 1;
            self.agent(&id, emits);
            ends.push((id.clone(), "success"));
            if emits {
                ends.push((id, "failure"));
            }
        }
        let action = name("act");
        self.edge(from, &action, "input");
        self.action(&action, false);
        ends.push((action, "success"));
        for end in &ends {
            self.edge(end, &merge, "items");
        }
        self.node(
            &merge,
            json!({"type": "merge", "mode": "all",
            "ports": {"items": "std.any", "data": "std.merged"}}),
        );
        (merge, "data")
    }

    fn agent(&mut self, id: &str, emits: bool) {
        self.node(
            id,
            json!({"type": "agent", "agent": {"agentId": "ag", "revision": 1},
            "ports": {"input": "std.text", "success": "std.text", "failure": "std.failure"},
            "mappings": [{"targetPointer": "", "binding": {"kind": "template",
                "template": "Review {{ id }} of {{ amount }} now",
                "variables": [source("id", "/id"), source("amount", "/amount")]}}],
            "failurePolicy": policy(emits)}),
        );
        self.fixtures.insert(
            id.to_owned(),
            json!({"attempts": [
            {"outcome": "success", "output": "fine", "simulatedDurationMs": 3}]}),
        );
    }

    fn action(&mut self, id: &str, emits: bool) {
        self.node(id, json!({"type": "action", "action": {"actionId": "ac", "contractVersion": 1},
            "ports": {"input": "work", "success": "std.any", "failure": "std.failure"},
            "mappings": [
                {"targetPointer": "/id", "binding": {"kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": "/id"}},
                {"targetPointer": "/kind", "binding": {"kind": "literal", "value": "approve"}}],
            "failurePolicy": policy(emits)}));
        self.fixtures.insert(
            id.to_owned(),
            json!({"attempts": [
            {"outcome": "success", "output": {"ok": true}, "simulatedDurationMs": 3}]}),
        );
    }
}

fn source(name: &str, pointer: &str) -> Value {
    json!({"name": name, "binding": {"kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": pointer}})
}

fn policy(emits: bool) -> Value {
    json!({"maxAttempts": 2, "retryOn": ["agent.timeout"],
        "backoff": {"kind": "fixed", "initialMs": 10, "maximumMs": 10},
        "onExhausted": if emits { "emit-failure" } else { "fail-run" }})
}

/// 32 schemas: the claim, the actions' input, and 30 for the validators.
fn schemas() -> Value {
    let mut schemas = Map::new();
    schemas.insert("claim".to_owned(), json!({"type": "object", "required": ["id", "amount"],
        "properties": {"id": {"type": "string", "maxLength": 64}, "amount": {"type": "number", "minimum": 0},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}, "price": {"type": "number"}}}}}}));
    schemas.insert("work".to_owned(), json!({"type": "object", "required": ["id", "kind"],
        "properties": {"id": {"type": "string"}, "kind": {"enum": ["approve", "reject"]}}, "additionalProperties": false}));
    for index in 0..30 {
        schemas.insert(format!("s{index:02}"), json!({"anyOf": [
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "minLength": 1}, "amount": {"type": "number", "minimum": index}}},
            {"type": "array", "minItems": 1, "maxItems": 100}]}));
    }
    Value::Object(schemas)
}
