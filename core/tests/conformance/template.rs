//! M3 against the public set of Mustache: plain interpolation is equal but for the escapes of HTML;
//! every other tag is refused. Every entry falls into one class, and the classes are counted.

use std::collections::BTreeMap;

use serde_json::Map;
use sluicegate_core::code::Code;
use sluicegate_core::mapping::{render_template, scan};
use sluicegate_core::value::Value;

use super::{data, folder, text};

#[test]
fn m3_mustache() {
    for (file, expected) in EXPECTED {
        let Some(folder) = folder("templates-mustache") else {
            return;
        };
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        for case in data(&folder.join(format!("{file}.json")))["tests"]
            .as_array()
            .unwrap()
        {
            *classes.entry(class(case)).or_default() += 1;
        }
        println!("{file}: {classes:#?}");
        let expected: BTreeMap<_, _> = expected.iter().copied().collect();
        assert_eq!(classes, expected, "{file}");
    }
}

const EXPECTED: [(&str, &[(&str, usize)]); 4] = [
    (
        "interpolation",
        &[
            ("agrees", 6),
            (UNKNOWN, 3),
            (TAG, 19),
            ("nothing is escaped (M3: strings as they are)", 1),
            ("null is written (M3: canonical form)", 1),
        ],
    ),
    ("comments", &[(TAG, 8)]),
    ("delimiters", &[(TAG, 10)]),
    ("sections", &[(TAG, 24)]),
];

const TAG: &str = "another tag is refused (template.syntax)";
const UNKNOWN: &str = "a name that is not declared is refused (template.variable-unknown)";

/// Signs that open another tag of Mustache.
const SIGNS: [char; 9] = ['#', '^', '/', '!', '=', '>', '&', '{', '.'];

fn class(case: &Value) -> &'static str {
    let (name, template) = (text(&case["name"]), text(&case["template"]));
    let given = case["data"].as_object().cloned().unwrap_or_default();
    let tags: Vec<_> = template.split("{{").skip(1).collect();
    let other_tag = tags.iter().any(|tag| tag.trim_start().starts_with(SIGNS));
    // Mustache leaves unused members alone, M3 does not: only what the template names is declared.
    let declared: Map<_, _> = given
        .into_iter()
        .filter(|(name, _)| {
            let named = |tag: &&str| tag.split('}').next().map(str::trim) == Some(name.as_str());
            tags.iter().any(named)
        })
        .collect();
    match render_template(template, &declared) {
        Ok(made) => {
            assert!(!other_tag, "{name}: {made}");
            if case["expected"] == *made {
                return "agrees";
            }
            let null = declared.values().any(Value::is_null);
            let escaped = made
                .replace('&', "&amp;")
                .replace('"', "&quot;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            if null {
                assert_eq!(case["expected"], made.replace("null", ""), "{name}");
                "null is written (M3: canonical form)"
            } else {
                assert_eq!(case["expected"], escaped, "{name}");
                "nothing is escaped (M3: strings as they are)"
            }
        }
        Err(faults) => {
            let codes: Vec<_> = faults.iter().map(|fault| fault.code).collect();
            if other_tag {
                assert!(scan(template).is_err(), "{name}");
                assert_eq!(codes[0], Code::TemplateSyntax, "{name}");
                TAG
            } else {
                assert_eq!(
                    codes,
                    vec![Code::TemplateVariableUnknown; codes.len()],
                    "{name}"
                );
                UNKNOWN
            }
        }
    }
}
