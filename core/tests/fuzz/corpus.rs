//! The documents that are bent: what the golden vectors are given, the samples, and what the
//! run machine makes of both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sluicegate_core::actor::{Actor, Origin, UserActor};
use sluicegate_core::audit::{Draft, Head, Subject, events_hash};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::compile::compile;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::TenantId;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, simulate};
use sluicegate_core::time::Instant;
use sluicegate_core::value;

use super::sampled::catalogue;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> Value {
    value::read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Every JSON file below a folder, in order.
fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inside = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => files(&path),
        Some(end) if end == "json" => vec![path],
        _ => Vec::new(),
    };
    paths.into_iter().flat_map(inside).collect()
}

/// The arguments of every vector of one of these functions.
fn given(functions: &[&str]) -> Vec<Vec<Value>> {
    let vectors = files(&root().join("tests/vectors"))
        .into_iter()
        .flat_map(|file| match read(&file) {
            Value::Array(vectors) => vectors,
            other => panic!("{}: {other}", file.display()),
        });
    let named = |vector: &Value| functions.contains(&vector["when"].as_str().unwrap());
    vectors
        .filter(named)
        .map(|vector| vector["given"].as_array().unwrap().clone())
        .collect()
}

fn item(given: &[Value], index: usize) -> Value {
    given.get(index).cloned().unwrap_or_default()
}

/// What is read by shape: values, pointers, catalogues, requests.
pub(crate) fn values() -> Vec<Value> {
    let texts = given(&["parseText", "canonicalizeText", "hashText"]).into_iter();
    let mut seeds: Vec<Value> = texts
        .filter_map(|given| value::read(given[0].as_str()?).ok())
        .map(|value| json!({"value": value, "pointer": "/a"}))
        .collect();
    seeds.extend(
        given(&["readPointer"])
            .iter()
            .map(|g| json!({"value": g[0], "pointer": g[1]})),
    );
    seeds.push(json!({"value": catalogue(), "pointer": "/agents/0"}));
    let request = json!({"workflowKey": "w", "revision": 1, "input": {}, "fixtures": {}});
    seeds.push(json!({"value": request, "pointer": ""}));
    seeds
}

pub(crate) fn gates() -> Vec<Value> {
    let vectors = given(&["evaluateGate"]);
    let seed = |given: &Vec<Value>| json!({"expr": given[0], "input": given[1]});
    let mut seeds: Vec<Value> = vectors.iter().map(seed).collect();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"enum": ["a", "b"]}}, "required": ["n"]});
    let expr = json!({"and": [{"lt": [{"read": "/n"}, {"literal": 5}]}, {"in": [{"read": "/s"}, {"literal": ["a"]}]}]});
    seeds.push(json!({"expr": expr, "input": {"n": 1, "s": "a"}, "schema": schema}));
    seeds
}

pub(crate) fn templates() -> Vec<Value> {
    let vectors = given(&["renderTemplate"]).into_iter();
    vectors
        .map(|given| json!({"template": given[0], "variables": given[1]}))
        .collect()
}

pub(crate) fn schemas() -> Vec<Value> {
    let vectors = given(&[
        "acceptSchema",
        "validateValue",
        "exampleValue",
        "compareSchemas",
    ])
    .into_iter();
    let mut seeds: Vec<Value> = vectors
        .map(|given| json!({"schema": given[0], "other": item(&given, 1)}))
        .collect();
    for graph in samples() {
        let held = graph["graph"]["schemas"].as_object().unwrap();
        seeds.extend(
            held.values()
                .map(|schema| json!({"schema": schema, "other": {"a": 1}})),
        );
    }
    seeds
}

/// `{graph, input, fixtures, catalogue?}` of every sample's every case.
fn samples() -> Vec<Value> {
    let samples = files(&root().join("samples")).into_iter();
    let inputs = samples.filter(|path| path.to_string_lossy().ends_with(".input.json"));
    let seeds = inputs.enumerate().map(|(at, path)| {
        // The workflow's file has the name of its cases' folder.
        let folder = path.parent().unwrap();
        let graph = read(Path::new(&format!("{}.json", folder.display())));
        let fixtures = path
            .to_string_lossy()
            .replace(".input.json", ".fixtures.json");
        let mut seed =
            json!({"graph": graph, "input": read(&path), "fixtures": read(Path::new(&fixtures))});
        if at % 2 == 0 {
            seed["catalogue"] = catalogue();
        }
        seed
    });
    seeds.collect()
}

