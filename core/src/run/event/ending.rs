//! How a run ends, and what it cost (run-machine.md §2, U1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::ids::{ChildId, NodeId};

/// Whether a rollup may still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollupState {
    /// A simulation uses nothing.
    NotApplicable,
    /// The run has not ended.
    Provisional,
    /// It has.
    Final,
}

/// The seed's `WorkflowUsageRollupV1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageRollup {
    /// Always 1.
    pub version: u32,
    /// Whether it may still grow.
    pub state: RollupState,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Agent runs that are counted, in the order of their settlement.
    pub included_child_run_ids: Vec<ChildId>,
    /// Of these, with a price.
    pub priced_child_runs: u64,
    /// Of these, without.
    pub unpriced_child_runs: u64,
    /// Action invocations.
    pub action_invocations: u64,
    /// Of these, without a price: all, in version 1.
    pub unpriced_actions: u64,
}

/// The seed's `WorkflowCostRollupV1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostRollup {
    /// Always 1.
    pub version: u32,
    /// Whether it may still grow.
    pub state: RollupState,
    /// Always `USD`.
    pub currency: String,
    /// Micro-USD.
    pub amount_micros: u64,
    /// Price lists that were used, sorted.
    pub pricing_snapshot_ids: Vec<String>,
    /// Agent runs without a price.
    pub unpriced_child_runs: u64,
    /// Action invocations without a price.
    pub unpriced_actions: u64,
}

/// The rollups that every terminal event carries (D2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Tokens.
    pub usage: UsageRollup,
    /// Money.
    pub cost: CostRollup,
}

/// `run.succeeded`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Succeeded {
    /// Output node → what it received.
    pub outputs: BTreeMap<NodeId, Evidence>,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}

/// `run.failed` and `run.refused`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// Why.
    pub code: String,
    /// Why, for people.
    pub message: String,
    /// Where, if it was at a node.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node_id: Option<NodeId>,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}

/// A node's attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptKey {
    /// The node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt: u32,
}

/// Who listened to a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acknowledgement {
    /// Attempts whose child acknowledged.
    pub acknowledged: Vec<AttemptKey>,
    /// Attempts whose child did not.
    pub not_acknowledged: Vec<AttemptKey>,
}

/// `run.cancelled`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCancelled {
    /// Who listened.
    #[serde(flatten)]
    pub acknowledgement: Acknowledgement,
    /// The final rollups.
    #[serde(flatten)]
    pub ended: Ended,
}
