//! Loaded plans, by their hash (run-machine.md §1): a plan is data that never changes, so
//! that every run of it in this process shares one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluicegate_core::ids::Hash;
use sluicegate_core::plan::Plan;
use sluicegate_core::value::Value;

use super::EngineError;

/// More plans than this are forgotten all at once; the next runs load theirs again.
const KEPT: usize = 256;

/// The cache.
#[derive(Default)]
pub(super) struct Plans {
    loaded: Mutex<HashMap<Hash, Arc<Plan>>>,
}

impl Plans {
    /// The plan with a hash, if it is loaded.
    pub(super) fn find(&self, hash: &Hash) -> Option<Arc<Plan>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(hash).cloned()
    }

    /// Loads a stored document, which must have this hash.
    pub(super) fn load(&self, hash: &Hash, document: &Value) -> Result<Arc<Plan>, EngineError> {
        if let Some(plan) = self.find(hash) {
            return Ok(plan);
        }
        let plan = Plan::read(document).map_err(|error| EngineError::Broken(error.to_string()))?;
        if plan.hash() != *hash {
            let changed = "the stored plan is not the one that was published";
            return Err(EngineError::Broken(changed.to_owned()));
        }
        let plan = Arc::new(plan);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.len() >= KEPT {
            loaded.clear();
        }
        loaded.insert(*hash, Arc::clone(&plan));
        Ok(plan)
    }
}
