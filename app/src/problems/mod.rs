//! The compiler's issues, live, each with a way to its place (web.md §2 "Problems").

use std::collections::HashMap;
use std::sync::Arc;

use leptos::prelude::*;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Code;
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::validate::{self, Issue, Location, Memory};

use crate::canvas::gesture::Item;
use crate::canvas::view::{Canvas, Marks};
use crate::ui::icon::{Icon, icon};

/// What is wrong with a graph. With a server at hand its catalogue is only a moment away, so
/// nothing is said about its absence. The memory is that of the last check of this graph, so that
/// an edit costs only what it changed.
pub(crate) fn check(
    memory: &mut Memory,
    graph: &Graph,
    catalogue: Option<&Catalogue>,
) -> Vec<Issue> {
    let mut issues = validate::check_with(memory, graph, catalogue, &Limits::default());
    issues.retain(|issue| issue.code != Code::CatalogueAbsent);
    issues
}

/// How many errors and warnings each node has; an edge's count at its target would hide
/// where it is, so edges are marked by their own place in the list.
pub(crate) fn marks(issues: &[Issue]) -> Marks {
    let mut marks = HashMap::new();
    for issue in issues {
        if let Location::Node { node_id, .. } = &issue.location {
            let (errors, warnings) = marks.entry(node_id.clone()).or_default();
            *(if issue.is_error() { errors } else { warnings }) += 1;
        }
    }
    marks
}

/// The item that an issue is about, if it is about one.
pub(crate) fn item(issue: &Issue) -> Option<Item> {
    match &issue.location {
        Location::Node { node_id, .. } => Some(Item::Node(node_id.clone())),
        Location::Edge { edge_id, .. } => Some(Item::Edge(edge_id.clone())),
        Location::Graph { .. } | Location::Input { .. } => None,
    }
}

/// Errors and warnings as one sentence.
pub(crate) fn summary(issues: &[Issue]) -> String {
    let errors = issues.iter().filter(|issue| issue.is_error()).count();
    let warnings = issues.len() - errors;
    let many = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => "No problems".to_owned(),
        (0, warnings) => many(warnings, "warning"),
        (errors, 0) => many(errors, "problem"),
        (errors, warnings) => format!("{}, {}", many(errors, "problem"), many(warnings, "warning")),
    }
}

/// The panel.
pub(crate) fn panel(issues: Memo<Arc<Vec<Issue>>>, canvas: Canvas) -> AnyView {
    let list = move || {
        let issues = issues.get();
        if issues.is_empty() {
            return view! {
                <p class="quiet">
                    {icon(Icon::Done)}
                    "Nothing is wrong with this graph. It can be simulated and published."
                </p>
            }
            .into_any();
        }
        let lines = issues
            .iter()
            .cloned()
            .map(|issue| line(issue, canvas))
            .collect_view();
        view! { <ul class="issues">{lines}</ul> }.into_any()
    };
    view! { <section class="problems" aria-label="Problems">{list}</section> }.into_any()
}

fn line(issue: Issue, canvas: Canvas) -> AnyView {
    let at = item(&issue);
    let place = match &issue.location {
        Location::Graph { path } => path.clone().unwrap_or_else(|| "graph".to_owned()),
        Location::Input { path } => format!("input {path}"),
        Location::Node { node_id, path } => {
            format!("{node_id}{}", path.clone().unwrap_or_default())
        }
        Location::Edge { edge_id, path } => {
            format!("{edge_id}{}", path.clone().unwrap_or_default())
        }
    };
    let tone = if issue.is_error() {
        "danger"
    } else {
        "waiting"
    };
    let picture = if issue.is_error() {
        Icon::Error
    } else {
        Icon::Warning
    };
    let go = move |_| match at.clone() {
        Some(at) => {
            canvas.document.select_only([at.clone()]);
            canvas.reveal(&at);
        }
        None => canvas.document.select_only([]),
    };
    view! {
        <li>
            <button type="button" on:click=go data-tone=tone>
                {icon(picture)}
                <span class="message">{issue.message.clone()}</span>
                <span class="mono muted">{place}</span>
                <span class="mono code">{issue.code.as_str()}</span>
            </button>
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web2_marks_count_errors_and_warnings_of_each_node() {
        let at = |id: &str| Location::node(&id.into());
        let issues = [
            Issue::new(Code::NodeDeadEnd, at("a"), ""),
            Issue::new(Code::NodeIncomplete, at("a"), ""),
            Issue::new(Code::MappingSourceUncertain, at("a"), ""),
            Issue::new(Code::SchemaUnused, Location::graph(), ""),
        ];
        assert_eq!(marks(&issues), Marks::from([("a".into(), (2, 1))]));
        assert_eq!(summary(&issues), "2 problems, 2 warnings");
        assert_eq!(summary(&issues[..1]), "1 problem");
        assert_eq!(summary(&[]), "No problems");
    }
}
