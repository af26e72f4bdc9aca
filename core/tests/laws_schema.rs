//! Laws of the schema module over generated schemas and values (S1–S6).

#![expect(clippy::unwrap_used, reason = "what helps a test may stop it")]

use proptest::prelude::*;
use serde_json::{Map, json};
use sluicegate_core::schema::{Compatibility, Reach, Schema, compare};
use sluicegate_core::value::{Pointer, Value, canonical, normalise, read};

/// Values that schemas like ours are about: few names, few texts, small numbers.
fn values() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i64..6).prop_map(Value::from),
        (-3_i64..6).prop_map(|n| json!(n as f64 + 0.5)),
        "[ab]{0,3}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
    .boxed()
}

/// One keyword of the subset that holds no schema.
fn assertion() -> BoxedStrategy<(&'static str, Value)> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let types = vec![
        "null", "boolean", "object", "array", "number", "integer", "string",
    ];
    let count = |keywords: &[&'static str]| {
        (prop::sample::select(keywords.to_vec()), 0_u64..4).prop_map(|(k, n)| (k, json!(n)))
    };
    prop_oneof![
        4 => prop::sample::select(types.clone()).prop_map(|name| ("type", json!(name))),
        2 => prop::sample::subsequence(types, 1..4).prop_map(|names| ("type", json!(names))),
        2 => prop::collection::vec(values(), 0..3).prop_map(|values| ("enum", json!(values))),
        1 => values().prop_map(|value| ("const", value)),
        2 => prop::sample::subsequence(vec!["a", "b", "c"], 0..3)
            .prop_map(|names| ("required", json!(names))),
        1 => (name(), name()).prop_map(|(a, b)| ("dependentRequired", json!({a: [b]}))),
        2 => count(&["minProperties", "maxProperties", "minItems", "maxItems", "minLength",
            "maxLength", "minContains", "maxContains"]),
        2 => (prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum",
            "exclusiveMaximum"]), -4_i64..8).prop_map(|(k, n)| (k, json!(n as f64 / 2.0))),
        1 => prop::sample::select(vec![1.0, 2.0, 0.5]).prop_map(|n| ("multipleOf", json!(n))),
        1 => any::<bool>().prop_map(|flag| ("uniqueItems", json!(flag))),
        1 => prop::sample::select(vec!["^a", "b$", "^[ab]+$"])
            .prop_map(|pattern| ("pattern", json!(pattern))),
    ]
    .boxed()
}

fn schemas() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::Bool),
        6 => prop::collection::vec(assertion(), 0..4).prop_map(object),
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        let branches = prop::collection::vec(inner.clone(), 1..3);
        let by_name = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
        let applicator = prop_oneof![
            3 => by_name.prop_map(|schemas| ("properties", json!(schemas))),
            1 => inner.clone().prop_map(|schema| ("patternProperties", json!({"^[ab]": schema}))),
            2 => (prop::sample::select(vec!["additionalProperties", "items", "contains", "not",
                "if", "then", "else", "propertyNames"]), inner.clone()),
            2 => Just(("additionalProperties", json!(false))),
            2 => (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), branches)
                .prop_map(|(keyword, schemas)| (keyword, json!(schemas))),
            1 => Just(("$ref", json!("#/$defs/d"))),
        ];
        (
            prop::collection::vec(assertion(), 0..3),
            prop::collection::vec(applicator, 1..3),
        )
            .prop_map(|(mut assertions, applicators)| {
                assertions.extend(applicators);
                object(assertions)
            })
    })
    .boxed()
}

