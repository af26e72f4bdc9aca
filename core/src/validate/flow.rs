//! What the edges alone say: order, cycles, reachability, what is upstream, and which ports
//! are certain to have emitted (wire-format.md Q2, M2; run-machine.md O1, O3, K2).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque, btree_map};

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::survey::{NodeIx, Survey, Wire, choices};
use crate::graph::{Kind, Port};

/// The nodes and wires of a survey as a directed graph.
pub(crate) struct Flow {
    wires: Vec<Wire>,
    /// Wires out of each node, as positions in `wires`, by edge id.
    outgoing: Vec<Vec<usize>>,
    /// Wires into each node.
    incoming: Vec<Vec<usize>>,
    reachable: Vec<bool>,
    has_input: bool,
}

impl Flow {
    pub(crate) fn new(survey: &Survey<'_>) -> Self {
        let count = survey.nodes.len();
        let wires: Vec<Wire> = survey.wires().collect();
        let mut outgoing = vec![Vec::new(); count];
        let mut incoming = vec![Vec::new(); count];
        for (at, wire) in wires.iter().enumerate() {
            if let Some(list) = outgoing.get_mut(wire.source.0) {
                list.push(at);
            }
            if let Some(list) = incoming.get_mut(wire.target.0) {
                list.push(at);
            }
        }
        let mut flow = Self {
            wires,
            outgoing,
            incoming,
            reachable: vec![false; count],
            has_input: false,
        };
        let inputs = survey.nodes.iter().enumerate();
        let inputs = inputs.filter(|(_, node)| node.kind == Kind::Input);
        let inputs: Vec<NodeIx> = inputs.map(|(at, _)| at).collect();
        flow.has_input = !inputs.is_empty();
        flow.reachable = flow.reach(inputs, false);
        flow
    }

    /// Whether there is any input node to reach others from.
    pub(crate) fn has_input(&self) -> bool {
        self.has_input
    }

    /// Whether a path leads from an input node to this one.
    pub(crate) fn is_reachable(&self, node: NodeIx) -> bool {
        is_set(&self.reachable, node)
    }

    /// Whether any sound edge leads into a node.
    pub(crate) fn has_incoming(&self, node: NodeIx) -> bool {
        self.incoming
            .get(node)
            .is_some_and(|wires| !wires.is_empty())
    }

    /// Every node strictly before this one.
    pub(crate) fn upstream(&self, node: NodeIx) -> Vec<bool> {
        let sources = self.neighbours(node, true).collect();
        self.reach(sources, true)
    }

    /// Plan order (O1): Kahn's algorithm, always the smallest id among the ready ones; none
    /// when there is a cycle.
    pub(crate) fn order(&self) -> Option<Vec<NodeIx>> {
        let mut waiting: Vec<usize> = self.incoming.iter().map(Vec::len).collect();
        let ready = waiting.iter().enumerate().filter(|(_, count)| **count == 0);
        // Positions are ranks of ids, so the smallest position is the smallest id.
        let mut ready: BinaryHeap<Reverse<NodeIx>> = ready.map(|(at, _)| Reverse(at)).collect();
        let mut order = Vec::with_capacity(waiting.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            for next in self.neighbours(node, false) {
                if let Some(count) = waiting.get_mut(next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(Reverse(next));
                    }
                }
            }
        }
        (order.len() == waiting.len()).then_some(order)
    }

    /// For every strongly connected component with a cycle, in order of its smallest id: one
    /// shortest cycle through that id, beginning with it (Q2).
    pub(crate) fn cycles(&self) -> Vec<Vec<NodeIx>> {
        let mut graph = DiGraph::<(), ()>::with_capacity(self.outgoing.len(), self.wires.len());
        for _ in &self.outgoing {
            graph.add_node(());
        }
        for wire in &self.wires {
            let (source, target) = (wire.source.0, wire.target.0);
            graph.update_edge(NodeIndex::new(source), NodeIndex::new(target), ());
        }
        let mut cycles: Vec<Vec<NodeIx>> = tarjan_scc(&graph)
            .into_iter()
            .filter_map(|component| component.into_iter().map(NodeIndex::index).min())
            .filter_map(|smallest| self.shortest_cycle(smallest))
            .collect();
        cycles.sort_unstable();
        cycles
    }

    /// Breadth first, neighbours in order of ids, so that of several the same one is found.
    fn shortest_cycle(&self, start: NodeIx) -> Option<Vec<NodeIx>> {
        let mut before: BTreeMap<NodeIx, NodeIx> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let mut targets: Vec<NodeIx> = self.neighbours(node, false).collect();
            targets.sort_unstable();
            for target in targets {
                if target == start {
                    let mut cycle = vec![node];
                    let mut at = node;
                    while at != start {
                        at = *before.get(&at)?;
                        cycle.push(at);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let btree_map::Entry::Vacant(entry) = before.entry(target) {
                    entry.insert(node);
                    queue.push_back(target);
                }
            }
        }
        None
    }

    fn reach(&self, from: Vec<NodeIx>, backwards: bool) -> Vec<bool> {
        let mut seen = vec![false; self.outgoing.len()];
        let mut open = from;
        while let Some(node) = open.pop() {
            let Some(seen) = seen.get_mut(node) else {
                continue;
            };
            if !std::mem::replace(seen, true) {
                open.extend(self.neighbours(node, backwards));
            }
        }
        seen
    }

    fn neighbours(&self, node: NodeIx, backwards: bool) -> impl Iterator<Item = NodeIx> + '_ {
        let list = if backwards {
            &self.incoming
        } else {
            &self.outgoing
        };
        let wires = list.get(node).into_iter().flatten();
        wires.filter_map(|at| self.wires.get(*at)).map(move |wire| {
            if backwards {
                wire.source.0
            } else {
                wire.target.0
            }
        })
    }
}

