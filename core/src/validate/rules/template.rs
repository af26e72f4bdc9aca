//! `template.*` (wire-format.md M3, M4; seed A publication rule 9). A platform variable that
//! is not of version 1's list is denied.

use std::fmt::Display;

use super::{report, shown};
use crate::code::Code;
use crate::graph::{Node, TemplateVariable, VariableSource};
use crate::mapping::{Fault, Part, Platform, Source, compile_template};
use crate::validate::issue::{Issue, Location};
use crate::value::{Pointer, Value};

/// Judges a template at a path of its node. What its variables read is the mappings' matter.
pub(super) fn check(
    node: &Node,
    path: impl Display,
    template: &str,
    variables: &[TemplateVariable],
    issues: &mut Vec<Issue>,
) {
    for (at, variable) in variables.iter().enumerate() {
        if let VariableSource::Platform(id) = &variable.source
            && platform(id).is_none()
        {
            let message = format!(
                "The platform variable {:?} of {} may not be used; choose run.id, run.workflow-key, \
                 run.workflow-revision, run.queued-at, actor.label or tenant.id.",
                shown(id),
                shown(&variable.name)
            );
            let location = Location::node_at(&node.id, format!("{path}/variables/{at}/platform"));
            report(issues, Code::TemplateVariableDenied, location, message);
        }
    }
    for fault in parts(template, variables).err().into_iter().flatten() {
        let place = match fault.variable {
            Some(at) => format!("{path}/variables/{at}"),
            None => format!("{path}/template"),
        };
        let message = format!("In the template: {}.", fault.message);
        report(
            issues,
            fault.code,
            Location::node_at(&node.id, place),
            message,
        );
    }
}

/// A template as a plan stores it. A variable whose source is at fault, which other rules
/// report, stands as an empty text.
pub(super) fn parts(
    template: &str,
    variables: &[TemplateVariable],
) -> Result<Vec<Part>, Vec<Fault>> {
    let variables: Vec<(String, Part)> = variables
        .iter()
        .map(|variable| {
            let part = match &variable.source {
                VariableSource::Platform(id) => platform(id).map(Part::Platform),
                VariableSource::Binding(read) => {
                    Pointer::parse(&read.pointer).ok().map(|pointer| {
                        Part::Path(Source {
                            node_id: read.source_node_id.clone(),
                            port: read.source_port.clone(),
                            pointer,
                        })
                    })
                }
            };
            let part = part.unwrap_or_else(|| Part::Text(String::new()));
            (variable.name.clone(), part)
        })
        .collect();
    compile_template(template, &variables)
}

fn platform(id: &str) -> Option<Platform> {
    serde_json::from_value(Value::String(id.to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validate::cases::{found, sound};

    fn with(template: &str, variables: Value) -> Vec<String> {
        let mut graph = sound();
        graph["nodes"][1]["mappings"] = json!([{"targetPointer": "", "binding":
            {"kind": "template", "template": template, "variables": variables}}]);
        found(&graph)
    }

    fn at(code: &str, path: &str) -> String {
        format!("template.{code} node out /mappings/0/binding{path}")
    }

    fn name(pointer: &str) -> Value {
        json!([{"name": "name", "binding": {"kind": "path", "sourceNodeId": "in",
            "sourcePort": "data", "pointer": pointer}}])
    }

    #[test]
    fn m3_tokens_are_closed() {
        assert_eq!(
            with("Hello {{ name", name("/name")),
            [at("syntax", "/template")]
        );
        assert_eq!(
            with("Hello {{ 1x }}", json!([])),
            [at("syntax", "/template")]
        );
        assert!(with("Hello {{name}}, {{{{ name", name("/name")).is_empty());
    }

    #[test]
    fn m3_b028_variables_are_declared() {
        let issues = [at("variable-unknown", "/template")];
        assert_eq!(with("Hello {{ name }}", json!([])), issues);
        assert!(with("Hello {{ name }}", name("/name")).is_empty());
    }

    #[test]
    fn m3_declared_variables_are_used_and_unique() {
        let issues = [at("variable-unused", "/variables/0")];
        assert_eq!(with("Hello", name("/name")), issues);
        let twice = json!([name("/a")[0], name("/b")[0]]);
        let issues = [at("variable-unused", "/variables/1")];
        assert_eq!(with("Hello {{ name }}", twice), issues);
        assert!(with("{{ name }}{{ name }}", name("/name")).is_empty());
    }

    #[test]
    fn m4_platform_variables_are_those_of_version_1() {
        let who = |id: &str| with("{{ who }}", json!([{"name": "who", "platform": id}]));
        for id in ["run.secret", "", "actor", "run.Id"] {
            assert_eq!(
                who(id),
                [at("variable-denied", "/variables/0/platform")],
                "{id}"
            );
        }
        for id in [
            "run.id",
            "run.workflow-key",
            "run.workflow-revision",
            "run.queued-at",
            "actor.label",
            "tenant.id",
        ] {
            assert!(who(id).is_empty(), "{id}");
        }
    }

    #[test]
    fn m2_what_a_variable_reads_is_judged_like_a_mapping() {
        let issues =
            ["mapping.pointer-invalid node out /mappings/0/binding/variables/0/binding/pointer"];
        assert_eq!(with("{{ name }}", name("name")), issues);
    }
}
