//! What a graph may pin (api.md "Catalogue").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::Page;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::ids::TenantId;

use super::App;
use super::body::Query;
use super::refusal::Refusal;
use crate::auth::Context;
use crate::store::StoreError;

pub(super) async fn agents(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let catalogue = of_tenant(&app, context.tenant()).await?;
    Ok(Json(Page::whole(catalogue.agents)).into_response())
}

pub(super) async fn actions(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let catalogue = of_tenant(&app, context.tenant()).await?;
    Ok(Json(Page::whole(catalogue.actions)).into_response())
}

/// Everything that a tenant's graphs may pin.
pub(super) async fn of_tenant(app: &App, tenant: &TenantId) -> Result<Catalogue, StoreError> {
    let agents = app.store.agents(tenant).await?;
    Ok(Catalogue {
        agents: agents
            .iter()
            .map(|agent| agent.definition.row(agent.revision, agent.status))
            .collect(),
        actions: app.actions.descriptors(),
        permissions: None,
    })
}
