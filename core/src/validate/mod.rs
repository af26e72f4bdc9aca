//! Validation of a graph: every publication rule that can be decided without I/O
//! (wire-format.md §8, Q1–Q4; seed A "Graph validation and publication").

mod issue;

pub use issue::{Issue, Location, Severity};
