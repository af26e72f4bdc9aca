//! Simulation in the page (web.md §3): fixtures with sensible examples, run through the
//! core, then playback on the graph.

pub(crate) mod examples;

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::code::Code;
use sluicegate_core::compile::compile;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, Refused, RunResult, simulate};
use sluicegate_core::value::Value;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;

use crate::client::Problem;
use crate::runs::{events, list::chip};
use crate::state::overlay::Overlay;
use crate::state::playback::Playback;
use crate::ui::icon::{Icon, icon};
use crate::ui::json_field::{json_field, pretty, read, sentence};
use crate::ui::{fold, format};
use crate::workflows::editor::Editor;

/// One simulation and its playback. A handle.
#[derive(Clone, Copy)]
pub(crate) struct Simulation {
    playback: Playback,
    input: RwSignal<String>,
    fixtures: RwSignal<String>,
    /// What is wrong with the input, with the fixtures, with the whole.
    bad_input: RwSignal<Option<String>>,
    bad_fixtures: RwSignal<Option<String>>,
    problem: RwSignal<Option<Problem>>,
    result: RwSignal<Option<Arc<RunResult>>>,
}

impl Simulation {
    pub(crate) fn new() -> Self {
        Self {
            playback: Playback::new(),
            input: RwSignal::new(String::new()),
            fixtures: RwSignal::new(String::new()),
            bad_input: RwSignal::new(None),
            bad_fixtures: RwSignal::new(None),
            problem: RwSignal::new(None),
            result: RwSignal::new(None),
        }
    }

    /// The playback, once something was simulated; tracked.
    pub(crate) fn playback(self) -> Option<Playback> {
        self.result.with(Option::is_some).then_some(self.playback)
    }

    /// The overlay that the playback shows; tracked.
    pub(crate) fn overlay(self) -> Option<Arc<Overlay>> {
        self.playback().map(|playback| playback.overlay.get())
    }

    /// The graph is drawn as a document again.
    pub(crate) fn clear(self) {
        self.playback.playing.set(false);
        self.result.set(None);
        self.problem.set(None);
    }

    fn show(self, plan: Arc<Plan>, result: RunResult) {
        self.problem.set(None);
        self.playback.begin(plan);
        self.playback
            .load(result.events.clone().unwrap_or_default());
        self.result.set(Some(Arc::new(result)));
        self.playback.seek(0);
        self.playback.play();
    }
}

/// The test panel.
pub(crate) fn panel(editor: Editor) -> AnyView {
    let simulation = editor.simulation;
    if simulation.input.with_untracked(String::is_empty) {
        fill(editor);
    }
    let run = move |_| {
        if let Some((input, fixtures)) = given(simulation) {
            match simulated(editor, input, &fixtures) {
                Ok((plan, result)) => simulation.show(plan, result),
                Err(problem) => {
                    simulation.clear();
                    simulation.problem.set(Some(problem));
                }
            }
        }
    };
    let result = move || simulation.result.get().map(|result| outcome(&result));
    let problem = move || {
        simulation.problem.get().map(|problem| {
            let lines = problem
                .errors
                .iter()
                .cloned()
                .map(|line| view! { <li>{line}</li> })
                .collect_view();
            view! {
                <div class="callout" data-tone="danger" role="alert">
                    {icon(Icon::Error)}
                    <div>
                        <p>{problem.to_string()}</p>
                        <ul>{lines}</ul>
                    </div>
                </div>
            }
        })
    };
    let bad = (simulation.bad_input, simulation.bad_fixtures);
    let input = view! {
        <div class="stacked">
            {json_field("As JSON", simulation.input, move || bad.0.get(), || false, |_| ())}
            {open_file("Open an input file", simulation.input)}
        </div>
    };
    let fixtures = view! {
        <div class="stacked">
            {json_field("As JSON", simulation.fixtures, move || bad.1.get(), || false, |_| ())}
            {open_file("Open a fixtures file", simulation.fixtures)}
        </div>
    };
    let (input, fixtures) = (input.into_any(), fixtures.into_any());
    // Once there is something to watch, what it was made of steps back.
    let editing = move || simulation.result.with(Option::is_none);
    view! {
        <div>
            <div class="panel-head">
                <h2>"Simulate"</h2>
                <button type="button" class="button small" on:click=move |_| fill(editor)>
                    "Use examples"
                </button>
            </div>
            <p class="muted">
                "Runs here in the page. No agent and no action is called; fixtures stand for them."
            </p>
            {fold("Input", String::new, editing, input)}
            {fold("Fixtures", String::new, editing, fixtures)}
            {problem}
            <button type="button" class="button primary wide" on:click=run>
                {icon(Icon::Play)}
                "Run simulation"
            </button>
            {result}
        </div>
        {move || {
            simulation
                .playback()
                .map(|playback| {
                    view! {
                        <div>
                            <h2>"Events"</h2>
                            {events::list(playback, move || editor.document.now())}
                        </div>
                    }
                })
        }}
    }
    .into_any()
}

