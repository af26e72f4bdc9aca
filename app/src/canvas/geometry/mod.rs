//! Points, the view and boxes of the canvas, pure (web.md §2 "Canvas", §7).
//!
//! *Canvas* units are what the document's layout stores; *screen* units are pixels from the
//! viewport's top left corner. `screen = canvas · zoom + pan`.

mod card;
mod curve;
mod place;

pub(crate) use card::{CARD, card_box, port_offset};
pub(crate) use curve::{Curve, nearest};
pub(crate) use place::{free_spot, places};

/// A point or a displacement.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Vec2 {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Vec2 {
    pub(crate) const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor)
    }

    pub(crate) fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// To the nearest multiple of `step`.
    pub(crate) fn snapped(self, step: f64) -> Self {
        Self::new(
            (self.x / step).round() * step,
            (self.y / step).round() * step,
        )
    }
}

/// A box by its top left corner and its size; never negative in size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) at: Vec2,
    pub(crate) size: Vec2,
}

impl Rect {
    /// The box with these two opposite corners.
    pub(crate) fn between(a: Vec2, b: Vec2) -> Self {
        Self {
            at: Vec2::new(a.x.min(b.x), a.y.min(b.y)),
            size: Vec2::new((a.x - b.x).abs(), (a.y - b.y).abs()),
        }
    }

    pub(crate) fn end(self) -> Vec2 {
        self.at.plus(self.size)
    }

    pub(crate) fn centre(self) -> Vec2 {
        self.at.plus(self.size.times(0.5))
    }

    pub(crate) fn touches(self, other: Self) -> bool {
        let (a, b) = (self.end(), other.end());
        self.at.x < b.x && other.at.x < a.x && self.at.y < b.y && other.at.y < a.y
    }

    pub(crate) fn around(boxes: impl IntoIterator<Item = Self>) -> Option<Self> {
        boxes.into_iter().reduce(|a, b| {
            let (at, to) = (
                Vec2::new(a.at.x.min(b.at.x), a.at.y.min(b.at.y)),
                Vec2::new(a.end().x.max(b.end().x), a.end().y.max(b.end().y)),
            );
            Self::between(at, to)
        })
    }
}

/// What part of the canvas is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    pub(crate) pan: Vec2,
    pub(crate) zoom: f64,
}

impl Default for View {
    fn default() -> Self {
        Self {
            pan: Vec2::default(),
            zoom: 1.0,
        }
    }
}

/// How much of a node is drawn (web.md §7: it reads at 50 % and at 25 %).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything.
    Full,
    /// Label and state.
    Label,
    /// Shape and colour.
    Shape,
}

impl Detail {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Label => "label",
            Self::Shape => "shape",
        }
    }
}

impl View {
    pub(crate) const ZOOM_LEAST: f64 = 0.1;
    pub(crate) const ZOOM_MOST: f64 = 2.5;

    pub(crate) fn to_canvas(self, screen: Vec2) -> Vec2 {
        screen.minus(self.pan).times(1.0 / self.zoom)
    }

    pub(crate) fn to_screen(self, canvas: Vec2) -> Vec2 {
        canvas.times(self.zoom).plus(self.pan)
    }

    pub(crate) fn panned(self, by: Vec2) -> Self {
        Self {
            pan: self.pan.plus(by),
            ..self
        }
    }

    /// Zooms by a factor; what is under `screen` stays under it.
    pub(crate) fn zoomed(self, factor: f64, screen: Vec2) -> Self {
        let zoom = (self.zoom * factor).clamp(Self::ZOOM_LEAST, Self::ZOOM_MOST);
        let under = self.to_canvas(screen);
        Self {
            pan: screen.minus(under.times(zoom)),
            zoom,
        }
    }

    /// Shows a whole box in a viewport, never larger than life. A viewport without area or a
    /// box that is not finite leaves the default view.
    pub(crate) fn fit(what: Rect, viewport: Vec2, margin: f64) -> Self {
        let room = Vec2::new(viewport.x - 2.0 * margin, viewport.y - 2.0 * margin);
        let zoom = (room.x / what.size.x.max(1.0)).min(room.y / what.size.y.max(1.0));
        if !zoom.is_finite() || zoom <= 0.0 {
            return Self::default();
        }
        let zoom = zoom.clamp(Self::ZOOM_LEAST, 1.0);
        Self {
            pan: viewport.times(0.5).minus(what.centre().times(zoom)),
            zoom,
        }
    }

    /// The least movement that brings a box into a viewport with a margin.
    pub(crate) fn reveal(self, what: Rect, viewport: Vec2, margin: f64) -> Self {
        let (from, to) = (self.to_screen(what.at), self.to_screen(what.end()));
        let shift = |low: f64, high: f64, room: f64| {
            if low < margin || high - low > room - 2.0 * margin {
                margin - low
            } else if high > room - margin {
                room - margin - high
            } else {
                0.0
            }
        };
        self.panned(Vec2::new(
            shift(from.x, to.x, viewport.x),
            shift(from.y, to.y, viewport.y),
        ))
    }

    pub(crate) fn detail(self) -> Detail {
        if self.zoom >= 0.62 {
            Detail::Full
        } else if self.zoom >= 0.34 {
            Detail::Label
        } else {
            Detail::Shape
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b134_the_point_under_the_pointer_stays() {
        let mut view = View::default();
        let pointer = Vec2::new(311.0, 97.0);
        for factor in [1.1, 1.3, 0.2, 0.01, 50.0, 3.0, 0.7] {
            let before = view.to_canvas(pointer);
            view = view.zoomed(factor, pointer);
            let after = view.to_screen(before);
            assert!(after.minus(pointer).length() < 1e-6, "{factor}");
            assert!((View::ZOOM_LEAST..=View::ZOOM_MOST).contains(&view.zoom));
        }
    }

    #[test]
    fn web2_fit_shows_the_whole_box_and_never_enlarges() {
        let viewport = Vec2::new(800.0, 600.0);
        let wide = Rect::between(Vec2::new(-500.0, 0.0), Vec2::new(2_500.0, 100.0));
        let view = View::fit(wide, viewport, 40.0);
        assert!(view.to_screen(wide.at).x >= 39.9 && view.to_screen(wide.end()).x <= 760.1);
        let small = Rect::between(Vec2::default(), Vec2::new(10.0, 10.0));
        assert_eq!(View::fit(small, viewport, 40.0).zoom, 1.0);
        for viewport in [Vec2::default(), Vec2::new(30.0, 30.0)] {
            let view = View::fit(small, viewport, 40.0);
            assert!(view.pan.x.is_finite() && view.zoom > 0.0);
        }
    }

    #[test]
    fn web7_reveal_moves_no_more_than_needed() {
        let view = View::default();
        let viewport = Vec2::new(400.0, 400.0);
        let inside = Rect::between(Vec2::new(100.0, 100.0), Vec2::new(200.0, 200.0));
        assert_eq!(view.reveal(inside, viewport, 20.0), view);
        let right = Rect::between(Vec2::new(500.0, 100.0), Vec2::new(600.0, 200.0));
        assert_eq!(
            view.reveal(right, viewport, 20.0).pan,
            Vec2::new(-220.0, 0.0)
        );
    }

    #[test]
    fn web7_three_levels_of_detail() {
        let at = |zoom| {
            View {
                zoom,
                ..View::default()
            }
            .detail()
        };
        assert_eq!(
            [at(1.0), at(0.5), at(0.25)],
            [Detail::Full, Detail::Label, Detail::Shape]
        );
    }
}
