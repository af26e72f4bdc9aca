//! The payload of each of the 21 events has exactly the members of the table in
//! run-machine.md §2, and is read strictly (seed A "Event envelope and catalog").

use serde_json::{Map, Value, json};
use sluicegate_core::code::Code;
use sluicegate_core::run::{Event, Payload};

fn hash() -> Value {
    format!("sha256:{}", "a".repeat(64)).into()
}

fn evidence(id: &str) -> Value {
    json!({"version": 1, "state": "available", "payloadId": id, "schemaId": "std.any",
        "hash": hash(), "originalByteSize": 2})
}

fn absent() -> Value {
    json!({"version": 1, "state": "absent", "schemaId": "std.any", "originalByteSize": 0,
        "reason": "not-emitted"})
}

fn rollups() -> Value {
    json!({
        "usage": {"version": 1, "state": "final", "inputTokens": 1, "outputTokens": 2,
            "totalTokens": 3, "includedChildRunIds": ["c"], "pricedChildRuns": 1,
            "unpricedChildRuns": 0, "actionInvocations": 0, "unpricedActions": 0},
        "cost": {"version": 1, "state": "final", "currency": "USD", "amountMicros": 5,
            "pricingSnapshotIds": ["p"], "unpricedChildRuns": 0, "unpricedActions": 0},
    })
}

fn actor() -> Value {
    json!({"kind": "user", "accountId": "a", "displayName": "Ada", "email": "ada@example.org"})
}

fn with(mut base: Value, more: Value) -> Value {
    let more: Map<String, Value> = more.as_object().unwrap().clone();
    base.as_object_mut().unwrap().extend(more);
    base
}

