//! The rules, one file per family of codes (wire-format.md §8).

mod edge;
mod gate;
mod graph;
mod id;
mod layout;
pub(super) mod limit;
mod mapping;
mod node;
mod policy;
mod port;
pub(crate) mod reference;
mod schema;
pub(crate) mod template;

use super::flow::Flow;
use super::issue::{Issue, Location};
use super::survey::{NodeIx, Survey};
use crate::code::Code;

/// Every rule that is judged once the limits hold, each in one pass (Q2). There is no plan
/// order while there is a cycle.
pub(super) fn check(
    survey: &Survey<'_>,
    flow: &Flow,
    order: Option<&[NodeIx]>,
    issues: &mut Vec<Issue>,
) {
    id::check(survey, issues);
    graph::check(survey, flow, order.is_none(), issues);
    node::check(survey, flow, order.is_some(), issues);
    port::check(survey, issues);
    edge::check(survey, issues);
    schema::check(survey, issues);
    mapping::check(survey, flow, order, issues);
    gate::check(survey, issues);
    policy::check(survey, issues);
    reference::check(survey, issues);
    layout::check(survey, issues);
}

/// Adds an issue.
fn report(issues: &mut Vec<Issue>, code: Code, location: Location, message: impl Into<String>) {
    issues.push(Issue::new(code, location, message));
}
