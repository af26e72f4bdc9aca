//! The sweep that applies the retention rules (server.md §8): a task of every process that works.
//! It goes through the tenants one after the other and along their runs' ends, a few at a time, so
//! that nobody waits for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::time::Instant;

use crate::engine::Engine;
use crate::store::{Kept, Rule, StoreError};

/// How often a process sweeps; rules count in days.
const EVERY: Duration = Duration::from_secs(3_600);
/// How long, in milliseconds, an end may take until everybody sees it.
const SETTLING: u64 = 600_000;
/// Runs, or tenants, that are looked at in one statement.
const PAGE: u32 = 200;
/// Pages of the database that are given back in one transaction.
const PAGES: u32 = 256;
/// What others have between two steps.
const PAUSE: Duration = Duration::from_millis(5);

/// The end of the last run that needs no look any more.
type Place = (Instant, RunId);

/// A process' sweeps.
pub struct Retention {
    engine: Arc<Engine>,
    rules: Vec<Rule>,
    /// How far each tenant is, by the place of the rule. Kept in memory alone: a process that
    /// starts looks at everything once.
    swept: HashMap<(TenantId, usize), Place>,
}

impl Retention {
    /// Sweeps by these rules; none: what is stored is kept for ever.
    #[must_use]
    pub fn new(engine: Arc<Engine>, rules: Vec<Rule>) -> Self {
        Self {
            engine,
            rules,
            swept: HashMap::new(),
        }
    }

    /// Sweeps now and every hour, for ever.
    pub async fn run(mut self) {
        if self.rules.is_empty() {
            return;
        }
        loop {
            if let Err(error) = self.sweep(self.engine.clock.now()).await {
                tracing::error!(%error, "a retention sweep ended early; the next one goes on");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Applies every rule as of a time, and gives free space back.
    ///
    /// # Errors
    /// Those of the store. What was not done is done by the next sweep.
    pub async fn sweep(&mut self, now: Instant) -> Result<(), StoreError> {
        let mut after: Option<TenantId> = None;
        loop {
            let tenants = self.engine.store.tenants(after.as_ref(), PAGE).await?;
            for tenant in &tenants {
                for at in 0..self.rules.len() {
                    self.apply(tenant, at, now).await?;
                }
            }
            match tenants.into_iter().last() {
                Some(last) => after = Some(last),
                None => break,
            }
        }
        while self.engine.store.reclaim(PAGES).await? {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Applies one rule to one tenant's runs, from where the last sweep came.
    async fn apply(
        &mut self,
        tenant: &TenantId,
        at: usize,
        now: Instant,
    ) -> Result<(), StoreError> {
        let Some(rule) = self.rules.get(at).copied() else {
            return Ok(());
        };
        let Some(until) = now.0.checked_sub(rule.age_ms()).map(Instant) else {
            return Ok(());
        };
        let key = (tenant.clone(), at);
        let mut place = self.swept.get(&key).cloned();
        // A run that fails, or is parked until somebody repairs it, is looked at again by the next
        // sweep, and holds up no other.
        let mut whole = true;
        loop {
            let page = self
                .engine
                .store
                .ended(tenant, rule, until, place.as_ref(), PAGE)
                .await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            place = Some((last.completed_at, last.run_id.clone()));
            for ended in page.iter().filter(|ended| ended.holds) {
                if ended.parked {
                    whole = false;
                    continue;
                }
                let retired = self.engine.retire(tenant, &ended.run_id, rule).await;
                if let Err(error) = retired {
                    let run_id = &ended.run_id;
                    tracing::warn!(%tenant, %run_id, %error, "retention has to wait");
                    whole = false;
                }
                tokio::time::sleep(PAUSE).await;
            }
            // A run that ended a moment ago may become visible after one that ended later.
            let settled = last.completed_at.0.saturating_add(SETTLING) < now.0;
            if let Some(place) = place.clone().filter(|_| whole && settled) {
                self.swept.insert(key.clone(), place);
            }
        }
    }
}

impl Rule {
    /// The rules that settings ask for.
    #[must_use]
    pub fn of_days(values: Option<u64>, previews: Option<u64>) -> Vec<Self> {
        let rule = |kept: Kept, days: Option<u64>| days.map(|days| Self { kept, days });
        [rule(Kept::Values, values), rule(Kept::Previews, previews)]
            .into_iter()
            .flatten()
            .collect()
    }
}
