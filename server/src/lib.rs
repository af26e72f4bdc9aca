//! The thin shell around the core: everything that touches the world (architecture.md;
//! server.md).

pub mod actions;
pub mod agents;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod engine;
pub mod http;
pub mod modules;
pub mod payload;
pub mod retention;
pub mod serve;
pub mod store;
pub mod stream;
pub mod worker;
