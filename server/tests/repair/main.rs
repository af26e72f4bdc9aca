//! Repair (server.md §2; run-machine.md §1 `project`, A9): whatever was done to what is projected
//! is found and put right from the events alone, and a log that cannot be folded stops it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod command;
#[path = "../harness/counting.rs"]
mod counting;
#[path = "../harness/mod.rs"]
mod harness;
mod lived;
mod log;
mod rows;
