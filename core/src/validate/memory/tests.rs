//! A check with a memory finds what a fresh one finds (S6, Q2), and keeps no more than it used.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::Catalogue;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::validate::cases::{action, catalogue, edge, gate, input, merge, output};
use crate::validate::{Issue, check, check_with};

/// Whether two answers are one and the same schema.
fn is_same(a: &Verdict, b: &Verdict) -> bool {
    matches!((a, b), (Ok(a), Ok(b)) if Arc::ptr_eq(a, b))
}

#[test]
fn s6_what_is_known_is_not_worked_out_again() {
    let mut memory = Memory::default();
    memory.begin();
    let document = json!({"type": "object", "properties": {"n": {"minimum": 1}}});
    let first = memory.accept("s", &document);
    let schema = first.clone().unwrap();
    let pointer = Pointer::parse("/n").unwrap();
    let Place::Fits(place) = memory.place(&schema, &pointer) else {
        panic!("nothing known");
    };
    let targets = [pointer.clone()];
    let shape = memory.shape(&targets).unwrap();
    memory.end();
    memory.begin();
    // The same by J5, and so the same schema.
    let again = json!({"properties": {"n": {"minimum": 1.0}}, "type": "object"});
    assert!(is_same(&first, &memory.accept("s", &again)));
    assert!(is_same(&first, &memory.accept("other", &document)));
    assert!(memory.accept("s", &json!(7)).is_err());
    assert!(
        matches!(memory.place(&schema, &pointer), Place::Fits(known) if Arc::ptr_eq(&known, &place))
    );
    assert!(Arc::ptr_eq(&memory.shape(&targets).unwrap(), &shape));
}

#[test]
fn s6_what_a_check_did_not_use_is_forgotten() {
    let mut memory = Memory::default();
    for schema in 0..100 {
        memory.begin();
        let name = schema.to_string();
        let schema = memory.accept(&name, &json!({"const": schema})).unwrap();
        let text = schema::built_in("std.text").unwrap();
        memory.compare(&schema, &text);
        memory.end();
    }
    let kept = (
        memory.accepted.0.len(),
        memory.compared.0.len(),
        memory.named.0.len(),
    );
    assert_eq!(kept, (1, 1, 1));
    // So it is after a whole check too.
    let after = |schemas: &[&str]| {
        let mut memory = Memory::default();
        for schema in schemas {
            let mut document = crate::validate::cases::sound();
            document["schemas"] = json!({"s": {"const": schema}});
            let graph = Graph::read(&document).unwrap();
            let _ = check_with(&mut memory, &graph, None, &Limits::default());
        }
        memory.accepted.0.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(after(&["a", "b"]), after(&["b"]));
}

// That `compare` takes what an earlier check found, and how many steps it notes for that, spares
// work and changes no finding, so no test here can tell its guard from `false`; BENCHMARKS.md can.

#[test]
fn s6_with_few_steps_left_what_was_known_is_no_more_than_a_fresh_check_finds() {
    let branch = |i: usize| json!({"type": "object", "properties": {"n": {"minimum": i}}});
    let schema = |from: usize| {
        let branches: Vec<_> = (from..from + 3).map(branch).collect();
        Schema::accept(&json!({"anyOf": branches})).unwrap()
    };
    let (source, target) = (schema(4), schema(0));
    let knowing = || {
        let mut memory = Memory::default();
        memory.begin();
        let found = memory.compare(&source, &target);
        assert_eq!(found, Compatibility::Compatible);
        memory
    };
    let needed = STEPS - knowing().steps;
    assert!(needed > 10, "{needed}");
    let compare = |memory: &mut Memory, left| {
        memory.begin();
        memory.steps = left;
        let found = memory.compare(&source, &target);
        // Asked again in the same check, it takes nothing more.
        assert_eq!(memory.compare(&source, &target), found);
        (found, memory.steps)
    };
    for left in 0..needed + 2 {
        let fresh = compare(&mut Memory::default(), left);
        let mut memory = knowing();
        assert_eq!(compare(&mut memory, left), fresh, "{left}");
        // What was found with too few steps is not taken for the truth later.
        let full = compare(&mut memory, STEPS);
        assert_eq!(full, (Compatibility::Compatible, STEPS - needed), "{left}");
    }
}

fn schema() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(true),
        json!(false),
        json!({"type": "string"}),
        json!({"type": "object"}),
        json!({"type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer", "minimum": 1.0}}}),
        json!({"type": "object", "properties": {"n": {"type": "string", "pattern": "^a+$"}}}),
        json!({"type": "array", "items": {"type": "integer"}}),
        json!({"$defs": {"a": {"enum": [1, "x"]}}, "properties": {"n": {"$ref": "#/$defs/a"}}}),
        json!({"unevaluatedItems": false}),
        json!({"type": "claim", "pattern": "(?=a)"}),
        json!({"pattern": "(?=a)"}),
    ])
}

/// A small change of a document.
#[derive(Debug, Clone)]
enum Edit {
    Schema(usize, Value),
    Port(prop::sample::Index, usize),
    Label(prop::sample::Index, String),
    Mapping(usize, Value),
    Gate(Value),
    Cut(prop::sample::Index),
    Join(usize, usize),
    Version(i64),
}

