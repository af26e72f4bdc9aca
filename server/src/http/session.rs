//! Signing in and out (server.md §3; api.md "Sessions").

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use sluicegate_core::code::Code;

use super::App;
use super::body::Query;
use super::refusal::Refusal;
use crate::auth::{self, Context};

/// Shown when a link opens nothing. It is no JSON because a person followed the link.
const SPENT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>Sign in · Sluicegate</title><h1>This link opens nothing</h1>\
    <p>A sign-in link works once, within a day. Start the server again: it prints a new \
    one.</p></html>";

pub(super) async fn sign_in(
    State(app): State<App>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Refusal> {
    let token = query.required("token")?.to_owned();
    query.done()?;
    let opened = auth::sign_in(&*app.store, &token, app.clock.now(), &headers).await?;
    let no_store = (CACHE_CONTROL, "no-store".to_owned());
    Ok(match opened {
        Some(signed_in) => {
            let home = (LOCATION, "/".to_owned());
            let cookie = (SET_COOKIE, signed_in.cookie);
            (StatusCode::SEE_OTHER, [home, cookie, no_store]).into_response()
        }
        None => (StatusCode::UNAUTHORIZED, [no_store], Html(SPENT)).into_response(),
    })
}

pub(super) async fn show(context: Context, query: Query) -> Result<Response, Refusal> {
    query.done()?;
    match context.session() {
        Some(session) => Ok(Json(session).into_response()),
        None => Err(Refusal::new(
            Code::AuthenticationRequired,
            "an API key has no session",
        )),
    }
}

pub(super) async fn end(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let cookie = context.end_session(&*app.store).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}
