//! The list of a run's events: what happened, when, and a way to see the graph as it was.

use leptos::html;
use leptos::prelude::*;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::NodeId;
use sluicegate_core::run::{
    AttemptStatus, ChildKind, EdgeState, Event, Payload, Settled, SkipReason,
};

use crate::state::overlay::since;
use crate::state::playback::Playback;
use crate::ui::format;
use crate::ui::icon::{Icon, icon};

/// The list; `title` names a node.
pub(crate) fn list(
    playback: Playback,
    graph: impl Fn() -> std::sync::Arc<Graph> + Send + Sync + Copy + 'static,
) -> AnyView {
    let keys = Memo::new(move |_| playback.events.with(|events| events.len()));
    let row = move |index: usize| {
        let event = playback
            .events
            .with_untracked(|events| Some((events.get(index)?.clone(), events.first()?.clone())));
        event.map(|(event, first)| line(playback, &graph(), index, &event, &first))
    };
    view! {
        <ol class="events" aria-label="Events">
            <For each=move || 0..keys.get() key=|index| *index children=row />
        </ol>
    }
    .into_any()
}

fn line(playback: Playback, graph: &Graph, index: usize, event: &Event, first: &Event) -> AnyView {
    let (picture, tone, who, words) = words(graph, event);
    let here = Memo::new(move |_| playback.at() == index + 1);
    let ahead = Memo::new(move |_| playback.at() <= index);
    let node: NodeRef<html::Li> = NodeRef::new();
    Effect::new(move |_| {
        if let (true, Some(node)) = (here.get(), node.get()) {
            let options = web_sys::ScrollIntoViewOptions::new();
            options.set_block(web_sys::ScrollLogicalPosition::Nearest);
            node.scroll_into_view_with_scroll_into_view_options(&options);
        }
    });
    let time = format::duration(since(event, Some(first)));
    let kind = event.payload.type_name();
    view! {
        <li
            node_ref=node
            class:ahead=ahead
            aria-current=move || here.get().then_some("step")
            data-tone=tone
        >
            <button type="button" title=kind on:click=move |_| playback.seek(index + 1)>
                {icon(picture)}
                <span class="message" dir="auto">
                    <strong>{who}</strong>
                    " "
                    {words}
                </span>
                <span class="time">{time}</span>
            </button>
        </li>
    }
    .into_any()
}

/// An event as a person reads it: icon, tone, who, and what of it.
fn words(graph: &Graph, event: &Event) -> (Icon, &'static str, String, String) {
    let title = |id: &NodeId| {
        graph
            .node(id.as_str())
            .map_or_else(|| id.to_string(), |node| node.title().to_owned())
    };
    let run = |picture, tone, words: &str| (picture, tone, "Run".to_owned(), words.to_owned());
    let node = |picture, tone, id: &NodeId, words: String| (picture, tone, title(id), words);
    match &event.payload {
        Payload::RunQueued(_) => run(Icon::Clock, "neutral", "queued"),
        Payload::RunClaimed(it) => run(
            Icon::Clock,
            "neutral",
            &format!("claimed by {}", it.worker_id),
        ),
        Payload::RunRecovered(it) => run(
            Icon::Retry,
            "waiting",
            &format!("recovered by {}", it.worker_id),
        ),
        Payload::NodeReady(it) => node(Icon::Ready, "neutral", &it.node_id, "ready".to_owned()),
        Payload::AttemptStarted(it) => {
            let words = match it.attempt {
                1 => "started".to_owned(),
                n => format!("started, attempt {n}"),
            };
            node(Icon::Running, "running", &it.node_id, words)
        }
        Payload::ChildWaiting(it) => {
            let words = match it.child_kind {
                ChildKind::Agent => "waits for its agent",
                ChildKind::Action => "waits for its action",
            };
            node(Icon::Running, "running", &it.node_id, words.to_owned())
        }
        Payload::AttemptSettled(it) => {
            let (picture, tone, words) = settled(it);
            node(picture, tone, &it.node_id, words)
        }
        Payload::RetryScheduled(it) => {
            let words = format!("tries again in {}", format::duration(it.backoff_ms.0));
            node(Icon::Retry, "waiting", &it.node_id, words)
        }
        Payload::RetryStarted(it) => node(
            Icon::Retry,
            "waiting",
            &it.node_id,
            format!("begins attempt {}", it.attempt),
        ),
        Payload::NodeSkipped(it) => node(
            Icon::Skipped,
            "skipped",
            &it.node_id,
            format!("skipped: {}", reason(it.reason)),
        ),
        Payload::EdgeSettled(it) => {
            let (picture, tone, verb) = match it.state {
                EdgeState::Emitted => (Icon::Right, "neutral", "to"),
                EdgeState::Closed => (Icon::Close, "skipped", "closed to"),
                EdgeState::Skipped => (Icon::Skipped, "skipped", "skipped to"),
            };
            let words = format!("{} {verb} {}", it.source.port, title(&it.target.node_id));
            node(picture, tone, &it.source.node_id, words)
        }
        Payload::RunCancelRequested(_) => run(Icon::Stop, "waiting", "cancellation requested"),
        Payload::NodeCancelRequested(it) => node(
            Icon::Stop,
            "waiting",
            &it.node_id,
            "is asked to stop".to_owned(),
        ),
        Payload::NodeCancelAcknowledged(it) => {
            node(Icon::Stop, "waiting", &it.node_id, "will stop".to_owned())
        }
        Payload::NodeCancelNotAcknowledged(it) => node(
            Icon::Stop,
            "waiting",
            &it.node_id,
            "does not stop; its end is awaited".to_owned(),
        ),
        Payload::LateIgnored(it) => node(
            Icon::Skipped,
            "skipped",
            &it.node_id,
            "came too late and was ignored".to_owned(),
        ),
        Payload::RetentionApplied(_) => {
            run(Icon::Clock, "neutral", "payloads removed by retention")
        }
        Payload::RunSucceeded(_) => run(Icon::Done, "success", "succeeded"),
        Payload::RunFailed(it) => run(Icon::Failed, "danger", &format!("failed: {}", it.code)),
        Payload::RunRefused(it) => run(Icon::Refused, "danger", &format!("refused: {}", it.code)),
        Payload::RunCancelled(_) => run(Icon::Cancelled, "skipped", "cancelled"),
    }
}

fn settled(it: &Settled) -> (Icon, &'static str, String) {
    let code = it.code.as_deref().unwrap_or("no code");
    match (it.status, it.outcome_port.as_deref()) {
        (AttemptStatus::Succeeded, Some("fail")) => {
            (Icon::Fork, "decision-fail", "decided: fail".to_owned())
        }
        (AttemptStatus::Succeeded, Some("pass")) => {
            (Icon::Done, "success", "decided: pass".to_owned())
        }
        (AttemptStatus::Succeeded, _) => (Icon::Done, "success", "succeeded".to_owned()),
        (AttemptStatus::Failed, _) => (Icon::Failed, "danger", format!("failed: {code}")),
        (AttemptStatus::Refused, _) => (Icon::Refused, "danger", format!("refused: {code}")),
        (AttemptStatus::Cancelled, _) => (Icon::Cancelled, "skipped", "cancelled".to_owned()),
    }
}

fn reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::InputClosed => "its input was closed",
        SkipReason::NoInput => "no input came",
        SkipReason::OtherPort => "another way was taken",
        SkipReason::SourceSkipped => "what comes before was skipped",
        SkipReason::RunFailed => "the run failed",
        SkipReason::RunRefused => "the run was refused",
        SkipReason::RunCancelled => "the run was cancelled",
    }
}
