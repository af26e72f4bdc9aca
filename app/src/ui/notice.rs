//! Short messages that come and go, read out as they come.

use std::time::Duration;

use leptos::prelude::*;

use super::icon::{Icon, icon};

#[derive(Debug, Clone, PartialEq)]
struct Notice {
    number: u32,
    text: String,
    bad: bool,
}

/// What was just done or refused. A handle.
#[derive(Clone, Copy)]
pub(crate) struct Notices {
    shown: RwSignal<Vec<Notice>>,
    next: StoredValue<u32>,
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self {
            shown: RwSignal::new(Vec::new()),
            next: StoredValue::new(0),
        }
    }

    pub(crate) fn say(self, text: impl Into<String>) {
        self.add(text.into(), false);
    }

    /// Something did not work: stays longer.
    pub(crate) fn warn(self, text: impl Into<String>) {
        self.add(text.into(), true);
    }

    fn add(self, text: String, bad: bool) {
        let number = self.next.get_value();
        self.next.set_value(number.wrapping_add(1));
        self.shown.update(|shown| {
            shown.retain(|notice| notice.text != text);
            shown.push(Notice { number, text, bad });
        });
        let stays = Duration::from_secs(if bad { 9 } else { 4 });
        set_timeout(move || self.drop_one(number), stays);
    }

    fn drop_one(self, number: u32) {
        self.shown
            .update(|shown| shown.retain(|notice| notice.number != number));
    }

    pub(crate) fn view(self) -> AnyView {
        let one = move |notice: Notice| {
            let number = notice.number;
            view! {
                <div class="notice" class:bad=notice.bad>
                    {icon(if notice.bad { Icon::Error } else { Icon::Done })}
                    <span>{notice.text}</span>
                    <button
                        type="button"
                        class="icon-button"
                        aria-label="Dismiss"
                        on:click=move |_| self.drop_one(number)
                    >
                        {icon(Icon::Close)}
                    </button>
                </div>
            }
        };
        view! {
            <div class="notices" role="status" aria-live="polite">
                <For each=move || self.shown.get() key=|notice| notice.number children=one />
            </div>
        }
        .into_any()
    }
}
