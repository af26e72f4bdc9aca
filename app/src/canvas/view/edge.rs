//! Edges (web.md §2 "Edges", §4, §7).

use leptos::prelude::*;
use sluicegate_core::graph::{Edge, Endpoint};
use sluicegate_core::ids::{EdgeId, NodeId};

use super::Canvas;
use crate::canvas::geometry::{Curve, Vec2, port_offset};
use crate::canvas::gesture::Item;

/// All edges; one whose ends move is drawn again alone.
pub(super) fn edges(canvas: Canvas) -> AnyView {
    let keys = Memo::new(move |_| {
        canvas.document.with(|graph| {
            graph
                .edges
                .iter()
                .map(|edge| edge.id.clone())
                .collect::<Vec<_>>()
        })
    });
    view! {
        <For
            each=move || keys.get()
            key=|key| key.clone()
            children=move |id| one(canvas, id)
        />
    }
    .into_any()
}

/// An edge and its curve, which reads the places of its own two nodes only.
fn drawn(canvas: Canvas, id: &EdgeId) -> (Memo<Option<Edge>>, Memo<Option<Curve>>) {
    let document = canvas.document;
    let id = id.clone();
    let edge = Memo::new(move |_| document.with(|graph| graph.edge(id.as_str()).cloned()));
    let offsets = Memo::new(move |_| edge.with(|edge| offsets(canvas, edge.as_ref()?)));
    let curve = Memo::new(move |_| {
        let (from, to) = offsets.get()?;
        edge.with(|edge| {
            let edge = edge.as_ref()?;
            let from = document.place(&edge.source.node_id).get().plus(from);
            let to = document.place(&edge.target.node_id).get().plus(to);
            Some(Curve::new(from, to))
        })
    });
    (edge, curve)
}

fn status(canvas: Canvas, id: &EdgeId) -> Memo<Option<&'static str>> {
    let id = id.clone();
    Memo::new(move |_| {
        canvas
            .overlay
            .with(|run| run.as_ref().map(|run| run.edge(&id).as_str()))
    })
}

fn one(canvas: Canvas, id: EdgeId) -> AnyView {
    let document = canvas.document;
    let (edge, curve) = drawn(canvas, &id);
    let path = move || curve.get().map(|curve| curve.path()).unwrap_or_default();
    let head = move || {
        let tip = curve.get().map(|curve| curve.at(1.0)).unwrap_or_default();
        format!("M{0} {1}l-9 -4.5v9z", tip.x - 4.0, tip.y)
    };
    let selected = {
        let item = Item::Edge(id.clone());
        Memo::new(move |_| document.is_selected(&item))
    };
    let near = Memo::new(move |_| {
        let touches = |id: &NodeId| document.is_selected(&Item::Node(id.clone()));
        selected.get()
            || edge.with(|edge| {
                edge.as_ref()
                    .is_some_and(|it| touches(&it.source.node_id) || touches(&it.target.node_id))
            })
    });
    let state = status(canvas, &id);
    let port = move || edge.get().map(|edge| edge.source.port);
    let key = id.to_string();
    view! {
        <g
            class="edge"
            class:near=near
            class:selected=selected
            data-edge=key
            data-port=port
            data-status=move || state.get()
        >
            <path class="hit" d=path></path>
            <path class="line" d=path></path>
            <path class="flow" d=path pathLength="100"></path>
            <path class="head" d=head></path>
        </g>
    }
    .into_any()
}

/// The labels, above the cards, so that no card hides one.
pub(super) fn labels(canvas: Canvas) -> AnyView {
    let keys = Memo::new(move |_| {
        canvas.document.with(|graph| {
            let named = graph.edges.iter().filter(|edge| is_labelled(edge));
            named.map(|edge| edge.id.clone()).collect::<Vec<_>>()
        })
    });
    view! {
        <For
            each=move || keys.get()
            key=|key| key.clone()
            children=move |id| label(canvas, &id)
        />
    }
    .into_any()
}

/// Whether an edge says itself what it stands for.
pub(super) fn is_labelled(edge: &Edge) -> bool {
    edge.label.as_ref().is_some_and(|label| !label.is_empty())
}

fn label(canvas: Canvas, id: &EdgeId) -> AnyView {
    let (edge, curve) = drawn(canvas, id);
    let text = move || edge.get().and_then(|edge| edge.label).unwrap_or_default();
    let place = move || {
        let at = curve.get().map(|curve| curve.at(0.5)).unwrap_or_default();
        format!("translate({:.1}px, {:.1}px)", at.x, at.y)
    };
    let state = status(canvas, id);
    view! {
        <span
            class="edge-label"
            dir="auto"
            data-status=move || state.get()
            style:transform=place
        >
            {text}
        </span>
    }
    .into_any()
}

/// Where the two ends are on their cards; `None` where a node or a port is not there.
fn offsets(canvas: Canvas, edge: &Edge) -> Option<(Vec2, Vec2)> {
    canvas.document.with(|graph| {
        let offset =
            |end: &Endpoint| port_offset(graph.node(end.node_id.as_str())?.node_type(), &end.port);
        Some((offset(&edge.source)?, offset(&edge.target)?))
    })
}

/// Every edge's curve as it is now, for finding the nearest.
pub(super) fn curves_now(canvas: Canvas) -> Vec<(EdgeId, Curve)> {
    let graph = canvas.document.now();
    let curve = |edge: &Edge| {
        let (from, to) = (canvas.port_at(&edge.source)?, canvas.port_at(&edge.target)?);
        Some((edge.id.clone(), Curve::new(from, to)))
    };
    graph.edges.iter().filter_map(curve).collect()
}
