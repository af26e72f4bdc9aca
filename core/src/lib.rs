//! The pure core of Sluicegate: everything that decides, nothing that touches the world.
//!
//! It performs no I/O, reads no clock and draws no random number (architecture.md), so the
//! same code checks a graph in the browser, simulates it on the command line and runs it
//! live on the server, and all three agree byte for byte.
//!
//! Reading order for a stranger: [`value`] (what JSON is here), [`schema`], [`graph`] (the
//! document), [`validate`] and [`compile`] (graph → issues and [`plan`]), [`run`] (the run
//! as a fold of its events), [`simulate`].

pub mod actor;
pub mod api;
pub mod audit;
pub mod catalogue;
pub mod code;
pub mod compile;
pub mod evidence;
pub mod gate;
pub mod graph;
pub mod ids;
pub mod limits;
pub mod mapping;
pub mod node_type;
pub mod plan;
pub mod run;
pub mod schema;
pub mod simulate;
pub mod time;
pub mod validate;
pub mod value;
