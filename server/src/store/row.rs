//! Rows of runs as they are read from either database (seed A "Persistence outline"; api.md
//! "Runs"): the columns that [`super::flat`] writes.

use sluicegate_core::code::Code;
use sluicegate_core::evidence::Evidence;
use sluicegate_core::ids::{
    ChildId, EdgeId, Endpoint, Hash, NodeId, PayloadId, RunId, SchemaId, TenantId, WorkerId,
    WorkflowKey,
};
use sluicegate_core::run::{
    AttemptRow, CostRollup, EdgeRow, EdgeSettled, Failure, NodeRow, PriorLease, RecoveryReason,
    RetryRow, RollupState, RunRow, SettledSource, UsageRollup,
};
use sluicegate_core::time::{Instant, Millis};
use sluicegate_core::value::Value;

use super::column::{Columns, document, thing};
use super::{Due, Encrypted, Parked, PreviewRow, RunListRow, StoreError, StoredEvent};

pub(super) fn parked(row: &impl Columns) -> Result<Option<Parked>, StoreError> {
    let Some(code) = row.maybe_text("parked_code")? else {
        return Ok(None);
    };
    Ok(Some(Parked {
        code: Code::parse(&code).unwrap_or(Code::WorkflowEventTransitionInvalid),
        sequence: row.maybe_number("parked_sequence")?.unwrap_or(0),
    }))
}

pub(super) fn list_row(row: &impl Columns) -> Result<RunListRow, StoreError> {
    Ok(RunListRow {
        run_id: RunId::from(row.text("run_id")?),
        workflow_id: row.maybe_text("workflow_id")?,
        workflow_key: row.maybe_text("workflow_key")?.map(WorkflowKey::from),
        revision: row.maybe_number("workflow_revision")?,
        graph_checksum: row.hash("graph_checksum")?,
        actor: row.json("actor")?,
        origin: row.json("origin")?,
        row: projected(row)?,
        parked: parked(row)?,
    })
}

pub(super) fn stored_event(row: &impl Columns) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        sequence: row.number("sequence")?,
        // What is no text or no JSON any more is an event that nobody knows (A9).
        event_type: row.text("event_type").unwrap_or_default(),
        schema_version: u32::try_from(row.number("schema_version")?).unwrap_or(u32::MAX),
        payload: row.document("payload").unwrap_or_default(),
        recorded_at: row.instant("recorded_at")?,
        virtual_offset_ms: row.maybe_number("virtual_offset_ms")?.map(Millis),
    })
}

pub(super) fn encrypted(row: &impl Columns) -> Result<Encrypted, StoreError> {
    Ok(Encrypted {
        id: PayloadId::from(row.text("payload_id")?),
        key_id: row.text("key_id")?,
        bytes: row.bytes("bytes")?,
    })
}

