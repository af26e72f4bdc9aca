//! `id.invalid`, `id.duplicate`, `id.reserved` (wire-format.md I1, I2). An identifier that is
//! at fault cannot address its owner, so nodes and edges are named by their place.

use std::collections::BTreeSet;

use super::{report, shown};
use crate::code::Code;
use crate::graph::Kind;
use crate::ids::is_identifier;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;
use crate::value::escape;

const FORM: &str = "use 1 to 128 of a-z, 0-9, '_', '-' and '.', each part beginning with a \
                    letter or digit";

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    let graph = survey.graph;
    let nodes = graph.nodes.iter().map(|node| node.id.as_str());
    let once = graph.nodes.len() == survey.nodes.len();
    judge(nodes, once, "node", "/nodes", issues);
    let edges = graph.edges.iter().map(|edge| edge.id.as_str());
    let once = graph.edges.len() == survey.edges.len();
    judge(edges, once, "edge", "/edges", issues);
    for id in graph.schemas.keys() {
        let location = Location::graph_at(format!("/schemas/{}", escape(id.as_str())));
        if !is_identifier(id.as_str()) {
            let message = format!("{:?} is not an identifier; {FORM}.", shown(id.as_str()));
            report(issues, Code::IdInvalid, location, message);
        } else if id.as_str().starts_with("std.") {
            let message = format!(
                "The schema {id} has a reserved name, for names that begin with \"std.\" are built in; \
                 choose another."
            );
            report(issues, Code::IdReserved, location, message);
        }
    }
    for node in &survey.nodes {
        let (id, path) = match &node.kind {
            Kind::Agent(agent) | Kind::AgentDecision(agent) => {
                let agent = agent
                    .agent
                    .as_ref()
                    .and_then(|agent| agent.agent_id.as_ref());
                (agent.map(AsRef::as_ref), "/agent/agentId")
            }
            Kind::Action(action) => {
                let action = action
                    .action
                    .as_ref()
                    .and_then(|action| action.action_id.as_ref());
                (action.map(AsRef::as_ref), "/action/actionId")
            }
            _ => (None::<&str>, ""),
        };
        if let Some(id) = id.filter(|id| !is_identifier(id)) {
            let location = Location::node_at(&node.id, path);
            let message = format!("{:?} is not an identifier; {FORM}.", shown(id));
            report(issues, Code::IdInvalid, location, message);
        }
    }
}

/// The form of the identifiers of a list, and whether each is used once where that is not known.
fn judge<'g>(
    ids: impl Iterator<Item = &'g str>,
    once: bool,
    what: &str,
    list: &str,
    issues: &mut Vec<Issue>,
) {
    let mut seen = BTreeSet::new();
    for (at, id) in ids.enumerate() {
        let location = || Location::graph_at(format!("{list}/{at}/id"));
        if !is_identifier(id) {
            let message = format!("{:?} is not an identifier for a {what}; {FORM}.", shown(id));
            report(issues, Code::IdInvalid, location(), message);
        }
        if !once && !seen.insert(id) {
            let message = format!(
                "Another {what} has the id {} too; give one of them a new id.",
                shown(id)
            );
            report(issues, Code::IdDuplicate, location(), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validate::cases::{action, agent, around, edge, found, push, sound};

    fn renamed(node: &str) -> serde_json::Value {
        let mut graph = sound();
        graph["nodes"][1]["id"] = json!(node);
        graph["edges"][0]["target"]["nodeId"] = json!(node);
        graph
    }

    #[test]
    fn i1_b041_identifiers_of_nodes() {
        for bad in ["Constructor", "__proto__", "", "a..b", "é"] {
            assert_eq!(
                found(&renamed(bad)),
                ["id.invalid graph /nodes/1/id"],
                "{bad}"
            );
        }
        for good in ["constructor", "prototype", "is.prototype.of", "std.any"] {
            assert!(found(&renamed(good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn i1_identifiers_of_edges_and_schemas() {
        let mut graph = sound();
        graph["edges"][0]["id"] = json!("E 1");
        graph["schemas"] = json!({"A/b": true, "ok": true});
        graph["nodes"][1]["ports"]["input"] = json!("A/b");
        let issues = [
            "id.invalid graph /edges/0/id",
            "id.invalid graph /schemas/A~1b",
            "schema.unused graph /schemas/ok",
        ];
        assert_eq!(found(&graph), issues);
    }

    #[test]
    fn i1_identifiers_of_agents_and_actions() {
        let mut node = agent("a");
        node["agent"]["agentId"] = json!("The Writer");
        let graph = around(node, "input", "success");
        let issues = [
            "agent.revision-missing node a /agent",
            "id.invalid node a /agent/agentId",
        ];
        assert_eq!(found(&graph), issues);
        let mut node = action("a");
        node["action"]["actionId"] = json!("Claim.read");
        let graph = around(node, "input", "success");
        let issues = [
            "action.version-missing node a /action",
            "id.invalid node a /action/actionId",
        ];
        assert_eq!(found(&graph), issues);
        assert!(found(&around(agent("a"), "input", "success")).is_empty());
        assert!(found(&around(action("a"), "input", "success")).is_empty());
    }

    #[test]
    fn i1_b036_ids_are_used_once() {
        let mut graph = sound();
        let second = graph["nodes"][1].clone();
        push(&mut graph, "nodes", second);
        let second = edge("e", "in.data", "out.input");
        push(&mut graph, "edges", second);
        let issues = [
            "id.duplicate graph /edges/1/id",
            "id.duplicate graph /nodes/2/id",
        ];
        assert_eq!(found(&graph), issues);
        // The same id for a node and an edge is no conflict.
        let mut graph = sound();
        graph["edges"][0]["id"] = json!("in");
        assert!(found(&graph).is_empty());
    }

    #[test]
    fn i2_std_is_reserved_for_schemas() {
        let mut graph = sound();
        graph["schemas"] = json!({"std.mine": true, "stdx": true});
        graph["nodes"][0]["ports"]["data"] = json!("stdx");
        assert_eq!(found(&graph), ["id.reserved graph /schemas/std.mine"]);
    }
}
