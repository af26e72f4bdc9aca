//! The run machine as a stranger drives it: only through plans, commands, events and
//! effects (run-machine.md; the laws of architecture.md).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what broke by panicking"
)]

mod cancel;
mod clauses;
mod codes;
mod events;
mod forged;
mod formats;
mod generated;
mod laws;
mod life;
mod live;
mod order;
mod outside;
mod plans;
mod reported;
mod small;
mod transitions;