/// A word of ours from its column.
pub(super) fn word<T: serde::de::DeserializeOwned>(word: String) -> Result<T, StoreError> {
    serde_json::from_value(Value::String(word)).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// What events project of a run.
pub(super) fn projected(row: &impl Columns) -> Result<RunRow, StoreError> {
    let version = u32::try_from(row.number("rollup_version")?).unwrap_or(0);
    let state: RollupState = word(row.text("rollup_state")?)?;
    let unpriced_child_runs = row.number("unpriced_child_runs")?;
    let unpriced_actions = row.number("unpriced_actions")?;
    let failure = match row.maybe_text("failure_code")? {
        None => None,
        Some(code) => Some(Failure {
            code,
            message: row.maybe_text("failure_message")?.unwrap_or_default(),
            node_id: row.maybe_text("failure_node_id")?.map(NodeId::from),
        }),
    };
    Ok(RunRow {
        status: word(row.text("status")?)?,
        mode: word(row.text("mode")?)?,
        last_sequence: row.number("last_sequence")?,
        queued_at: Some(row.instant("queued_at")?),
        started_at: row.maybe_instant("started_at")?,
        completed_at: row.maybe_instant("completed_at")?,
        cancel_requested_at: row.maybe_instant("cancel_requested_at")?,
        wake_at: row.maybe_instant("wake_at")?,
        nodes_settled: row.number("nodes_settled")?,
        nodes_total: row.number("nodes_total")?,
        usage: UsageRollup {
            version,
            state,
            input_tokens: row.number("input_tokens")?,
            output_tokens: row.number("output_tokens")?,
            total_tokens: row.number("total_tokens")?,
            included_child_run_ids: row.json("included_child_run_ids")?,
            priced_child_runs: row.number("priced_child_runs")?,
            unpriced_child_runs,
            action_invocations: row.number("action_invocations")?,
            unpriced_actions,
        },
        cost: CostRollup {
            version,
            state,
            currency: "USD".to_owned(),
            amount_micros: row.number("amount_micros")?,
            pricing_snapshot_ids: row.json("pricing_snapshot_ids")?,
            unpriced_child_runs,
            unpriced_actions,
        },
        failure,
    })
}

pub(super) fn node(row: &impl Columns) -> Result<NodeRow, StoreError> {
    Ok(NodeRow {
        node_id: NodeId::from(row.text("node_id")?),
        status: word(row.text("status")?)?,
        latest_attempt: small(row.number("latest_attempt")?),
        outcome_port: row.maybe_text("outcome_port")?,
        next_attempt_at: row.maybe_instant("next_attempt_at")?,
        ready_at: row.maybe_instant("ready_at")?,
        started_at: row.maybe_instant("started_at")?,
        settled_at: row.maybe_instant("settled_at")?,
    })
}

pub(super) fn attempt(row: &impl Columns) -> Result<AttemptRow, StoreError> {
    let retry = row.maybe_number("backoff_ms")?.map(|backoff| RetryRow {
        backoff_ms: Millis(backoff),
        next_attempt_at: None,
    });
    let next_attempt_at = row.maybe_instant("next_attempt_at")?;
    let key = row.maybe_text("idempotency_key")?;
    Ok(AttemptRow {
        node_id: NodeId::from(row.text("node_id")?),
        attempt: small(row.number("attempt")?),
        status: word(row.text("status")?)?,
        semantic_group: small(row.number("semantic_group")?),
        idempotency_key: key.as_deref().and_then(Hash::parse),
        started_at: row.maybe_instant("started_at")?,
        completed_at: row.maybe_instant("completed_at")?,
        outcome_port: row.maybe_text("outcome_port")?,
        child_kind: row.maybe_text("child_kind")?.map(word).transpose()?,
        child_id: row.maybe_text("child_id")?.map(ChildId::from),
        code: row.maybe_text("code")?,
        message: row.maybe_text("message")?,
        classification: row.maybe_text("classification")?.map(word).transpose()?,
        retry: retry.map(|retry| RetryRow {
            next_attempt_at,
            ..retry
        }),
        input: row.json("input")?,
        output: row
            .maybe_text("output")?
            .as_deref()
            .map(thing)
            .transpose()?,
        usage: row.maybe_text("usage")?.as_deref().map(thing).transpose()?,
        cost: row.maybe_text("cost")?.as_deref().map(thing).transpose()?,
        first_sequence: row.number("first_sequence")?,
        last_sequence: row.number("last_sequence")?,
    })
}

pub(super) fn edge(row: &impl Columns) -> Result<EdgeRow, StoreError> {
    Ok(EdgeRow {
        settled: EdgeSettled {
            edge_id: EdgeId::from(row.text("edge_id")?),
            state: word(row.text("state")?)?,
            source: SettledSource {
                node_id: NodeId::from(row.text("source_node_id")?),
                port: row.text("source_port")?,
                attempt: row.maybe_number("source_attempt")?.map(small),
            },
            target: Endpoint {
                node_id: NodeId::from(row.text("target_node_id")?),
                port: row.text("target_port")?,
            },
            selected_port: row.maybe_text("selected_port")?,
            reason: row.maybe_text("reason")?.map(word).transpose()?,
            evidence: row.json("evidence")?,
        },
        settled_at: row.maybe_instant("settled_at")?,
    })
}

pub(super) fn preview(row: &impl Columns) -> Result<PreviewRow, StoreError> {
    let payload_id = PayloadId::from(row.text("payload_id")?);
    let preview = row.maybe_text("preview")?;
    let hash = row.maybe_text("hash")?;
    Ok(PreviewRow {
        evidence: Evidence {
            version: 1,
            state: word(row.text("state")?)?,
            payload_id: Some(payload_id.clone()),
            schema_id: SchemaId::from(row.text("schema_id")?),
            hash: hash.as_deref().and_then(Hash::parse),
            original_byte_size: row.number("byte_size")?,
            reason: row.maybe_text("reason")?.map(word).transpose()?,
        },
        payload_id,
        preview: preview.as_deref().map(document).transpose()?,
    })
}

/// Attempts and the like are counted in few digits.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A run that may be claimed, from its row; found at `now`.
pub(super) fn due(row: &impl Columns, now: Instant) -> Result<Due, StoreError> {
    let fence = row.number("lease_fence")?;
    let over = match row.maybe_text("lease_owner")? {
        None => None,
        Some(owner) => {
            let prior = PriorLease {
                worker_id: WorkerId::from(owner),
                fence,
                lease_expires_at: Instant(row.maybe_number("lease_expires_at")?.unwrap_or(0)),
            };
            let reason = match row.number("lease_void")? {
                0 => RecoveryReason::LeaseExpired,
                _ => RecoveryReason::OwnerGone,
            };
            Some((prior, reason))
        }
    };
    Ok(Due {
        tenant: TenantId::from(row.text("tenant_id")?),
        run_id: RunId::from(row.text("run_id")?),
        fence,
        token: row.maybe_text("lease_token")?,
        over,
        found_at: now,
    })
}
