//! The dry-run report (seed A "Dry-run", `WorkflowDryRunResponseV1`; wire-format.md §8, §11).
//! Publishing takes its references and permissions from here too.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::compile;
use crate::catalogue::{AgentStatus, Catalogue, Idempotency};
use crate::code::Code;
use crate::graph::{ActionNode, AgentNode, Graph, Kind};
use crate::ids::{Hash, NodeId, Permission, SchemaId};
use crate::limits::Limits;
use crate::plan::Document;
use crate::schema::{self, Schema};
use crate::validate::{Issue, Location, is_allowed, pinned_action, pinned_agent};
use crate::value::{self, Value, canonical_len};

/// What a dry-run says. It runs nothing and stores nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DryRunReport {
    /// Always 1.
    pub report_version: u32,
    /// The semantic checksum of the graph (G1).
    pub graph_checksum: Hash,
    /// Whether nothing is an error, neither in the graph nor in the sample input.
    pub valid: bool,
    /// Everything that was found, in the order of §8.
    pub issues: Vec<Issue>,
    /// The nodes in plan order (O1); empty when the graph has an error.
    pub compiled_order: Vec<NodeId>,
    /// Everything that the graph names, by kind, id and version.
    pub references: Vec<Reference>,
    /// What the catalogue says that a caller must be allowed, sorted.
    pub required_permissions: Vec<Permission>,
    /// The limits that were applied.
    pub limits: Limits,
}

/// Something that a graph names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// What it is.
    pub kind: ReferenceKind,
    /// Its identifier.
    pub id: String,
    /// The pinned revision or contract version, or the hash of a schema; empty for a schema
    /// that does not exist.
    pub version: String,
    /// Whether it is there and may be used; false for agents and actions without a catalogue.
    pub available: bool,
}

/// What a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceKind {
    /// An action contract.
    Action,
    /// An agent revision.
    Agent,
    /// A schema.
    Schema,
}

/// Judges a graph, and a sample input where one is given. `permissions` are those of the
/// caller; without them the catalogue's stand.
#[must_use]
pub fn dry_run(
    graph: &Graph,
    input: Option<&Value>,
    catalogue: Option<&Catalogue>,
    permissions: Option<&[Permission]>,
    limits: &Limits,
) -> DryRunReport {
    let own = catalogue
        .zip(permissions)
        .map(|(catalogue, held)| Catalogue {
            permissions: Some(held.to_vec()),
            ..catalogue.clone()
        });
    let catalogue = own.as_ref().or(catalogue);
    let mut compiled = compile(graph, catalogue, limits);
    if let Some(input) = input {
        let found = judge_input(graph, input, limits);
        compiled.issues.extend(found);
        compiled.issues.sort_by(Issue::order);
    }
    let order = |plan: &Document| plan.nodes.iter().map(|node| node.id.clone()).collect();
    DryRunReport {
        report_version: 1,
        // Only a graph that was built by hand cannot be hashed, and then an issue says so.
        graph_checksum: graph.checksum().unwrap_or(Hash::ZERO),
        valid: !compiled.issues.iter().any(Issue::is_error),
        compiled_order: compiled.plan.as_ref().map(order).unwrap_or_default(),
        issues: compiled.issues,
        references: references(graph, catalogue),
        required_permissions: required_permissions(graph, catalogue),
        limits: limits.clone(),
    }
}