/// Graphs, good and bad.
pub(crate) fn graphs() -> Vec<Value> {
    let mut seeds = samples();
    for given in given(&["check", "compile"]) {
        let mut seed = json!({"graph": given[0], "input": {"n": 1}});
        if let Some(catalogue) = given.get(1) {
            seed["catalogue"] = catalogue.clone();
        }
        seeds.push(seed);
    }
    seeds.extend(
        given(&["dryRun", "simulate"])
            .into_iter()
            .map(|given| given[0].clone()),
    );
    seeds
}

/// What can be simulated as it stands.
pub(crate) fn simulations() -> Vec<Value> {
    let mut seeds = samples();
    seeds.extend(
        given(&["simulate"])
            .into_iter()
            .map(|given| given[0].clone()),
    );
    seeds.retain(|seed| simulation(seed).is_some());
    seeds
}

/// The plan of a seed and the events of its simulation.
fn simulation(seed: &Value) -> Option<(Plan, Vec<Value>)> {
    let catalogue = seed
        .get("catalogue")
        .map(|listed| Catalogue::read(listed).unwrap());
    let limits = Limits::default();
    let plan = compile(
        &Graph::read(&seed["graph"]).ok()?,
        catalogue.as_ref(),
        &limits,
    )
    .plan?;
    let plan = Plan::load(plan).unwrap();
    let fixtures = Fixtures::read(&seed["fixtures"]).ok()?;
    let input = Arc::new(seed["input"].clone());
    let done = simulate(
        &plan,
        input,
        &fixtures,
        &limits,
        WorkflowReference::default(),
    )
    .ok()?;
    let events = done
        .events
        .iter()
        .map(|event| value::to_value(event).unwrap())
        .collect();
    Some((plan, events))
}

/// `{plan, events}`: logs of simulations, and of live runs with everything that can happen.
pub(crate) fn logs() -> Vec<Value> {
    let simulated = simulations()
        .into_iter()
        .filter_map(|seed| simulation(&seed));
    let mut seeds: Vec<Value> = simulated
        .map(|(plan, events)| json!({"plan": value::to_value(plan.document()).unwrap(), "events": events}))
        .collect();
    for script in scripts() {
        let events = crate::targets::machine::play(&script).unwrap();
        seeds.push(json!({"plan": script["plan"], "events": events}));
    }
    seeds
}

/// `{plan, input, script}`: numbers that `targets/machine.rs` turns into commands.
pub(crate) fn scripts() -> Vec<Value> {
    let mut seeds = Vec::new();
    for (at, seed) in samples().iter().enumerate() {
        let (plan, _) = simulation(seed).unwrap();
        let mut random = crate::mutate::Random::new(at as u64);
        for length in [12, 40, 90] {
            let script: Vec<usize> = (0..length).map(|_| random.below(4_000)).collect();
            let plan = value::to_value(plan.document()).unwrap();
            seeds.push(json!({"plan": plan, "input": seed["input"], "script": script}));
        }
    }
    seeds
}

/// Who acts in every log and chain.
pub(crate) fn actor() -> Actor {
    Actor::User(UserActor {
        account_id: "acc".to_owned(),
        display_name: "Ada".to_owned(),
        email: None,
    })
}

/// `{entries, head, events}`: whole audit chains.
pub(crate) fn chains() -> Vec<Value> {
    let chain = |length: u64| {
        let mut head = Head::default();
        let (mut entries, mut events) = (Vec::new(), Vec::new());
        for n in 1..=length {
            let event = json!({"runId": format!("r{n}"), "sequence": 1, "type": "run.queued", "payload": {}});
            let draft = Draft {
                tenant_id: TenantId::from("t"),
                actor: actor(),
                origin: Some(Origin::Manual),
                action: "run.queued".to_owned(),
                subject: Subject {
                    kind: "run".to_owned(),
                    id: format!("r{n}"),
                },
                metadata: json!({"events": [{"sequence": 1, "type": "run.queued"}], "firstSequence": 1, "lastSequence": 1, "eventsHash": events_hash(std::slice::from_ref(&event))}),
                occurred_at: Instant(n),
            };
            let entry = draft.seal(&head).unwrap();
            head = entry.head();
            entries.push(value::to_value(&entry).unwrap());
            events.push(event);
        }
        let head = value::to_value(&head).unwrap();
        json!({"entries": entries, "head": head, "events": events})
    };
    (0..6).map(chain).collect()
}
