//! A dialog above everything else: the browser's own, so that focus stays inside and Escape
//! closes it.

use leptos::html;
use leptos::prelude::*;

use super::icon::{Icon, icon};

/// Shows `body` while `open` holds something.
pub(crate) fn dialog<T: Clone + Send + Sync + 'static>(
    title: &'static str,
    open: RwSignal<Option<T>>,
    body: impl Fn(T) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    let node: NodeRef<html::Dialog> = NodeRef::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        if open.with(Option::is_some) {
            if !dialog.open() {
                // Refused only when it is open already or not in the page.
                let _ = dialog.show_modal();
            }
        } else if dialog.open() {
            dialog.close();
        }
    });
    view! {
        <dialog node_ref=node class="dialog" aria-label=title on:close=move |_| open.set(None)>
            <header>
                <h2>{title}</h2>
                <button
                    type="button"
                    class="icon-button"
                    aria-label="Close"
                    on:click=move |_| open.set(None)
                >
                    {icon(Icon::Close)}
                </button>
            </header>
            {move || open.get().map(&body)}
        </dialog>
    }
    .into_any()
}
