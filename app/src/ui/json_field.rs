//! A field that holds JSON, with what is wrong in place (web.md §2 "Inspector").

use leptos::prelude::*;
use sluicegate_core::value::{self, JsonError, Value};

use super::icon::{Icon, icon};

/// A refusal as one line: where, then what.
pub(crate) fn sentence(error: &JsonError) -> String {
    let place = match (error.position, error.pointer.as_str()) {
        (Some((line, column)), _) => format!("Line {line}, column {column}: "),
        (None, "") => String::new(),
        (None, pointer) => format!("{pointer}: "),
    };
    format!("{place}{}", error.detail)
}

/// A value as people edit it: two spaces a level.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Reads the text by J1, with the refusal as a sentence.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    value::read(text).map_err(|error| sentence(&error))
}

/// The field. `error` stands below it; `done` is called with the text when the person leaves
/// the field after a change.
pub(crate) fn json_field(
    label: &'static str,
    text: RwSignal<String>,
    error: impl Fn() -> Option<String> + Send + Sync + Clone + 'static,
    disabled: impl Fn() -> bool + Send + Sync + 'static,
    done: impl Fn(String) + 'static,
) -> AnyView {
    let bad = {
        let error = error.clone();
        move || error().is_some()
    };
    let invalid = {
        let error = error.clone();
        move || if error().is_some() { "true" } else { "false" }
    };
    let rows = move || text.with(|text| text.lines().count().clamp(3, 18).to_string());
    view! {
        <label class="field" class:bad=bad>
            <span class="label">{label}</span>
            <textarea
                class="mono"
                spellcheck="false"
                autocomplete="off"
                rows=rows
                disabled=disabled
                aria-invalid=invalid
                prop:value=move || text.get()
                on:input=move |event| text.set(event_target_value(&event))
                on:change=move |event| done(event_target_value(&event))
            ></textarea>
            {move || {
                error()
                    .map(|error| view! { <span class="error" role="alert">{icon(Icon::Error)}{error}</span> })
            }}
        </label>
    }
    .into_any()
}
