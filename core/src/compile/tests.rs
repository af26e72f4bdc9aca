//! Every code of wire-format.md §8 is found, in its place and in order, with a message that helps:
//! one sound graph of all node types, and one small edit for each code.

mod publication;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::dry_run;
use crate::catalogue::Catalogue;
use crate::code::Code;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::validate::Issue;
use crate::validate::cases::{
    action, agent, decision, edge, gate, graph, input, merge, output, policy, push, short,
};

/// What is judged: a graph, a catalogue or none, a sample input.
#[derive(Clone)]
struct Subject {
    graph: Value,
    catalogue: Value,
    input: Value,
}

impl Subject {
    /// A sound graph with a node of each type, mappings, a template and schemas.
    fn sound() -> Self {
        let claim = json!({"type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "number"}, "t": {"type": "string"}}});
        let mut writer = agent("agent");
        writer["failurePolicy"] = policy("emit-failure");
        writer["mappings"] = json!([{"targetPointer": "/text", "binding": {"kind": "template",
            "template": "{{ run }}: {{ n }}", "variables": [
                {"name": "run", "platform": "run.id"},
                {"name": "n", "binding": {"kind": "path", "sourceNodeId": "in",
                    "sourcePort": "data", "pointer": "/n"}}]}}]);
        let mut pay = action("action");
        pay["ports"]["input"] = json!("pay");
        pay["mappings"] = json!([
            {"targetPointer": "/n", "binding": {"kind": "path", "sourceNodeId": "in",
                "sourcePort": "data", "pointer": "/n"}},
            {"targetPointer": "/kind", "binding": {"kind": "literal", "value": "x"}}]);
        let check = json!({"id": "check", "type": "validator", "schema": "claim", "ports":
            {"input": "std.any", "pass": "claim", "fail": "std.validation-errors"}});
        let nodes = json!([
            input("in", "claim"),
            gate("gate", "claim"),
            check,
            decision("decision"),
            writer,
            pay,
            merge("merge"),
            output("out", "std.any"),
        ]);
        let edges = [
            ("e1", "in.data", "gate.input"),
            ("e2", "gate.pass", "check.input"),
            ("e3", "gate.fail", "merge.items"),
            ("e4", "check.pass", "decision.input"),
            ("e5", "check.fail", "merge.items"),
            ("e6", "decision.pass", "agent.input"),
            ("e7", "decision.fail", "merge.items"),
            ("e8", "agent.success", "action.input"),
            ("e9", "agent.failure", "merge.items"),
            ("ea", "action.success", "merge.items"),
            ("eb", "merge.data", "out.input"),
        ];
        let pay = json!({"type": "object", "required": ["n", "kind"], "additionalProperties": false,
            "properties": {"n": {"type": "number"}, "kind": {"type": "string"}}});
        let mut graph = graph(nodes, &edges, json!({"claim": claim, "pay": pay}));
        graph["layout"] = json!({"in": {"x": 0, "y": 0}});
        let mut catalogue = crate::validate::cases::catalogue();
        catalogue["permissions"] = json!(["agents.use", "claims.read"]);
        Self {
            graph,
            catalogue,
            input: json!({"n": 1}),
        }
    }

    fn edited(edit: impl Fn(&mut Self)) -> Self {
        let mut subject = Self::sound();
        edit(&mut subject);
        subject
    }

    fn node(&mut self, id: &str) -> &mut Value {
        let mut nodes = self.graph["nodes"].as_array_mut().unwrap().iter_mut();
        nodes.find(|node| node["id"] == id).unwrap()
    }

    fn edge(&mut self, id: &str) -> &mut Value {
        let mut edges = self.graph["edges"].as_array_mut().unwrap().iter_mut();
        edges.find(|edge| edge["id"] == id).unwrap()
    }

    /// The binding of the action's first mapping.
    fn read(&mut self) -> &mut Value {
        &mut self.node("action")["mappings"][0]["binding"]
    }

    /// The binding of the agent's template.
    fn template(&mut self) -> &mut Value {
        &mut self.node("agent")["mappings"][0]["binding"]
    }

    fn issues(&self) -> Vec<Issue> {
        let graph = Graph::read(&self.graph).unwrap();
        let catalogue = Catalogue::read(&self.catalogue).ok();
        let limits = Limits::default();
        let report = dry_run(&graph, Some(&self.input), catalogue.as_ref(), None, &limits);
        report.issues
    }

    fn found(&self) -> Vec<String> {
        self.issues().iter().map(short).collect()
    }
}

type Case = (Code, &'static str, fn(&mut Subject));

/// One edit of the sound graph for each code, and the finding's place.
fn cases() -> Vec<Case> {
    vec![
        (Code::GraphVersionUnsupported, "graph /schemaVersion", |s| {
            s.graph["schemaVersion"] = json!(2)
        }),
        (Code::GraphTooLarge, "graph", |s| {
            s.node("in")["description"] = json!("x".repeat(70_000))
        }),
        (Code::GraphTooManyNodes, "graph /nodes", |s| {
            s.graph["nodes"] = (0..101).map(|i| merge(&format!("m{i}"))).collect()
        }),
        (Code::GraphTooManyEdges, "graph /edges", |s| {
            s.graph["edges"] = (0..201)
                .map(|i| edge(&format!("e{i}"), "in.data", "out.input"))
                .collect()
        }),
        (Code::GraphTooManySchemas, "graph /schemas", |s| {
            for i in 0..33 {
                s.graph["schemas"][format!("s{i}")] = json!(true);
            }
        }),
        (Code::GraphInputCount, "graph", |s| {
            push(&mut s.graph, "nodes", input("in2", "claim"))
        }),
        (Code::GraphOutputMissing, "graph", |s| {
            s.graph["nodes"].as_array_mut().unwrap().pop();
        }),
        (Code::GraphCycle, "node merge", |s| {
            push(
                &mut s.graph,
                "edges",
                edge("ec", "merge.data", "merge.items"),
            )
        }),
        (Code::IdInvalid, "graph /edges/0/id", |s| {
            s.edge("e1")["id"] = json!("E 1")
        }),
        (Code::IdDuplicate, "graph /edges/1/id", |s| {
            s.edge("e2")["id"] = json!("e1")
        }),
        (Code::IdReserved, "graph /schemas/std.mine", |s| {
            s.graph["schemas"]["std.mine"] = json!(true)
        }),
        (Code::NodeIncomplete, "node merge /mode", |s| {
            s.node("merge").as_object_mut().unwrap().remove("mode");
        }),
        (Code::NodeUnreachable, "node behind", |s| {
            push(&mut s.graph, "nodes", merge("lost"));
            push(&mut s.graph, "nodes", output("behind", "std.any"));
            push(
                &mut s.graph,
                "edges",
                edge("ec", "lost.data", "behind.input"),
            );
        }),
        (Code::NodeDeadEnd, "node gate /ports/fail", |s| {
            s.graph["edges"].as_array_mut().unwrap().remove(2);
        }),
        (Code::PortUnknown, "edge eb /target/port", |s| {
            s.edge("eb")["target"]["port"] = json!("data")
        }),
        (Code::PortDirection, "edge eb /target/port", |s| {
            s.edge("eb")["target"] = json!({"nodeId": "in", "port": "data"})
        }),
        (Code::PortSchemaMissing, "node out /ports/input", |s| {
            s.node("out")["ports"] = json!({})
        }),
        (Code::PortSchemaMismatch, "node check /ports/fail", |s| {
            s.node("check")["ports"]["fail"] = json!("std.any")
        }),
        (Code::PortArity, "node out /ports/input", |s| {
            push(&mut s.graph, "edges", edge("ec", "in.data", "out.input"))
        }),
        (Code::EdgeEndpointUnknown, "edge eb /target/nodeId", |s| {
            s.edge("eb")["target"]["nodeId"] = json!("ghost")
        }),
        (Code::EdgeDuplicate, "edge ec", |s| {
            push(&mut s.graph, "edges", edge("ec", "in.data", "gate.input"))
        }),
        (Code::EdgeSchemaIncompatible, "edge eb", |s| {
            s.node("out")["ports"]["input"] = json!("std.text")
        }),
        (Code::SchemaUnknown, "node out /ports/input", |s| {
            s.node("out")["ports"]["input"] = json!("ghost")
        }),
        (Code::SchemaInvalid, "graph /schemas/pay/type", |s| {
            s.graph["schemas"]["pay"]["type"] = json!("claim")
        }),
        (
            Code::SchemaKeywordUnsupported,
            "graph /schemas/pay/if~1",
            |s| s.graph["schemas"]["pay"]["if/"] = json!(1),
        ),
        (
            Code::SchemaTooDeep,
            "graph /schemas/pay/items/items/items/items/items/items/items/items/items/items/items/items/items/items/items/items",
            |s| {
                s.graph["schemas"]["pay"] =
                    (0..16).fold(json!(true), |inner, _| json!({"items": inner}));
            },
        ),
        (Code::SchemaTooLarge, "graph /schemas/pay", |s| {
            s.graph["schemas"]["pay"]["title"] = json!("x".repeat(17_000))
        }),
        (
            Code::SchemaRecursive,
            "graph /schemas/pay/items/$ref",
            |s| s.graph["schemas"]["pay"]["items"] = json!({"$ref": "#"}),
        ),
        (
            Code::SchemaPatternUnsupported,
            "graph /schemas/pay/pattern",
            |s| s.graph["schemas"]["pay"]["pattern"] = json!("(?=a)"),
        ),
        (
            Code::MappingPointerInvalid,
            "node action /mappings/0/binding/pointer",
            |s| s.read()["pointer"] = json!("n"),
        ),
        (
            Code::MappingTargetConflict,
            "node action /mappings/1/targetPointer",
            |s| s.node("action")["mappings"][1]["targetPointer"] = json!("/n"),
        ),
        (
            Code::MappingSourceUnknown,
            "node action /mappings/0/binding/sourcePort",
            |s| s.read()["sourcePort"] = json!("pass"),
        ),
        (
            Code::MappingSourceNotUpstream,
            "node action /mappings/0/binding/sourceNodeId",
            |s| {
                *s.read() = json!({"kind": "path", "sourceNodeId": "merge", "sourcePort": "data", "pointer": ""});
            },
        ),
        (
            Code::MappingTypeIncompatible,
            "node action /mappings/1/binding",
            |s| s.node("action")["mappings"][1]["binding"]["value"] = json!(7),
        ),
        (
            Code::MappingSourceUncertain,
            "node action /mappings/0/binding",
            |s| {
                *s.read() = json!({"kind": "path", "sourceNodeId": "gate", "sourcePort": "fail", "pointer": "/n"});
            },
        ),
        (
            Code::TemplateSyntax,
            "node agent /mappings/0/binding/template",
            |s| s.template()["template"] = json!("{{ run"),
        ),
        (
            Code::TemplateVariableUnknown,
            "node agent /mappings/0/binding/template",
            |s| s.template()["template"] = json!("{{run}}{{n}}{{m}}"),
        ),
        (
            Code::TemplateVariableUnused,
            "node agent /mappings/0/binding/variables/1",
            |s| s.template()["template"] = json!("{{run}}"),
        ),
        (
            Code::TemplateVariableDenied,
            "node agent /mappings/0/binding/variables/0/platform",
            |s| s.template()["variables"][0]["platform"] = json!("env.home"),
        ),
        (
            Code::GateVersionUnsupported,
            "node gate /logic/version",
            |s| s.node("gate")["logic"]["version"] = json!(2),
        ),
        (
            Code::GateOperatorUnknown,
            "node gate /logic/expr/matches",
            |s| s.node("gate")["logic"]["expr"] = json!({"matches": "/n"}),
        ),
        (Code::GateOperands, "node gate /logic/expr/and", |s| {
            s.node("gate")["logic"]["expr"] = json!({"and": []})
        }),
        (Code::GateTypeMismatch, "node gate /logic/expr/lt/1", |s| {
            s.node("gate")["logic"]["expr"] = json!({"lt": [{"read": "/n"}, {"literal": "5"}]})
        }),
        (
            Code::GatePathImpossible,
            "node gate /logic/expr/eq/0/read",
            |s| s.node("gate")["logic"]["expr"] = json!({"eq": [{"read": "/m"}, {"literal": 1}]}),
        ),
        (
            Code::PolicyOutOfBounds,
            "node action /failurePolicy/maxAttempts",
            |s| s.node("action")["failurePolicy"]["maxAttempts"] = json!(6),
        ),
        (Code::AgentRevisionMissing, "node decision /agent", |s| {
            s.node("decision")["agent"]["revision"] = json!(9)
        }),
        (Code::AgentInactive, "node agent /agent", |s| {
            s.catalogue["agents"][0]["status"] = json!("paused")
        }),
        (
            Code::AgentStructuredOutputUnsupported,
            "node decision /agent",
            |s| s.catalogue["agents"][0]["structuredOutput"] = json!(false),
        ),
        (Code::ActionVersionMissing, "node action /action", |s| {
            s.node("action")["action"]["contractVersion"] = json!(9)
        }),
        (Code::ActionRiskForbidden, "node action /action", |s| {
            s.catalogue["actions"][0]["risk"] = json!("external")
        }),
        (Code::ActionIdempotencyMissing, "node action /action", |s| {
            s.catalogue["actions"][0]["idempotency"] = json!("none")
        }),
        (Code::PermissionDenied, "node action /action", |s| {
            s.catalogue["permissions"] = json!(["agents.use"])
        }),
        (Code::InputInvalid, "input /n", |s| {
            s.input = json!({"n": "x"})
        }),
        (Code::CatalogueAbsent, "graph", |s| {
            s.catalogue = json!(null)
        }),
        (Code::LayoutOrphan, "graph /layout/ghost", |s| {
            s.graph["layout"]["ghost"] = json!({"x": 0, "y": 0})
        }),
        (Code::SchemaUnused, "graph /schemas/spare", |s| {
            s.graph["schemas"]["spare"] = json!(true)
        }),
    ]
}

/// The codes of §8, which the list of codes keeps together and in its order.
fn section_8() -> &'static [Code] {
    let place = |code| Code::ALL.iter().position(|known| *known == code).unwrap();
    &Code::ALL[place(Code::GraphVersionUnsupported)..=place(Code::SchemaUnused)]
}

#[test]
fn s8_every_code_is_found_in_its_place_and_never_in_a_sound_graph() {
    assert_eq!(Subject::sound().found(), [""; 0]);
    let cases = cases();
    let codes: Vec<Code> = cases.iter().map(|(code, ..)| *code).collect();
    assert_eq!(codes, section_8());
    for (code, place, edit) in cases {
        let found = Subject::edited(edit).found();
        let wanted = format!("{code} {place}", code = code.as_str());
        assert!(found.contains(&wanted), "{wanted} is not in {found:#?}");
    }
}

#[test]
fn q4_the_reference_names_the_kind_of_place_of_every_code() {
    let page = include_str!("../../../docs/issues.md");
    let rows: BTreeMap<&str, &str> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|');
            let code = cells.next()?.trim().trim_matches('`');
            Some((code, cells.nth(1)?.trim()))
        })
        .collect();
    for (code, place, _) in cases() {
        let kind = place.split(' ').next().unwrap();
        let row = rows.get(code.as_str()).unwrap();
        assert!(row.contains(kind), "{code:?}: {row} has no {kind}");
    }
}

