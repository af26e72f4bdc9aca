//! The check of a tenant's audit chain where it is stored (run-machine.md H3): in bounded
//! pages, up to the end that was read first, while others go on appending.

use sluicegate_core::audit::{Check, Covered, Verification};
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::limits::Limits;
use sluicegate_core::value::Value;

use super::Engine;
use crate::store::{Store, StoreError};

/// Entries, or runs, that are read at once.
const PAGE: u32 = 256;
/// Events that are read at once, unless one entry stands for more.
const EVENTS: u64 = 2_000;

impl Engine {
    /// Checks the chain, its head and every event against its entry.
    ///
    /// # Errors
    /// Those of the store; a broken chain is an answer.
    pub async fn verify_audit(&self, tenant: &TenantId) -> Result<Verification, StoreError> {
        let store = &*self.store;
        let tail = store.audit_tail(tenant).await?;
        let mut check = Check::default();
        let whole = entries(store, tenant, &mut check, tail.last).await?;
        if whole {
            runs(store, tenant, &mut check, tail.last).await?;
        }
        Ok(check.finish(Some(tail.head)))
    }
}

/// Takes every entry up to one, each with its events. `false`: the chain is broken.
async fn entries(
    store: &dyn Store,
    tenant: &TenantId,
    check: &mut Check,
    through: u64,
) -> Result<bool, StoreError> {
    let mut after = 0;
    loop {
        let page = store
            .entries_as_stored(tenant, after, through, PAGE)
            .await?;
        if page.is_empty() {
            return Ok(true);
        }
        after += page.len() as u64;
        for group in groups(page) {
            let covered: Vec<_> = group.iter().filter_map(Covered::of).collect();
            let events = store.events_as_stored(tenant, &covered).await?;
            let mut events = events.into_iter();
            for entry in &group {
                let mut whole = check.take(entry);
                if Covered::of(entry).is_some() {
                    let own = events.next().unwrap_or_default();
                    whole = whole && check.take_events(&own);
                }
                if !whole {
                    return Ok(false);
                }
            }
        }
    }
}

/// Parts a page so that the events of a part, as many as its entries say, fit in memory.
fn groups(page: Vec<Value>) -> Vec<Vec<Value>> {
    let (mut groups, mut events) = (vec![Vec::new()], 0);
    for entry in page {
        // What an entry says need not be so, and no run has more than this.
        let own = Covered::of(&entry).map_or(0, |c| c.last.saturating_sub(c.first) + 1);
        let own = own.min(Limits::default().events);
        if events + own > EVENTS {
            groups.push(Vec::new());
            events = 0;
        }
        events += own;
        if let Some(group) = groups.last_mut() {
            group.push(entry);
        }
    }
    groups
}

/// Looks for runs with events that no entry knows.
async fn runs(
    store: &dyn Store,
    tenant: &TenantId,
    check: &mut Check,
    through: u64,
) -> Result<(), StoreError> {
    let mut after: Option<RunId> = None;
    loop {
        let page = store.last_events(tenant, after.as_ref(), PAGE).await?;
        let end = page.last().map(|(run_id, _)| run_id.clone());
        for (run_id, last) in page {
            let mut last = last;
            if last != check.covered(&run_id) {
                // What was committed since the check began brought its own entry with it.
                let later = store.entry_about(tenant, &run_id, through).await?;
                if let Some(later) = later.as_ref().and_then(Covered::of) {
                    last = later.first.saturating_sub(1);
                }
            }
            check.take_run(&run_id, last);
        }
        // An id that is no text any more may not be where it is sought.
        if end.is_none() || end <= after {
            return Ok(());
        }
        after = end;
    }
}
