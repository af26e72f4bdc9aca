//! The fourteen publication rules of seed A, each by its number.

use std::collections::BTreeSet;

use serde_json::json;

use super::Subject;
use crate::catalogue::Catalogue;
use crate::code::Code;
use crate::compile::compile;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::validate::cases::{edge, input, merge, output, policy, push};

/// Why a graph cannot be published: the codes of its errors, none where it has a plan.
fn refused(edit: impl Fn(&mut Subject)) -> BTreeSet<&'static str> {
    let subject = Subject::edited(edit);
    let graph = Graph::read(&subject.graph).unwrap();
    let catalogue = Catalogue::read(&subject.catalogue).unwrap();
    let compiled = compile(&graph, Some(&catalogue), &Limits::default());
    let errors = compiled.issues.iter().filter(|issue| issue.is_error());
    let codes: BTreeSet<_> = errors.map(|issue| issue.code.as_str()).collect();
    assert_eq!(compiled.plan.is_none(), !codes.is_empty(), "{codes:?}");
    codes
}

/// That an edit is refused, with this code among the reasons.
#[track_caller]
fn refuses(code: Code, edit: impl Fn(&mut Subject)) {
    let codes = refused(edit);
    assert!(
        codes.contains(code.as_str()),
        "{code:?} is not in {codes:?}"
    );
}

#[test]
fn rule_01_exactly_one_input_and_at_least_one_output() {
    assert_eq!(refused(|_| ()), BTreeSet::new());
    refuses(Code::GraphInputCount, |s| {
        push(&mut s.graph, "nodes", input("in2", "claim"))
    });
    refuses(Code::GraphInputCount, |s| {
        s.graph["nodes"].as_array_mut().unwrap().remove(0);
    });
    refuses(Code::GraphOutputMissing, |s| {
        s.graph["nodes"].as_array_mut().unwrap().pop();
    });
}

