//! Following a run's events (api.md `events`; server.md §5): the browser's own stream
//! resumes by itself; when it gave up, a new one begins after the last event seen (B083).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use sluicegate_core::run::{Event, Payload};
use sluicegate_core::value;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{EventSource, MessageEvent};

use super::encode;
use crate::state::overlay::is_terminal;

/// How a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamState {
    Connecting,
    Open,
    Reconnecting,
    Complete,
}

/// Takes an event; `false` when one is missing before it.
type Take = Rc<RefCell<dyn FnMut(Event) -> bool>>;

/// One run's stream; it ends with its owner.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    run_id: StoredValue<String>,
    pub(crate) state: RwSignal<StreamState>,
    source: StoredValue<Option<EventSource>, LocalStorage>,
    last: StoredValue<u64>,
    /// The terminal event came; a closed stream is then no failure.
    ended: StoredValue<bool>,
    take: StoredValue<Take, LocalStorage>,
}

impl Stream {
    /// Follows a run from its first event. `take` answers `false` for a gap, and the stream
    /// then begins again after the last event that was taken.
    pub(crate) fn follow(run_id: &str, take: impl FnMut(Event) -> bool + 'static) -> Self {
        let take: Take = Rc::new(RefCell::new(take));
        let stream = Self {
            run_id: StoredValue::new(run_id.to_owned()),
            state: RwSignal::new(StreamState::Connecting),
            source: StoredValue::new_local(None),
            last: StoredValue::new(0),
            ended: StoredValue::new(false),
            take: StoredValue::new_local(take),
        };
        stream.open();
        let shown = window_event_listener_untyped("visibilitychange", move |_| stream.shown());
        on_cleanup(move || {
            shown.remove();
            stream.close();
        });
        stream
    }

    /// B089: a hidden tab holds no stream; coming back it resumes.
    fn shown(self) {
        if self.state.get_untracked() == StreamState::Complete {
            return;
        }
        if document().hidden() {
            self.close();
        } else if self.source.with_value(Option::is_none) {
            self.open();
        }
    }

    fn open(self) {
        self.close();
        let mut path = format!(
            "/api/workflow-runs/events?runId={}",
            encode(&self.run_id.get_value())
        );
        let last = self.last.get_value();
        if last > 0 {
            path.push_str(&format!("&afterSequence={last}"));
        }
        let Ok(source) = EventSource::new(&path) else {
            self.again();
            return;
        };
        let on_event = Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
            self.taken(&message);
        });
        for name in Payload::TYPES {
            let listener = on_event.as_ref().unchecked_ref();
            // Only a name that is no string could be refused.
            let _ = source.add_event_listener_with_callback(name, listener);
        }
        on_event.forget();
        let on_complete = Closure::<dyn Fn()>::new(move || {
            self.state.set(StreamState::Complete);
            self.close();
        });
        let _ = source.add_event_listener_with_callback(
            "workflow.stream-complete",
            on_complete.as_ref().unchecked_ref(),
        );
        on_complete.forget();
        let on_open = Closure::<dyn Fn()>::new(move || self.state.set(StreamState::Open));
        source.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        on_open.forget();
        let on_error = Closure::<dyn Fn()>::new(move || self.failed());
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        on_error.forget();
        self.source.set_value(Some(source));
    }

    fn taken(self, message: &MessageEvent) {
        let Some(text) = message.data().as_string() else {
            return;
        };
        let Some(event) = value::read(&text)
            .ok()
            .and_then(|value| Event::read(&value).ok())
        else {
            return;
        };
        let sequence = event.sequence;
        if is_terminal(&event) {
            self.ended.set_value(true);
        }
        let take = self.take.get_value();
        if take.borrow_mut()(event) {
            self.last.update_value(|last| *last = (*last).max(sequence));
        } else {
            self.open();
        }
    }

    /// The browser tries again by itself unless it closed the stream.
    fn failed(self) {
        let closed = self.source.with_value(|source| {
            source
                .as_ref()
                .is_some_and(|source| source.ready_state() == EventSource::CLOSED)
        });
        if closed && self.ended.get_value() {
            self.close();
            self.state.set(StreamState::Complete);
            return;
        }
        self.state.set(StreamState::Reconnecting);
        if closed {
            self.again();
        }
    }

    fn again(self) {
        self.close();
        self.state.set(StreamState::Reconnecting);
        set_timeout(
            move || {
                // The page may be gone by now, or hidden.
                let idle = self.source.try_with_value(Option::is_none) == Some(true);
                let waits = self.state.try_get_untracked() == Some(StreamState::Reconnecting);
                if idle && waits && !document().hidden() {
                    self.open();
                }
            },
            Duration::from_secs(3),
        );
    }

    fn close(self) {
        self.source.try_update_value(|source| {
            if let Some(source) = source.take() {
                source.close();
            }
        });
    }
}
