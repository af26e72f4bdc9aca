//! Small graphs with one kind of child, and what a test asks of their runs.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use serde_json::json;
use sluicegate_core::run::ChildKind;
use sluicegate_core::value::Value;
use sluicegate_server::actions::Action;
use sluicegate_server::store::{ChildView, StoredEvent};

use crate::counting::{Business, Count};
use crate::harness::ground::Ground;
use crate::harness::{House, by};

/// input → the children in a line → output. A child is `agent` or `action`, each with the
/// same policy.
pub(crate) fn line(children: &[ChildKind], policy: &Value) -> Value {
    let mut nodes = vec![json!({"id": "in", "type": "input", "ports": {"data": "std.any"}})];
    let mut edges = Vec::new();
    let mut last = ("in".to_owned(), "data");
    for (at, kind) in children.iter().enumerate() {
        let id = format!("c{}", at + 1);
        nodes.push(match kind {
            ChildKind::Agent => json!({"id": id, "type": "agent",
                "agent": {"agentId": "echo", "revision": 1}, "timeoutMs": 60_000,
                "failurePolicy": policy,
                "ports": {"input": "std.any", "success": "std.text", "failure": "std.failure"}}),
            ChildKind::Action => json!({"id": id, "type": "action",
                "action": {"actionId": "x.count", "contractVersion": 1},
                "failurePolicy": policy,
                "ports": {"input": "std.any", "success": "std.any", "failure": "std.failure"}}),
        });
        edges.push(json!({"id": format!("e{}", at + 1),
            "source": {"nodeId": last.0, "port": last.1},
            "target": {"nodeId": id, "port": "input"}}));
        last = (id, "success");
    }
    let text = children.last() == Some(&ChildKind::Agent);
    nodes.push(json!({"id": "out", "type": "output",
        "ports": {"input": if text { "std.text" } else { "std.any" }}}));
    edges.push(
        json!({"id": "end", "source": {"nodeId": last.0, "port": last.1},
        "target": {"nodeId": "out", "port": "input"}}),
    );
    json!({"schemaVersion": 1, "nodes": nodes, "edges": edges, "schemas": {}, "layout": {}})
}

/// An agent that answers `slow` after a while, `never` not at all, and anything else at once.
pub(crate) fn echo() -> Value {
    let usage = json!({"inputTokens": 3, "outputTokens": 4});
    let says = |text: &str| json!({"eq": [{"read": ""}, {"literal": text}]});
    json!({
        "agentId": "echo", "name": "Echo", "provider": "scripted", "model": "scripted-1",
        "rules": [
            {"when": says("slow"), "delayMs": 1_500, "then": {"text": "late"}, "usage": usage},
            {"when": says("never"), "delayMs": 600_000, "then": {"text": "never"}},
            {"when": {"literal": true}, "then": {"text": "> {{ input }}"}, "usage": usage}
        ]
    })
}

/// A house with `echo`, `x.count`, and the workflow `work` of this line.
pub(crate) async fn house(
    ground: &Ground,
    business: &Arc<Business>,
    children: &[ChildKind],
    policy: &Value,
) -> House {
    house_with(ground, Count::new(business), children, policy).await
}

/// The same with another action.
pub(crate) async fn house_with(
    ground: &Ground,
    action: Arc<dyn Action>,
    children: &[ChildKind],
    policy: &Value,
) -> House {
    let house = ground.open(&[action]).await;
    house.agent(echo()).await;
    house.publish("work", &line(children, policy)).await;
    house
}

/// The events of one type.
pub(crate) fn of_type(events: &[StoredEvent], name: &str) -> Vec<StoredEvent> {
    let named = events.iter().filter(|event| event.event_type == name);
    named.cloned().collect()
}

impl House {
    /// The events of one type.
    pub(crate) async fn named(
        &self,
        run: &sluicegate_core::ids::RunId,
        name: &str,
    ) -> Vec<StoredEvent> {
        of_type(&self.events(run).await, name)
    }

    pub(crate) async fn children(&self, run: &sluicegate_core::ids::RunId) -> Vec<ChildView> {
        self.store.children(&by().tenant, run).await.unwrap()
    }

    pub(crate) async fn row(
        &self,
        run: &sluicegate_core::ids::RunId,
    ) -> sluicegate_core::run::RunRow {
        self.store.run_row(&by().tenant, run).await.unwrap().row
    }

    /// Why the run failed.
    pub(crate) async fn code(&self, run: &sluicegate_core::ids::RunId) -> Option<String> {
        self.row(run).await.failure.map(|failure| failure.code)
    }

    /// Waits until something of the run holds.
    pub(crate) async fn when<F: Future<Output = bool>>(&self, reached: impl Fn() -> F) {
        for _ in 0..1_000 {
            if reached().await {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("it never came to that");
    }

    /// Waits until the run has an event of this type.
    pub(crate) async fn until_event(&self, run: &sluicegate_core::ids::RunId, name: &str) {
        self.when(|| async { !self.named(run, name).await.is_empty() })
            .await;
    }
}
