//! Publishing a revision, and running it live: both explicit, both say what they touch.

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::{
    EnqueueRequest, PublishRequest, Published, RunAccepted, WorkflowDetail, WorkflowStatus,
};
use sluicegate_core::catalogue::Risk;
use sluicegate_core::graph::{Graph, Kind};
use sluicegate_core::value::Value;

use super::draft;
use super::editor::Editor;
use crate::client::encode;
use crate::shell::Asked;
use crate::simulate::examples;
use crate::ui::icon::{Icon, icon};
use crate::ui::json_field::{json_field, pretty, read};
use crate::ui::route::Screen;
use crate::{problems, ui};

/// What a graph pins, each with what it may touch.
fn references(editor: Editor, graph: &Graph) -> AnyView {
    let catalogue = editor.catalogue.get();
    let mut lines: Vec<(Icon, String, &'static str)> = Vec::new();
    for node in &graph.nodes {
        let line = match &node.kind {
            Kind::Agent(agent) | Kind::AgentDecision(agent) => {
                agent.agent.as_ref().and_then(|pin| {
                    let name = format!("{} r{}", pin.agent_id.as_ref()?, pin.revision?);
                    Some((Icon::Agent, name, "Calls a model; may cost money"))
                })
            }
            Kind::Action(action) => action.action.as_ref().and_then(|pin| {
                let (id, version) = (pin.action_id.as_ref()?, pin.contract_version?);
                let known = catalogue.as_ref().and_then(|all| {
                    all.action(id.as_str(), u64::try_from(version).ok()?)
                        .map(|it| it.risk)
                });
                let touches = match known {
                    Some(Risk::Read) => "Reads only",
                    Some(Risk::WorkspaceWrite) => "Changes data in this workspace",
                    Some(_) => "Not allowed in a workflow",
                    None => "Not in the catalogue",
                };
                Some((Icon::Action, format!("{id} v{version}"), touches))
            }),
            _ => None,
        };
        if let Some(line) = line
            && !lines.iter().any(|(_, name, _)| *name == line.1)
        {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return view! { <p class="muted">"It calls no agents and no actions."</p> }.into_any();
    }
    let line = |(picture, name, touches)| {
        view! {
            <li>
                {icon(picture)}
                <span class="mono">{name}</span>
                <span class="muted">{touches}</span>
            </li>
        }
    };
    view! { <ul class="references">{lines.into_iter().map(line).collect_view()}</ul> }.into_any()
}

/// The dialog that publishes the draft.
pub(crate) fn publish(editor: Editor, open: RwSignal<Option<()>>) -> AnyView {
    let note = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let problem = RwSignal::new(None::<String>);
    let errors = move || {
        editor.issues.with(|issues| {
            issues
                .iter()
                .any(sluicegate_core::validate::Issue::is_error)
        })
    };
    let publish = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        busy.set(true);
        problem.set(None);
        spawn_local(async move {
            let done = publish_now(editor, note.get_untracked()).await;
            busy.set(false);
            match done {
                Ok(revision) => {
                    editor
                        .app
                        .notices
                        .say(format!("Revision {revision} is live."));
                    open.set(None);
                }
                Err(text) => problem.set(Some(text)),
            }
        });
    };
    let state = move || {
        let text = editor.issues.with(|issues| problems::summary(issues));
        let advice = if errors() {
            "Fix the problems first: a published revision runs exactly as it stands."
        } else {
            "The draft becomes a revision that never changes. New runs use it from then on."
        };
        view! {
            <p><strong>{text}"."</strong> " " {advice}</p>
        }
    };
    let graph = editor.document.now();
    view! {
        <form class="stack" on:submit=publish>
            {state}
            <h3>"What it pins"</h3>
            {move || references(editor, &graph)}
            <label class="field">
                <span class="label">"Note"</span>
                <input
                    type="text"
                    placeholder="What changed, for the history"
                    prop:value=move || note.get()
                    on:input=move |event| note.set(event_target_value(&event))
                />
            </label>
            {move || problem.get().map(|text| view! { <p class="error" role="alert">{icon(Icon::Error)}{text}</p> })}
            <footer>
                <button type="submit" class="button primary" disabled=move || busy.get() || errors()>
                    "Publish revision"
                </button>
            </footer>
        </form>
    }
    .into_any()
}

async fn publish_now(editor: Editor, note: String) -> Result<u64, String> {
    if !draft::save(editor).await {
        return Err(
            "The draft is not saved yet. Wait for “Saved” at the top, then publish.".to_owned(),
        );
    }
    let request = PublishRequest {
        workflow_id: editor.workflow.with_value(|it| it.row.workflow_id.clone()),
        expected_revision: Some(editor.saver.with_untracked(|saver| saver.version)),
        note: (!note.is_empty()).then_some(note),
    };
    let published: Published = editor
        .app
        .client
        .post("/api/workflows/publish", &request)
        .await
        .map_err(|problem| {
            let issues = problem.issues.iter().map(|issue| issue.message.as_str());
            issues.fold(problem.to_string(), |text, issue| format!("{text} {issue}"))
        })?;
    editor
        .revision
        .set(Some((published.revision, published.checksum)));
    editor.status.set(WorkflowStatus::Published);
    Ok(published.revision)
}

/// The dialog that starts a live run of the published revision.
pub(crate) fn run_live(editor: Editor) -> AnyView {
    let Some((revision, checksum)) = editor.revision.get_untracked() else {
        return ().into_any();
    };
    let key = editor.workflow.with_value(|it| it.row.key.clone());
    let detail = RwSignal::new(Asked::Waiting);
    let load = {
        let path = format!(
            "/api/workflows/detail?key={}&revision={revision}",
            encode(key.as_str())
        );
        move || {
            let path = path.clone();
            let app = editor.app;
            app.ask(detail, async move {
                app.client.get::<WorkflowDetail>(&path).await
            });
        }
    };
    load();
    let differs = editor
        .document
        .now()
        .checksum()
        .is_ok_and(|mine| mine != checksum);
    (move || match detail.get() {
        Asked::Waiting => ui::loading("Loading the published revision"),
        Asked::Refused(problem) => ui::problem(&problem, load.clone()),
        Asked::Here(detail) => {
            let graph = detail
                .graph
                .as_ref()
                .and_then(|graph| Graph::read(graph).ok());
            match graph {
                Some(graph) => live_form(editor, revision, differs, &graph),
                None => {
                    view! { <p class="error">"The published graph cannot be read."</p> }.into_any()
                }
            }
        }
    })
    .into_any()
}

fn live_form(editor: Editor, revision: u64, differs: bool, graph: &Graph) -> AnyView {
    let input = RwSignal::new(pretty(&examples::input(graph).unwrap_or(Value::Null)));
    let problem = RwSignal::new(None::<String>);
    let busy = RwSignal::new(false);
    // One key a dialog: pressing twice starts one run (wire-format of the request: N2).
    let idempotency_key = fresh_key();
    let start = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let value = match read(&input.get_untracked()) {
            Ok(value) => value,
            Err(text) => {
                problem.set(Some(text));
                return;
            }
        };
        busy.set(true);
        problem.set(None);
        let request = EnqueueRequest {
            workflow_key: editor.workflow.with_value(|it| it.row.key.clone()),
            input: value,
            idempotency_key: Some(idempotency_key.clone()),
        };
        spawn_local(async move {
            let app = editor.app;
            match app
                .client
                .post::<RunAccepted>("/api/workflow-runs", &request)
                .await
            {
                Ok(accepted) => app.router.go(Screen::Run {
                    run_id: accepted.run_id.to_string(),
                }),
                Err(refused) => {
                    let lines = refused.errors.join(" ");
                    problem.set(Some(format!("{refused} {lines}")));
                    busy.set(false);
                }
            }
        });
    };
    let warning = differs.then(|| {
        view! {
            <p class="hint">
                {icon(Icon::Info)}
                "The draft differs from the published revision. The published one runs."
            </p>
        }
    });
    let graph = graph.clone();
    view! {
        <form class="stack" on:submit=start>
            <p>
                "This runs " <strong>{format!("revision {revision}")}</strong>
                " for real: agents and actions are called."
            </p>
            {warning}
            <h3>"What it touches"</h3>
            {move || references(editor, &graph)}
            {json_field("Input", input, move || problem.get(), || false, |_| ())}
            <footer>
                <button type="submit" class="button primary" disabled=move || busy.get()>
                    {icon(Icon::Live)}
                    "Start the run"
                </button>
            </footer>
        </form>
    }
    .into_any()
}

/// A key that no other dialog will have.
fn fresh_key() -> String {
    let random = js_sys::Math::random().to_bits();
    format!("app:{}:{random:016x}", ui::format::now())
}