const SCHEMAS: [&str; 6] = ["s0", "s1", "s2", "s3", "std.text", "std.any"];
const SOURCES: [&str; 5] = ["in.data", "g.pass", "g.fail", "a.success", "m.data"];
const TARGETS: [&str; 5] = ["g.input", "a.input", "m.items", "o.input", "p.input"];

fn edit() -> impl Strategy<Value = Edit> {
    let pointer = || prop::sample::select(vec!["", "/n", "/n/x", "/m", "/0", "n"]);
    let binding = prop_oneof![
        schema().prop_map(|value| json!({"kind": "literal", "value": value})),
        (0..SOURCES.len(), pointer()).prop_map(|(source, pointer)| {
            let (node, port) = SOURCES[source].split_once('.').unwrap();
            json!({"kind": "path", "sourceNodeId": node, "sourcePort": port, "pointer": pointer})
        }),
        Just(json!({"kind": "template", "template": "{{ run.id }}", "variables": []})),
    ];
    let mapping = (pointer(), binding)
        .prop_map(|(target, binding)| json!({"targetPointer": target, "binding": binding}));
    let gate = pointer().prop_map(
        |pointer| json!({"version": 1, "expr": {"eq": [{"read": pointer}, {"literal": "1"}]}}),
    );
    prop_oneof![
        4 => (0_usize..4, schema()).prop_map(|(at, schema)| Edit::Schema(at, schema)),
        4 => (any::<prop::sample::Index>(), 0..SCHEMAS.len()).prop_map(|(at, to)| Edit::Port(at, to)),
        2 => (any::<prop::sample::Index>(), "[a-z]{0,3}").prop_map(|(at, to)| Edit::Label(at, to)),
        4 => (3_usize..6, prop::collection::vec(mapping, 0..3))
            .prop_map(|(at, mappings)| Edit::Mapping(at, json!(mappings))),
        1 => gate.prop_map(Edit::Gate),
        1 => any::<prop::sample::Index>().prop_map(Edit::Cut),
        3 => (0..SOURCES.len(), 0..TARGETS.len()).prop_map(|(from, to)| Edit::Join(from, to)),
        1 => (1_i64..3).prop_map(Edit::Version),
    ]
}

/// Nodes 0 to 2 have no mappings, 3 to 5 may.
fn start() -> Value {
    let nodes = json!([
        input("in", "s0"),
        gate("g", "s0"),
        merge("m"),
        action("a"),
        output("o", "s1"),
        output("p", "s2"),
    ]);
    let edges = json!([
        edge("e0", "in.data", "g.input"),
        edge("e1", "g.pass", "a.input"),
        edge("e2", "g.fail", "m.items"),
        edge("e3", "a.success", "m.items"),
        edge("e4", "m.data", "o.input"),
        edge("e5", "in.data", "p.input"),
    ]);
    let schemas = json!({"s0": {"type": "object"}, "s1": true, "s2": true, "s3": true});
    json!({"schemaVersion": 1, "nodes": nodes, "edges": edges, "schemas": schemas, "layout": {}})
}

fn change(document: &mut Value, edit: &Edit) {
    match edit {
        Edit::Schema(at, schema) => document["schemas"][SCHEMAS[*at]] = schema.clone(),
        Edit::Port(at, to) => {
            let node = at.index(document["nodes"].as_array().unwrap().len());
            let ports = document["nodes"][node]["ports"].as_object_mut().unwrap();
            if let Some(port) = ports.values_mut().next() {
                *port = json!(SCHEMAS[*to]);
            }
        }
        Edit::Label(at, to) => {
            let node = at.index(document["nodes"].as_array().unwrap().len());
            document["nodes"][node]["label"] = json!(to);
        }
        Edit::Mapping(at, mappings) => document["nodes"][*at]["mappings"] = mappings.clone(),
        Edit::Gate(logic) => document["nodes"][1]["logic"] = logic.clone(),
        Edit::Cut(at) => {
            let edges = document["edges"].as_array_mut().unwrap();
            let at = at.index(edges.len());
            edges.remove(at);
        }
        Edit::Join(from, to) => {
            let edges = document["edges"].as_array_mut().unwrap();
            let id = format!("n{}", edges.len());
            edges.push(edge(&id, SOURCES[*from], TARGETS[*to]));
        }
        Edit::Version(version) => document["schemaVersion"] = json!(version),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn s6_a_check_with_a_memory_finds_what_a_fresh_one_finds(
        edits in prop::collection::vec(edit(), 1..12),
    ) {
        let mut document = start();
        let catalogue = Catalogue::read(&catalogue()).unwrap();
        let limits = Limits::default();
        let mut memory = Memory::default();
        let mut compare = |document: &Value, catalogue: Option<&Catalogue>| {
            let graph = Graph::read(document).unwrap();
            let found: Vec<Issue> = check_with(&mut memory, &graph, catalogue, &limits);
            assert_eq!(found, check(&graph, catalogue, &limits));
        };
        compare(&document, Some(&catalogue));
        for (at, edit) in edits.iter().enumerate() {
            change(&mut document, edit);
            compare(&document, (at % 3 != 2).then_some(&catalogue));
        }
    }
}
