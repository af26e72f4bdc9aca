//! S1–S4 against the JSON Schema suite of draft 2020-12: a schema inside the subset gives the
//! suite's answer, every other is refused by what a second reading of S1 foretells. S6 against the
//! compatibility set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sluicegate_core::code::Code;
use sluicegate_core::schema::{Compatibility, Schema, compare};
use sluicegate_core::value::{Pointer, Value, escape, normalise};

use super::keywords::{FORMATS, is_in};
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

/// A group of the suite: its file, its description, its schema, its tests.
pub(super) struct Group {
    pub(super) file: String,
    pub(super) description: String,
    pub(super) schema: Value,
    tests: Vec<Value>,
}

/// Every group; `None` where there is no suite.
pub(super) fn groups() -> Option<Vec<Group>> {
    let folder = folder("json-schema-2020-12/tests")?;
    let mut files = Vec::new();
    suites(&folder, &mut files);
    files.sort();
    let group = |file: &str, group: &Value| Group {
        file: file.to_owned(),
        description: text(&group["description"]).to_owned(),
        schema: group["schema"].clone(),
        tests: group["tests"].as_array().unwrap().clone(),
    };
    let of = |path: &PathBuf| -> Vec<Group> {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let list = data(path);
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| group(&name, one))
            .collect()
    };
    Some(files.iter().flat_map(of).collect())
}

/// Faults that S1, S2 and S4 ask for, read here a second time: pointer and code.
#[derive(Default)]
struct Foretold {
    faults: BTreeSet<(String, &'static str)>,
    /// Every place where a schema stands.
    places: BTreeSet<String>,
    /// Every `$ref` and its place.
    references: Vec<(String, String)>,
}

impl Foretold {
    fn of(schema: &Value) -> BTreeSet<(String, &'static str)> {
        // J1 comes first.
        if let Err(error) = normalise(&mut schema.clone()) {
            return BTreeSet::from([(error.pointer, "schema.invalid")]);
        }
        let mut foretold = Self::default();
        foretold.schema(schema, "");
        for (at, target) in std::mem::take(&mut foretold.references) {
            let code = match target.strip_prefix('#') {
                Some("") => "schema.recursive",
                Some(pointer) if pointer.starts_with("/$defs/") => {
                    let plain = pointer.replace("%25", "%").replace("%22", "\"");
                    if foretold.places.contains(&plain) {
                        continue;
                    }
                    "schema.invalid"
                }
                _ => "schema.keyword-unsupported",
            };
            foretold.faults.insert((at, code));
        }
        foretold.faults
    }

    fn schema(&mut self, schema: &Value, at: &str) {
        self.places.insert(at.to_owned());
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            let below = format!("{at}/{}", escape(keyword));
            match keyword.as_str() {
                "$schema" if value != "https://json-schema.org/draft/2020-12/schema" => {
                    self.faults.insert((below, "schema.invalid"));
                }
                "format" if !FORMATS.contains(&text(value)) => {
                    self.faults.insert((below, "schema.keyword-unsupported"));
                }
                "$ref" => self.references.push((below, text(value).to_owned())),
                "properties" | "patternProperties" | "$defs" => {
                    for (name, schema) in value.as_object().unwrap() {
                        self.schema(schema, &format!("{below}/{}", escape(name)));
                    }
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    for (index, schema) in value.as_array().unwrap().iter().enumerate() {
                        self.schema(schema, &format!("{below}/{index}"));
                    }
                }
                "items"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "additionalProperties" => self.schema(value, &below),
                known if is_in(known) => {}
                _ => {
                    self.faults.insert((below, "schema.keyword-unsupported"));
                }
            }
        }
    }
}

/// What the suite's schemas give here.
#[derive(Default)]
pub(super) struct Outcome {
    /// Groups inside the subset.
    pub(super) inside: usize,
    /// Values that were judged, all as the suite judges them.
    pub(super) values: usize,
    /// Why groups are refused: what is named, and how often.
    pub(super) refused: BTreeMap<String, usize>,
    /// Values that J1 keeps out.
    kept_out: usize,
    /// Values whose format the suite does not assert and S4 does.
    asserted: usize,
}