/// Type, the payload with every member, and which of them may be absent.
fn catalogue() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let limits = json!({"nodes": 1, "edges": 1, "schemas": 1, "graphBytes": 1, "inputBytes": 1,
        "envelopeBytes": 1, "previewBytes": 1, "attempts": 1, "durationMs": 1, "events": 1});
    let ended = json!({"code": "agent.declined", "message": "no", "nodeId": "n"});
    let answered = json!({"nodeId": "n", "attempt": 1, "childKind": "agent", "childId": "c"});
    vec![
        (
            "run.queued",
            json!({"mode": "live", "graphChecksum": hash(), "planHash": hash(),
                "compilerVersion": "1", "limits": limits, "input": evidence("input"),
                "workflowId": "w", "workflowKey": "k", "workflowRevision": 1, "actor": actor(),
                "origin": {"kind": "manual"}, "permissionDigest": hash()}),
            &[
                "workflowId",
                "workflowKey",
                "workflowRevision",
                "actor",
                "origin",
                "permissionDigest",
            ],
        ),
        (
            "run.claimed",
            json!({"workerId": "w", "fence": 1, "leaseExpiresAt": 2}),
            &["fence", "leaseExpiresAt"],
        ),
        (
            "run.recovered",
            json!({"workerId": "w", "fence": 2, "leaseExpiresAt": 3, "reason": "owner-gone",
                "prior": {"workerId": "v", "fence": 1, "leaseExpiresAt": 2}}),
            &[],
        ),
        ("node.ready", json!({"nodeId": "n"}), &[]),
        (
            "node.attempt.started",
            json!({"nodeId": "n", "attempt": 1, "semanticGroup": 1, "idempotencyKey": hash(),
                "input": evidence("n/1/input")}),
            &["idempotencyKey"],
        ),
        (
            "node.child.waiting",
            json!({"nodeId": "n", "attempt": 1, "childKind": "action", "childId": "c",
                "deadlineAt": 9}),
            &["deadlineAt"],
        ),
        (
            "node.attempt.settled",
            json!({"nodeId": "n", "attempt": 1, "status": "failed", "outcomePort": "failure",
                "output": evidence("n/1/failure"), "code": "agent.timeout",
                "classification": "retryable", "message": "late", "childTerminal": true,
                "usage": {"inputTokens": 1, "outputTokens": 2},
                "cost": {"amountMicros": 3, "pricingSnapshotId": "p"}}),
            &[
                "outcomePort",
                "output",
                "code",
                "classification",
                "message",
                "childTerminal",
                "usage",
                "cost",
            ],
        ),
        (
            "node.retry.scheduled",
            json!({"nodeId": "n", "attempt": 1, "semanticGroup": 1, "idempotencyKey": hash(),
                "code": "agent.timeout", "classification": "retryable", "backoffMs": 10,
                "nextAttemptAt": 20, "nextAttemptOffsetMs": 20}),
            &["idempotencyKey", "nextAttemptAt", "nextAttemptOffsetMs"],
        ),
        (
            "node.retry.started",
            json!({"nodeId": "n", "attempt": 2, "scheduledSequence": 7}),
            &[],
        ),
        (
            "node.skipped",
            json!({"nodeId": "n", "reason": "no-input"}),
            &[],
        ),
        (
            "edge.settled",
            json!({"edgeId": "e", "state": "closed", "selectedPort": "pass", "reason": "other-port",
                "source": {"nodeId": "n", "port": "fail", "attempt": 1},
                "target": {"nodeId": "m", "port": "input"}, "evidence": absent()}),
            &["selectedPort", "reason"],
        ),
        (
            "run.cancel.requested",
            json!({"requestedBy": actor(), "reason": "enough", "requestedAt": 5}),
            &["reason"],
        ),
        ("node.cancel.requested", answered.clone(), &["childId"]),
        ("node.cancel.acknowledged", answered.clone(), &["childId"]),
        (
            "node.cancel.not-acknowledged",
            with(answered, json!({"reason": "timeout"})),
            &["childId", "reason"],
        ),
        (
            "node.result.late-ignored",
            json!({"nodeId": "n", "attempt": 1, "childId": "c", "status": "succeeded",
                "output": evidence("n/1/success")}),
            &["output"],
        ),
        (
            "payload.retention.applied",
            json!({"policy": {"kind": "evidence", "days": 30},
                "payloads": [{"payloadId": "input", "kind": "evidence", "hash": hash(),
                    "priorState": "available"}]}),
            &[],
        ),
        (
            "run.succeeded",
            with(
                json!({"outputs": {"o": evidence("n/1/success")}}),
                rollups(),
            ),
            &[],
        ),
        ("run.failed", with(ended.clone(), rollups()), &["nodeId"]),
        ("run.refused", with(ended, rollups()), &["nodeId"]),
        (
            "run.cancelled",
            with(
                json!({"acknowledged": [{"nodeId": "n", "attempt": 1}], "notAcknowledged": []}),
                rollups(),
            ),
            &[],
        ),
    ]
}

fn read(name: &str, payload: &Value) -> Result<Event, Code> {
    let stored = json!({"sequence": 1, "type": name, "schemaVersion": 1, "payload": payload});
    Event::read(&stored).map_err(|error| {
        assert_eq!(error.sequence, 1);
        error.code
    })
}

fn unsupported(name: &str, payload: &Value, what: &str) {
    let refused = read(name, payload).map(|_| ());
    assert_eq!(
        refused,
        Err(Code::WorkflowEventSchemaUnsupported),
        "{name}: {what}"
    );
}

#[test]
fn d1_every_event_has_exactly_the_members_of_its_table() {
    let names: Vec<&str> = catalogue().iter().map(|(name, _, _)| *name).collect();
    assert_eq!(names, Payload::TYPES);
    for (name, full, optional) in catalogue() {
        assert_eq!(read(name, &full).unwrap().payload_value(), full, "{name}");
        let mut least = full.clone();
        for member in optional {
            let gone = least.as_object_mut().unwrap().remove(*member);
            assert!(gone.is_some(), "{name}: {member}");
        }
        assert_eq!(read(name, &least).unwrap().payload_value(), least, "{name}");
        for member in full.as_object().unwrap().keys() {
            let mut without = full.clone();
            without.as_object_mut().unwrap().remove(member);
            if optional.contains(&member.as_str()) {
                assert_eq!(read(name, &without).unwrap().payload_value(), without);
            } else {
                unsupported(name, &without, member);
            }
        }
    }
}

