//! The canvas: pure geometry and gestures, and the view that draws them (web.md §2, §7).

pub(crate) mod geometry;
pub(crate) mod gesture;
pub(crate) mod view;
