//! Stored formats keep loading for ever: the golden files of `core/tests/formats`
//! (run-machine.md §1, D4, H2; wire-format.md G1, J2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::actor::Origin;
use sluicegate_core::audit::{self, Draft, Head, Subject};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Code;
use sluicegate_core::compile::{compile, dry_run};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::{COMPILER_VERSION, PLAN_VERSION, Plan, PlanError};
use sluicegate_core::run::{
    ChildOutcome, Command, EVENT_SCHEMA_VERSION, Event, Payload, PayloadKind, RetentionApplied,
    RetentionPolicy, RetiredPayload, Start, WorkflowReference, fold_events, overlay,
};
use sluicegate_core::simulate::{Fixtures, simulate};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, canonical};

use super::life::{Life, Manner, Script};
use super::live::{failure, success, user};

/// The runs that stand in the folder.
const RUNS: [&str; 6] = [
    "cancelled",
    "cancelled-late",
    "failed",
    "paid",
    "refused",
    "simulated",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn stored(name: &str) -> Value {
    let text =
        std::fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    value::read(&text).unwrap()
}

fn graph() -> Graph {
    Graph::read(&stored("graph-v1.json")).unwrap()
}

fn catalogue() -> Catalogue {
    Catalogue::read(&stored("catalogue-v1.json")).unwrap()
}

fn plan() -> Plan {
    Plan::read(&stored("plan-v1.json")).unwrap()
}

fn events(run: &str) -> Vec<Value> {
    stored(&format!("run-v1.{run}.json"))
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn the_files_are_the_canonical_bytes_that_were_pinned() {
    let pins = stored("pins-v1.json");
    assert_eq!(pins["planVersion"], PLAN_VERSION);
    assert_eq!(pins["compilerVersion"], COMPILER_VERSION);
    assert_eq!(pins["eventSchemaVersion"], EVENT_SCHEMA_VERSION);
    assert_eq!(pins["graphChecksum"], json!(graph().checksum().unwrap()));
    assert_eq!(pins["planHash"], json!(plan().hash()));
    let files = pins["files"].as_object().unwrap();
    for (name, hash) in files {
        assert_eq!(
            json!(value::hash(&stored(name))),
            *hash,
            "{name} was edited"
        );
    }
    // Nothing stands there that is not pinned.
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("-v1") && name != "pins-v1.json")
        .collect();
    assert_eq!(there, files.keys().cloned().collect());
}

#[test]
fn g1_the_stored_graph_compiles_to_the_stored_plan_byte_for_byte() {
    let compiled = compile(&graph(), Some(&catalogue()), &Limits::default());
    assert_eq!(compiled.issues, []);
    let made = value::to_value(&compiled.plan.unwrap()).unwrap();
    assert_eq!(canonical(&made), canonical(&stored("plan-v1.json")));
    let report = dry_run(&graph(), None, Some(&catalogue()), None, &Limits::default());
    let made = value::to_value(&report).unwrap();
    assert_eq!(canonical(&made), canonical(&stored("dry-run-v1.json")));
}

#[test]
fn a_stored_plan_loads_and_is_written_again_as_it_was() {
    let plan = plan();
    let again = value::to_value(plan.document()).unwrap();
    assert_eq!(canonical(&again), canonical(&stored("plan-v1.json")));
    let types: BTreeSet<_> = plan
        .nodes()
        .iter()
        .map(|node| node.task.node_type().as_str())
        .collect();
    assert_eq!(types.len(), 8, "all node types: {types:?}");
}

#[test]
fn a_plan_of_another_version_or_with_unknown_members_is_refused() {
    let whole = stored("plan-v1.json");
    for (member, other) in [("planVersion", json!(2)), ("compilerVersion", json!("2"))] {
        let mut plan = whole.clone();
        plan[member] = other;
        // Another version may have any shape, and is still refused as another version.
        plan["nodes"] = json!({"shape": "other"});
        let refused = Plan::read(&plan).unwrap_err();
        assert!(matches!(refused, PlanError::Version { .. }), "{refused}");
    }
    for place in [
        "",
        "/nodes/0",
        "/nodes/3",
        "/nodes/3/policy",
        "/nodes/6/contract",
        "/edges/0",
    ] {
        let mut plan = whole.clone();
        let object = plan.pointer_mut(place).unwrap();
        object["stranger"] = json!(1);
        let refused = Plan::read(&plan).unwrap_err();
        assert!(matches!(refused, PlanError::Shape(_)), "{place}: {refused}");
    }
}

#[test]
fn stored_events_fold_to_the_stored_state_and_are_written_again_as_they_were() {
    let plan = plan();
    let mut types = BTreeSet::new();
    for name in RUNS {
        let events = events(name);
        let run = fold_events(&plan, &events).unwrap();
        let picture = value::to_value(&overlay(&plan, &run)).unwrap();
        let known = stored(&format!("overlay-v1.{name}.json"));
        assert_eq!(canonical(&picture), canonical(&known), "{name}");
        for event in events {
            let read = Event::read(&event).unwrap();
            types.insert(read.payload.type_name());
            let again = value::to_value(&read).unwrap();
            assert_eq!(canonical(&again), canonical(&event), "{name}");
        }
    }
    let all: BTreeSet<&str> = Payload::TYPES.iter().copied().collect();
    assert_eq!(types, all, "together they hold all types");
}

#[test]
fn x4_the_stored_simulation_is_made_again_byte_for_byte() {
    let events = Value::Array(made_simulation());
    assert_eq!(
        canonical(&events),
        canonical(&stored("run-v1.simulated.json"))
    );
}

#[test]
fn stored_events_of_another_version_are_refused() {
    let plan = plan();
    let mut events = events("paid");
    events[3]["schemaVersion"] = json!(2);
    let corrupt = fold_events(&plan, &events).unwrap_err();
    assert_eq!(corrupt.code, Code::WorkflowEventSchemaUnsupported);
    assert_eq!(corrupt.sequence, 4);
    events[3]["schemaVersion"] = json!(1);
    events[3]["sequence"] = json!(5);
    let corrupt = fold_events(&plan, &events).unwrap_err();
    assert_eq!(corrupt.code, Code::WorkflowEventTransitionInvalid);
}

#[test]
fn h2_the_stored_chain_is_valid_with_the_stored_events() {
    let chain = stored("audit-v1.json");
    let head: Head = serde_json::from_value(chain["head"].clone()).unwrap();
    let entries = chain["entries"].as_array().unwrap();
    let full: Vec<Value> = RUNS
        .iter()
        .flat_map(|name| full_events(name, &events(name)))
        .collect();
    let answer = audit::verify(entries, Some(head), Some(&full));
    assert!(answer.valid, "{answer:?}");
    for entry in entries {
        let read: audit::Entry = serde_json::from_value(entry.clone()).unwrap();
        assert_eq!(value::to_value(&read).unwrap(), *entry);
    }
}

/// Every object inside a value that is evidence of a payload.
fn evidence_in<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) if members.contains_key("payloadId") => found.push(value),
        Value::Object(members) => members.values().for_each(|one| evidence_in(one, found)),
        Value::Array(items) => items.iter().for_each(|one| evidence_in(one, found)),
        _ => {}
    }
}

