//! What a laboratory run does from its caller's side: a workflow is drawn, published and run,
//! perhaps cancelled. Every request may be repeated, as a caller does whose answer was lost.

use serde_json::json;
use sluicegate_core::run::{ChildKind, RunStatus};
use sluicegate_core::value::Value;

use crate::counting::policy;
use crate::harness::sample;
use crate::shapes;

/// One workflow and what is done with it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) graph: Value,
    pub(crate) input: Value,
    /// Whether it is cancelled once its child is waited for.
    pub(crate) cancels: bool,
    /// Whether the module that it calls is busy until a retry is waited for.
    pub(crate) busy: bool,
    /// The claims that it decides about, each once.
    pub(crate) claims: Vec<String>,
    pub(crate) ends: RunStatus,
}

/// All scripts; the first is the one of the bounded pass.
pub(crate) fn all() -> Vec<Script> {
    vec![review(), merge(), line(), retry(), cancel()]
}

/// An agent's decision, a gate, an action, merges.
fn review() -> Script {
    let input = sample("expenses.review/approved.input.json");
    Script {
        name: "review",
        graph: sample("expenses.review.json"),
        claims: vec![input["claimId"].as_str().unwrap().to_owned()],
        input,
        cancels: false,
        busy: false,
        ends: RunStatus::Succeeded,
    }
}

/// Agents with retries, a validator, merges of several.
fn merge() -> Script {
    Script {
        name: "merge",
        graph: sample("invoice.check.json"),
        input: sample("invoice.check/fair-difference.input.json"),
        cancels: false,
        busy: false,
        claims: Vec::new(),
        ends: RunStatus::Succeeded,
    }
}

/// Ten actions in a line, each of which decides about a claim of its own.
fn line() -> Script {
    let claims: Vec<String> = (1..=10).map(|n| format!("line-{n}")).collect();
    Script {
        name: "line of 10",
        graph: approvals(&claims, &policy(1, &[], 0)),
        input: json!({}),
        cancels: false,
        busy: false,
        claims,
        ends: RunStatus::Succeeded,
    }
}

/// An action whose module is busy at first.
fn retry() -> Script {
    let claims = vec!["busy-1".to_owned(), "busy-2".to_owned()];
    Script {
        name: "retry",
        graph: approvals(&claims, &policy(5, &["expenses.busy"], 700)),
        input: json!({}),
        cancels: false,
        busy: true,
        claims,
        ends: RunStatus::Succeeded,
    }
}

/// An agent that never answers, and is told to stop.
fn cancel() -> Script {
    Script {
        name: "cancel",
        graph: shapes::line(&[ChildKind::Agent], &policy(1, &[], 0)),
        input: json!("never"),
        cancels: true,
        busy: false,
        claims: Vec::new(),
        ends: RunStatus::Cancelled,
    }
}

/// input → one approval after the other → output.
fn approvals(claims: &[String], policy: &Value) -> Value {
    let kinds = vec![ChildKind::Action; claims.len()];
    let mut graph = shapes::line(&kinds, policy);
    for (at, claim) in claims.iter().enumerate() {
        let node = &mut graph["nodes"][at + 1];
        node["action"]["actionId"] = "expenses.claim.approve".into();
        let literal = |target: &str, value: &str| json!({"targetPointer": target, "binding": {"kind": "literal", "value": value}});
        node["mappings"] = json!([literal("/claimId", claim), literal("/note", "fine")]);
    }
    graph
}
