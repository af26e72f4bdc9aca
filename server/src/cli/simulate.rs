//! `simulate`: runs a graph on fixtures (server.md §2; wire-format.md §9, X1–X5, R2).

use std::sync::Arc;

use sluicegate_core::compile;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, RunStatus, WorkflowReference};
use sluicegate_core::simulate::{self, FixtureError, Fixtures, Refused, Simulation};
use sluicegate_core::validate::{Issue, Location};
use sluicegate_core::value::Value;

use super::fault::Fault;
use super::output::{Files, Output, message, name, plain};
use super::{Answer, Simulate, check, input, run};

pub(super) fn simulate(arguments: &Simulate, output: &mut Output) -> Result<Answer, Fault> {
    let more = [Some(&arguments.input), Some(&arguments.fixtures)];
    let (graph, catalogue) = check::subject(&arguments.subject, &more)?;
    let invocation = input::read(&arguments.input)?;
    let document = input::read(&arguments.fixtures)?;
    let fixtures =
        Fixtures::read(&document.value).map_err(|error| Fault::refused(&document.name, &error))?;
    let limits = Limits::default();
    let compiled = compile::compile(&graph, catalogue.as_ref(), &limits);
    let files = Files {
        graph: input::name(&arguments.subject.graph),
        input: invocation.name,
    };
    let Some(plan) = compiled.plan else {
        // Standard output is for the run alone.
        Output::refuse(&compiled.issues, &files);
        return Ok(Answer::No);
    };
    let plan = Plan::load(plan).map_err(|error| Fault::new(error.to_string()))?;
    let simulated = simulate::simulate(
        &plan,
        Arc::new(invocation.value),
        &fixtures,
        &limits,
        WorkflowReference::default(),
    );
    match simulated {
        Ok(simulation) => answer(arguments, &simulation, output),
        Err(Refused::Input {
            code,
            pointer,
            message,
        }) => {
            let place = Location::Input { path: pointer };
            Output::refuse(&[Issue::new(code, place, message)], &files);
            Ok(Answer::No)
        }
        Err(Refused::Fixtures(errors)) => {
            Output::faults(errors.iter().map(|error| unfit(&document.name, error)));
            Ok(Answer::No)
        }
        Err(refused @ Refused::Broken(_)) => Err(Fault::new(refused.to_string())),
    }
}

/// A fixture that does not fit, in one line.
fn unfit(file: &str, error: &FixtureError) -> String {
    let place = match error.pointer.as_deref() {
        None | Some("") => String::new(),
        Some(pointer) => format!(" at {}", name(pointer)),
    };
    let (node, reason) = (name(error.node_id.as_str()), message(&error.reason));
    plain(&format!("{file}: node {node}{place}: {reason}"))
}

fn answer(
    arguments: &Simulate,
    simulation: &Simulation,
    output: &mut Output,
) -> Result<Answer, Fault> {
    let result = simulation.result();
    if arguments.events {
        for event in &simulation.events {
            output.json(event)?;
        }
    } else if arguments.json {
        output.json(&result)?;
    } else {
        for event in &simulation.events {
            let at = event.virtual_offset_ms.unwrap_or_default().0;
            output.line(format!("{at:>8} ms  {}", told(event)))?;
        }
        run::people(
            &result.run_id,
            result.status,
            result.failure.as_ref(),
            result.outputs.iter().flatten(),
            output,
        )?;
    }
    Ok(match result.status {
        RunStatus::Succeeded => Answer::Yes,
        _ => Answer::No,
    })
}

/// An event in one line: what happened, where, and how.
fn told(event: &Event) -> String {
    let payload = event.payload_value();
    let text = |name: &str| payload.get(name).and_then(Value::as_str).map(message);
    let attempt = payload.get("attempt").and_then(Value::as_u64);
    let parts = [
        Some(format!("{:<24}", event.payload.type_name())),
        text("nodeId").or_else(|| text("edgeId")),
        attempt.map(|attempt| format!("attempt {attempt}")),
        text("status").or_else(|| text("state")),
        text("outcomePort").map(|port| format!("on {port}")),
        text("code"),
        text("reason"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    plain(parts.join(" ").trim_end())
}
