//! The agents and actions that a graph may pin (api.md "Catalogue").

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use sluicegate_core::api::Page;
use sluicegate_core::catalogue::{ActionDescriptor, AgentRow, Catalogue};

use crate::client::Problem;
use crate::shell::App;

/// Asks for the whole catalogue; none until it is here, and then the checks judge it too.
pub(crate) fn load(app: App) -> RwSignal<Option<Arc<Catalogue>>> {
    let catalogue = RwSignal::new(None);
    spawn_local(async move {
        match whole(app).await {
            Ok(whole) => {
                let _ = catalogue.try_set(Some(Arc::new(whole)));
            }
            Err(problem) => app.refused(&problem),
        }
    });
    catalogue
}

async fn whole(app: App) -> Result<Catalogue, Problem> {
    let agents: Page<AgentRow> = app.client.get("/api/workflow-catalog/agents").await?;
    let actions: Page<ActionDescriptor> = app.client.get("/api/workflow-catalog/actions").await?;
    Ok(Catalogue {
        agents: agents.items,
        actions: actions.items,
        permissions: None,
    })
}
