//! One run: its graph with the overlay, followed live or played back (web.md §4).

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::{CancelRequest, Cancelled, RunDetail};
use sluicegate_core::graph::Graph;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Mode, Payload, RunStatus};

use super::list::{chip, cost};
use super::{events, player};
use crate::canvas::gesture::Item;
use crate::canvas::view::{Canvas, Marks, canvas, picture, zoom_controls};
use crate::client::{Problem, Stream, StreamState, encode};
use crate::shell::{App, Asked, mark};
use crate::state::document::Document;
use crate::state::overlay::{is_terminal, run_words, take_in};
use crate::state::playback::Playback;
use crate::ui::icon::{Icon, icon};
use crate::ui::json_field::pretty;
use crate::ui::route::{Route, Screen};
use crate::ui::{self, format};
use crate::workflows::editor::follow_address;

/// The page of one run. A handle.
#[derive(Clone, Copy)]
struct Watch {
    app: App,
    document: Document,
    playback: Playback,
    stream: Stream,
    /// As the server told it last; payloads and rollups come from here.
    detail: RwSignal<Arc<RunDetail>>,
    now: RwSignal<u64>,
}

/// The screen: asks for the run, then follows it.
pub(crate) fn run(app: App, run_id: String) -> AnyView {
    let detail = RwSignal::new(Asked::Waiting);
    let load = {
        let run_id = run_id.clone();
        move || {
            let run_id = run_id.clone();
            app.ask(detail, async move { fetch(app, &run_id).await });
        }
    };
    load();
    (move || match detail.get() {
        Asked::Waiting => {
            view! { <main class="alone">{ui::loading("Loading the run")}</main> }.into_any()
        }
        Asked::Refused(problem) => {
            let home = Route::from(Screen::Runs).link();
            view! {
                <main class="alone">
                    {ui::problem(&problem, load.clone())}
                    <a href=home>"Back to runs"</a>
                </main>
            }
            .into_any()
        }
        Asked::Here(detail) => watch(app, detail),
    })
    .into_any()
}

async fn fetch(app: App, run_id: &str) -> Result<(Arc<RunDetail>, Arc<Graph>), Problem> {
    let path = format!("/api/workflow-runs/detail?runId={}", encode(run_id));
    let detail: RunDetail = app.client.get(&path).await?;
    let graph = Graph::read(&detail.graph).map_err(|error| {
        Problem::local(
            "This run's graph cannot be drawn.",
            ui::json_field::sentence(&error),
        )
    })?;
    Ok((Arc::new(detail), Arc::new(graph)))
}

fn watch(app: App, (detail, graph): (Arc<RunDetail>, Arc<Graph>)) -> AnyView {
    let document = Document::new(graph, false);
    let playback = Playback::new();
    match Plan::load(detail.plan.clone()) {
        Ok(plan) => playback.begin(Arc::new(plan)),
        Err(error) => app.notices.warn(error.to_string()),
    }
    playback.following.set(true);
    let overlay = Signal::derive(move || Some(playback.overlay.get()));
    let no_marks = Signal::stored(Arc::new(Marks::new()));
    let canvas_handle = Canvas::new(document, no_marks, overlay);
    let run_id = detail.row.run_id.to_string();
    let detail = RwSignal::new(detail);
    // One render a burst: a replay of a hundred events is shown once.
    let buffer = StoredValue::new(Vec::new());
    let asked = StoredValue::new(false);
    let flush = move || {
        asked.set_value(false);
        playback.load(buffer.get_value());
    };
    let stream = Stream::follow(&run_id, move |event| {
        let taken = buffer
            .try_update_value(|events| take_in(events, event))
            .unwrap_or(true);
        if !asked.get_value() {
            asked.set_value(true);
            request_animation_frame(move || {
                if asked.try_get_value().is_some() {
                    flush();
                }
            });
        }
        taken
    });
    let watch = Watch {
        app,
        document,
        playback,
        stream,
        detail,
        now: RwSignal::new(format::now()),
    };
    refresh_at_milestones(watch, run_id);
    tick(watch);
    follow_address(app, document, canvas_handle);
    view! {
        <div class="bench">
            {header(watch)}
            <div class="work">
                <main class="stage">
                    {canvas(canvas_handle)}
                    {zoom_controls(canvas_handle)}
                    {player::player(playback, move || !ended(watch))}
                </main>
                <aside class="side split" aria-label="Details">
                    <div>
                        {move || match document.selected() {
                            Some(item) => item_detail(watch, &item),
                            None => summary(watch),
                        }}
                    </div>
                    <div>
                        <h2>"Events"</h2>
                        {events::list(playback, move || document.now())}
                    </div>
                </aside>
            </div>
        </div>
    }
    .into_any()
}