#[test]
fn d1_retention_expires_what_may_be_shown_and_nothing_else() {
    let (plan, events) = (plan(), events("paid"));
    let picture = |events: &[Value]| {
        let run = fold_events(&plan, events).unwrap();
        value::to_value(&overlay(&plan, &run)).unwrap()
    };
    let (last, kept) = events.split_last().unwrap();
    assert_eq!(last["type"], "payload.retention.applied");
    let before = picture(kept);
    let mut was = Vec::new();
    evidence_in(&before, &mut was);
    let all: BTreeSet<_> = was
        .iter()
        .map(|one| one["payloadId"].as_str().unwrap())
        .collect();
    for gone in [BTreeSet::from(["input"]), all] {
        let retired = gone
            .iter()
            .map(|id| json!({"payloadId": id, "kind": "evidence"}));
        // What only execution needed was never shown.
        let execution = json!({"payloadId": "pay/1/success", "kind": "execution"});
        let mut events = events.clone();
        events[kept.len()]["payload"]["payloads"] = retired.chain([execution]).collect();
        let after = picture(&events);
        let mut is = Vec::new();
        evidence_in(&after, &mut is);
        assert_eq!(was.len(), is.len());
        for (was, is) in was.iter().zip(&is) {
            let mut expected = (*was).clone();
            if gone.contains(was["payloadId"].as_str().unwrap()) {
                expected["state"] = json!("expired");
                expected["reason"] = json!("retention");
            }
            assert_eq!(**is, expected);
        }
    }
}

