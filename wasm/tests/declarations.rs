//! The types of the npm package name what core knows, no more and no less (wire-format.md §11).

#![expect(clippy::unwrap_used, reason = "what helps a test may stop it")]

use std::collections::BTreeSet;

use sluicegate_core::code::{Class, Code};
use sluicegate_core::gate::OPERATORS;
use sluicegate_core::node_type::NodeType;
use sluicegate_core::run::Payload;

fn declarations() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("npm/index.d.ts");
    std::fs::read_to_string(path).unwrap()
}

/// The texts between single quotes in the declaration of a type.
fn texts(name: &str) -> Vec<String> {
    let declarations = declarations();
    let start = format!("export type {name} =");
    let (_, rest) = declarations.split_once(&start).unwrap();
    let rest = &rest[..rest.find("\nexport ").unwrap()];
    let texts = rest.split('\'').skip(1).step_by(2);
    texts.map(str::to_owned).collect()
}

#[track_caller]
fn same<'a>(name: &str, known: impl Iterator<Item = &'a str>) {
    let texts = texts(name);
    let declared: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(declared.len(), texts.len(), "{name} names something twice");
    assert_eq!(declared, known.collect(), "{name} in wasm/npm/index.d.ts");
}

#[test]
fn p11_every_code_is_declared_in_its_union() {
    let reported: BTreeSet<Code> = issues().collect();
    let of = |class| Code::ALL.iter().filter(move |code| code.class() == class);
    let names = |codes: Vec<Code>| codes.into_iter().map(Code::as_str).collect::<Vec<_>>();
    same("JsonCode", of(Class::Json).map(|code| code.as_str()));
    same(
        "IssueWarningCode",
        of(Class::Warning).map(|code| code.as_str()),
    );
    let errors = issues().filter(|code| code.class() != Class::Warning);
    same("IssueErrorCode", names(errors.collect()).into_iter());
    let others = Code::ALL.iter().copied();
    let others = others.filter(|code| code.class() != Class::Json && !reported.contains(code));
    same("OtherCode", names(others.collect()).into_iter());
}

/// The codes of the page of issues (docs/issues.md), which core's own tests hold.
fn issues() -> impl Iterator<Item = Code> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/issues.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let codes: Vec<Code> = rows
        .map(|row| Code::parse(row.split('`').next().unwrap()).unwrap())
        .collect();
    assert!(codes.len() > 50);
    codes.into_iter()
}

#[test]
fn p11_every_event_is_declared() {
    let declarations = declarations();
    let (_, rest) = declarations
        .split_once("export type EventPayloads = {")
        .unwrap();
    let rest = &rest[..rest.find("\n};").unwrap()];
    let named = rest.lines().filter_map(|line| line.strip_prefix("\t'"));
    let named: Vec<_> = named.map(|line| line.split('\'').next().unwrap()).collect();
    assert_eq!(named, Payload::TYPES);
}

#[test]
fn p11_every_node_type_and_operator_is_declared() {
    let declarations = declarations();
    for node_type in NodeType::ALL {
        let member = format!("readonly type: '{}'", node_type.as_str());
        assert!(declarations.contains(&member), "{member}");
    }
    for operator in OPERATORS {
        let member = format!("\t| {{ readonly {operator}: ");
        assert!(declarations.contains(&member), "{member}");
    }
}
