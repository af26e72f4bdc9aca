//! What the commands that need a server speak with it (server.md §2; api.md).

use std::time::Duration;

use serde::de::DeserializeOwned;
use sluicegate_core::api::Problem;
use sluicegate_core::value;

use super::fault::Fault;
use super::output::{message, name};
use crate::config::{Remote, RemoteArguments, os_reason};

/// Speaks with one server.
pub(super) struct Client {
    agent: ureq::Agent,
    server: String,
    authorization: String,
}

impl Client {
    /// A client of the server that the settings name, which waits this long for an answer.
    pub(super) fn new(arguments: &RemoteArguments, patience: Duration) -> Result<Self, Fault> {
        let remote = Remote::resolve(arguments, &super::serve::environment)
            .map_err(|error| Fault::new(message(&error.to_string())))?;
        let Some(api_key) = remote.api_key else {
            return Err(Fault::new(
                "an API key is needed: --api-key, SLUICEGATE_API_KEY or api-key in sluicegate.toml",
            ));
        };
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(patience))
            .build();
        Ok(Self {
            agent: config.into(),
            server: remote.server,
            authorization: format!("Bearer {api_key}"),
        })
    }

    /// Sends a document and gives what is answered.
    pub(super) fn post<T: DeserializeOwned>(
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

    /// Asks for something.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Fault> {
        let asked = self
            .agent
            .get(format!("{}{path}", self.server))
            .query_pairs(query.iter().copied())
            .header("Authorization", &self.authorization)
            .call();
        self.answer(asked)
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
