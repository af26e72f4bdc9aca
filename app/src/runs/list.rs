//! The history of runs.

use leptos::prelude::*;
use sluicegate_core::api::{Page, RunSummary};
use sluicegate_core::run::{CostRollup, Mode, RollupState};

use crate::shell::{App, Asked};
use crate::state::overlay::run_words;
use crate::ui::icon::Icon;
use crate::ui::route::{Route, Screen};
use crate::ui::{self, format};

/// The screen.
pub(crate) fn list(app: App) -> AnyView {
    let rows = RwSignal::new(Asked::Waiting);
    let status = RwSignal::new(String::new());
    let load = move || {
        let mut path = "/api/workflow-runs?limit=100".to_owned();
        for one in status
            .get_untracked()
            .split(',')
            .filter(|one| !one.is_empty())
        {
            path.push_str("&status=");
            path.push_str(one);
        }
        app.ask(rows, async move {
            app.client.get::<Page<RunSummary>>(&path).await
        });
    };
    load();
    let body = move || match rows.get() {
        Asked::Waiting => ui::loading("Loading runs"),
        Asked::Refused(problem) => ui::problem(&problem, load),
        Asked::Here(page) if page.items.is_empty() => {
            let workflows = Route::from(Screen::Workflows).link();
            ui::empty(
                Icon::Runs,
                "No runs here",
                "Open a published workflow and run it live, or choose another filter.",
                view! { <a class="button" href=workflows>"Go to workflows"</a> }.into_any(),
            )
        }
        Asked::Here(page) => table(page.items),
    };
    view! {
        <header class="title-bar">
            <h1>"Runs"</h1>
            <label class="select">
                <span class="visually-hidden">"Status"</span>
                <select on:change=move |event| {
                    status.set(event_target_value(&event));
                    load();
                }>
                    <option value="">"Every status"</option>
                    <option value="queued,running,waiting-agent,waiting-retry,cancel-requested">
                        "Going on"
                    </option>
                    <option value="succeeded">"Succeeded"</option>
                    <option value="failed,refused">"Failed or refused"</option>
                    <option value="cancelled">"Cancelled"</option>
                </select>
            </label>
            <button type="button" class="button" on:click=move |_| load()>
                "Refresh"
            </button>
        </header>
        {body}
    }
    .into_any()
}

fn table(items: Vec<RunSummary>) -> AnyView {
    view! {
        <table class="list">
            <thead>
                <tr>
                    <th scope="col">"Workflow"</th>
                    <th scope="col">"Status"</th>
                    <th scope="col">"Nodes"</th>
                    <th scope="col" class="number">"Duration"</th>
                    <th scope="col" class="number">"Tokens"</th>
                    <th scope="col" class="number">"Cost"</th>
                    <th scope="col">"Started"</th>
                </tr>
            </thead>
            <tbody>{items.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
    .into_any()
}

fn row(run: RunSummary) -> AnyView {
    let run_id = run.run_id.to_string();
    let link = Route::from(Screen::Run {
        run_id: run_id.clone(),
    })
    .link();
    let name = run
        .workflow_key
        .as_ref()
        .map_or("A draft".to_owned(), ToString::to_string);
    let kind = match (run.mode, run.revision) {
        (Mode::Simulate, _) => "simulated".to_owned(),
        (Mode::Live, Some(revision)) => format!("r{revision}"),
        (Mode::Live, None) => String::new(),
    };
    let queued = run.queued_at.0;
    let duration = run
        .duration_ms
        .map_or("–".to_owned(), |ms| format::duration(ms.0));
    let failure = run.failure.as_ref().map(|failure| {
        view! { <span class="mono muted">{failure.code.clone()}</span> }
    });
    view! {
        <tr>
            <td>
                <a class="row-link" href=link>
                    <span class="strong">{name}" "<span class="muted">{kind}</span></span>
                    <span class="mono muted">{run_id}</span>
                </a>
            </td>
            <td>{chip(run.status)} " " {failure}</td>
            <td>{run.nodes.map(|nodes| format!("{} of {}", nodes.settled, nodes.total))}</td>
            <td class="number">{duration}</td>
            <td class="number">{format::count(run.usage.total_tokens)}</td>
            <td class="number">{cost(&run.cost)}</td>
            <td>
                <span title=format::instant(queued)>{format::ago(queued, format::now())}</span>
                <span class="muted">" by "<bdi>{run.actor.label().to_owned()}</bdi></span>
            </td>
        </tr>
    }
    .into_any()
}

/// A run's status as a chip.
pub(crate) fn chip(status: sluicegate_core::run::RunStatus) -> AnyView {
    let (words, tone) = run_words(status);
    view! { <span class="chip" data-tone=tone>{words}</span> }.into_any()
}

/// What a run cost, as far as it is priced.
pub(crate) fn cost(cost: &CostRollup) -> String {
    match cost.state {
        RollupState::NotApplicable => "–".to_owned(),
        _ => format::dollars(cost.amount_micros),
    }
}
