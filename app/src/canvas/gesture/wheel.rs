//! The wheel: two fingers pan, a pinch or a wheel with Ctrl or ⌘ zooms (web.md §2).

use crate::canvas::geometry::{Vec2, View};

/// One turn of a wheel or one movement of two fingers on a trackpad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wheel {
    pub(crate) at: Vec2,
    /// In pixels.
    pub(crate) delta: Vec2,
    /// Ctrl or ⌘ is held; a pinch on a trackpad comes with Ctrl.
    pub(crate) zoom: bool,
    /// Shift turns a plain wheel sideways.
    pub(crate) sideways: bool,
}

/// Pixels of a delta in one of the three modes of the DOM: pixels, lines, pages.
pub(crate) fn wheel_pixels(delta: Vec2, mode: u32, page: f64) -> Vec2 {
    match mode {
        1 => delta.times(16.0),
        2 => delta.times(page),
        _ => delta,
    }
}

impl Wheel {
    /// What is seen after it. One notch of a mouse (120 px) zooms by about a fifth; a pinch
    /// comes in small deltas and follows the fingers.
    pub(super) fn turn(self, view: View) -> View {
        if self.zoom {
            let speed = if self.delta.y.abs() < 50.0 {
                0.01
            } else {
                0.0016
            };
            let exponent = (-self.delta.y * speed).clamp(-0.7, 0.7);
            return view.zoomed(exponent.exp(), self.at);
        }
        let by = if self.sideways && self.delta.x == 0.0 {
            Vec2::new(self.delta.y, 0.0)
        } else {
            self.delta
        };
        view.panned(by.times(-1.0))
    }
}