/// Whether the last event ended the run; tracked.
fn ended(watch: Watch) -> bool {
    watch
        .playback
        .events
        .with(|events| events.iter().rev().any(is_terminal))
}

/// The status as of the newest event, whatever the playback shows; tracked.
fn status(watch: Watch) -> RunStatus {
    let detail = watch.detail.with(|detail| detail.row.status);
    if watch.playback.following.get() && !watch.playback.events.with(|events| events.is_empty()) {
        return watch.playback.overlay.get().status;
    }
    watch.playback.events.with(|events| {
        let end = events.iter().rev().find(|event| is_terminal(event));
        match end.map(|event| &event.payload) {
            Some(Payload::RunSucceeded(_)) => RunStatus::Succeeded,
            Some(Payload::RunFailed(_)) => RunStatus::Failed,
            Some(Payload::RunRefused(_)) => RunStatus::Refused,
            Some(Payload::RunCancelled(_)) => RunStatus::Cancelled,
            _ => detail,
        }
    })
}

/// Previews and rollups are fetched again when a node settled and when the run ended: they
/// are not in the events (D1).
fn refresh_at_milestones(watch: Watch, run_id: String) {
    let settled = Memo::new(move |_| {
        watch.playback.events.with(|events| {
            let milestone = |event: &&sluicegate_core::run::Event| {
                matches!(event.payload, Payload::AttemptSettled(_)) || is_terminal(event)
            };
            events.iter().filter(milestone).count()
        })
    });
    Effect::new(move |before: Option<usize>| {
        let settled = settled.get();
        if before.is_some_and(|before| before != settled) {
            let run_id = run_id.clone();
            spawn_local(async move {
                match fetch(watch.app, &run_id).await {
                    Ok((detail, _)) => {
                        let _ = watch.detail.try_set(detail);
                    }
                    Err(problem) if problem.is_offline() => {}
                    Err(problem) => watch.app.refused(&problem),
                }
            });
        }
        settled
    });
}

/// The clock of a run that goes on.
fn tick(watch: Watch) {
    let clock = set_interval_with_handle(
        move || {
            if !untrack(move || ended(watch)) {
                watch.now.set(format::now());
            }
        },
        std::time::Duration::from_millis(500),
    );
    if let Ok(clock) = clock {
        on_cleanup(move || clock.clear());
    }
}

