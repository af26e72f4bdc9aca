//! The result of a live run (wire-format.md §10, R1–R2; server.md §7): secrets were removed
//! before it was stored.

use std::collections::BTreeMap;

use sluicegate_core::api::RunResult;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{NodeId, RunId, TenantId};
use sluicegate_core::run::RunStatus;
use sluicegate_core::value::Value;

use super::{Engine, EngineError};

impl Engine {
    /// How a run stands, and what it gave if it has succeeded.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `WORKFLOW_RESULT_EXPIRED`.
    pub async fn result(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<RunResult, EngineError> {
        let row = self.store.run_row(tenant, run_id).await?.row;
        let outputs = match row.status {
            RunStatus::Succeeded => Some(self.outputs(tenant, run_id).await?),
            _ => None,
        };
        Ok(RunResult {
            run_id: run_id.clone(),
            status: row.status,
            outputs,
            failure: row.failure,
            virtual_duration_ms: None,
            events: None,
            payloads: None,
        })
    }

    async fn outputs(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<BTreeMap<NodeId, Value>, EngineError> {
        let Some(sealed) = self.store.result_payload(tenant, run_id).await? else {
            let code = Code::WorkflowResultExpired;
            return Err(EngineError::refused(code, code.sentence()));
        };
        match self.unseal(tenant, run_id, &sealed)? {
            Value::Object(members) => Ok(members
                .into_iter()
                .map(|(node, value)| (NodeId::from(node), value))
                .collect()),
            _ => Err(EngineError::Broken("a result is an object".to_owned())),
        }
    }
}
