use super::*;
use crate::code::Code;
use serde_json::json;

fn refused(document: Value) -> (Code, String) {
    let error = Graph::read(&document).unwrap_err();
    (error.code, error.pointer)
}

#[test]
fn g_round_trip_loses_nothing() {
    let document = json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "label": "Claim", "description": "", "ports": {"data": "claim"}},
            {"id": "a", "type": "agent", "ports": {"input": "std.any"},
             "agent": {"agentId": "ag", "revision": 3}, "mappings": [], "timeoutMs": 1000,
             "failurePolicy": {"maxAttempts": 2, "retryOn": ["agent.timeout"],
                "backoff": {"kind": "fixed", "initialMs": 1, "maximumMs": 1}, "onExhausted": "fail-run"}},
            {"id": "g", "type": "gate", "ports": {}, "logic": {"version": 1, "expr": {"read": "/x"}}},
            {"id": "v", "type": "validator", "ports": {}, "schema": "claim"},
            {"id": "x", "type": "action", "ports": {}, "action": {"actionId": "x.y", "contractVersion": 1},
             "mappings": [
                {"targetPointer": "/a", "binding": {"kind": "literal", "value": null}},
                {"targetPointer": "/b", "binding": {"kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": ""}},
                {"targetPointer": "/c", "binding": {"kind": "template", "template": "{{ a }}{{ b }}", "variables": [
                    {"name": "a", "binding": {"kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": "/x"}},
                    {"name": "b", "platform": "run.id"}]}}]},
            {"id": "m", "type": "merge", "ports": {}, "mode": "all"},
            {"id": "d", "type": "agent-decision", "ports": {}},
            {"id": "o", "type": "output", "ports": {"input": "claim"}}
        ],
        "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "o", "port": "input"}, "label": "→"}],
        "schemas": {"claim": {"type": "object"}},
        "layout": {"in": {"x": -3, "y": 4}}
    });
    assert_eq!(
        Graph::read(&document).unwrap().to_value().unwrap(),
        document
    );
}

#[test]
fn g1_checksum_ignores_layout_and_order() {
    let node = |id: &str| json!({"id": id, "type": "output", "ports": {}});
    let one = json!({"schemaVersion": 1, "nodes": [node("a"), node("b")], "layout": {"a": {"x": 1, "y": 1}}});
    let two = json!({"schemaVersion": 1, "nodes": [node("b"), node("a")]});
    let three = json!({"schemaVersion": 1, "nodes": [node("b"), node("c")]});
    let sum = |v: &Value| Graph::read(v).unwrap().checksum().unwrap();
    assert_eq!(sum(&one), sum(&two));
    assert_ne!(sum(&two), sum(&three));
}

#[test]
fn g8_wrong_shapes_are_refused_with_the_pointer() {
    use Code::{
        JsonMissingMember as Missing, JsonUnknownMember as Unknown, JsonWrongType as Wrong,
    };
    let node = |extra: Value| {
        let mut node = json!({"id": "a", "type": "agent"});
        node.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"nodes": [node]})
    };
    let variable = |variable: Value| {
        node(json!({"mappings": [{"targetPointer": "/a", "binding":
            {"kind": "template", "template": "{{a}}", "variables": [variable]}}]}))
    };
    for (document, code, pointer) in [
        (json!([]), Wrong, ""),
        (json!({"x": 1}), Unknown, "/x"),
        (json!({"nodes": {}}), Wrong, "/nodes"),
        (json!({"nodes": [{"type": "input"}]}), Missing, "/nodes/0"),
        (json!({"nodes": [{"id": "a"}]}), Missing, "/nodes/0"),
        (
            json!({"nodes": [{"id": "a", "type": "robot"}]}),
            Wrong,
            "/nodes/0/type",
        ),
        (node(json!({"retries": 3})), Unknown, "/nodes/0/retries"),
        (
            node(json!({"agent": {"agentId": 4}})),
            Wrong,
            "/nodes/0/agent/agentId",
        ),
        (node(json!({"timeoutMs": 1.5})), Wrong, "/nodes/0/timeoutMs"),
        (node(json!({"label": null})), Wrong, "/nodes/0/label"),
        (
            node(json!({"mappings": [{"targetPointer": "/a", "binding": {"kind": "js"}}]})),
            Wrong,
            "/nodes/0/mappings/0/binding/kind",
        ),
        (
            json!({"edges": [{"id": "e", "source": {"nodeId": "a", "port": "b"}}]}),
            Missing,
            "/edges/0",
        ),
        (
            json!({"layout": {"a/b": {"x": 1.5, "y": 0}}}),
            Wrong,
            "/layout/a~1b/x",
        ),
        (
            json!({"nodes": [{"id": "a", "type": "input", "mappings": []}]}),
            Unknown,
            "/nodes/0/mappings",
        ),
        (
            variable(json!({"name": "a"})),
            Missing,
            "/nodes/0/mappings/0/binding/variables/0",
        ),
        (
            variable(json!({"name": "a", "platform": "run.id", "binding": {"kind": "path"}})),
            Unknown,
            "/nodes/0/mappings/0/binding/variables/0/platform",
        ),
        (
            variable(json!({"name": "a", "binding": {"kind": "literal", "value": 1}})),
            Wrong,
            "/nodes/0/mappings/0/binding/variables/0/binding/kind",
        ),
    ] {
        assert_eq!(
            refused(document.clone()),
            (code, pointer.to_owned()),
            "{document}"
        );
    }
}

#[test]
fn g8_an_unfinished_draft_is_a_graph() {
    for document in [
        json!({}),
        json!({"schemaVersion": 7, "nodes": [{"id": "Not An Id!", "type": "gate"}]}),
        json!({"nodes": [{"id": "a", "type": "agent", "agent": {}, "failurePolicy": {"maxAttempts": 99}}]}),
        json!({"nodes": [{"id": "g", "type": "gate", "logic": {"expr": {"nonsense": []}}}], "schemas": {"x": 7}}),
    ] {
        assert!(Graph::read(&document).is_ok(), "{document}");
    }
}

#[test]
fn g4_port_table() {
    let names = |t: NodeType| {
        t.ports()
            .iter()
            .map(|p| p.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(NodeType::Input), "data");
    assert_eq!(names(NodeType::Agent), "input success failure");
    assert_eq!(names(NodeType::AgentDecision), "input pass fail failure");
    assert_eq!(names(NodeType::Gate), "input pass fail");
    assert_eq!(names(NodeType::Validator), "input pass fail");
    assert_eq!(names(NodeType::Action), "input success failure");
    assert_eq!(names(NodeType::Merge), "items data");
    assert_eq!(names(NodeType::Output), "input");
}

#[test]
fn g8_a_node_fresh_from_the_palette_is_a_draft_of_its_type() {
    let mut graph = Graph::default();
    assert_eq!(graph.to_value().unwrap()["schemaVersion"], 1);
    for node_type in NodeType::ALL {
        let node = Node::new(node_type.as_str(), node_type);
        assert_eq!(node.kind.node_type(), node_type);
        assert_eq!(node.title(), node_type.as_str());
        graph.nodes.push(node);
    }
    let again = Graph::read(&graph.to_value().unwrap()).unwrap();
    assert_eq!(again, graph);
    // Of two with one id the first is meant.
    let mut second = Node::new("gate", NodeType::Merge);
    second.label = Some("again".to_owned());
    graph.nodes.push(second);
    assert_eq!(graph.node("gate").map(Node::title), Some("gate"));
    assert_eq!(graph.node("none").map(Node::title), None);
}
