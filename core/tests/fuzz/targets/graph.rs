//! The doors of a graph: reading, judging, compiling, the stored plan, the dry-run, simulation.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Class;
use sluicegate_core::compile::{compile, dry_run};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::{Plan, Task};
use sluicegate_core::run::{Event, Run, WorkflowReference};
use sluicegate_core::simulate::{Fixtures, Refused, simulate};
use sluicegate_core::validate::{Severity, check};
use sluicegate_core::value;

use super::{document, member, refused};

/// G8, §8, run-machine.md §1: a graph is refused, or has issues, or has a plan that runs.
pub(crate) fn graph(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let Some((plan, catalogue)) = compiled(&document) else {
        return Graph::read(member(&document, "graph")).is_ok();
    };
    let given = Fixtures::read(member(&document, "fixtures"));
    let fits = given
        .as_ref()
        .is_ok_and(|fixtures| fixtures.judge(&plan).is_empty());
    let fixtures = match given {
        Ok(fixtures) if fits => fixtures,
        _ => made_up(&plan),
    };
    let sample = member(&document, "input");
    let graph = Graph::read(member(&document, "graph")).unwrap();
    let report = dry_run(
        &graph,
        Some(sample),
        catalogue.as_ref(),
        None,
        &Limits::default(),
    );
    let started = runs(&plan, sample, &fixtures);
    // Fixtures that nobody could find (a schema that nothing fits) are refused too.
    let judged = fixtures.judge(&plan).is_empty();
    assert_eq!(
        started,
        report.valid && judged,
        "what a dry-run accepts starts"
    );
    let input = plan
        .nodes()
        .iter()
        .position(|node| matches!(node.task, Task::Input))
        .unwrap();
    let at = plan.node_indices().nth(input).unwrap();
    if let Some(example) = plan.port_schema(at, "data").1.example() {
        runs(&plan, &example, &fixtures);
    }
    true
}

/// X1–X5: a good graph with any fixtures and input runs or is refused.
pub(crate) fn simulated(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let Some((plan, _)) = compiled(&document) else {
        return false;
    };
    match Fixtures::read(member(&document, "fixtures")) {
        Ok(fixtures) => runs(&plan, member(&document, "input"), &fixtures),
        Err(error) => {
            refused(&error);
            false
        }
    }
}

/// The plan of a document's graph, where it has one.
fn compiled(document: &Value) -> Option<(Plan, Option<Catalogue>)> {
    let limits = Limits::default();
    let read = document.get("catalogue").map(Catalogue::read);
    let catalogue = read.and_then(Result::ok);
    let graph = match Graph::read(member(document, "graph")) {
        Ok(graph) => graph,
        Err(error) => {
            refused(&error);
            return None;
        }
    };
    let written = graph.to_value().unwrap();
    assert_eq!(
        Graph::read(&written).unwrap(),
        graph,
        "what was written reads as it was"
    );
    let issues = check(&graph, catalogue.as_ref(), &limits);
    for issue in &issues {
        // A few codes of attempts are issues too (§12), and then errors.
        let warns = issue.code.class() == Class::Warning;
        assert!(issue.code.class() != Class::Json, "{issue:?}");
        assert_eq!(warns, issue.severity == Severity::Warning, "{issue:?}");
    }
    let made = compile(&graph, catalogue.as_ref(), &limits);
    assert_eq!(made.issues, issues, "compile says what check says");
    let wrong = issues.iter().any(|issue| issue.severity == Severity::Error);
    assert_eq!(made.plan.is_none(), wrong, "a plan or an error: {issues:?}");
    let report = dry_run(
        &graph,
        document.get("input"),
        catalogue.as_ref(),
        None,
        &limits,
    );
    assert_eq!(report.graph_checksum, graph.checksum().unwrap());
    let plan = Plan::load(made.plan?).unwrap();
    let stored = value::to_value(plan.document()).unwrap();
    assert_eq!(
        Plan::read(&stored).unwrap().hash(),
        plan.hash(),
        "a stored plan is the same plan"
    );
    Some((plan, catalogue))
}

/// Fixtures whose children all answer what their ports show as an example.
fn made_up(plan: &Plan) -> Fixtures {
    let mut nodes = Map::new();
    for (node, at) in plan.nodes().iter().zip(plan.node_indices()) {
        let example = |port| plan.port_schema(at, port).1.example().unwrap_or_default();
        let attempt = match &node.task {
            Task::Agent(_) | Task::Action(_) => {
                json!({"outcome": "success", "output": example("success")})
            }
            Task::AgentDecision(_) => json!({"outcome": "pass", "data": example("pass")}),
            _ => continue,
        };
        nodes.insert(node.id.to_string(), json!({"attempts": [attempt]}));
    }
    Fixtures::read(&json!({ "nodes": nodes })).unwrap()
}

/// Whether a simulation started; then its log is whole and folds to where it ended.
fn runs(plan: &Plan, input: &Value, fixtures: &Fixtures) -> bool {
    let limits = Limits::default();
    let reference = WorkflowReference::default();
    let done = match simulate(plan, Arc::new(input.clone()), fixtures, &limits, reference) {
        Ok(done) => done,
        Err(Refused::Broken(why)) => panic!("{why}"),
        Err(Refused::Input { .. } | Refused::Fixtures(_)) => return false,
    };
    assert!(done.run.status().is_terminal(), "a simulation ends");
    let mut run = Run::new(
        plan,
        done.run.tenant_id().clone(),
        done.run.run_id().clone(),
    );
    for (event, sequence) in done.events.iter().zip(1..) {
        assert_eq!(event.sequence, sequence);
        let stored = value::to_value(event).unwrap();
        let read = Event::read(&stored).unwrap();
        assert_eq!(&read, event, "a stored event is the same event");
        run.apply(plan, &read).unwrap();
    }
    assert_eq!(run, done.run, "the fold is where the run ended");
    value::to_answer(&done.result()).unwrap();
    true
}
