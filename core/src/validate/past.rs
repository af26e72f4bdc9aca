//! What a node that reads can rely on: which ports are upstream of it, and which of them are
//! certain to have emitted when it runs (wire-format.md M2; run-machine.md O3, K2).
//!
//! Everything is computed once, in three passes over the wires. Only ports that some mapping reads
//! are followed, each as one bit, so that the passes stay linear in nodes and edges: a wire takes
//! one step for each 64 of these ports. As far as every choice of ports is possible the answers
//! are exact: a node runs because of one path of
//! ports that emitted, and whoever is free to choose off that path can keep out of a port unless
//! something on the path leads there whatever is chosen.

use std::collections::BTreeMap;

use super::flow::Flow;
use super::survey::{NodeIx, Survey, Wire, choices};
use crate::graph::{Binding, Direction, Kind, Port, VariableSource};
use crate::ids::NodeId;

/// What is known of every port that some mapping reads. Only for a graph without cycles.
pub(super) struct Past {
    ports: Ports,
    /// For each node what lies strictly upstream of it.
    upstream: Rows,
    /// For each node what has emitted whenever it runs.
    certain: Rows,
}

/// What a node can rely on about a port that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reliance {
    /// No path leads from the port's node to the reader.
    NotUpstream,
    /// The reader may run without the port having emitted.
    Uncertain,
    /// Whenever the reader runs, the port has emitted.
    Certain,
}

/// A node's output port.
type Source = (NodeIx, &'static str);
/// The bit of each port that some mapping reads.
type Ports = BTreeMap<Source, usize>;

impl Past {
    pub(super) fn new(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx]) -> Self {
        let ports = ports_read(survey);
        let upstream = upstream(survey, flow, order, &ports);
        let ahead = Ahead::new(survey, flow, order, &ports);
        let certain = certain(survey, flow, order, &ahead);
        Self {
            upstream,
            certain,
            ports,
        }
    }

    /// What `reader` can rely on about a port that one of the survey's mappings reads. Certain
    /// also where nothing can be said, because the reader never runs.
    pub(super) fn of(&self, source: NodeIx, port: &Port, reader: NodeIx) -> Reliance {
        match self.ports.get(&(source, port.name)) {
            Some(bit) if self.upstream.has(reader, *bit) => {
                if self.certain.has(reader, *bit) {
                    Reliance::Certain
                } else {
                    Reliance::Uncertain
                }
            }
            _ => Reliance::NotUpstream,
        }
    }
}

/// The existing output ports that mappings and their templates read.
fn ports_read(survey: &Survey<'_>) -> Ports {
    let mut ports = Ports::new();
    let mut add = |node: &NodeId, port: &str| {
        if let Some((at, node)) = survey.find(node.as_str())
            && let Some(port) = node.node_type().port(port)
            && port.direction == Direction::Output
        {
            let next = ports.len();
            ports.entry((at, port.name)).or_insert(next);
        }
    };
    let mappings = survey.nodes.iter().flat_map(|node| node.kind.mappings());
    for mapping in mappings {
        match &mapping.binding {
            Binding::Literal { .. } => {}
            Binding::Path {
                source_node_id,
                source_port,
                ..
            } => add(source_node_id, source_port),
            Binding::Template { variables, .. } => {
                for variable in variables {
                    if let VariableSource::Binding(read) = &variable.source {
                        add(&read.source_node_id, &read.source_port);
                    }
                }
            }
        }
    }
    ports
}

/// What lies strictly upstream of each node.
fn upstream(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx], ports: &Ports) -> Rows {
    let mut upstream = Rows::new(survey.nodes.len(), ports.len());
    let mut own: BTreeMap<NodeIx, Vec<usize>> = BTreeMap::new();
    for ((node, _), bit) in ports {
        own.entry(*node).or_default().push(*bit);
    }
    for &at in order {
        let mut set = upstream.empty();
        for Wire { source, .. } in flow.incoming(at) {
            join(&mut set, upstream.row(source.0));
            own.get(&source.0)
                .into_iter()
                .flatten()
                .for_each(|bit| add(&mut set, *bit));
        }
        upstream.put(at, &set);
    }
    upstream
}

