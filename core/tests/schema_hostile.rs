//! No schema and no value overflows the stack, takes time that its size does not explain, or
//! reaches anything outside (S2, S3, G4). Every question is asked on a small stack.

#![expect(clippy::unwrap_used, reason = "what helps a test may stop it")]

use std::time::{Duration, Instant};

use serde_json::{Map, json};
use sluicegate_core::code::Code;
use sluicegate_core::schema::{Schema, compare};
use sluicegate_core::value::{Pointer, Value, canonical_len};

/// What WebAssembly has; frames of a test build are larger than those of a release.
const STACK: usize = 1 << 20;

/// Far above what bounded work takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn on_a_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let begun = Instant::now();
        let given = thread.spawn_scoped(scope, work).unwrap().join().unwrap();
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        given
    })
}

/// The codes of the faults; empty: accepted. What is accepted is asked everything.
fn ask(schema: &Value, values: &[Value]) -> Vec<&'static str> {
    on_a_small_stack(|| {
        let schema = match Schema::accept(schema) {
            Ok(schema) => schema,
            Err(faults) => return faults.iter().map(|fault| fault.code.as_str()).collect(),
        };
        for value in values {
            assert!(canonical_len(value) <= 65_536, "no value is larger");
            let failures = schema.validate(value);
            assert_eq!(failures.is_empty(), schema.is_valid(value));
            assert_eq!(failures.is_empty(), schema.first_failure(value).is_none());
            let _ = schema.secrets(value);
        }
        if let Some(example) = schema.example() {
            assert!(schema.is_valid(&example));
        }
        let other = Schema::accept(&json!({"type": ["object", "array"], "minItems": 1})).unwrap();
        let _ = (compare(&schema, &other), compare(&other, &schema));
        for pointer in ["/a", "/0", "/a/b/0/a", &"/0".repeat(64)] {
            let _ = schema.reach(&Pointer::parse(pointer).unwrap());
        }
        Vec::new()
    })
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "null"}), |inner, _| wrap(inner))
}

/// Values as deep as J4 lets them be.
fn deep_values() -> Vec<Value> {
    let array = (0..64).fold(json!(0), |inner, _| json!([inner]));
    let object = (0..64).fold(json!(0), |inner, _| json!({ "a": inner }));
    vec![array, object, json!(null)]
}

/// Puts one applicator around a schema.
type Wrap = fn(Value) -> Value;

#[test]
fn s2_depth_16_passes_and_17_is_refused_in_every_applicator() {
    let wraps: [(&str, Wrap); 12] = [
        ("not", |s| json!({ "not": s })),
        ("if", |s| json!({ "if": s, "then": false })),
        ("then", |s| json!({ "if": true, "then": s })),
        ("else", |s| json!({ "if": true, "else": s })),
        ("allOf", |s| json!({ "allOf": [s, true] })),
        ("anyOf", |s| json!({ "anyOf": [false, s] })),
        ("oneOf", |s| json!({ "oneOf": [s] })),
        ("items", |s| json!({ "items": s })),
        ("prefixItems", |s| json!({ "prefixItems": [s] })),
        ("contains", |s| json!({ "contains": s })),
        ("properties", |s| json!({ "properties": { "a": s } })),
        (
            "additionalProperties",
            |s| json!({ "additionalProperties": s }),
        ),
    ];
    for (name, wrap) in wraps {
        assert!(ask(&nested(15, wrap), &deep_values()).is_empty(), "{name}");
        assert_eq!(ask(&nested(16, wrap), &[]), ["schema.too-deep"], "{name}");
        // As deep as a document may be nested, and beyond.
        for levels in [30, 62, 70] {
            let codes = ask(&nested(levels, wrap), &[]);
            assert!(
                matches!(codes[..], ["schema.too-deep" | "schema.invalid"]),
                "{name} {levels}: {codes:?}"
            );
        }
    }
}

