//! From the browser's pointers, wheel and keys to the gesture machine, and from its actions
//! to the document.

use std::collections::HashSet;

use leptos::ev;
use leptos::prelude::*;
use sluicegate_core::graph::Endpoint;
use sluicegate_core::ids::NodeId;
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent, PointerEvent, WheelEvent};

use super::{Canvas, connection, edge};
use crate::canvas::geometry::{Vec2, card_box, nearest};
use crate::canvas::gesture::{Action, Held, Input, Item, Target, Wheel, wheel_pixels};
use crate::state::edits;

/// Nodes stop on a grid of this many canvas units.
const GRID: f64 = 8.0;

fn at(canvas: Canvas, x: i32, y: i32) -> Vec2 {
    let bounds = canvas
        .root
        .get_untracked()
        .map(|root| root.get_bounding_client_rect());
    bounds.map_or(Vec2::default(), |bounds| {
        Vec2::new(f64::from(x) - bounds.left(), f64::from(y) - bounds.top())
    })
}

fn target(canvas: Canvas, event: &PointerEvent, at: Vec2) -> Target {
    let element = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    let holder = |selector: &str, name: &str| {
        let holder = element.as_ref()?.closest(selector).ok().flatten()?;
        holder.get_attribute(name)
    };
    if let Some(node) = holder(".node", "data-node") {
        return match holder(".port", "data-port") {
            Some(port) => Target::Port(Endpoint::new(node, port)),
            None => Target::Node(NodeId::from(node)),
        };
    }
    // B135: not the edge that the browser hits first, but the nearest one.
    let view = canvas.view.get_untracked();
    let reach = 10.0 / view.zoom;
    match nearest(edge::curves_now(canvas), view.to_canvas(at), reach) {
        Some(edge) => Target::Edge(edge),
        None => Target::Canvas,
    }
}

pub(super) fn down(canvas: Canvas, event: &PointerEvent) {
    if event.button() > 1 {
        return;
    }
    let at = at(canvas, event.client_x(), event.client_y());
    if let Some(root) = canvas.root.get_untracked() {
        // Refused only for a pointer that is already gone.
        let _ = root.set_pointer_capture(event.pointer_id());
    }
    let held = Held {
        shift: event.shift_key() || event.ctrl_key() || event.meta_key(),
        pan: canvas.space.get_value() || event.button() == 1,
        editable: canvas.document.editable.get_untracked(),
    };
    if event.button() == 1 {
        // Otherwise the browser scrolls by itself.
        event.prevent_default();
    }
    canvas.refusal.set(None);
    let target = target(canvas, event, at);
    feed(
        canvas,
        Input::Down {
            pointer: event.pointer_id(),
            at,
            target,
            held,
        },
    );
}

pub(super) fn moved(canvas: Canvas, event: &PointerEvent) {
    let (at, over) = here(canvas, event);
    feed(
        canvas,
        Input::Move {
            pointer: event.pointer_id(),
            at,
            over,
        },
    );
}

pub(super) fn up(canvas: Canvas, event: &PointerEvent) {
    let (at, over) = here(canvas, event);
    feed(
        canvas,
        Input::Up {
            pointer: event.pointer_id(),
            at,
            over,
        },
    );
}

fn here(canvas: Canvas, event: &PointerEvent) -> (Vec2, Option<Endpoint>) {
    let at = at(canvas, event.client_x(), event.client_y());
    let connecting = canvas
        .gesture
        .with_value(crate::canvas::gesture::Gesture::is_connecting);
    let over = connecting
        .then(|| connection::port_near(canvas, at))
        .flatten();
    (at, over)
}

pub(super) fn cancel(canvas: Canvas) {
    feed(canvas, Input::Cancel);
}

pub(super) fn wheel(canvas: Canvas, event: &WheelEvent) {
    event.prevent_default();
    let page = canvas.size().y;
    let delta = Vec2::new(event.delta_x(), event.delta_y());
    feed(
        canvas,
        Input::Wheel(Wheel {
            at: at(canvas, event.client_x(), event.client_y()),
            delta: wheel_pixels(delta, event.delta_mode(), page),
            zoom: event.ctrl_key() || event.meta_key(),
            sideways: event.shift_key(),
        }),
    );
}

fn feed(canvas: Canvas, input: Input) {
    let view = canvas.view.get_untracked();
    let actions = canvas
        .gesture
        .try_update_value(|gesture| gesture.step(input, view));
    for action in actions.unwrap_or_default() {
        act(canvas, action);
    }
}

