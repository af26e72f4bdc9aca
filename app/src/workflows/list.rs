//! The list of workflows: search, open, make a new one.

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::{CreateRequest, Page, WorkflowDetail, WorkflowRow, WorkflowStatus};
use sluicegate_core::ids::{WorkflowKey, is_identifier};

use crate::shell::{App, Asked};
use crate::ui::dialog::dialog;
use crate::ui::icon::{Icon, icon};
use crate::ui::route::{Route, Screen};
use crate::ui::{self, format};

/// The screen.
pub(crate) fn list(app: App) -> AnyView {
    let rows = RwSignal::new(Asked::Waiting);
    let load = move || {
        app.ask(rows, async move {
            app.client
                .get::<Page<WorkflowRow>>("/api/workflows?limit=100")
                .await
        });
    };
    load();
    let wanted = RwSignal::new(String::new());
    let making = RwSignal::new(None::<()>);
    let may_make = Memo::new(move |_| app.may("workflows.definitions.manage"));
    let body = move || match rows.get() {
        Asked::Waiting => ui::loading("Loading workflows"),
        Asked::Refused(problem) => ui::problem(&problem, load),
        Asked::Here(page) if page.items.is_empty() => ui::empty(
            Icon::Workflows,
            "No workflows yet",
            "Draw the first one, or start the server with --demo to load the samples.",
            new_button(making, may_make),
        ),
        Asked::Here(page) => table(page.items, wanted),
    };
    view! {
        <header class="title-bar">
            <h1>"Workflows"</h1>
            <label class="search">
                {icon(Icon::Search)}
                <input
                    type="search"
                    placeholder="Search by name or key"
                    aria-label="Search workflows"
                    prop:value=move || wanted.get()
                    on:input=move |event| wanted.set(event_target_value(&event))
                />
            </label>
            {new_button(making, may_make)}
        </header>
        {body}
        {dialog("New workflow", making, move |()| new_workflow(app))}
    }
    .into_any()
}

fn new_button(making: RwSignal<Option<()>>, may_make: Memo<bool>) -> AnyView {
    view! {
        <button
            type="button"
            class="button primary"
            disabled=move || !may_make.get()
            on:click=move |_| making.set(Some(()))
        >
            {icon(Icon::Add)}
            "New workflow"
        </button>
    }
    .into_any()
}

fn table(items: Vec<WorkflowRow>, wanted: RwSignal<String>) -> AnyView {
    let shown = move || {
        let wanted = wanted.get().to_lowercase();
        let found = |row: &&WorkflowRow| {
            row.name.to_lowercase().contains(&wanted) || row.key.as_str().contains(&wanted)
        };
        items.iter().filter(found).cloned().collect::<Vec<_>>()
    };
    (move || {
        let rows = shown();
        if rows.is_empty() {
            return ui::empty(
                Icon::Search,
                "No workflow matches",
                "Try a part of its name or key.",
                ().into_any(),
            );
        }
        view! {
            <table class="list">
                <thead>
                    <tr>
                        <th scope="col">"Name"</th>
                        <th scope="col">"Status"</th>
                        <th scope="col" class="number">"Draft"</th>
                        <th scope="col" class="number">"Published"</th>
                        <th scope="col">"Last change"</th>
                    </tr>
                </thead>
                <tbody>{rows.into_iter().map(row).collect_view()}</tbody>
            </table>
        }
        .into_any()
    })
    .into_any()
}

fn row(row: WorkflowRow) -> AnyView {
    let link = Route::from(Screen::Workflow {
        key: row.key.to_string(),
    })
    .link();
    let published = row
        .revision
        .map_or("–".to_owned(), |revision| format!("r{revision}"));
    let changed = row.updated_at.0;
    view! {
        <tr>
            <td>
                <a class="row-link" href=link>
                    <span class="strong" dir="auto">{row.name.clone()}</span>
                    <span class="mono muted">{row.key.to_string()}</span>
                </a>
            </td>
            <td>{status(row.status)}</td>
            <td class="number">{format!("v{}", row.draft_version)}</td>
            <td class="number">{published}</td>
            <td>
                <span title=format::instant(changed)>{format::ago(changed, format::now())}</span>
                <span class="muted">" by "<bdi>{row.updated_by.label().to_owned()}</bdi></span>
            </td>
        </tr>
    }
    .into_any()
}

