//! A real server on a port of its own, with a real database (api.md; server.md §§3–5).

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test may stop it"
)]

mod audit;
mod client;
mod definitions;
mod identity;
mod page;
mod refusals;
mod runs;
mod stream;

/// The database of a new server: its own.
fn database() -> Option<String> {
    None
}
