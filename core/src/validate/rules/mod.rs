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
use super::survey::Survey;
use crate::code::Code;

/// Every rule that is judged once the limits hold, each in one pass (Q2).
pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    let flow = Flow::new(survey);
    let order = flow.order();
    id::check(survey, issues);
    graph::check(survey, &flow, order.is_none(), issues);
    node::check(survey, &flow, order.is_some(), issues);
    port::check(survey, issues);
    edge::check(survey, issues);
    schema::check(survey, issues);
    mapping::check(survey, &flow, order.as_deref(), issues);
    gate::check(survey, issues);
    policy::check(survey, issues);
    reference::check(survey, issues);
    layout::check(survey, issues);
}

/// Adds an issue.
fn report(issues: &mut Vec<Issue>, code: Code, location: Location, message: impl Into<String>) {
    issues.push(Issue::new(code, location, message));
}
