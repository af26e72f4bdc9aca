//! The compiled plan: a stored format that needs no graph at run time (run-machine.md §1,
//! O1; seed A "Compiled plan").
//!
//! [`Document`] is what is stored and hashed. [`Plan`] is a document that was checked once
//! and indexed, with its schemas accepted; the run machine works on it alone.

mod document;
mod load;
mod secret;

pub use document::{
    ActionContract, ActionTask, AgentTask, Backoff, BackoffKind, Document, Edge, Node, OnExhausted,
    Policy, Task,
};
pub use load::{EdgeIndex, NodeIndex, Plan, PlanError};
pub use secret::Mark;

/// Version of the stored format.
pub const PLAN_VERSION: u32 = 1;

/// What `compilerVersion` says (run-machine.md D4).
pub const COMPILER_VERSION: &str = "1";
