//! Decisions as rows (architecture.md "Rules"; seed A "Persistence outline"): flattened once,
//! before the one transaction that many of them share, and bound by both databases.

use std::collections::BTreeMap;

use serde::Serialize;

use sluicegate_core::actor::{Actor, ConfiguredBy};
use sluicegate_core::audit;
use sluicegate_core::ids::{Hash, NodeId, RunId, TenantId};
use sluicegate_core::node_type::NodeType;
use sluicegate_core::run::{
    AttemptRow, EVENT_SCHEMA_VERSION, EdgeRow, Mode, NodeRow, PayloadKind, Queued, Rows, RunRow,
};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, Value};

use super::column::int;
use super::table::{Cell, TABLES};
use super::{
    ChildChanges, Commit, Guard, NewEvent, NewRun, RunReference, RunSimulated, Sealed, StoreError,
};

/// A decision, ready to be written with others.
#[derive(Debug, Clone)]
pub(super) struct Transition {
    pub(super) tenant: TenantId,
    pub(super) run_id: RunId,
    pub(super) begins: Begins,
    /// The columns of [`RUNS`](super::table::RUNS) from [`PROJECTED`](super::table::PROJECTED) on.
    pub(super) projected: Vec<Cell>,
    pub(super) ended: bool,
    /// When a claim may find it once nobody holds it.
    pub(super) wake_at: i64,
    pub(super) hand_back: bool,
    /// Rows by table, row after row.
    pub(super) rows: [Vec<Cell>; TABLES.len()],
    pub(super) children: ChildChanges,
    pub(super) audit: audit::Prepared,
}

/// What a decision begins with.
#[derive(Debug, Clone)]
pub(super) enum Begins {
    /// A stored run, as the guard says.
    Stored(Guard),
    /// A run that is new: the columns of [`RUNS`](super::table::RUNS) before [`PROJECTED`](super::table::PROJECTED).
    New {
        invocation: Vec<Cell>,
        /// The key, and the revision that must still be the published one (N2, N3); a
        /// simulation has neither.
        accepted: Option<(String, RunReference)>,
    },
}

impl Transition {
    /// A decision of a stored run.
    pub(super) fn of(commit: Commit, now: Instant) -> Result<Self, StoreError> {
        let guard = commit.guard.clone();
        Self::flatten(commit, Begins::Stored(guard), None, now)
    }

    /// A live run with its first decision.
    pub(super) fn enqueued(run: NewRun, now: Instant) -> Result<Self, StoreError> {
        let invocation = Invocation {
            workflow_id: Some(&run.reference.workflow_id),
            workflow_key: Some(run.reference.workflow_key.as_str()),
            workflow_revision: Some(run.reference.workflow_revision),
            graph_checksum: run.graph_checksum,
            plan_hash: run.plan_hash,
            permissions: &run.permissions,
            input_hash: run.input_hash,
            idempotency_key: Some(&run.idempotency_key),
            queued: &run.queued,
        };
        let begins = Begins::New {
            invocation: invocation.cells(&run.first)?,
            accepted: Some((run.idempotency_key, run.reference)),
        };
        Self::flatten(run.first, begins, None, now)
    }

    /// A finished simulation.
    pub(super) fn simulated(run: RunSimulated, now: Instant) -> Result<Self, StoreError> {
        let (workflow_id, workflow_key, workflow_revision) = match &run.workflow {
            Some((id, key, revision)) => (Some(id.as_str()), Some(key.as_str()), *revision),
            None => (None, None, None),
        };
        let invocation = Invocation {
            workflow_id,
            workflow_key,
            workflow_revision,
            graph_checksum: run.graph_checksum,
            plan_hash: run.plan_hash,
            permissions: &[],
            input_hash: run.input_hash,
            idempotency_key: None,
            queued: &run.queued,
        };
        let begins = Begins::New {
            invocation: invocation.cells(&run.whole)?,
            accepted: None,
        };
        // A published revision keeps its own graph and plan.
        let documents = workflow_revision
            .is_none()
            .then(|| [value::canonical(&run.graph), value::canonical(&run.plan)]);
        Self::flatten(run.whole, begins, documents, now)
    }

