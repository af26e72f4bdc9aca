//! Every bound of version 1 in one type; its default is the seed's
//! ("Limits", seed A; wire-format.md §§3, 5–7; run-machine.md D4, A5–A7).

use serde::{Deserialize, Serialize};

/// What one graph and one run may use. Recorded in `run.queued` (D4), so that a run
/// is judged by the limits that it began with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Nodes in a graph.
    pub nodes: u64,
    /// Edges in a graph.
    pub edges: u64,
    /// Schemas in a graph.
    pub schemas: u64,
    /// Canonical bytes of the whole graph document, layout included (G1).
    pub graph_bytes: u64,
    /// Canonical bytes of an invocation's input.
    pub input_bytes: u64,
    /// Canonical bytes of one node's input or output envelope.
    pub envelope_bytes: u64,
    /// Bytes of evidence previews that one run keeps (A6).
    pub preview_bytes: u64,
    /// Attempts of one node.
    pub attempts: u64,
    /// Total age of a live run, in milliseconds (A5).
    pub duration_ms: u64,
    /// Events of one run (A7).
    pub events: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 100,
            edges: 200,
            schemas: 32,
            graph_bytes: 65_536,
            input_bytes: 65_536,
            envelope_bytes: 65_536,
            preview_bytes: 1_048_576,
            attempts: 5,
            duration_ms: 86_400_000,
            events: 10_000,
        }
    }
}

impl Limits {
    /// Events kept free for ending a run (A7).
    pub const EVENTS_RESERVE: u64 = 500;
    /// Canonical bytes of one evidence preview (server.md §7).
    pub const ONE_PREVIEW_BYTES: u64 = 4_096;
    /// Nested containers of any JSON text (J4).
    pub const JSON_DEPTH: usize = 64;
    /// Depth of a schema, counted through `$ref` (S2).
    pub const SCHEMA_DEPTH: usize = 16;
    /// Subschemas of a schema after expansion (S2).
    pub const SCHEMA_NODES: usize = 4_096;
    /// Canonical bytes of one schema (S2).
    pub const SCHEMA_BYTES: usize = 16_384;
    /// Depth of a gate expression (L1).
    pub const GATE_DEPTH: usize = 16;
    /// Operands of `and` and `or` (L1).
    pub const GATE_OPERANDS: usize = 64;
    /// Characters of a label (I3).
    pub const LABEL_CHARS: usize = 120;
    /// Characters of a description (I3).
    pub const DESCRIPTION_CHARS: usize = 2_000;
    /// Codes in `retryOn` (§7).
    pub const RETRY_CODES: usize = 16;
    /// Longest wait before a retry, in milliseconds (§7).
    pub const BACKOFF_MS: u64 = 3_600_000;
    /// Smallest and largest time limit of an agent node, in milliseconds (G4).
    pub const AGENT_TIMEOUT_MS: (u64, u64) = (1_000, 3_600_000);
    /// An agent node's time limit where none is given, in milliseconds (G4).
    pub const AGENT_TIMEOUT_DEFAULT_MS: u64 = 300_000;
    /// Largest `simulatedDurationMs` (X1).
    pub const FIXTURE_DURATION_MS: u64 = 86_400_000;
    /// What the engine waits for a deaf child beyond its deadline (A8), and for an
    /// answer to a cancellation (C2), in milliseconds.
    pub const CHILD_GRACE_MS: u64 = 5_000;
    /// The largest integer that a counter may hold (U1): 2^53 − 1.
    pub const COUNTER: u64 = 9_007_199_254_740_991;
    /// Characters of a message that an event carries (A6).
    pub const MESSAGE_CHARS: usize = 2_000;
    /// Characters of a code that an event carries (A6).
    pub const CODE_CHARS: usize = 128;
    /// Characters of an idempotency key (api.md).
    pub const IDEMPOTENCY_KEY_CHARS: usize = 200;
}
