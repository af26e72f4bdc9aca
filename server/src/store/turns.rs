//! Turns (run-machine.md W9): one run per tenant and turn, beginning after the tenant whose
//! turn it was last.

use std::collections::BTreeMap;

use sluicegate_core::ids::TenantId;

use super::Due;

/// Deals the due runs of each tenant, which are in their order, turn by turn. Also gives the
/// tenant whose turn was the last.
pub(super) fn in_turns(
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
