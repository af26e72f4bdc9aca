//! Making the plan of a graph that has no error (run-machine.md §1, O1). Everything here is
//! an `Option` because the checks have already said why something would be missing.

use std::collections::BTreeSet;

use crate::gate::{Expr, Gate};
use crate::graph::{self, Kind};
use crate::ids::SchemaId;
use crate::limits::Limits;
use crate::mapping::Mapping;
use crate::plan::{
    ActionContract, ActionTask, AgentTask, Backoff, BackoffKind, COMPILER_VERSION, Document, Edge,
    Node, OnExhausted, PLAN_VERSION, Policy, Task,
};
use crate::time::Millis;
use crate::validate::{Survey, pinned_action, pinned_agent, planned_mapping};

/// The plan of a sound graph, its nodes in plan order (O1).
pub(super) fn plan(survey: &Survey<'_>, order: &[usize]) -> Option<Document> {
    let graph = survey.graph;
    let nodes = order
        .iter()
        .map(|at| node(survey, survey.nodes.get(*at)?))
        .collect::<Option<Vec<Node>>>()?;
    let edges = survey.edges.iter().map(|route| Edge {
        id: route.edge.id.clone(),
        source: route.edge.source.clone(),
        target: route.edge.target.clone(),
    });
    let mut used: BTreeSet<&SchemaId> = BTreeSet::new();
    for node in &nodes {
        used.extend(node.ports.values());
        if let Task::Validator { schema } = &node.task {
            used.insert(schema);
        }
    }
    let schemas = graph.schemas.iter();
    let schemas = schemas.filter(|(id, _)| used.contains(id));
    Some(Document {
        plan_version: PLAN_VERSION,
        compiler_version: COMPILER_VERSION.to_owned(),
        graph_checksum: graph.checksum().ok()?,
        edges: edges.collect(),
        schemas: schemas
            .map(|(id, schema)| (id.clone(), schema.clone()))
            .collect(),
        nodes,
    })
}

fn node(survey: &Survey<'_>, node: &graph::Node) -> Option<Node> {
    let mut mappings = node
        .kind
        .mappings()
        .iter()
        .map(planned_mapping)
        .collect::<Option<Vec<Mapping>>>()?;
    mappings.sort_by(|a, b| a.target.cmp(&b.target));
    let policy = match node.kind.failure_policy() {
        None => None,
        Some(policy) => Some(self::policy(policy)?),
    };
    Some(Node {
        id: node.id.clone(),
        ports: node.ports.clone(),
        task: task(survey, node)?,
        mappings,
        policy,
    })
}

fn task(survey: &Survey<'_>, node: &graph::Node) -> Option<Task> {
    Some(match &node.kind {
        Kind::Input => Task::Input,
        Kind::Agent(agent) => Task::Agent(agent_task(survey, agent)?),
        Kind::AgentDecision(agent) => Task::AgentDecision(agent_task(survey, agent)?),
        Kind::Gate(gate) => {
            let input = survey.port_schema(node, "input")?;
            let expr = gate.logic.as_ref()?.expr.as_ref()?;
            Task::Gate {
                expr: Gate::from(Expr::parse(expr, Some(input)).ok()?),
            }
        }
        Kind::Validator(validator) => Task::Validator {
            schema: validator.schema.clone()?,
        },
        Kind::Action(action) => Task::Action(action_task(survey, action)?),
        Kind::Merge(_) => Task::Merge,
        Kind::Output(_) => Task::Output,
    })
}

fn agent_task(survey: &Survey<'_>, node: &graph::AgentNode) -> Option<AgentTask> {
    let agent = node.agent.as_ref()?;
    let row = survey
        .catalogue
        .and_then(|catalogue| pinned_agent(catalogue, node));
    let timeout = match node.timeout_ms {
        None => Limits::AGENT_TIMEOUT_DEFAULT_MS,
        Some(timeout) => u64::try_from(timeout).ok()?,
    };
    Some(AgentTask {
        agent_id: agent.agent_id.clone()?,
        revision: u64::try_from(agent.revision?).ok()?,
        timeout_ms: Millis(timeout),
        required_permissions: row
            .map(|row| sorted(&row.required_permissions))
            .unwrap_or_default(),
    })
}

fn action_task(survey: &Survey<'_>, node: &graph::ActionNode) -> Option<ActionTask> {
    let action = node.action.as_ref()?;
    let contract = survey
        .catalogue
        .and_then(|catalogue| pinned_action(catalogue, node));
    Some(ActionTask {
        action_id: action.action_id.clone()?,
        contract_version: u64::try_from(action.contract_version?).ok()?,
        contract: contract.map(|contract| ActionContract {
            timeout_ms: Millis(contract.timeout_ms),
            cancellation: contract.cancellation,
            required_permissions: sorted(&contract.required_permissions),
            retryable_codes: sorted(&contract.retryable_codes),
        }),
    })
}

/// The order of a catalogue's lists carries no meaning and must not change the plan's hash.
fn sorted(texts: &[String]) -> Vec<String> {
    let texts: BTreeSet<&String> = texts.iter().collect();
    texts.into_iter().cloned().collect()
}

fn policy(policy: &graph::FailurePolicy) -> Option<Policy> {
    let backoff = policy.backoff.as_ref()?;
    Some(Policy {
        max_attempts: u32::try_from(policy.max_attempts?).ok()?,
        retry_on: sorted(policy.retry_on.as_ref()?),
        backoff: Backoff {
            kind: match backoff.kind.as_deref()? {
                "fixed" => BackoffKind::Fixed,
                "exponential" => BackoffKind::Exponential,
                _ => return None,
            },
            initial_ms: Millis(u64::try_from(backoff.initial_ms?).ok()?),
            maximum_ms: Millis(u64::try_from(backoff.maximum_ms?).ok()?),
        },
        on_exhausted: match policy.on_exhausted.as_deref()? {
            "emit-failure" => OnExhausted::EmitFailure,
            "fail-run" => OnExhausted::FailRun,
            _ => return None,
        },
    })
}
