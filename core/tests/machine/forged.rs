//! An event that says one thing else than what happened (run-machine.md §1, A9): `apply` takes
//! it only where nothing that stands before it could know better.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sluicegate_core::code::Code;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, Run};
use sluicegate_core::value;

use super::transitions::{cases, logs, shape};

/// Member → every value that any event has there.
type Pool = BTreeMap<String, BTreeMap<String, Value>>;

/// Type and status → what may be said otherwise.
type Free = BTreeMap<String, BTreeSet<String>>;

/// What happened: the type, and the status or state that the event gives.
fn kind(event: &Value) -> String {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let payload = &event["payload"];
    let status = word(&payload["status"]).or_else(|| word(&payload["state"]));
    let words = [word(&event["type"]), status];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The event with one member of its payload removed (`-`), changed (`~`) or added (`+`).
fn forgeries(event: &Value, pool: &Pool) -> Vec<(String, Value)> {
    let mut forged = Vec::new();
    for (name, values) in pool {
        let (path, known) = (
            format!("/payload/{name}"),
            event.pointer(&format!("/payload/{name}")),
        );
        let mut with = |what: &str, value: Option<&Value>| {
            let mut other = event.clone();
            let (owner, member) = path.rsplit_once('/').unwrap();
            let Some(owner) = other.pointer_mut(owner).and_then(Value::as_object_mut) else {
                return;
            };
            match value {
                Some(value) => owner.insert(member.to_owned(), value.clone()),
                None => owner.remove(member),
            };
            forged.push((format!("{what}{name}"), other));
        };
        match known {
            Some(known) => {
                with("-", None);
                if let Some(number) = known.as_u64() {
                    with("~", Some(&(number + 1).into()));
                }
                for value in values.values().filter(|value| *value != known) {
                    with("~", Some(value));
                }
                if known.is_object() {
                    with("~", Some(&Value::Object(value::Map::new())));
                }
            }
            None => {
                for value in values.values() {
                    with("+", Some(value));
                }
            }
        }
    }
    forged
}

/// The places of a payload that are forged: its members, and those of an edge's ends.
fn members(payload: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in payload.as_object().unwrap() {
        match (name.as_str(), value) {
            ("source" | "target", Value::Object(end)) => {
                for (inner, value) in end {
                    found.push((format!("{name}/{inner}"), value.clone()));
                }
            }
            _ => found.push((name.clone(), value.clone())),
        }
    }
    found
}

/// What `apply` takes although it is not what happened.
fn taken(plan: &Plan, fixtures: &[Value], accepted: &mut Free) {
    let (mut places, mut pool) = (BTreeMap::new(), BTreeMap::<String, Pool>::new());
    for log in logs(plan, fixtures) {
        let mut run = Run::new(plan, "t1".into(), "r1".into());
        for event in log {
            let wire = serde_json::to_value(&event).unwrap();
            for (name, value) in members(&wire["payload"]) {
                let kind = wire["type"].as_str().unwrap().to_owned();
                let values = pool.entry(kind).or_default().entry(name).or_default();
                values.insert(value.to_string(), value);
            }
            let place = format!("{:?} {}", shape(&run), wire["payload"]);
            places.entry(place).or_insert_with(|| (run.clone(), wire));
            run.apply(plan, &event).unwrap();
        }
    }
    for (run, wire) in places.values() {
        for (what, forged) in forgeries(wire, &pool[wire["type"].as_str().unwrap()]) {
            let Ok(event) = serde_json::from_value::<Event>(forged) else {
                continue;
            };
            let mut next = run.clone();
            match next.apply(plan, &event) {
                Ok(()) => {
                    accepted.entry(kind(wire)).or_default().insert(what);
                }
                Err(corrupt) => {
                    assert_eq!(corrupt.code, Code::WorkflowEventTransitionInvalid, "{what}");
                    assert_eq!(&next, run, "a refused event changes nothing: {what}");
                }
            }
        }
    }
}

#[test]
fn a9_apply_takes_no_event_that_what_stands_before_it_contradicts() {
    let mut accepted = Free::new();
    for (plan, fixtures) in cases() {
        taken(&plan, &fixtures, &mut accepted);
    }
    let lines = accepted.into_iter().map(|(kind, free)| {
        let free: Vec<_> = free.into_iter().collect();
        format!("{kind}: {}", free.join(" "))
    });
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines, FREE, "{lines:#?}");
}

/// What only the event itself knows, in some state at least: what there is of a child, of costs and
/// times, and which of several things that could happen did.
const FREE: [&str; 21] = [
    "edge.settled skipped: ~reason",
    "node.attempt.settled cancelled: +childTerminal +classification +cost +message +usage \
     -childTerminal -code -cost -usage ~childTerminal ~code",
    "node.attempt.settled failed: +cost -childTerminal -cost -message -usage \
     ~childTerminal ~classification ~code ~message ~output ~status",
    "node.attempt.settled refused: +childTerminal -cost -message -usage ~classification \
     ~code ~message ~output ~status",
    "node.attempt.settled succeeded: +childTerminal +classification +code +cost +message \
     +usage -childTerminal -cost -usage ~childTerminal ~outcomePort ~output",
    "node.attempt.started: +idempotencyKey -idempotencyKey ~idempotencyKey ~input ~nodeId \
     ~semanticGroup",
    "node.cancel.acknowledged: +childId -childId ~childId",
    "node.cancel.not-acknowledged: -childId ~childId ~reason",
    "node.cancel.requested: +childId -childId ~childId",
    "node.child.waiting: -deadlineAt ~childId ~deadlineAt",
    "node.ready: ~nodeId",
    "node.result.late-ignored failed: +output ~status",
    "node.result.late-ignored succeeded: -output ~output ~status",
    "node.retry.scheduled: ~backoffMs ~nextAttemptAt",
    "node.skipped: ~nodeId ~reason",
    "run.cancel.requested: ~requestedAt",
    "run.claimed: -fence -leaseExpiresAt ~fence ~leaseExpiresAt",
    "run.failed: +nodeId -nodeId ~code ~message",
    "run.queued: -actor -origin -permissionDigest -workflowId -workflowKey \
     -workflowRevision ~workflowRevision",
    "run.recovered: ~fence ~leaseExpiresAt ~prior",
    "run.refused: +nodeId -nodeId ~message",
];