#[test]
fn s8_issues_come_in_order_whatever_the_order_of_the_document() {
    let kinds = ["graph", "input", "node", "edge"];
    let mut subject = Subject::sound();
    for (code, _, edit) in cases() {
        // These take another one's place, or end the judging of it.
        let alone = [
            Code::IdInvalid,
            Code::IdDuplicate,
            Code::NodeDeadEnd,
            Code::PortArity,
            Code::EdgeDuplicate,
            Code::CatalogueAbsent,
        ];
        if !alone.contains(&code) && !code.as_str().starts_with("graph.") {
            edit(&mut subject);
        }
    }
    let issues = subject.issues();
    let found: Vec<String> = issues.iter().map(short).collect();
    assert!(found.len() > 18, "{found:#?}");
    let key = |issue: &Issue| {
        let location = crate::value::to_value(&issue.location).unwrap();
        let text = |name: &str| location[name].as_str().unwrap_or("").to_owned();
        let kind = kinds.iter().position(|kind| text("kind") == *kind).unwrap();
        let id = text("nodeId") + &text("edgeId");
        (kind, id, issue.code.as_str(), text("path"))
    };
    let keys: Vec<_> = issues.iter().map(key).collect();
    assert!(keys.is_sorted(), "{found:#?}");
    let kinds: BTreeSet<usize> = keys.iter().map(|key| key.0).collect();
    assert_eq!(kinds.len(), 4);
    for list in ["nodes", "edges"] {
        subject.graph[list].as_array_mut().unwrap().reverse();
    }
    assert_eq!(subject.found(), found);
}

