//! Which screen is shown. Every screen and every selected thing has an address after the
//! `#`, so that the app also works as plain static files (web.md §1).

use leptos::prelude::*;
use sluicegate_core::ids::{EdgeId, NodeId};

use crate::canvas::gesture::Item;

/// A screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Screen {
    Workflows,
    Workflow { key: String },
    Runs,
    Run { run_id: String },
    Unknown,
}

/// A screen and what is selected on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) screen: Screen,
    pub(crate) selected: Option<Item>,
}

impl From<Screen> for Route {
    fn from(screen: Screen) -> Self {
        Self {
            screen,
            selected: None,
        }
    }
}

impl Route {
    /// Reads what stands after the `#`; `decode` undoes percent encoding.
    fn parse(hash: &str, decode: impl Fn(&str) -> String) -> Self {
        let hash = hash.trim_start_matches('#');
        let (path, query) = hash.split_once('?').unwrap_or((hash, ""));
        let mut parts = path.split('/').filter(|part| !part.is_empty()).map(&decode);
        let screen = match (parts.next().as_deref(), parts.next(), parts.next()) {
            (None | Some("workflows"), None, _) => Screen::Workflows,
            (Some("workflows"), Some(key), None) => Screen::Workflow { key },
            (Some("runs"), None, _) => Screen::Runs,
            (Some("runs"), Some(run_id), None) => Screen::Run { run_id },
            _ => Screen::Unknown,
        };
        let selected = query
            .split('&')
            .find_map(|pair| match pair.split_once('=')? {
                ("node", id) => Some(Item::Node(NodeId::from(decode(id)))),
                ("edge", id) => Some(Item::Edge(EdgeId::from(decode(id)))),
                _ => None,
            });
        Self { screen, selected }
    }

    /// The address; `encode` is percent encoding.
    fn address(&self, encode: impl Fn(&str) -> String) -> String {
        let path = match &self.screen {
            Screen::Workflows | Screen::Unknown => "#/workflows".to_owned(),
            Screen::Workflow { key } => format!("#/workflows/{}", encode(key)),
            Screen::Runs => "#/runs".to_owned(),
            Screen::Run { run_id } => format!("#/runs/{}", encode(run_id)),
        };
        match &self.selected {
            None => path,
            Some(Item::Node(id)) => format!("{path}?node={}", encode(id.as_str())),
            Some(Item::Edge(id)) => format!("{path}?edge={}", encode(id.as_str())),
        }
    }

    /// The address for a link.
    pub(crate) fn link(&self) -> String {
        self.address(crate::client::encode)
    }
}

/// Where the page is.
#[derive(Clone, Copy)]
pub(crate) struct Router(RwSignal<Route>);

impl Router {
    /// Follows the address bar.
    pub(crate) fn new() -> Self {
        let router = Self(RwSignal::new(read()));
        let listener = window_event_listener_untyped("hashchange", move |_| {
            let route = read();
            if router.0.get_untracked() != route {
                router.0.set(route);
            }
        });
        on_cleanup(move || listener.remove());
        router
    }

    /// The screen; tracked.
    pub(crate) fn screen(self) -> Screen {
        self.0.with(|route| route.screen.clone())
    }

    /// What the address selects, not tracked.
    pub(crate) fn selected_now(self) -> Option<Item> {
        self.0.with_untracked(|route| route.selected.clone())
    }

    /// Goes to a screen as a new entry of the browser's history.
    pub(crate) fn go(self, screen: Screen) {
        let link = Route::from(screen).link();
        // The address of our own document is never refused.
        let _ = location().set_hash(&link);
    }

    /// Writes the selection into the address, in the place of the present entry.
    pub(crate) fn select(self, selected: Option<Item>) {
        let mut route = self.0.get_untracked();
        if route.selected == selected {
            return;
        }
        route.selected = selected;
        if let Ok(history) = window().history() {
            let _ = history.replace_state_with_url(
                &wasm_bindgen::JsValue::NULL,
                "",
                Some(&route.link()),
            );
        }
        self.0.set(route);
    }
}

fn read() -> Route {
    Route::parse(&location().hash().unwrap_or_default(), |text| {
        js_sys::decode_uri_component(text).map_or_else(|_| text.to_owned(), String::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web1_every_screen_and_selection_has_an_address() {
        let plain = |text: &str| text.to_owned();
        let screens = [
            Screen::Workflows,
            Screen::Workflow {
                key: "expenses.review".to_owned(),
            },
            Screen::Runs,
            Screen::Run {
                run_id: "0190".to_owned(),
            },
        ];
        for screen in screens {
            for selected in [
                None,
                Some(Item::Node("a".into())),
                Some(Item::Edge("e".into())),
            ] {
                let route = Route {
                    screen: screen.clone(),
                    selected,
                };
                assert_eq!(Route::parse(&route.address(plain), plain), route);
            }
        }
        assert_eq!(Route::parse("", plain).screen, Screen::Workflows);
        assert_eq!(
            Route::parse("#/nonsense/x/y", plain).screen,
            Screen::Unknown
        );
    }
}
