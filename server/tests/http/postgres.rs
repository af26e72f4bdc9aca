//! The same with a PostgreSQL that other processes could share (api.md; server.md §§3–5).

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test may stop it"
)]

mod audit;
mod client;
#[path = "../harness/cluster.rs"]
mod cluster;
mod definitions;
mod identity;
mod page;
mod refusals;
mod runs;
mod stream;

/// The database of a new server.
fn database() -> Option<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    Some(runtime.block_on(cluster::Cluster::shared().database()))
}
