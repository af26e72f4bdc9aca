//! How node types look and are called (web.md §7 "A node").

use sluicegate_core::graph::{Kind, Node, NodeType};

use crate::ui::icon::Icon;

/// The family that gives a type its hue.
pub(crate) fn family(node_type: NodeType) -> &'static str {
    match node_type {
        NodeType::Input | NodeType::Output | NodeType::Merge => "flow",
        NodeType::Agent | NodeType::AgentDecision => "agent",
        NodeType::Gate | NodeType::Validator => "check",
        NodeType::Action => "action",
    }
}

/// Its icon.
pub(crate) fn picture(node_type: NodeType) -> Icon {
    match node_type {
        NodeType::Input => Icon::Input,
        NodeType::Agent => Icon::Agent,
        NodeType::AgentDecision => Icon::Decision,
        NodeType::Gate => Icon::Gate,
        NodeType::Validator => Icon::Validator,
        NodeType::Action => Icon::Action,
        NodeType::Merge => Icon::Merge,
        NodeType::Output => Icon::Output,
    }
}

/// What people call it.
pub(crate) fn type_name(node_type: NodeType) -> &'static str {
    match node_type {
        NodeType::Input => "Input",
        NodeType::Agent => "Agent",
        NodeType::AgentDecision => "Agent decision",
        NodeType::Gate => "Gate",
        NodeType::Validator => "Validator",
        NodeType::Action => "Action",
        NodeType::Merge => "Merge",
        NodeType::Output => "Output",
    }
}

/// The line below the label: what the node pins, or what it is.
pub(super) fn reference(node: &Node) -> String {
    let pinned = match &node.kind {
        Kind::Agent(agent) | Kind::AgentDecision(agent) => agent
            .agent
            .as_ref()
            .and_then(|pin| Some(format!("{} r{}", pin.agent_id.as_ref()?, pin.revision?))),
        Kind::Action(action) => action.action.as_ref().and_then(|pin| {
            Some(format!(
                "{} v{}",
                pin.action_id.as_ref()?,
                pin.contract_version?
            ))
        }),
        Kind::Validator(validator) => validator.schema.as_ref().map(ToString::to_string),
        Kind::Input => node.ports.get("data").map(ToString::to_string),
        Kind::Output(_) => node.ports.get("input").map(ToString::to_string),
        Kind::Merge(_) => Some("waits for all".to_owned()),
        Kind::Gate(gate) => gate
            .logic
            .as_ref()
            .and_then(|logic| logic.expr.as_ref())
            .map(gate_line),
    };
    pinned.unwrap_or_else(|| format!("{} · not set up", type_name(node.node_type())))
}

/// A gate's expression on one line, as far as a card shows it.
fn gate_line(expr: &sluicegate_core::value::Value) -> String {
    use sluicegate_core::value::{Value, canonical};
    let Some((operator, operand)) = expr.as_object().and_then(|members| members.iter().next())
    else {
        return canonical(expr);
    };
    let pair = |sign: &str| match operand.as_array().map(Vec::as_slice) {
        Some([a, b]) => format!("{} {sign} {}", gate_line(a), gate_line(b)),
        _ => operator.clone(),
    };
    let list = |word: &str| match operand {
        Value::Array(parts) => parts.iter().map(gate_line).collect::<Vec<_>>().join(word),
        _ => operator.clone(),
    };
    match operator.as_str() {
        "literal" => canonical(operand),
        "read" => operand.as_str().unwrap_or_default().to_owned(),
        "exists" => format!("{} exists", operand.as_str().unwrap_or_default()),
        "eq" => pair("="),
        "ne" => pair("≠"),
        "lt" => pair("<"),
        "le" => pair("≤"),
        "gt" => pair(">"),
        "ge" => pair("≥"),
        "in" => pair("in"),
        "and" => list(" and "),
        "or" => list(" or "),
        "not" => format!("not ({})", gate_line(operand)),
        _ => operator.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn web7_a_gate_reads_as_one_line() {
        let expr =
            json!({"and": [{"le": [{"read": "/amount"}, {"literal": 500}]}, {"exists": "/claim"}]});
        assert_eq!(gate_line(&expr), "/amount ≤ 500 and /claim exists");
        assert_eq!(gate_line(&json!({"unheard": 1})), "unheard");
        assert_eq!(gate_line(&json!(3)), "3");
    }
}
