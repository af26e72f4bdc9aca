//! Templates at their edges (M3): look-alikes of tokens, values that look like tokens, every JSON
//! type, and texts that are built to hurt.

#![expect(clippy::unwrap_used, reason = "what helps a test may stop it")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, json};
use sluicegate_core::code::Code;
use sluicegate_core::mapping::{Token, render_template, scan, text_of};
use sluicegate_core::value::{Value, canonical, read};

fn given(variables: &Value) -> Map<String, Value> {
    variables.as_object().unwrap().clone()
}

/// The text, or the codes of the faults with what they name.
fn rendered(template: &str, variables: &Value) -> Result<String, Vec<(&'static str, String)>> {
    render_template(template, &given(variables)).map_err(|faults| {
        let row =
            |fault: &sluicegate_core::mapping::Fault| (fault.code.as_str(), fault.name.clone());
        faults.iter().map(row).collect()
    })
}

#[test]
fn m3_tokens_and_their_look_alikes() {
    let a = json!({"a": "A"});
    let text = |template: &str, expected: &str| {
        let variables = if expected.contains('A') {
            &a
        } else {
            &json!({})
        };
        assert_eq!(
            rendered(template, variables).as_deref(),
            Ok(expected),
            "{template:?}"
        );
    };
    for (template, expected) in [
        ("", ""),
        ("{{a}}", "A"),
        ("{{ a }}", "A"),
        ("{{   a}}", "A"),
        ("{{a   }}", "A"),
        ("{{a}}{{a}}", "AA"),
        ("{{a}}}", "A}"),
        ("{{a}}}}", "A}}"),
        ("{ {{a}} }", "{ A }"),
        ("{{{{", "{{"),
        ("{{{{ x }}", "{{ x }}"),
        ("{{{{{{a}}", "{{A"),
        ("{{{{{{a}}}}", "{{A}}"),
        ("{{{{{{{{", "{{{{"),
        ("{{{{x}}", "{{x}}"),
        ("}}", "}}"),
        ("}} }}", "}} }}"),
        ("{", "{"),
        ("{ {x}}", "{ {x}}"),
        ("{\n{x}}", "{\n{x}}"),
        ("{x}", "{x}"),
        ("{%x%}", "{%x%}"),
        ("${x}", "${x}"),
        ("<%= x %>", "<%= x %>"),
        ("\\{\\{x}}", "\\{\\{x}}"),
        ("{\u{200b}{x}}", "{\u{200b}{x}}"),
        ("\u{ff5b}\u{ff5b}x}}", "\u{ff5b}\u{ff5b}x}}"),
        ("{{{{{", "{{{"),
        ("{{a}}{{{{{{a}}", "A{{A"),
        ("é{{a}}\u{1F600}", "éA\u{1F600}"),
    ] {
        text(template, expected);
    }
    for template in [
        "{{",
        "{{ ",
        "{{a",
        "{{ a }",
        "{{a} }",
        "{{a\n",
        "x{{",
        "{{a {{a}}",
        "{{}}",
        "{{ }}",
        "{{{a}}}",
        "{{{ a }}}",
        "{{{a}}",
        "{{{",
        "{{{}}}",
        "{{a.}b}}",
        "{{#a}}",
        "{{/a}}",
        "{{^a}}",
        "{{!a}}",
        "{{>a}}",
        "{{=a}}",
        "{{&a}}",
        "{{a | f }}",
        "{{ a|f }}",
        "{{a()}}",
        "{{a[0]}}",
        "{{a b}}",
        "{{a-b}}",
        "{{a/b}}",
        "{{a:b}}",
        "{{a,b}}",
        "{{$a}}",
        "{{@a}}",
        "{{1a}}",
        "{{.a}}",
        "{{-a}}",
        "{{\"a\"}}",
        "{{'a'}}",
        "{{a\u{200b}}}",
        "{{\u{feff}a}}",
        "{{\u{202e}a}}",
        "{{é}}",
        "{{ａ}}",
        "{{а}}",
        "{{a\n}}",
        "{{\ta}}",
        "{{a\r\n}}",
        "{{\u{a0}a}}",
        "{{a\0}}",
        "{{a}{a}}",
        "{{~a~}}",
        "{{a\\}}",
        "{{{{{a}}}}}{{",
    ] {
        let faults = rendered(template, &a).unwrap_err();
        let codes: Vec<_> = faults.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes[0], "template.syntax", "{template:?}: {faults:?}");
        // While the syntax is wrong nothing is called unused.
        assert!(!codes.contains(&"template.variable-unused"), "{template:?}");
    }
}

#[test]
fn m3_names_are_taken_as_they_are_declared() {
    for name in [
        "a",
        "_",
        "_1",
        "A9",
        "a.b",
        "a..b",
        "a.",
        "Z_.9",
        "constructor",
        "__proto__",
        "toString",
    ] {
        let variables = json!({ name: 1 });
        assert_eq!(
            rendered(&format!("{{{{{name}}}}}"), &variables).as_deref(),
            Ok("1"),
            "{name}"
        );
    }
    // A dot is a letter: nothing is walked into.
    let walked = rendered("{{a.b}}", &json!({"a": {"b": 1}})).unwrap_err();
    assert_eq!(
        walked,
        [
            ("template.variable-unknown", "a.b".to_owned()),
            ("template.variable-unused", "a".to_owned())
        ]
    );
    // Capitals are other letters, and a name is reported once.
    let unknown = rendered("{{A}}{{A}}{{a}}", &json!({"a": 1})).unwrap_err();
    assert_eq!(unknown, [("template.variable-unknown", "A".to_owned())]);
    for unusable in ["", "1", "a b", "é", "-", ".a"] {
        let faults = rendered("x", &json!({ unusable: 1 })).unwrap_err();
        assert_eq!(faults, [("template.variable-unused", unusable.to_owned())]);
    }
}

