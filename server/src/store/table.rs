//! The tables that decisions add rows to, by column (seed A "Persistence outline"): both
//! databases write them from the same lists.

use std::sync::Arc;

/// A column's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    /// Shared, for it is bound without being copied.
    Text(Arc<str>),
    Bytes(Vec<u8>),
}

/// What a column holds; PostgreSQL wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Bytes,
}

/// A table that decisions add rows to, and what a row that is there already means.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// The key of a row that is replaced whole; none: a row is written once.
    pub(super) replaced_by: &'static [&'static str],
}

use Kind::{Bytes, Int, Text};

impl Cell {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// The tables of rows, in the order in which they are written; the place of a table here is
/// its place in [`Transition::rows`](super::flat::Transition::rows).
pub(super) const TABLES: [Table; 6] = [
    Table {
        name: "workflow_run_documents",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("graph", Text),
            ("plan", Text),
        ],
        replaced_by: &[],
    },
    Table {
        name: "workflow_run_events",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("sequence", Int),
            ("event_type", Text),
            ("schema_version", Int),
            ("payload", Text),
            ("recorded_at", Int),
            ("virtual_offset_ms", Int),
        ],
        replaced_by: &[],
    },
    Table {
        name: "workflow_node_states",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("node_id", Text),
            ("status", Text),
            ("latest_attempt", Int),
            ("outcome_port", Text),
            ("next_attempt_at", Int),
            ("ready_at", Int),
            ("started_at", Int),
            ("settled_at", Int),
        ],
        replaced_by: &["tenant_id", "run_id", "node_id"],
    },
    Table {
        name: "workflow_node_attempts",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("node_id", Text),
            ("attempt", Int),
            ("node_type", Text),
            ("status", Text),
            ("semantic_group", Int),
            ("idempotency_key", Text),
            ("outcome_port", Text),
            ("child_kind", Text),
            ("child_id", Text),
            ("code", Text),
            ("message", Text),
            ("classification", Text),
            ("backoff_ms", Int),
            ("next_attempt_at", Int),
            ("input", Text),
            ("input_hash", Text),
            ("input_payload_id", Text),
            ("output", Text),
            ("output_hash", Text),
            ("output_payload_id", Text),
            ("usage", Text),
            ("cost", Text),
            ("started_at", Int),
            ("completed_at", Int),
            ("first_sequence", Int),
            ("last_sequence", Int),
        ],
        replaced_by: &["tenant_id", "run_id", "node_id", "attempt"],
    },
    Table {
        name: "workflow_edge_transfers",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("edge_id", Text),
            ("state", Text),
            ("source_node_id", Text),
            ("source_port", Text),
            ("source_attempt", Int),
            ("target_node_id", Text),
            ("target_port", Text),
            ("selected_port", Text),
            ("reason", Text),
            ("schema_id", Text),
            ("payload_hash", Text),
            ("payload_id", Text),
            ("byte_size", Int),
            ("evidence", Text),
            ("settled_at", Int),
        ],
        replaced_by: &[],
    },
    Table {
        name: "workflow_payloads",
        columns: &[
            ("tenant_id", Text),
            ("run_id", Text),
            ("payload_id", Text),
            ("kind", Text),
            ("schema_id", Text),
            ("hash", Text),
            ("byte_size", Int),
            ("state", Text),
            ("reason", Text),
            ("preview", Text),
            ("key_id", Text),
            ("bytes", Bytes),
            ("created_at", Int),
        ],
        replaced_by: &[],
    },
];

/// The audit entries, written after the rows that they record.
pub(super) const AUDIT: Table = Table {
    name: "workflow_audit_events",
    columns: &[
        ("tenant_id", Text),
        ("sequence", Int),
        ("action", Text),
        ("subject_kind", Text),
        ("subject_id", Text),
        ("entry", Text),
    ],
    replaced_by: &[],
};

/// The heads of the audit chains, one row a tenant.
pub(super) const HEADS: Table = Table {
    name: "workflow_audit_heads",
    columns: &[("tenant_id", Text), ("sequence", Int), ("hash", Text)],
    replaced_by: &["tenant_id"],
};

/// The run's own row: the invocation, then what events project ([`PROJECTED`]), then
/// whether it is open.
pub(super) const RUNS: Table = Table {
    name: "workflow_runs",
    columns: &[
        ("tenant_id", Text),
        ("run_id", Text),
        ("workflow_id", Text),
        ("workflow_key", Text),
        ("workflow_revision", Int),
        ("graph_checksum", Text),
        ("plan_hash", Text),
        ("compiler_version", Text),
        ("mode", Text),
        ("actor_kind", Text),
        ("actor_id", Text),
        ("actor_label", Text),
        ("actor_run_id", Text),
        ("actor_configured_by", Text),
        ("actor", Text),
        ("origin_kind", Text),
        ("origin_reference", Text),
        ("origin", Text),
        ("permissions", Text),
        ("permission_digest", Text),
        ("input_hash", Text),
        ("input_payload_id", Text),
        ("idempotency_key", Text),
        ("limits", Text),
        ("queued_at", Int),
        ("open", Int),
        ("status", Text),
        ("last_sequence", Int),
        ("started_at", Int),
        ("completed_at", Int),
        ("cancel_requested_at", Int),
        ("wake_at", Int),
        ("nodes_settled", Int),
        ("nodes_total", Int),
        ("rollup_state", Text),
        ("input_tokens", Int),
        ("output_tokens", Int),
        ("total_tokens", Int),
        ("included_child_run_ids", Text),
        ("priced_child_runs", Int),
        ("unpriced_child_runs", Int),
        ("action_invocations", Int),
        ("unpriced_actions", Int),
        ("amount_micros", Int),
        ("pricing_snapshot_ids", Text),
        ("failure_code", Text),
        ("failure_message", Text),
        ("failure_node_id", Text),
    ],
    replaced_by: &[],
};

/// Where the columns that events project begin in [`RUNS`].
pub(super) const PROJECTED: usize = 26;