#[test]
fn s2_depth_counts_through_references() {
    let chain = |links: usize| {
        let mut definitions = Map::new();
        for link in 1..links {
            let next = json!({"$ref": format!("#/$defs/d{}", link + 1)});
            definitions.insert(format!("d{link}"), next);
        }
        definitions.insert(format!("d{links}"), json!(true));
        json!({"$defs": definitions, "$ref": "#/$defs/d1"})
    };
    assert!(ask(&chain(15), &deep_values()).is_empty());
    assert_eq!(ask(&chain(16), &[]), ["schema.too-deep"]);
    // As long as 16 KiB hold.
    assert_eq!(ask(&chain(450), &[]), ["schema.too-deep"]);
    // Each link as deep as may be: nothing is walked once for each way to it.
    let mut definitions = Map::new();
    for link in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", link + 1)});
        definitions.insert(format!("d{link}"), nested_under(next, 12));
    }
    definitions.insert("d60".into(), json!(true));
    let codes = ask(&json!({"$defs": definitions, "$ref": "#/$defs/d0"}), &[]);
    assert_eq!(codes, ["schema.too-deep"]);
}

fn nested_under(leaf: Value, levels: usize) -> Value {
    (0..levels).fold(leaf, |inner, _| json!({ "not": inner }))
}

#[test]
fn s2_4096_subschemas_pass_and_one_more_is_refused() {
    // One root, n references and what they name: 1 + n + n times the target.
    let document = |references: usize, inside: usize, more: usize| {
        json!({
            "$defs": {"d": {"prefixItems": vec![json!(true); inside]}},
            "allOf": vec![json!({"$ref": "#/$defs/d"}); references],
            "anyOf": vec![json!(true); more],
        })
    };
    // 1 + 63 · (1 + 1 + 63) = 4096.
    let most = json!({
        "$defs": {"d": {"prefixItems": vec![json!(true); 63]}},
        "allOf": vec![json!({"$ref": "#/$defs/d"}); 63],
    });
    assert!(ask(&most, &[json!([1, 2, 3]), json!(null)]).is_empty());
    assert_eq!(ask(&document(63, 63, 1), &[]), ["schema.too-large"]);
    // Definitions that nothing names are not expanded.
    let mut unused = most.clone();
    unused["$defs"]["e"] = json!({"allOf": vec![json!(true); 100]});
    assert!(ask(&unused, &[]).is_empty());
}

#[test]
fn s2_references_that_double_are_refused_before_they_are_expanded() {
    for (steps, fold) in [(12, 2), (15, 2), (7, 8), (15, 30), (400, 2)] {
        let mut definitions = Map::new();
        definitions.insert("d0".into(), json!({"type": "string"}));
        for step in 1..=steps {
            let below = json!({"$ref": format!("#/$defs/d{}", step - 1)});
            let fold = if steps > 100 { 1 } else { fold };
            let name = format!("d{step}");
            let word = ["allOf", "anyOf", "oneOf", "prefixItems"][step % 4];
            definitions.insert(name, json!({ word: vec![below; fold] }));
        }
        let schema = json!({"$defs": definitions, "$ref": format!("#/$defs/d{steps}")});
        let codes = ask(&schema, &[json!("a")]);
        assert!(
            codes.contains(&"schema.too-large") || codes == ["schema.too-deep"],
            "{codes:?}"
        );
    }
}