/// A workflow's status as a chip.
pub(crate) fn status(status: WorkflowStatus) -> AnyView {
    let (tone, words) = match status {
        WorkflowStatus::Draft => ("neutral", "Draft"),
        WorkflowStatus::Published => ("success", "Published"),
        WorkflowStatus::Archived => ("skipped", "Archived"),
    };
    view! { <span class="chip" data-tone=tone>{words}</span> }.into_any()
}

fn new_workflow(app: App) -> AnyView {
    let name = RwSignal::new(String::new());
    let key = RwSignal::new(String::new());
    let own_key = RwSignal::new(false);
    let problem = RwSignal::new(None::<String>);
    let busy = RwSignal::new(false);
    let bad_key = move || {
        let key = key.get();
        (!key.is_empty() && !is_identifier(&key)).then(|| {
            "Use a–z, 0–9, - and _, in parts joined by dots, up to 128 characters.".to_owned()
        })
    };
    let make = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() || !is_identifier(&key.get_untracked()) {
            return;
        }
        busy.set(true);
        let request = CreateRequest {
            key: WorkflowKey::from(key.get_untracked()),
            name: name.get_untracked(),
            description: None,
            graph: None,
        };
        spawn_local(async move {
            let made: Result<WorkflowDetail, _> = app.client.post("/api/workflows", &request).await;
            busy.set(false);
            match made {
                Ok(made) => app.router.go(Screen::Workflow {
                    key: made.row.key.to_string(),
                }),
                Err(refused) => problem.set(Some(refused.to_string())),
            }
        });
    };
    view! {
        <form class="stack" on:submit=make>
            <label class="field">
                <span class="label">"Name"</span>
                <input
                    type="text"
                    required
                    autofocus
                    maxlength="120"
                    prop:value=move || name.get()
                    on:input=move |event| {
                        name.set(event_target_value(&event));
                        if !own_key.get_untracked() {
                            key.set(slug(&name.get_untracked()));
                        }
                    }
                />
            </label>
            <label class="field" class:bad=move || bad_key().is_some()>
                <span class="label">"Key"</span>
                <input
                    type="text"
                    class="mono"
                    required
                    spellcheck="false"
                    prop:value=move || key.get()
                    on:input=move |event| {
                        own_key.set(true);
                        key.set(event_target_value(&event));
                    }
                />
                <span class="hint">"Programs call the workflow by this key. It never changes."</span>
                {move || bad_key().map(|text| view! { <span class="error">{text}</span> })}
            </label>
            {move || problem.get().map(|text| view! { <p class="error" role="alert">{text}</p> })}
            <footer>
                <button type="submit" class="button primary" disabled=move || busy.get()>
                    "Create workflow"
                </button>
            </footer>
        </form>
    }
    .into_any()
}

/// A key made of a name: what I1 allows of it, the rest as dashes.
fn slug(name: &str) -> String {
    let mut key = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            key.push(c);
        } else if !key.is_empty() && !key.ends_with('-') {
            key.push('-');
        }
    }
    key.truncate(128);
    key.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_a_name_becomes_a_key_that_is_allowed() {
        for name in [
            "Expenses review",
            "  Ünïcode — 3rd  try!",
            "A/B",
            &"x ".repeat(300),
        ] {
            let key = slug(name);
            assert!(is_identifier(&key), "{name:?} → {key:?}");
        }
        assert_eq!(slug("Expenses review"), "expenses-review");
        assert_eq!(slug("日本"), "");
    }
}
