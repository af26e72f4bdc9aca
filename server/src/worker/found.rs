//! The runs that a worker found and has not claimed yet (run-machine.md W3, W9): read many at
//! a time, taken one by one by the commits that record the claims.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::time::Millis;

use crate::engine::Engine;
use crate::store::Due;

/// How many are looked for at once.
const AT_ONCE: u32 = 64;
/// After this others may have them; they are looked for again.
const FRESH: Duration = Duration::from_millis(200);

type Run = (TenantId, RunId);
/// Runs that are not to be claimed, until when; `None`: until their claim is decided.
type Aside = Arc<Mutex<HashMap<Run, Option<Instant>>>>;

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    due: VecDeque<Due>,
    at: Option<Instant>,
    aside: Aside,
}

/// A run that is claimed and driven here: it is not found again meanwhile, so that a process
/// whose database was away for longer than a lease does not take its own runs over.
pub(super) struct Claiming {
    run: Run,
    aside: Aside,
    until: Option<Instant>,
}

impl Found {
    /// The next run to claim, if one is due.
    pub(super) async fn next(&mut self, engine: &Engine) -> Option<Due> {
        let fresh = self.at.is_some_and(|at| at.elapsed() < FRESH);
        if self.due.is_empty() || !fresh {
            let aside = lock(&self.aside).len();
            let wanted = AT_ONCE.saturating_add(u32::try_from(aside).unwrap_or(AT_ONCE));
            match engine.store.due(wanted).await {
                Ok(due) => self.due = due.into(),
                Err(error) => {
                    tracing::error!(%error, "due runs cannot be looked for");
                    self.due.clear();
                }
            }
            self.at = Some(Instant::now());
        }
        let mut aside = lock(&self.aside);
        let now = Instant::now();
        aside.retain(|_, until| until.is_none_or(|until| until > now));
        while let Some(due) = self.due.pop_front() {
            if !aside.contains_key(&(due.tenant.clone(), due.run_id.clone())) {
                return Some(due);
            }
        }
        None
    }

    /// Sets a run aside while its claim is decided and it is driven.
    pub(super) fn claiming(&self, due: &Due) -> Claiming {
        let run = (due.tenant.clone(), due.run_id.clone());
        lock(&self.aside).insert(run.clone(), None);
        Claiming {
            run,
            aside: Arc::clone(&self.aside),
            until: None,
        }
    }
}

impl Claiming {
    /// The run cannot be claimed: it is left alone for as long as a lease lasts, so that a
    /// fault of ours is not tried again in a hurry.
    pub(super) fn is_faulty(&mut self, lease: Millis) {
        self.until = Instant::now().checked_add(Duration::from_millis(lease.0));
    }
}

/// Nothing is done with it here any more, however the task that did it ended.
impl Drop for Claiming {
    fn drop(&mut self) {
        let mut aside = lock(&self.aside);
        match self.until {
            Some(until) => aside.insert(self.run.clone(), Some(until)),
            None => aside.remove(&self.run),
        };
    }
}

fn lock(aside: &Aside) -> std::sync::MutexGuard<'_, HashMap<Run, Option<Instant>>> {
    aside.lock().unwrap_or_else(PoisonError::into_inner)
}
