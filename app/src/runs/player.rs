//! The player (web.md §3 "Playback"): the same for simulations, recorded and live runs.

use leptos::prelude::*;

use crate::state::playback::{Playback, SPEEDS};
use crate::ui::icon::{Icon, icon};
use crate::ui::{format, icon_button};

/// The bar. `live` says whether the run still goes on, so that it can be followed.
pub(crate) fn player(
    playback: Playback,
    live: impl Fn() -> bool + Send + Sync + Copy + 'static,
) -> AnyView {
    let all = move || playback.events.with(|events| events.len());
    let toggle = move |_| {
        if playback.playing.get_untracked() {
            playback.playing.set(false);
        } else {
            playback.play();
        }
    };
    let (name, picture) = (
        move || {
            if playback.playing.get() {
                "Pause"
            } else {
                "Play"
            }
        },
        move || {
            icon(if playback.playing.get() {
                Icon::Pause
            } else {
                Icon::Play
            })
        },
    );
    let scrub = move |event: web_sys::Event| {
        if let Ok(at) = event_target_value(&event).parse() {
            playback.seek(at);
        }
    };
    let time = move || format::duration(playback.time_ms());
    let whole = move || {
        playback.events.with(|events| {
            let last = events.last();
            format::duration(
                last.map_or(0, |last| crate::state::overlay::since(last, events.first())),
            )
        })
    };
    let filled = move || {
        #[expect(clippy::cast_precision_loss, reason = "at most 10,000 events")]
        let share = playback.at() as f64 / all().max(1) as f64;
        format!("{:.2}%", share * 100.0)
    };
    let speed = move |event: web_sys::Event| {
        if let Ok(speed) = event_target_value(&event).parse() {
            playback.speed.set(speed);
        }
    };
    let option = |speed: f64| {
        view! { <option value=speed.to_string() selected=speed == 1.0>{format!("{speed}×")}</option> }
    };
    view! {
        <div class="player floating" role="group" aria-label="Playback">
            {icon_button(Icon::First, "To the start", move || playback.seek(0), move || playback.at() == 0)}
            {icon_button(
                Icon::StepBack,
                "One event back",
                move || playback.seek(playback_at(playback).saturating_sub(1)),
                move || playback.at() == 0,
            )}
            <button type="button" class="icon-button play" aria-label=name title=name on:click=toggle>
                {picture}
            </button>
            {icon_button(
                Icon::StepForward,
                "One event forward",
                move || playback.seek(playback_at(playback) + 1),
                move || playback.at() >= all(),
            )}
            {icon_button(Icon::Last, "To the end", move || playback.seek(usize::MAX), move || playback.at() >= all())}
            <input
                type="range"
                class="scrubber"
                min="0"
                max=move || all().to_string()
                step="1"
                aria-label="Event"
                aria-valuetext=move || format!("Event {} of {}", playback.at(), all())
                prop:value=move || playback.at().to_string()
                style:--filled=filled
                on:input=scrub
            />
            <span class="time">
                <span>{time}</span>
                <span class="muted">" / " {whole}</span>
            </span>
            <label class="select small">
                <span class="visually-hidden">"Speed"</span>
                <select on:change=speed>{SPEEDS.map(option).collect_view()}</select>
            </label>
            {move || {
                live().then(|| {
                    view! {
                        <button
                            type="button"
                            class="button small follow"
                            aria-pressed=move || playback.following.get().to_string()
                            on:click=move |_| playback.follow()
                        >
                            {icon(Icon::Live)}
                            "Follow"
                        </button>
                    }
                })
            }}
        </div>
    }
    .into_any()
}

fn playback_at(playback: Playback) -> usize {
    untrack(move || playback.at())
}
