//! Graph → plan or issues (run-machine.md §1, O1; wire-format.md §11; seed A "Compiled plan"),
//! and the dry-run report.
//!
//! A plan is made only of a graph without an error, and the same graph with the same
//! catalogue gives the same plan, byte for byte.

mod assemble;
mod dry_run;

pub use dry_run::{DryRunReport, Reference, ReferenceKind, dry_run};

use crate::catalogue::Catalogue;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::plan::Document;
use crate::validate::{Issue, Memory, judge};

/// What compiling gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The plan; none when an issue is an error.
    pub plan: Option<Document>,
    /// Everything that was found, in the order of wire-format.md §8.
    pub issues: Vec<Issue>,
}

/// Judges a graph and makes its plan. With a catalogue the plan fixes what the contracts of
/// pinned agents and actions say; without one it can be simulated, but not published.
#[must_use]
pub fn compile(graph: &Graph, catalogue: Option<&Catalogue>, limits: &Limits) -> Compiled {
    let mut memory = Memory::default();
    let judged = judge(&mut memory, graph, catalogue, limits);
    let plan = if judged.issues.iter().any(Issue::is_error) {
        None
    } else {
        let sound = judged.sound.as_ref();
        sound.and_then(|(survey, order)| assemble::plan(survey, order))
    };
    Compiled {
        plan,
        issues: judged.issues,
    }
}

#[cfg(test)]
mod tests;
