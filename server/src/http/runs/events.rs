//! A run's events as a stream (server.md §5; seed A "Event stream and resume"). Positions
//! are judged before the first byte: a wrong one is a problem, never a stream.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sluicegate_core::code::Code;
use sluicegate_core::ids::RunId;
use sluicegate_core::limits::Limits;

use crate::auth::Context;
use crate::http::App;
use crate::http::body::{Query, single};
use crate::http::refusal::Refusal;
use crate::stream::{EventCursor, Follow, Purpose, follow};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(in crate::http) async fn events(
    State(app): State<App>,
    context: Context,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Refusal> {
    let run_id = RunId::from(query.required("runId")?);
    let asked = query.number("afterSequence", 0, Limits::COUNTER)?;
    query.done()?;
    // A run of another tenant is answered as one that does not exist, whatever the cursor.
    let row = app.store.run_row(context.tenant(), &run_id).await?;
    let resumed = single(&headers, &LAST_EVENT_ID)?
        .map(|text| position(&app, &context, &run_id, text))
        .transpose()?;
    let after = match (resumed, asked) {
        (Some(resumed), Some(asked)) if resumed != asked => {
            let code = Code::WorkflowEventCursorConflict;
            return Err(Refusal::new(code, code.sentence()));
        }
        (Some(after), _) | (None, Some(after)) => after,
        (None, None) => 0,
    };
    let tail = row.row.last_sequence;
    if after > tail {
        let detail = format!("the last event is {tail}");
        return Err(Refusal::new(Code::WorkflowEventCursorAhead, detail));
    }
    // The reader has everything there will be; a browser that is told so stops.
    if after == tail && row.row.status.is_terminal() && (resumed.is_some() || asked.is_some()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let body = follow(Follow {
        store: app.store.clone(),
        hub: app.hub.clone(),
        cursors: app.cursors.clone(),
        tenant: context.tenant().clone(),
        run_id,
        after,
        closing: app.closing.clone(),
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (ACCEL, "no"),
    ];
    Ok((headers, body).into_response())
}

/// The sequence that a resume cursor names, if it is of this tenant and run.
fn position(app: &App, context: &Context, run_id: &RunId, text: &str) -> Result<u64, Refusal> {
    let refused = || {
        let code = Code::WorkflowEventCursorInvalid;
        Refusal::new(code, code.sentence())
    };
    let cursor: EventCursor = app
        .cursors
        .read(Purpose::Events, text)
        .map_err(|_| refused())?;
    if cursor.tenant_id != *context.tenant() || cursor.run_id != *run_id {
        return Err(refused());
    }
    Ok(cursor.sequence)
}
