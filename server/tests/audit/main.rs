//! The audit chain against somebody who holds the database (run-machine.md §11; seed A
//! "Authorization and audit"): what was changed, removed, swapped, added or cut is found and named,
//! and an act whose entry cannot be written did not happen.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod appended;
#[path = "../harness/mod.rs"]
mod harness;
mod tampered;
