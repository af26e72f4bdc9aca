//! Clauses of schemas that a vector cannot say: secrets, hostile sizes, examples (S2–S5, G4).

#![expect(clippy::expect_used, reason = "what helps a test may stop it")]

use std::time::{Duration, Instant};

use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::schema::{BUILT_IN, Compatibility, Schema, built_in, compare};
use sluicegate_core::value::Value;

fn accept(schema: &Value) -> Schema {
    Schema::accept(schema).expect("a schema of the subset")
}

#[track_caller]
fn secrets(schema: Value, value: Value, expected: &[&str]) {
    let schema = accept(&schema);
    assert!(schema.holds_secret());
    let found: Vec<_> = schema.secrets(&value).into_iter().collect();
    let pointers: Vec<_> = found.iter().map(|(at, _)| at.to_string()).collect();
    assert_eq!(pointers, expected);
    for (pointer, secret) in found {
        assert_eq!(pointer.read(&value), Some(secret));
    }
}

#[test]
fn s5_secrets_are_found_through_every_applicator() {
    let secret = json!({"writeOnly": true});
    let value = json!({"key": "k", "list": [1, 2], "x-1": "p", "other": {"deep": "d"}});
    let of = |keywords: Value, expected: &[&str]| secrets(keywords, value.clone(), expected);
    of(json!({"properties": {"key": secret}}), &["/key"]);
    of(json!({"patternProperties": {"^x-": secret}}), &["/x-1"]);
    of(
        json!({"properties": {"key": true, "list": true}, "patternProperties": {"^x": true},
        "additionalProperties": secret}),
        &["/other"],
    );
    of(
        json!({"properties": {"list": {"items": secret}}}),
        &["/list/0", "/list/1"],
    );
    of(
        json!({"properties": {"list": {"prefixItems": [true, secret]}}}),
        &["/list/1"],
    );
    of(
        json!({"properties": {"list": {"contains": {"const": 2, "writeOnly": true}}}}),
        &["/list/0", "/list/1"],
    );
    of(
        json!({"$defs": {"s": secret}, "properties": {"key": {"$ref": "#/$defs/s"}}}),
        &["/key"],
    );
    for branches in ["allOf", "anyOf", "oneOf"] {
        of(
            json!({branches: [{"required": ["none"], "properties": {"key": secret}}, true]}),
            &["/key"],
        );
    }
    for branch in ["not", "if", "then", "else"] {
        of(
            json!({branch: {"properties": {"other": {"properties": {"deep": secret}}}}}),
            &["/other/deep"],
        );
    }
    // A secret inside a secret is one secret.
    of(
        json!({"properties": {"other": {"writeOnly": true, "properties": {"deep": secret}}},
        "anyOf": [{"properties": {"other": {"properties": {"deep": secret}}}}]}),
        &["/other"],
    );
    of(json!({"writeOnly": true}), &[""]);
    of(json!({"properties": {"absent": secret}}), &[]);
}

#[test]
fn s5_what_is_not_marked_is_no_secret() {
    for plain in [
        json!({"properties": {"key": {"writeOnly": false}}}),
        json!({"properties": {"key": {"readOnly": true}}}),
        json!(true),
    ] {
        let schema = accept(&plain);
        assert!(!schema.holds_secret());
        assert!(schema.secrets(&json!({"key": "k"})).is_empty());
    }
}

#[test]
fn g4_b107_texts_never_quote_a_value() {
    let schema = accept(&json!({"properties": {
        "a": {"type": "integer"}, "b": {"const": 1}, "c": {"enum": [1, 2]}, "d": {"pattern": "^x"},
        "e": {"format": "email"}, "f": {"minLength": 99}, "g": {"maxLength": 1}, "h": {"not": {}},
        "i": {"anyOf": [{"type": "null"}, {"type": "object"}]}, "j": {"oneOf": [false, false]},
        "k": false, "l": {"items": {"type": "null"}}, "m": {"propertyNames": {"maxLength": 0}}
    }}));
    let value: serde_json::Map<String, Value> = "abcdefghijk"
        .chars()
        .map(|name| (name.to_string(), json!("hunter2")))
        .collect();
    let mut value = Value::Object(value);
    value["l"] = json!(["hunter2"]);
    value["m"] = json!({"hunter2": 1});
    let failures = schema.validate(&value);
    assert_eq!(failures.len(), 13);
    for failure in failures {
        assert!(!failure.message.contains("hunter2"), "{failure:?}");
    }
}

/// A tree of references that doubles at every step.
fn doubling(steps: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".into(), json!({"type": "string"}));
    for step in 1..=steps {
        let below = json!({"$ref": format!("#/$defs/d{}", step - 1)});
        definitions.insert(format!("d{step}"), json!({"allOf": [below, below]}));
    }
    json!({"$defs": definitions, "$ref": format!("#/$defs/d{steps}")})
}

fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = work();
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    made
}

#[test]
fn s2_a_tree_of_references_that_doubles_is_refused_in_time() {
    let faults = quickly(|| Schema::accept(&doubling(100)).unwrap_err());
    let codes: Vec<_> = faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [Code::SchemaTooLarge, Code::SchemaTooDeep]);
}

#[test]
fn s2_long_chains_of_references_end() {
    let mut definitions = serde_json::Map::new();
    for step in 0..300 {
        definitions.insert(
            format!("d{step}"),
            json!({"$ref": format!("#/$defs/d{}", step + 1)}),
        );
    }
    definitions.insert("d300".into(), json!(true));
    let faults = quickly(|| {
        Schema::accept(&json!({"$defs": definitions, "$ref": "#/$defs/d0"})).unwrap_err()
    });
    assert_eq!(faults.first().unwrap().code, Code::SchemaTooDeep);
    definitions.insert("d300".into(), json!({"$ref": "#/$defs/d0"}));
    let faults = quickly(|| Schema::accept(&json!({"$defs": definitions})).unwrap_err());
    assert_eq!(faults.first().unwrap().code, Code::SchemaRecursive);
}

#[test]
fn g4_a_hostile_pair_of_schema_and_value_lists_one_failure() {
    let schema = json!({"items": {"allOf": vec![json!({"type": "string", "minimum": 1}); 400]}});
    let schema = accept(&schema);
    let value = json!(vec![0; 20_000]);
    assert_eq!(quickly(|| schema.validate(&value)).len(), 1);
}

#[test]
fn s6_hostile_comparisons_are_given_up() {
    let alternatives = |word: &str| {
        let branch = |i: usize| json!({"properties": {format!("{word}{i}"): {"minimum": i}}});
        let any: Vec<_> = (0..6)
            .map(|_| json!({"anyOf": (0..6).map(branch).collect::<Vec<_>>()}))
            .collect();
        accept(&json!({"allOf": any, "oneOf": any}))
    };
    let (a, b) = (alternatives("a"), alternatives("b"));
    assert_eq!(quickly(|| compare(&a, &b)), Compatibility::Unknown);
    quickly(|| {
        let pointer = sluicegate_core::value::Pointer::parse("/a1/b2/c3").unwrap();
        a.reach(&pointer)
    });
}

#[test]
fn s3_hostile_patterns_match_in_linear_time() {
    let schema = accept(&json!({"pattern": "^(a|a)*(b?){20}c$"}));
    let text = json!("a".repeat(60_000));
    assert!(!quickly(|| schema.is_valid(&text)));
}

#[test]
fn s6_examples_fit() {
    for schema in [
        json!(true),
        json!({"type": "string", "minLength": 20}),
        json!({"type": "string", "pattern": "^[A-Z]{2}-\\d{4}$"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "integer", "exclusiveMinimum": 4, "multipleOf": 3}),
        json!({"type": "integer", "maximum": -7}),
        json!({"type": "number", "minimum": 0.1, "maximum": 0.2}),
        json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string"}}),
        json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"enum": [1, 2, 3]}}),
        json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
        json!({"type": "object", "minProperties": 3}),
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "null"},
            "b": {"type": "array", "items": {"type": "object", "required": ["c"]}}}}),
        json!({"type": "object", "minProperties": 1, "patternProperties": {"^x-[0-9]$": {"type": "integer"}},
            "additionalProperties": false}),
        json!({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "object", "required": ["k"]}]}),
        json!({"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["v"]}, "type": "object",
            "required": ["k"]}),
        json!({"$defs": {"a": {"type": "integer", "minimum": 3}}, "properties": {"x": {"$ref": "#/$defs/a"}},
            "required": ["x"]}),
        json!({"type": "string", "examples": ["mine"]}),
    ] {
        let accepted = accept(&schema);
        let example = accepted
            .example()
            .unwrap_or_else(|| panic!("no example of {schema}"));
        assert!(accepted.is_valid(&example), "{schema}: {example}");
    }
    assert_eq!(
        accept(&json!({"type": "string", "examples": ["mine"]})).example(),
        Some(json!("mine"))
    );
    assert_eq!(accept(&json!(false)).example(), None);
    assert_eq!(
        accept(&json!({"type": "string", "minLength": 3, "maxLength": 2})).example(),
        None
    );
    for id in BUILT_IN {
        assert!(built_in(id).unwrap().example().is_some(), "{id}");
    }
}

/// Work that is bounded must stay far below this, on a slow machine too.
fn briefly<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = work();
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(10), "{taken:?}");
    made
}