#[test]
fn s8_messages_are_sentences_that_say_what_to_do_and_repeat_no_long_text() {
    for (code, place, edit) in cases() {
        let mut subject = Subject::edited(edit);
        // Neither a value that may be secret nor a text of any length gets into a message.
        let secret = "s3cret";
        let long = "long".repeat(100);
        let nodes = subject.graph["nodes"].as_array_mut().unwrap();
        for node in nodes.iter_mut().filter(|_| code != Code::GraphTooManyNodes) {
            node["label"] = json!(format!("Node {long}"));
            if let Some(Value::Array(mappings)) = node.get_mut("mappings") {
                let value = json!({"kind": "literal", "value": [secret, long]});
                mappings.push(json!({"targetPointer": "/extra", "binding": value}));
            }
        }
        subject.input["t"] = json!([secret, long]);
        subject.input[&long] = json!(secret);
        let issues = subject.issues();
        assert!(!issues.is_empty());
        for issue in issues {
            let message = &issue.message;
            let about = format!("{code:?} {place}: {message:?}");
            let first = message.chars().next();
            assert!(first.is_some_and(|c| !c.is_lowercase()), "{about}");
            assert!(
                message.ends_with('.') && !message.ends_with(".."),
                "{about}"
            );
            assert!(
                !message.contains('\n') && !message.contains("  "),
                "{about}"
            );
            assert!(message.len() > 20 && message.len() < 700, "{about}");
            assert!(
                !message.contains(secret) && !message.contains(&long),
                "{about}"
            );
        }
    }
}
