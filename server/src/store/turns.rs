//! Turns (run-machine.md W9): one run per tenant and turn, beginning after the tenant whose
//! turn it was last.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use sluicegate_core::ids::TenantId;

use super::{Due, StoreError};

/// A process's turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whose turn it was last.
    last: Mutex<Option<TenantId>>,
    /// How many tenants had due runs when last asked.
    busy: AtomicU32,
}

impl Turns {
    /// Up to `limit` due runs in turns. `heads` reads the first so many of every tenant.
    pub(super) async fn deal<F>(
        &self,
        limit: u32,
        heads: impl Fn(u32) -> F + Send,
    ) -> Result<Vec<Due>, StoreError>
    where
        F: Future<Output = Result<Vec<Due>, StoreError>> + Send,
    {
        // With many tenants few of each are asked for, and more only where those few do not
        // make up the number.
        let mut each = limit.div_ceil(self.busy.load(Ordering::Relaxed).max(1));
        loop {
            let mut tenants: BTreeMap<TenantId, Vec<Due>> = BTreeMap::new();
            let found = heads(each).await?;
            let enough = found.len() >= limit as usize;
            for due in found {
                tenants.entry(due.tenant.clone()).or_default().push(due);
            }
            let cut = tenants.values().any(|found| found.len() >= each as usize);
            if !enough && cut && each < limit {
                each = limit;
                continue;
            }
            let busy = u32::try_from(tenants.len()).unwrap_or(u32::MAX);
            self.busy.store(busy, Ordering::Relaxed);
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let (due, next) = in_turns(tenants, last.as_ref(), limit as usize);
            *last = next;
            return Ok(due);
        }
    }
}

/// Deals the due runs of each tenant, which are in their order, turn by turn. Also gives the
/// tenant whose turn was the last.
fn in_turns(
    tenants: BTreeMap<TenantId, Vec<Due>>,
    last: Option<&TenantId>,
    limit: usize,
) -> (Vec<Due>, Option<TenantId>) {
    let (mut before, after): (Vec<_>, Vec<_>) = tenants
        .into_iter()
        .partition(|(tenant, _)| last.is_some_and(|last| tenant <= last));
    let mut waiting = after;
    waiting.append(&mut before);
    let mut waiting: Vec<_> = waiting
        .into_iter()
        .map(|(_, due)| due.into_iter())
        .collect();
    let mut dealt = Vec::new();
    while dealt.len() < limit && !waiting.is_empty() {
        waiting.retain_mut(|tenant| match tenant.next() {
            _ if dealt.len() >= limit => false,
            Some(due) => {
                dealt.push(due);
                true
            }
            None => false,
        });
    }
    let next = dealt.last().map(|due: &Due| due.tenant.clone());
    (dealt, next.or_else(|| last.cloned()))
}

#[cfg(test)]
mod tests {
    use sluicegate_core::ids::RunId;
    use sluicegate_core::time::Instant;

    use super::*;

    fn tenants(of: &[(&str, usize)]) -> BTreeMap<TenantId, Vec<Due>> {
        let due = |tenant: &str, n| Due {
            tenant: TenantId::from(tenant),
            run_id: RunId::new(format!("{tenant}{n}")),
            fence: 0,
            token: None,
            over: None,
            found_at: Instant(0),
        };
        of.iter()
            .map(|(tenant, runs)| {
                let runs = (1..=*runs).map(|n| due(tenant, n)).collect();
                (TenantId::from(*tenant), runs)
            })
            .collect()
    }

    #[test]
    fn w9_one_run_per_tenant_and_turn_beginning_after_the_last() {
        let last = TenantId::from("a");
        let (dealt, next) = in_turns(tenants(&[("a", 9), ("b", 1), ("c", 2)]), Some(&last), 6);
        let ids: Vec<_> = dealt.iter().map(|due| due.run_id.as_str()).collect();
        assert_eq!(ids, ["b1", "c1", "a1", "c2", "a2", "a3"]);
        assert_eq!(next, Some(last));
        let (dealt, next) = in_turns(tenants(&[("a", 1)]), None, 0);
        assert_eq!((dealt.len(), next), (0, None));
    }
}
