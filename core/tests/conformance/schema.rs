//! S1–S4 against the JSON Schema suite of draft 2020-12: a schema inside the subset gives the
//! suite's answer, every other is refused.

use std::path::PathBuf;

use sluicegate_core::code::Code;
use sluicegate_core::schema::{Compatibility, Schema, compare};
use sluicegate_core::value::{Value, normalise};

use super::{data, folder, text};

fn suites(below: &PathBuf, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            suites(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn s1_suite_of_draft_2020_12() {
    let Some(folder) = folder("json-schema-2020-12/tests") else {
        return;
    };
    let mut files = Vec::new();
    suites(&folder, &mut files);
    files.sort();
    let (mut accepted, mut agreed) = (0, 0);
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        for group in data(&file).as_array().unwrap() {
            let description = text(&group["description"]);
            let schema = match Schema::accept(&group["schema"]) {
                Ok(schema) => schema,
                Err(faults) => {
                    assert!(!faults.is_empty(), "{name}: {description}");
                    continue;
                }
            };
            accepted += 1;
            for test in group["tests"].as_array().unwrap() {
                let mut value: Value = test["data"].clone();
                // J1 keeps such values out before a schema sees them.
                if normalise(&mut value).is_err() {
                    continue;
                }
                let expected = test["valid"].as_bool().unwrap();
                let failures = schema.validate(&value);
                // The suite tests `format` as an annotation in one file; S4 asserts it.
                if name == "format.json" && expected && !failures.is_empty() {
                    assert!(failures.iter().all(|failure| failure.keyword == "format"));
                    continue;
                }
                agreed += 1;
                if schema.is_valid(&value) != expected || failures.is_empty() != expected {
                    wrong.push(format!(
                        "{name}: {description}: {}: {failures:?}",
                        text(&test["description"])
                    ));
                }
                for failure in failures {
                    assert!(
                        failure.keyword == "false"
                            || group["schema"].to_string().contains(&failure.keyword),
                        "{name}: {description}: {failure:?}"
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > 180 && agreed > 850, "{accepted}, {agreed}");
}

#[test]
fn s2_suites_of_keywords_outside_the_subset_are_refused() {
    let Some(folder) = folder("json-schema-2020-12/tests") else {
        return;
    };
    for name in [
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependentSchemas",
        "anchor",
        "refRemote",
    ] {
        for group in data(&folder.join(format!("{name}.json")))
            .as_array()
            .unwrap()
        {
            let faults = Schema::accept(&group["schema"]).unwrap_err();
            assert!(
                faults
                    .iter()
                    .any(|fault| fault.code == Code::SchemaKeywordUnsupported),
                "{name}: {} {faults:?}",
                group["description"]
            );
        }
    }
}

#[test]
fn s6_subschema_data() {
    let Some(folder) = folder("json-schema-compat") else {
        return;
    };
    let (mut judged, mut compatible, mut provable) = (0, 0, 0);
    for case in data(&folder.join("subschema.json")).as_array().unwrap() {
        let usable = case["relation"] == "subschema"
            && case["expected"].is_boolean()
            && case["valid_2020_12_schemas"] == true
            && case.get("draft4_semantics").is_none();
        let (Ok(a), Ok(b)) = (Schema::accept(&case["a"]), Schema::accept(&case["b"])) else {
            continue;
        };
        if !usable {
            continue;
        }
        judged += 1;
        let (id, expected) = (text(&case["id"]), case["expected"] == true);
        let verdict = compare(&a, &b);
        if verdict == Compatibility::Compatible {
            assert!(expected, "{id}: {case}");
            compatible += 1;
        }
        provable += u32::from(expected);
        for example in [a.example(), b.example()].into_iter().flatten() {
            if a.is_valid(&example) {
                assert!(
                    verdict != Compatibility::Compatible || b.is_valid(&example),
                    "{id}: {example}"
                );
                assert!(
                    verdict != Compatibility::Incompatible || !b.is_valid(&example),
                    "{id}: {example}"
                );
            }
        }
    }
    println!("{judged} judged, {compatible} of {provable} proven");
    assert!(
        judged > 100 && compatible * 2 > provable,
        "{judged}: {compatible} of {provable}"
    );
}
