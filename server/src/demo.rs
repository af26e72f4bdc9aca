//! The samples (server.md §1 `--demo`): the agents that they pin, and the workflows, published.
//! What somebody changed since stays as it is.

use std::sync::Arc;

use sluicegate_core::ids::{TenantId, WorkflowKey};
use sluicegate_core::value::{self, Value};

use crate::agents::AgentDefinition;
use crate::auth::Context;
use crate::http::{Server, publish_sample};
use crate::store::{StoreError, WorkflowName};

const AGENTS: &str = include_str!("../../samples/agents.json");

/// Key, name, what it is for, and the document.
const WORKFLOWS: [(&str, &str, &str, &str); 3] = [
    (
        "expenses.review",
        "Expense review",
        "An agent decides about a claim, a gate limits the amount, and the claim is approved or \
         rejected once.",
        include_str!("../../samples/expenses.review.json"),
    ),
    (
        "invoice.check",
        "Invoice check",
        "An invoice is compared with its order, with retries and a second opinion.",
        include_str!("../../samples/invoice.check.json"),
    ),
    (
        "support.triage",
        "Support triage",
        "Three agents look at a ticket, and what they find is merged.",
        include_str!("../../samples/support.triage.json"),
    ),
];

/// Loads what is not there yet.
///
/// # Errors
/// A sample that cannot be stored, in one line.
pub async fn load(server: &Arc<Server>, tenant: &TenantId) -> Result<(), String> {
    let fault = |error: StoreError| format!("the samples cannot be loaded: {error}");
    let agents: Vec<AgentDefinition> = serde_json::from_str(AGENTS)
        .map_err(|error| format!("the samples' agents cannot be read: {error}"))?;
    let present = server.store.agents(tenant).await.map_err(fault)?;
    for definition in agents {
        let known =
            |agent: &crate::store::AgentRevision| agent.definition.agent_id == definition.agent_id;
        if !present.iter().any(known) {
            let revised = server.store.revise_agent(tenant, &definition);
            revised.await.map_err(fault)?;
        }
    }
    let owner = server.store.owner(tenant).await.map_err(fault)?;
    let context = Context::of_owner(tenant.clone(), owner, &server.owner_may);
    for (key, name, description, document) in WORKFLOWS {
        let by_key = WorkflowName::Key(WorkflowKey::from(key));
        match server.store.workflow(tenant, &by_key).await {
            Ok(_) => {}
            Err(StoreError::NotFound) => {
                let graph = read(document)?;
                publish_sample(server, &context, key, name, description, graph)
                    .await
                    .map_err(|error| format!("the sample {key} cannot be published: {error}"))?;
            }
            Err(error) => return Err(fault(error)),
        }
    }
    Ok(())
}

fn read(document: &str) -> Result<Value, String> {
    value::read(document).map_err(|error| format!("a sample cannot be read: {error}"))
}
