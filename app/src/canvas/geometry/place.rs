//! Where nodes are that the document's layout does not place (web.md §2).

use std::collections::HashMap;

use sluicegate_core::graph::Graph;
use sluicegate_core::ids::NodeId;

use super::{CARD, Rect, Vec2, card_box};

const COLUMN: f64 = CARD.x + 88.0;
const ROW: f64 = CARD.y + 44.0;

/// A place for every node: the document's, and for the others a column by their distance
/// from the input, below whatever stands there already.
pub(crate) fn places(graph: &Graph) -> HashMap<NodeId, Vec2> {
    let mut places = HashMap::new();
    for node in &graph.nodes {
        if let Some(point) = graph.layout.get(&node.id) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "canvas units are far below 2^52"
            )]
            let at = Vec2::new(point.x as f64, point.y as f64);
            places.insert(node.id.clone(), at);
        }
    }
    let columns = columns(graph);
    for node in &graph.nodes {
        if places.contains_key(&node.id) {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "at most one column a node")]
        let x = columns.get(&node.id).copied().unwrap_or(0) as f64 * COLUMN;
        let taken: Vec<_> = places.values().copied().collect();
        places.insert(node.id.clone(), free_spot(&taken, Vec2::new(x, 0.0)));
    }
    places
}

/// The first place at or below `wanted` where a card touches no other card.
pub(crate) fn free_spot(taken: &[Vec2], wanted: Vec2) -> Vec2 {
    let mut spot = wanted;
    // Every step passes at least one card, so one more step than cards finds room.
    for _ in 0..=taken.len() {
        let card = card_box(spot);
        let with_gap = Rect {
            at: card.at.minus(Vec2::new(8.0, 8.0)),
            size: card.size.plus(Vec2::new(16.0, 16.0)),
        };
        match taken.iter().find(|at| card_box(**at).touches(with_gap)) {
            None => break,
            Some(at) => spot.y = at.y + ROW,
        }
    }
    spot
}

/// The longest way to each node in edges; a cycle's nodes stop at the number of nodes.
fn columns(graph: &Graph) -> HashMap<NodeId, usize> {
    let mut columns: HashMap<NodeId, usize> = graph
        .nodes
        .iter()
        .map(|node| (node.id.clone(), 0))
        .collect();
    for _ in 0..graph.nodes.len() {
        let mut changed = false;
        for edge in &graph.edges {
            let Some(source) = columns.get(&edge.source.node_id).copied() else {
                continue;
            };
            if let Some(target) = columns.get_mut(&edge.target.node_id)
                && *target <= source
                && source < graph.nodes.len()
            {
                *target = source + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn web2_nodes_without_layout_never_overlap() {
        let graph = Graph::read(&json!({
            "schemaVersion": 1,
            "nodes": [
                {"id": "in", "type": "input"}, {"id": "a", "type": "gate"},
                {"id": "b", "type": "gate"}, {"id": "out", "type": "output"}
            ],
            "edges": [
                {"id": "e1", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "a", "port": "input"}},
                {"id": "e2", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "b", "port": "input"}},
                {"id": "e3", "source": {"nodeId": "a", "port": "pass"}, "target": {"nodeId": "out", "port": "input"}}
            ],
            "layout": {"in": {"x": 0, "y": 0}}
        }))
        .unwrap();
        let places = places(&graph);
        assert_eq!(places.len(), 4);
        let boxes: Vec<_> = places.values().map(|at| card_box(*at)).collect();
        for (i, a) in boxes.iter().enumerate() {
            for b in &boxes[i + 1..] {
                assert!(!a.touches(*b), "{a:?} {b:?}");
            }
        }
        let x = |id: &str| places[&NodeId::from(id)].x;
        assert!(x("in") < x("a") && x("a") < x("out"));
    }

    #[test]
    fn web2_a_cycle_is_placed_too() {
        let graph = Graph::read(&json!({
            "nodes": [{"id": "a", "type": "merge"}, {"id": "b", "type": "merge"}],
            "edges": [
                {"id": "e1", "source": {"nodeId": "a", "port": "data"}, "target": {"nodeId": "b", "port": "items"}},
                {"id": "e2", "source": {"nodeId": "b", "port": "data"}, "target": {"nodeId": "a", "port": "items"}}
            ]
        }))
        .unwrap();
        assert_eq!(places(&graph).len(), 2);
    }
}