/// Events as a server stores them.
fn full_events(name: &str, events: &[Value]) -> Vec<Value> {
    let full = |event: &Value| {
        let mut event = event.clone();
        event["tenantId"] = json!("t1");
        event["runId"] = json!(name);
        event["eventId"] = json!(format!("{name}:{}", event["sequence"]));
        event
    };
    events.iter().map(full).collect()
}

fn input() -> Value {
    json!({"amount": 12.5, "note": "flight", "token": "tok-4711-secret"})
}

fn fixtures() -> Value {
    json!({"nodes": {
        "decide": {"attempts": [
            {"outcome": "failure", "code": "agent.timeout", "simulatedDurationMs": 60_000},
            {"outcome": "pass", "data": {"why": "it is fair"}, "reason": "rule 1", "simulatedDurationMs": 800}]},
        "write": {"attempts": [{"outcome": "success", "output": "Dear Ada", "simulatedDurationMs": 500}]},
        "pay": {"attempts": [{"outcome": "success", "output": {"id": "r-1"}}]},
        "check": {"simulatedDurationMs": 5}}})
}

fn made_simulation() -> Vec<Value> {
    let fixtures = Fixtures::read(&fixtures()).unwrap();
    let (limits, reference) = (Limits::default(), WorkflowReference::default());
    let done = simulate(&plan(), Arc::new(input()), &fixtures, &limits, reference).unwrap();
    done.events
        .iter()
        .map(|event| value::to_value(event).unwrap())
        .collect()
}

/// What the children of a golden run answer.
fn answer(run: &str, start: &Start) -> ChildOutcome {
    match (run, start.node_id.as_str(), start.attempt) {
        ("paid", "decide", 1) => failure("agent.timeout"),
        ("failed", "write", _) => failure("agent.declined"),
        ("refused", "write", _) => ChildOutcome::Refused {
            code: "permission.denied".to_owned(),
            message: "claims.read is needed".to_owned(),
        },
        (_, "decide", _) => ChildOutcome::Decision {
            answer: Arc::new(
                json!({"decision": "pass", "data": {"why": "it is fair"}, "reason": "rule 1"}),
            ),
        },
        (_, "write", _) => success(json!("Dear Ada")),
        _ => success(json!({"id": "r-1"})),
    }
}

