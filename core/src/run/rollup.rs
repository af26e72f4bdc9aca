//! Rollups of usage and cost (run-machine.md §10, U1–U2; seed A "Cost accounting").

use std::collections::BTreeSet;

use super::event::{ChildKind, Cost, CostRollup, Ended, Mode, RollupState, Usage, UsageRollup};
use crate::ids::ChildId;
use crate::limits::Limits;

/// What was counted so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rollup {
    usage: Usage,
    agents: Vec<ChildId>,
    actions: BTreeSet<ChildId>,
    amount_micros: u64,
    priced: u64,
    pricing: BTreeSet<String>,
}

impl Rollup {
    /// Counts a child once, by its id: an agent run when it is known to have ended, for only
    /// then is its usage final (U1), an action when it was invoked. `None`: a counter would
    /// leave the integers that every reader can hold.
    #[must_use]
    pub(super) fn count(
        &mut self,
        kind: ChildKind,
        id: &ChildId,
        ended: Option<bool>,
        usage: Option<Usage>,
        cost: Option<&Cost>,
    ) -> Option<()> {
        match kind {
            ChildKind::Action => {
                self.actions.insert(id.clone());
            }
            ChildKind::Agent => {
                if ended != Some(true) || self.agents.contains(id) {
                    return Some(());
                }
                let usage = usage.unwrap_or_default();
                let input = bounded(self.usage.input_tokens, usage.input_tokens)?;
                let output = bounded(self.usage.output_tokens, usage.output_tokens)?;
                bounded(input, output)?;
                if let Some(cost) = cost {
                    self.amount_micros = bounded(self.amount_micros, cost.amount_micros)?;
                    self.priced += 1;
                    self.pricing.insert(cost.pricing_snapshot_id.clone());
                }
                self.usage = Usage {
                    input_tokens: input,
                    output_tokens: output,
                };
                self.agents.push(id.clone());
            }
        }
        Some(())
    }

    /// The seed's two rollups.
    #[must_use]
    pub(super) fn ended(&self, mode: Mode, ended: bool) -> Ended {
        // A simulation spends nothing, whatever its fixtures stand for (V2).
        let none = Self::default();
        let (counted, state) = match (mode, ended) {
            (Mode::Simulate, _) => (&none, RollupState::NotApplicable),
            (Mode::Live, false) => (self, RollupState::Provisional),
            (Mode::Live, true) => (self, RollupState::Final),
        };
        let unpriced_child_runs = counted.agents.len() as u64 - counted.priced;
        let actions = counted.actions.len() as u64;
        Ended {
            usage: UsageRollup {
                version: 1,
                state,
                input_tokens: counted.usage.input_tokens,
                output_tokens: counted.usage.output_tokens,
                total_tokens: counted.usage.input_tokens + counted.usage.output_tokens,
                included_child_run_ids: counted.agents.clone(),
                priced_child_runs: counted.priced,
                unpriced_child_runs,
                action_invocations: actions,
                unpriced_actions: actions,
            },
            cost: CostRollup {
                version: 1,
                state,
                currency: "USD".to_owned(),
                amount_micros: counted.amount_micros,
                pricing_snapshot_ids: counted.pricing.iter().cloned().collect(),
                unpriced_child_runs,
                unpriced_actions: actions,
            },
        }
    }
}

fn bounded(a: u64, b: u64) -> Option<u64> {
    a.checked_add(b).filter(|sum| *sum <= Limits::COUNTER)
}
