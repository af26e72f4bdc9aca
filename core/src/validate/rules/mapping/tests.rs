use serde_json::{Value, json};

use crate::validate::cases::{
    agent, found, gate, graph, input, merge, output, policy, push, sound,
};

fn literal(target: &str, value: Value) -> Value {
    json!({"targetPointer": target, "binding": {"kind": "literal", "value": value}})
}

fn path(target: &str, node: &str, port: &str, pointer: &str) -> Value {
    json!({"targetPointer": target, "binding": {"kind": "path", "sourceNodeId": node,
        "sourcePort": port, "pointer": pointer}})
}

/// The sound graph with mappings on its output.
fn mapped(mappings: Value) -> Value {
    let mut graph = sound();
    graph["nodes"][1]["mappings"] = mappings;
    graph
}

/// The same, with schemas for what comes in and what the output takes.
fn typed(from: Value, into: Value, mappings: Value) -> Vec<String> {
    let mut graph = mapped(mappings);
    graph["schemas"] = json!({"from": from, "into": into});
    graph["nodes"][0]["ports"]["data"] = json!("from");
    graph["nodes"][1]["ports"]["input"] = json!("into");
    found(&graph)
}

#[test]
fn m1_b029_b031_pointers_are_valid() {
    for bad in ["a", "/a~", "/~2", "/arr/01", "/arr/-", "/0"] {
        let issues = ["mapping.pointer-invalid node out /mappings/0/targetPointer"];
        assert_eq!(
            found(&mapped(json!([literal(bad, json!(1))]))),
            issues,
            "{bad}"
        );
    }
    for bad in ["num", "/num~s", "/nums~/0", "/nums~"] {
        let issues = ["mapping.pointer-invalid node out /mappings/0/binding/pointer"];
        assert_eq!(
            found(&mapped(json!([path("/a", "in", "data", bad)]))),
            issues,
            "{bad}"
        );
    }
    for good in ["", "/a", "/~0~1", "/", "/a/1x"] {
        assert!(
            found(&mapped(json!([literal(good, json!(1))]))).is_empty(),
            "{good}"
        );
    }
    assert!(found(&mapped(json!([path("/a", "in", "data", "/arr/0")]))).is_empty());
}

#[test]
fn m1_targets_do_not_overlap() {
    let targets = |list: &[&str]| {
        let list: Vec<Value> = list.iter().map(|t| literal(t, json!(1))).collect();
        found(&mapped(json!(list)))
    };
    let at = |n: usize| format!("mapping.target-conflict node out /mappings/{n}/targetPointer");
    assert_eq!(targets(&["/a", "/a"]), [at(1)]);
    assert_eq!(targets(&["/a/b", "/a", "/a/c/d"]), [at(0), at(2)]);
    assert_eq!(targets(&["/x", ""]), [at(0)]);
    assert!(targets(&["/a", "/ab", "/a-/b", "/b/a"]).is_empty());
}

#[test]
fn m2_b039_the_source_exists() {
    let issues = ["mapping.source-unknown node out /mappings/0/binding/sourceNodeId"];
    assert_eq!(
        found(&mapped(json!([path("/a", "gone", "pass", "")]))),
        issues
    );
    for port in ["pass", "input", ""] {
        let issues = ["mapping.source-unknown node out /mappings/0/binding/sourcePort"];
        assert_eq!(found(&mapped(json!([path("/a", "in", port, "")]))), issues);
    }
    assert!(found(&mapped(json!([path("/a", "in", "data", "")]))).is_empty());
}

#[test]
fn m2_rule_8_the_source_is_upstream() {
    let document = |reader: &str, source: &str, port: &str| {
        let mut document = graph(
            json!([
                input("in", "std.any"),
                agent("a"),
                agent("b"),
                output("o1", "std.any"),
                output("o2", "std.any")
            ]),
            &[
                ("e1", "in.data", "a.input"),
                ("e2", "in.data", "b.input"),
                ("e3", "a.success", "o1.input"),
                ("e4", "b.success", "o2.input"),
            ],
            json!({}),
        );
        let nodes = document["nodes"].as_array_mut().unwrap();
        let node = nodes.iter_mut().find(|node| node["id"] == reader).unwrap();
        node["mappings"] = json!([path("", source, port, "")]);
        document
    };
    for (reader, source) in [("o1", "b"), ("a", "a"), ("a", "b")] {
        let issue =
            format!("mapping.source-not-upstream node {reader} /mappings/0/binding/sourceNodeId");
        assert_eq!(found(&document(reader, source, "success")), [issue]);
    }
    assert!(found(&document("o1", "a", "success")).is_empty());
    assert!(found(&document("o1", "in", "data")).is_empty());
    // Q2: while there is a cycle, nobody can say what is upstream.
    let mut cyclic = document("o1", "b", "success");
    push(&mut cyclic, "nodes", merge("m"));
    let edges = cyclic["edges"].as_array_mut().unwrap();
    edges.push(crate::validate::cases::edge("e5", "m.data", "m.items"));
    edges.push(crate::validate::cases::edge("e6", "in.data", "m.items"));
    assert_eq!(found(&cyclic), ["graph.cycle node m"]);
}

