//! Simulation: the run machine with fixtures for children and a clock of its own
//! (wire-format.md §9, X1–X5; run-machine.md §9, V1–V3, D3).
//!
//! Nothing sleeps, nothing is called: the driver here answers every owed effect from the
//! fixtures and lets virtual time pass.

mod drive;
mod fixtures;

pub use crate::run::{PayloadView, RunResult};
pub use drive::{Refused, SIMULATION_NAMESPACE, Simulation, simulate};
pub use fixtures::{Attempt, FixtureError, Fixtures, NodeFixture, Outcome};
