//! Which payloads the next decision wants (run-machine.md §1, S5).

use std::collections::BTreeSet;

use super::event::EdgeState;
use super::secret::is_marked;
use super::state::{NodeStatus, Run};
use crate::ids::{NodeId, PayloadId};
use crate::mapping::{Binding, Part, Source};
use crate::node_type::NodeType;
use crate::plan::{Node, NodeIndex, Plan};

/// The payloads that the next decision wants: what it reads, and every payload whose schema
/// holds a `writeOnly` place, so that a worker can scrub after a takeover (S5).
#[must_use]
pub fn needs(plan: &Plan, run: &Run) -> Vec<PayloadId> {
    let mut wanted = BTreeSet::new();
    for id in run.payloads().keys() {
        if is_marked(plan, run, id) {
            wanted.insert(id.clone());
        }
    }
    if run.status().is_terminal() {
        return wanted.into_iter().collect();
    }
    for index in plan.node_indices() {
        let node = plan.node(index);
        let state = run.state(index);
        let is_output = node.task.node_type() == NodeType::Output;
        if is_output && state.status() == NodeStatus::Succeeded {
            // What the run's result will be made of.
            let input = state.attempts.last();
            wanted.extend(input.and_then(|attempt| attempt.input.payload_id.clone()));
        }
        if !state.status().is_final() {
            wants_of_node(plan, run, index, node, &mut wanted);
        }
    }
    wanted.into_iter().collect()
}

fn wants_of_node(
    plan: &Plan,
    run: &Run,
    index: NodeIndex,
    node: &Node,
    wanted: &mut BTreeSet<PayloadId>,
) {
    if node.task.node_type() == NodeType::Input {
        wanted.extend(run.queued().and_then(|q| q.input.payload_id.clone()));
    }
    if let Some(attempt) = run.state(index).attempts.last() {
        wanted.extend(attempt.input.payload_id.clone());
    }
    for edge in plan.incoming(index) {
        let fact = run.edge_state(*edge);
        if let Some(fact) = fact.filter(|fact| fact.settled.state == EdgeState::Emitted) {
            wanted.extend(fact.settled.evidence.payload_id.clone());
        }
    }
    for source in sources(node) {
        wanted.extend(emitted(plan, run, &source.node_id, &source.port));
    }
}

/// Every place that a node's mappings read.
pub(super) fn sources(node: &Node) -> impl Iterator<Item = &Source> {
    node.mappings.iter().flat_map(|mapping| {
        let (path, parts) = match &mapping.binding {
            Binding::Literal { .. } => (None, [].as_slice()),
            Binding::Path(source) => (Some(source), [].as_slice()),
            Binding::Template { parts } => (None, parts.as_slice()),
        };
        path.into_iter()
            .chain(parts.iter().filter_map(|part| match part {
                Part::Path(source) => Some(source),
                Part::Text(_) | Part::Platform(_) => None,
            }))
    })
}

/// The payload that a port emitted in this run, if it did (M2).
pub(super) fn emitted(plan: &Plan, run: &Run, node: &NodeId, port: &str) -> Option<PayloadId> {
    let state = run.state(plan.find_node(node.as_str())?);
    if state.outcome_port.as_deref() != Some(port) {
        return None;
    }
    let output = state.attempts.last()?.output.as_ref()?;
    output.payload_id.clone()
}
