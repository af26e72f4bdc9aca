//! The document in the page: the graph, where its nodes stand, what is selected and the
//! history (web.md §2, §6).
//!
//! One signal holds the graph as of the last finished gesture; every node's place has a
//! signal of its own, so that a drag touches that node and its edges and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use leptos::prelude::*;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::NodeId;

use crate::canvas::geometry::{Vec2, places};
use crate::canvas::gesture::Item;

/// Steps that can be undone.
const HISTORY: usize = 200;

/// One step back or forward.
#[derive(Debug, Clone)]
struct Step {
    graph: Arc<Graph>,
    /// What the step did, for people: "Move", "Connect".
    name: &'static str,
}

#[derive(Debug, Clone, Default)]
struct History {
    back: Vec<Step>,
    forward: Vec<Step>,
}

/// The document in the page. A handle: copies are the same document.
#[derive(Clone, Copy)]
pub(crate) struct Document {
    graph: RwSignal<Arc<Graph>>,
    places: StoredValue<HashMap<NodeId, ArcRwSignal<Vec2>>>,
    history: RwSignal<History>,
    selection: RwSignal<HashSet<Item>>,
    /// Whether gestures may change it: not on a run's page, nor while theirs is shown.
    pub(crate) editable: RwSignal<bool>,
}

impl Document {
    pub(crate) fn new(graph: Arc<Graph>, editable: bool) -> Self {
        let document = Self {
            graph: RwSignal::new(graph),
            places: StoredValue::new(HashMap::new()),
            history: RwSignal::new(History::default()),
            selection: RwSignal::new(HashSet::new()),
            editable: RwSignal::new(editable),
        };
        document.follow_places();
        document
    }

    /// The graph as of the last finished gesture; tracked.
    pub(crate) fn graph(self) -> Arc<Graph> {
        self.graph.get()
    }

    /// As [`Self::graph`], not tracked.
    pub(crate) fn now(self) -> Arc<Graph> {
        self.graph.get_untracked()
    }

    /// Reads the graph in place; tracked.
    pub(crate) fn with<T>(self, read: impl FnOnce(&Graph) -> T) -> T {
        self.graph.with(|graph| read(graph))
    }

    /// Where a node stands. A node that is gone keeps its last place until nobody looks.
    pub(crate) fn place(self, id: &NodeId) -> ArcRwSignal<Vec2> {
        if let Some(place) = self.places.with_value(|places| places.get(id).cloned()) {
            return place;
        }
        let place = ArcRwSignal::new(Vec2::default());
        self.places.update_value(|places| {
            places.insert(id.clone(), place.clone());
        });
        place
    }

    /// Changes the document as one step of the history. A change that changes nothing is none.
    pub(crate) fn edit<T>(self, name: &'static str, change: impl FnOnce(&mut Graph) -> T) -> T {
        let before = self.now();
        let mut graph = (*before).clone();
        let answer = change(&mut graph);
        if graph != *before {
            self.history.update(|history| {
                history.forward.clear();
                if history.back.len() == HISTORY {
                    history.back.remove(0);
                }
                history.back.push(Step {
                    graph: before,
                    name,
                });
            });
            self.show(Arc::new(graph));
        } else {
            self.follow_places();
        }
        answer
    }

    /// Shows another graph without a step of the history.
    pub(crate) fn show(self, graph: Arc<Graph>) {
        self.graph.set(graph);
        self.follow_places();
        self.prune();
    }

