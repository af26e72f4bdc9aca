//! `node.incomplete`, `node.unreachable`, `node.dead-end` (wire-format.md G8, G9; seed A
//! publication rules 4 and 5).

use super::{report, shown, title};
use crate::code::Code;
use crate::graph::{FailurePolicy, Kind, MergeNode, Node};
use crate::validate::flow::Flow;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::{End, Survey, choices, has_policy};

pub(super) fn check(survey: &Survey<'_>, flow: &Flow, acyclic: bool, issues: &mut Vec<Issue>) {
    for (at, node) in survey.nodes.iter().enumerate() {
        for path in missing(node) {
            let what = path.rsplit('/').next().unwrap_or_default();
            let message = format!("{} is not configured: set {what}.", title(node));
            let location = Location::node_at(&node.id, path);
            report(issues, Code::NodeIncomplete, location, message);
        }
        if let Kind::Merge(MergeNode { mode: Some(mode) }) = &node.kind
            && mode != MergeNode::ALL
        {
            let message = format!(
                "{} has mode {:?}; write \"all\", the only mode.",
                title(node),
                shown(mode)
            );
            let location = Location::node_at(&node.id, "/mode");
            report(issues, Code::NodeIncomplete, location, message);
        }
        // A node that nothing leads to is the port's matter; this is about what stands behind.
        if flow.has_input() && !flow.is_reachable(at) && flow.has_incoming(at) {
            let message = format!(
                "{} cannot be reached from the input; connect what stands before it.",
                title(node)
            );
            report(
                issues,
                Code::NodeUnreachable,
                Location::node(&node.id),
                message,
            );
        }
    }
    if acyclic {
        dead_ends(survey, flow, issues);
    }
}

/// Reports each port that can be chosen and has no edge. An edge whose far end is broken
/// counts: that end is reported instead.
fn dead_ends(survey: &Survey<'_>, flow: &Flow, issues: &mut Vec<Issue>) {
    let mut used = std::collections::BTreeSet::new();
    for route in &survey.edges {
        if let End::Port(node, port) = route.source {
            used.insert((node, port.name));
        }
    }
    for (at, node) in survey.nodes.iter().enumerate() {
        if !flow.is_reachable(at) {
            continue;
        }
        for port in choices(node).filter(|port| !used.contains(&(at, port.name))) {
            let message = format!(
                "The port {} of {} leads nowhere; connect it to a node.",
                port.name,
                title(node)
            );
            let location = Location::node_at(&node.id, format!("/ports/{}", port.name));
            report(issues, Code::NodeDeadEnd, location, message);
        }
    }
}

/// Paths of configuration members that the node's type needs and that are absent.
fn missing(node: &Node) -> Vec<&'static str> {
    let mut paths = Vec::new();
    let mut need = |present: bool, path| {
        if !present {
            paths.push(path);
        }
    };
    match &node.kind {
        Kind::Input | Kind::Output(_) => {}
        Kind::Agent(node) | Kind::AgentDecision(node) => match &node.agent {
            None => need(false, "/agent"),
            Some(agent) => {
                need(agent.agent_id.is_some(), "/agent/agentId");
                need(agent.revision.is_some(), "/agent/revision");
            }
        },
        Kind::Action(node) => match &node.action {
            None => need(false, "/action"),
            Some(action) => {
                need(action.action_id.is_some(), "/action/actionId");
                need(action.contract_version.is_some(), "/action/contractVersion");
            }
        },
        Kind::Gate(node) => match &node.logic {
            None => need(false, "/logic"),
            Some(logic) => {
                need(logic.version.is_some(), "/logic/version");
                need(logic.expr.is_some(), "/logic/expr");
            }
        },
        Kind::Validator(node) => need(node.schema.is_some(), "/schema"),
        Kind::Merge(node) => need(node.mode.is_some(), "/mode"),
    }
    if has_policy(node.node_type()) {
        match node.kind.failure_policy() {
            None => paths.push("/failurePolicy"),
            Some(policy) => paths.extend(missing_of_policy(policy)),
        }
    }
    paths
}

