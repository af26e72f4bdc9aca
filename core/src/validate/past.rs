//! What a node that reads can rely on: which ports are upstream of it, and which of them are
//! certain to have emitted when it runs (wire-format.md M2; run-machine.md O3, K2).
//!
//! Everything is computed once, in three passes over the wires. Only ports that some mapping reads
//! are followed, each as one bit, so that the passes stay linear in nodes and edges. As far as
//! every choice of ports is possible the answers are exact: a node runs because of one path of
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
    upstream: Vec<Bits>,
    /// For each node what has emitted whenever it runs; none where it never runs.
    certain: Vec<Option<Bits>>,
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
        let words = ports.len().div_ceil(64);
        let upstream = upstream(survey, flow, order, &ports, words);
        let ahead = Ahead::new(survey, flow, order, &ports, words);
        let certain = certain(survey, flow, order, &ahead);
        Self {
            ports,
            upstream,
            certain,
        }
    }

    /// What `reader` can rely on about a port that one of the survey's mappings reads. Certain
    /// also where nothing can be said, because the reader never runs.
    pub(super) fn of(&self, source: NodeIx, port: &Port, reader: NodeIx) -> Reliance {
        let Some(bit) = self.ports.get(&(source, port.name)) else {
            return Reliance::NotUpstream;
        };
        if !self.upstream.get(reader).is_some_and(|set| set.has(*bit)) {
            Reliance::NotUpstream
        } else if let Some(Some(certain)) = self.certain.get(reader)
            && !certain.has(*bit)
        {
            Reliance::Uncertain
        } else {
            Reliance::Certain
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

fn upstream(
    survey: &Survey<'_>,
    flow: &Flow,
    order: &[NodeIx],
    ports: &Ports,
    words: usize,
) -> Vec<Bits> {
    let mut own = vec![Bits::none(words); survey.nodes.len()];
    for ((node, _), bit) in ports {
        if let Some(set) = own.get_mut(*node) {
            set.add(*bit);
        }
    }
    let mut upstream = vec![Bits::none(words); survey.nodes.len()];
    for &at in order {
        let mut set = Bits::none(words);
        for Wire { source, .. } in flow.incoming(at) {
            let before = upstream.get(source.0).into_iter().chain(own.get(source.0));
            before.for_each(|before| set.join(before));
        }
        if let Some(place) = upstream.get_mut(at) {
            *place = set;
        }
    }
    upstream
}

/// What is certain to emit from here on, whatever is chosen on the way.
struct Ahead {
    /// Once a node's port has emitted: the port itself, and what every node that one of its
    /// wires leads to is certain of. A wire that emitted makes its target run: other nodes
    /// than merges have no second wire, and a merge needs one.
    ports: BTreeMap<Source, Bits>,
    /// For a node that nothing is known of.
    none: Bits,
}

impl Ahead {
    fn new(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx], read: &Ports, words: usize) -> Self {
        let none = Bits::none(words);
        let mut ports: BTreeMap<Source, Bits> = BTreeMap::new();
        // Once a node runs: what all of its possible ports have in common.
        let mut nodes = vec![none.clone(); survey.nodes.len()];
        for &at in order.iter().rev() {
            let Some(node) = survey.nodes.get(at) else {
                continue;
            };
            let mut common: Option<Bits> = None;
            for port in choices(node) {
                let mut set = none.clone();
                if let Some(bit) = read.get(&(at, port.name)) {
                    set.add(*bit);
                }
                let wires = flow.outgoing(at);
                for wire in wires.filter(|wire| wire.source.1.name == port.name) {
                    if let Some(target) = nodes.get(wire.target.0) {
                        set.join(target);
                    }
                }
                match &mut common {
                    Some(common) => common.meet(&set),
                    None => common = Some(set.clone()),
                }
                ports.insert((at, port.name), set);
            }
            if let (Some(place), Some(common)) = (nodes.get_mut(at), common) {
                *place = common;
            }
        }
        Self { ports, none }
    }
}

/// For each node what has emitted whenever it runs: what every wire into it has in common, for
/// any one of them may be the one that emitted. What is ahead of a wire's port emits by itself,
/// and has by the time that a reader runs which it is upstream of, for a merge waits for all its
/// wires.
fn certain(survey: &Survey<'_>, flow: &Flow, order: &[NodeIx], ahead: &Ahead) -> Vec<Option<Bits>> {
    let mut certain: Vec<Option<Bits>> = vec![None; survey.nodes.len()];
    for &at in order {
        let begins = survey.nodes.get(at).is_some_and(|n| n.kind == Kind::Input);
        let mut common = begins.then(|| ahead.none.clone());
        for wire in flow.incoming(at) {
            let (source, port) = wire.source;
            // A port that is never chosen, or a node that never runs, does not make this one run.
            let Some(Some(before)) = certain.get(source) else {
                continue;
            };
            let Some(emitted) = ahead.ports.get(&(source, port.name)) else {
                continue;
            };
            let mut set = before.clone();
            set.join(emitted);
            match &mut common {
                Some(common) => common.meet(&set),
                None => common = Some(set),
            }
        }
        if let Some(place) = certain.get_mut(at) {
            *place = common;
        }
    }
    certain
}

/// A set of the ports that are read.
#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn none(words: usize) -> Self {
        Self(vec![0; words])
    }

    fn add(&mut self, bit: usize) {
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn has(&self, bit: usize) -> bool {
        self.0
            .get(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn join(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    fn meet(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }
}

#[cfg(test)]
mod tests;
