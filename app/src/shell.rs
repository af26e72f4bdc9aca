//! What stands around every screen: who is signed in, and which screen is shown.

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::Session;
use sluicegate_core::value::Value;

use crate::client::{Client, Problem, encode};
use crate::ui::icon::{Icon, icon};
use crate::ui::notice::Notices;
use crate::ui::route::{Route, Router, Screen};
use crate::{runs, ui, workflows};

/// Something that is asked for and may not come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked<T> {
    Waiting,
    Here(T),
    Refused(Problem),
}

/// What every screen needs. A handle.
#[derive(Clone, Copy)]
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) router: Router,
    pub(crate) notices: Notices,
    session: RwSignal<Asked<Session>>,
}

impl App {
    /// Whether the person may do something; tracked.
    pub(crate) fn may(self, permission: &str) -> bool {
        self.session.with(|session| match session {
            Asked::Here(session) => session.permissions.iter().any(|held| held == permission),
            _ => false,
        })
    }

    /// A request failed: says so, or shows the sign-in screen when the session is over.
    pub(crate) fn refused(self, problem: &Problem) {
        if problem.status == 401 {
            self.session.set(Asked::Refused(problem.clone()));
        } else {
            self.notices.warn(problem.to_string());
        }
    }

    /// Asks for something that a screen shows; a session that is over shows the sign-in.
    pub(crate) fn ask<T: Send + Sync + 'static>(
        self,
        into: RwSignal<Asked<T>>,
        request: impl Future<Output = Result<T, Problem>> + 'static,
    ) {
        spawn_local(async move {
            let answer = match request.await {
                Ok(answer) => Asked::Here(answer),
                Err(problem) if problem.status == 401 => {
                    self.session.set(Asked::Refused(problem));
                    return;
                }
                Err(problem) => Asked::Refused(problem),
            };
            // The screen may be gone by now.
            let _ = into.try_set(answer);
        });
    }

    fn sign_in(self) {
        self.session.set(Asked::Waiting);
        self.ask_session();
    }

    fn ask_session(self) {
        spawn_local(async move {
            self.session.set(match self.client.session().await {
                Ok(session) => Asked::Here(session),
                Err(problem) => Asked::Refused(problem),
            });
        });
    }

    fn sign_out(self) {
        spawn_local(async move {
            let ended: Result<Value, _> = self
                .client
                .post("/api/session/end", &serde_json::json!({}))
                .await;
            match ended {
                Ok(_) => self.sign_in(),
                Err(problem) => self.refused(&problem),
            }
        });
    }
}

/// The whole page.
pub(crate) fn shell() -> AnyView {
    let app = App {
        client: Client::new(),
        router: Router::new(),
        notices: Notices::new(),
        session: RwSignal::new(Asked::Waiting),
    };
    app.ask_session();
    let signed_in = Memo::new(move |_| {
        app.session
            .with(|session| matches!(session, Asked::Here(_)))
    });
    let body = move || {
        if signed_in.get() {
            return screens(app);
        }
        match app.session.get() {
            Asked::Refused(problem) if problem.status == 401 => sign_in(),
            Asked::Refused(problem) => view! {
                <main class="alone">{ui::problem(&problem, move || app.sign_in())}</main>
            }
            .into_any(),
            _ => view! { <main class="alone">{ui::loading("Loading")}</main> }.into_any(),
        }
    };
    view! {
        {body}
        {app.notices.view()}
    }
    .into_any()
}

fn screens(app: App) -> AnyView {
    // A selection changes the address and not the screen.
    let screen = Memo::new(move |_| app.router.screen());
    Effect::new(move |_| {
        let name = match screen.get() {
            Screen::Workflows | Screen::Unknown => "Workflows".to_owned(),
            Screen::Workflow { key } => key,
            Screen::Runs => "Runs".to_owned(),
            Screen::Run { run_id } => format!("Run {run_id}"),
        };
        document().set_title(&format!("{name} · Sluicegate"));
    });
    (move || match screen.get() {
        Screen::Workflows => with_sidebar(app, workflows::list::list(app)),
        Screen::Workflow { key } => workflows::editor::editor(app, key),
        Screen::Runs => with_sidebar(app, runs::list::list(app)),
        Screen::Run { run_id } => runs::run::run(app, run_id),
        Screen::Unknown => with_sidebar(app, unknown()),
    })
    .into_any()
}

fn unknown() -> AnyView {
    let home = Route::from(Screen::Workflows).link();
    ui::empty(
        Icon::Search,
        "There is nothing at this address",
        "The link may be old or cut off.",
        view! { <a class="button" href=home>"Go to workflows"</a> }.into_any(),
    )
}

/// The mark: a gate in a channel.
pub(crate) fn mark() -> AnyView {
    view! {
        <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
            <rect x="1" y="1" width="22" height="22" rx="6"></rect>
            <path d="M5 9.5h4.5M14.5 9.5H19M5 14.5h4.5M14.5 14.5H19M12 5v14"></path>
        </svg>
    }
    .into_any()
}

fn with_sidebar(app: App, content: AnyView) -> AnyView {
    let link = move |screen: Screen, picture: Icon, name: &'static str| {
        let here = {
            let screen = screen.clone();
            move || (app.router.screen() == screen).then_some("page")
        };
        view! {
            <a href=Route::from(screen).link() aria-current=here>
                {icon(picture)}
                {name}
            </a>
        }
    };
    let who = move || match app.session.get() {
        Asked::Here(session) => session.actor.label().to_owned(),
        _ => String::new(),
    };
    view! {
        <div class="page">
            <nav class="sidebar" aria-label="Main">
                <div class="brand">{mark()} "Sluicegate"</div>
                {link(Screen::Workflows, Icon::Workflows, "Workflows")}
                {link(Screen::Runs, Icon::Runs, "Runs")}
                <div class="who">
                    <span class="name" dir="auto">{who}</span>
                    {ui::icon_button(Icon::SignOut, "Sign out", move || app.sign_out(), || false)}
                </div>
            </nav>
            <main class="content">{content}</main>
        </div>
    }
    .into_any()
}

/// How to sign in.
fn sign_in() -> AnyView {
    let link = RwSignal::new(String::new());
    let go = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        // The whole link or only the token at its end. The server of this page answers it,
        // whatever address the link has.
        let text = link.get_untracked().trim().to_owned();
        let token = text
            .rsplit_once("token=")
            .map_or(text.as_str(), |(_, token)| token);
        let address = format!("/sign-in?token={}", encode(token));
        if window().location().set_href(&address).is_err() {
            link.set(String::new());
        }
    };
    view! {
        <main class="alone">
            <form class="sign-in" on:submit=go>
                {mark()}
                <h1>"Sign in to Sluicegate"</h1>
                <p>
                    "When the server starts for the first time it prints a sign-in link. Open that link, or paste it here. It works once."
                </p>
                <label class="field">
                    <span class="label">"Sign-in link"</span>
                    <input
                        type="text"
                        autocomplete="off"
                        spellcheck="false"
                        required
                        prop:value=move || link.get()
                        on:input=move |event| link.set(event_target_value(&event))
                    />
                </label>
                <button type="submit" class="button primary">
                    "Sign in"
                </button>
            </form>
        </main>
    }
    .into_any()
}
