//! The laws of architecture.md ("Tests") as properties over generated plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    ChildOutcome, Event, Run, RunStatus, Start, WorkflowReference, fold_events, overlay, project,
};
use sluicegate_core::simulate::{Fixtures, simulate};

use super::live::World;
use super::order::{story, told};
use super::plans::{node, plan, policy};

/// What a generated node is, what feeds it, how its child behaves.
#[derive(Debug, Clone)]
struct Step {
    kind: usize,
    from: Vec<usize>,
    emits: bool,
    outcomes: Vec<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        0..6usize,
        prop::collection::vec(0..100usize, 1..4),
        any::<bool>(),
        prop::collection::vec(0..4usize, 1..3),
    )
        .prop_map(|(kind, from, emits, outcomes)| Step {
            kind,
            from,
            emits,
            outcomes,
        });
    prop::collection::vec(step, 0..7)
}

/// A connected acyclic plan: each step takes from earlier ports, every open port gets an
/// output.
fn build(steps: &[Step]) -> (Plan, Value) {
    let mut nodes = vec![node("n00", "input", json!({}))];
    let mut open = vec![("n00".to_owned(), "data".to_owned())];
    let mut edges = Vec::new();
    let mut fixtures = serde_json::Map::new();
    for (position, step) in steps.iter().enumerate() {
        let id = format!("n{:02}", position + 1);
        let on_exhausted = if step.emits {
            "emit-failure"
        } else {
            "fail-run"
        };
        let with_policy =
            json!({"policy": policy(2, &["agent.timeout", "action.timeout"], on_exhausted)});
        let (kind, extra, mut ports) = match step.kind {
            0 => ("agent", with_policy, vec!["success"]),
            1 => ("agent-decision", with_policy, vec!["pass", "fail"]),
            2 => ("action", with_policy, vec!["success"]),
            3 => (
                "gate",
                json!({"expr": {"literal": step.emits}}),
                vec!["pass", "fail"],
            ),
            4 => ("validator", json!({}), vec!["pass", "fail"]),
            _ => (
                "merge",
                json!({"ports": {"items": "std.any", "data": "std.merged"}}),
                vec!["data"],
            ),
        };
        let has_child = step.kind < 3;
        if has_child && step.emits {
            ports.push("failure");
        }
        if has_child {
            let attempts: Vec<Value> = step
                .outcomes
                .iter()
                .map(|outcome| match outcome {
                    0 => json!({"outcome": "failure", "code": "agent.timeout", "simulatedDurationMs": 2}),
                    1 => json!({"outcome": "failure", "code": "permission.denied"}),
                    _ if step.kind == 1 => {
                        let port = if *outcome == 2 { "pass" } else { "fail" };
                        json!({"outcome": port, "data": [position, outcome], "simulatedDurationMs": 1})
                    }
                    _ => json!({"outcome": "success", "output": {"at": position}, "simulatedDurationMs": 3}),
                })
                .collect();
            fixtures.insert(id.clone(), json!({"attempts": attempts}));
        }
        let inputs = if kind == "merge" { step.from.len() } else { 1 };
        let target = if kind == "merge" { "items" } else { "input" };
        let mut taken = Vec::new();
        for pick in step.from.iter().take(inputs) {
            let source = open[pick % open.len()].clone();
            if !taken.contains(&source) {
                edges.push(format!(
                    "e{:03}: {}.{} > {id}.{target}",
                    edges.len(),
                    source.0,
                    source.1
                ));
                taken.push(source);
            }
        }
        nodes.push(node(&id, kind, extra));
        open.extend(ports.into_iter().map(|port| (id.clone(), port.to_owned())));
    }
    for (position, (source, port)) in open.iter().enumerate() {
        let id = format!("o{position:02}");
        edges.push(format!("e{:03}: {source}.{port} > {id}.input", edges.len()));
        nodes.push(node(&id, "output", json!({})));
    }
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    (plan(&nodes, &edges), json!({ "nodes": fixtures }))
}

/// Children of a live world that answer what the fixtures say.
pub(crate) fn script(fixtures: &Value) -> impl Fn(&Start) -> ChildOutcome + use<> {
    let nodes: BTreeMap<String, Vec<Value>> = fixtures["nodes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(id, fixture)| (id.clone(), fixture["attempts"].as_array().unwrap().clone()))
        .collect();
    move |start| {
        let attempts = &nodes[start.node_id.as_str()];
        let entry = &attempts[(start.attempt as usize - 1).min(attempts.len() - 1)];
        match entry["outcome"].as_str().unwrap() {
            "failure" => {
                let code = entry["code"].as_str().unwrap().to_owned();
                if code == "permission.denied" {
                    ChildOutcome::Refused {
                        message: code.clone(),
                        code,
                    }
                } else {
                    ChildOutcome::Failure {
                        message: code.clone(),
                        code,
                    }
                }
            }
            "success" => ChildOutcome::Success {
                output: Arc::new(entry["output"].clone()),
            },
            port => ChildOutcome::Decision {
                answer: Arc::new(json!({"decision": port, "data": entry["data"]})),
            },
        }
    }
}

fn live<'p>(plan: &'p Plan, fixtures: &Value) -> World<'p> {
    let mut world = World::new(plan, Box::new(script(fixtures)));
    world.queue(json!({"x": 1}));
    world.claim();
    world
}

fn fold(plan: &Plan, events: &[Event]) -> Run {
    let mut run = Run::new(plan, "simulation".into(), "r".into());
    for event in events {
        run.apply(plan, event).unwrap();
    }
    run
}

