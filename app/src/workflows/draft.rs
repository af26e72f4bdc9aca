//! Saving the draft, and what happens when somebody else saved first (web.md §2 "Autosave").

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::{Saved, UpdateRequest, WorkflowDetail};
use sluicegate_core::code::Code;
use sluicegate_core::graph::Graph;

use super::editor::Editor;
use crate::client::{Problem, encode};
use crate::state::saving::{Answer, Saving};
use crate::ui::icon::{Icon, icon};

/// The server's version in a conflict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Theirs {
    version: u64,
    graph: Arc<Graph>,
    by: String,
}

/// Watches the document and saves it; warns before unsaved work is left.
pub(crate) fn keep_saved(editor: Editor) {
    Effect::new(move |_| {
        let graph = editor.document.graph();
        let looking = editor.mine.with_untracked(Option::is_some);
        if !looking && *graph != *editor.base.get_value() {
            editor.saver.update(crate::state::saving::Saver::edited);
        }
    });
    Effect::new(move |_| {
        let due = editor.saver.with(|saver| saver.due_ms());
        // Every edit starts the wait again.
        editor.document.graph();
        let Some(due) = due else { return };
        let wait = Duration::from_millis(u64::from(due.unsigned_abs()));
        if let Ok(timer) = set_timeout_with_handle(move || save_soon(editor), wait) {
            on_cleanup(move || timer.clear());
        }
    });
    let leaving = window_event_listener_untyped("beforeunload", move |event| {
        if editor
            .saver
            .with_untracked(|saver| saver.saving != Saving::Saved)
        {
            event.prevent_default();
        }
    });
    on_cleanup(move || {
        leaving.remove();
        // Another screen was opened: what is unsaved goes out now.
        save_soon(editor);
    });
}

/// Saves without waiting for the answer.
pub(crate) fn save_soon(editor: Editor) {
    // A field that is being typed in first gives what it holds.
    if let Some(active) = document().active_element() {
        use wasm_bindgen::JsCast;
        if active.matches("input, textarea").unwrap_or(false)
            && let Some(active) = active.dyn_ref::<web_sys::HtmlElement>()
        {
            let _ = active.blur();
            let _ = active.focus();
        }
    }
    if let Some(request) = begin(editor) {
        spawn_local(async move {
            request.await;
        });
    }
}

/// Saves what is unsaved; answers whether the server has the document as it is now.
pub(crate) async fn save(editor: Editor) -> bool {
    if editor
        .saver
        .with_untracked(|saver| saver.saving == Saving::Saved)
    {
        return true;
    }
    match begin(editor) {
        Some(request) => request.await,
        None => false,
    }
}

fn begin(editor: Editor) -> Option<impl Future<Output = bool> + 'static> {
    let failures = editor
        .saver
        .with_untracked(crate::state::saving::Saver::failures);
    let expected = editor
        .saver
        .try_update(crate::state::saving::Saver::send)??;
    let sent = editor.document.now();
    let request = sent.to_value().map(|graph| UpdateRequest {
        workflow_id: editor.workflow.with_value(|it| it.row.workflow_id.clone()),
        expected_revision: Some(expected),
        graph: Some(graph),
        name: None,
        description: None,
    });
    Some(async move {
        let answer = match request {
            Ok(request) => {
                editor
                    .app
                    .client
                    .post::<Saved>("/api/workflows/update", &request)
                    .await
            }
            Err(error) => Err(Problem::local("The draft cannot be written.", error.detail)),
        };
        answered(editor, &sent, expected, failures, answer)
    })
}

