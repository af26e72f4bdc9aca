//! Node cards (web.md §4, §7).

use leptos::prelude::*;
use sluicegate_core::graph::{Direction, Endpoint, Node, NodeType, Port};
use sluicegate_core::ids::NodeId;
use sluicegate_core::run::NodeStatus;

use super::look::{family, picture, reference, type_name};
use super::{Canvas, branches};
use crate::canvas::geometry::port_offset;
use crate::canvas::gesture::Item;
use crate::state::overlay::NodeLook;
use crate::ui::format;
use crate::ui::icon::{Icon, icon};

/// All nodes; one that changes is drawn again alone.
pub(super) fn nodes(canvas: Canvas) -> AnyView {
    let keys = Memo::new(move |_| {
        canvas.document.with(|graph| {
            let keys = graph
                .nodes
                .iter()
                .map(|node| (node.id.clone(), node.node_type()));
            keys.collect::<Vec<_>>()
        })
    });
    view! {
        <For
            each=move || keys.get()
            key=|key| key.clone()
            children=move |(id, node_type)| card(canvas, id, node_type)
        />
    }
    .into_any()
}

fn card(canvas: Canvas, id: NodeId, node_type: NodeType) -> AnyView {
    let document = canvas.document;
    let node = {
        let id = id.clone();
        Memo::new(move |_| document.with(|graph| graph.node(id.as_str()).cloned()))
    };
    let title = Memo::new(move |_| {
        node.with(|node| node.as_ref().map(|node| node.title().to_owned()))
            .unwrap_or_default()
    });
    let line = Memo::new(move |_| {
        node.with(|node| node.as_ref().map(reference))
            .unwrap_or_default()
    });
    let place = document.place(&id);
    let transform = move || {
        let at = place.get();
        format!("translate({}px, {}px)", at.x, at.y)
    };
    let item = Item::Node(id.clone());
    let selected = {
        let item = item.clone();
        Memo::new(move |_| document.is_selected(&item))
    };
    let marks = {
        let id = id.clone();
        Memo::new(move |_| {
            canvas
                .marks
                .with(|marks| marks.get(&id).copied().unwrap_or_default())
        })
    };
    let state = {
        let id = id.clone();
        Memo::new(move |_| {
            canvas
                .overlay
                .with(|run| run.as_ref().map(|run| run.node(&id)))
        })
    };
    let name = move || spoken(&title.get(), node_type, marks.get(), state.get().as_ref());
    let status = move || state.with(|state| state.as_ref().map(NodeLook::look));
    let ports = node_type
        .ports()
        .iter()
        .map(|each| port(canvas, &id, node_type, each))
        .collect_view();
    let key = id.to_string();
    view! {
        <div
            class=format!("node family-{}", family(node_type))
            class:selected=selected
            data-node=key
            data-status=status
            role="group"
            aria-roledescription="node"
            aria-label=name
            tabindex="0"
            style:transform=transform
            on:focus=move |_| {
                if !document.is_selected(&item) {
                    document.select_only([item.clone()]);
                }
            }
        >
            <span class="picture">{icon(picture(node_type))}</span>
            <span class="words">
                <span class="label" dir="auto" title=move || title.get()>
                    <bdi>{move || title.get()}</bdi>
                </span>
                <span class="reference" title=move || line.get()>
                    {move || line.get()}
                </span>
            </span>
            <span class="badges">
                {move || problems(marks.get())} {move || state.get().and_then(|state| badge(&state))}
            </span>
            {ports}
        </div>
    }
    .into_any()
}

/// What a screen reader says of a node.
fn spoken(
    title: &str,
    node_type: NodeType,
    (errors, warnings): (usize, usize),
    state: Option<&NodeLook>,
) -> String {
    let mut words = format!("{title}, {}", type_name(node_type));
    if let Some(state) = state {
        words.push_str(&format!(", {}", state.words()));
    }
    match (errors, warnings) {
        (0, 0) => {}
        (0, n) => words.push_str(&format!(", {n} to look at")),
        (n, _) => words.push_str(&format!(", {n} to fix")),
    }
    words
}

