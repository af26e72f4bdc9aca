//! The result of a run, in one shape for every door (wire-format.md §10, R1–R2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::NewPayload;
use super::event::{Event, PayloadKind};
use super::state::{Failure, Run, RunStatus};
use crate::evidence::Evidence;
use crate::ids::{NodeId, PayloadId, RunId};
use crate::time::Millis;
use crate::value::Value;

/// What a run gave (R2): one shape for HTTP, the command line and npm. A live run's result
/// has neither events nor payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The run.
    pub run_id: RunId,
    /// How it ended, or how far it is.
    pub status: RunStatus,
    /// Output node → what it received, secrets removed (R1); succeeded runs only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outputs: Option<BTreeMap<NodeId, Value>>,
    /// Why it failed or was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
    /// How long a simulation took on its own clock.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub virtual_duration_ms: Option<Millis>,
    /// The events of a simulation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<Vec<Event>>,
    /// What readers may see of the payloads of a simulation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payloads: Option<BTreeMap<PayloadId, PayloadView>>,
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
    /// Puts a simulation's result together from its fold, its events and its payloads.
    #[must_use]
    pub fn simulated(
        run: &Run,
        events: Vec<Event>,
        payloads: &[NewPayload],
        duration: Millis,
    ) -> Self {
        let mut outputs = None;
        let mut views = BTreeMap::new();
        for payload in payloads {
            match payload.kind {
                PayloadKind::Result => outputs = Some(members(&payload.value)),
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
            virtual_duration_ms: Some(duration),
            events: Some(events),
            payloads: Some(views),
        }
    }
}

/// A stored result is an object by output node.
fn members(result: &Value) -> BTreeMap<NodeId, Value> {
    let members = result.as_object().into_iter().flatten();
    members
        .map(|(node, value)| (NodeId::from(node.as_str()), value.clone()))
        .collect()
}
