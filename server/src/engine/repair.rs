//! Repair (server.md §2 `repair`; run-machine.md §1 `project`, A9; seed A "Status model"): what is
//! projected is folded from sequence one, compared, and built anew. Nothing is invented: a log that
//! cannot be folded parks its run and leaves its rows as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use sluicegate_core::code::Code;
use sluicegate_core::evidence::Evidence;
use sluicegate_core::ids::{PayloadId, RunId, TenantId};
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, PayloadKind, Run, project};
use sluicegate_core::value::Value;

use super::fold::{node_types, refold};
use super::plans::Plans;
use crate::store::{Difference, LoadedRun, Parked, Rebuilt, Store, StoreError};

/// Runs, or tenants, that are listed at once.
const PAGE: u32 = 256;
/// How often a run may move on while it is compared.
const MOVES: u32 = 16;

/// A check or repair of everything that a store has.
pub struct Repair<'s> {
    store: &'s dyn Store,
    plans: Plans,
    /// Whether what differs is built anew.
    apply: bool,
}

/// What was found of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The run.
    pub run_id: RunId,
    /// What is wrong with it.
    #[serde(flatten)]
    pub wrong: Wrong,
    /// Whether all of it is put right.
    pub repaired: bool,
}

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "wrong",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Wrong {
    /// Rows are not what the log projects.
    Rows {
        /// Which.
        differences: Vec<Difference>,
        /// Whether it is parked, though its log can be folded.
        parked: bool,
    },
    /// The log cannot be folded.
    Log {
        /// The seed's code.
        code: Code,
        /// The event that does not fit.
        sequence: u64,
        /// Why.
        detail: String,
    },
    /// What is not projected cannot be read: the invocation or the plan.
    Invocation {
        /// Why.
        detail: String,
    },
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Looked {
    /// Runs.
    pub runs: u64,
    /// Runs that something was wrong with.
    pub wrong: u64,
    /// Runs that were put right.
    pub repaired: u64,
}

impl<'s> Repair<'s> {
    /// Looks, and with `apply` builds anew what differs.
    #[must_use]
    pub fn new(store: &'s dyn Store, apply: bool) -> Self {
        Self {
            store,
            plans: Plans::default(),
            apply,
        }
    }

    /// Goes through every run of every tenant and tells what is wrong, as it is found.
    ///
    /// # Errors
    /// Those of the store, and of `tell`.
    pub async fn run<E: From<StoreError>>(
        &self,
        mut tell: impl FnMut(&Finding) -> Result<(), E>,
    ) -> Result<Looked, E> {
        let mut looked = Looked::default();
        let mut tenant: Option<TenantId> = None;
        loop {
            let tenants = self.store.tenants(tenant.as_ref(), PAGE).await?;
            for tenant in &tenants {
                let mut after: Option<RunId> = None;
                loop {
                    let runs = self.store.run_ids(tenant, after.as_ref(), PAGE).await?;
                    for run_id in &runs {
                        looked.runs += 1;
                        if let Some(finding) = self.look(tenant, run_id).await? {
                            looked.wrong += 1;
                            looked.repaired += u64::from(finding.repaired);
                            tell(&finding)?;
                        }
                    }
                    match runs.into_iter().last() {
                        Some(last) => after = Some(last),
                        None => break,
                    }
                }
            }
            match tenants.into_iter().last() {
                Some(last) => tenant = Some(last),
                None => return Ok(looked),
            }
        }
    }
}

impl Repair<'_> {
    /// What is wrong with one run, and whether it is put right by now.
    async fn look(&self, tenant: &TenantId, run_id: &RunId) -> Result<Option<Finding>, StoreError> {
        let finding = |wrong: Wrong, repaired: bool| {
            Ok(Some(Finding {
                tenant_id: tenant.clone(),
                run_id: run_id.clone(),
                wrong,
                repaired,
            }))
        };
        for _ in 0..MOVES {
            let (loaded, plan) = match self.load(tenant, run_id).await? {
                Ok(loaded) => loaded,
                Err(detail) => return finding(Wrong::Invocation { detail }, false),
            };
            let rebuilt = match rebuild(&plan, tenant, run_id, &loaded) {
                Ok(rebuilt) => rebuilt,
                Err((parked, detail)) => {
                    if self.apply && loaded.parked.as_ref() != Some(&parked) {
                        self.store.park(tenant, run_id, &parked).await?;
                    }
                    let Parked { code, sequence } = parked;
                    let wrong = Wrong::Log {
                        code,
                        sequence,
                        detail,
                    };
                    return finding(wrong, false);
                }
            };
            let found = self.store.differences(tenant, run_id, &rebuilt).await?;
            let parked = loaded.parked.is_some();
            if found.is_empty() && !parked {
                return Ok(None);
            }
            let after = rebuilt.sequence;
            let later = self.store.events_after(tenant, run_id, after, 1).await;
            if later.is_ok_and(|later| !later.is_empty()) {
                // It moved on between the two looks.
                continue;
            }
            let mut repaired = false;
            if self.apply {
                match self.store.rebuild(tenant, run_id, &rebuilt).await {
                    Err(StoreError::Stale) => continue,
                    done => done?,
                }
                let left = self.store.differences(tenant, run_id, &rebuilt).await?;
                repaired = left.is_empty();
            }
            let differences = found;
            return finding(
                Wrong::Rows {
                    differences,
                    parked,
                },
                repaired,
            );
        }
        // Somebody works on it without a break: it is as well as it can be.
        Ok(None)
    }

    /// The log and the plan; else why they cannot be had.
    async fn load(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Result<(LoadedRun, Arc<Plan>), String>, StoreError> {
        let loaded = match self.store.load_run(tenant, run_id).await {
            Err(StoreError::NotFound) => return Ok(Err("its row is missing".to_owned())),
            Err(StoreError::Corrupt(detail)) => return Ok(Err(detail)),
            loaded => loaded?,
        };
        let plan = match self.plans.find(&loaded.plan_hash) {
            Some(plan) => Ok(plan),
            None => match self.store.run_plan(tenant, run_id).await {
                Err(StoreError::Corrupt(detail)) => return Ok(Err(detail)),
                document => self.plans.load(&loaded.plan_hash, &document?),
            },
        };
        Ok(match plan {
            Ok(plan) => Ok((loaded, plan)),
            Err(error) => Err(error.to_string()),
        })
    }
}

/// The run as its log projects it; else the event that does not fit.
fn rebuild(
    plan: &Plan,
    tenant: &TenantId,
    run_id: &RunId,
    loaded: &LoadedRun,
) -> Result<Rebuilt, (Parked, String)> {
    let run = refold(plan, tenant, run_id, loaded)?;
    let events: Vec<Event> = loaded.events.iter().filter_map(|e| e.read().ok()).collect();
    let rows = project(plan, &run, &events);
    let mut named = BTreeMap::new();
    for event in &loaded.events {
        collect(&event.payload, &mut named);
    }
    Ok(Rebuilt {
        sequence: run.sequence(),
        node_types: node_types(plan, &rows),
        rows,
        evidence: named
            .into_values()
            .map(|one| as_it_stands(&run, one))
            .collect(),
    })
}

/// The evidence that an event's payload names, wherever it stands there.
fn collect(value: &Value, into: &mut BTreeMap<PayloadId, Evidence>) {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, into));
            return;
        }
        _ => return,
    };
    if members.contains_key("originalByteSize") {
        let evidence: Option<Evidence> = serde_json::from_value(value.clone()).ok();
        if let Some(evidence) = evidence
            && let Some(id) = &evidence.payload_id
        {
            into.entry(id.clone()).or_insert(evidence);
        }
        return;
    }
    members.values().for_each(|member| collect(member, into));
}

/// What retention has left of it.
fn as_it_stands(run: &Run, mut evidence: Evidence) -> Evidence {
    let id = evidence.payload_id.as_ref();
    if id.is_some_and(|id| run.is_retired(id, PayloadKind::Evidence)) {
        evidence.expire();
    }
    evidence
}