/// Every object inside a value, by pointer.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(at.to_owned());
            members
                .iter()
                .for_each(|(name, member)| objects(member, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            let places = items.iter().enumerate();
            places.for_each(|(i, item)| objects(item, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

#[test]
fn an_event_with_an_unknown_member_anywhere_or_a_null_is_not_read() {
    for (name, full, _) in catalogue() {
        let mut places = Vec::new();
        objects(&full, "", &mut places);
        for place in places {
            let mut more = full.clone();
            let object = more.pointer_mut(&place).unwrap().as_object_mut().unwrap();
            // Outputs are named by nodes: there any name is a member, and its value is judged.
            object.insert("stranger".to_owned(), json!(1));
            unsupported(name, &more, &place);
            for member in full.pointer(&place).unwrap().as_object().unwrap().keys() {
                let mut null = full.clone();
                null.pointer_mut(&place).unwrap()[member] = Value::Null;
                unsupported(name, &null, member);
            }
        }
    }
}

/// Every number inside a value, by pointer.
fn numbers(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let inside =
                |(name, member): (&String, &Value)| numbers(member, &format!("{at}/{name}"));
            members.iter().flat_map(inside).collect()
        }
        Value::Array(items) => {
            let places = items.iter().enumerate();
            let inside = |(i, item): (usize, &Value)| numbers(item, &format!("{at}/{i}"));
            places.flat_map(inside).collect()
        }
        Value::Number(_) => vec![at.to_owned()],
        _ => Vec::new(),
    }
}

#[test]
fn j6_instants_durations_and_money_are_integers() {
    let mut places = 0;
    for (name, full, _) in catalogue() {
        for place in numbers(&full, "") {
            for other in [json!(1.5), json!(-1), json!("1")] {
                let mut payload = full.clone();
                *payload.pointer_mut(&place).unwrap() = other;
                unsupported(name, &payload, &place);
            }
            places += 1;
        }
    }
    assert!(places > 90, "{places}");
}

#[test]
fn an_unknown_type_or_version_is_refused_by_its_code() {
    for (name, full, _) in catalogue() {
        unsupported(&format!("{name}.x"), &full, "type");
        for version in [0_u64, 2, u64::from(u32::MAX) + 2] {
            let stored =
                json!({"sequence": 4, "type": name, "schemaVersion": version, "payload": full});
            let error = Event::read(&stored).unwrap_err();
            assert_eq!(
                (error.code, error.sequence),
                (Code::WorkflowEventSchemaUnsupported, 4)
            );
        }
    }
}

#[test]
fn the_envelope_of_an_event_is_read_strictly_too() {
    let whole = json!({"eventId": "r:1", "tenantId": "t", "runId": "r", "sequence": 1,
        "type": "node.ready", "schemaVersion": 1, "payload": {"nodeId": "n"}, "recordedAt": 3,
        "virtualOffsetMs": 4});
    let event = Event::read(&whole).unwrap();
    let core = serde_json::to_value(&event).unwrap();
    assert_eq!(
        core,
        json!({"sequence": 1, "type": "node.ready", "schemaVersion": 1, "payload": {"nodeId": "n"},
            "recordedAt": 3, "virtualOffsetMs": 4})
    );
    for member in whole.as_object().unwrap().keys() {
        let mut other = whole.clone();
        other[member] = Value::Null;
        assert!(Event::read(&other).is_err(), "{member}");
        other.as_object_mut().unwrap().remove(member);
        let needed = ["sequence", "type", "schemaVersion", "payload"].contains(&member.as_str());
        assert_eq!(Event::read(&other).is_err(), needed, "{member}");
    }
    let mut more = whole;
    more["stranger"] = json!(1);
    assert!(Event::read(&more).is_err());
}