/// One `input.invalid` for each place of the sample input that the input node's schema
/// refuses. Nothing is judged while the graph does not say which schema that is.
fn judge_input(graph: &Graph, input: &Value, limits: &Limits) -> Vec<Issue> {
    let invalid = |path: String, message: String| {
        Issue::new(Code::InputInvalid, Location::Input { path }, message)
    };
    let bytes = canonical_len(input);
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > limits.input_bytes) {
        let most = limits.input_bytes;
        let message =
            format!("The sample input is {bytes} bytes of canonical JSON; shorten it to {most}.");
        return vec![invalid(String::new(), message)];
    }
    let mut inputs = graph.nodes.iter().filter(|node| node.kind == Kind::Input);
    let (Some(node), None) = (inputs.next(), inputs.next()) else {
        return Vec::new();
    };
    let Some(id) = node.ports.get("data") else {
        return Vec::new();
    };
    let failures = match (schema::built_in(id.as_str()), graph.schemas.get(id)) {
        (Some(schema), _) => schema.validate(input),
        (None, Some(document)) => match Schema::accept(document) {
            Ok(schema) => schema.validate(input),
            Err(_) => Vec::new(),
        },
        (None, None) => Vec::new(),
    };
    failures
        .into_iter()
        .map(|failure| {
            let message = format!("Here the sample input {}.", failure.message);
            invalid(failure.path, message)
        })
        .collect()
}

fn references(graph: &Graph, catalogue: Option<&Catalogue>) -> Vec<Reference> {
    let mut references = BTreeSet::new();
    // Many ports name the same few schemas, and hashing one is dear.
    let mut schemas: BTreeSet<&SchemaId> = BTreeSet::new();
    for node in &graph.nodes {
        schemas.extend(node.ports.values());
        match &node.kind {
            Kind::Validator(validator) => schemas.extend(&validator.schema),
            Kind::Agent(agent) | Kind::AgentDecision(agent) => {
                references.extend(agent_reference(agent, catalogue));
            }
            Kind::Action(action) => references.extend(action_reference(action, catalogue)),
            Kind::Input | Kind::Gate(_) | Kind::Merge(_) | Kind::Output(_) => {}
        }
    }
    let schemas = schemas.into_iter();
    references.extend(schemas.filter_map(|id| schema_reference(graph, id)));
    references.into_iter().collect()
}

fn agent_reference(agent: &AgentNode, catalogue: Option<&Catalogue>) -> Option<Reference> {
    let pin = agent.agent.as_ref()?;
    let row = catalogue.and_then(|catalogue| pinned_agent(catalogue, agent));
    Some(Reference {
        kind: ReferenceKind::Agent,
        id: pin.agent_id.as_ref()?.to_string(),
        version: pin.revision?.to_string(),
        available: row.is_some_and(|row| row.status == AgentStatus::Active),
    })
}

fn action_reference(action: &ActionNode, catalogue: Option<&Catalogue>) -> Option<Reference> {
    let pin = action.action.as_ref()?;
    let contract = catalogue.and_then(|catalogue| pinned_action(catalogue, action));
    Some(Reference {
        kind: ReferenceKind::Action,
        id: pin.action_id.as_ref()?.to_string(),
        version: pin.contract_version?.to_string(),
        available: contract.is_some_and(|contract| {
            is_allowed(contract.risk) && contract.idempotency == Idempotency::Required
        }),
    })
}

/// A schema that the graph names; built-in ones belong to the format and are no reference.
fn schema_reference(graph: &Graph, id: &SchemaId) -> Option<Reference> {
    let document = graph.schemas.get(id);
    (!schema::BUILT_IN.contains(&id.as_str())).then(|| Reference {
        kind: ReferenceKind::Schema,
        id: id.to_string(),
        version: document
            .map(|document| value::hash(document).to_string())
            .unwrap_or_default(),
        available: document.is_some(),
    })
}

fn required_permissions(graph: &Graph, catalogue: Option<&Catalogue>) -> Vec<Permission> {
    let Some(catalogue) = catalogue else {
        return Vec::new();
    };
    let mut all = BTreeSet::new();
    for node in &graph.nodes {
        let required = match &node.kind {
            Kind::Agent(agent) | Kind::AgentDecision(agent) => {
                pinned_agent(catalogue, agent).map(|row| &row.required_permissions)
            }
            Kind::Action(action) => {
                pinned_action(catalogue, action).map(|contract| &contract.required_permissions)
            }
            _ => None,
        };
        all.extend(required.into_iter().flatten().cloned());
    }
    all.into_iter().collect()
}
