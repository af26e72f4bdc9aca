//! What pointers and wheels mean on the canvas: a pure machine from inputs to actions
//! (web.md §2 "Canvas", "Connecting"). It knows no DOM and no document.

mod wheel;

use sluicegate_core::graph::Endpoint;
use sluicegate_core::ids::{EdgeId, NodeId};

use super::geometry::{Rect, Vec2, View};

pub(crate) use wheel::{Wheel, wheel_pixels};

/// What is under the pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Canvas,
    Node(NodeId),
    Port(Endpoint),
    Edge(EdgeId),
}

/// Which keys and buttons are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Held {
    /// Adds to the selection, or draws a box on the empty canvas.
    pub(crate) shift: bool,
    /// Pans whatever is under the pointer; the middle button does too.
    pub(crate) pan: bool,
    /// Whether the document may be changed.
    pub(crate) editable: bool,
}

/// Something that happened, in screen units of the canvas.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Down {
        pointer: i32,
        at: Vec2,
        target: Target,
        held: Held,
    },
    /// `over` is the port near the pointer, asked for only while connecting.
    Move {
        pointer: i32,
        at: Vec2,
        over: Option<Endpoint>,
    },
    Up {
        pointer: i32,
        at: Vec2,
        over: Option<Endpoint>,
    },
    /// Escape, or the browser took the pointer.
    Cancel,
    Wheel(Wheel),
}

/// A thing that can be selected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    Node(NodeId),
    Edge(EdgeId),
}

/// What the canvas does about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Look(View),
    Select {
        item: Item,
        add: bool,
    },
    ClearSelection,
    /// The selected nodes stand this far from where they began, in canvas units.
    Move(Vec2),
    /// The movement is over and becomes one step of the history.
    Drop,
    /// The movement is taken back.
    TakeBack,
    /// A connection hangs from a port to the pointer.
    Reach {
        from: Endpoint,
        to: Vec2,
        over: Option<Endpoint>,
    },
    /// The connection was let go over a port.
    Connect {
        from: Endpoint,
        to: Endpoint,
    },
    /// The connection was let go over nothing.
    LetGo,
    /// A selection box, in canvas units.
    Box(Rect),
    /// The box is done; what it touches is selected.
    BoxDone {
        area: Rect,
        add: bool,
    },
    /// The box is taken back.
    BoxCancel,
}

/// What the pointers are doing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Gesture {
    #[default]
    Idle,
    /// The canvas is held and not yet moved far enough to be a pan.
    Held {
        pointer: i32,
        start: Vec2,
        clears: bool,
    },
    Panning {
        pointer: i32,
        last: Vec2,
    },
    /// A node is held and not yet moved far enough to be a drag.
    Pressed {
        pointer: i32,
        start: Vec2,
    },
    Moving {
        pointer: i32,
        start: Vec2,
    },
    Connecting {
        pointer: i32,
        from: Endpoint,
    },
    Boxing {
        pointer: i32,
        start: Vec2,
        add: bool,
    },
    /// Two fingers pan and zoom.
    Pinching {
        first: (i32, Vec2),
        second: (i32, Vec2),
    },
}

/// How far a pointer may tremble before it is a drag, in pixels.
const TREMBLE: f64 = 4.0;

impl Gesture {
    /// Takes one input; answers what to do. `view` is what is seen now.
    pub(crate) fn step(&mut self, input: Input, view: View) -> Vec<Action> {
        match input {
            Input::Wheel(wheel) => vec![Action::Look(wheel.turn(view))],
            Input::Cancel => self.cancel(),
            Input::Down {
                pointer,
                at,
                target,
                held,
            } => self.down(pointer, at, target, held),
            Input::Move { pointer, at, over } => self.moved(pointer, at, over, view),
            Input::Up { pointer, at, over } => self.up(pointer, at, over, view),
        }
    }

