//! `run`: starts a published workflow on a server and, if asked, waits for its end
//! (server.md §2; api.md "Runs").

use std::io::{IsTerminal, Write};

use serde::de::DeserializeOwned;
use sluicegate_core::api::{EnqueueRequest, Problem, RunAccepted, RunResult};
use sluicegate_core::ids::RunId;
use sluicegate_core::run::{Failure, RunStatus};
use sluicegate_core::value::{self, Value};

use crate::config::{Remote, os_reason};

use super::fault::Fault;
use super::output::{Output, message, name, plain};
use super::{Answer, Run, input};

/// How long one request waits for a run's end, in milliseconds.
const WAIT_MS: u64 = 25_000;

pub(super) fn run(arguments: &Run, output: &mut Output) -> Result<Answer, Fault> {
    let remote = Remote::resolve(&arguments.remote, &super::serve::environment)
        .map_err(|error| Fault::new(message(&error.to_string())))?;
    let client = Client::new(&remote)?;
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
    let result = client.wait(&accepted)?;
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

/// Speaks with one server.
struct Client<'a> {
    agent: ureq::Agent,
    server: &'a str,
    authorization: String,
}

impl<'a> Client<'a> {
    fn new(remote: &'a Remote) -> Result<Self, Fault> {
        let Some(api_key) = &remote.api_key else {
            return Err(Fault::new(
                "an API key is needed: --api-key, SLUICEGATE_API_KEY or api-key in sluicegate.toml",
            ));
        };
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(std::time::Duration::from_secs(10)))
            .timeout_global(Some(std::time::Duration::from_millis(WAIT_MS + 30_000)))
            .build();
        Ok(Self {
            agent: config.into(),
            server: &remote.server,
            authorization: format!("Bearer {api_key}"),
        })
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Fault> {
        let body = value::to_value(body).map_err(|error| Fault::new(error.to_string()))?;
        let sent = self
            .agent
            .post(format!("{}{path}", self.server))
            .header("Authorization", &self.authorization)
            .header("Content-Type", "application/json")
            .send(value::canonical(&body));
        self.answer(sent)
    }

    /// Asks until the run has ended.
    fn wait(&self, accepted: &RunAccepted) -> Result<RunResult, Fault> {
        let address = format!("{}/api/workflow-runs/result", self.server);
        loop {
            let sent = self
                .agent
                .get(&address)
                .query("runId", accepted.run_id.as_str())
                .query("waitMs", WAIT_MS.to_string())
                .header("Authorization", &self.authorization)
                .call();
            let result: RunResult = self.answer(sent)?;
            if result.status.is_terminal() {
                return Ok(result);
            }
        }
    }

    fn answer<T: DeserializeOwned>(
        &self,
        sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Fault> {
        let unreachable = |error: ureq::Error| {
            let reason = match error {
                ureq::Error::Io(error) => os_reason(&error),
                other => message(&other.to_string()),
            };
            Fault::new(format!("{} did not answer: {reason}", self.server))
        };
        let mut response = sent.map_err(unreachable)?;
        let status = response.status();
        let body = response.body_mut().read_to_string().map_err(unreachable)?;
        if status.is_success() {
            return serde_json::from_str(&body).map_err(|error| {
                Fault::new(format!(
                    "{} sent an answer that this version does not understand: {}",
                    self.server,
                    message(&error.to_string())
                ))
            });
        }
        let Ok(problem) = serde_json::from_str::<Problem>(&body) else {
            return Err(Fault::new(format!("{} answered {status}", self.server)));
        };
        let place = problem
            .pointer
            .map(|pointer| format!(" at {}", name(&pointer)))
            .unwrap_or_default();
        Err(Fault::new(format!(
            "refused{place}: {} ({})",
            message(&problem.detail),
            problem.code
        )))
    }
}
