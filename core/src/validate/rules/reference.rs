//! What a graph refers to: `agent.*`, `action.*`, `permission.denied`, `catalogue.absent`
//! (wire-format.md Q3, G7; seed A publication rules 12 and 13).

use super::{report, shown, title};
use crate::catalogue::{ActionDescriptor, AgentRow, AgentStatus, Catalogue, Idempotency, Risk};
use crate::code::Code;
use crate::graph::{ActionNode, AgentNode, Kind, Node};
use crate::ids::Permission;
use crate::schema::{Compatibility, Schema};
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    let Some(catalogue) = survey.catalogue else {
        let message = "Agents, actions and permissions were not checked, for no catalogue is at hand; connect to a \
                       server to check them.";
        report(issues, Code::CatalogueAbsent, Location::graph(), message);
        return;
    };
    for node in &survey.nodes {
        match &node.kind {
            Kind::Agent(agent) => {
                let text = node
                    .ports
                    .get("success")
                    .is_none_or(|schema| *schema == "std.text");
                check_agent(catalogue, node, agent, !text, issues);
            }
            Kind::AgentDecision(agent) => check_agent(catalogue, node, agent, true, issues),
            Kind::Action(action) => check_action(survey, catalogue, node, action, issues),
            _ => {}
        }
    }
}

/// The exact revision that an agent node pins, if the catalogue has it.
pub(crate) fn agent<'c>(catalogue: &'c Catalogue, node: &AgentNode) -> Option<&'c AgentRow> {
    let agent = node.agent.as_ref()?;
    let revision = u64::try_from(agent.revision?).ok()?;
    catalogue.agent(agent.agent_id.as_ref()?.as_str(), revision)
}

/// The exact contract that an action node pins, if the catalogue has it.
pub(crate) fn action<'c>(
    catalogue: &'c Catalogue,
    node: &ActionNode,
) -> Option<&'c ActionDescriptor> {
    let action = node.action.as_ref()?;
    let version = u64::try_from(action.contract_version?).ok()?;
    catalogue.action(action.action_id.as_ref()?.as_str(), version)
}

/// Whether an action of this risk may enter a workflow of version 1.
pub(crate) fn is_allowed(risk: Risk) -> bool {
    matches!(risk, Risk::Read | Risk::WorkspaceWrite)
}

/// The id and version of a reference that is complete and within its bounds; others are
/// reported by `node.incomplete` and `policy.out-of-bounds`.
fn complete<I>(id: Option<&I>, version: Option<i64>) -> Option<(&I, i64)> {
    Some((id?, version.filter(|version| *version > 0)?))
}

fn check_agent(
    catalogue: &Catalogue,
    node: &Node,
    config: &AgentNode,
    structured: bool,
    issues: &mut Vec<Issue>,
) {
    let pin = config.agent.as_ref();
    let Some((id, revision)) = pin.and_then(|p| complete(p.agent_id.as_ref(), p.revision)) else {
        return;
    };
    let at = || Location::node_at(&node.id, "/agent");
    let title = title(node);
    let Some(row) = agent(catalogue, config) else {
        let message = format!(
            "{title} pins revision {revision} of agent {}, which does not exist; pin another.",
            shown(id.as_str())
        );
        report(issues, Code::AgentRevisionMissing, at(), message);
        return;
    };
    if row.status != AgentStatus::Active {
        let message =
            format!("{title} pins agent {id}, which is not active; activate it or pin another.");
        report(issues, Code::AgentInactive, at(), message);
    }
    if structured && !row.structured_output {
        let message = format!(
            "{title} needs structured output, which agent {id} ({}) cannot give; use std.text or \
             pin another agent.",
            row.model
        );
        report(
            issues,
            Code::AgentStructuredOutputUnsupported,
            at(),
            message,
        );
    }
    permissions(catalogue, node, at(), &row.required_permissions, issues);
}

fn check_action(
    survey: &Survey<'_>,
    catalogue: &Catalogue,
    node: &Node,
    config: &ActionNode,
    issues: &mut Vec<Issue>,
) {
    let pin = config.action.as_ref();
    let pin = pin.and_then(|pin| complete(pin.action_id.as_ref(), pin.contract_version));
    let Some((id, version)) = pin else { return };
    let at = || Location::node_at(&node.id, "/action");
    let title = title(node);
    let Some(contract) = action(catalogue, config) else {
        let message = format!(
            "{title} pins version {version} of action {}, which does not exist; pin another.",
            shown(id.as_str())
        );
        report(issues, Code::ActionVersionMissing, at(), message);
        return;
    };
    if !is_allowed(contract.risk) {
        let message = format!(
            "The action {id} reaches beyond this workspace or cannot be undone; choose another one."
        );
        report(issues, Code::ActionRiskForbidden, at(), message);
    }
    if contract.idempotency != Idempotency::Required {
        let message = format!("The action {id} does not promise idempotency; choose another one.");
        report(issues, Code::ActionIdempotencyMissing, at(), message);
    }
    permissions(
        catalogue,
        node,
        at(),
        &contract.required_permissions,
        issues,
    );
    contradictions(survey, node, contract, issues);
}

fn permissions(
    catalogue: &Catalogue,
    node: &Node,
    location: Location,
    required: &[Permission],
    issues: &mut Vec<Issue>,
) {
    let Some(held) = &catalogue.permissions else {
        return;
    };
    let missing: Vec<&str> = required
        .iter()
        .filter(|permission| !held.contains(permission))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "{} needs permissions that you do not have; ask for them or pin another: {}.",
            title(node),
            missing.join(", ")
        );
        report(issues, Code::PermissionDenied, location, message);
    }
}

