//! The audit chain, newest entry first, and its check (api.md "Audit"; run-machine.md §11; seed A
//! "Authorization and audit").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::{AuditEntry, Page};
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::value;

use super::App;
use super::body::Query;
use super::refusal::Refusal;
use crate::auth::Context;
use crate::store::{AuditFilter, StoreError};
use crate::stream::{CursorError, Purpose};

/// A place in the chain. Nothing newer slips in: later pages go back from it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Place {
    tenant_id: TenantId,
    /// Digest of the filter that the list began with.
    filter: Hash,
    /// The last entry of the page before.
    sequence: u64,
}

pub(super) async fn list(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let mut filter = AuditFilter {
        subject: query.optional("subject")?.map(str::to_owned),
        action: query.optional("action")?.map(str::to_owned),
        before: None,
        limit: 0,
    };
    let limit = query.number("limit", 1, Page::<()>::MAX_LIMIT as u64)?;
    let limit = limit.unwrap_or(Page::<()>::DEFAULT_LIMIT as u64);
    let cursor = query.optional("cursor")?.map(str::to_owned);
    query.done()?;
    let digest = value::hash(&serde_json::json!([filter.subject, filter.action]));
    filter.before = cursor
        .map(|text| place(&app, &context, digest, &text))
        .transpose()?;
    // One more than the page shows whether there is another.
    filter.limit = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let rows = app.store.audit_before(context.tenant(), &filter).await?;
    let mut items: Vec<AuditEntry> = rows
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let more = items.len() as u64 > limit;
    items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = items.last().filter(|_| more).and_then(|last| {
        let place = Place {
            tenant_id: context.tenant().clone(),
            filter: digest,
            sequence: last.sequence,
        };
        app.cursors.make(Purpose::Audit, &place)
    });
    Ok(Json(Page { items, next_cursor }).into_response())
}

/// Before which entry a cursor goes on, if it is of this tenant and of this very list.
fn place(app: &App, context: &Context, digest: Hash, text: &str) -> Result<u64, Refusal> {
    let place: Place = app.cursors.read(Purpose::Audit, text)?;
    if place.tenant_id != *context.tenant() {
        return Err(CursorError.into());
    }
    if place.filter != digest {
        let code = Code::WorkflowCursorMismatch;
        return Err(Refusal::new(code, code.sentence()));
    }
    Ok(place.sequence)
}

pub(super) async fn verify(
    State(app): State<App>,
    context: Context,
    query: Query,
) -> Result<Response, Refusal> {
    query.done()?;
    let verification = app.engine.verify_audit(context.tenant()).await?;
    Ok(Json(verification).into_response())
}
