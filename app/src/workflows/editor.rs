//! The editor of one workflow (web.md §2): palette, canvas, inspector, problems, test panel.

use std::sync::Arc;

use leptos::ev;
use leptos::prelude::*;
use sluicegate_core::api::{WorkflowDetail, WorkflowStatus};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::graph::Graph;
use sluicegate_core::validate::{Issue, Memory};

use super::{draft, header, palette};
use crate::canvas::gesture::Item;
use crate::canvas::view::{Canvas, canvas, delete_selected, in_field, zoom_controls};
use crate::client::encode;
use crate::runs::player;
use crate::shell::{App, Asked};
use crate::simulate::Simulation;
use crate::state::document::Document;
use crate::state::saving::Saver;
use crate::ui::route::{Route, Screen};
use crate::{catalogue, inspector, problems, simulate, ui};

/// Which panel stands beside the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Inspect,
    Test,
}

/// The editor. A handle.
#[derive(Clone, Copy)]
pub(crate) struct Editor {
    pub(crate) app: App,
    pub(crate) workflow: StoredValue<WorkflowDetail>,
    pub(crate) document: Document,
    pub(crate) canvas: Canvas,
    pub(crate) issues: Memo<Arc<Vec<Issue>>>,
    pub(crate) catalogue: RwSignal<Option<Arc<Catalogue>>>,
    pub(crate) saver: RwSignal<Saver>,
    /// The document as the server has it, as far as this page knows.
    pub(crate) base: StoredValue<Arc<Graph>>,
    /// The server's version in a conflict.
    pub(crate) theirs: RwSignal<Option<draft::Theirs>>,
    /// The page's version while theirs is looked at.
    pub(crate) mine: RwSignal<Option<Arc<Graph>>>,
    pub(crate) status: RwSignal<WorkflowStatus>,
    /// The live revision and its semantic checksum.
    pub(crate) revision: RwSignal<Option<(u64, sluicegate_core::ids::Hash)>>,
    pub(crate) panel: RwSignal<Panel>,
    pub(crate) show_problems: RwSignal<bool>,
    pub(crate) simulation: Simulation,
}

/// The screen: asks for the workflow, then shows it.
pub(crate) fn editor(app: App, key: String) -> AnyView {
    let detail = RwSignal::new(Asked::Waiting);
    let load = move || {
        let path = format!("/api/workflows/detail?key={}", encode(&key));
        app.ask(detail, async move {
            app.client.get::<WorkflowDetail>(&path).await
        });
    };
    load();
    (move || match detail.get() {
        Asked::Waiting => {
            view! { <main class="alone">{ui::loading("Loading the workflow")}</main> }.into_any()
        }
        Asked::Refused(problem) => {
            let home = Route::from(Screen::Workflows).link();
            view! {
                <main class="alone">
                    {ui::problem(&problem, load.clone())}
                    <a href=home>"Back to workflows"</a>
                </main>
            }
            .into_any()
        }
        Asked::Here(detail) => match Graph::read(&detail.draft.graph) {
            Ok(graph) => bench(app, detail, Arc::new(graph)),
            Err(error) => {
                let problem = crate::client::Problem::local(
                    "This draft has a shape that the page cannot draw.",
                    ui::json_field::sentence(&error),
                );
                view! { <main class="alone">{ui::problem(&problem, load.clone())}</main> }
                    .into_any()
            }
        },
    })
    .into_any()
}

