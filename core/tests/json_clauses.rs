//! Reading at the edges (J1, J3–J5, J7): every refusal at every kind of place, numbers against an
//! independent reader, and the limits of 64 KiB, which count canonical bytes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::compile::{compile, dry_run};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, Refused, simulate};
use sluicegate_core::validate::check;
use sluicegate_core::value::{
    Pointer, Value, canonical, canonical_len, normalise, read, read_bytes,
};

fn refused(text: &str) -> (Code, String) {
    match read(text) {
        Ok(value) => panic!("{text:.200} gives {}", canonical(&value)),
        Err(error) => (error.code, error.pointer),
    }
}

/// Ways to stand in a document: what goes before and behind, and the pointer.
fn places() -> Vec<(String, String, String)> {
    let mut places: Vec<_> = [
        ("", "", ""),
        ("[", "]", "/0"),
        ("[1,\"x\",", ",null]", "/2"),
        ("{\"a\":", "}", "/a"),
        ("{\"\":1,\"~/\":[", "]}", "/~0~1/0"),
        ("{\"\\u0061\\u002f\\ud83d\\ude00\":", "}", "/a~1\u{1F600}"),
        ("{\"a\":{\"a\":[[],{\"a\":", "}]}}", "/a/a/1/a"),
        (" \r\n\t[ {} , ", " ] ", "/1"),
    ]
    .map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
    .into();
    places.push(("[{\"k\":".repeat(31), "}]".repeat(31), "/0/k".repeat(31)));
    places
}