#[test]
fn m3_every_json_type_goes_in_by_one_rule() {
    for (text, expected) in [
        ("\"\"", ""),
        ("\"a\\\"b\\n\"", "a\"b\n"),
        ("\"<&'>\"", "<&'>"),
        ("null", "null"),
        ("true", "true"),
        ("false", "false"),
        ("0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1e-7", "1e-7"),
        ("0.1", "0.1"),
        ("9007199254740991", "9007199254740991"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("[1, \"a\" , null]", "[1,\"a\",null]"),
        ("{\"b\": 1, \"a\": [true]}", "{\"a\":[true],\"b\":1}"),
        ("\"\\u0000\\ud83d\\ude00\"", "\0\u{1F600}"),
        ("[\"<\\u0001\"]", "[\"<\\u0001\"]"),
    ] {
        let value = read(text).unwrap();
        let made = rendered("[{{ v }}]", &json!({ "v": value }));
        assert_eq!(made, Ok(format!("[{expected}]")), "{text}");
    }
}

#[test]
fn m5_an_agents_text_is_the_string_itself_or_the_canonical_form() {
    for (value, text) in [
        ("\"a \\\"b\\\" {{c}}\"", "a \"b\" {{c}}"),
        ("\"\"", ""),
        ("null", "null"),
        ("-0.0", "0"),
        ("1e2", "100"),
        ("[1.0, \"x\"]", "[1,\"x\"]"),
        ("{\"b\": 1, \"a\": {}}", "{\"a\":{},\"b\":1}"),
    ] {
        assert_eq!(text_of(&read(value).unwrap()), text, "{value}");
    }
}

#[test]
fn m3_results_of_64_kib_pass_and_one_byte_more_is_refused() {
    let most = 65_536;
    let long = |bytes: usize| json!({ "v": "x".repeat(bytes) });
    for (template, value, fits) in [
        ("{{v}}", long(most), true),
        ("{{v}}", long(most + 1), false),
        ("{{v}}{{v}}", long(most / 2), true),
        ("{{v}}{{v}}.", long(most / 2), false),
        ("é{{v}}", long(most - 2), true),
        ("é{{v}}", long(most - 1), false),
    ] {
        match render_template(template, &given(&value)) {
            Ok(text) => assert!(fits && text.len() == most, "{}", text.len()),
            Err(faults) => {
                assert!(!fits);
                assert_eq!(faults.len(), 1);
                assert_eq!(faults[0].code, Code::NodeOutputTooLarge);
            }
        }
    }
}

#[test]
fn m3_hostile_templates_take_time_by_their_length() {
    let many = 200_000;
    let begun = Instant::now();
    for text in [
        "{{".repeat(many),
        "{".repeat(2 * many + 1),
        "}}".repeat(many),
        "{{a".repeat(many),
        "{{ ".repeat(many),
        "{{{ ".repeat(many),
        "{{a}}".repeat(many / 2),
        "{{}}".repeat(many / 2),
        format!("{{{{{}", " ".repeat(many)),
        format!("{{{{{}}}}}", "a".repeat(many)),
        "{{a}} {{{{".repeat(many / 4),
    ] {
        let _ = scan(&text);
        let _ = render_template(&text, &given(&json!({"a": "x".repeat(60_000)})));
    }
    // Many names, each used once, and many of them unknown.
    let names: Vec<_> = (0..20_000).map(|i| format!("v{i}")).collect();
    let template: String = names.iter().map(|name| format!("{{{{{name}}}}}")).collect();
    let declared: Map<_, _> = names.iter().map(|name| (name.clone(), json!(1))).collect();
    assert_eq!(
        render_template(&template, &declared).unwrap(),
        "1".repeat(20_000)
    );
    assert_eq!(
        render_template(&template, &Map::new()).unwrap_err().len(),
        20_000
    );
    assert_eq!(render_template("", &declared).unwrap_err().len(), 20_000);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{", "}}", "{", "}", "a", "b", " ", "{{a}}", "{{ b }}", "{{{{", ".", "é", "\n", "{{a",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was scanned, written again, is what was there; a second scan gives the same.
    #[test]
    fn m3_tokens_say_what_the_text_says(template in pieces()) {
        if let Ok(tokens) = scan(&template) {
            let written: String = tokens
                .iter()
                .map(|token| match token {
                    Token::Text(text) => text.replace("{{", "{{{{"),
                    Token::Variable(name) => format!("{{{{{name}}}}}"),
                })
                .collect();
            prop_assert_eq!(scan(&written), Ok(tokens));
        }
    }

    /// Values are inserted once and never scanned: what goes in comes out, whatever it looks like.
    #[test]
    fn m3_b026_b027_values_are_never_scanned(a in pieces(), b in any::<i32>(), around in "[x}]{0,3}") {
        let variables = json!({"a": a, "b": [b, a]});
        let template = format!("{around}{{{{a}}}}-{{{{ b }}}}{around}");
        let expected = format!("{around}{a}-{}{around}", canonical(&json!([b, a])));
        prop_assert_eq!(rendered(&template, &variables), Ok(expected));
    }
}