/// The events of one golden run, commit by commit.
fn made_run(plan: &Plan, name: &'static str) -> Vec<Vec<Value>> {
    let script: Script = Rc::new(move |start| answer(name, start));
    let mut life = Life::new(plan, &input(), script, Limits::default());
    let mut ends = vec![life.log.len()];
    life.claim();
    ends.push(life.log.len());
    loop {
        let at = life
            .run
            .nodes()
            .iter()
            .flat_map(|node| &node.attempts)
            .last();
        let waits = at.is_some_and(|attempt| attempt.child.is_some() && attempt.status.is_none());
        let node = plan
            .nodes()
            .iter()
            .zip(life.run.nodes())
            .find(|(_, state)| {
                state
                    .attempts
                    .last()
                    .is_some_and(|attempt| attempt.status.is_none())
            });
        let node = node.map(|(node, _)| node.id.as_str());
        let requested = life.run.cancellation().is_some();
        let stops = match name {
            "cancelled" => waits && node == Some("decide"),
            "cancelled-late" => waits && node == Some("pay"),
            _ => false,
        };
        if stops && !requested {
            life.cancel().unwrap();
        } else {
            if name == "paid" && waits && node == Some("write") {
                life.claim();
                ends.push(life.log.len());
            }
            life.now += 250;
            let manner = if name == "cancelled" {
                Manner::Stops
            } else {
                Manner::Rejects
            };
            if !life.step(manner) {
                break;
            }
        }
        ends.push(life.log.len());
    }
    if name == "paid" {
        let retired = |id: &str, kind| RetiredPayload {
            payload_id: id.into(),
            kind,
            hash: None,
            prior_state: None,
        };
        life.now += 86_400_000;
        let applied = RetentionApplied {
            policy: RetentionPolicy {
                kind: "evidence".to_owned(),
                days: 1,
            },
            payloads: vec![
                retired("input", PayloadKind::Evidence),
                retired("pay/1/success", PayloadKind::Execution),
            ],
        };
        life.decide(Command::Retire(applied)).unwrap();
        ends.push(life.log.len());
    }
    let mut from = 0;
    let commit = |to: usize| {
        let events = life.log[std::mem::replace(&mut from, to)..to].iter();
        events
            .map(|event| value::to_value(event).unwrap())
            .collect()
    };
    ends.into_iter().map(commit).collect()
}

/// Every stored document of today's versions is there. `SLUICEGATE_WRITE_FORMATS` adds what is
/// not, for a new version, and touches no other.
#[test]
fn every_format_of_today_is_stored() {
    let mut missing = Vec::new();
    let mut write = |name: &str, document: &Value| {
        let path = folder().join(name);
        if path.exists() {
            return;
        }
        if std::env::var_os("SLUICEGATE_WRITE_FORMATS").is_some() {
            std::fs::write(path, format!("{}\n", canonical(document))).unwrap();
        } else {
            missing.push(name.to_owned());
        }
    };
    let compiled = compile(&graph(), Some(&catalogue()), &Limits::default());
    write(
        "plan-v1.json",
        &value::to_value(&compiled.plan.unwrap()).unwrap(),
    );
    let report = dry_run(&graph(), None, Some(&catalogue()), None, &Limits::default());
    write("dry-run-v1.json", &value::to_value(&report).unwrap());
    let plan = plan();
    let (mut head, mut entries) = (Head::default(), Vec::new());
    for name in RUNS {
        let commits = match name {
            "simulated" => vec![made_simulation()],
            name => made_run(&plan, name),
        };
        for commit in commits.iter().filter(|_| name != "simulated") {
            let Some((action, metadata)) = audit::of_decision(&full_events(name, commit)) else {
                continue;
            };
            let draft = Draft {
                tenant_id: "t1".into(),
                actor: user(),
                origin: Some(Origin::Manual),
                action,
                subject: Subject {
                    kind: "run".to_owned(),
                    id: name.to_owned(),
                },
                metadata,
                occurred_at: Instant(commit.last().unwrap()["recordedAt"].as_u64().unwrap()),
            };
            let entry = draft.seal(&head).unwrap();
            head = entry.head();
            entries.push(entry);
        }
        let events = commits.concat();
        let picture = overlay(&plan, &fold_events(&plan, &events).unwrap());
        write(&format!("run-v1.{name}.json"), &events.into());
        write(
            &format!("overlay-v1.{name}.json"),
            &value::to_value(&picture).unwrap(),
        );
    }
    write("audit-v1.json", &json!({"entries": entries, "head": head}));
    let files: BTreeMap<String, Value> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("-v1"))
        .map(|name| (name.clone(), json!(value::hash(&stored(&name)))))
        .collect();
    write(
        "pins-v1.json",
        &json!({"planVersion": PLAN_VERSION, "compilerVersion": COMPILER_VERSION,
            "eventSchemaVersion": EVENT_SCHEMA_VERSION, "graphChecksum": graph().checksum().unwrap(),
            "planHash": plan.hash(), "files": files}),
    );
    assert!(missing.is_empty(), "not stored: {missing:?}");
}