fn header(watch: Watch) -> AnyView {
    let row = watch.detail.get_untracked().row.clone();
    let home = Route::from(Screen::Runs).link();
    let name = row
        .workflow_key
        .as_ref()
        .map_or("A draft".to_owned(), ToString::to_string);
    let editor = row.workflow_key.as_ref().map(|key| {
        let link = Route::from(Screen::Workflow {
            key: key.to_string(),
        })
        .link();
        view! { <a class="button plain" href=link>"Open the workflow"</a> }
    });
    let kind = match (row.mode, row.revision) {
        (Mode::Simulate, _) => "simulated".to_owned(),
        (Mode::Live, Some(revision)) => format!("r{revision}"),
        (Mode::Live, None) => String::new(),
    };
    let queued = row.queued_at.0;
    let duration = move || {
        let detail = watch.detail.get();
        match detail.row.duration_ms {
            Some(ms) => format::duration(ms.0),
            None => format::duration(watch.now.get().saturating_sub(queued)),
        }
    };
    // From the events, so that they are as of what is shown.
    let rollups = move || watch.playback.overlay.get().rollups.clone();
    let tokens = move || format::count(rollups().map_or(0, |all| all.usage.total_tokens));
    let price = move || {
        let Some(all) = rollups() else {
            return "–".to_owned();
        };
        match all.cost.unpriced_child_runs + all.cost.unpriced_actions {
            0 => cost(&all.cost),
            n => format!("{} + {n} unpriced", cost(&all.cost)),
        }
    };
    let connection = move || match watch.stream.state.get() {
        StreamState::Connecting => Some("Connecting"),
        StreamState::Reconnecting => Some("Reconnecting; the run goes on without this page"),
        StreamState::Open | StreamState::Complete => None,
    };
    let figure = |label: &'static str, value: AnyView| {
        view! { <div class="figure"><dt>{label}</dt><dd>{value}</dd></div> }
    };
    view! {
        <header class="bar">
            <a class="home" href=home aria-label="All runs" title="All runs">
                {mark()}
            </a>
            <div class="titles">
                <h1>{name}</h1>
                <span class="muted">{kind}</span>
                <span role="status" aria-live="polite">{move || chip(status(watch))}</span>
                {move || connection().map(|text| view! { <span class="quiet">{icon(Icon::Running)}{text}</span> })}
            </div>
            <dl class="figures">
                {figure("Duration", (duration).into_any())}
                {figure("Tokens", (tokens).into_any())}
                {figure("Cost", (price).into_any())}
            </dl>
            <div class="tools">
                {editor}
                {cancel_button(watch)}
            </div>
        </header>
    }
    .into_any()
}

fn cancel_button(watch: Watch) -> AnyView {
    let cancel = move |_| {
        let request = CancelRequest {
            run_id: watch.detail.get_untracked().row.run_id.clone(),
            reason: None,
        };
        spawn_local(async move {
            let answer = watch
                .app
                .client
                .post::<Cancelled>("/api/workflow-runs/cancel", &request)
                .await;
            match answer {
                Ok(answer) => watch.app.notices.say(format!(
                    "The run is {}.",
                    run_words(answer.status).0.to_lowercase()
                )),
                Err(problem) => watch.app.refused(&problem),
            }
        });
    };
    (move || {
        let going_on = !ended(watch) && watch.app.may("workflows.runs.cancel");
        going_on.then(|| {
            view! {
                <button
                    type="button"
                    class="button"
                    disabled=move || status(watch) == RunStatus::CancelRequested
                    on:click=cancel
                >
                    {icon(Icon::Stop)}
                    "Cancel run"
                </button>
            }
        })
    })
    .into_any()
}

fn summary(watch: Watch) -> AnyView {
    let row = watch.detail.get().row.clone();
    let failure = row.failure.as_ref().map(|failure| {
        view! {
            <div class="callout" data-tone="danger">
                {icon(Icon::Failed)}
                <div>
                    <p class="mono">{failure.code.clone()}</p>
                    <p>{failure.message.clone()}</p>
                </div>
            </div>
        }
    });
    let corrupt = move || {
        watch.playback.overlay.get().corrupt.clone().map(|text| {
            view! {
                <div class="callout" data-tone="danger" role="alert">
                    {icon(Icon::Error)}
                    <p>"The stored events contradict each other, so the picture ends here. " {text}</p>
                </div>
            }
        })
    };
    let progress = move || {
        let total = watch.document.with(|graph| graph.nodes.len());
        format!("{} of {total}", watch.playback.overlay.get().settled())
    };
    let run_id = row.run_id.to_string();
    let input = preview(&watch.detail.get(), "input");
    view! {
        <h2>"Run"</h2>
        {corrupt}
        {failure}
        <dl class="facts">
            <dt>"Nodes settled"</dt>
            <dd>{progress}</dd>
            <dt>"Started by"</dt>
            <dd dir="auto">{row.actor.label().to_owned()}</dd>
            <dt>"Queued"</dt>
            <dd>{format::instant(row.queued_at.0)}</dd>
            <dt>"Run"</dt>
            <dd class="mono">{run_id}</dd>
        </dl>
        <h3>"Input"</h3>
        {input}
    }
    .into_any()
}