    fn flatten(
        commit: Commit,
        begins: Begins,
        documents: Option<[String; 2]>,
        now: Instant,
    ) -> Result<Self, StoreError> {
        let row = run_row(&commit)?;
        let (ended, wake_at) = (
            row.status.is_terminal(),
            row.wake_at.map_or(0, |at| int(at.0)),
        );
        let projected = projected(row)?;
        let mut rows: [Vec<Cell>; TABLES.len()] = Default::default();
        let of_run = Of(&commit.tenant, &commit.run_id);
        let [of_documents, events, nodes, attempts, edges, payloads] = &mut rows;
        if let Some([graph, plan]) = documents {
            of_documents.extend(of_run.with([Cell::Text(graph.into()), Cell::Text(plan.into())]));
        }
        for event in commit.events {
            events.extend(of_run.with(event_cells(event)));
        }
        projections(
            of_run,
            &commit.rows,
            &commit.node_types,
            [nodes, attempts, edges],
        )?;
        for payload in commit.payloads {
            payload_cells(of_run, payload, now, payloads)?;
        }
        let audit = commit.audit.prepare();
        Ok(Self {
            begins,
            projected,
            ended,
            wake_at,
            hand_back: commit.hand_back,
            rows,
            children: commit.children,
            audit: audit.map_err(|error| StoreError::Corrupt(error.to_string()))?,
            tenant: commit.tenant,
            run_id: commit.run_id,
        })
    }
}

/// What the run's own row takes from a new run or simulation.
struct Invocation<'a> {
    workflow_id: Option<&'a str>,
    workflow_key: Option<&'a str>,
    workflow_revision: Option<u64>,
    graph_checksum: Hash,
    plan_hash: Hash,
    permissions: &'a [String],
    input_hash: Hash,
    idempotency_key: Option<&'a str>,
    queued: &'a Queued,
}

impl Invocation<'_> {
    fn cells(&self, commit: &Commit) -> Result<Vec<Cell>, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt(what.to_owned());
        let row = run_row(commit)?;
        let queued = self.queued;
        let origin = commit.audit.origin.as_ref();
        let origin = origin.ok_or_else(|| corrupt("a run without an origin"))?;
        let actor = &commit.audit.actor;
        let (run, configured_by) = match actor {
            Actor::User(_) => (None, None),
            Actor::Agent { run_id, .. } => (Some(run_id.as_str()), None),
            Actor::Service { configured_by, .. } => {
                let ConfiguredBy::User(user) = configured_by;
                (None, Some(user.account_id.as_str()))
            }
        };
        let live = row.mode == Mode::Live;
        let queued_at = row.queued_at.unwrap_or(commit.audit.occurred_at);
        let input_id = queued.input.payload_id.as_ref();
        let input_id = input_id.ok_or_else(|| corrupt("a run without an input"))?;
        Ok(vec![
            text(commit.tenant.as_str()),
            text(commit.run_id.as_str()),
            maybe(self.workflow_id),
            maybe(self.workflow_key),
            number(self.workflow_revision),
            text(&self.graph_checksum.to_string()),
            text(&self.plan_hash.to_string()),
            text(&queued.compiler_version),
            text(if live { "live" } else { "simulate" }),
            text(actor.kind()),
            text(actor.id()),
            text(actor.label()),
            maybe(run),
            maybe(configured_by),
            json(actor)?,
            text(origin.kind()),
            maybe(origin.reference()),
            json(origin)?,
            json(&self.permissions)?,
            hash(queued.permission_digest.as_ref()),
            text(&self.input_hash.to_string()),
            text(input_id.as_str()),
            maybe(self.idempotency_key),
            json(&queued.limits)?,
            number(Some(queued_at.0)),
            Cell::Int((live && !row.status.is_terminal()).into()),
        ])
    }
}

fn run_row(commit: &Commit) -> Result<&RunRow, StoreError> {
    let row = commit.rows.run.as_ref();
    row.ok_or_else(|| StoreError::Corrupt("a decision without the run's row".to_owned()))
}

/// The columns that every row of a run begins with.
#[derive(Clone, Copy)]
struct Of<'a>(&'a TenantId, &'a RunId);

impl Of<'_> {
    fn with<const N: usize>(self, rest: [Cell; N]) -> impl Iterator<Item = Cell> {
        [text(self.0.as_str()), text(self.1.as_str())]
            .into_iter()
            .chain(rest)
    }
}

