//! Which schemas mark secrets in a payload (wire-format.md S5): the one that it was made
//! under, and those of every node that it reaches unchanged. A value that a later node marks
//! `writeOnly` is a secret from the moment that it is known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::state::Run;
use crate::ids::{PayloadId, SchemaId};
use crate::node_type::NodeType;
use crate::plan::{NodeIndex, Plan, Task};
use crate::schema::Schema;

/// The schemas with a `writeOnly` place that judge this payload, somewhere.
pub(super) fn marks(plan: &Plan, run: &Run, id: &PayloadId) -> Vec<Arc<Schema>> {
    if !plan.holds_secret() {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    if let Some(fact) = run.payloads().get(id) {
        found.insert(fact.schema_id.clone());
    }
    let mut visited = BTreeSet::new();
    let mut parts = id.as_str().rsplitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("input"), None, None) => {
            let inputs = plan.node_indices();
            for index in inputs.filter(|at| plan.node(*at).task == Task::Input) {
                found.extend(plan.node(index).ports.get("data").cloned());
                follow(plan, index, "data", &mut found, &mut visited);
            }
        }
        (Some("input"), Some(_), Some(node)) => {
            if let Some(index) = plan.find_node(node) {
                enter(plan, index, &mut found, &mut visited);
            }
        }
        (Some(port), Some(_), Some(node)) => {
            if let Some(index) = plan.find_node(node) {
                follow(plan, index, port, &mut found, &mut visited);
            }
        }
        _ => {}
    }
    found
        .iter()
        .map(|schema_id| Arc::clone(plan.schema(schema_id)))
        .filter(|schema| schema.holds_secret())
        .collect()
}

/// What stands behind an output port.
fn follow(
    plan: &Plan,
    index: NodeIndex,
    port: &str,
    found: &mut BTreeSet<SchemaId>,
    visited: &mut BTreeSet<NodeIndex>,
) {
    for edge in plan.outgoing(index) {
        if plan.edge(*edge).source.port != port {
            continue;
        }
        let Some(target) = plan.find_node(plan.edge(*edge).target.node_id.as_str()) else {
            continue;
        };
        let node = plan.node(target);
        match node.task.node_type() {
            NodeType::Merge => found.extend(node.ports.get("items").cloned()),
            // With mappings the envelope itself does not go in.
            _ if node.mappings.is_empty() => enter(plan, target, found, visited),
            _ => {}
        }
    }
}

/// What a node does with an unmapped input: it judges it, and two types pass it on.
fn enter(
    plan: &Plan,
    index: NodeIndex,
    found: &mut BTreeSet<SchemaId>,
    visited: &mut BTreeSet<NodeIndex>,
) {
    if !visited.insert(index) {
        return;
    }
    let node = plan.node(index);
    found.extend(node.ports.get("input").cloned());
    match &node.task {
        Task::Gate { .. } => {
            follow(plan, index, "pass", found, visited);
            follow(plan, index, "fail", found, visited);
        }
        Task::Validator { schema } => {
            found.insert(schema.clone());
            follow(plan, index, "pass", found, visited);
        }
        _ => {}
    }
}
