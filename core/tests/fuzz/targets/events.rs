//! The doors of a stored run: plans, events, the fold and its rows.

use serde_json::Value;
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    Command, Envelopes, Event, Run, Time, decide, effects, fold_events, needs, overlay, project,
    run_row,
};
use sluicegate_core::time::Instant;

use super::{document, member};

/// §1, A9: any log folds or is refused where it is wrong; what was folded can be shown, and
/// goes on or is refused.
pub(crate) fn events(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let Ok(plan) = Plan::read(member(&document, "plan")) else {
        return false;
    };
    let none = Vec::new();
    let stored = member(&document, "events").as_array().unwrap_or(&none);
    let mut run = Run::new(&plan, TenantId::from("simulation"), RunId::from("r"));
    let mut log = Vec::new();
    for (at, stored) in stored.iter().enumerate() {
        // Numbers by place, so that a log that lost an event is not refused for its gap alone.
        let mut numbered = stored.clone();
        if let (Value::Object(members), false) = (&mut numbered, at % 16 == 15) {
            members.insert("sequence".to_owned(), (run.sequence() + 1).into());
        }
        let Ok(event) = Event::read(&numbered) else {
            continue;
        };
        let before = run.clone();
        match run.apply(&plan, &event) {
            Ok(()) => {
                let _ = project(&plan, &run, std::slice::from_ref(&event));
                log.push(event);
            }
            Err(_) => assert_eq!(run, before, "a refused event changes nothing"),
        }
        shown(&plan, &run);
    }
    let _ = (project(&plan, &run, &log), overlay(&plan, &run));
    if let Ok(run) = fold_events(&plan, stored) {
        shown(&plan, &run);
    }
    let now = Instant(run.clock().recorded_at.map_or(0, |at| at.0));
    let cancel = Command::Cancel {
        requested_by: crate::corpus::actor(),
        reason: None,
    };
    for command in [Command::Continue, cancel] {
        // A log that nobody wrote may say what no run can: refused, never a panic.
        let _ = decide(&plan, &run, &Envelopes::new(), Time::Live(now), command);
    }
    !log.is_empty()
}

/// What follows from a state alone.
fn shown(plan: &Plan, run: &Run) {
    let _ = (effects(plan, run), needs(plan, run), run_row(plan, run));
}