/// Adds the rows of nodes, attempts and edges.
fn projections(
    of_run: Of<'_>,
    rows: &Rows,
    node_types: &BTreeMap<NodeId, NodeType>,
    [nodes, attempts, edges]: [&mut Vec<Cell>; 3],
) -> Result<(), StoreError> {
    for node in &rows.nodes {
        nodes.extend(of_run.with(node_cells(node)?));
    }
    for attempt in &rows.attempts {
        let node_type = node_types.get(&attempt.node_id);
        let node_type = node_type.map_or("", |found| found.as_str());
        attempts.extend(of_run.with(attempt_cells(attempt, node_type)?));
    }
    for edge in &rows.edges {
        edges.extend(of_run.with(edge_cells(edge)?));
    }
    Ok(())
}

/// All rows of a run in the tables that its events project, by table: nodes, attempts, edges.
pub(super) fn projected_rows(
    tenant: &TenantId,
    run_id: &RunId,
    rows: &Rows,
    node_types: &BTreeMap<NodeId, NodeType>,
) -> Result<[Vec<Cell>; 3], StoreError> {
    let mut cells: [Vec<Cell>; 3] = Default::default();
    let [nodes, attempts, edges] = &mut cells;
    projections(
        Of(tenant, run_id),
        rows,
        node_types,
        [nodes, attempts, edges],
    )?;
    Ok(cells)
}

/// What events project of a run: the columns of [`RUNS`](super::table::RUNS) from [`PROJECTED`](super::table::PROJECTED) on.
pub(super) fn projected(row: &RunRow) -> Result<Vec<Cell>, StoreError> {
    let (usage, cost, failure) = (&row.usage, &row.cost, row.failure.as_ref());
    Ok(vec![
        text(row.status.as_str()),
        number(Some(row.last_sequence)),
        at(row.started_at),
        at(row.completed_at),
        at(row.cancel_requested_at),
        at(row.wake_at),
        number(Some(row.nodes_settled)),
        number(Some(row.nodes_total)),
        word(&usage.state)?,
        number(Some(usage.input_tokens)),
        number(Some(usage.output_tokens)),
        number(Some(usage.total_tokens)),
        json(&usage.included_child_run_ids)?,
        number(Some(usage.priced_child_runs)),
        number(Some(usage.unpriced_child_runs)),
        number(Some(usage.action_invocations)),
        number(Some(usage.unpriced_actions)),
        number(Some(cost.amount_micros)),
        json(&cost.pricing_snapshot_ids)?,
        maybe(failure.map(|failure| failure.code.as_str())),
        maybe(failure.map(|failure| failure.message.as_str())),
        maybe(failure.and_then(|failure| failure.node_id.as_ref().map(NodeId::as_str))),
    ])
}

fn event_cells(event: NewEvent) -> [Cell; 6] {
    [
        number(Some(event.sequence)),
        text(event.event_type),
        Cell::Int(EVENT_SCHEMA_VERSION.into()),
        Cell::Text(event.payload.into()),
        number(Some(event.recorded_at.0)),
        number(event.virtual_offset_ms.map(|offset| offset.0)),
    ]
}

fn node_cells(row: &NodeRow) -> Result<[Cell; 8], StoreError> {
    Ok([
        text(row.node_id.as_str()),
        text(row.status.as_str()),
        Cell::Int(row.latest_attempt.into()),
        maybe(row.outcome_port.as_deref()),
        at(row.next_attempt_at),
        at(row.ready_at),
        at(row.started_at),
        at(row.settled_at),
    ])
}

fn attempt_cells(row: &AttemptRow, node_type: &str) -> Result<[Cell; 26], StoreError> {
    let retry = row.retry.as_ref();
    let output = row.output.as_ref();
    Ok([
        text(row.node_id.as_str()),
        Cell::Int(row.attempt.into()),
        text(node_type),
        word(&row.status)?,
        Cell::Int(row.semantic_group.into()),
        hash(row.idempotency_key.as_ref()),
        maybe(row.outcome_port.as_deref()),
        row.child_kind.as_ref().map_or(Ok(Cell::Null), word)?,
        maybe(row.child_id.as_ref().map(|id| id.as_str())),
        maybe(row.code.as_deref()),
        maybe(row.message.as_deref()),
        row.classification.as_ref().map_or(Ok(Cell::Null), word)?,
        number(retry.map(|retry| retry.backoff_ms.0)),
        at(retry.and_then(|retry| retry.next_attempt_at)),
        json(&row.input)?,
        hash(row.input.hash.as_ref()),
        maybe(row.input.payload_id.as_ref().map(|id| id.as_str())),
        output.map_or(Ok(Cell::Null), json)?,
        hash(output.and_then(|output| output.hash.as_ref())),
        maybe(output.and_then(|output| output.payload_id.as_ref().map(|id| id.as_str()))),
        row.usage.as_ref().map_or(Ok(Cell::Null), json)?,
        row.cost.as_ref().map_or(Ok(Cell::Null), json)?,
        at(row.started_at),
        at(row.completed_at),
        number(Some(row.first_sequence)),
        number(Some(row.last_sequence)),
    ])
}

