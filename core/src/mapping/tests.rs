use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::code::Code;

/// Envelopes by node and port; platform variables say their own names.
struct Emitted(BTreeMap<(String, String), Value>);

impl Sources for Emitted {
    fn envelope(&self, node: &NodeId, port: &str) -> Option<&Value> {
        self.0.get(&(node.to_string(), port.to_owned()))
    }

    fn longest_text(&self) -> u64 {
        4_096
    }

    fn platform(&self, variable: Platform) -> String {
        serde_json::to_value(variable)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn emitted(value: Value) -> Emitted {
    Emitted(BTreeMap::from([(
        ("in".to_owned(), "data".to_owned()),
        value,
    )]))
}

fn source(pointer: &str) -> Source {
    Source {
        node_id: "in".into(),
        port: "data".to_owned(),
        pointer: Pointer::parse(pointer).unwrap(),
    }
}

fn mapping(target: &str, binding: Binding) -> Mapping {
    Mapping {
        target: Pointer::parse(target).unwrap(),
        binding,
    }
}

fn literal(target: &str, value: Value) -> Mapping {
    mapping(target, Binding::Literal { value })
}

fn path(target: &str, pointer: &str) -> Mapping {
    mapping(target, Binding::Path(source(pointer)))
}

fn template(text: &str, variables: &[(&str, Part)]) -> Binding {
    let variables: Vec<_> = variables
        .iter()
        .map(|(n, p)| ((*n).to_owned(), p.clone()))
        .collect();
    Binding::Template {
        parts: compile_template(text, &variables).unwrap(),
    }
}

fn codes(text: &str, declared: &[&str]) -> Vec<(&'static str, String)> {
    let declared: Vec<_> = declared
        .iter()
        .map(|name| ((*name).to_owned(), Part::Platform(Platform::RunId)))
        .collect();
    compile_template(text, &declared)
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|fault| (fault.code.as_str(), fault.name))
        .collect()
}

#[test]
fn m1_builds_from_nothing_but_the_mappings() {
    let sources = emitted(json!({"a": {"b": [1, 2]}, "n": null}));
    let mappings = [
        literal("/x/y/z", json!([{"k": 1}])),
        path("/x/y/a", "/a/b"),
        path("/whole", ""),
        path("/x/n", "/n"),
        literal("/", json!("empty name")),
        literal("/x/a~1b", json!(true)),
    ];
    let expected = json!({
        "": "empty name",
        "whole": {"a": {"b": [1, 2]}, "n": null},
        "x": {"a/b": true, "n": null, "y": {"a": [1, 2], "z": [{"k": 1}]}},
    });
    assert_eq!(build(&mappings, &sources), Ok(expected.clone()));
    let mut turned = mappings.to_vec();
    turned.reverse();
    assert_eq!(build(&turned, &sources), Ok(expected));
    assert_eq!(build(&[path("", "/a/b")], &sources), Ok(json!([1, 2])));
    assert_eq!(build(&[literal("", json!(7))], &sources), Ok(json!(7)));
}

#[test]
fn m2_a_missing_source_is_named_and_the_first_by_target_is_reported() {
    let sources = emitted(json!({"arr": [10], "secret": "hunter2"}));
    for pointer in ["/none", "/arr/1", "/arr/01", "/arr/-", "/secret/x"] {
        let error = build(&[path("/t", pointer)], &sources).unwrap_err();
        assert_eq!(error.code, Code::MappingSourceMissing);
        assert!(error.message.contains(&format!("{pointer:?}")), "{error}");
        assert!(error.message.contains("node in") && error.message.contains("port data"));
        assert!(!error.message.contains("hunter2"));
    }
    let silent = Source {
        port: "failure".to_owned(),
        ..source("")
    };
    let error = build(&[mapping("/t", Binding::Path(silent))], &sources).unwrap_err();
    assert_eq!(error.code, Code::MappingSourceMissing);
    assert!(
        error.message.contains("did not emit on port failure"),
        "{error}"
    );
    let error = build(&[path("/b", "/second"), path("/a", "/first")], &sources).unwrap_err();
    assert!(error.message.contains("/first"), "{error}");
}

#[test]
fn m3_b028_values_go_in_by_one_rule_and_missing_ones_are_errors() {
    let greeting = template("Hello {{ name }}", &[("name", Part::Path(source("/name")))]);
    for (value, text) in [
        (json!(""), "Hello "),
        (json!("Ada"), "Hello Ada"),
        (json!(null), "Hello null"),
        (json!(0), "Hello 0"),
        (json!(false), "Hello false"),
        (json!({"b": 1.5, "a": "x"}), r#"Hello {"a":"x","b":1.5}"#),
    ] {
        assert_eq!(
            greeting.resolve(&emitted(json!({"name": value}))),
            Ok(json!(text))
        );
    }
    let error = greeting.resolve(&emitted(json!({}))).unwrap_err();
    assert_eq!(error.code, Code::MappingSourceMissing);
    assert_eq!(
        codes("Hello {{ name }}", &[]),
        [("template.variable-unknown", "name".to_owned())]
    );
}

#[test]
fn m3_b026_b027_what_is_inserted_is_never_scanned() {
    let hostile = [
        "{{ y }}",
        "{{{{",
        "}}",
        "use {{ user.name }} and {% if %} and {{ bad | ",
        "{{ x }}",
    ];
    for text in hostile {
        let sources = emitted(json!({"x": text}));
        let twice = template("[{{ x }}{{ x }}]", &[("x", Part::Path(source("/x")))]);
        assert_eq!(
            twice.resolve(&sources),
            Ok(json!(format!("[{text}{text}]")))
        );
        assert_eq!(
            build(&[path("/t", "/x"), literal("/l", json!(text))], &sources),
            Ok(json!({"t": text, "l": text}))
        );
    }
}

#[test]
fn m3_hostile_texts_give_every_fault() {
    let syntax = |name: &str| ("template.syntax", name.to_owned());
    for (text, expected) in [
        ("{{", vec![syntax("")]),
        ("{{ a }} {{ a", vec![syntax("a")]),
        (
            "{{ a {{ b }} {{ c",
            vec![
                syntax("a"),
                syntax("c"),
                ("template.variable-unknown", "b".to_owned()),
            ],
        ),
        (
            "{{}}{{ }}{{ 1 }}{{ a b }}",
            vec![syntax(""), syntax(""), syntax("1"), syntax("a b")],
        ),
        ("{{{a}}}", vec![syntax("{a")]),
        (
            "{{é}}{{\t a}}{{\u{a0}a}}",
            vec![syntax("é"), syntax("\t a"), syntax("\u{a0}a")],
        ),
        (
            "{{ b }}{{ b }}",
            vec![
                ("template.variable-unknown", "b".to_owned()),
                ("template.variable-unused", "a".to_owned()),
            ],
        ),
        ("plain", vec![("template.variable-unused", "a".to_owned())]),
    ] {
        assert_eq!(codes(text, &["a"]), expected, "{text}");
    }
    let long = format!("{{{{ {}", "é".repeat(5_000));
    assert_eq!(codes(&long, &[]), [syntax(&"é".repeat(40))]);
    assert_eq!(
        codes("{{ a }}", &["a", "a"]),
        [("template.variable-unused", "a".to_owned())]
    );
    assert_eq!(
        codes("x", &["no name"]),
        [("template.variable-unused", "no name".to_owned())]
    );
}

#[test]
fn m3_a_doubled_opening_is_a_literal_one() {
    let text = |s: &str| Token::Text(s.to_owned());
    let variable = || Token::Variable("a".to_owned());
    for (template, tokens) in [
        ("", vec![]),
        ("{{{{", vec![text("{{")]),
        ("{{{{ a }}", vec![text("{{ a }}")]),
        ("{{{{{{a}}", vec![text("{{"), variable()]),
        ("x{{{{y{{a}}z", vec![text("x{{y"), variable(), text("z")]),
        ("{{a}}{{ a }}", vec![variable(), variable()]),
        ("{{{{{", vec![text("{{{")]),
        ("}} { }", vec![text("}} { }")]),
        ("{{a}}}", vec![variable(), text("}")]),
    ] {
        assert_eq!(scan(template), Ok(tokens), "{template}");
    }
}

/// Quadratic scanning would take minutes here.
#[test]
fn m3_scanning_is_linear() {
    for text in [
        "{{ a ".repeat(100_000),
        "{".repeat(400_001),
        "{{ a }} }}".repeat(50_000),
    ] {
        let _ = scan(&text);
    }
}

#[test]
fn m4_platform_variables_have_their_names_on_the_wire() {
    let variables = [
        Platform::RunId,
        Platform::WorkflowKey,
        Platform::WorkflowRevision,
        Platform::QueuedAt,
        Platform::ActorLabel,
        Platform::TenantId,
    ];
    let parts: Vec<_> = variables
        .into_iter()
        .flat_map(|v| [Part::Platform(v), Part::Text(" ".to_owned())])
        .collect();
    assert_eq!(
        render(&parts, &emitted(json!(null))).unwrap(),
        "run.id run.workflow-key run.workflow-revision run.queued-at actor.label tenant.id "
    );
}

#[test]
fn m1_b029_targets_do_not_write_into_arrays() {
    for (pointer, allowed) in [
        ("", true),
        ("/", true),
        ("/a/b1", true),
        ("/a/1b", true),
        ("/arr/0", false),
        ("/arr/01", false),
        ("/arr/-", false),
        ("/-/a", false),
        ("/--", true),
        ("/٣", true),
    ] {
        assert_eq!(
            is_target(&Pointer::parse(pointer).unwrap()),
            allowed,
            "{pointer}"
        );
    }
}

#[test]
fn m_a_plan_stores_mappings_without_loss() {
    for mapping in [
        literal("/a", json!({"kind": "path"})),
        path("/a/b", "/c~1d"),
        mapping(
            "",
            template(
                "{{{{ {{ r }}{{ p }}",
                &[
                    ("r", Part::Platform(Platform::RunId)),
                    ("p", Part::Path(source("/x"))),
                ],
            ),
        ),
    ] {
        let stored = serde_json::to_value(&mapping).unwrap();
        assert_eq!(
            serde_json::from_value::<Mapping>(stored.clone()).unwrap(),
            mapping,
            "{stored}"
        );
    }
}

#[test]
fn a6_a_short_template_cannot_build_a_text_beyond_the_limit() {
    let parts = vec![Part::Text("x".repeat(4_000)), Part::Text("y".repeat(4_000))];
    let error = render(&parts, &emitted(Value::Null)).unwrap_err();
    assert_eq!(error.code, Code::NodeOutputTooLarge);
    // The limit itself still fits.
    let most = [Part::Text("x".repeat(4_096))];
    assert_eq!(render(&most, &emitted(Value::Null)).unwrap().len(), 4_096);
}