/// The last settlements of a run: what became of every node and edge.
fn fate(run: &Run) -> (RunStatus, Vec<String>) {
    let nodes = run.nodes().iter().map(|node| {
        let attempts: Vec<_> = node
            .attempts
            .iter()
            .map(|a| (a.status, a.code.clone()))
            .collect();
        format!("{:?} {:?} {attempts:?}", node.status(), node.outcome_port)
    });
    let edges = run.edges().iter().map(|edge| {
        let edge = edge.as_ref().unwrap();
        format!("{:?} {:?}", edge.settled.state, edge.settled.reason)
    });
    (run.status(), nodes.chain(edges).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn k3_o5_every_node_and_edge_has_one_final_word(steps in steps()) {
        let (plan, fixtures) = build(&steps);
        let fixtures = Fixtures::read(&fixtures).unwrap();
        let done = simulate(&plan, Arc::new(json!({"x": 1})), &fixtures, &Limits::default(), WorkflowReference::default()).unwrap();
        prop_assert!(done.run.status().is_terminal());
        for (position, event) in done.events.iter().enumerate() {
            prop_assert_eq!(event.sequence, position as u64 + 1);
        }
        let mut edges: Vec<String> = story(&done.events).into_iter().filter(|s| s.starts_with("edge.settled")).map(|s| s.split(' ').nth(1).unwrap().to_owned()).collect();
        prop_assert_eq!(edges.len(), plan.edges().len());
        edges.sort();
        edges.dedup();
        prop_assert_eq!(edges.len(), plan.edges().len());
        prop_assert_eq!(fold(&plan, &done.events).status(), done.run.status());
    }

    #[test]
    fn v1_simulate_and_live_tell_the_same_story(steps in steps()) {
        let (plan, fixtures) = build(&steps);
        let read = Fixtures::read(&fixtures).unwrap();
        let done = simulate(&plan, Arc::new(json!({"x": 1})), &read, &Limits::default(), WorkflowReference::default()).unwrap();
        let mut world = live(&plan, &fixtures);
        world.finish();
        prop_assert_eq!(story(&world.log), story(&done.events));
        prop_assert_eq!(told(&world.log), told(&done.events));
    }

    #[test]
    fn d2_cutting_the_log_after_any_commit_gives_the_same_end(steps in steps()) {
        let (plan, fixtures) = build(&steps);
        let mut whole = live(&plan, &fixtures);
        whole.finish();
        let end = fate(&whole.run());
        for cut in 0..whole.commits {
            let mut world = live(&plan, &fixtures);
            for _ in 0..cut {
                if !world.step() { break; }
            }
            // The worker is gone; another one folds the log and goes on.
            if !world.run().status().is_terminal() {
                world.claim();
            }
            world.finish();
            prop_assert_eq!(fate(&world.run()), end.clone());
            prop_assert_eq!(&world.executed, &whole.executed);
        }
    }

    #[test]
    fn apply_refuses_or_folds_but_never_panics(steps in steps(), swaps in prop::collection::vec((0..60usize, 0..60usize), 0..4)) {
        let (plan, fixtures) = build(&steps);
        let mut world = live(&plan, &fixtures);
        world.finish();
        let mut events = world.log.clone();
        for (a, b) in swaps {
            let len = events.len();
            events.swap(a % len, b % len);
        }
        for (position, event) in events.iter_mut().enumerate() {
            event.sequence = position as u64 + 1;
            event.recorded_at = None;
        }
        let mut run = Run::new(&plan, "t".into(), "r".into());
        for event in &events {
            let before = run.clone();
            if run.apply(&plan, event).is_err() {
                prop_assert_eq!(&run, &before, "a refused event changes nothing");
                break;
            }
        }
    }

    #[test]
    fn projections_row_by_row_equal_those_of_the_whole_log(steps in steps()) {
        let (plan, fixtures) = build(&steps);
        let mut world = live(&plan, &fixtures);
        world.finish();
        let mut run = Run::new(&plan, "t1".into(), "r1".into());
        let (mut nodes, mut attempts, mut edges) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for event in &world.log {
            run.apply(&plan, event).unwrap();
            let rows = project(&plan, &run, std::slice::from_ref(event));
            nodes.extend(rows.nodes.into_iter().map(|row| (row.node_id.clone(), row)));
            attempts.extend(rows.attempts.into_iter().map(|row| ((row.node_id.clone(), row.attempt), row)));
            edges.extend(rows.edges.into_iter().map(|row| (row.settled.edge_id.clone(), row)));
        }
        let whole = project(&plan, &run, &world.log);
        let (whole_nodes, whole_attempts) = (whole.nodes.clone(), whole.attempts.clone());
        let sorted = |mut rows: Vec<_>| { rows.sort_by_key(|row: &sluicegate_core::run::NodeRow| row.node_id.clone()); rows };
        prop_assert_eq!(nodes.into_values().collect::<Vec<_>>(), sorted(whole.nodes));
        prop_assert_eq!(attempts.len(), whole.attempts.len());
        for row in whole.attempts {
            prop_assert_eq!(&attempts[&(row.node_id.clone(), row.attempt)], &row);
        }
        prop_assert_eq!(edges.into_values().collect::<Vec<_>>(), &whole.edges[..]);
        // The overlay of the stored events holds the very same rows.
        let stored: Vec<Value> = world.log.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        let picture = overlay(&plan, &fold_events(&plan, &stored).unwrap());
        prop_assert_eq!(Some(picture.run), whole.run);
        prop_assert_eq!(picture.edges, whole.edges);
        let rows = picture.nodes.into_iter().map(|shown| (shown.node, shown.attempts));
        let (shown, tried): (Vec<_>, Vec<_>) = rows.unzip();
        prop_assert_eq!(shown, whole_nodes);
        prop_assert_eq!(tried.concat(), whole_attempts);
    }
}