/// The node's ports must not certainly contradict the contract (G7).
fn contradictions(
    survey: &Survey<'_>,
    node: &Node,
    contract: &ActionDescriptor,
    issues: &mut Vec<Issue>,
) {
    let mut judge = |port: &str, fits: &dyn Fn(&Schema) -> Compatibility, message: String| {
        if let Some(schema) = survey.port_schema(node, port)
            && fits(schema) == Compatibility::Incompatible
        {
            let location = Location::node_at(&node.id, format!("/ports/{port}"));
            report(issues, Code::PortSchemaMismatch, location, message);
        }
    };
    // A contract whose schema is outside the subset is not the graph's fault; nothing is known.
    let accept = |side: &str, schema| {
        let name = format!("{} {} {side}", contract.id, contract.contract_version);
        survey.accept(&name, schema)
    };
    if let Some(wanted) = accept("input", &contract.input_schema) {
        let message = format!(
            "The action {} can never take this input; choose another schema.",
            contract.id
        );
        judge("input", &|schema| survey.compare(schema, &wanted), message);
    }
    if let Some(given) = accept("output", &contract.output_schema) {
        let message = format!(
            "What the action {} gives can never fit this port; choose another schema.",
            contract.id
        );
        judge("success", &|schema| survey.compare(&given, schema), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::limits::Limits;
    use crate::validate::cases::{action, agent, around, catalogue, decision, found_with, sound};

    fn judged(node: Value, out_of: &str, change: impl Fn(&mut Value)) -> Vec<String> {
        let mut catalogue = catalogue();
        change(&mut catalogue);
        found_with(
            &around(node, "input", out_of),
            Some(&catalogue),
            &Limits::default(),
        )
    }

    #[test]
    fn q3_without_a_catalogue_one_warning_stands_for_all() {
        let mut node = agent("a");
        node["agent"]["revision"] = json!(99);
        let graph = around(node, "input", "success");
        let limits = Limits::default();
        assert_eq!(
            found_with(&graph, None, &limits),
            ["catalogue.absent graph"]
        );
        let issues = ["agent.revision-missing node a /agent"];
        assert_eq!(found_with(&graph, Some(&catalogue()), &limits), issues);
        assert!(found_with(&sound(), Some(&json!({})), &limits).is_empty());
    }

    #[test]
    fn rule_12_the_pinned_revision_exists_and_is_active() {
        let issues = ["agent.revision-missing node a /agent"];
        assert_eq!(
            judged(agent("a"), "success", |c| c["agents"][0]["revision"] =
                json!(2)),
            issues
        );
        for status in ["paused", "archived"] {
            let issues = ["agent.inactive node a /agent"];
            let change = |c: &mut Value| c["agents"][0]["status"] = json!(status);
            assert_eq!(judged(agent("a"), "success", change), issues);
        }
        assert!(judged(agent("a"), "success", |_| ()).is_empty());
    }

    #[test]
    fn g4_structured_output_needs_an_agent_that_can() {
        let plain = |c: &mut Value| c["agents"][0]["structuredOutput"] = json!(false);
        assert!(judged(agent("a"), "success", plain).is_empty());
        let issues = ["agent.structured-output-unsupported node a /agent"];
        let mut node = agent("a");
        node["ports"]["success"] = json!("std.any");
        assert_eq!(judged(node, "success", plain), issues);
        let issues = [
            "agent.structured-output-unsupported node a /agent",
            "node.dead-end node a /ports/fail",
        ];
        assert_eq!(judged(decision("a"), "pass", plain), issues);
    }

    #[test]
    fn rule_13_the_pinned_contract_exists_and_is_allowed() {
        let judged = |member: &str, value: Value| {
            judged(action("a"), "success", |c| {
                c["actions"][0][member] = value.clone()
            })
        };
        let one = |code: &str| vec![format!("action.{code} node a /action")];
        assert_eq!(judged("contractVersion", json!(2)), one("version-missing"));
        assert_eq!(judged("risk", json!("external")), one("risk-forbidden"));
        assert_eq!(judged("risk", json!("destructive")), one("risk-forbidden"));
        assert_eq!(
            judged("idempotency", json!("none")),
            one("idempotency-missing")
        );
        assert!(judged("risk", json!("workspace-write")).is_empty());
    }

    #[test]
    fn g7_ports_do_not_contradict_the_contract() {
        let judged = |member: &str, schema: Value, port: &str| {
            let mut node = action("a");
            node["ports"][port] = json!("std.text");
            // A mapping keeps the edge out of the question.
            node["mappings"] = json!([{"targetPointer": "",
                "binding": {"kind": "literal", "value": "x"}}]);
            judged(node, "success", |c| {
                c["actions"][0][member] = schema.clone()
            })
        };
        let object = json!({"type": "object"});
        let issues = ["port.schema-mismatch node a /ports/input"];
        assert_eq!(judged("inputSchema", object.clone(), "input"), issues);
        let issues = ["port.schema-mismatch node a /ports/success"];
        assert_eq!(judged("outputSchema", object, "success"), issues);
        assert!(judged("inputSchema", json!({"minLength": 3}), "input").is_empty());
    }

    #[test]
    fn rule_9_permissions_of_the_publisher() {
        let issues = ["permission.denied node a /agent"];
        let none = |c: &mut Value| c["permissions"] = json!(["claims.read"]);
        assert_eq!(judged(agent("a"), "success", none), issues);
        assert!(judged(action("a"), "success", none).is_empty());
        let issues = ["permission.denied node a /action"];
        let other = |c: &mut Value| c["permissions"] = json!(["agents.use"]);
        assert_eq!(judged(action("a"), "success", other), issues);
    }
}