fn edge_cells(row: &EdgeRow) -> Result<[Cell; 15], StoreError> {
    let edge = &row.settled;
    Ok([
        text(edge.edge_id.as_str()),
        word(&edge.state)?,
        text(edge.source.node_id.as_str()),
        text(&edge.source.port),
        number(edge.source.attempt.map(u64::from)),
        text(edge.target.node_id.as_str()),
        text(&edge.target.port),
        maybe(edge.selected_port.as_deref()),
        edge.reason.as_ref().map_or(Ok(Cell::Null), word)?,
        text(edge.evidence.schema_id.as_str()),
        hash(edge.evidence.hash.as_ref()),
        maybe(edge.evidence.payload_id.as_ref().map(|id| id.as_str())),
        number(Some(edge.evidence.original_byte_size)),
        json(&edge.evidence)?,
        at(row.settled_at),
    ])
}

/// An encrypted row and, beside an execution payload, the row that readers see.
fn payload_cells(
    of_run: Of<'_>,
    payload: Sealed,
    now: Instant,
    into: &mut Vec<Cell>,
) -> Result<(), StoreError> {
    let Sealed {
        id,
        kind,
        schema_id,
        key_id,
        bytes,
        evidence,
        preview,
    } = payload;
    let mut put = |kind: &str, [state, reason, preview, key_id, bytes]: [Cell; 5]| {
        into.extend(of_run.with([
            text(id.as_str()),
            text(kind),
            text(schema_id.as_str()),
            hash(evidence.hash.as_ref()),
            number(Some(evidence.original_byte_size)),
            state,
            reason,
            preview,
            key_id,
            bytes,
            number(Some(now.0)),
        ]));
    };
    if kind != PayloadKind::Evidence {
        let name = match kind {
            PayloadKind::Result => "result",
            _ => "execution",
        };
        let sealed = [Cell::Text(key_id.into()), Cell::Bytes(bytes)];
        let [key_id, bytes] = sealed;
        put(name, [Cell::Null, Cell::Null, Cell::Null, key_id, bytes]);
    }
    if kind != PayloadKind::Result {
        let state = word(&evidence.state)?;
        let reason = evidence.reason.as_ref().map_or(Ok(Cell::Null), word)?;
        let preview = preview.map_or(Cell::Null, |shown| {
            Cell::Text(value::canonical(&shown).into())
        });
        put("evidence", [state, reason, preview, Cell::Null, Cell::Null]);
    }
    Ok(())
}

fn text(text: &str) -> Cell {
    Cell::text(text)
}

fn maybe(text: Option<&str>) -> Cell {
    text.map_or(Cell::Null, Cell::text)
}

fn number(number: Option<u64>) -> Cell {
    number.map_or(Cell::Null, |number| Cell::Int(int(number)))
}

fn at(at: Option<Instant>) -> Cell {
    number(at.map(|at| at.0))
}

fn hash(hash: Option<&Hash>) -> Cell {
    hash.map_or(Cell::Null, |hash| Cell::Text(hash.to_string().into()))
}

/// Any serializable thing as JSON text.
pub(super) fn json<T: Serialize + ?Sized>(thing: &T) -> Result<Cell, StoreError> {
    serde_json::to_string(thing)
        .map(|text| Cell::Text(text.into()))
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The wire name of a word of ours.
pub(super) fn word<T: Serialize>(thing: &T) -> Result<Cell, StoreError> {
    match serde_json::to_value(thing) {
        Ok(Value::String(word)) => Ok(Cell::Text(word.into())),
        Ok(_) => Err(StoreError::Corrupt("a word that is no text".to_owned())),
        Err(error) => Err(StoreError::Corrupt(error.to_string())),
    }
}