fn problems((errors, warnings): (usize, usize)) -> Option<AnyView> {
    let (class, picture, count) = match (errors, warnings) {
        (0, 0) => return None,
        (0, warnings) => ("badge warning", Icon::Warning, warnings),
        (errors, _) => ("badge danger", Icon::Error, errors),
    };
    Some(view! { <span class=class>{icon(picture)}{count}</span> }.into_any())
}

/// The state in a run, by icon and colour, with the attempt where it is not the first.
fn badge(state: &NodeLook) -> Option<AnyView> {
    let picture = match state.status {
        NodeStatus::Pending => return None,
        NodeStatus::Ready => Icon::Ready,
        NodeStatus::Running | NodeStatus::WaitingChild => Icon::Running,
        NodeStatus::WaitingRetry => Icon::Retry,
        NodeStatus::Succeeded if state.decided_fail() => Icon::Fork,
        NodeStatus::Succeeded => Icon::Done,
        NodeStatus::Failed => Icon::Failed,
        NodeStatus::Refused => Icon::Refused,
        NodeStatus::Cancelled => Icon::Cancelled,
        NodeStatus::Skipped => Icon::Skipped,
    };
    let text = match (state.status, state.backoff_ms) {
        (NodeStatus::WaitingRetry, Some(wait)) => Some(format!(
            "{} in {}",
            state.attempt + 1,
            format::duration(wait)
        )),
        _ if state.attempt > 1 => Some(format!("attempt {}", state.attempt)),
        _ => None,
    };
    let title = match &state.code {
        Some(code) => format!("{}: {code}", state.words()),
        None => state.words().to_owned(),
    };
    Some(
        view! {
            <span class="badge state" title=title>
                {icon(picture)}
                {text.map(|text| view! { <span class="badge-text">{text}</span> })}
            </span>
        }
        .into_any(),
    )
}

fn port(canvas: Canvas, id: &NodeId, node_type: NodeType, port: &'static Port) -> Option<AnyView> {
    let at = port_offset(node_type, port.name)?;
    let end = Endpoint::new(id.clone(), port.name);
    let document = canvas.document;
    let output = port.direction == Direction::Output;
    let joined = {
        let end = end.clone();
        Memo::new(move |_| {
            document.with(|graph| {
                let touches =
                    |edge: &sluicegate_core::graph::Edge| edge.source == end || edge.target == end;
                graph.edges.iter().any(touches)
            })
        })
    };
    let labelled = {
        let end = end.clone();
        Memo::new(move |_| {
            document.with(|graph| {
                let mut own = graph
                    .edges
                    .iter()
                    .filter(|edge| edge.source == end)
                    .peekable();
                own.peek().is_some() && own.all(super::edge::is_labelled)
            })
        })
    };
    let open = {
        let end = end.clone();
        Memo::new(move |_| {
            canvas
                .accepts
                .with(|all| all.as_ref().map(|all| all.contains(&end)))
        })
    };
    let over = {
        let end = end.clone();
        Memo::new(move |_| {
            canvas.reach.with(|reach| {
                let over = reach.as_ref().and_then(|reach| reach.over.as_ref());
                over.is_some_and(|(over, _)| *over == end)
            })
        })
    };
    let schema = {
        let end = end.clone();
        move || {
            document.with(|graph| {
                let schema = graph
                    .node(end.node_id.as_str())
                    .and_then(|node: &Node| crate::state::connect::port_schema(node, port));
                match schema {
                    Some(schema) => format!("{} · {schema}", end.port),
                    None => format!("{} · no schema yet", end.port),
                }
            })
        }
    };
    let named = output && branches(node_type);
    Some(
        view! {
            <span
                class="port"
                class:output=output
                class:joined=joined
                class:named=named
            class:labelled=labelled
                class:open=move || open.get() == Some(true)
                class:shut=move || open.get() == Some(false)
                class:over=over
                data-port=port.name
                style:left=format!("{}px", at.x)
                style:top=format!("{}px", at.y)
                title=schema
            >
                <i></i>
                <span class="port-name">{port.name}</span>
            </span>
        }
        .into_any(),
    )
}
