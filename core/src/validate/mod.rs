//! Validation of a graph: every publication rule that can be decided without I/O
//! (wire-format.md §8, Q1–Q4; seed A "Graph validation and publication").
//!
//! One file per family of codes stands in `rules`, each rule beside its cases. A rule reads
//! the survey and adds what it found; rules do not know of each other, except that what
//! cannot be resolved is reported by one and passed over by the rest.

mod flow;
mod issue;
mod rules;
mod survey;

#[cfg(test)]
mod cases;

pub use issue::{Issue, Location, Severity};

pub(crate) use flow::Flow;
pub(crate) use rules::reference::{action as pinned_action, agent as pinned_agent, is_allowed};
pub(crate) use rules::template;
pub(crate) use survey::Survey;

use crate::catalogue::Catalogue;
use crate::graph::Graph;
use crate::limits::Limits;

/// Judges a graph by every rule of §8, in the order of §8. Without a catalogue the rules
/// about agents, actions and permissions are not judged (Q3).
#[must_use]
pub fn check(graph: &Graph, catalogue: Option<&Catalogue>, limits: &Limits) -> Vec<Issue> {
    let mut issues = Vec::new();
    rules::limit::check(graph, limits, &mut issues);
    // Q2: what breaks a limit is not judged further.
    if issues.is_empty() {
        rules::check(&Survey::new(graph, catalogue, limits), &mut issues);
    }
    issues.sort_by(Issue::order);
    issues
}
