//! The list of runs and the page of one (web.md §4).

pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod player;
pub(crate) mod run;
