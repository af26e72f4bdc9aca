//! Validation of a graph: every publication rule that can be decided without I/O
//! (wire-format.md §8, Q1–Q4; seed A "Graph validation and publication").
//!
//! One file per family of codes stands in `rules`, each rule beside its cases. A rule reads
//! the survey and adds what it found; rules do not know of each other, except that what
//! cannot be resolved is reported by one and passed over by the rest.

mod flow;
mod issue;
mod memory;
mod past;
mod rules;
mod survey;

#[cfg(test)]
pub(crate) mod cases;

pub use issue::{Issue, Location, Severity};
pub use memory::Memory;

pub(crate) use rules::mapping::planned as planned_mapping;
pub(crate) use rules::reference::{action as pinned_action, agent as pinned_agent, is_allowed};
pub(crate) use survey::Survey;

use crate::catalogue::Catalogue;
use crate::graph::Graph;
use crate::limits::Limits;
use flow::Flow;
use survey::NodeIx;

/// Judges a graph by every rule of §8, in the order of §8. Without a catalogue the rules
/// about agents, actions and permissions are not judged (Q3).
#[must_use]
pub fn check(graph: &Graph, catalogue: Option<&Catalogue>, limits: &Limits) -> Vec<Issue> {
    check_with(&mut Memory::default(), graph, catalogue, limits)
}

/// As [`check`], for an editor that checks again after each edit: what the last check learnt
/// about schemas is not worked out again. The issues are those of [`check`].
#[must_use]
pub fn check_with(
    memory: &mut Memory,
    graph: &Graph,
    catalogue: Option<&Catalogue>,
    limits: &Limits,
) -> Vec<Issue> {
    judge(memory, graph, catalogue, limits).issues
}

/// What judging a graph gives.
pub(crate) struct Judged<'g> {
    /// Everything that was found, in the order of §8.
    pub(crate) issues: Vec<Issue>,
    /// The graph's survey and its plan order; none where a limit is broken or there is a cycle.
    pub(crate) sound: Option<(Survey<'g>, Vec<NodeIx>)>,
}

pub(crate) fn judge<'g>(
    memory: &'g mut Memory,
    graph: &'g Graph,
    catalogue: Option<&'g Catalogue>,
    limits: &'g Limits,
) -> Judged<'g> {
    let mut issues = Vec::new();
    rules::limit::check(graph, limits, &mut issues);
    // Q2: what breaks a limit is not judged further.
    let sound = if issues.is_empty() {
        memory.begin();
        let survey = Survey::new(graph, catalogue, limits, memory);
        let flow = Flow::new(&survey);
        let order = flow.order();
        rules::check(&survey, &flow, order.as_deref(), &mut issues);
        survey.end();
        order.map(|order| (survey, order))
    } else {
        None
    };
    issues.sort_by(Issue::order);
    Judged { issues, sound }
}