/// A payload's safe preview, or in words why there is none.
fn preview(detail: &RunDetail, payload_id: &str) -> AnyView {
    use sluicegate_core::evidence::State;
    let Some(payload) = detail.payloads.get(payload_id) else {
        return view! { <p class="muted">"Nothing yet"</p> }.into_any();
    };
    let words = match payload.evidence.state {
        State::Available => None,
        State::Redacted => Some("Secrets were replaced."),
        State::Truncated => Some("Cut to the preview limit."),
        State::Expired => Some("Removed by retention; the hash stays."),
        State::Absent => Some("Nothing was emitted."),
    };
    let value = payload
        .preview
        .as_ref()
        .map(|value| view! { <pre class="json">{pretty(value)}</pre> });
    view! {
        {words.map(|words| view! { <p class="muted">{words}</p> })}
        {value}
    }
    .into_any()
}

/// What is known about a selected node or edge at this moment of the playback.
fn item_detail(watch: Watch, item: &Item) -> AnyView {
    match item {
        Item::Node(id) => node_detail(watch, id),
        Item::Edge(id) => {
            let graph = watch.document.now();
            let Some(edge) = graph.edge(id.as_str()) else {
                return ().into_any();
            };
            let detail = watch.detail.get();
            let settled = detail.edges.iter().find(|row| row.settled.edge_id == *id);
            let payload = settled.and_then(|row| row.settled.evidence.payload_id.clone());
            let look = {
                let id = id.clone();
                move || watch.playback.overlay.get().edge(&id).as_str()
            };
            view! {
                <h2>"Edge"</h2>
                <dl class="facts">
                    <dt>"From"</dt>
                    <dd class="mono">{format!("{}.{}", edge.source.node_id, edge.source.port)}</dd>
                    <dt>"To"</dt>
                    <dd class="mono">{format!("{}.{}", edge.target.node_id, edge.target.port)}</dd>
                    <dt>"State"</dt>
                    <dd>{look}</dd>
                </dl>
                <h3>"Envelope"</h3>
                {preview(&detail, payload.as_ref().map_or("", |id| id.as_str()))}
            }
            .into_any()
        }
    }
}

fn node_detail(watch: Watch, id: &sluicegate_core::ids::NodeId) -> AnyView {
    let graph = watch.document.now();
    let Some(node) = graph.node(id.as_str()) else {
        return ().into_any();
    };
    let state = {
        let id = id.clone();
        move || watch.playback.overlay.get().node(&id)
    };
    let words = {
        let state = state.clone();
        move || {
            let state = state();
            match state.code.clone() {
                Some(code) => format!("{}: {code}", state.words()),
                None => state.words().to_owned(),
            }
        }
    };
    let detail = watch.detail.get();
    let attempts = detail
        .nodes
        .iter()
        .find(|row| row.node_id == *id)
        .map(|row| row.attempts.clone());
    let attempt = |row: sluicegate_core::run::AttemptRow| {
        let input = row
            .input
            .payload_id
            .as_ref()
            .map(|id| id.as_str().to_owned());
        let output = row
            .output
            .as_ref()
            .and_then(|it| it.payload_id.as_ref())
            .map(|id| id.as_str().to_owned());
        let took = row.completed_at.zip(row.started_at);
        let took = took.map(|(end, start)| format::duration(end.since(start).0));
        let title = match took {
            Some(took) => format!("Attempt {} · {took}", row.attempt),
            None => format!("Attempt {}", row.attempt),
        };
        view! {
            <section class="attempt">
                <h3>{title}</h3>
                {row.child_id.as_ref().map(|child| view! { <p class="mono muted">{child.to_string()}</p> })}
                {row.code.clone().map(|code| view! { <p class="mono error">{code}</p> })}
                <h4>"Input"</h4>
                {preview(&detail, input.as_deref().unwrap_or(""))}
                <h4>"Output"</h4>
                {preview(&detail, output.as_deref().unwrap_or(""))}
            </section>
        }
    };
    view! {
        <h2 class="with-picture">{icon(picture(node.node_type()))} <bdi>{node.title().to_owned()}</bdi></h2>
        <p class="state-words" data-status=move || state().look()>{words}</p>
        {attempts.unwrap_or_default().into_iter().map(attempt).collect_view()}
    }
    .into_any()
}
