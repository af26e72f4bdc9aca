//! `gate.*` (wire-format.md L1, L4–L6; seed A publication rule 10).

use super::{report, title};
use crate::code::Code;
use crate::gate::Expr;
use crate::graph::Kind;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;

/// The only version of the language.
const VERSION: i64 = 1;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for node in &survey.nodes {
        let Kind::Gate(gate) = &node.kind else {
            continue;
        };
        let Some(logic) = &gate.logic else { continue };
        if let Some(version) = logic.version.filter(|version| *version != VERSION) {
            let message = format!(
                "{} has gate logic of version {version}, which is not supported; write {VERSION}.",
                title(node)
            );
            let location = Location::node_at(&node.id, "/logic/version");
            report(issues, Code::GateVersionUnsupported, location, message);
            // What another version's operators mean is unknown here.
            continue;
        }
        let Some(expr) = &logic.expr else { continue };
        let input = survey.port_schema(node, "input");
        let faults = Expr::parse(expr, input.map(AsRef::as_ref)).err();
        for fault in faults.into_iter().flatten() {
            let location = Location::node_at(&node.id, format!("/logic/expr{}", fault.pointer));
            let message = format!("In the logic of {}: {}.", title(node), fault.message);
            report(issues, fault.code, location, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validate::cases::{edge, found, gate, graph, input, output, push};

    fn with(version: i64, expr: Value) -> Vec<String> {
        let mut node = gate("g", "n");
        node["logic"] = json!({"version": version, "expr": expr});
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["n"],
            "properties": {"n": {"type": "number"}, "s": {"type": "string"}}});
        let mut document = graph(
            json!([input("in", "n"), node, output("o", "n"), output("p", "n")]),
            &[("e1", "in.data", "g.input"), ("e2", "g.pass", "o.input")],
            json!({"n": schema}),
        );
        push(&mut document, "edges", edge("e3", "g.fail", "p.input"));
        found(&document)
    }

    #[test]
    fn rule_10_version_1_of_the_language() {
        let issues = ["gate.version-unsupported node g /logic/version"];
        assert_eq!(with(2, json!({"magic": []})), issues);
        assert!(with(1, json!({"exists": "/n"})).is_empty());
    }

    #[test]
    fn l1_operators_are_known() {
        let issues = ["gate.operator-unknown node g /logic/expr/not/matches"];
        assert_eq!(with(1, json!({"not": {"matches": "x"}})), issues);
    }

    #[test]
    fn l1_operands_have_their_number() {
        let issues = ["gate.operands node g /logic/expr/eq"];
        assert_eq!(with(1, json!({"eq": [{"literal": 1}]})), issues);
        let two = json!({"eq": [{"literal": 1}, {"read": "/n"}]});
        assert!(with(1, two).is_empty());
    }

    #[test]
    fn l6_b016_types_that_literals_and_schemas_show() {
        let below = |text: Value| with(1, json!({"lt": [{"read": "/n"}, {"literal": text}]}));
        assert_eq!(
            below(json!("5")),
            ["gate.type-mismatch node g /logic/expr/lt/1"]
        );
        assert!(below(json!(5)).is_empty());
        let and = json!({"and": [{"read": "/n"}, {"exists": "/n"}]});
        assert_eq!(
            with(1, and),
            ["gate.type-mismatch node g /logic/expr/and/0"]
        );
    }

    #[test]
    fn l6_paths_that_the_schema_excludes() {
        let read = |pointer: &str| with(1, json!({"eq": [{"read": pointer}, {"literal": 1}]}));
        assert_eq!(
            read("/m"),
            ["gate.path-impossible node g /logic/expr/eq/0/read"]
        );
        assert!(read("/s").is_empty());
    }
}
