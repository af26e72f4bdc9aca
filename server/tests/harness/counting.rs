//! An action whose effects are counted by key, in a table that outlives the engine.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use sluicegate_core::catalogue::{ActionDescriptor, Cancellation, Idempotency, Risk};
use sluicegate_core::value::Value;
use sluicegate_server::actions::{Action, ActionFault, Invocation};

/// What the business did, by key, and how often it was asked.
#[derive(Default)]
pub(crate) struct Business {
    pub(crate) effects: Mutex<BTreeMap<String, u32>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

/// `x.count`: does its effect once a key, then takes its time or fails as its input says:
/// `{"sleepMs"?, "failFirst"?: code, "fail"?: code, "message"?}`.
pub(crate) struct Count {
    pub(crate) business: Arc<Business>,
    pub(crate) cancellation: Cancellation,
    pub(crate) timeout_ms: u64,
}

impl Count {
    pub(crate) fn new(business: &Arc<Business>) -> Arc<Self> {
        Arc::new(Self {
            business: Arc::clone(business),
            cancellation: Cancellation::NotSupported,
            timeout_ms: 5_000,
        })
    }
}

#[async_trait]
impl Action for Count {
    fn descriptor(&self) -> ActionDescriptor {
        ActionDescriptor {
            id: "x.count".into(),
            contract_version: 1,
            description: "Counts.".to_owned(),
            required_permissions: Vec::new(),
            input_schema: json!(true),
            output_schema: json!(true),
            timeout_ms: self.timeout_ms,
            idempotency: Idempotency::Required,
            risk: Risk::WorkspaceWrite,
            cancellation: self.cancellation,
            retryable_codes: vec!["x.busy".to_owned()],
        }
    }

    async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault> {
        let key = call.idempotency_key.to_string();
        let first = {
            let mut asked = self.business.asked.lock().unwrap();
            asked.push(key.clone());
            asked.iter().filter(|earlier| **earlier == key).count() == 1
        };
        let text = |name: &str| call.input[name].as_str().map(str::to_owned);
        if let Some(code) = text("fail").or_else(|| text("failFirst").filter(|_| first)) {
            let message = text("message").unwrap_or_default();
            return Err(ActionFault { code, message });
        }
        let done = {
            let mut effects = self.business.effects.lock().unwrap();
            let done = effects.contains_key(&key);
            effects.entry(key).or_insert(1);
            done
        };
        if !done && let Some(sleep) = call.input["sleepMs"].as_u64() {
            tokio::time::sleep(Duration::from_millis(sleep)).await;
        }
        Ok(json!({"done": true}))
    }
}

/// input → `x.count` → output, with a policy.
pub(crate) fn counting_graph(policy: &Value, schemas: &Value, input: &str) -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": input}},
            {"id": "act", "type": "action",
             "action": {"actionId": "x.count", "contractVersion": 1},
             "failurePolicy": policy,
             "ports": {"input": "std.any", "success": "std.any", "failure": "std.failure"}},
            {"id": "out", "type": "output", "ports": {"input": "std.any"}}
        ],
        "edges": [
            {"id": "e1", "source": {"nodeId": "in", "port": "data"},
             "target": {"nodeId": "act", "port": "input"}},
            {"id": "e2", "source": {"nodeId": "act", "port": "success"},
             "target": {"nodeId": "out", "port": "input"}}
        ],
        "schemas": schemas, "layout": {}
    })
}

pub(crate) fn policy(attempts: u32, codes: &[&str], wait: u64) -> Value {
    json!({"maxAttempts": attempts, "retryOn": codes,
           "backoff": {"kind": "fixed", "initialMs": wait, "maximumMs": wait},
           "onExhausted": "fail-run"})
}