#[test]
fn rule_02_identifiers_of_nodes_edges_ports_and_schemas_are_unique() {
    refuses(Code::IdDuplicate, |s| s.edge("e2")["id"] = json!("e1"));
    refuses(Code::IdDuplicate, |s| {
        push(&mut s.graph, "nodes", merge("merge"))
    });
    // Ports and schemas are members of an object: a second one is no I-JSON (J1), and a name of
    // ours cannot be taken.
    let error = crate::value::read(r#"{"schemas": {"s": true, "s": false}}"#).unwrap_err();
    assert_eq!(error.code, Code::JsonDuplicateMember);
    refuses(Code::IdReserved, |s| {
        s.graph["schemas"]["std.text"] = json!(true)
    });
}

#[test]
fn rule_03_no_cycle() {
    let back = |s: &mut Subject| {
        push(
            &mut s.graph,
            "edges",
            edge("ec", "merge.data", "merge.items"),
        )
    };
    refuses(Code::GraphCycle, back);
}

#[test]
fn rule_04_every_node_is_reachable_from_the_input() {
    refuses(Code::NodeUnreachable, |s| {
        push(&mut s.graph, "nodes", merge("lost"));
        push(&mut s.graph, "nodes", output("behind", "std.any"));
        push(
            &mut s.graph,
            "edges",
            edge("ec", "lost.data", "behind.input"),
        );
    });
}

#[test]
fn rule_05_every_path_ends_at_an_output_or_a_handled_failure() {
    for cut in [
        "gate.fail",
        "check.fail",
        "decision.pass",
        "agent.failure",
        "merge.data",
    ] {
        refuses(Code::NodeDeadEnd, |s| {
            let (node, port) = cut.split_once('.').unwrap();
            let end = json!({"nodeId": node, "port": port});
            s.graph["edges"]
                .as_array_mut()
                .unwrap()
                .retain(|edge| edge["source"] != end);
        });
    }
    // A failure that ends the run needs no edge.
    assert!(
        refused(|s| {
            s.node("agent")["failurePolicy"] = policy("fail-run");
            s.graph["edges"]
                .as_array_mut()
                .unwrap()
                .retain(|edge| edge["id"] != "e9");
        })
        .is_empty()
    );
}

#[test]
fn rule_06_every_edge_joins_existing_compatible_ports() {
    refuses(Code::EdgeEndpointUnknown, |s| {
        s.edge("eb")["source"]["nodeId"] = json!("ghost")
    });
    refuses(Code::PortUnknown, |s| {
        s.edge("eb")["source"]["port"] = json!("pass")
    });
    refuses(Code::PortDirection, |s| {
        s.edge("eb")["source"] = json!({"nodeId": "out", "port": "input"})
    });
    refuses(Code::EdgeSchemaIncompatible, |s| {
        s.node("out")["ports"]["input"] = json!("std.text")
    });
}

#[test]
fn rule_07_every_input_port_has_the_allowed_number_of_edges() {
    refuses(Code::PortArity, |s| {
        push(&mut s.graph, "edges", edge("ec", "in.data", "out.input"))
    });
    refuses(Code::PortArity, |s| {
        push(&mut s.graph, "nodes", output("alone", "std.any"))
    });
}

#[test]
fn rule_08_mappings_read_upstream_nodes_alone() {
    for later in [("merge", "data"), ("action", "success")] {
        refuses(Code::MappingSourceNotUpstream, |s| {
            *s.read() = json!({"kind": "path", "sourceNodeId": later.0, "sourcePort": later.1,
                "pointer": ""});
        });
    }
    refuses(Code::MappingSourceUnknown, |s| {
        s.read()["sourceNodeId"] = json!("ghost")
    });
}

#[test]
fn rule_09_template_variables_exist_and_are_allowed() {
    refuses(Code::TemplateVariableUnknown, |s| {
        s.template()["template"] = json!("{{run}}{{n}}{{m}}")
    });
    refuses(Code::TemplateVariableDenied, |s| {
        s.template()["variables"][0]["platform"] = json!("env.home")
    });
    refuses(Code::PermissionDenied, |s| {
        s.catalogue["permissions"] = json!([])
    });
}

#[test]
fn rule_10_gate_logic_is_of_version_1() {
    refuses(Code::GateVersionUnsupported, |s| {
        s.node("gate")["logic"]["version"] = json!(2)
    });
    refuses(Code::GateOperatorUnknown, |s| {
        s.node("gate")["logic"]["expr"] = json!({"matches": "/n"})
    });
}

#[test]
fn rule_11_schemas_are_in_the_subset_and_within_its_limits() {
    refuses(Code::SchemaKeywordUnsupported, |s| {
        s.graph["schemas"]["pay"]["$anchor"] = json!("a")
    });
    refuses(Code::SchemaTooDeep, |s| {
        s.graph["schemas"]["pay"] = (0..16).fold(json!(true), |inner, _| json!({"items": inner}));
    });
    refuses(Code::SchemaTooLarge, |s| {
        s.graph["schemas"]["pay"]["title"] = json!("x".repeat(17_000))
    });
}

#[test]
fn rule_12_agents_are_pinned_to_an_active_revision() {
    refuses(Code::AgentRevisionMissing, |s| {
        s.node("agent")["agent"]["revision"] = json!(9)
    });
    for status in ["paused", "archived"] {
        refuses(Code::AgentInactive, |s| {
            s.catalogue["agents"][0]["status"] = json!(status)
        });
    }
}

#[test]
fn rule_13_actions_are_pinned_idempotent_and_of_an_allowed_risk() {
    refuses(Code::ActionVersionMissing, |s| {
        s.node("action")["action"]["contractVersion"] = json!(9)
    });
    refuses(Code::ActionIdempotencyMissing, |s| {
        s.catalogue["actions"][0]["idempotency"] = json!("none")
    });
    for risk in ["external", "destructive"] {
        refuses(Code::ActionRiskForbidden, |s| {
            s.catalogue["actions"][0]["risk"] = json!(risk)
        });
    }
    assert!(refused(|s| s.catalogue["actions"][0]["risk"] = json!("workspace-write")).is_empty());
}

#[test]
fn rule_14_graph_and_plan_are_within_all_limits() {
    refuses(Code::GraphTooLarge, |s| {
        s.node("in")["description"] = json!("x".repeat(70_000))
    });
    refuses(Code::GraphTooManyNodes, |s| {
        s.graph["nodes"] = (0..101).map(|i| merge(&format!("m{i}"))).collect();
    });
    refuses(Code::GraphTooManySchemas, |s| {
        for i in 0..33 {
            s.graph["schemas"][format!("s{i}")] = json!(true);
        }
    });
    refuses(Code::PolicyOutOfBounds, |s| {
        s.node("agent")["timeoutMs"] = json!(999)
    });
}
