//! The thin shell around the core: everything that touches the world (architecture.md;
//! server.md).

pub mod clock;
pub mod store;
