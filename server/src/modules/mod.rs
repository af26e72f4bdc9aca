//! Sample business modules that register actions (server.md §6).

pub mod expenses;
