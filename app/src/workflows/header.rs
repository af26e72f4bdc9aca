//! The editor's top bar: where one is, whether it is saved, what is wrong, what to do next.

use leptos::prelude::*;

use super::editor::{Editor, Panel, delete, redo, undo};
use super::{draft, list, publish};
use crate::problems;
use crate::shell::mark;
use crate::state::saving::Saving;
use crate::ui::dialog::dialog;
use crate::ui::icon::{Icon, icon};
use crate::ui::icon_button;
use crate::ui::route::{Route, Screen};

/// The bar.
pub(crate) fn header(editor: Editor) -> AnyView {
    let home = Route::from(Screen::Workflows).link();
    let (name, key) = editor
        .workflow
        .with_value(|it| (it.row.name.clone(), it.row.key.to_string()));
    let document = editor.document;
    let nothing = move || document.selection().is_empty() || !document.editable.get();
    let publishing = RwSignal::new(None::<()>);
    let running = RwSignal::new(None::<()>);
    let published = move || {
        let revision = editor
            .revision
            .get()
            .map(|(revision, _)| format!(" r{revision}"));
        view! { {list::status(editor.status.get())} <span class="muted">{revision}</span> }
    };
    let test = move |_| {
        let next = if editor.panel.get_untracked() == Panel::Test {
            Panel::Inspect
        } else {
            Panel::Test
        };
        if next == Panel::Inspect {
            editor.simulation.clear();
        }
        editor.panel.set(next);
    };
    view! {
        <header class="bar">
            <a class="home" href=home aria-label="All workflows" title="All workflows">
                {mark()}
            </a>
            <div class="titles">
                <h1 dir="auto" title=key>{name}</h1>
                {published}
                {saving(editor)}
            </div>
            <div class="tools" role="group" aria-label="Edit">
                {icon_button(Icon::Undo, "Undo", move || undo(editor), move || document.steps().0.is_none() || !document.editable.get())}
                {icon_button(Icon::Redo, "Redo", move || redo(editor), move || document.steps().1.is_none() || !document.editable.get())}
                {icon_button(Icon::Delete, "Delete what is selected", move || delete(editor), nothing)}
            </div>
            <div class="tools">
                {problem_count(editor)}
                <button
                    type="button"
                    class="button"
                    aria-pressed=move || (editor.panel.get() == Panel::Test).to_string()
                    on:click=test
                >
                    {icon(Icon::Simulate)}
                    "Simulate"
                </button>
                <button type="button" class="button" on:click=move |_| publishing.set(Some(()))>
                    {icon(Icon::Publish)}
                    "Publish"
                </button>
                <button
                    type="button"
                    class="button primary"
                    disabled=move || editor.revision.get().is_none()
                    title=move || {
                        if editor.revision.get().is_none() { "Publish first: only a published revision runs live" } else { "" }
                    }
                    on:click=move |_| running.set(Some(()))
                >
                    {icon(Icon::Live)}
                    "Run live"
                </button>
            </div>
            {dialog("Publish", publishing, move |()| publish::publish(editor, publishing))}
            {dialog("Run live", running, move |()| publish::run_live(editor))}
        </header>
    }
    .into_any()
}

fn problem_count(editor: Editor) -> AnyView {
    let issues = editor.issues;
    let tone = move || {
        issues.with(|issues| {
            match (
                issues.is_empty(),
                issues
                    .iter()
                    .any(sluicegate_core::validate::Issue::is_error),
            ) {
                (true, _) => "success",
                (_, true) => "danger",
                _ => "waiting",
            }
        })
    };
    let picture = move || match tone() {
        "success" => icon(Icon::Done),
        "danger" => icon(Icon::Error),
        _ => icon(Icon::Warning),
    };
    view! {
        <button
            type="button"
            class="button plain count"
            data-tone=tone
            aria-expanded=move || editor.show_problems.get().to_string()
            on:click=move |_| editor.show_problems.update(|show| *show = !*show)
        >
            {picture}
            <span aria-live="polite">{move || issues.with(|issues| problems::summary(issues))}</span>
        </button>
    }
    .into_any()
}

fn saving(editor: Editor) -> AnyView {
    let state = move || editor.saver.get().saving;
    let (words, picture, tone) = (
        move || match state() {
            Saving::Saved => "Saved".to_owned(),
            Saving::Unsaved => "Unsaved".to_owned(),
            Saving::Sending { .. } => "Saving".to_owned(),
            Saving::Failed { .. } => "Not saved".to_owned(),
            Saving::Conflict { theirs } => format!("Conflict with version {theirs}"),
        },
        move || match state() {
            Saving::Saved => icon(Icon::Saved),
            Saving::Unsaved => icon(Icon::Unsaved),
            Saving::Sending { .. } => icon(Icon::Saving),
            Saving::Failed { .. } | Saving::Conflict { .. } => icon(Icon::Warning),
        },
        move || match state() {
            Saving::Failed { .. } | Saving::Conflict { .. } => "danger",
            _ => "quiet",
        },
    );
    let title = move || match state() {
        Saving::Saved => format!("Version {} is on the server", editor.saver.get().version),
        Saving::Failed { message, .. } => format!("{message} It is tried again by itself."),
        _ => "Save now (Ctrl+S)".to_owned(),
    };
    let idle = move || {
        matches!(
            state(),
            Saving::Saved | Saving::Sending { .. } | Saving::Conflict { .. }
        )
    };
    view! {
        <button
            type="button"
            class="save"
            data-tone=tone
            title=title
            disabled=idle
            on:click=move |_| draft::save_soon(editor)
        >
            {picture}
            <span role="status">{words}</span>
        </button>
    }
    .into_any()
}