fn missing_of_policy(policy: &FailurePolicy) -> impl Iterator<Item = &'static str> {
    let backoff = policy.backoff.as_ref();
    let has = |present: fn(&crate::graph::Backoff) -> bool| backoff.is_none_or(present);
    [
        (policy.max_attempts.is_some(), "/failurePolicy/maxAttempts"),
        (policy.retry_on.is_some(), "/failurePolicy/retryOn"),
        (backoff.is_some(), "/failurePolicy/backoff"),
        (has(|b| b.kind.is_some()), "/failurePolicy/backoff/kind"),
        (
            has(|b| b.initial_ms.is_some()),
            "/failurePolicy/backoff/initialMs",
        ),
        (
            has(|b| b.maximum_ms.is_some()),
            "/failurePolicy/backoff/maximumMs",
        ),
        (policy.on_exhausted.is_some(), "/failurePolicy/onExhausted"),
    ]
    .into_iter()
    .filter_map(|(present, path)| (!present).then_some(path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validate::cases::{
        action, agent, around, decision, found, gate, graph, input, merge, output, policy, push,
        sound,
    };

    #[test]
    fn g8_absent_configuration_is_an_issue() {
        let bare = |kind: &str, ports: Value| json!({"id": "x", "type": kind, "ports": ports});
        let work = json!({"input": "std.any", "success": "std.text", "failure": "std.failure"});
        let gate_ports = json!({"input": "std.any", "pass": "std.any", "fail": "std.any"});
        let check_ports =
            json!({"input": "std.any", "pass": "std.any", "fail": "std.validation-errors"});
        let merge_ports = json!({"items": "std.any", "data": "std.merged"});
        for (node, into, out_of, paths) in [
            (
                bare("agent", work.clone()),
                "input",
                "success",
                vec!["/agent", "/failurePolicy"],
            ),
            (
                bare("action", work),
                "input",
                "success",
                vec!["/action", "/failurePolicy"],
            ),
            (bare("merge", merge_ports), "items", "data", vec!["/mode"]),
            (bare("gate", gate_ports), "input", "pass", vec!["/logic"]),
            (
                bare("validator", check_ports),
                "input",
                "pass",
                vec!["/schema"],
            ),
        ] {
            let incomplete: Vec<String> = found(&around(node, into, out_of))
                .into_iter()
                .filter(|issue| !issue.contains("dead-end"))
                .collect();
            let expected: Vec<String> = paths
                .iter()
                .map(|path| format!("node.incomplete node x {path}"))
                .collect();
            assert_eq!(incomplete, expected);
        }
    }

    #[test]
    fn g8_absent_members_of_the_configuration_are_named() {
        let mut node = agent("x");
        node["agent"] = json!({});
        node["failurePolicy"] = json!({"backoff": {}});
        let paths = [
            "/agent/agentId",
            "/agent/revision",
            "/failurePolicy/backoff/initialMs",
            "/failurePolicy/backoff/kind",
            "/failurePolicy/backoff/maximumMs",
            "/failurePolicy/maxAttempts",
            "/failurePolicy/onExhausted",
            "/failurePolicy/retryOn",
        ];
        let expected = paths.map(|path| format!("node.incomplete node x {path}"));
        assert_eq!(found(&around(node, "input", "success")), expected);
        let mut node = merge("x");
        node["mode"] = json!("first");
        assert_eq!(
            found(&around(node, "items", "data")),
            ["node.incomplete node x /mode"]
        );
    }

    #[test]
    fn g9_nodes_behind_one_without_an_edge_are_unreachable() {
        let document = graph(
            json!([
                input("in", "std.any"),
                output("out", "std.any"),
                merge("lost"),
                merge("behind"),
                output("end", "std.any")
            ]),
            &[
                ("e1", "in.data", "out.input"),
                ("e2", "lost.data", "behind.items"),
                ("e3", "behind.data", "end.input"),
            ],
            json!({}),
        );
        let issues = [
            "node.unreachable node behind",
            "node.unreachable node end",
            "port.arity node lost /ports/items",
        ];
        assert_eq!(found(&document), issues);
        // A merge is reached when one of its edges comes from the input.
        let mut edges = document;
        let edge = crate::validate::cases::edge("e4", "in.data", "behind.items");
        push(&mut edges, "edges", edge);
        assert_eq!(found(&edges), ["port.arity node lost /ports/items"]);
        // Without an input nothing could be reached, and that is one fault and not many.
        let nodes = json!([merge("m"), output("o", "std.any")]);
        let rootless = graph(nodes, &[("e1", "m.data", "o.input")], json!({}));
        let issues = ["graph.input-count graph", "port.arity node m /ports/items"];
        assert_eq!(found(&rootless), issues);
    }

    #[test]
    fn g9_every_port_that_can_be_chosen_needs_an_edge() {
        let issues = ["node.dead-end node g /ports/fail"];
        assert_eq!(
            found(&around(gate("g", "std.any"), "input", "pass")),
            issues
        );
        let issues = ["node.dead-end node d /ports/fail"];
        assert_eq!(found(&around(decision("d"), "input", "pass")), issues);
        assert_eq!(
            found(&graph(
                json!([input("in", "std.any"), output("o", "std.any"), merge("m")]),
                &[("e1", "in.data", "m.items"), ("e2", "in.data", "o.input")],
                json!({})
            )),
            ["node.dead-end node m /ports/data"]
        );
    }

    #[test]
    fn g9_a_failure_port_needs_an_edge_only_when_it_is_emitted() {
        for node in [agent("a"), action("a")] {
            assert!(found(&around(node.clone(), "input", "success")).is_empty());
            let mut node = node;
            node["failurePolicy"] = policy("emit-failure");
            let issues = ["node.dead-end node a /ports/failure"];
            assert_eq!(found(&around(node, "input", "success")), issues);
        }
    }

    #[test]
    fn g9_an_output_is_an_end() {
        assert!(found(&sound()).is_empty());
    }
}