#[test]
fn s2_a_schema_of_16_kib_passes_and_one_byte_more_is_refused() {
    let most = 16_384;
    let filled = |letters: usize| json!({ "title": "x".repeat(letters) });
    let room = most - canonical_len(&filled(0));
    assert!(ask(&filled(room), &[]).is_empty());
    assert_eq!(ask(&filled(room + 1), &[]), ["schema.too-large"]);
    // The wide, the many, the long, as large as a schema may be.
    let wide = |n: usize, part: fn(usize) -> Value| -> Vec<Value> { (0..n).map(part).collect() };
    let names = |n: usize| -> Map<String, Value> {
        (0..n).map(|i| (format!("p{i}"), json!(true))).collect()
    };
    let values = [
        json!(vec![json!({}); 16_000]),
        json!(wide(10_000, |i| json!(i))),
        json!({"a": "x".repeat(60_000)}),
        Value::Object(names(5_000)),
    ];
    for schema in [
        json!({"enum": wide(3_000, |i| json!(i))}),
        json!({"enum": wide(700, |i| json!({ "a": [i] }))}),
        json!({"items": {"enum": wide(1_000, |i| json!({ "a": [i] }))}}),
        json!({"items": {"const": (0..60).fold(json!(0), |inner, _| json!([inner]))}}),
        json!({"allOf": wide(800, |i| json!({ "minLength": i }))}),
        json!({"items": {"anyOf": wide(500, |i| json!({ "const": i }))}}),
        json!({"items": {"oneOf": wide(500, |i| json!({ "minimum": i }))}}),
        json!({"contains": {"anyOf": wide(500, |i| json!({ "const": [i] }))}}),
        json!({"properties": names(1_000)}),
        json!({"required": names(1_500).keys().collect::<Vec<_>>()}),
        json!({"additionalProperties": {"allOf": wide(400, |_| json!({"type": "null"}))}}),
        json!({"propertyNames": {"anyOf": wide(400, |i| json!({ "minLength": i + 9 }))}}),
        json!({"dependentRequired": names(700).keys().map(|name| (name.clone(),
            json!(["z"]))).collect::<Map<_, _>>()}),
    ] {
        assert!(canonical_len(&schema) <= most);
        assert!(ask(&schema, &values).is_empty());
    }
}

#[test]
fn s2_extreme_numbers_in_keywords() {
    let most = 9_007_199_254_740_991_u64;
    let values = [
        json!([]),
        json!(vec![1; 1_000]),
        json!({"a": 1}),
        json!("a"),
        json!(most),
        json!(0.1),
    ];
    for keyword in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        assert!(ask(&json!({ keyword: most }), &values).is_empty());
    }
    for keyword in ["minContains", "maxContains"] {
        assert!(ask(&json!({"contains": true, keyword: most}), &values).is_empty());
        assert!(ask(&json!({ keyword: most }), &values).is_empty());
    }
    let contains = Schema::accept(&json!({"contains": true, "minContains": most})).unwrap();
    assert!(!contains.is_valid(&json!(vec![1; 1_000])));
    for number in [
        most as f64,
        -(most as f64),
        5e-324,
        -5e-324,
        1e-300,
        0.1,
        4_503_599_627_370_496.5,
    ] {
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            assert!(ask(&json!({ keyword: number }), &values).is_empty());
        }
    }
    for step in [
        5e-324,
        1e-300,
        1e-10,
        0.1,
        0.3,
        123.456,
        most as f64,
        2.225e-308,
    ] {
        assert!(
            ask(&json!({ "multipleOf": step }), &values).is_empty(),
            "{step}"
        );
        assert!(
            ask(
                &json!({ "multipleOf": step, "minimum": 1, "type": "number" }),
                &values
            )
            .is_empty()
        );
    }
}