#[test]
fn j1_j7_every_refusal_names_its_place_wherever_it_stands() {
    // The text, the code, and the way from its place to the offender.
    let offenders = [
        ("9007199254740992", Code::JsonNumberRange, ""),
        ("-9.007199254740992E+15", Code::JsonNumberRange, ""),
        ("1e400", Code::JsonNumberRange, ""),
        ("[0,1e16]", Code::JsonNumberRange, "/1"),
        (r#"{"a":1,"a":1}"#, Code::JsonDuplicateMember, "/a"),
        (r#"{"a":1,"\u0061":2}"#, Code::JsonDuplicateMember, "/a"),
        (r#"{"/":1,"\/":2}"#, Code::JsonDuplicateMember, "/~1"),
        (r#"{"":1,"":2}"#, Code::JsonDuplicateMember, "/"),
        (
            "{\"\u{1F600}\":1,\"\\ud83d\\uDE00\":2}",
            Code::JsonDuplicateMember,
            "/\u{1F600}",
        ),
        (
            r#"{"a":{},"b":0,"c":[],"b":[]}"#,
            Code::JsonDuplicateMember,
            "/b",
        ),
        (r#""\ud800""#, Code::JsonLoneSurrogate, ""),
        (r#""a\uDFFFb""#, Code::JsonLoneSurrogate, ""),
        (r#""\ud83d\ud83d\ude00""#, Code::JsonLoneSurrogate, ""),
        (r#"["x","\ude00\ud83d"]"#, Code::JsonLoneSurrogate, "/1"),
        (r#"{"\ud83d":1}"#, Code::JsonLoneSurrogate, ""),
    ];
    for (before, behind, at) in places() {
        for (offender, code, below) in offenders {
            let text = format!("{before}{offender}{behind}");
            assert_eq!(
                refused(&text),
                (code, format!("{at}{below}")),
                "{text:.200}"
            );
        }
        // The same places hold what is allowed.
        for fine in ["9007199254740991", r#"{"a":1,"A":1}"#, r#""\ud83d\ude00""#] {
            assert!(read(&format!("{before}{fine}{behind}")).is_ok(), "{before}");
        }
    }
}

#[test]
fn j1_the_refusal_of_a_number_says_to_use_a_string() {
    let error = read("{\"id\":9007199254740993}").unwrap_err();
    assert!(error.detail.contains("\"/id\"") && error.detail.contains("string"));
    assert_eq!(error.position, Some((1, 22)));
}

#[test]
fn j1_bytes_that_are_no_utf8_and_marks_are_refused_anywhere() {
    let bad: [&[u8]; 9] = [
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\x80",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
    ];
    for bytes in bad {
        for (before, behind) in [("", ""), ("\"", "\""), ("{\"", "\":1}"), ("[1]", "")] {
            let text = [before.as_bytes(), bytes, behind.as_bytes()].concat();
            let error = read_bytes(&text).unwrap_err();
            assert_eq!(error.code, Code::JsonSyntax, "{text:?}");
        }
    }
    // A byte order mark is refused before and behind; inside a string it is a character.
    for text in [
        "\u{FEFF}1",
        "\u{FEFF}",
        "[\u{FEFF}]",
        "1\u{FEFF}",
        "\u{FFFE}1",
    ] {
        assert_eq!(refused(text).0, Code::JsonSyntax, "{text:?}");
    }
    assert_eq!(read("\"\u{FEFF}\"").unwrap(), json!("\u{FEFF}"));
    // White space of Unicode is none of JSON.
    for space in [
        "\u{a0}", "\u{2028}", "\u{3000}", "\u{b}", "\u{c}", "\u{85}", "\0",
    ] {
        assert_eq!(refused(&format!("{space}1")).0, Code::JsonSyntax);
        assert_eq!(refused(&format!("[1,{space}2]")).0, Code::JsonSyntax);
    }
}

#[test]
fn j4_the_65th_container_is_refused_in_every_mixture() {
    for seed in 0_u32..64 {
        let array = |level: u32| (seed >> (level % 6)) & 1 == 0;
        let nested = |levels: u32| {
            let open: String = (0..levels)
                .map(|level| if array(level) { "[" } else { "{\"k\":" })
                .collect();
            let close: String = (0..levels)
                .rev()
                .map(|level| if array(level) { "]" } else { "}" })
                .collect();
            format!("{open}0{close}")
        };
        assert!(read(&nested(64)).is_ok());
        let way: String = (0..64)
            .map(|level| if array(level) { "/0" } else { "/k" })
            .collect();
        assert_eq!(refused(&nested(65)), (Code::JsonTooDeep, way.clone()));
        // What does not come as a text is held to the same.
        let mut value = json!(0);
        for level in (0..65).rev() {
            value = if array(level) {
                json!([value])
            } else {
                json!({ "k": value })
            };
        }
        let error = normalise(&mut value).unwrap_err();
        assert_eq!((error.code, error.pointer), (Code::JsonTooDeep, way));
    }
    // Width is no depth.
    let wide = format!("[{}0]", "[],{},".repeat(10_000));
    assert!(read(&wide).is_ok());
}

#[test]
fn j1_long_writings_of_one_number() {
    let zeros = "0".repeat(2_000);
    for (text, canonical_text) in [
        (format!("1{zeros}e-2000"), "1"),
        (format!("0.{zeros}1e2001"), "1"),
        (format!("9007199254740991.{zeros}"), "9007199254740991"),
        (format!("-0.{zeros}"), "0"),
        (format!("0e{zeros}9"), "0"),
        (format!("1.{zeros}1"), "1"),
        (format!("9007199254740991.49{zeros}"), "9007199254740991"),
    ] {
        let read = read(&text).map(|value| canonical(&value));
        assert_eq!(read.as_deref(), Ok(canonical_text), "{text:.40}");
    }
    for text in [
        format!("9007199254740992{zeros}e-2000"),
        format!("0.{zeros}9007199254740992e2016"),
        format!("9007199254740991.5{zeros}"),
        format!("-9007199254740991.{}", "9".repeat(2_000)),
        format!("1{zeros}"),
    ] {
        assert_eq!(refused(&text).0, Code::JsonNumberRange, "{text:.40}");
    }
}

/// Decimal writings of numbers, most of them near 2^53 or with many digits.
fn writings() -> impl Strategy<Value = String> {
    let near = (9_007_199_254_740_980_i64..9_007_199_254_741_000).prop_map(|n| n.to_string());
    let digits = "(0|[1-9][0-9]{0,24})";
    let whole = prop_oneof![near, digits.prop_map(String::from)];
    let fraction = prop_oneof![Just(String::new()), "\\.[0-9]{1,24}".prop_map(String::from)];
    let exponent = prop_oneof![
        2 => Just(String::new()),
        2 => "[eE][+-]?[0-9]{1,2}".prop_map(String::from),
        1 => "[eE][+-]?[0-9]{3}".prop_map(String::from),
    ];
    (any::<bool>(), whole, fraction, exponent).prop_map(|(minus, whole, fraction, exponent)| {
        let sign = if minus { "-" } else { "" };
        format!("{sign}{whole}{fraction}{exponent}")
    })
}

/// A value, and its text with a member written twice somewhere inside.
fn doubled() -> impl Strategy<Value = (String, String)> {
    let step = prop_oneof![
        Just(("[null,", ",2]", "/1")),
        Just(("{\"b\":", ",\"c\":[]}", "/b")),
        Just(("{\"a\":", "}", "/a")),
    ];
    let name = prop::sample::select(vec![
        ("a", "\\u0061"),
        ("é", "\\u00E9"),
        ("\u{1F600}", "\\uD83D\\uDE00"),
        ("\\n", "\\u000a"),
        ("x/y~", "x\\/y\\u007e"),
        ("__proto__", "\\u005f_proto__"),
    ]);
    (prop::collection::vec(step, 0..12), name, 0_usize..3).prop_map(|(steps, name, between)| {
        let (before, behind): (String, Vec<&str>) = (
            steps.iter().map(|step| step.0).collect(),
            steps.iter().rev().map(|step| step.1).collect(),
        );
        let others: String = (0..between).map(|i| format!("\"o{i}\":{i},")).collect();
        let object = format!("{{\"{}\":1,{others}\"{}\":2}}", name.0, name.1);
        let plain = read(&format!("\"{}\"", name.1)).unwrap();
        let token = sluicegate_core::value::escape(plain.as_str().unwrap()).into_owned();
        let at: String = steps.iter().map(|step| step.2).collect();
        (
            format!("{before}{object}{}", behind.concat()),
            format!("{at}/{token}"),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The standard library reads decimals correctly rounded, with code of its own.
    #[test]
    fn j1_a_number_is_the_nearest_double_or_refused(text in writings()) {
        let double: f64 = text.parse().unwrap();
        match read(&text) {
            Ok(value) => {
                prop_assert!(double.abs() < 9_007_199_254_740_992.0);
                prop_assert_eq!(value.as_f64().unwrap(), double);
                // J5: one value, one form.
                let again = read(&canonical(&value)).unwrap();
                prop_assert_eq!(&again, &value);
                prop_assert_eq!(value.is_i64(), double.fract() == 0.0);
            }
            Err(error) => {
                prop_assert!(double.abs() >= 9_007_199_254_740_992.0);
                prop_assert_eq!(error.code, Code::JsonNumberRange);
            }
        }
    }

    #[test]
    fn j1_b024_a_member_written_twice_is_found_at_any_depth((text, at) in doubled()) {
        prop_assert_eq!(refused(&text), (Code::JsonDuplicateMember, at));
    }

    /// J2: the escapes of the writer are undone by the reader, for every text.
    #[test]
    fn j2_any_text_reads_back(text in any::<String>(), name in any::<String>()) {
        let value = json!({ name: [text] });
        let written = canonical(&value);
        prop_assert_eq!(written.len(), canonical_len(&value));
        prop_assert_eq!(read(&written).unwrap(), value);
    }

    /// J3: every member has one pointer, whatever its name.
    #[test]
    fn j3_any_name_is_reached(names in prop::collection::vec("[~/01a\\-\u{e9} ]{0,4}", 1..5)) {
        let value = names.iter().rev().fold(json!(7), |inner, name| json!({ name: inner }));
        let at = names.iter().fold(Pointer::default(), |at, name| at.child(name));
        prop_assert_eq!(at.read(&value), Some(&json!(7)));
        prop_assert_eq!(&Pointer::parse(&at.to_string()).unwrap(), &at);
    }
}

/// A graph whose input goes to its output, with a literal that may fill it up.
fn graph(literal: &str) -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "out", "type": "output", "ports": {"input": "std.any"}, "mappings": [
                {"targetPointer": "/whole", "binding": {
                    "kind": "path", "sourceNodeId": "in", "sourcePort": "data", "pointer": ""}},
                {"targetPointer": "/more", "binding": {"kind": "literal", "value": literal}},
            ]},
        ],
        "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"},
            "target": {"nodeId": "out", "port": "input"}}],
        "schemas": {}, "layout": {},
    })
}

/// The same value as a text with white space, every letter escaped.
fn inflated(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap();
    let inflated = pretty.replace('x', "\\u0078");
    assert!(inflated.len() > 3 * canonical_len(value));
    inflated
}

const MOST: usize = 65_536;

#[test]
fn g1_a_graph_is_counted_in_canonical_bytes() {
    let room = MOST - canonical_len(&graph(""));
    for (letters, too_large) in [(room, false), (room + 1, true)] {
        let document = graph(&"x".repeat(letters));
        for text in [canonical(&document), inflated(&document)] {
            let graph = Graph::read(&read(&text).unwrap()).unwrap();
            let issues = check(&graph, None, &Limits::default());
            let found = issues.iter().any(|issue| issue.code == Code::GraphTooLarge);
            assert_eq!(found, too_large, "{letters}");
        }
    }
    // A letter beyond ASCII counts its bytes, a control character its escape.
    for (letter, bytes) in [("é", 2), ("\u{1F600}", 4), ("\n", 2), ("\u{1}", 6)] {
        let least = canonical_len(&graph(letter)) - canonical_len(&graph(""));
        assert_eq!(least, bytes, "{letter:?}");
    }
}

#[test]
fn a6_inputs_and_envelopes_are_counted_in_canonical_bytes() {
    let limits = Limits::default();
    let run = |graph: &Value, input: Value| {
        let graph = Graph::read(graph).unwrap();
        let plan = Plan::load(compile(&graph, None, &limits).plan.unwrap()).unwrap();
        let fixtures = Fixtures::read(&json!({"nodes": {}})).unwrap();
        let reference = WorkflowReference::default();
        simulate(&plan, Arc::new(input), &fixtures, &limits, reference)
            .map(|simulation| simulation.result().failure.map(|failure| failure.code))
    };
    let mut plain = graph("");
    plain["nodes"].as_array_mut().unwrap()[1]
        .as_object_mut()
        .unwrap()
        .remove("mappings");
    // The quotes count too.
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    let fits = read(&inflated(&text(MOST))).unwrap();
    assert!(run(&plain, fits.clone()).unwrap().is_none());
    match run(&plain, text(MOST + 1)) {
        Err(Refused::Input { code, pointer, .. }) => {
            assert_eq!((code, &*pointer), (Code::WorkflowLimitExceeded, ""));
        }
        other => panic!("{other:?}"),
    }
    let judged = |input: &Value| {
        let graph = Graph::read(&plain).unwrap();
        let issues = dry_run(&graph, Some(input), None, None, &limits).issues;
        issues.iter().any(|issue| issue.code == Code::InputInvalid)
    };
    assert!(!judged(&fits) && judged(&text(MOST + 1)));

    // The output's input is built around the run's input: more bytes, the same limit.
    let around = canonical_len(&json!({"whole": "", "more": ""})) - 2;
    assert!(run(&graph(""), text(MOST - around)).unwrap().is_none());
    let failure = run(&graph(""), text(MOST - around + 1)).unwrap();
    assert_eq!(failure.as_deref(), Some("node.output-too-large"));
}
