//! The reference's table of issues says of every code of wire-format.md §8 that it exists
//! and how severe it is, and of nothing else (Q4).

use std::collections::BTreeMap;
use std::path::Path;

use sluicegate_core::code::Code;
use sluicegate_core::validate::{Issue, Location};

#[test]
fn q4_the_table_has_every_code_with_its_severity() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/issues.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for row in &rows {
        assert_eq!(row.len(), 5, "{row:?}");
    }
    let table: BTreeMap<&str, &str> = rows
        .iter()
        .map(|row| (row[0].trim_matches('`'), row[1]))
        .collect();
    assert_eq!(table.len(), rows.len(), "a code stands twice");
    // The list of codes keeps those of §8 together and in its order.
    let place = |code| Code::ALL.iter().position(|known| *known == code).unwrap();
    let section = &Code::ALL[place(Code::GraphVersionUnsupported)..=place(Code::SchemaUnused)];
    let codes: BTreeMap<&str, &str> = section
        .iter()
        .map(|code| {
            let issue = Issue::new(*code, Location::graph(), "");
            let severity = if issue.is_error() { "error" } else { "warning" };
            (code.as_str(), severity)
        })
        .collect();
    assert_eq!(table, codes);
}