/// B047: what is a multiple is judged as the numbers are written, not by a division of doubles.
#[test]
fn s1_b047_multiples_of_decimals() {
    for (step, good, bad) in [
        (
            "0.1",
            "0.3 1 0 -0.7 1e3 4503599627370496 0.1",
            "0.35 0.05 1e-9 1.23",
        ),
        ("0.01", "0.07 4.35 19.99 1.1 -0.29 100", "0.075 0.001 4.355"),
        ("0.3", "0.9 3 0.3 1.2", "1 0.1 0.31"),
        ("1e-8", "1e-8 0.00000003 12391239123 0.1", "1e-9 15e-9"),
        ("0.0001", "0.0075 1", "0.00751"),
        ("1.5", "4.5 0 9 -1.5", "35 1"),
        (
            "11.0",
            "9007199254740984 11 -121",
            "9007199254740985 12 0.5",
        ),
        ("0.5", "1e15 4503599627370495.5", "0.25"),
        ("1", "1 -5 1e15", "0.5 1e-10"),
        ("7", "49 0", "50 0.7"),
    ] {
        let schema = format!(r#"{{"multipleOf": {step}}}"#);
        let schema = Schema::accept(&sluicegate_core::value::read(&schema).unwrap()).unwrap();
        for (texts, expected) in [(good, true), (bad, false)] {
            for text in texts.split(' ') {
                let value = sluicegate_core::value::read(text).unwrap();
                assert_eq!(schema.is_valid(&value), expected, "{text} by {step}");
            }
        }
    }
}

#[test]
fn s3_hostile_patterns_are_refused_or_linear() {
    let text = json!("a".repeat(65_000));
    let other = json!(format!("{}!", "a".repeat(65_000)));
    for pattern in [
        "(a+)+$",
        "^(a+)+$",
        "(a|a)*b",
        "(a*)*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*)*(.*)*x",
        "a?{0}",
        "(a?){60}a{60}",
        "^(a|aa)+$",
        "(x+x+)+y",
        "\\p{L}*\\p{N}",
        "^\\p{Lu}",
        "[\\d\\D]*b",
        "",
        "^$",
        "()",
        "(|a)*b",
        "(?:a{0,9}){0,9}b",
        "\\b\\B",
        "^^^^$$$$",
    ] {
        let schema = json!({"pattern": pattern, "type": "string"});
        let codes = ask(&schema, &[text.clone(), other.clone(), json!("")]);
        assert!(
            matches!(
                codes[..],
                [] | ["schema.invalid"] | ["schema.pattern-unsupported"]
            ),
            "{pattern}: {codes:?}"
        );
        let names = json!({"patternProperties": {pattern: {"writeOnly": true}}});
        let long = json!({"a".repeat(60_000): 1});
        assert_eq!(
            ask(&names, &[long]).is_empty(),
            codes.is_empty(),
            "{pattern}"
        );
    }
    let deep = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    for (pattern, code) in [
        ("a{1000}{1000}", "schema.pattern-unsupported"),
        ("(((a{100}){100}){100}){100}", "schema.pattern-unsupported"),
        ("(a?){4294967295}", "schema.pattern-unsupported"),
        ("[^\\x00]{100000}", "schema.pattern-unsupported"),
        ("\\w{9999}", "schema.pattern-unsupported"),
        ("(?=a)a", "schema.pattern-unsupported"),
        ("(?!a)a", "schema.pattern-unsupported"),
        ("(?<=a)a", "schema.pattern-unsupported"),
        ("(?<!a)a", "schema.pattern-unsupported"),
        ("(a)\\1", "schema.pattern-unsupported"),
        ("(?<n>a)\\k<n>", "schema.pattern-unsupported"),
        ("a{99999999999999999999}", "schema.invalid"),
        ("a{2,1}", "schema.invalid"),
        ("\\p{Nonsense}", "schema.invalid"),
        ("[z-a]", "schema.invalid"),
        ("(", "schema.invalid"),
        (&deep(5_000), "schema.invalid"),
    ] {
        assert_eq!(
            ask(&json!({ "pattern": pattern }), &[]),
            [code],
            "{pattern:.60}"
        );
    }
    let _ = ask(&json!({ "pattern": deep(200) }), &[text]);
}

#[test]
fn s1_unique_items_of_large_arrays_are_compared_in_time() {
    let unique = json!({"uniqueItems": true});
    let arrays: Vec<Value> = vec![
        (0..9_000).map(|i| json!(i)).collect(),
        (0..5_000).map(|i| json!(format!("{i}"))).collect(),
        (0..5_000).map(|i| json!({ "a": i })).collect(),
        (0..5_000).map(|i| json!([[i]])).collect(),
        (0..2_500).map(|i| json!({"k": {"a": 1, "b": i}})).collect(),
        (0..8_000).map(|i| json!(f64::from(i) + 0.5)).collect(),
    ];
    let accepted = Schema::accept(&unique).unwrap();
    for mut array in arrays {
        assert!(ask(&unique, std::slice::from_ref(&array)).is_empty());
        assert!(accepted.is_valid(&array));
        let items = array.as_array_mut().unwrap();
        let first = items[0].clone();
        items.push(first);
        assert!(!accepted.is_valid(&array));
    }
    for (twice, equal) in [
        (json!([1, 1.0]), true),
        (json!([0, -0.0]), true),
        (json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]), true),
        (json!([[1], [true]]), false),
        (json!([1, "1"]), false),
        (json!([0, false, null, "", [], {}]), false),
        (json!(["é", "e\u{301}"]), false),
    ] {
        assert_eq!(accepted.is_valid(&twice), !equal, "{twice}");
    }
}

