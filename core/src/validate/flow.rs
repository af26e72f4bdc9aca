//! What the edges alone say: order, cycles and reachability (wire-format.md Q2, G9;
//! run-machine.md O1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque, btree_map};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::survey::{NodeIx, Survey, Wire};
use crate::graph::Kind;

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
        flow.reachable = flow.reach(inputs);
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
            for next in self.targets(node) {
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
            graph.add_edge(NodeIndex::new(source), NodeIndex::new(target), ());
        }
        let mut cycles: Vec<Vec<NodeIx>> = kosaraju_scc(&graph)
            .into_iter()
            .filter_map(|component| {
                let within: BTreeSet<NodeIx> =
                    component.into_iter().map(NodeIndex::index).collect();
                self.shortest_cycle(&within)
            })
            .collect();
        cycles.sort_unstable();
        cycles
    }

    /// The shortest cycle through the smallest node of a component, if it has one. Breadth
    /// first, neighbours in order of ids, so that of several the same one is found.
    fn shortest_cycle(&self, within: &BTreeSet<NodeIx>) -> Option<Vec<NodeIx>> {
        let start = *within.first()?;
        let mut before: BTreeMap<NodeIx, NodeIx> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let mut targets: Vec<NodeIx> = self.targets(node).collect();
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
                if within.contains(&target)
                    && let btree_map::Entry::Vacant(entry) = before.entry(target)
                {
                    entry.insert(node);
                    queue.push_back(target);
                }
            }
        }
        None
    }

    /// Every node that a path leads to from one of these, themselves too.
    fn reach(&self, from: Vec<NodeIx>) -> Vec<bool> {
        let mut seen = vec![false; self.outgoing.len()];
        let mut open = from;
        while let Some(node) = open.pop() {
            let Some(seen) = seen.get_mut(node) else {
                continue;
            };
            if !std::mem::replace(seen, true) {
                open.extend(self.targets(node));
            }
        }
        seen
    }

    /// Where the wires out of a node lead, one for each wire.
    fn targets(&self, node: NodeIx) -> impl Iterator<Item = NodeIx> + '_ {
        self.outgoing(node).map(|wire| wire.target.0)
    }

    /// The wires out of a node, by edge id.
    pub(super) fn outgoing(&self, node: NodeIx) -> impl Iterator<Item = &Wire> {
        let wires = self.outgoing.get(node).into_iter().flatten();
        wires.filter_map(|at| self.wires.get(*at))
    }

    /// The wires into a node, by edge id.
    pub(super) fn incoming(&self, node: NodeIx) -> impl Iterator<Item = &Wire> {
        let wires = self.incoming.get(node).into_iter().flatten();
        wires.filter_map(|at| self.wires.get(*at))
    }
}

fn is_set(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or_default()
}
