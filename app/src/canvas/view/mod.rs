//! The canvas on the screen: pointers go to the gesture machine, its actions to the
//! document (web.md §2, §6, §7).

mod connection;
mod edge;
mod look;
mod node;
mod pointer;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use sluicegate_core::graph::{Endpoint, NodeType};
use sluicegate_core::ids::NodeId;

use super::geometry::{CARD, Rect, Vec2, View, card_box, port_offset};
use super::gesture::{Gesture, Item};
use crate::state::document::Document;
use crate::state::overlay::Overlay;
use crate::ui::icon::Icon;
use crate::ui::icon_button;

pub(crate) use look::{family, picture, type_name};
pub(crate) use pointer::{delete_selected, in_field};

/// How many errors and warnings a node has.
pub(crate) type Marks = HashMap<NodeId, (usize, usize)>;

/// Room around what is fitted into view, in pixels.
const MARGIN: f64 = 40.0;

/// The canvas. A handle.
#[derive(Clone, Copy)]
pub(crate) struct Canvas {
    pub(crate) document: Document,
    view: RwSignal<View>,
    marks: Signal<Arc<Marks>>,
    overlay: Signal<Option<Arc<Overlay>>>,
    root: NodeRef<html::Div>,
    gesture: StoredValue<Gesture>,
    /// Where the selected nodes stood when their drag began.
    began: StoredValue<Vec<(NodeId, Vec2)>>,
    space: StoredValue<bool>,
    /// The selection box, in canvas units.
    area: RwSignal<Option<Rect>>,
    /// The connection in the hand.
    reach: RwSignal<Option<connection::Reach>>,
    /// The ports that may take it; none while nothing is in the hand.
    accepts: RwSignal<Option<Arc<HashSet<Endpoint>>>>,
    /// Why something was refused, and where, in pixels.
    refusal: RwSignal<Option<(Vec2, String)>>,
}

impl Canvas {
    pub(crate) fn new(
        document: Document,
        marks: Signal<Arc<Marks>>,
        overlay: Signal<Option<Arc<Overlay>>>,
    ) -> Self {
        Self {
            document,
            view: RwSignal::new(View::default()),
            marks,
            overlay,
            root: NodeRef::new(),
            gesture: StoredValue::new(Gesture::Idle),
            began: StoredValue::new(Vec::new()),
            space: StoredValue::new(false),
            area: RwSignal::new(None),
            reach: RwSignal::new(None),
            accepts: RwSignal::new(None),
            refusal: RwSignal::new(None),
        }
    }

    /// The viewport's size in pixels; nothing before it is on the screen.
    fn size(self) -> Vec2 {
        self.root.get_untracked().map_or(Vec2::default(), |root| {
            Vec2::new(
                f64::from(root.client_width()),
                f64::from(root.client_height()),
            )
        })
    }

    fn place_now(self, id: &NodeId) -> Vec2 {
        self.document.place(id).get_untracked()
    }

    /// Where a port is in canvas units; `None` where there is no such port.
    fn port_at(self, end: &Endpoint) -> Option<Vec2> {
        let graph = self.document.now();
        let node = graph.node(end.node_id.as_str())?;
        let offset = port_offset(node.node_type(), &end.port)?;
        Some(self.place_now(&end.node_id).plus(offset))
    }

    /// Shows all of the graph.
    pub(crate) fn fit(self) {
        let graph = self.document.now();
        let boxes = graph
            .nodes
            .iter()
            .map(|node| card_box(self.place_now(&node.id)));
        if let Some(all) = Rect::around(boxes) {
            self.view.set(View::fit(all, self.size(), MARGIN));
        }
    }

    /// Brings an item into view with the least movement.
    pub(crate) fn reveal(self, item: &Item) {
        let graph = self.document.now();
        let what = match item {
            Item::Node(id) => graph
                .node(id.as_str())
                .map(|_| card_box(self.place_now(id))),
            Item::Edge(id) => graph.edge(id.as_str()).and_then(|edge| {
                let (from, to) = (self.port_at(&edge.source)?, self.port_at(&edge.target)?);
                Some(Rect::between(from, to))
            }),
        };
        if let Some(what) = what {
            self.view
                .update(|view| *view = view.reveal(what, self.size(), 24.0));
        }
    }

    /// Zooms about the middle.
    pub(crate) fn zoom(self, factor: f64) {
        let middle = self.size().times(0.5);
        self.view.update(|view| *view = view.zoomed(factor, middle));
    }

    /// Where a new card would be in the middle of what is seen.
    pub(crate) fn middle(self) -> Vec2 {
        let middle = self.view.get_untracked().to_canvas(self.size().times(0.5));
        middle.minus(CARD.times(0.5)).snapped(8.0)
    }

