//! The history of runs, newest first, cursor by cursor (server.md §5; seed A "Full run
//! history and evidence").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::{NodeProgress, Page, Parked, RunSummary};
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::limits::Limits;
use sluicegate_core::run::{Mode, RunStatus};
use sluicegate_core::time::Instant;
use sluicegate_core::value;

use crate::auth::Context;
use crate::http::App;
use crate::http::body::Query;
use crate::http::refusal::Refusal;
use crate::store::{RunCursor, RunFilter, RunListRow};
use crate::stream::{CursorError, Purpose};

/// A place in the history.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Place {
    tenant_id: TenantId,
    /// Digest of the filter that the list began with.
    filter: Hash,
    /// The newest row when the list began: nothing newer slips in.
    high_water: Instant,
    last: RunCursor,
}

pub(in crate::http) async fn list(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let mut filter = RunFilter {
        workflow_id: query.optional("workflowId")?.map(str::to_owned),
        workflow_key: query.optional("workflowKey")?.map(Into::into),
        revision: query.number("revision", 1, Limits::COUNTER)?,
        mode: single(query.word::<Mode>("mode", "live or simulate")?)?,
        status: query.word::<RunStatus>("status", "statuses of a run, such as failed")?,
        before: None,
        limit: 0,
    };
    let limit = query.number("limit", 1, Page::<()>::MAX_LIMIT as u64)?;
    let limit = limit.unwrap_or(Page::<()>::DEFAULT_LIMIT as u64);
    let cursor = query.optional("cursor")?.map(str::to_owned);
    query.done()?;
    filter.status.sort_unstable();
    filter.status.dedup();
    let digest = digest(&filter);
    let begun = cursor
        .map(|text| place(&app, &context, digest, &text))
        .transpose()?;
    filter.before = begun.as_ref().map(|place| place.last.clone());
    // One more than the page shows whether there is another.
    filter.limit = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut rows = app.store.runs(context.tenant(), &filter).await?;
    let high_water = match (&begun, rows.first()) {
        (Some(place), _) => place.high_water,
        (None, first) => first.and_then(|row| row.row.queued_at).unwrap_or_default(),
    };
    let more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = rows.last().filter(|_| more).and_then(|last| {
        let place = Place {
            tenant_id: context.tenant().clone(),
            filter: digest,
            high_water,
            last: RunCursor {
                queued_at: last.row.queued_at.unwrap_or_default(),
                run_id: last.run_id.clone(),
            },
        };
        app.cursors.make(Purpose::Runs, &place)
    });
    let items = rows.into_iter().map(summary).collect();
    Ok(Json(Page { items, next_cursor }).into_response())
}

/// Where a cursor goes on, if it is of this tenant and of this very list.
fn place(app: &App, context: &Context, digest: Hash, text: &str) -> Result<Place, Refusal> {
    let place: Place = app.cursors.read(Purpose::Runs, text)?;
    if place.tenant_id != *context.tenant() {
        return Err(CursorError.into());
    }
    if place.filter != digest {
        let code = Code::WorkflowCursorMismatch;
        return Err(Refusal::new(code, code.sentence()));
    }
    Ok(place)
}

fn digest(filter: &RunFilter) -> Hash {
    value::hash(&serde_json::json!([
        filter.workflow_id,
        filter.workflow_key,
        filter.revision,
        filter.mode,
        filter.status,
    ]))
}

fn single<T>(words: Vec<T>) -> Result<Option<T>, Refusal> {
    if words.len() > 1 {
        return Err(Refusal::malformed(
            "the parameter mode stands more than once",
        ));
    }
    Ok(words.into_iter().next())
}

/// A row as readers see it.
pub(super) fn summary(row: RunListRow) -> RunSummary {
    let RunListRow {
        run_id,
        workflow_id,
        workflow_key,
        revision,
        graph_checksum,
        actor,
        origin,
        row,
        parked,
    } = row;
    let queued_at = row.queued_at.unwrap_or_default();
    RunSummary {
        run_id,
        workflow_id,
        workflow_key,
        revision,
        draft_checksum: revision.is_none().then_some(graph_checksum),
        mode: row.mode,
        status: row.status,
        actor,
        origin,
        queued_at,
        started_at: row.started_at,
        completed_at: row.completed_at,
        duration_ms: row.completed_at.map(|end| end.since(queued_at)),
        nodes: Some(NodeProgress {
            settled: row.nodes_settled,
            total: row.nodes_total,
        }),
        usage: row.usage,
        cost: row.cost,
        failure: row.failure,
        parked: parked.map(|parked| Parked {
            code: parked.code,
            sequence: parked.sequence,
        }),
    }
}