/// Judges one group, and panics where suite and subset part without a clause.
pub(super) fn judge(group: &Group, outcome: &mut Outcome) {
    let name = format!("{}: {}", group.file, group.description);
    let foretold = Foretold::of(&group.schema);
    let schema = match Schema::accept(&group.schema) {
        Ok(schema) => schema,
        Err(faults) => {
            let found: BTreeSet<_> = faults
                .iter()
                .map(|fault| (fault.pointer.clone(), fault.code.as_str()))
                .collect();
            assert_eq!(found, foretold, "{name}");
            let mut reasons = BTreeSet::new();
            for fault in &faults {
                reasons.insert(reason(group, fault, &name));
            }
            for reason in reasons {
                *outcome.refused.entry(reason).or_default() += 1;
            }
            return;
        }
    };
    assert!(foretold.is_empty(), "{name} is accepted: {foretold:?}");
    outcome.inside += 1;
    for test in &group.tests {
        let mut value = test["data"].clone();
        if let Err(error) = normalise(&mut value) {
            assert_eq!(error.code, Code::JsonNumberRange, "{name}");
            outcome.kept_out += 1;
            continue;
        }
        let expected = test["valid"] == true;
        let failures = schema.validate(&value);
        assert_eq!(schema.is_valid(&value), failures.is_empty(), "{name}");
        assert_eq!(schema.first_failure(&value).is_none(), failures.is_empty());
        for failure in &failures {
            let known = failure.keyword == "false" || is_in(&failure.keyword);
            assert!(known, "{name}: {failure:?}");
            let at = Pointer::parse(&failure.path).unwrap();
            assert!(at.read(&value).is_some(), "{name}: {failure:?}");
        }
        // The suite takes `format` for an annotation in one file; S4 asserts it.
        if group.file == "format.json" && expected && !failures.is_empty() {
            let formats = failures.iter().all(|failure| failure.keyword == "format");
            assert!(formats, "{name}: {failures:?}");
            outcome.asserted += 1;
            continue;
        }
        let word = text(&test["description"]);
        assert_eq!(
            failures.is_empty(),
            expected,
            "{name}: {word}: {failures:?}"
        );
        outcome.values += 1;
    }
}

/// What a fault names: a keyword or a format that is not in the subset, or the clause.
fn reason(group: &Group, fault: &sluicegate_core::schema::Fault, name: &str) -> String {
    let pointer = Pointer::parse(&fault.pointer).unwrap();
    let offender = pointer.read(&group.schema);
    let offender = offender.unwrap_or_else(|| panic!("{name}: nothing at {}", fault.pointer));
    let keyword = pointer.tokens().last().map_or("", String::as_str);
    match fault.code {
        Code::SchemaKeywordUnsupported if keyword == "format" => {
            let format = text(offender);
            assert!(fault.message.contains(&format!("{format:?}")), "{fault:?}");
            format!("format `{format}`")
        }
        Code::SchemaKeywordUnsupported if keyword == "$ref" => "`$ref` elsewhere".to_owned(),
        Code::SchemaKeywordUnsupported => {
            assert!(fault.message.contains(&format!("{keyword:?}")), "{fault:?}");
            format!("`{}`", keyword.escape_debug())
        }
        Code::SchemaInvalid if keyword == "$schema" => "another dialect".to_owned(),
        Code::SchemaInvalid if keyword == "$ref" => "`$ref` to nothing".to_owned(),
        Code::SchemaInvalid if offender.is_number() => "a number of 2^53 or more".to_owned(),
        code => panic!("{name}: {code} at {}", fault.pointer),
    }
}

#[test]
fn s1_s2_suite_of_draft_2020_12() {
    let Some(groups) = groups() else {
        return;
    };
    let mut outcome = Outcome::default();
    groups.iter().for_each(|group| judge(group, &mut outcome));
    println!(
        "{} groups, {} inside; {} values agree, {} kept out by J1, {} formats asserted by S4",
        groups.len(),
        outcome.inside,
        outcome.values,
        outcome.kept_out,
        outcome.asserted
    );
    assert_eq!((groups.len(), outcome.inside), (334, 185));
    assert_eq!(
        (outcome.values, outcome.kept_out, outcome.asserted),
        (874, 4, 6)
    );
}

