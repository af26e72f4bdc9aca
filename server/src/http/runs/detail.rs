//! One run with everything that readers may see of it (api.md "Runs").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use sluicegate_core::api::{
    AttemptCorrelation, CancelState, Cancellation, NodeDetail, PayloadView, RunDetail, RunSummary,
};
use sluicegate_core::ids::NodeId;
use sluicegate_core::plan::Document;
use sluicegate_core::run::{AttemptRow, NodeRow, NodeStatus, Payload, RunStatus};
use sluicegate_core::value::Value;

use super::list::summary;
use crate::auth::Context;
use crate::http::App;
use crate::http::body::Query;
use crate::http::refusal::Refusal;
use crate::store::{RunDetailRows, StoreError, StoredEvent};

pub(in crate::http) async fn detail(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let run_id = query.required("runId")?.into();
    query.done()?;
    let rows = app.store.run_detail(context.tenant(), &run_id).await?;
    Ok(Json(whole(rows)?).into_response())
}

fn whole(rows: RunDetailRows) -> Result<RunDetail, StoreError> {
    let plan: Document = stored(rows.plan)?;
    let status = rows.row.row.status;
    let compiled_order: Vec<_> = plan.nodes.iter().map(|node| node.id.clone()).collect();
    let nodes: Vec<_> = compiled_order
        .iter()
        .map(|id| node(id, &rows.nodes, &rows.attempts))
        .collect();
    let attempts = nodes.iter().flat_map(|node| &node.attempts);
    let correlations = attempts.filter_map(correlation).collect();
    let payloads = rows.payloads.into_iter().map(|row| {
        let view = PayloadView {
            evidence: row.evidence,
            preview: row.preview,
        };
        (row.payload_id, view)
    });
    Ok(RunDetail {
        // The detail has the nodes themselves in the place of their count.
        row: RunSummary {
            nodes: None,
            ..summary(rows.row)
        },
        invocation: stored(rows.invocation)?,
        graph: rows.graph,
        compiled_order,
        nodes,
        edges: rows.edges,
        payloads: payloads.collect(),
        cancellation: cancellation(&rows.cancellation, status),
        audit_sequences: rows.audit_sequences,
        correlations,
        plan,
    })
}

fn stored<T: DeserializeOwned>(value: Value) -> Result<T, StoreError> {
    serde_json::from_value(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn node(id: &NodeId, rows: &[NodeRow], attempts: &[AttemptRow]) -> NodeDetail {
    let row = rows.iter().find(|row| row.node_id == *id);
    let own = attempts.iter().filter(|attempt| attempt.node_id == *id);
    NodeDetail {
        node_id: id.clone(),
        status: row.map_or(NodeStatus::Pending, |row| row.status),
        outcome_port: row.and_then(|row| row.outcome_port.clone()),
        attempts: own.cloned().collect(),
    }
}

fn correlation(attempt: &AttemptRow) -> Option<AttemptCorrelation> {
    Some(AttemptCorrelation {
        node_id: attempt.node_id.clone(),
        attempt: attempt.attempt,
        child_kind: attempt.child_kind?,
        child_id: attempt.child_id.clone()?,
    })
}

/// What became of a cancellation, from its own events.
pub(super) fn cancellation(events: &[StoredEvent], status: RunStatus) -> Option<Cancellation> {
    let mut found: Option<Cancellation> = None;
    for event in events.iter().filter_map(|event| event.read().ok()) {
        match (event.payload, &mut found) {
            (Payload::RunCancelRequested(requested), _) => {
                found = Some(Cancellation {
                    state: CancelState::Requested,
                    requested_at: Some(requested.requested_at),
                    requested_by: Some(requested.requested_by),
                });
            }
            (Payload::NodeCancelAcknowledged(_), Some(found)) => {
                found.state = CancelState::Acknowledged;
            }
            (Payload::NodeCancelNotAcknowledged(_), Some(found)) => {
                found.state = CancelState::NotAcknowledged;
            }
            _ => {}
        }
    }
    if let Some(found) = found.as_mut().filter(|_| status == RunStatus::Cancelled) {
        found.state = CancelState::Cancelled;
    }
    found
}
