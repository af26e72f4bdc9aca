//! The server as the page sees it: requests, problems and the event stream (api.md). The
//! one place of the app that translates stable codes into what a person reads and does.

mod stream;

use std::fmt;

use leptos::prelude::*;
use sluicegate_core::api::Session;
use sluicegate_core::code::Code;
use sluicegate_core::validate::Issue;
use sluicegate_core::value::{self, Value};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

pub(crate) use stream::{Stream, StreamState};

/// Why a request gave nothing: what happened and what to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    /// The HTTP status; 0 when there was no answer.
    pub(crate) status: u16,
    /// The stable code; none for what no server said, or a code newer than this page.
    pub(crate) code: Option<Code>,
    /// What happened.
    pub(crate) title: String,
    /// More about it, and what to do.
    pub(crate) detail: String,
    pub(crate) issues: Vec<Issue>,
    /// One line an item: fixtures that do not fit.
    pub(crate) errors: Vec<String>,
    /// The present draft version, after a conflict.
    pub(crate) draft_version: Option<u64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.title)?;
        if !self.detail.is_empty() && self.detail != self.title {
            write!(f, " {}", self.detail)?;
        }
        Ok(())
    }
}

impl Problem {
    /// A problem of the page's own making.
    pub(crate) fn local(title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            status: 0,
            code: None,
            title: title.into(),
            detail: detail.into(),
            issues: Vec::new(),
            errors: Vec::new(),
            draft_version: None,
        }
    }

    fn offline() -> Self {
        Self::local(
            "The server cannot be reached.",
            "Check that sluicegate is running and that you are online, then try again.",
        )
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.status == 0
    }

    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == Some(code)
    }

    /// Reads an RFC 9457 body; an answer that is none still says its status.
    fn read(status: u16, body: Option<&Value>) -> Self {
        let text = |member: &str| {
            let text = body
                .and_then(|body| body.get(member))
                .and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let code = Code::parse(&text("code"));
        let title = match code {
            Some(code) => code.sentence().to_owned(),
            None if text("title").is_empty() => format!("The server answered {status}."),
            None => text("title"),
        };
        let detail = match code {
            Some(Code::CsrfRejected | Code::AuthenticationRequired) => {
                "Sign in again with a new link, then repeat what you did.".to_owned()
            }
            _ => text("detail"),
        };
        let member = |name: &str| body.and_then(|body| body.get(name));
        let errors = member("errors")
            .and_then(Value::as_array)
            .map(|errors| errors.iter().map(error_line).collect());
        Self {
            status,
            code,
            title,
            detail,
            issues: member("issues")
                .and_then(|issues| serde_json::from_value(issues.clone()).ok())
                .unwrap_or_default(),
            errors: errors.unwrap_or_default(),
            draft_version: member("draftVersion").and_then(Value::as_u64),
        }
    }
}

/// One entry of `errors`: the node and the reason (X5), or whatever it says.
fn error_line(error: &Value) -> String {
    let text = |member: &str| error.get(member).and_then(Value::as_str);
    match (text("nodeId"), text("reason").or_else(|| text("message"))) {
        (Some(node), Some(reason)) => format!("{node}: {reason}"),
        (None, Some(reason)) => reason.to_owned(),
        _ => value::canonical(error),
    }
}

/// The session's CSRF token, for requests that change something.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    csrf: StoredValue<String>,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self {
            csrf: StoredValue::new(String::new()),
        }
    }

    /// Who is signed in; remembers the CSRF token.
    pub(crate) async fn session(self) -> Result<Session, Problem> {
        let session: Session = self.get("/api/session").await?;
        self.csrf.set_value(session.csrf_token.clone());
        Ok(session)
    }

    pub(crate) async fn get<T: serde::de::DeserializeOwned>(
        self,
        path: &str,
    ) -> Result<T, Problem> {
        let value = self.send("GET", path, None).await?;
        read_answer(value)
    }

    pub(crate) async fn post<T: serde::de::DeserializeOwned>(
        self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Problem> {
        let body = value::to_value(body)
            .map_err(|error| Problem::local("This cannot be sent.", error.detail))?;
        let value = self
            .send("POST", path, Some(value::canonical(&body)))
            .await?;
        read_answer(value)
    }

    async fn send(self, method: &str, path: &str, body: Option<String>) -> Result<Value, Problem> {
        let init = web_sys::RequestInit::new();
        init.set_method(method);
        init.set_credentials(web_sys::RequestCredentials::SameOrigin);
        let headers = web_sys::Headers::new().map_err(|_| Problem::offline())?;
        let mut wanted = vec![("Accept", "application/json".to_owned())];
        if let Some(body) = body {
            wanted.push(("Content-Type", "application/json".to_owned()));
            wanted.push(("X-CSRF-Token", self.csrf.get_value()));
            init.set_body(&JsValue::from_str(&body));
        }
        for (name, value) in wanted {
            headers.set(name, &value).map_err(|_| Problem::offline())?;
        }
        init.set_headers(&headers);
        let answer = JsFuture::from(window().fetch_with_str_and_init(path, &init))
            .await
            .map_err(|_| Problem::offline())?;
        let answer: web_sys::Response = answer.dyn_into().map_err(|_| Problem::offline())?;
        let text = match answer.text() {
            Ok(text) => JsFuture::from(text).await.map_err(|_| Problem::offline())?,
            Err(_) => return Err(Problem::offline()),
        };
        let text = text.as_string().unwrap_or_default();
        if !answer.ok() {
            return Err(Problem::read(
                answer.status(),
                value::read(&text).ok().as_ref(),
            ));
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        value::read(&text).map_err(|_| {
            Problem::local(
                "No Sluicegate server answers here.",
                "The answer was not JSON. Open the app at the address that `sluicegate serve` prints.",
            )
        })
    }
}

fn read_answer<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| {
        Problem::local(
            "The server's answer has another shape than this page knows.",
            format!("Reload the page; the server may be newer. ({error})"),
        )
    })
}

/// A value for a query string.
pub(crate) fn encode(text: &str) -> String {
    js_sys::encode_uri_component(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn api_a_problem_says_what_happened_and_keeps_its_parts() {
        let problem = Problem::read(
            409,
            Some(
                &json!({"code": "WORKFLOW_REVISION_CONFLICT", "title": "x", "status": 409, "detail": "d", "draftVersion": 8}),
            ),
        );
        assert!(problem.is(Code::WorkflowRevisionConflict));
        assert_eq!(problem.draft_version, Some(8));
        assert!(!problem.to_string().is_empty());
        let fixtures = Problem::read(
            422,
            Some(
                &json!({"code": "WORKFLOW_FIXTURES_INVALID", "errors": [{"nodeId": "a", "reason": "no fixture"}]}),
            ),
        );
        assert_eq!(fixtures.errors, ["a: no fixture"]);
        assert_eq!(Problem::read(502, None).title, "The server answered 502.");
    }
}