    pub(crate) fn undo(self) -> Option<&'static str> {
        self.travel(|history, now| {
            let step = history.back.pop()?;
            history.forward.push(Step {
                graph: now,
                name: step.name,
            });
            Some(step)
        })
    }

    pub(crate) fn redo(self) -> Option<&'static str> {
        self.travel(|history, now| {
            let step = history.forward.pop()?;
            history.back.push(Step {
                graph: now,
                name: step.name,
            });
            Some(step)
        })
    }

    fn travel(
        self,
        take: impl FnOnce(&mut History, Arc<Graph>) -> Option<Step>,
    ) -> Option<&'static str> {
        let now = self.now();
        let step = self.history.try_update(|history| take(history, now))??;
        self.show(step.graph);
        Some(step.name)
    }

    /// The names of the next steps back and forward; tracked.
    pub(crate) fn steps(self) -> (Option<&'static str>, Option<&'static str>) {
        self.history.with(|history| {
            (
                history.back.last().map(|step| step.name),
                history.forward.last().map(|step| step.name),
            )
        })
    }

    /// What is selected; tracked.
    pub(crate) fn selection(self) -> HashSet<Item> {
        self.selection.get()
    }

    pub(crate) fn selection_now(self) -> HashSet<Item> {
        self.selection.get_untracked()
    }

    /// Whether an item is selected; tracked.
    pub(crate) fn is_selected(self, item: &Item) -> bool {
        self.selection.with(|selection| selection.contains(item))
    }

    /// The one selected item; tracked.
    pub(crate) fn selected(self) -> Option<Item> {
        self.selection.with(|selection| match selection.len() {
            1 => selection.iter().next().cloned(),
            _ => None,
        })
    }

    /// Selects. A press on a part of a larger selection keeps it, so that it can be dragged.
    pub(crate) fn select(self, item: Item, add: bool) {
        let selected = self.selection.with_untracked(|all| all.contains(&item));
        self.selection.update(|selection| {
            if add && selected {
                selection.remove(&item);
            } else if add {
                selection.insert(item);
            } else if !selected {
                *selection = HashSet::from([item]);
            }
        });
    }

    pub(crate) fn select_only(self, items: impl IntoIterator<Item = Item>) {
        let items: HashSet<_> = items.into_iter().collect();
        if self.selection_now() != items {
            self.selection.set(items);
        }
    }

    /// The selected nodes that exist.
    pub(crate) fn selected_nodes(self) -> Vec<NodeId> {
        self.selection_now()
            .into_iter()
            .filter_map(|item| match item {
                Item::Node(id) => Some(id),
                Item::Edge(_) => None,
            })
            .collect()
    }

    /// Every place follows the document; only those that differ are told.
    fn follow_places(self) {
        let graph = self.now();
        let wanted = places(&graph);
        for (id, at) in &wanted {
            let place = self.place(id);
            if place.get_untracked() != *at {
                place.set(*at);
            }
        }
        self.places
            .update_value(|places| places.retain(|id, _| wanted.contains_key(id)));
    }

    /// Whether the document has this node or edge; not tracked.
    pub(crate) fn holds(self, item: &Item) -> bool {
        let graph = self.now();
        match item {
            Item::Node(id) => graph.node(id.as_str()).is_some(),
            Item::Edge(id) => graph.edge(id.as_str()).is_some(),
        }
    }

    /// B138: the selection never holds what is gone.
    fn prune(self) {
        let exists = |item: &Item| self.holds(item);
        if self.selection.with_untracked(|all| !all.iter().all(exists)) {
            self.selection.update(|selection| selection.retain(exists));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::edits;
    use serde_json::json;

    fn document() -> (Owner, Document) {
        let owner = Owner::new();
        owner.set();
        let graph = Graph::read(&json!({
            "schemaVersion": 1,
            "nodes": [{"id": "in", "type": "input"}, {"id": "g", "type": "gate"}, {"id": "o", "type": "output"}],
            "edges": [
                {"id": "e1", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "g", "port": "input"}},
                {"id": "e2", "source": {"nodeId": "g", "port": "pass"}, "target": {"nodeId": "o", "port": "input"}}
            ],
            "layout": {"g": {"x": 10, "y": 20}}
        }))
        .unwrap();
        (owner, Document::new(Arc::new(graph), true))
    }

    #[test]
    fn b130_one_undo_brings_a_node_back_with_its_edges_and_its_place() {
        let (_owner, document) = document();
        let before = document.now();
        let node = HashSet::from([Item::Node("g".into())]);
        document.edit("Delete", |graph| edits::remove(graph, &node));
        assert_eq!(document.now().edges.len(), 0);
        assert_eq!(document.undo(), Some("Delete"));
        assert_eq!(document.now(), before);
        assert_eq!(
            document.place(&"g".into()).get_untracked(),
            Vec2::new(10.0, 20.0)
        );
        assert_eq!(document.redo(), Some("Delete"));
        assert_eq!(document.now().nodes.len(), 2);
        assert_eq!(document.redo(), None);
    }

    #[test]
    fn b138_the_selection_never_holds_what_is_gone() {
        let (_owner, document) = document();
        document.select(Item::Node("g".into()), false);
        document.select(Item::Edge("e1".into()), true);
        document.select(Item::Node("o".into()), true);
        document.edit("Delete", |graph| {
            edits::remove(graph, &HashSet::from([Item::Node("g".into())]));
        });
        assert_eq!(
            document.selection_now(),
            HashSet::from([Item::Node("o".into())])
        );
    }

    #[test]
    fn web2_history_keeps_200_steps_and_ignores_what_changes_nothing() {
        let (_owner, document) = document();
        document.edit("Nothing", |_| ());
        assert_eq!(document.undo(), None);
        for x in 0..250 {
            document.edit("Move", |graph| {
                edits::place(graph, [("g".into(), Vec2::new(f64::from(x) + 100.0, 0.0))]);
            });
        }
        let mut steps = 0;
        while document.undo().is_some() {
            steps += 1;
        }
        assert_eq!(steps, 200);
    }
}
