//! The rules, one file per family of codes (wire-format.md §8).

mod edge;
mod gate;
mod graph;
mod id;
mod layout;
pub(super) mod limit;
pub(crate) mod mapping;
mod node;
mod policy;
mod port;
pub(crate) mod reference;
mod schema;
mod template;

use std::fmt;

use super::flow::Flow;
use super::issue::{Issue, Location};
use super::survey::{NodeIx, Survey};
use crate::code::Code;
use crate::graph::Node;

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

/// A text of the graph as a message repeats it: its beginning, for a draft may hold an identifier
/// as long as itself, and many messages may name it.
#[derive(Clone, Copy)]
struct Shown<'t>(&'t str);

/// Characters of one text that a message repeats.
const SHOWN: usize = 120;

fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// What a message calls a node.
fn title(node: &Node) -> Shown<'_> {
    Shown(node.title())
}

impl<'t> Shown<'t> {
    fn split(self) -> (&'t str, &'static str) {
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => (self.0.get(..end).unwrap_or_default(), "…"),
            None => (self.0, ""),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, more) = self.split();
        write!(f, "{text}{more}")
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, more) = self.split();
        write!(f, "{text:?}{more}")
    }
}

/// Adds an issue.
fn report(issues: &mut Vec<Issue>, code: Code, location: Location, message: impl Into<String>) {
    issues.push(Issue::new(code, location, message));
}
