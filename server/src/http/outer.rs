//! What every request passes on the way in and every response on the way out (server.md §4):
//! a request id, one line in the log, security headers, and the body of a refusal.

use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;
use sluicegate_core::code::Code;
use tracing::Instrument;

use super::refusal::Refusal;
use super::web;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

pub(super) async fn outer(request: Request, next: Next) -> Response {
    let id = uuid::Uuid::new_v4().to_string();
    let method = request.method().clone();
    // The path alone: a query may hold a sign-in token.
    let path = request.uri().path().to_owned();
    let api = path == "/api" || path.starts_with("/api/");
    let span = tracing::info_span!("request", id = %id);
    let begun = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        write(&mut response, refusal, &id);
    }
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    span.in_scope(|| tracing::info!(%method, path, status, ms, "answered"));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(OPENER, HeaderValue::from_static("same-origin"));
    // The app's page brings its own, which names its loader.
    let policy = headers.entry(CONTENT_SECURITY_POLICY);
    policy.or_insert_with(|| web::policy(""));
    if api {
        // What belongs to one caller is in nobody's cache.
        let no_store = HeaderValue::from_static("no-store");
        headers.insert(CACHE_CONTROL, no_store);
    }
    response
}

/// Gives a refusal its body.
fn write(response: &mut Response, mut refusal: Refusal, id: &str) {
    id.clone_into(&mut refusal.0.request_id);
    let body = serde_json::to_vec(&refusal.0).unwrap_or_default();
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    let problem = HeaderValue::from_static("application/problem+json");
    headers.insert(CONTENT_TYPE, problem);
    if refusal.0.code == Code::AuthenticationRequired {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    *response.body_mut() = Body::from(body);
}