fn is_set(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or_default()
}

/// Which ports are certain to have emitted when a node runs (M2). Only for a graph without
/// cycles.
///
/// Two arguments prove it. A port that dominates the node lies on every path to it, and one
/// of those paths emitted. A node's only possible port emits whenever that node runs, and it
/// runs when something that dominates the reader leads to it whatever is chosen on the way;
/// by then it has settled, for it is upstream and merges wait for all their edges.
pub(crate) struct Certainty<'s> {
    survey: &'s Survey<'s>,
    flow: &'s Flow,
    order: &'s [NodeIx],
    ports: BTreeMap<(NodeIx, &'static str), NodeIndex>,
    dominators: Option<Dominators<NodeIndex>>,
}

impl<'s> Certainty<'s> {
    pub(crate) fn new(survey: &'s Survey<'s>, flow: &'s Flow, order: &'s [NodeIx]) -> Self {
        // Vertices: first the nodes at their own positions, then the output ports in use.
        let mut graph = DiGraph::<(), ()>::new();
        for _ in &survey.nodes {
            graph.add_node(());
        }
        let mut ports = BTreeMap::new();
        for wire in &flow.wires {
            let (node, port) = wire.source;
            let port = *ports.entry((node, port.name)).or_insert_with(|| {
                let vertex = graph.add_node(());
                graph.add_edge(NodeIndex::new(node), vertex, ());
                vertex
            });
            graph.add_edge(port, NodeIndex::new(wire.target.0), ());
        }
        let input = survey
            .nodes
            .iter()
            .position(|node| node.kind == Kind::Input);
        Self {
            survey,
            flow,
            order,
            ports,
            dominators: input.map(|input| simple_fast(&graph, NodeIndex::new(input))),
        }
    }

    /// Whether `port` of `source`, a node upstream of `reader`, has emitted whenever `reader`
    /// runs. True also where nothing can be said because the reader is never reached.
    pub(crate) fn is_certain(&self, source: NodeIx, port: &Port, reader: NodeIx) -> bool {
        let dominators = self.dominators.as_ref();
        let Some(before) = dominators.and_then(|d| d.strict_dominators(NodeIndex::new(reader)))
        else {
            return true;
        };
        let before: BTreeSet<NodeIndex> = before.collect();
        if let Some(vertex) = self.ports.get(&(source, port.name))
            && before.contains(vertex)
        {
            return true;
        }
        let Some(node) = self.survey.nodes.get(source) else {
            return true;
        };
        let mut possible = choices(node);
        if possible.next().map(|only| only.name) != Some(port.name) || possible.next().is_some() {
            return false;
        }
        let leads = self.leading_to(source);
        let leads_on = |(node, port): &(NodeIx, &'static str)| {
            self.wires_of(*node, port)
                .any(|wire| is_set(&leads, wire.target.0))
        };
        before.iter().any(|vertex| is_set(&leads, vertex.index()))
            || self
                .ports
                .iter()
                .any(|(end, vertex)| before.contains(vertex) && leads_on(end))
    }

    /// For every node whether, once it runs, `goal` is certain to run: whichever port is
    /// chosen, one of its edges leads on.
    fn leading_to(&self, goal: NodeIx) -> Vec<bool> {
        let mut leads = vec![false; self.survey.nodes.len()];
        for &at in self.order.iter().rev() {
            let Some(node) = self.survey.nodes.get(at) else {
                continue;
            };
            let mut possible = choices(node).peekable();
            let all = possible.peek().is_some()
                && possible.all(|port| {
                    self.wires_of(at, port.name)
                        .any(|wire| is_set(&leads, wire.target.0))
                });
            if let Some(leads) = leads.get_mut(at) {
                *leads = at == goal || all;
            }
        }
        leads
    }

    fn wires_of<'p>(&'p self, node: NodeIx, port: &'p str) -> impl Iterator<Item = &'p Wire> + 'p {
        let wires = self.flow.outgoing.get(node).into_iter().flatten();
        wires
            .filter_map(|at| self.flow.wires.get(*at))
            .filter(move |wire| wire.source.1.name == port)
    }
}