fn object(keywords: Vec<(&'static str, Value)>) -> Value {
    keywords
        .into_iter()
        .map(|(keyword, value)| (keyword.to_owned(), value))
        .collect()
}

/// A whole document, whose `$ref` have their target.
fn documents() -> impl Strategy<Value = Schema> {
    (schemas(), prop::collection::vec(assertion(), 0..2)).prop_map(|(schema, definition)| {
        let document = match schema {
            Value::Object(mut keywords) => {
                keywords.insert("$defs".to_owned(), json!({"d": object(definition)}));
                Value::Object(keywords)
            }
            plain => plain,
        };
        Schema::accept(&document).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn j2_canonical_text_reads_back_equal(mut value in values()) {
        normalise(&mut value).unwrap();
        prop_assert_eq!(&read(&canonical(&value)).unwrap(), &value);
    }

    #[test]
    fn j1_reading_never_panics(text in "[\\[\\]{}:,\"\\\\a0-9.eEu+ -]{0,24}") {
        if let Ok(value) = read(&text) {
            prop_assert_eq!(read(&canonical(&value)).unwrap(), value);
        }
    }

    #[test]
    fn g4_validate_and_is_valid_agree(schema in documents(), value in values()) {
        let failures = schema.validate(&value);
        prop_assert_eq!(failures.is_empty(), schema.is_valid(&value));
        prop_assert!(failures.is_sorted());
        for failure in failures {
            prop_assert!(Pointer::parse(&failure.path).unwrap().read(&value).is_some());
        }
    }

    #[test]
    fn s6_compare_is_sound(
        source in documents(),
        target in documents(),
        values in prop::collection::vec(values(), 12),
    ) {
        let verdict = compare(&source, &target);
        for value in values.into_iter().chain(source.example()) {
            if source.is_valid(&value) {
                match verdict {
                    Compatibility::Compatible => prop_assert!(target.is_valid(&value), "{}", value),
                    Compatibility::Incompatible => prop_assert!(!target.is_valid(&value), "{}", value),
                    Compatibility::Unknown => {}
                }
            }
        }
    }

    /// Schemas that differ in one keyword, so that most pairs are decided.
    #[test]
    fn s6_compare_is_sound_for_neighbours(
        document in documents(),
        (keyword, argument) in assertion(),
        values in prop::collection::vec(values(), 12),
    ) {
        let mut changed = document.document().clone();
        if let Value::Object(keywords) = &mut changed {
            keywords.insert(keyword.to_owned(), argument);
        }
        let changed = Schema::accept(&changed).unwrap();
        for (source, target) in [(&document, &changed), (&changed, &document)] {
            let verdict = compare(source, target);
            let examples = [source.example(), target.example()].into_iter().flatten();
            for value in values.iter().cloned().chain(examples) {
                let (fits, wanted) = (source.is_valid(&value), target.is_valid(&value));
                match verdict {
                    Compatibility::Compatible => prop_assert!(!fits || wanted, "{}", value),
                    Compatibility::Incompatible => prop_assert!(!(fits && wanted), "{}", value),
                    Compatibility::Unknown => {}
                }
            }
        }
    }

    #[test]
    fn s6_examples_fit_and_are_always_the_same(schema in documents()) {
        let example = schema.example();
        if let Some(example) = &example {
            prop_assert!(schema.is_valid(example), "{}", example);
        }
        let again = Schema::accept(schema.document()).unwrap();
        prop_assert_eq!(example, again.example());
    }

    #[test]
    fn s6_every_schema_is_compatible_with_itself_and_true(schema in documents()) {
        let same = Schema::accept(schema.document()).unwrap();
        prop_assert_eq!(compare(&schema, &same), Compatibility::Compatible);
        let all = Schema::accept(&json!(true)).unwrap();
        prop_assert_eq!(compare(&schema, &all), Compatibility::Compatible);
    }

    #[test]
    fn l6_reach_is_sound(
        schema in documents(),
        pointer in "(/[abc012]){1,3}",
        values in prop::collection::vec(values(), 12),
    ) {
        let pointer = Pointer::parse(&pointer).unwrap();
        let reach = schema.reach(&pointer);
        let known = match &reach {
            Reach::Certain(known) | Reach::Possible(known) => known.clone(),
            Reach::Impossible => json!(false),
        };
        let known = Schema::accept(&known).unwrap();
        for value in values.into_iter().chain(schema.example()) {
            if schema.is_valid(&value) {
                match pointer.read(&value) {
                    Some(found) => prop_assert!(known.is_valid(found), "{}", value),
                    None => prop_assert!(!matches!(reach, Reach::Certain(_)), "{}", value),
                }
            }
        }
    }

    #[test]
    fn s3_any_pattern_is_refused_or_works(pattern in "[ab(){}|*+?^$\\\\dDwWsSpPL\\[\\]0-9,.:=!<>-]{0,12}") {
        if let Ok(schema) = Schema::accept(&json!({"pattern": pattern, "patternProperties": {pattern.as_str(): {"writeOnly": true}}})) {
            let text = json!("aab1");
            prop_assert_eq!(schema.is_valid(&text), schema.validate(&text).is_empty());
            let _ = (schema.example(), schema.secrets(&json!({"a": 1})).len());
        }
    }

    #[test]
    fn s1_accepting_never_panics(mut schema in schemas(), other in values(), at in 0_usize..8) {
        // A keyword's value is replaced by anything.
        if let Value::Object(keywords) = &mut schema
            && let Some((_, value)) = keywords.iter_mut().nth(at)
        {
            *value = other;
        }
        if let Ok(schema) = Schema::accept(&schema) {
            let _ = schema.is_valid(&json!({"a": [1, "a"]}));
            prop_assert!(schema.validate(&json!(1)).iter().all(|f| !f.message.contains("cannot be used")));
        }
    }
}