fn bench(app: App, detail: WorkflowDetail, graph: Arc<Graph>) -> AnyView {
    let may_edit = app.may("workflows.definitions.manage");
    let archived = detail.row.status == WorkflowStatus::Archived;
    let document = Document::new(graph.clone(), may_edit && !archived);
    let catalogue = catalogue::load(app);
    let known = StoredValue::new(Memory::default());
    let issues = Memo::new(move |_| {
        let catalogue = catalogue.get();
        let check = |known: &mut Memory| {
            document.with(|graph| problems::check(known, graph, catalogue.as_deref()))
        };
        Arc::new(known.try_update_value(check).unwrap_or_default())
    });
    let simulation = Simulation::new();
    let overlay = Signal::derive(move || simulation.overlay());
    let marks = Memo::new(move |_| Arc::new(problems::marks(&issues.get())));
    let canvas_handle = Canvas::new(document, marks.into(), overlay);
    let live = detail.row.revision.and_then(|revision| {
        let row = detail
            .revisions
            .iter()
            .find(|row| row.revision == revision)?;
        Some((revision, row.checksum))
    });
    let editor = Editor {
        app,
        document,
        canvas: canvas_handle,
        issues,
        catalogue,
        saver: RwSignal::new(Saver::new(detail.draft.draft_version)),
        base: StoredValue::new(graph),
        theirs: RwSignal::new(None),
        mine: RwSignal::new(None),
        status: RwSignal::new(detail.row.status),
        revision: RwSignal::new(live),
        panel: RwSignal::new(Panel::Inspect),
        show_problems: RwSignal::new(false),
        simulation,
        workflow: StoredValue::new(detail),
    };
    draft::keep_saved(editor);
    follow_address(app, document, canvas_handle);
    keys(editor);
    let side = move || match editor.panel.get() {
        Panel::Inspect => inspector::inspector(editor),
        Panel::Test => simulate::panel(editor),
    };
    let player = move || {
        simulation
            .playback()
            .map(|playback| player::player(playback, || false))
    };
    view! {
        <div class="bench">
            {header::header(editor)}
            {draft::conflict(editor)}
            <div class="work">
                {palette::palette(editor)}
                <main class="stage">
                    {canvas(canvas_handle)}
                    {move || document.with(|graph| graph.nodes.is_empty()).then(begin_here)}
                    {zoom_controls(canvas_handle)}
                    {player}
                </main>
                <aside
                    class="side"
                    class:split=move || editor.panel.get() == Panel::Test
                    aria-label="Details"
                >
                    {side}
                </aside>
            </div>
            {move || editor.show_problems.get().then(|| problems::panel(issues, canvas_handle))}
        </div>
    }
    .into_any()
}

/// What an empty canvas says.
fn begin_here() -> AnyView {
    view! {
        <div class="begin">
            <h2>"Begin with an input"</h2>
            <p>
                "Add nodes from the list on the left, then drag from a port to connect them. A workflow has one input and at least one output."
            </p>
        </div>
    }
    .into_any()
}

/// The selection is in the address, and the address selects.
pub(crate) fn follow_address(app: App, document: Document, canvas: Canvas) {
    // What the address names may be gone by now.
    let wanted = move || {
        app.router
            .selected_now()
            .filter(|item| document.holds(item))
    };
    document.select_only(wanted());
    Effect::new(move |_| app.router.select(document.selected()));
    // Going back in the browser's history selects what was selected then.
    let listener = window_event_listener_untyped("hashchange", move |_| {
        let wanted = wanted();
        document.select_only(wanted.clone());
        if let Some(item) = wanted {
            canvas.reveal(&item);
        }
    });
    on_cleanup(move || listener.remove());
}

/// The keys of the editor; Ctrl and ⌘ are the same.
fn keys(editor: Editor) {
    let listener = window_event_listener(ev::keydown, move |event| {
        let command = event.ctrl_key() || event.meta_key();
        if !command || event.is_composing() {
            return;
        }
        let key = event.key().to_lowercase();
        if key == "s" {
            event.prevent_default();
            draft::save_soon(editor);
            return;
        }
        if in_field(&event) || !editor.document.editable.get_untracked() {
            return;
        }
        match (key.as_str(), event.shift_key()) {
            ("z", false) => undo(editor),
            ("z", true) | ("y", false) => redo(editor),
            ("a", false) => {
                let graph = editor.document.now();
                let all = graph.nodes.iter().map(|node| Item::Node(node.id.clone()));
                editor.document.select_only(all);
            }
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || listener.remove());
}

pub(crate) fn undo(editor: Editor) {
    if let Some(name) = editor.document.undo() {
        editor
            .app
            .notices
            .say(format!("Undone: {}", name.to_lowercase()));
    }
}

pub(crate) fn redo(editor: Editor) {
    if let Some(name) = editor.document.redo() {
        editor
            .app
            .notices
            .say(format!("Done again: {}", name.to_lowercase()));
    }
}

/// Removes the selection from a button.
pub(crate) fn delete(editor: Editor) {
    delete_selected(editor.canvas);
}
