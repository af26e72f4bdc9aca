//! The result of a run, in one shape for every door (wire-format.md §10, R1–R2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::ids::{PayloadId, RunId};
use crate::run::{Event, Failure, NewPayload, PayloadKind, Run, RunStatus};
use crate::time::Millis;
use crate::value::Value;

/// R2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The run.
    pub run_id: RunId,
    /// How it stands.
    pub status: RunStatus,
    /// Output node → what it received, secrets removed; succeeded runs only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outputs: Option<Value>,
    /// Why it failed or was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
    /// How long it took on its own clock; simulations only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub virtual_duration_ms: Option<Millis>,
    /// What happened.
    pub events: Vec<Event>,
    /// What readers may see of each payload.
    pub payloads: BTreeMap<PayloadId, PayloadView>,
}

/// Evidence with its preview, as readers get it (D1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayloadView {
    /// What events carry.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// What may be seen; `null` is a value.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "present"
    )]
    pub preview: Option<Value>,
}

/// A member that is there is a value, `null` too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl RunResult {
    /// Puts a run's result together from its fold, its events and its payloads.
    #[must_use]
    pub fn of(
        run: &Run,
        events: Vec<Event>,
        payloads: &[NewPayload],
        virtual_duration_ms: Option<Millis>,
    ) -> Self {
        let mut outputs = None;
        let mut views = BTreeMap::new();
        for payload in payloads {
            match payload.kind {
                PayloadKind::Result => outputs = Some(Value::clone(&payload.value)),
                PayloadKind::Execution | PayloadKind::Evidence => {
                    let view = PayloadView {
                        evidence: payload.evidence.evidence.clone(),
                        preview: payload.evidence.preview.clone(),
                    };
                    views.insert(payload.id.clone(), view);
                }
            }
        }
        Self {
            run_id: run.run_id().clone(),
            status: run.status(),
            outputs,
            failure: run.end().and_then(|end| end.failure.clone()),
            virtual_duration_ms,
            events,
            payloads: views,
        }
    }
}