fn answered(
    editor: Editor,
    sent: &Arc<Graph>,
    expected: u64,
    failures: u32,
    answer: Result<Saved, Problem>,
) -> bool {
    let (answer, problem) = match answer {
        Ok(saved) => {
            editor.base.try_update_value(|base| *base = sent.clone());
            (
                Answer::Saved {
                    version: saved.draft_version,
                },
                None,
            )
        }
        Err(problem) if problem.is(Code::WorkflowRevisionConflict) => {
            let theirs = problem.draft_version.unwrap_or(expected + 1);
            (Answer::Conflict { theirs }, None)
        }
        Err(problem) => (
            Answer::Failed {
                message: problem.to_string(),
            },
            Some(problem),
        ),
    };
    let conflict = matches!(answer, Answer::Conflict { .. });
    let saved = matches!(answer, Answer::Saved { .. });
    // The screen may be gone by now.
    if editor
        .saver
        .try_update(|saver| saver.answered(answer, failures))
        .is_none()
    {
        if let Some(problem) = problem {
            editor.app.refused(&problem);
        }
        return saved;
    }
    if let Some(problem) = problem.filter(|problem| problem.status == 401) {
        editor.app.refused(&problem);
    }
    if conflict {
        fetch_theirs(editor);
    }
    saved
}

fn fetch_theirs(editor: Editor) {
    let key = editor.workflow.with_value(|it| it.row.key.to_string());
    spawn_local(async move {
        let path = format!("/api/workflows/detail?key={}", encode(&key));
        match editor.app.client.get::<WorkflowDetail>(&path).await {
            Ok(detail) => match Graph::read(&detail.draft.graph) {
                Ok(graph) => {
                    let theirs = Theirs {
                        version: detail.draft.draft_version,
                        graph: Arc::new(graph),
                        by: detail.draft.saved_by.label().to_owned(),
                    };
                    let _ = editor.theirs.try_set(Some(theirs));
                }
                Err(error) => editor.app.notices.warn(error.detail),
            },
            Err(problem) => editor.app.refused(&problem),
        }
    });
}

/// The bar that offers both sides of a conflict; both are kept until a person chose.
pub(crate) fn conflict(editor: Editor) -> AnyView {
    let bar = move |theirs: Theirs| {
        let text = format!(
            "{} saved version {} while you edited version {}. Nothing is sent until you choose.",
            theirs.by,
            theirs.version,
            editor.saver.with_untracked(|saver| saver.version),
        );
        let looking = move || editor.mine.with(Option::is_some);
        let look = {
            let theirs = theirs.clone();
            move |_| look(editor, &theirs)
        };
        let take = move |_| take_theirs(editor, &theirs);
        view! {
            <div class="conflict" role="alert">
                {icon(Icon::Warning)}
                <p>{text}</p>
                <button type="button" class="button" on:click=look>
                    {icon(Icon::Look)}
                    {move || if looking() { "Back to mine" } else { "Look at theirs" }}
                </button>
                <button type="button" class="button" on:click=take>
                    "Use theirs"
                </button>
                <button type="button" class="button primary" on:click=move |_| keep_mine(editor)>
                    "Save mine over it"
                </button>
            </div>
        }
    };
    (move || {
        let conflict = editor
            .saver
            .with(|saver| matches!(saver.saving, Saving::Conflict { .. }));
        conflict.then(|| editor.theirs.get().map(bar))
    })
    .into_any()
}

/// Shows theirs, read-only, or mine again.
fn look(editor: Editor, theirs: &Theirs) {
    if let Some(mine) = editor.mine.get_untracked() {
        editor.mine.set(None);
        editor.document.show(mine);
        editor.document.editable.set(true);
    } else {
        editor.mine.set(Some(editor.document.now()));
        editor.document.editable.set(false);
        editor.document.show(theirs.graph.clone());
    }
}

/// Back to the page's own version, if theirs is being looked at.
fn stop_looking(editor: Editor, theirs: &Theirs) {
    if editor.mine.with_untracked(Option::is_some) {
        look(editor, theirs);
    }
}

fn keep_mine(editor: Editor) {
    if let Some(theirs) = editor.theirs.get_untracked() {
        stop_looking(editor, &theirs);
    }
    editor.theirs.set(None);
    editor.saver.update(crate::state::saving::Saver::keep_mine);
    save_soon(editor);
}

/// Theirs becomes a step of the history, so that one undo brings mine back.
fn take_theirs(editor: Editor, theirs: &Theirs) {
    stop_looking(editor, theirs);
    editor.base.set_value(theirs.graph.clone());
    editor
        .document
        .edit("Use theirs", |graph| graph.clone_from(&theirs.graph));
    editor.theirs.set(None);
    editor
        .saver
        .update(|saver| saver.took_theirs(theirs.version));
}
