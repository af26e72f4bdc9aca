//! The web app (web.md): a shell around the core that draws, and decides nothing that the
//! core could (architecture.md).

mod canvas;
mod catalogue;
mod client;
mod inspector;
mod problems;
mod runs;
mod shell;
mod simulate;
mod state;
mod ui;
mod workflows;

use leptos::prelude::*;
use wasm_bindgen::JsCast;

fn main() {
    let page = document();
    // The page showed a first screen before this code was there (web.md §6).
    if let Some(skeleton) = page.get_element_by_id("skeleton") {
        skeleton.remove();
    }
    let place = page.get_element_by_id("app");
    if let Some(place) = place.and_then(|place| place.dyn_into::<web_sys::HtmlElement>().ok()) {
        leptos::mount::mount_to(place, shell::shell).forget();
    }
}
