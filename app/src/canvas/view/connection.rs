//! The connection in the hand: what it reaches, which ports may take it, and why one may
//! not (web.md §2 "Connecting").

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use sluicegate_core::graph::{Direction, Endpoint};

use super::Canvas;
use crate::canvas::geometry::{Curve, Vec2};
use crate::state::connect::judge;
use crate::state::edits;

/// How near a port the pointer must come, in pixels.
const NEAR: f64 = 28.0;

/// The most room that a reason takes, in pixels.
const WIDE: f64 = 280.0;
const HIGH: f64 = 72.0;

/// A connection in the hand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reach {
    from: Endpoint,
    to: Vec2,
    /// The port under the pointer, and whether it may take the connection.
    pub(super) over: Option<(Endpoint, bool)>,
}

/// The port near a point in pixels, whatever it is a port of.
pub(super) fn port_near(canvas: Canvas, at: Vec2) -> Option<Endpoint> {
    let view = canvas.view.get_untracked();
    let point = view.to_canvas(at);
    let graph = canvas.document.now();
    let ends = graph.nodes.iter().flat_map(|node| {
        let ports = node.node_type().ports().iter();
        ports.map(|port| Endpoint::new(node.id.clone(), port.name))
    });
    ends.filter_map(|end| {
        let distance = canvas.port_at(&end)?.minus(point).length() * view.zoom;
        (distance <= NEAR).then_some((end, distance))
    })
    .min_by(|a, b| a.1.total_cmp(&b.1))
    .map(|(end, _)| end)
}

/// The connection follows the pointer; a port that refuses says why.
pub(super) fn reached(canvas: Canvas, from: Endpoint, to: Vec2, over: Option<Endpoint>) {
    let graph = canvas.document.now();
    if canvas.accepts.with_untracked(Option::is_none) {
        let ends = graph.nodes.iter().flat_map(|node| {
            let ports = node.node_type().ports().iter();
            ports.map(|port| Endpoint::new(node.id.clone(), port.name))
        });
        let accepts: HashSet<_> = ends
            .filter(|end| judge(&graph, &from, end).is_ok())
            .collect();
        canvas.accepts.set(Some(Arc::new(accepts)));
    }
    let over = over.filter(|over| *over != from);
    let judged = over.as_ref().map(|over| judge(&graph, &from, over));
    let pointer = canvas.view.get_untracked().to_screen(to);
    canvas.refusal.set(match &judged {
        Some(Err(refusal)) => Some((pointer, refusal.to_string())),
        _ => None,
    });
    // A port that takes it draws the end to itself.
    let taken = matches!(judged, Some(Ok(_)));
    let to = match &over {
        Some(over) if taken => canvas.port_at(over).unwrap_or(to),
        _ => to,
    };
    canvas.reach.set(Some(Reach {
        from,
        to,
        over: over.map(|over| (over, taken)),
    }));
}

/// The connection was let go over a port.
pub(super) fn connected(canvas: Canvas, from: &Endpoint, to: &Endpoint) {
    let judged = judge(&canvas.document.now(), from, to);
    let reason = judged.as_ref().err().map(ToString::to_string);
    let at = canvas.port_at(to);
    dropped(canvas);
    if let Ok((source, target)) = judged {
        canvas
            .document
            .edit("Connect", |graph| edits::connect(graph, source, target));
    } else if let (Some(reason), Some(at)) = (reason, at) {
        // The reason outlives the gesture, so that it can be read.
        let shown = (canvas.view.get_untracked().to_screen(at), reason);
        canvas.refusal.set(Some(shown.clone()));
        set_timeout(
            move || {
                if canvas.refusal.try_get_untracked().flatten() == Some(shown) {
                    canvas.refusal.set(None);
                }
            },
            Duration::from_secs(4),
        );
    }
}

/// The connection is gone.
pub(super) fn dropped(canvas: Canvas) {
    canvas.reach.set(None);
    canvas.accepts.set(None);
    canvas.refusal.set(None);
}

/// Draws the connection in the hand.
pub(super) fn in_hand(canvas: Canvas) -> AnyView {
    let draw = move || {
        let reach = canvas.reach.get()?;
        let from = canvas.port_at(&reach.from)?;
        let graph = canvas.document.now();
        let port = graph
            .node(reach.from.node_id.as_str())?
            .node_type()
            .port(&reach.from.port)?;
        let curve = match port.direction {
            Direction::Output => Curve::new(from, reach.to),
            Direction::Input => Curve::new(reach.to, from),
        };
        let refused = matches!(reach.over, Some((_, false)));
        Some(view! { <path class="in-hand" class:refused=refused d=curve.path()></path> })
    };
    view! { <g>{draw}</g> }.into_any()
}

/// Why something was refused, where the pointer is.
pub(super) fn refusal(canvas: Canvas) -> AnyView {
    let text = move || canvas.refusal.get().map(|(_, reason)| reason);
    // Beside the pointer, and always whole.
    let place = move |at: Vec2| {
        let size = canvas.size();
        let x = (at.x + 16.0).min(size.x - WIDE - 8.0).max(8.0);
        let y = (at.y + 16.0).min(size.y - HIGH - 8.0).max(8.0);
        Vec2::new(x, y)
    };
    let at = move || {
        canvas
            .refusal
            .get()
            .map_or(Vec2::default(), |(at, _)| place(at))
    };
    let left = move || format!("{}px", at().x);
    let top = move || format!("{}px", at().y);
    view! {
        <div
            class="refusal"
            role="status"
            aria-live="assertive"
            class:hidden=move || canvas.refusal.with(Option::is_none)
            style:left=left
            style:top=top
        >
            {text}
        </div>
    }
    .into_any()
}