/// What is certain to emit from here on, whatever is chosen on the way.
struct Ahead<'p> {
    ports: &'p Ports,
    /// For each node what emits once it runs: what all of its possible ports have in common.
    nodes: Rows,
}

impl<'p> Ahead<'p> {
    fn new(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx], ports: &'p Ports) -> Self {
        let nodes = Rows::new(survey.nodes.len(), ports.len());
        let mut ahead = Self { ports, nodes };
        for &at in order.iter().rev() {
            let possible = survey.nodes.get(at).into_iter().flat_map(|n| choices(n));
            let emits = possible.map(|port| ahead.of(flow, (at, port.name)));
            if let Some(common) = emits.reduce(common) {
                ahead.nodes.put(at, &common);
            }
        }
        ahead
    }

    /// What emits once a node's port has: the port itself, and whatever emits once a node runs
    /// that one of its wires leads to. A wire that emitted makes its target run: other nodes than
    /// merges have no second wire, and a merge needs one.
    fn of(&self, flow: &Flow, (node, port): Source) -> Vec<u64> {
        let mut set = self.nodes.empty();
        if let Some(bit) = self.ports.get(&(node, port)) {
            add(&mut set, *bit);
        }
        let wires = flow.outgoing(node);
        for wire in wires.filter(|wire| wire.source.1.name == port) {
            join(&mut set, self.nodes.row(wire.target.0));
        }
        set
    }
}

/// For each node what has emitted whenever it runs: what every wire into it has in common, for
/// any one of them may be the one that emitted. What is ahead of a wire's port emits by itself,
/// and has by the time that a reader runs which it is upstream of, for a merge waits for all its
/// wires. Everything for a node that never runs.
fn certain(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx], ahead: &Ahead<'_>) -> Rows {
    let mut certain = Rows::new(survey.nodes.len(), ahead.ports.len());
    // The sets of the ports of a node, which all of their wires share.
    let mut emitted: BTreeMap<Source, Vec<u64>> = BTreeMap::new();
    for &at in order {
        let Some(node) = survey.nodes.get(at) else {
            continue;
        };
        // A port that is never chosen, or a node that never runs, does not make this one run.
        let wires = flow.incoming(at);
        let sets = wires.filter_map(|wire| emitted.get(&(wire.source.0, wire.source.1.name)));
        let set = match node.kind {
            Kind::Input => Some(certain.empty()),
            _ => sets.cloned().reduce(common),
        };
        if let Some(set) = &set {
            certain.put(at, set);
            for port in choices(node) {
                let mut after = ahead.of(flow, (at, port.name));
                join(&mut after, set);
                emitted.insert((at, port.name), after);
            }
        } else {
            certain.put(at, &vec![u64::MAX; certain.words]);
        }
    }
    certain
}

/// A set of the ports that are read for each node, as bits.
struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    fn new(rows: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        Self {
            words,
            bits: vec![0; rows * words],
        }
    }

    fn empty(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    fn row(&self, at: usize) -> &[u64] {
        let from = at * self.words;
        self.bits.get(from..from + self.words).unwrap_or_default()
    }

    fn put(&mut self, at: usize, set: &[u64]) {
        let from = at * self.words;
        if let Some(row) = self.bits.get_mut(from..from + self.words) {
            row.copy_from_slice(set);
        }
    }

    fn has(&self, at: usize, bit: usize) -> bool {
        let word = self.row(at).get(bit / 64);
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

fn add(set: &mut [u64], bit: usize) {
    if let Some(word) = set.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

fn join(set: &mut [u64], other: &[u64]) {
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
    }
}

fn common(mut set: Vec<u64>, other: Vec<u64>) -> Vec<u64> {
    for (word, other) in set.iter_mut().zip(other) {
        *word &= other;
    }
    set
}

#[cfg(test)]
mod tests;
