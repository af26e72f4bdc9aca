//! `docs/schema.md` says which schemas the subset has (S1–S4) and what it makes of the public
//! suite. It is made of the rows that the tests beside it hold to the code, and compared here;
//! with `SLUICEGATE_WRITE_DOCS` set it is written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use sluicegate_core::limits::Limits;
use sluicegate_core::schema::Schema;

use super::keywords::{FORMATS, OTHER_FORMATS, OUTSIDE, SUBSET};
use super::schema::{Group, Outcome, groups, judge};

const SUITE: &str = "\n## The public suite\n";

#[test]
fn s1_the_page_of_schemas_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema.md");
    let groups = groups();
    let page = subset() + &groups.as_deref().map(suite).unwrap_or_default();
    if std::env::var_os("SLUICEGATE_WRITE_DOCS").is_some() && groups.is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    // Without the suite at hand its part cannot be judged.
    let written = match groups {
        Some(_) => written.as_str(),
        None => written.split(SUITE).next().unwrap(),
    };
    assert!(
        page == written,
        "docs/schema.md is behind the code: run this test with SLUICEGATE_WRITE_DOCS=1"
    );
}

fn subset() -> String {
    let mut page = String::from(
        "# JSON Schema\n\n\
        What a schema of a graph may say (wire-format.md §6): a subset of draft 2020-12. Everything\n\
        else is refused when the graph is checked, with the code and the pointer of the offender;\n\
        nothing is ignored. A boolean is a schema too.\n\n\
        This page is written by a test and compared with the code:\n\
        `SLUICEGATE_WRITE_DOCS=1 cargo test -p sluicegate-core --test conformance page`.\n\n\
        ## Keywords\n\n\
        | keyword | about | takes | clause |\n|---|---|---|---|\n",
    );
    for (family, words) in SUBSET {
        for (keyword, takes) in words {
            let clause = match *keyword {
                "pattern" | "patternProperties" => "S1, S3",
                "format" => "S1, S4",
                "writeOnly" => "S1, S5",
                _ => "S1",
            };
            writeln!(page, "| `{keyword}` | {family} | {takes} | {clause} |").unwrap();
        }
    }
    page += "\nAnything else a keyword takes is `schema.invalid`. Not in the subset, and \
        `schema.keyword-unsupported` (S2):\n\n| from | keywords |\n|---|---|\n";
    for (from, words) in OUTSIDE {
        let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        writeln!(page, "| {from} | {} |", words.join(" ")).unwrap();
    }
    page += "| anywhere | every other word, `x-…` too |\n";
    let words = |formats: &[&str]| {
        let words: Vec<_> = formats.iter().map(|word| format!("`{word}`")).collect();
        words.join(" ")
    };
    write!(
        page,
        "\n## Formats\n\nAsserted (S4): {}.\nRefused: {} and every other.\n\n\
        ## Bounds\n\n\
        | what | at most | code |\n|---|---|---|\n\
        | canonical bytes of one schema | {} | `schema.too-large` |\n\
        | subschemas, every `$ref` expanded | {} | `schema.too-large` |\n\
        | nested schemas, counted through `$ref` | {} | `schema.too-deep` |\n\
        | a `$ref` that comes back to itself | none | `schema.recursive` |\n\
        | look-around and back references in a pattern, a pattern that grows large | none | \
        `schema.pattern-unsupported` |\n\
        | a number | below 2^53 | `schema.invalid` |\n",
        words(&FORMATS),
        words(&OTHER_FORMATS),
        Limits::SCHEMA_BYTES,
        Limits::SCHEMA_NODES,
        Limits::SCHEMA_DEPTH,
    )
    .unwrap();
    page
}

fn suite(groups: &[Group]) -> String {
    let mut page = SUITE.to_owned()
        + "\nThe JSON Schema test suite of draft 2020-12. A group is one schema; a group inside the\n\
        subset gives the suite's answer for every value, each other group is refused by what is\n\
        named. Values with a number of 2^53 or more do not reach a schema (J1).\n\n\
        | file | groups | inside | values | refused by |\n|---|---|---|---|---|\n";
    let mut files: BTreeMap<&str, Outcome> = BTreeMap::new();
    let mut total = (0, 0);
    for group in groups {
        judge(group, files.entry(&group.file).or_default());
    }
    for (file, outcome) in &files {
        let of = groups.iter().filter(|group| group.file == *file).count();
        let refused: Vec<_> = outcome
            .refused
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        let (inside, values, refused) = (outcome.inside, outcome.values, refused.join(", "));
        writeln!(
            page,
            "| `{file}` | {of} | {inside} | {values} | {refused} |"
        )
        .unwrap();
        total = (total.0 + inside, total.1 + values);
    }
    let (all, (inside, values)) = (groups.len(), total);
    writeln!(page, "| all | {all} | {inside} | {values} | |").unwrap();
    page += "\nWhere a file is inside only in part, these groups are refused:\n\n\
        | file | group | at |\n|---|---|---|\n";
    for group in groups
        .iter()
        .filter(|group| files[group.file.as_str()].inside > 0)
    {
        if let Err(faults) = Schema::accept(&group.schema) {
            let at: BTreeSet<_> = faults
                .iter()
                .map(|fault| format!("`{}`", fault.pointer.escape_debug()))
                .collect();
            let at: Vec<_> = at.into_iter().collect();
            let name = group.description.replace('|', "\\|");
            writeln!(page, "| `{}` | {name} | {} |", group.file, at.join(" ")).unwrap();
        }
    }
    page
}
