//! S1, S2 and S4 keyword by keyword: what each takes, what it refuses, and which are not in the
//! subset. The page `docs/schema.md` is made of these rows.

use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::schema::Schema;
use sluicegate_core::value::Value;

/// A family of S1 and its keywords, each with what it takes, in words that [`samples`] knows.
pub(super) const SUBSET: [(&str, &[(&str, &str)]); 8] = [
    (
        "any value",
        &[
            ("type", "the name of a type, or a list of different names"),
            ("enum", "a list"),
            ("const", "any value"),
        ],
    ),
    (
        "objects",
        &[
            ("properties", "schemas by name"),
            ("patternProperties", "schemas by pattern"),
            ("additionalProperties", "a schema"),
            ("propertyNames", "a schema"),
            ("required", "different names"),
            ("dependentRequired", "different names by name"),
            ("minProperties", "an integer from 0"),
            ("maxProperties", "an integer from 0"),
        ],
    ),
    (
        "arrays",
        &[
            ("items", "a schema"),
            ("prefixItems", "at least one schema"),
            ("contains", "a schema"),
            ("minContains", "an integer from 0"),
            ("maxContains", "an integer from 0"),
            ("minItems", "an integer from 0"),
            ("maxItems", "an integer from 0"),
            ("uniqueItems", "true or false"),
        ],
    ),
    (
        "strings",
        &[
            ("minLength", "an integer from 0"),
            ("maxLength", "an integer from 0"),
            ("pattern", "a pattern"),
            ("format", "the name of a format"),
        ],
    ),
    (
        "numbers",
        &[
            ("minimum", "a number"),
            ("maximum", "a number"),
            ("exclusiveMinimum", "a number"),
            ("exclusiveMaximum", "a number"),
            ("multipleOf", "a number above 0"),
        ],
    ),
    (
        "schemas together",
        &[
            ("allOf", "at least one schema"),
            ("anyOf", "at least one schema"),
            ("oneOf", "at least one schema"),
            ("not", "a schema"),
            ("if", "a schema"),
            ("then", "a schema"),
            ("else", "a schema"),
        ],
    ),
    (
        "references",
        &[
            ("$defs", "schemas by name"),
            ("$ref", "`#/$defs/…` of the same schema, without recursion"),
        ],
    ),
    (
        "annotations",
        &[
            ("$schema", "the dialect of draft 2020-12, at the root"),
            ("$comment", "a string"),
            ("title", "a string"),
            ("description", "a string"),
            ("default", "any value"),
            ("examples", "a list"),
            ("deprecated", "true or false"),
            ("readOnly", "true or false"),
            ("writeOnly", "true or false"),
        ],
    ),
];

/// Keywords that drafts and dialects know and the subset does not, with where they come from.
pub(super) const OUTSIDE: [(&str, &[&str]); 3] = [
    (
        "draft 2020-12",
        &[
            "$id",
            "$anchor",
            "$dynamicRef",
            "$dynamicAnchor",
            "$vocabulary",
            "unevaluatedItems",
            "unevaluatedProperties",
            "dependentSchemas",
            "contentEncoding",
            "contentMediaType",
            "contentSchema",
        ],
    ),
    (
        "older drafts",
        &[
            "id",
            "definitions",
            "dependencies",
            "additionalItems",
            "$recursiveRef",
            "$recursiveAnchor",
            "extends",
            "disallow",
            "divisibleBy",
        ],
    ),
    (
        "OpenAPI",
        &[
            "nullable",
            "discriminator",
            "example",
            "xml",
            "externalDocs",
        ],
    ),
];

/// The formats of S4.
pub(super) const FORMATS: [&str; 8] = [
    "date-time",
    "date",
    "time",
    "email",
    "uri",
    "uuid",
    "ipv4",
    "ipv6",
];