#[test]
fn m2_a_source_that_may_not_emit_is_a_warning() {
    let uncertain = |node: &str, port: &str| {
        let mut out = output("o", "std.any");
        out["mappings"] = json!([path("", node, port, "")]);
        found(&graph(
            json!([
                input("in", "std.any"),
                gate("g", "std.any"),
                agent("p"),
                agent("f"),
                merge("m"),
                out
            ]),
            &[
                ("e1", "in.data", "g.input"),
                ("e2", "g.pass", "p.input"),
                ("e3", "g.fail", "f.input"),
                ("e4", "p.success", "m.items"),
                ("e5", "f.success", "m.items"),
                ("e6", "m.data", "o.input"),
            ],
            json!({}),
        ))
    };
    let issues = ["mapping.source-uncertain node o /mappings/0/binding"];
    for (node, port) in [
        ("p", "success"),
        ("f", "success"),
        ("g", "pass"),
        ("g", "fail"),
    ] {
        assert_eq!(uncertain(node, port), issues, "{node}.{port}");
    }
    for (node, port) in [("in", "data"), ("m", "data")] {
        assert!(uncertain(node, port).is_empty(), "{node}.{port}");
    }
}

#[test]
fn m2_what_always_runs_before_a_merge_is_certain() {
    let document = |on_exhausted: &str| {
        let mut out = output("o", "std.any");
        out["mappings"] = json!([path("", "a", "success", "")]);
        let mut first = agent("a");
        first["failurePolicy"] = policy(on_exhausted);
        let mut edges = vec![
            ("e1", "in.data", "a.input"),
            ("e2", "in.data", "b.input"),
            ("e3", "a.success", "m.items"),
            ("e4", "b.success", "m.items"),
            ("e5", "m.data", "o.input"),
        ];
        if on_exhausted == "emit-failure" {
            edges.push(("e6", "a.failure", "m.items"));
        }
        graph(
            json!([input("in", "std.any"), first, agent("b"), merge("m"), out]),
            &edges,
            json!({}),
        )
    };
    assert!(found(&document("fail-run")).is_empty());
    let issues = ["mapping.source-uncertain node o /mappings/0/binding"];
    assert_eq!(found(&document("emit-failure")), issues);
}

#[test]
fn m2_a_port_that_is_not_emitted_is_uncertain() {
    let mut out = output("o", "std.any");
    out["mappings"] = json!([path("", "a", "failure", "/code")]);
    let document = graph(
        json!([input("in", "std.any"), agent("a"), out]),
        &[("e1", "in.data", "a.input"), ("e2", "a.success", "o.input")],
        json!({}),
    );
    assert_eq!(
        found(&document),
        ["mapping.source-uncertain node o /mappings/0/binding"]
    );
}

#[test]
fn s6_literals_fit_their_place() {
    let into = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let issues = ["mapping.type-incompatible node out /mappings/0/binding"];
    assert_eq!(
        typed(
            json!(true),
            into.clone(),
            json!([literal("/n", json!("1"))])
        ),
        issues
    );
    assert!(typed(json!(true), into, json!([literal("/n", json!(1))])).is_empty());
}

#[test]
fn s6_paths_are_refused_only_when_they_can_never_fit() {
    let from = json!({"type": "object", "additionalProperties": false,
        "properties": {"n": {"type": "integer"}, "x": true}});
    let into = json!({"type": "object", "properties": {"s": {"type": "string"}}});
    let read = |pointer: &str| {
        typed(
            from.clone(),
            into.clone(),
            json!([path("/s", "in", "data", pointer)]),
        )
    };
    assert_eq!(
        read("/n"),
        ["mapping.type-incompatible node out /mappings/0/binding"]
    );
    assert_eq!(
        read("/y"),
        ["mapping.type-incompatible node out /mappings/0/binding/pointer"]
    );
    assert!(read("/x").is_empty());
}

#[test]
fn s6_a_template_is_a_text() {
    let template = json!([{"targetPointer": "/n", "binding":
        {"kind": "template", "template": "x", "variables": []}}]);
    let into = |kind: &str| json!({"type": "object", "properties": {"n": {"type": kind}}});
    let issues = ["mapping.type-incompatible node out /mappings/0/binding"];
    assert_eq!(typed(json!(true), into("number"), template.clone()), issues);
    assert!(typed(json!(true), into("string"), template).is_empty());
}

#[test]
fn s6_targets_exist_and_required_members_are_built() {
    let into = json!({"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": true, "b": true}});
    let built = |targets: &[&str]| {
        let list: Vec<Value> = targets.iter().map(|t| literal(t, json!(1))).collect();
        typed(json!(true), into.clone(), json!(list))
    };
    let issues = ["mapping.type-incompatible node out /mappings/1/targetPointer"];
    assert_eq!(built(&["/a", "/c"]), issues);
    assert_eq!(
        built(&["/b"]),
        ["mapping.type-incompatible node out /mappings"]
    );
    assert!(built(&["/a"]).is_empty());
    assert!(built(&["/a/deep", "/b"]).is_empty());
    // Where a mapping is at fault already, what all of them build is not judged.
    let into =
        json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}});
    assert_eq!(
        typed(json!(true), into, json!([literal("/b", json!(1))])),
        ["mapping.type-incompatible node out /mappings/0/binding"]
    );
}

#[test]
fn m1_what_mappings_build_has_every_target() {
    let one = json!({"type": "object", "maxProperties": 1});
    let built = |targets: &[&str]| {
        let list: Vec<Value> = targets.iter().map(|t| literal(t, json!(1))).collect();
        typed(json!(true), one.clone(), json!(list))
    };
    assert!(built(&["/a"]).is_empty());
    assert!(built(&["/a/b", "/a/c"]).is_empty());
    let issues = ["mapping.type-incompatible node out /mappings"];
    assert_eq!(built(&["/a", "/b"]), issues);
}
