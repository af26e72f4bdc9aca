//! `schema.*` of the graph's own schemas (wire-format.md S1–S4, Q1); `schema.unknown` stands
//! with the ports that name one.

use std::collections::BTreeSet;

use super::{report, shown};
use crate::code::Code;
use crate::graph::Kind;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;
use crate::value::escape;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for (id, faults) in &survey.schema_faults {
        for fault in faults.iter() {
            let path = format!("/schemas/{}{}", escape(id), fault.pointer);
            let message = format!("In the schema {}: {}.", shown(id), fault.message);
            report(issues, fault.code, Location::graph_at(path), message);
        }
    }
    let mut used = BTreeSet::new();
    for node in &survey.nodes {
        used.extend(node.ports.values().map(AsRef::as_ref));
        if let Kind::Validator(validator) = &node.kind {
            used.extend(validator.schema.iter().map(AsRef::<str>::as_ref));
        }
    }
    for id in survey.graph.schemas.keys().map(AsRef::<str>::as_ref) {
        // A reserved name is at fault already, and cannot be used.
        if !used.contains(id) && !id.starts_with("std.") {
            let location = Location::graph_at(format!("/schemas/{}", escape(id)));
            let message = format!(
                "No port and no validator uses the schema {}; remove it or use it.",
                shown(id)
            );
            report(issues, Code::SchemaUnused, location, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validate::cases::{found, sound};

    fn with(schema: Value) -> Vec<String> {
        let mut graph = sound();
        graph["schemas"] = json!({"s": schema});
        graph["nodes"][0]["ports"]["data"] = json!("s");
        found(&graph)
    }

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!(true), |inner, _| json!({"items": inner}))
    }

    #[test]
    fn s1_a_schema_is_valid() {
        assert_eq!(
            with(json!({"type": "claim"})),
            ["schema.invalid graph /schemas/s/type"]
        );
        assert_eq!(with(json!(7)), ["schema.invalid graph /schemas/s"]);
        assert!(with(json!({"type": "integer"})).is_empty());
    }

    #[test]
    fn s2_keywords_outside_the_subset_are_named() {
        let schema = json!({"properties": {"a": {"unevaluatedItems": false}}});
        let issues = ["schema.keyword-unsupported graph /schemas/s/properties/a/unevaluatedItems"];
        assert_eq!(with(schema), issues);
        assert!(with(json!({"properties": {"unevaluatedItems": true}})).is_empty());
    }

    #[test]
    fn s2_depth_and_size() {
        let deep = with(nested(17));
        assert!(
            deep.len() == 1 && deep[0].starts_with("schema.too-deep graph /schemas/s"),
            "{deep:?}"
        );
        assert!(with(nested(16)).is_empty());
        let text = |bytes: usize| json!({"const": "x".repeat(bytes - 12)});
        assert_eq!(with(text(16_385)), ["schema.too-large graph /schemas/s"]);
        assert!(with(text(16_384)).is_empty());
    }

    #[test]
    fn s1_b044_recursion_is_refused() {
        let own = json!({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"});
        let issues = with(own);
        assert!(
            !issues.is_empty()
                && issues
                    .iter()
                    .all(|i| i.starts_with("schema.recursive graph /schemas/s/")),
            "{issues:?}"
        );
        for other in [
            json!({"$ref": ""}),
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
        ] {
            let issues = with(other.clone());
            assert!(
                !issues.is_empty() && issues[0].contains("/schemas/s"),
                "{other}: {issues:?}"
            );
        }
        assert!(with(json!({"$defs": {"a": true}, "$ref": "#/$defs/a"})).is_empty());
    }

    #[test]
    fn s3_patterns_match_in_linear_time() {
        let issues = ["schema.pattern-unsupported graph /schemas/s/pattern"];
        assert_eq!(with(json!({"pattern": "(?=a)b"})), issues);
        assert!(with(json!({"pattern": "^a+b$"})).is_empty());
    }

    #[test]
    fn q1_an_unused_schema_is_a_warning() {
        let mut graph = sound();
        graph["schemas"] = json!({"used": true, "spare/1": true});
        graph["nodes"][0]["ports"]["data"] = json!("used");
        let issues = [
            "id.invalid graph /schemas/spare~11",
            "schema.unused graph /schemas/spare~11",
        ];
        assert_eq!(found(&graph), issues);
        let graph = crate::graph::Graph::read(&graph).unwrap();
        let issues = crate::validate::check(&graph, None, &crate::limits::Limits::default());
        let unused = issues
            .iter()
            .find(|i| i.code.as_str() == "schema.unused")
            .unwrap();
        assert!(!unused.is_error());
    }
}
