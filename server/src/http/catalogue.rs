//! What a graph may pin (api.md "Catalogue").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::Page;

use super::App;
use super::body::Query;
use super::refusal::Refusal;
use crate::auth::Context;

pub(super) async fn agents(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let catalogue = app.engine.catalogue(context.tenant()).await?;
    Ok(Json(Page::whole(catalogue.agents)).into_response())
}

pub(super) async fn actions(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let catalogue = app.engine.catalogue(context.tenant()).await?;
    Ok(Json(Page::whole(catalogue.actions)).into_response())
}