#[test]
fn s2_alternatives_inside_alternatives_do_not_multiply() {
    // Each level asks its branches once; nothing is asked 2^depth times.
    for word in ["anyOf", "oneOf", "allOf"] {
        let schema = (0..8).fold(
            json!({"minimum": 5}),
            |inner, _| json!({ word: [inner, inner] }),
        );
        let codes = ask(&schema, &[json!(1), json!(9), json!("a")]);
        assert!(codes.is_empty(), "{word}: {codes:?}");
    }
    for word in ["not", "if", "contains", "items", "additionalProperties"] {
        let schema = nested(15, |inner| json!({ word: inner }));
        assert!(ask(&schema, &deep_values()).is_empty(), "{word}");
    }
    let conditions = (0..5).fold(
        json!({"const": 1}),
        |inner, _| json!({"if": inner, "then": inner, "else": inner}),
    );
    assert!(ask(&conditions, &[json!(1), json!(2)]).is_empty());
}

#[test]
fn s2_nothing_outside_is_asked() {
    // Were one of these followed, it would be refused as unreachable, not by its keyword.
    for schema in [
        json!({"$ref": "http://127.0.0.1:9/s.json"}),
        json!({"$id": "http://127.0.0.1:9/s.json", "type": "string"}),
        json!({"$dynamicRef": "http://127.0.0.1:9/s.json#x"}),
        json!({"$schema": "http://127.0.0.1:9/meta.json"}),
        json!({"items": {"$ref": "file:///etc/hostname"}}),
        json!({"$defs": {"d": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}),
    ] {
        let begun = Instant::now();
        let faults = Schema::accept(&schema).unwrap_err();
        assert_eq!(faults.len(), 1);
        assert!(matches!(
            faults[0].code,
            Code::SchemaKeywordUnsupported | Code::SchemaInvalid
        ));
        assert!(begun.elapsed() < PATIENCE);
    }
}

/// S5 errs towards hiding: what would take too long to look through is a secret as a whole.
#[test]
fn s5_secrets_of_a_hostile_pair_are_the_whole_value() {
    let branch = json!({"items": {"writeOnly": true}});
    let schema = Schema::accept(&json!({"items": {"anyOf": vec![branch; 500]}})).unwrap();
    let few = json!([[1], [2, 3], 4]);
    let found: Vec<_> = schema
        .secrets(&few)
        .into_iter()
        .map(|(at, _)| at.to_string())
        .collect();
    assert_eq!(found, ["/0/0", "/1/0", "/1/1"]);
    let many = json!(vec![json!([1]); 16_000]);
    let begun = Instant::now();
    let found = schema.secrets(&many);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0.to_string().as_str(), found[0].1), ("", &many));
    assert!(begun.elapsed() < PATIENCE);
}
