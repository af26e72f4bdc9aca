//! A run as a picture on its graph, after any number of its events (run-machine.md §1
//! `project`; wire-format.md §11 `foldEvents`; seed A "Execution overlay").

use serde::Serialize;

use super::Corrupt;
use super::event::{Event, PayloadKind, RunCancelRequested};
use super::projection::{AttemptRow, EdgeRow, NodeRow, RunRow, all_nodes, edge_row, run_row};
use super::state::Run;
use crate::evidence::Evidence;
use crate::ids::{RunId, TenantId};
use crate::plan::Plan;
use crate::time::Millis;
use crate::value::Value;

/// The rows of one run in one document: every node, every edge that has its word.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overlay {
    /// Status, times, rollups and failure.
    #[serde(flatten)]
    pub run: RunRow,
    /// How far a simulation's own clock is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_offset_ms: Option<Millis>,
    /// The cancellation, once one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<RunCancelRequested>,
    /// All nodes in plan order.
    pub nodes: Vec<NodeOverlay>,
    /// The settled edges by id.
    pub edges: Vec<EdgeRow>,
}

/// One node of an [`Overlay`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeOverlay {
    /// Its own row.
    #[serde(flatten)]
    pub node: NodeRow,
    /// Its attempts, from 1.
    pub attempts: Vec<AttemptRow>,
}

/// Folds stored events, as far as they are there. Whose run it is decides nothing that a
/// picture shows, so it need not be known.
///
/// # Errors
/// [`Corrupt`] for the first event that cannot be read or does not follow.
pub fn fold_events(plan: &Plan, events: &[Value]) -> Result<Run, Corrupt> {
    let mut run = Run::new(plan, TenantId::from(""), RunId::from(""));
    for stored in events {
        let event = Event::read(stored).map_err(|error| Corrupt {
            code: error.code,
            sequence: error.sequence,
            detail: error.detail,
        })?;
        run.apply(plan, &event)?;
    }
    Ok(run)
}

/// The picture of a run as it stands.
#[must_use]
pub fn overlay(plan: &Plan, run: &Run) -> Overlay {
    Overlay {
        run: run_row(plan, run),
        virtual_offset_ms: run.clock().virtual_offset_ms,
        cancellation: run.cancellation().cloned(),
        nodes: all_nodes(plan, run)
            .map(|(node, mut attempts)| {
                for attempt in &mut attempts {
                    let output = attempt.output.iter_mut();
                    output
                        .chain([&mut attempt.input])
                        .for_each(|evidence| as_it_stands(run, evidence));
                }
                NodeOverlay { node, attempts }
            })
            .collect(),
        edges: run
            .edges()
            .iter()
            .flatten()
            .map(|fact| {
                let mut row = edge_row(fact);
                as_it_stands(run, &mut row.settled.evidence);
                row
            })
            .collect(),
    }
}

/// Rows keep what the events said when they were written; a picture shows what retention has left
/// of it (run-machine.md §2: only `evidence` projects `expired`).
fn as_it_stands(run: &Run, evidence: &mut Evidence) {
    let id = evidence.payload_id.as_ref();
    if id.is_some_and(|id| run.is_retired(id, PayloadKind::Evidence)) {
        evidence.expire();
    }
}