/// Examples of the suite's schemas fit, are always the same, and are found wherever the suite
/// itself has a value that fits, but for what is listed.
#[test]
fn s6_examples_of_the_suites_schemas() {
    let Some(groups) = groups() else {
        return;
    };
    let (mut found, mut none) = (0, Vec::new());
    for group in &groups {
        let Ok(schema) = Schema::accept(&group.schema) else {
            continue;
        };
        let example = schema.example();
        let again = Schema::accept(schema.document()).unwrap().example();
        assert_eq!(example, again, "{}", group.description);
        match example {
            Some(example) => {
                assert!(schema.is_valid(&example), "{}", group.description);
                found += 1;
            }
            None if group.tests.iter().any(|test| test["valid"] == true) => {
                none.push(group.description.as_str());
            }
            None => {}
        }
    }
    // The regular expressions of these two write a control character in a way of their own.
    let known = [
        "ECMA 262 regex escapes control codes with \\c and upper letter",
        "ECMA 262 regex escapes control codes with \\c and lower letter",
    ];
    assert_eq!(none, known);
    assert_eq!(found, 176);
}

#[test]
fn s6_compatibility_set() {
    let Some(folder) = folder("json-schema-compat") else {
        return;
    };
    let (mut counts, mut outside) = (BTreeMap::<_, usize>::new(), 0);
    for case in data(&folder.join("subschema.json")).as_array().unwrap() {
        let usable = case["expected"].is_boolean()
            && case["valid_2020_12_schemas"] == true
            && case.get("draft4_semantics").is_none();
        if !usable {
            outside += 1;
            continue;
        }
        let (id, expected) = (text(&case["id"]), case["expected"] == true);
        let accepted =
            Schema::accept(&case["a"]).and_then(|a| Ok((a, Schema::accept(&case["b"])?)));
        let (a, b) = match accepted {
            Ok(both) => both,
            Err(faults) => {
                // Both schemas are of the draft, so a clause of ours keeps one of them out.
                let either = [&case["a"], &case["b"]].map(Foretold::of);
                let pattern = faults
                    .iter()
                    .all(|f| f.code == Code::SchemaPatternUnsupported);
                assert!(
                    pattern || either.iter().any(|one| !one.is_empty()),
                    "{id} {faults:?}"
                );
                *counts.entry("refused by a clause").or_default() += 1;
                continue;
            }
        };
        let mut verdicts = vec![compare(&a, &b)];
        if case["relation"] == "equivalent" {
            verdicts.push(compare(&b, &a));
        }
        let proven = verdicts.iter().all(|one| *one == Compatibility::Compatible);
        // The failure that matters: a promise that the set contradicts.
        assert!(expected || !proven, "{id}: {case}");
        let impossible = verdicts.contains(&Compatibility::Incompatible);
        let word = match (expected, proven, impossible) {
            (true, true, _) => "fits, compatible",
            (false, _, true) => "does not fit, incompatible",
            (true, false, true) => panic!("{id}: {case}"),
            (true, false, false) => "fits, left to run time",
            (false, _, false) => "does not fit, left to run time",
        };
        *counts.entry(word).or_default() += 1;
        // "Incompatible" says that no value passes both, "compatible" that none passes one alone.
        let witness = case.get("witness").cloned();
        for value in [a.example(), b.example(), witness].into_iter().flatten() {
            let (in_a, in_b) = (a.is_valid(&value), b.is_valid(&value));
            assert!(
                verdicts[0] != Compatibility::Incompatible || !(in_a && in_b),
                "{id}: {value}"
            );
            assert!(
                verdicts[0] != Compatibility::Compatible || !in_a || in_b,
                "{id}: {value}"
            );
        }
    }
    println!("{counts:?}, {outside} of another draft");
    assert_eq!(outside, 60);
    let expected = [
        ("fits, compatible", 99),
        ("fits, left to run time", 37),
        ("does not fit, incompatible", 32),
        ("does not fit, left to run time", 96),
        ("refused by a clause", 60),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}
