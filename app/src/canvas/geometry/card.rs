//! A node's card and where its ports are (web.md §7 "A node").

use sluicegate_core::graph::{Direction, NodeType};

use super::{Rect, Vec2};

/// The size of every card. Fixed, so that nothing has to be measured.
pub(crate) const CARD: Vec2 = Vec2::new(216.0, 76.0);

/// The distance between two ports on one side.
const PORT_STEP: f64 = 24.0;

/// The card of a node whose top left corner is at `at`.
pub(crate) fn card_box(at: Vec2) -> Rect {
    Rect { at, size: CARD }
}

/// Where a port is, from the card's top left corner: inputs left, outputs right, spread
/// around the middle. `None` for a port that the type does not have.
pub(crate) fn port_offset(node_type: NodeType, port: &str) -> Option<Vec2> {
    let port = node_type.port(port)?;
    let side: Vec<_> = node_type
        .ports()
        .iter()
        .filter(|other| other.direction == port.direction)
        .collect();
    let index = side.iter().position(|other| other.name == port.name)?;
    #[expect(clippy::cast_precision_loss, reason = "a type has at most three ports")]
    let from_middle = index as f64 - (side.len() as f64 - 1.0) / 2.0;
    let x = match port.direction {
        Direction::Input => 0.0,
        Direction::Output => CARD.x,
    };
    Some(Vec2::new(x, CARD.y / 2.0 + from_middle * PORT_STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web7_inputs_left_outputs_right_inside_the_card() {
        for node_type in NodeType::ALL {
            for port in node_type.ports() {
                let at = port_offset(node_type, port.name).unwrap();
                assert!(at.y > 0.0 && at.y < CARD.y);
                assert_eq!(at.x == 0.0, port.direction == Direction::Input);
            }
        }
        assert_eq!(port_offset(NodeType::Gate, "success"), None);
    }
}
