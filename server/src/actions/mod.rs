//! Actions (server.md §6; seed A "Required agent and action capabilities"): registered by
//! the host in Rust, each with the seed's descriptor. Only `read` and `workspace-write` with
//! required idempotency enter the catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use sluicegate_core::actor::Actor;
use sluicegate_core::catalogue::{ActionDescriptor, Idempotency, Risk};
use sluicegate_core::code::Code;
use sluicegate_core::ids::{ActionId, Hash, RunId, TenantId};
use sluicegate_core::schema::Schema;
use sluicegate_core::value::Value;

tokio::task_local! {
    static INSIDE: ();
}

/// Whether this task carries out an action: it may not start workflows (N4).
#[must_use]
pub fn inside() -> bool {
    INSIDE.try_with(|()| ()).is_ok()
}

/// A trusted call: everything but the input comes from the run, never from a graph.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The tenant.
    pub tenant: TenantId,
    /// Who started the run.
    pub actor: Actor,
    /// The run, for the module's own history.
    pub run_id: RunId,
    /// The same key means the same effect.
    pub idempotency_key: Hash,
    /// It fits the descriptor's input schema.
    pub input: Value,
}

/// Why an action did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionFault {
    /// A code of wire-format.md §12, or one of the action's own.
    pub code: String,
    /// Why, for people.
    pub message: String,
}

/// A business operation that workflows may call.
#[async_trait]
pub trait Action: Send + Sync {
    /// Its contract.
    fn descriptor(&self) -> ActionDescriptor;

    /// Does it, at most once for a key: a repeated key gives the first result again. Dropping
    /// the future asks an action that is cooperative to stop.
    ///
    /// # Errors
    /// [`ActionFault`]; nothing was changed then.
    async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault>;
}

/// A registered action with its schemas accepted.
pub struct Registered {
    /// Its contract.
    pub descriptor: ActionDescriptor,
    input: Schema,
    output: Schema,
    action: Arc<dyn Action>,
}

/// Why an action is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRegistered {
    /// Another one has this id and version.
    #[error("the action {0} version {1} is registered twice")]
    Twice(ActionId, u64),
    /// It may not enter a workflow.
    #[error("the action {0} must be read or workspace-write, with required idempotency")]
    Forbidden(ActionId),
    /// A schema of it is outside the subset.
    #[error("the action {0}: {1}")]
    Schema(ActionId, String),
}

/// Every action of this process, by id and version.
#[derive(Default)]
pub struct Registry {
    actions: BTreeMap<(ActionId, u64), Arc<Registered>>,
}

impl Registry {
    /// Adds an action.
    ///
    /// # Errors
    /// [`NotRegistered`].
    pub fn register(&mut self, action: Arc<dyn Action>) -> Result<(), NotRegistered> {
        let descriptor = action.descriptor();
        let id = descriptor.id.clone();
        let harmless = matches!(descriptor.risk, Risk::Read | Risk::WorkspaceWrite);
        if !harmless || descriptor.idempotency != Idempotency::Required {
            return Err(NotRegistered::Forbidden(id));
        }
        let accept = |schema: &Value| {
            Schema::accept(schema).map_err(|faults| {
                let first = faults.into_iter().next().map(|fault| fault.message);
                NotRegistered::Schema(id.clone(), first.unwrap_or_default())
            })
        };
        let registered = Registered {
            input: accept(&descriptor.input_schema)?,
            output: accept(&descriptor.output_schema)?,
            descriptor,
            action,
        };
        let key = (id.clone(), registered.descriptor.contract_version);
        if self.actions.contains_key(&key) {
            return Err(NotRegistered::Twice(key.0, key.1));
        }
        self.actions.insert(key, Arc::new(registered));
        Ok(())
    }

    /// The exact contract, if it is registered.
    #[must_use]
    pub fn find(&self, id: &ActionId, contract_version: u64) -> Option<&Arc<Registered>> {
        self.actions.get(&(id.clone(), contract_version))
    }

    /// Every contract, by id and version.
    #[must_use]
    pub fn descriptors(&self) -> Vec<ActionDescriptor> {
        let all = self.actions.values();
        all.map(|action| action.descriptor.clone()).collect()
    }
}

impl Registered {
    /// Does it, with input and output checked against the contract.
    ///
    /// # Errors
    /// [`ActionFault`].
    pub async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault> {
        if !self.input.is_valid(&call.input) {
            return Err(ActionFault {
                code: Code::ActionRefused.as_str().to_owned(),
                message: "the input does not fit the action's contract".to_owned(),
            });
        }
        let output = INSIDE.scope((), self.action.invoke(call)).await?;
        if !self.output.is_valid(&output) {
            return Err(ActionFault {
                code: Code::ActionOutputInvalid.as_str().to_owned(),
                message: "the output does not fit the action's contract".to_owned(),
            });
        }
        Ok(output)
    }
}
