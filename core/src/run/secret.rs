//! Which marks a payload has (wire-format.md S5): those of the schema that it was made under,
//! and those of the plan for the port where it stands.

use super::state::Run;
use crate::evidence::Secrets;
use crate::ids::PayloadId;
use crate::plan::{Mark, NodeIndex, Plan, Task};
use crate::value::Value;

/// The marks of what stands at the place that a payload's id names.
fn marks<'p>(plan: &'p Plan, id: &PayloadId) -> &'p [Mark] {
    let mut parts = id.as_str().rsplitn(3, '/');
    let place: Option<(NodeIndex, &str)> = match (parts.next(), parts.next(), parts.next()) {
        // The run's input is what its input node lets out.
        (Some("input"), None, None) => plan.input().map(|index| (index, "data")),
        (Some(port), Some(_), Some(node)) => plan.find_node(node).map(|index| (index, port)),
        _ => None,
    };
    place.map_or(&[], |(index, port)| match plan.node(index).task {
        // What a merge collected is what it lets out.
        Task::Merge => plan.marks(index, "data"),
        _ => plan.marks(index, port),
    })
}

/// Whether some schema marks a place of this payload, here or further on.
pub(super) fn is_marked(plan: &Plan, run: &Run, id: &PayloadId) -> bool {
    let made_under = run.payloads().get(id).map(|fact| &fact.schema_id);
    plan.holds_secret()
        && (made_under.is_some_and(|schema| plan.schema(schema).holds_secret())
            || !marks(plan, id).is_empty())
}

/// Learns what of a payload is secret, here or further on.
pub(super) fn learn(secrets: &mut Secrets, plan: &Plan, run: &Run, id: &PayloadId, value: &Value) {
    if !plan.holds_secret() {
        return;
    }
    if let Some(fact) = run.payloads().get(id) {
        secrets.learn(plan.schema(&fact.schema_id), value);
    }
    for mark in marks(plan, id) {
        mark.judged(value, |schema, part| secrets.learn(schema, part));
    }
}
