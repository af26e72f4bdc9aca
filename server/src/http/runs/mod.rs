//! Runs: start, simulate, stop, history, detail, events (api.md "Runs"; server.md §5).

mod act;
mod detail;
mod events;
mod list;

pub(super) use act::{cancel, enqueue, result, simulate};
pub(super) use detail::detail;
pub(super) use events::events;
pub(super) use list::list;
