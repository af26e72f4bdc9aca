//! `layout.orphan` (wire-format.md Q1): a warning, for layout is no part of the meaning.

use super::{report, shown};
use crate::code::Code;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;
use crate::value::escape;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for id in survey.graph.layout.keys() {
        if survey.find(id.as_str()).is_none() {
            let location = Location::graph_at(format!("/layout/{}", escape(id.as_str())));
            let message = format!(
                "The layout places {}, which does not exist; remove it.",
                shown(id.as_str())
            );
            report(issues, Code::LayoutOrphan, location, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::graph::Graph;
    use crate::limits::Limits;
    use crate::validate::cases::{found, sound};
    use crate::validate::check;

    #[test]
    fn q1_a_place_without_a_node_is_a_warning() {
        let mut graph = sound();
        graph["layout"] = json!({"in": {"x": 0, "y": 0}, "a/b": {"x": 0, "y": 0}});
        assert_eq!(found(&graph), ["layout.orphan graph /layout/a~1b"]);
        let graph = Graph::read(&graph).unwrap();
        let issues = check(&graph, None, &Limits::default());
        assert!(issues.iter().all(|issue| !issue.is_error()));
    }
}