/// Writes examples made from the schemas.
fn fill(editor: Editor) {
    let graph = editor.document.now();
    let simulation = editor.simulation;
    simulation
        .input
        .set(pretty(&examples::input(&graph).unwrap_or(Value::Null)));
    simulation.fixtures.set(pretty(&examples::fixtures(&graph)));
    simulation.bad_input.set(None);
    simulation.bad_fixtures.set(None);
}

/// The two values, or what is wrong with their text in its place.
fn given(simulation: Simulation) -> Option<(Value, Value)> {
    let input = read(&simulation.input.get_untracked());
    let fixtures = read(&simulation.fixtures.get_untracked());
    simulation.bad_input.set(input.as_ref().err().cloned());
    simulation
        .bad_fixtures
        .set(fixtures.as_ref().err().cloned());
    Some((input.ok()?, fixtures.ok()?))
}

/// Simulates the document as it is in the page, by the core and with no server.
fn simulated(
    editor: Editor,
    input: Value,
    fixtures: &Value,
) -> Result<(Arc<Plan>, RunResult), Problem> {
    let catalogue = editor.catalogue.get_untracked();
    let limits = Limits::default();
    let compiled = compile(&editor.document.now(), catalogue.as_deref(), &limits);
    let Some(plan) = compiled.plan else {
        editor.show_problems.set(true);
        return Err(Problem::local(
            Code::WorkflowGraphInvalid.sentence(),
            "Fix the problems below the graph, then simulate again.",
        ));
    };
    let broken = |text: String| Problem::local("This graph cannot be simulated.", text);
    let plan = Plan::load(plan).map_err(|error| broken(error.to_string()))?;
    let fixtures = Fixtures::read(fixtures).map_err(|error| {
        Problem::local(Code::WorkflowFixturesInvalid.sentence(), sentence(&error))
    })?;
    let simulation = simulate(
        &plan,
        Arc::new(input),
        &fixtures,
        &limits,
        WorkflowReference::default(),
    );
    match simulation {
        Ok(simulation) => Ok((Arc::new(plan), simulation.result())),
        Err(Refused::Fixtures(faults)) => {
            let mut problem = Problem::local(
                Code::WorkflowFixturesInvalid.sentence(),
                "Add what is missing, or use the examples.",
            );
            problem.errors = faults
                .into_iter()
                .map(|fault| {
                    let pointer = fault.pointer.map(|pointer| format!(" {pointer}"));
                    format!(
                        "{}{}: {}",
                        fault.node_id,
                        pointer.unwrap_or_default(),
                        fault.reason
                    )
                })
                .collect();
            Err(problem)
        }
        Err(Refused::Input {
            code,
            pointer,
            message,
        }) => {
            let place = if pointer.is_empty() {
                String::new()
            } else {
                format!("{pointer}: ")
            };
            Err(Problem::local(code.sentence(), format!("{place}{message}")))
        }
        Err(Refused::Broken(text)) => Err(broken(text)),
    }
}

fn outcome(result: &RunResult) -> AnyView {
    let outputs = result.outputs.as_ref().map(|outputs| {
        outputs
            .iter()
            .map(|(node, value)| {
                view! {
                    <h4 class="mono">{node.to_string()}</h4>
                    <pre class="json">{pretty(value)}</pre>
                }
            })
            .collect_view()
    });
    let failure = result.failure.as_ref().map(|failure| {
        view! { <p class="error"><span class="mono">{failure.code.clone()}</span> " " {failure.message.clone()}</p> }
    });
    let took = result.virtual_duration_ms.map_or(0, |ms| ms.0);
    view! {
        <div class="panel-head">
            <h2>"Result"</h2>
            {chip(result.status)}
            <span class="muted">{format!("{} of virtual time", format::duration(took))}</span>
        </div>
        {failure}
        {outputs}
    }
    .into_any()
}

/// A button that fills a field from a file.
fn open_file(name: &'static str, into: RwSignal<String>) -> AnyView {
    let opened = move |event: web_sys::Event| {
        let input = event
            .target()
            .and_then(|it| it.dyn_into::<web_sys::HtmlInputElement>().ok());
        let Some(input) = input else { return };
        let file = input.files().and_then(|files| files.get(0));
        // The same file can be opened again.
        spawn_local(async move {
            if let Some(file) = file
                && let Ok(text) = JsFuture::from(file.text()).await
                && let Some(text) = text.as_string()
            {
                // A file that is JSON is laid out; any other is shown as it is, to be mended.
                into.set(read(&text).map_or(text, |value| pretty(&value)));
            }
            input.set_value("");
        });
    };
    view! {
        <label class="file">
            {icon(Icon::File)}
            {name}
            <input type="file" accept=".json,application/json" class="visually-hidden" on:change=opened />
        </label>
    }
    .into_any()
}