#[test]
fn g4_failures_are_weighed_before_they_are_made() {
    let names: Vec<_> = (0..1_500).map(|i| format!("n{i}")).collect();
    let closed = json!({"additionalProperties": false});
    let long = "x".repeat(60_000);
    let many = |text: &str| json!(vec![json!(text); 16_000]);
    let pairs = [
        // Every item lacks every name.
        (
            json!({"items": {"required": names}}),
            json!(vec![json!({}); 16_000]),
        ),
        // Every error repeats the list.
        (
            json!({"items": {"enum": (0..1_000).map(|i| json!([i])).collect::<Vec<_>>()}}),
            many(""),
        ),
        // Every error lists all names.
        (
            json!({"allOf": vec![closed; 500]}),
            Value::Object((0..10_000).map(|i| (format!("{i}"), json!(0))).collect()),
        ),
        // Every error repeats the way.
        (
            json!({"additionalProperties": {"allOf": vec![json!({"type": "null"}); 400]}}),
            json!({long.as_str(): 1}),
        ),
        // Alternatives carry the failures of their branches.
        (
            json!({"anyOf": [{"items": {"allOf": vec![json!({"minimum": 5}); 400]}}]}),
            json!(vec![0; 16_000]),
        ),
    ];
    for (schema, value) in pairs {
        let schema = accept(&schema);
        let failures = briefly(|| schema.validate(&value));
        assert!(matches!(failures.len(), 1..=1_000), "{}", failures.len());
        assert!(briefly(|| schema.first_failure(&value)).is_some());
        assert!(!schema.is_valid(&value));
    }
}

#[test]
fn g4_at_most_a_thousand_failures_are_listed() {
    let schema = accept(&json!({"items": {"type": "string"}}));
    let failures = schema.validate(&json!(vec![0; 5_000]));
    assert_eq!(failures.len(), 1_000);
    assert_eq!(failures.first().unwrap().path, "/0");
    let few = json!(["a", 1, 2]);
    assert_eq!(schema.validate(&few).len(), 2);
    assert_eq!(
        schema.first_failure(&few),
        schema.validate(&few).into_iter().next()
    );
    assert_eq!(schema.first_failure(&json!(["a"])), None);
}

#[test]
fn g4_messages_quote_no_more_than_eighty_characters() {
    let long = "ä".repeat(500);
    let schema = accept(
        &json!({"required": [long], "properties": {"p": {"pattern": long}},
        "additionalProperties": false}),
    );
    let failures = schema.validate(&json!({"p": "x", format!("{long}!"): 1}));
    assert_eq!(failures.len(), 3);
    for failure in failures {
        assert!(failure.message.chars().count() < 130, "{}", failure.message);
        // A name that the value has may be a secret, which is never cut (S5).
        let (said, what) = (&failure.message, failure.keyword.as_str());
        let quoted = if what == "additionalProperties" {
            "a name of 501 characters"
        } else {
            "ää\"…"
        };
        assert!(said.contains(quoted), "{said}");
    }
    let faults = Schema::accept(&json!({ "x".repeat(9_000): 1 })).unwrap_err();
    assert!(faults.first().unwrap().message.len() < 150);
}

#[test]
fn s3_assertions_that_ecma_262_does_not_have_are_refused() {
    for pattern in [r"^\<a\>$", r"^\z", r"\Aa", r"\b{start}a", r"[\<]\>"] {
        let faults = Schema::accept(&json!({"pattern": pattern})).unwrap_err();
        let codes: Vec<_> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [Code::SchemaPatternUnsupported], "{pattern}");
    }
    for pattern in [r"^<a>$", r"^\\<a>$", r"\ba\B", "[Az]"] {
        accept(&json!({"pattern": pattern}));
    }
}

#[test]
fn s3_a_pattern_with_a_large_program_is_refused() {
    for pattern in ["[ab]*a[ab]{6000}1", "(a{100}){100}", "(x?){3000}"] {
        let faults = Schema::accept(&json!({"pattern": pattern})).unwrap_err();
        let codes: Vec<_> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [Code::SchemaPatternUnsupported], "{pattern}");
    }
    for (pattern, text) in [
        ("^c-[0-9]{1,9}$", "c-12"),
        ("^[a-z0-9][a-z0-9_-]{1,128}$", "ab-c"),
        (r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$", "a.b@c.example"),
        (
            r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
            "2026-01-31T10:11:12Z",
        ),
        (r"^\p{Lu}\p{L}*$", "Ärger"),
        ("^[^@\\s]{1,64}$", "ä"),
    ] {
        let schema = accept(&json!({ "pattern": pattern }));
        assert!(schema.is_valid(&json!(text)), "{pattern}");
    }
    // The largest program that is let in, on the largest text.
    let text = json!("ab".repeat(32_000));
    let schema = accept(&json!({"pattern": "[ab]*a[ab]{800}1"}));
    assert!(!briefly(|| schema.is_valid(&text)));
}
