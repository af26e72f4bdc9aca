//! Starting, simulating and stopping runs, and what they gave (api.md "Runs").

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::{HeaderName, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::{CancelRequest, EnqueueRequest, SimulateRequest, SimulateSubject};
use sluicegate_core::ids::RunId;
use sluicegate_core::limits::Limits;
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::value::JsonError;
use tokio::time::Instant;
use tracing::Instrument;

use crate::auth::Context;
use crate::engine::{Enqueue, Simulate, Subject};
use crate::http::App;
use crate::http::body::{Json, Query, single};
use crate::http::refusal::Refusal;
use crate::http::workflows::graph_in_body;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest that one request waits for a run's end, in milliseconds.
const LONGEST_WAIT: u64 = 30_000;

pub(in crate::http) async fn enqueue(
    State(app): State<App>,
    context: Context,
    query: Query,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = EnqueueRequest::read(&body)?;
    let idempotency_key = key(&headers, request.idempotency_key)?;
    let request = Enqueue {
        workflow_key: request.workflow_key,
        input: request.input,
        idempotency_key,
    };
    // Once it is durable it is answered; a caller that goes away stops nothing half-way.
    let engine = app.engine.clone();
    let accepting = async move {
        let permissions = context.permissions();
        engine.enqueue(context.by(), permissions, request).await
    };
    let accepted = tokio::spawn(accepting.in_current_span());
    let accepted = accepted.await.map_err(Refusal::panicked)??;
    let place = format!("/api/workflow-runs/detail?runId={}", accepted.run_id);
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], Answer(accepted)).into_response())
}

pub(in crate::http) async fn simulate(
    State(app): State<App>,
    context: Context,
    query: Query,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = SimulateRequest::read(&body)?;
    let subject = match request.subject {
        SimulateSubject::Graph { graph, workflow_id } => Subject::Graph {
            graph: graph_in_body(&graph)?,
            workflow_id,
        },
        SimulateSubject::Published {
            workflow_key,
            revision,
        } => Subject::Published {
            workflow_key,
            revision,
        },
    };
    let fixtures = Fixtures::read(&request.fixtures).map_err(|error| JsonError {
        pointer: format!("/fixtures{}", error.pointer),
        ..error
    })?;
    let request = Simulate {
        subject,
        input: request.input,
        fixtures,
    };
    let result = app
        .engine
        .simulate(context.by(), context.permissions(), request)
        .await?;
    Ok((StatusCode::CREATED, Answer(result)).into_response())
}

pub(in crate::http) async fn cancel(
    State(app): State<App>,
    context: Context,
    query: Query,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let CancelRequest { run_id, reason } = CancelRequest::read(&body)?;
    let length = reason.as_ref().map_or(0, |reason| reason.chars().count());
    if length > Limits::DESCRIPTION_CHARS {
        let most = Limits::DESCRIPTION_CHARS;
        let detail = format!("a reason has at most {most} characters");
        return Err(Refusal::malformed(detail).pointer("/reason"));
    }
    let cancelled = app.engine.cancel(context.by(), &run_id, reason).await?;
    Ok(Answer(cancelled).into_response())
}

pub(in crate::http) async fn result(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let run_id = RunId::from(query.required("runId")?);
    let wait = query.number("waitMs", 0, LONGEST_WAIT)?.unwrap_or(0);
    query.done()?;
    let until = Instant::now() + Duration::from_millis(wait);
    let mut closing = app.closing.clone();
    // Listening begins before the first look, so nothing falls between the two. A run that
    // another tenant has is not found by that look.
    let mut listener = app.hub.listen(&run_id);
    loop {
        let result = app.engine.result(context.tenant(), &run_id).await?;
        if result.status.is_terminal() || Instant::now() >= until {
            return Ok(Answer(result).into_response());
        }
        tokio::select! {
            () = listener.moved() => {}
            () = tokio::time::sleep_until(until) => {}
            _ = async { closing.wait_for(|closing| *closing).await.is_ok() } => {
                return Ok(Answer(result).into_response());
            }
        }
    }
}

/// The key of a request: in the body, or in the header, or the same in both.
fn key(headers: &HeaderMap, in_body: Option<String>) -> Result<String, Refusal> {
    let in_header = single(headers, &IDEMPOTENCY_KEY)?;
    let in_header = in_header.map(header_key).transpose()?;
    let key = match (in_header, in_body) {
        (Some(header), Some(body)) if header != body => {
            return Err(Refusal::malformed(
                "Idempotency-Key and idempotencyKey are different",
            ));
        }
        (Some(key), _) | (None, Some(key)) => key,
        (None, None) => {
            let detail = "send an idempotencyKey, or the header Idempotency-Key";
            return Err(Refusal::malformed(detail).pointer("/idempotencyKey"));
        }
    };
    let most = Limits::IDEMPOTENCY_KEY_CHARS;
    if !(1..=most).contains(&key.chars().count()) {
        let detail = format!("an idempotency key has 1 to {most} characters");
        return Err(Refusal::malformed(detail).pointer("/idempotencyKey"));
    }
    if key.contains('\0') {
        let detail = "an idempotency key does not hold the character U+0000";
        return Err(Refusal::malformed(detail).pointer("/idempotencyKey"));
    }
    Ok(key)
}

/// A header's key: a String of RFC 8941, or plain text without quotes.
fn header_key(value: &str) -> Result<String, Refusal> {
    let value = value.trim_matches(' ');
    if !value.starts_with('"') {
        return Ok(value.to_owned());
    }
    string(value).ok_or_else(|| {
        Refusal::malformed("the header Idempotency-Key begins as a String and is none")
    })
}

/// Reads a String (RFC 8941 §4.2.5) that is the whole value.
fn string(value: &str) -> Option<String> {
    let mut characters = value.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return characters.next().is_none().then_some(text),
            '\\' => text.push(characters.next().filter(|c| matches!(c, '"' | '\\'))?),
            c @ ' '..='~' => text.push(c),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn ik_01_a_quoted_key_is_a_string_of_rfc_8941() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../shared/conformance/http-api"
        );
        let folder = std::path::Path::new(folder).join("structured-fields");
        if !folder.exists() {
            assert!(std::env::var_os("CI").is_none(), "{folder:?} is missing");
            eprintln!("skipped: {folder:?} is missing");
            return;
        }
        let mut judged = 0;
        for name in ["string.json", "string-generated.json"] {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
            for case in cases {
                let [raw] = case["raw"].as_array().unwrap().as_slice() else {
                    continue;
                };
                let expected = case["expected"][0].as_str();
                let given = string(raw.as_str().unwrap().trim_matches(' '));
                assert_eq!(given.as_deref(), expected, "{case}");
                judged += 1;
            }
        }
        assert!(judged > 100);
    }

    #[test]
    fn a_key_stands_in_the_header_or_in_the_body() {
        let header = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, value.parse().unwrap());
            headers
        };
        let body = |value: &str| Some(value.to_owned());
        assert_eq!(key(&header("a"), None).unwrap(), "a");
        assert_eq!(key(&header("\"a\""), body("a")).unwrap(), "a");
        assert_eq!(key(&HeaderMap::new(), body("b")).unwrap(), "b");
        assert!(key(&header("a"), body("b")).is_err());
        assert!(key(&HeaderMap::new(), None).is_err());
        assert!(key(&HeaderMap::new(), body("")).is_err());
        assert!(key(&HeaderMap::new(), Some("é".repeat(200))).is_ok());
        assert!(key(&HeaderMap::new(), Some("é".repeat(201))).is_err());
    }
}
