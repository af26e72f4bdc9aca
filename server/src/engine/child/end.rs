//! How a child ended, between the run machine and its encrypted row (server.md §7).

use std::sync::Arc;

use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, RunId, TenantId};
use sluicegate_core::run::{ChildOutcome, ChildResult};
use sluicegate_core::value::Value;

use super::going_on::Owned;
use crate::engine::{Engine, EngineError};
use crate::payload::Place;
use crate::store::{ChildEnd, ChildStatus};

impl Engine {
    pub(super) fn close_end(
        &self,
        owned: &Owned,
        result: &ChildResult,
    ) -> Result<ChildEnd, EngineError> {
        let (status, output, fault) = match &result.outcome {
            ChildOutcome::Success { output } | ChildOutcome::Decision { answer: output } => {
                (ChildStatus::Succeeded, Some(output), None)
            }
            ChildOutcome::Failure { code, message } => {
                (ChildStatus::Failed, None, Some((code, message)))
            }
            ChildOutcome::Refused { code, message } => {
                (ChildStatus::Refused, None, Some((code, message)))
            }
            ChildOutcome::Cancelled => (ChildStatus::Cancelled, None, None),
        };
        let seal = |name: &str, value: &Value| {
            let payload = format!("child/{}/{name}", owned.child_id);
            let place = Place {
                tenant: &owned.tenant,
                run_id: &owned.run_id,
                payload: &payload,
            };
            self.keys.seal(place, value)
        };
        Ok(ChildEnd {
            status,
            output: output.map(|value| seal("output", value)).transpose()?,
            // What a child calls a code may hold anything; only what everybody knows stands in
            // the clear.
            code: fault
                .and_then(|(code, _)| Code::parse(code))
                .map(|code| code.as_str().to_owned()),
            message: fault
                .map(|(code, message)| seal("message", &serde_json::json!([code, message])))
                .transpose()?,
            usage: result.usage,
            cost: result.cost.clone(),
        })
    }

    /// A stored end as the run machine takes it.
    pub(crate) fn open_end(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        child_id: &ChildId,
        end: ChildEnd,
        decides: bool,
    ) -> Result<ChildResult, EngineError> {
        let open = |name: &str, sealed: Option<(String, Vec<u8>)>| {
            let payload = format!("child/{child_id}/{name}");
            let place = Place {
                tenant,
                run_id,
                payload: &payload,
            };
            sealed
                .map(|(key_id, bytes)| self.keys.open_sealed(place, &key_id, &bytes))
                .transpose()
        };
        let code = end.code.unwrap_or_default();
        let (code, message) = match open("message", end.message)? {
            None => (code.clone(), code),
            Some(sealed) => serde_json::from_value(sealed).map_err(|_| {
                EngineError::Broken("a child's fault is a code and a text".to_owned())
            })?,
        };
        let output = Arc::new(open("output", end.output)?.unwrap_or_default());
        let outcome = match end.status {
            ChildStatus::Succeeded if decides => ChildOutcome::Decision { answer: output },
            ChildStatus::Succeeded => ChildOutcome::Success { output },
            ChildStatus::Failed => ChildOutcome::Failure { code, message },
            ChildStatus::Refused => ChildOutcome::Refused { code, message },
            ChildStatus::Cancelled => ChildOutcome::Cancelled,
            ChildStatus::Running => {
                return Err(EngineError::Broken(
                    "a child that runs has no end".to_owned(),
                ));
            }
        };
        Ok(ChildResult {
            outcome,
            terminal: true,
            usage: end.usage,
            cost: end.cost,
        })
    }
}