    /// Whether a connection is being drawn, so that `over` is worth finding.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self, Self::Connecting { .. })
    }

    fn cancel(&mut self) -> Vec<Action> {
        match std::mem::take(self) {
            Self::Moving { .. } => vec![Action::TakeBack],
            Self::Connecting { .. } => vec![Action::LetGo],
            Self::Boxing { .. } => vec![Action::BoxCancel],
            _ => Vec::new(),
        }
    }

    fn down(&mut self, pointer: i32, at: Vec2, target: Target, held: Held) -> Vec<Action> {
        // A second finger turns whatever the first one began into a pinch.
        let first = match self {
            Self::Held { pointer, start, .. } | Self::Pressed { pointer, start } => {
                Some((*pointer, *start))
            }
            Self::Panning { pointer, last } => Some((*pointer, *last)),
            Self::Idle => None,
            _ => return Vec::new(),
        };
        if let Some(first) = first {
            if first.0 != pointer {
                *self = Self::Pinching {
                    first,
                    second: (pointer, at),
                };
            }
            return Vec::new();
        }
        if held.pan {
            *self = Self::Panning { pointer, last: at };
            return Vec::new();
        }
        match target {
            Target::Port(from) if held.editable => {
                *self = Self::Connecting { pointer, from };
                Vec::new()
            }
            Target::Port(Endpoint { node_id, .. }) | Target::Node(node_id) => {
                *self = if held.editable {
                    Self::Pressed { pointer, start: at }
                } else {
                    Self::Held {
                        pointer,
                        start: at,
                        clears: false,
                    }
                };
                vec![Action::Select {
                    item: Item::Node(node_id),
                    add: held.shift,
                }]
            }
            Target::Edge(edge) => {
                *self = Self::Held {
                    pointer,
                    start: at,
                    clears: false,
                };
                vec![Action::Select {
                    item: Item::Edge(edge),
                    add: held.shift,
                }]
            }
            Target::Canvas if held.shift => {
                *self = Self::Boxing {
                    pointer,
                    start: at,
                    add: true,
                };
                Vec::new()
            }
            Target::Canvas => {
                *self = Self::Held {
                    pointer,
                    start: at,
                    clears: true,
                };
                Vec::new()
            }
        }
    }

    fn moved(&mut self, pointer: i32, at: Vec2, over: Option<Endpoint>, view: View) -> Vec<Action> {
        match self {
            Self::Held {
                pointer: held,
                start,
                ..
            } if *held == pointer => {
                if at.minus(*start).length() < TREMBLE {
                    return Vec::new();
                }
                let by = at.minus(*start);
                *self = Self::Panning { pointer, last: at };
                vec![Action::Look(view.panned(by))]
            }
            Self::Panning {
                pointer: held,
                last,
            } if *held == pointer => {
                let by = at.minus(*last);
                *last = at;
                vec![Action::Look(view.panned(by))]
            }
            Self::Pressed {
                pointer: held,
                start,
            } if *held == pointer => {
                if at.minus(*start).length() < TREMBLE {
                    return Vec::new();
                }
                let start = *start;
                *self = Self::Moving { pointer, start };
                vec![Action::Move(at.minus(start).times(1.0 / view.zoom))]
            }
            Self::Moving {
                pointer: held,
                start,
            } if *held == pointer => {
                vec![Action::Move(at.minus(*start).times(1.0 / view.zoom))]
            }
            Self::Connecting {
                pointer: held,
                from,
            } if *held == pointer => {
                vec![Action::Reach {
                    from: from.clone(),
                    to: view.to_canvas(at),
                    over,
                }]
            }
            Self::Boxing {
                pointer: held,
                start,
                ..
            } if *held == pointer => {
                vec![Action::Box(Rect::between(
                    view.to_canvas(*start),
                    view.to_canvas(at),
                ))]
            }
            Self::Pinching { first, second } => {
                let before = (first.1, second.1);
                if first.0 == pointer {
                    first.1 = at;
                } else if second.0 == pointer {
                    second.1 = at;
                } else {
                    return Vec::new();
                }
                let after = (first.1, second.1);
                let middle = |(a, b): (Vec2, Vec2)| a.plus(b).times(0.5);
                let spread = |(a, b): (Vec2, Vec2)| a.minus(b).length().max(1.0);
                let panned = view.panned(middle(after).minus(middle(before)));
                vec![Action::Look(
                    panned.zoomed(spread(after) / spread(before), middle(after)),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn up(&mut self, pointer: i32, at: Vec2, over: Option<Endpoint>, view: View) -> Vec<Action> {
        let held = match self {
            Self::Idle => return Vec::new(),
            Self::Pinching { first, second } => {
                // The finger that stays goes on panning.
                let stays = if first.0 == pointer { *second } else { *first };
                *self = Self::Panning {
                    pointer: stays.0,
                    last: stays.1,
                };
                return Vec::new();
            }
            Self::Held { pointer, .. }
            | Self::Panning { pointer, .. }
            | Self::Pressed { pointer, .. }
            | Self::Moving { pointer, .. }
            | Self::Connecting { pointer, .. }
            | Self::Boxing { pointer, .. } => *pointer,
        };
        if held != pointer {
            return Vec::new();
        }
        match std::mem::take(self) {
            Self::Held { clears: true, .. } => vec![Action::ClearSelection],
            Self::Moving { .. } => vec![Action::Drop],
            Self::Connecting { from, .. } => match over {
                Some(to) if to != from => vec![Action::Connect { from, to }],
                _ => vec![Action::LetGo],
            },
            Self::Boxing { start, add, .. } => vec![Action::BoxDone {
                area: Rect::between(view.to_canvas(start), view.to_canvas(at)),
                add,
            }],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
