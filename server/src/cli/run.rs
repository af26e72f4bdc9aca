//! `run`: starts a published workflow on a server and, if asked, waits for its end
//! (server.md §2; api.md "Runs").

use std::io::{IsTerminal, Write};
use std::time::Duration;

use sluicegate_core::api::{EnqueueRequest, RunAccepted, RunResult};
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{Failure, RunStatus};
use sluicegate_core::value::{self, Value};

use super::client::Client;
use super::fault::Fault;
use super::output::{Output, message, name, plain};
use super::{Answer, Run, input};

/// How long one request waits for a run's end.
const WAIT: Duration = Duration::from_secs(25);

pub(super) fn run(arguments: &Run, output: &mut Output) -> Result<Answer, Fault> {
    let client = Client::new(&arguments.remote, WAIT + Duration::from_secs(30))?;
    let document = input::read(&arguments.input)?;
    let key = match &arguments.idempotency_key {
        Some(key) => key.clone(),
        None => {
            let key = uuid::Uuid::new_v4().to_string();
            let _ = writeln!(std::io::stderr(), "idempotency key: {key}");
            key
        }
    };
    let request = EnqueueRequest {
        workflow_key: arguments.key.as_str().into(),
        input: document.value,
        idempotency_key: Some(key),
    };
    let accepted: RunAccepted = client.post("/api/workflow-runs", &request)?;
    if !arguments.wait {
        if arguments.json {
            output.json(&accepted)?;
        } else {
            output.line(started(&accepted))?;
        }
        return Ok(Answer::Yes);
    }
    if std::io::stderr().is_terminal() {
        let _ = writeln!(
            std::io::stderr(),
            "{}; waiting for its end",
            started(&accepted)
        );
    }
    let result = wait(&client, &accepted)?;
    if arguments.json {
        output.json(&result)?;
    } else {
        people(
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

/// Asks until the run has ended.
fn wait(client: &Client, accepted: &RunAccepted) -> Result<RunResult, Fault> {
    let wait = WAIT.as_millis().to_string();
    let query = [("runId", accepted.run_id.as_str()), ("waitMs", &wait)];
    loop {
        let result: RunResult = client.get("/api/workflow-runs/result", &query)?;
        if result.status.is_terminal() {
            return Ok(result);
        }
    }
}

fn started(accepted: &RunAccepted) -> String {
    let was = if accepted.created {
        ""
    } else {
        " (started before)"
    };
    // What a server sends is no more to be trusted than a document.
    plain(&format!(
        "run {} is {}{was}",
        name(accepted.run_id.as_str()),
        accepted.status.as_str()
    ))
}

/// Writes how a run ended, and its outputs.
pub(super) fn people<'a>(
    run_id: &RunId,
    status: RunStatus,
    failure: Option<&Failure>,
    outputs: impl Iterator<Item = (impl std::fmt::Display + 'a, &'a Value)>,
    output: &mut Output,
) -> Result<(), Fault> {
    let run_id = name(run_id.as_str());
    output.line(plain(&format!("run {run_id} {}", status.as_str())))?;
    if let Some(failure) = failure {
        let node = failure.node_id.as_ref();
        let place = node.map(|node| format!(" at node {}", name(node.as_str())));
        output.line(plain(&format!(
            "{}{}: {}",
            name(&failure.code),
            place.unwrap_or_default(),
            message(&failure.message)
        )))?;
    }
    for (node, envelope) in outputs {
        output.line(plain(&format!(
            "{}: {}",
            name(&node.to_string()),
            value::canonical(envelope)
        )))?;
    }
    Ok(())
}