    /// A screen point of the whole page as one of the canvas.
    pub(crate) fn seen_at(self, x: f64, y: f64) -> Option<Vec2> {
        let bounds = self.root.get_untracked()?.get_bounding_client_rect();
        let at = Vec2::new(x - bounds.left(), y - bounds.top());
        let inside =
            at.x >= 0.0 && at.y >= 0.0 && at.x <= bounds.width() && at.y <= bounds.height();
        inside.then(|| self.view.get_untracked().to_canvas(at))
    }
}

/// Draws the canvas.
pub(crate) fn canvas(canvas: Canvas) -> AnyView {
    // The first picture shows everything; the viewport has a size only after it is laid out.
    Effect::new(move |_| {
        if canvas.root.get().is_some() {
            request_animation_frame(move || canvas.fit());
        }
    });
    pointer::follow_page(canvas);
    let view = canvas.view;
    let world = move || {
        let View { pan, zoom } = view.get();
        format!("translate({}px, {}px) scale({zoom})", pan.x, pan.y)
    };
    let drawing = move || {
        let View { pan, zoom } = view.get();
        format!("translate({} {}) scale({zoom})", pan.x, pan.y)
    };
    // What keeps its size on the screen whatever the zoom: hairlines, labels from afar.
    let unzoom = move || format!("{:.2}", 1.0 / view.get().zoom);
    let selecting = Memo::new(move |_| !canvas.document.selection().is_empty());
    let running = move || canvas.overlay.with(Option::is_some);
    view! {
        <div
            class="canvas"
            class:has-selection=selecting
            class:has-run=running
            class:connecting=move || canvas.accepts.with(Option::is_some)
            class:read-only=move || !canvas.document.editable.get()
            node_ref=canvas.root
            tabindex="0"
            role="application"
            aria-label="Graph"
            aria-roledescription="canvas"
            data-detail=move || view.get().detail().as_str()
            style:--unzoom=unzoom
            on:pointerdown=move |event| pointer::down(canvas, &event)
            on:pointermove=move |event| pointer::moved(canvas, &event)
            on:pointerup=move |event| pointer::up(canvas, &event)
            on:pointercancel=move |_| pointer::cancel(canvas)
            on:wheel=move |event| pointer::wheel(canvas, &event)
            on:keydown=move |event| pointer::key(canvas, &event)
        >
            {grid(view)}
            <svg class="edges" aria-hidden="true">
                <g transform=drawing>
                    {edge::edges(canvas)} {connection::in_hand(canvas)}
                    {move || canvas.area.get().map(selection_box)}
                </g>
            </svg>
            <div class="world" style:transform=world>
                {node::nodes(canvas)} {edge::labels(canvas)}
            </div>
            {connection::refusal(canvas)}
        </div>
    }
    .into_any()
}

/// Faint dots, 16 canvas units apart, that fade as they come closer on the screen.
fn grid(view: RwSignal<View>) -> AnyView {
    let step = move || {
        let zoom = view.get().zoom;
        let step = if zoom < 0.5 { 64.0 } else { 16.0 };
        format!("{0}px {0}px", step * zoom)
    };
    let at = move || {
        let View { pan, zoom } = view.get();
        // Dots stand in the middle of their tile; the tile's corner is half a step off.
        let half = if zoom < 0.5 { 32.0 } else { 8.0 } * zoom;
        format!("{}px {}px", pan.x - half, pan.y - half)
    };
    let strength = move || {
        let zoom = view.get().zoom;
        ((zoom - 0.15) / 0.6).clamp(0.0, 1.0).to_string()
    };
    view! {
        <div
            class="grid"
            style:background-size=step
            style:background-position=at
            style:opacity=strength
        ></div>
    }
    .into_any()
}

fn selection_box(area: Rect) -> impl IntoView {
    view! {
        <rect
            class="selection-box"
            x=area.at.x
            y=area.at.y
            width=area.size.x
            height=area.size.y
        ></rect>
    }
}

/// The zoom's value and its buttons.
pub(crate) fn zoom_controls(canvas: Canvas) -> AnyView {
    let percent = move || format!("{:.0} %", canvas.view.get().zoom * 100.0);
    view! {
        <div class="zoom floating" role="group" aria-label="Zoom">
            {icon_button(Icon::ZoomOut, "Zoom out", move || canvas.zoom(1.0 / 1.25), || false)}
            <span class="percent">{percent}</span>
            {icon_button(Icon::ZoomIn, "Zoom in", move || canvas.zoom(1.25), || false)}
            {icon_button(Icon::Fit, "Show everything", move || canvas.fit(), || false)}
        </div>
    }
    .into_any()
}

/// Whether a type has more than one way out, so that ports need their names on the canvas.
fn branches(node_type: NodeType) -> bool {
    node_type
        .ports()
        .iter()
        .filter(|port| port.direction == sluicegate_core::graph::Direction::Output)
        .count()
        > 1
}
