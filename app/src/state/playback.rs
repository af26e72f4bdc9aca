//! Playback of a run's events (web.md §3 "Playback"): pure pacing, and the position that
//! simulations, recorded runs and live runs share.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;

use sluicegate_core::plan::Plan;
use sluicegate_core::run::{EdgeState, Event, Payload};

use super::overlay::{Folder, Overlay, since};

/// The speeds that can be chosen.
pub(crate) const SPEEDS: [f64; 6] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// How long the picture stays as it is after `event`, in milliseconds at speed 1, before
/// `next`. Events that only keep books pass at once; what a person should see stays for a
/// moment; long waits are shortened to `MOST`, so that a timer never overflows (B102).
pub(crate) fn dwell_ms(event: &Event, next: &Event, first: &Event) -> f64 {
    const MOST: u64 = 1_600;
    let least: u64 = match &event.payload {
        Payload::AttemptStarted(_) => 320,
        Payload::AttemptSettled(_) => 220,
        Payload::RetryScheduled(_) => 480,
        Payload::EdgeSettled(edge) if edge.state == EdgeState::Emitted => 300,
        Payload::EdgeSettled(_) | Payload::NodeSkipped(_) => 40,
        Payload::NodeReady(_) => 20,
        _ => 60,
    };
    let gap = since(next, Some(first)).saturating_sub(since(event, Some(first)));
    #[expect(clippy::cast_precision_loss, reason = "at most MOST")]
    let dwell = gap.clamp(least, MOST) as f64;
    dwell
}

/// The position in a list of events. A handle: copies are the same playback.
#[derive(Clone, Copy)]
pub(crate) struct Playback {
    pub(crate) events: RwSignal<Arc<Vec<Event>>>,
    /// How many events are shown.
    at: RwSignal<usize>,
    pub(crate) playing: RwSignal<bool>,
    pub(crate) speed: RwSignal<f64>,
    /// Whether new events are shown as they come.
    pub(crate) following: RwSignal<bool>,
    pub(crate) overlay: Memo<Arc<Overlay>>,
    folder: StoredValue<Option<Folder>>,
}

impl Playback {
    pub(crate) fn new() -> Self {
        let events: RwSignal<Arc<Vec<Event>>> = RwSignal::default();
        let at = RwSignal::new(0);
        let folder: StoredValue<Option<Folder>> = StoredValue::new(None);
        let overlay = Memo::new(move |_| {
            let (events, at) = (events.get(), at.get());
            let overlay =
                folder.try_update_value(|folder| folder.as_mut().map(|it| it.at(&events, at)));
            Arc::new(overlay.flatten().unwrap_or_default())
        });
        let playback = Self {
            events,
            at,
            playing: RwSignal::new(false),
            speed: RwSignal::new(1.0),
            following: RwSignal::new(false),
            overlay,
            folder,
        };
        Effect::new(move |_| playback.tick());
        playback
    }

    /// While playing, every position starts the timer for the next one.
    fn tick(self) {
        if !self.playing.get() {
            return;
        }
        let (at, speed) = (self.at.get(), self.speed.get());
        let events = self.events.get();
        if at >= events.len() {
            self.playing.set(false);
            return;
        }
        let dwell = match (
            at.checked_sub(1).and_then(|last| events.get(last)),
            events.first(),
        ) {
            (Some(event), Some(first)) => match events.get(at) {
                Some(next) => dwell_ms(event, next, first),
                None => 0.0,
            },
            _ => 0.0,
        };
        let wait = Duration::from_secs_f64((dwell / speed / 1_000.0).clamp(0.0, 10.0));
        if let Ok(timer) = set_timeout_with_handle(
            move || {
                if self.playing.get_untracked() && self.at.get_untracked() == at {
                    self.at.set(at + 1);
                }
            },
            wait,
        ) {
            on_cleanup(move || timer.clear());
        }
    }

    /// How many events are shown; tracked.
    pub(crate) fn at(self) -> usize {
        self.at.get()
    }

    /// Shows the first `at` events. Stepping back ends following.
    pub(crate) fn seek(self, at: usize) {
        let all = self.events.with_untracked(|events| events.len());
        let at = at.min(all);
        self.playing.set(false);
        self.following
            .set(at == all && self.following.get_untracked());
        self.at.set(at);
    }

    /// Plays from here, or from the start when everything is shown.
    pub(crate) fn play(self) {
        if self.at.get_untracked() >= self.events.with_untracked(|events| events.len()) {
            self.at.set(0);
        }
        self.following.set(false);
        self.playing.set(true);
    }

    /// Shows new events as they come, from now on.
    pub(crate) fn follow(self) {
        self.playing.set(false);
        self.following.set(true);
        self.at
            .set(self.events.with_untracked(|events| events.len()));
    }

    /// Begins with another run's plan and no events.
    pub(crate) fn begin(self, plan: Arc<Plan>) {
        self.playing.set(false);
        self.folder.set_value(Some(Folder::new(plan)));
        self.at.set(0);
        self.events.set(Arc::default());
    }

    /// Takes the events that there are now; those that were there stay as they were.
    pub(crate) fn load(self, events: Vec<Event>) {
        let all = events.len();
        self.events.set(Arc::new(events));
        if self.following.get_untracked() || self.at.get_untracked() > all {
            self.at.set(all);
        }
    }

    /// The time that is shown, in milliseconds since the first event; tracked.
    pub(crate) fn time_ms(self) -> u64 {
        let at = self.at.get();
        self.events.with(|events| {
            let shown = at.checked_sub(1).and_then(|last| events.get(last));
            shown.map_or(0, |event| since(event, events.first()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sluicegate_core::value::Value;

    fn event(kind: &str, offset: u64, payload: &Value) -> Event {
        Event::read(&json!({"sequence": 1, "type": kind, "schemaVersion": 1,
            "payload": payload, "virtualOffsetMs": offset}))
        .unwrap()
    }

    fn ready(offset: u64) -> Event {
        event("node.ready", offset, &json!({"nodeId": "a"}))
    }

    #[test]
    fn b102_a_month_of_virtual_time_never_overflows_a_timer() {
        let (a, b) = (ready(0), ready(3_000_000_000));
        assert!(dwell_ms(&a, &b, &a) <= 1_600.0);
        assert_eq!(since(&b, Some(&a)), 3_000_000_000);
    }

    #[test]
    fn web3_what_a_person_should_see_stays_for_a_moment() {
        let retry = event(
            "node.retry.scheduled",
            5,
            &json!({"nodeId": "a", "attempt": 1, "semanticGroup": 1, "code": "agent.timeout",
                "classification": "retryable", "backoffMs": 0, "nextAttemptOffsetMs": 5}),
        );
        assert!(dwell_ms(&retry, &ready(5), &ready(0)) >= 200.0);
        assert!(dwell_ms(&ready(5), &retry, &ready(0)) <= 50.0);
    }
}