/// Formats that drafts know and S4 does not.
pub(super) const OTHER_FORMATS: [&str; 11] = [
    "duration",
    "hostname",
    "idn-hostname",
    "idn-email",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Whether a keyword is in the subset.
pub(super) fn is_in(keyword: &str) -> bool {
    let mut all = SUBSET.iter().flat_map(|(_, words)| words.iter());
    all.any(|(word, _)| *word == keyword)
}

/// Values that what is said to be taken includes, and values that it does not, with the way from
/// the keyword to the offender.
fn samples(takes: &str) -> (Vec<Value>, Vec<(Value, &'static str)>) {
    let here = |values: Value| -> Vec<(Value, &'static str)> {
        let values = values.as_array().cloned().unwrap_or_default();
        values.into_iter().map(|value| (value, "")).collect()
    };
    let no_object = || here(json!([null, true, 1, "a", []]));
    let no_schema = json!([null, 1, "a", [], [true]]);
    let with = |mut rows: Vec<(Value, &'static str)>, more: Vec<(Value, &'static str)>| {
        rows.extend(more);
        rows
    };
    let (good, bad) = match takes {
        "any value" => (json!([null, true, 0, "a", [1], {"$id": 1}]), vec![]),
        "a list" => (
            json!([[], [null, 1, 1]]),
            here(json!([null, true, 1, "a", {}])),
        ),
        "a schema" => (json!([true, false, {}, {"type": "null"}]), here(no_schema)),
        "at least one schema" => (
            json!([[true], [{}, {"type": "null"}]]),
            with(
                here(json!([null, true, 1, "a", {}, []])),
                vec![(json!([true, null]), "/1"), (json!([[]]), "/0")],
            ),
        ),
        "schemas by name" => (
            json!([{}, {"a": true, "": {}, "~/": false}]),
            with(no_object(), vec![(json!({"~/": 1}), "/~0~1")]),
        ),
        "schemas by pattern" => (
            json!([{}, {"^a": true, "": {}}]),
            with(
                no_object(),
                vec![(json!({"a": 1}), "/a"), (json!({"(": true}), "/(")],
            ),
        ),
        "different names" => (
            json!([[], ["a", ""]]),
            here(json!([null, true, "a", {}, [1], ["a", "a"], ["a", null]])),
        ),
        "different names by name" => (
            json!([{}, {"a": [], "b": ["a"]}]),
            with(
                no_object(),
                vec![
                    (json!({"a": "b"}), "/a"),
                    (json!({"a/b": ["c", "c"]}), "/a~1b"),
                    (json!({"a": {"type": "null"}}), "/a"),
                ],
            ),
        ),
        "an integer from 0" => (
            json!([0, 1, 2.0, 9_007_199_254_740_991_i64]),
            here(json!([null, true, "1", [], {}, -1, 0.5])),
        ),
        "a number" => (
            json!([0, -1.5, 1e-300]),
            here(json!([null, true, "1", [], {}])),
        ),
        "a number above 0" => (
            json!([1, 0.01, 5e-324]),
            here(json!([null, true, "1", [], {}, 0, -1])),
        ),
        "true or false" => (json!([true, false]), here(json!([null, 0, "true", [], {}]))),
        "a string" => (json!(["", "a"]), here(json!([null, true, 1, [], {}]))),
        "a pattern" => (
            json!(["", "^a+$"]),
            here(json!([null, true, 1, [], {}, "(", "[b-a]", "*"])),
        ),
        "the name of a format" => (json!(FORMATS), here(json!([null, true, 1, [], {}]))),
        "the name of a type, or a list of different names" => (
            json!(["null", "integer", ["string", "number"], ["object"]]),
            here(json!([
                null,
                true,
                1,
                {},
                [],
                "any",
                ["null", "null"],
                ["null", 1],
                "Null"
            ])),
        ),
        "the dialect of draft 2020-12, at the root" => (
            json!([
                "https://json-schema.org/draft/2020-12/schema",
                "https://json-schema.org/draft/2020-12/schema#"
            ]),
            here(json!([
                null,
                true,
                1,
                [],
                {},
                "",
                "http://json-schema.org/draft-07/schema#"
            ])),
        ),
        "`#/$defs/…` of the same schema, without recursion" => (
            json!(["#/$defs/d", "#/$defs/d/items", "#/%24defs/d"]),
            here(json!([
                null,
                true,
                1,
                [],
                {},
                "#/$defs/none",
                "#/$defs/%",
                "#/$defs/~2"
            ])),
        ),
        other => panic!("no samples of {other:?}"),
    };
    (good.as_array().cloned().unwrap_or_default(), bad)
}

#[test]
fn s1_every_keyword_takes_what_the_page_says_and_nothing_else() {
    let document = |keyword: &str, value: &Value| {
        let mut document = json!({"$defs": {"d": {"items": true}}});
        document[keyword] = value.clone();
        document
    };
    let mut refusals = 0;
    for (keyword, takes) in SUBSET.iter().flat_map(|(_, words)| words.iter()) {
        let (good, bad) = samples(takes);
        for value in good {
            let accepted = Schema::accept(&document(keyword, &value));
            assert!(accepted.is_ok(), "{keyword}: {value} {accepted:?}");
        }
        for (value, below) in bad {
            refusals += 1;
            let schema = document(keyword, &value);
            // At the root, and wherever a schema may stand.
            for (outer, at) in [
                (schema.clone(), String::new()),
                (json!({"items": {"not": schema}}), "/items/not".to_owned()),
            ] {
                let faults = Schema::accept(&outer).unwrap_err();
                let place = format!("{at}/{keyword}{below}");
                assert!(
                    faults
                        .iter()
                        .any(|f| f.code == Code::SchemaInvalid && f.pointer == place),
                    "{outer}: {faults:?}"
                );
            }
        }
    }
    assert!(refusals > 200, "{refusals}");
}

#[test]
fn s1_the_root_alone_names_the_dialect() {
    let nested = json!({"not": {"$schema": "https://json-schema.org/draft/2020-12/schema"}});
    let faults = Schema::accept(&nested).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(
        (faults[0].code, &*faults[0].pointer),
        (Code::SchemaInvalid, "/not/$schema")
    );
}

#[test]
fn s2_every_other_keyword_is_refused_by_name_and_pointer() {
    let known = OUTSIDE.iter().flat_map(|(_, words)| words.iter().copied());
    let odd = [
        "",
        "Type",
        "type ",
        "x-note",
        "__proto__",
        "a/b~c",
        "\u{202e}evil",
        "é",
    ];
    for keyword in known.chain(odd) {
        assert!(!is_in(keyword), "{keyword}");
        let token = sluicegate_core::value::escape(keyword).into_owned();
        for (around, at) in [
            (vec![], ""),
            (vec!["items"], "/items"),
            (vec!["$defs", "unused"], "/$defs/unused"),
            (
                vec!["properties", "p", "not", "then"],
                "/properties/p/not/then",
            ),
            (vec!["patternProperties", "^p"], "/patternProperties/^p"),
        ] {
            for value in [
                json!(null),
                json!(true),
                json!("#/$defs/x"),
                json!({"a": {}}),
            ] {
                let leaf = json!({ keyword: value });
                let schema = around
                    .iter()
                    .rev()
                    .fold(leaf, |inner, word| json!({ *word: inner }));
                let faults = Schema::accept(&schema).unwrap_err();
                assert_eq!(faults.len(), 1, "{schema}: {faults:?}");
                assert_eq!(faults[0].code, Code::SchemaKeywordUnsupported, "{schema}");
                assert_eq!(faults[0].pointer, format!("{at}/{token}"));
                assert!(
                    faults[0].message.contains(&format!("{keyword:?}")),
                    "{faults:?}"
                );
            }
        }
    }
    // Where names are free, nothing is a keyword.
    for free in ["const", "default"] {
        assert!(Schema::accept(&json!({free: {"$id": 1}, "enum": [{"$anchor": 1}]})).is_ok());
    }
    assert!(Schema::accept(&json!({"properties": {"$id": true, "x-a": {}}})).is_ok());
}

#[test]
fn s4_other_formats_are_refused_by_name() {
    let odd = ["", "Date", "date ", "DATE-TIME", "uri ", "unknown"];
    for format in OTHER_FORMATS.into_iter().chain(odd) {
        let faults = Schema::accept(&json!({"items": {"format": format}})).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(
            (faults[0].code, &*faults[0].pointer),
            (Code::SchemaKeywordUnsupported, "/items/format")
        );
        assert!(faults[0].message.contains(&format!("{format:?}")));
    }
}

#[test]
fn s1_references_elsewhere_are_refused_and_never_followed() {
    for (reference, code) in [
        (
            "http://127.0.0.1:1/schema.json",
            Code::SchemaKeywordUnsupported,
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            Code::SchemaKeywordUnsupported,
        ),
        ("file:///etc/hostname", Code::SchemaKeywordUnsupported),
        (
            "urn:uuid:00000000-0000-0000-0000-000000000000",
            Code::SchemaKeywordUnsupported,
        ),
        ("other.json#/$defs/d", Code::SchemaKeywordUnsupported),
        ("", Code::SchemaKeywordUnsupported),
        ("#anchor", Code::SchemaKeywordUnsupported),
        ("#/properties/a", Code::SchemaKeywordUnsupported),
        ("#/$defs", Code::SchemaKeywordUnsupported),
        ("#", Code::SchemaRecursive),
        ("#/$defs/d/enum/0", Code::SchemaInvalid),
        ("#/$defs/d/title", Code::SchemaInvalid),
        ("#/$defs/missing", Code::SchemaInvalid),
        ("#/$defs/%zz", Code::SchemaInvalid),
        ("#/$defs/a b", Code::SchemaInvalid),
    ] {
        let schema = json!({"$defs": {"d": {"enum": [{}], "title": "t"}},
            "items": {"$ref": reference}});
        let faults = Schema::accept(&schema).unwrap_err();
        assert_eq!(faults.len(), 1, "{reference}: {faults:?}");
        assert_eq!(
            (faults[0].code, &*faults[0].pointer),
            (code, "/items/$ref"),
            "{reference}"
        );
    }
}

/// B044: an empty or circular reference must not overflow anything.
#[test]
fn s2_b044_recursion_is_refused_at_the_reference() {
    for (schema, at) in [
        (json!({"$ref": "#"}), "/$ref"),
        (json!({"allOf": [{"$ref": "#"}]}), "/allOf/0/$ref"),
        (
            json!({"$defs": {"a": {"$ref": "#/$defs/a"}}}),
            "/$defs/a/$ref",
        ),
        (
            json!({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}}),
            "/$defs/b/items/$ref",
        ),
        (
            json!({"$defs": {"a": {"properties": {"n": {"$ref": "#/$defs/a/properties/n"}}}}}),
            "/$defs/a/properties/n/$ref",
        ),
        (
            json!({"$defs": {"a": {"properties": {"n": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}),
            "/$defs/a/properties/n/$ref",
        ),
    ] {
        let faults = Schema::accept(&schema).unwrap_err();
        assert_eq!(faults.len(), 1, "{schema}: {faults:?}");
        assert_eq!(
            (faults[0].code, &*faults[0].pointer),
            (Code::SchemaRecursive, at),
            "{schema}"
        );
    }
    // The same definition twice, one inside the other, is no recursion.
    let twice = json!({"$defs": {"a": {"type": "string"}, "b": {"items": {"$ref": "#/$defs/a"}}},
        "allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}, {"not": {"$ref": "#/$defs/a"}}]});
    assert!(Schema::accept(&twice).is_ok());
}