fn act(canvas: Canvas, action: Action) {
    let document = canvas.document;
    match action {
        Action::Look(view) => {
            canvas.view.set(view);
            // A reason stands at a place on the screen, which has just moved away.
            if canvas.refusal.with_untracked(Option::is_some) {
                canvas.refusal.set(None);
            }
        }
        Action::Select { item, add } => document.select(item, add),
        Action::ClearSelection => document.select_only([]),
        Action::Move(by) => move_selected(canvas, by),
        Action::Drop => drop_selected(canvas),
        Action::TakeBack => {
            for (id, at) in canvas.began.get_value() {
                document.place(&id).set(at);
            }
            canvas.began.set_value(Vec::new());
        }
        Action::Reach { from, to, over } => connection::reached(canvas, from, to, over),
        Action::Connect { from, to } => connection::connected(canvas, &from, &to),
        Action::LetGo => connection::dropped(canvas),
        Action::Box(area) => canvas.area.set(Some(area)),
        Action::BoxCancel => canvas.area.set(None),
        Action::BoxDone { area, add } => {
            canvas.area.set(None);
            let graph = document.now();
            let hit = graph
                .nodes
                .iter()
                .filter(|node| card_box(canvas.place_now(&node.id)).touches(area));
            let mut items: HashSet<_> = hit.map(|node| Item::Node(node.id.clone())).collect();
            if add {
                items.extend(document.selection_now());
            }
            document.select_only(items);
        }
    }
}

fn move_selected(canvas: Canvas, by: Vec2) {
    let document = canvas.document;
    if canvas.began.with_value(Vec::is_empty) {
        let nodes = document.selected_nodes().into_iter();
        canvas.began.set_value(
            nodes
                .map(|id| (id.clone(), canvas.place_now(&id)))
                .collect(),
        );
    }
    let began = canvas.began.get_value();
    // All move by the same step, so that what was aligned stays aligned.
    let Some((_, first)) = began.first() else {
        return;
    };
    let step = first.plus(by).snapped(GRID).minus(*first);
    for (id, from) in &began {
        let place = document.place(id);
        let at = from.plus(step);
        if place.get_untracked() != at {
            place.set(at);
        }
    }
}

fn drop_selected(canvas: Canvas) {
    let began = canvas.began.get_value();
    canvas.began.set_value(Vec::new());
    let places: Vec<_> = began
        .into_iter()
        .map(|(id, _)| (id.clone(), canvas.place_now(&id)))
        .collect();
    canvas
        .document
        .edit("Move", |graph| edits::place(graph, places));
}

/// What the canvas hears from the whole page: while the space bar is held, dragging pans;
/// a press anywhere puts a reason away.
pub(super) fn follow_page(canvas: Canvas) {
    let press = window_event_listener(ev::pointerdown, move |_| {
        if canvas.refusal.with_untracked(Option::is_some) {
            canvas.refusal.set(None);
        }
    });
    let down = window_event_listener(ev::keydown, move |event| {
        if event.code() == "Space" && !in_field(&event) {
            canvas.space.set_value(true);
        }
    });
    let up = window_event_listener(ev::keyup, move |event| {
        if event.code() == "Space" {
            canvas.space.set_value(false);
        }
    });
    on_cleanup(move || {
        press.remove();
        down.remove();
        up.remove();
    });
}

/// Whether a key goes into a field, a button or a dialog and means nothing to the canvas.
pub(crate) fn in_field(event: &KeyboardEvent) -> bool {
    let element = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    let field = element.and_then(|element| {
        element
            .closest("input, textarea, select, button, dialog, [contenteditable]")
            .ok()
            .flatten()
    });
    field.is_some() || event.is_composing()
}

/// Keys on the canvas itself.
pub(super) fn key(canvas: Canvas, event: &KeyboardEvent) {
    if in_field(event) || event.ctrl_key() || event.meta_key() || event.alt_key() {
        return;
    }
    let far = if event.shift_key() { 5.0 } else { 1.0 };
    match event.key().as_str() {
        "Escape" => {
            feed(canvas, Input::Cancel);
            canvas.document.select_only([]);
        }
        "+" | "=" => canvas.zoom(1.25),
        "-" => canvas.zoom(1.0 / 1.25),
        "0" => canvas.fit(),
        "Delete" | "Backspace" => delete_selected(canvas),
        "ArrowLeft" => nudge(canvas, Vec2::new(-GRID * far, 0.0)),
        "ArrowRight" => nudge(canvas, Vec2::new(GRID * far, 0.0)),
        "ArrowUp" => nudge(canvas, Vec2::new(0.0, -GRID * far)),
        "ArrowDown" => nudge(canvas, Vec2::new(0.0, GRID * far)),
        " " => {}
        _ => return,
    }
    event.prevent_default();
}

/// Removes what is selected, as one step.
pub(crate) fn delete_selected(canvas: Canvas) {
    let document = canvas.document;
    let selection = document.selection_now();
    if document.editable.get_untracked() && !selection.is_empty() {
        document.edit("Delete", |graph| edits::remove(graph, &selection));
    }
}

fn nudge(canvas: Canvas, by: Vec2) {
    let document = canvas.document;
    let nodes = document.selected_nodes();
    if !document.editable.get_untracked() || nodes.is_empty() {
        canvas
            .view
            .update(|view| *view = view.panned(by.times(-4.0)));
        return;
    }
    let places: Vec<_> = nodes
        .into_iter()
        .map(|id| {
            let at = canvas.place_now(&id).plus(by);
            (id, at)
        })
        .collect();
    document.edit("Move", |graph| edits::place(graph, places));
}
