//! The parts that every screen is made of.

pub(crate) mod dialog;
pub(crate) mod format;
pub(crate) mod icon;
pub(crate) mod json_field;
pub(crate) mod notice;
pub(crate) mod route;

use leptos::prelude::*;

use icon::{Icon, icon};

/// A button that is a picture; its name is read out and shown as a tip.
pub(crate) fn icon_button(
    picture: Icon,
    name: &'static str,
    press: impl Fn() + 'static,
    disabled: impl Fn() -> bool + Send + Sync + 'static,
) -> AnyView {
    view! {
        <button
            type="button"
            class="icon-button"
            aria-label=name
            title=name
            disabled=disabled
            on:click=move |_| press()
        >
            {icon(picture)}
        </button>
    }
    .into_any()
}

/// A part that can be folded away.
pub(crate) fn fold(
    title: &'static str,
    aside: impl Fn() -> String + Send + Sync + 'static,
    open: impl Fn() -> bool + Send + Sync + 'static,
    body: AnyView,
) -> AnyView {
    view! {
        <details class="fold" prop:open=open>
            <summary>
                {icon(Icon::Right)} {title} <span class="muted">{aside}</span>
            </summary>
            {body}
        </details>
    }
    .into_any()
}

/// A place where something should be and is not yet, with what to do next.
pub(crate) fn empty(picture: Icon, title: &str, text: &str, action: AnyView) -> AnyView {
    view! {
        <div class="empty">
            {icon(picture)}
            <h2>{title.to_owned()}</h2>
            <p>{text.to_owned()}</p>
            {action}
        </div>
    }
    .into_any()
}

/// Grey bars where a list will be.
pub(crate) fn loading(what: &'static str) -> AnyView {
    view! {
        <div class="loading" role="status" aria-label=what>
            <span></span>
            <span></span>
            <span></span>
        </div>
    }
    .into_any()
}

/// What went wrong and what to do, in place of what was asked for.
pub(crate) fn problem(problem: &crate::client::Problem, again: impl Fn() + 'static) -> AnyView {
    let (title, detail) = (problem.title.clone(), problem.detail.clone());
    view! {
        <div class="empty" role="alert">
            {icon(Icon::Error)}
            <h2>{title}</h2>
            <p>{detail}</p>
            <button type="button" class="button" on:click=move |_| again()>
                "Try again"
            </button>
        </div>
    }
    .into_any()
}
