//! Workflows, drafts and revisions in their tables (api.md "Definitions"; seed A
//! "Persistence outline"): every change and its audit entry are one transaction.

use sqlx::PgConnection;

use sluicegate_core::ids::{Hash, TenantId};

use super::{Columns, PostgresStore, audit, definition_read, fault, int, json};
use crate::store::definition::{act, details};
use crate::store::{By, DraftSaved, NewWorkflow, Save, StoreError, WorkflowDetail, WorkflowName};

/// A definition whose draft is still at `expected` and that still takes changes.
pub(super) struct Present {
    draft_version: u64,
    pub(super) draft_graph: String,
    draft_checksum: String,
    pub(super) revision: Option<u64>,
    status: String,
}

/// The definition, locked until the transaction ends: of two writers the second one sees what
/// the first one left.
pub(super) async fn present(
    connection: &mut PgConnection,
    tenant: &TenantId,
    workflow_id: &str,
    expected: u64,
) -> Result<Present, StoreError> {
    let row = sqlx::query(
        "select status, draft_version, draft_graph, draft_checksum, revision
         from workflow_definitions where tenant_id = $1 and workflow_id = $2 for update",
    )
    .bind(tenant.as_str())
    .bind(workflow_id)
    .fetch_optional(connection)
    .await
    .map_err(fault)?
    .ok_or(StoreError::NotFound)?;
    let found = Present {
        draft_version: row.number("draft_version")?,
        draft_graph: row.text("draft_graph")?,
        draft_checksum: row.text("draft_checksum")?,
        revision: row.maybe_number("revision")?,
        status: row.text("status")?,
    };
    if found.status == "archived" {
        return Err(StoreError::Archived);
    }
    if found.draft_version != expected {
        return Err(StoreError::DraftConflict {
            draft_version: found.draft_version,
        });
    }
    Ok(found)
}

impl PostgresStore {
    pub(super) async fn do_create_workflow(
        &self,
        by: &By,
        new: NewWorkflow,
    ) -> Result<WorkflowDetail, StoreError> {
        let workflow_id = uuid::Uuid::now_v7().to_string();
        let (now, actor) = (self.clock.now(), json(&by.actor)?);
        let mut c = self.begin().await?;
        let made = sqlx::query(
            "insert into workflow_definitions
                 (tenant_id, workflow_id, key, name, description, status, draft_version,
                  draft_graph, draft_checksum, draft_saved_at, draft_saved_by,
                  created_at, created_by, updated_at, updated_by)
             values ($1, $2, $3, $4, $5, 'draft', 1, $6, $7, $8, $9, $8, $9, $8, $9)
             on conflict (tenant_id, key) do nothing",
        )
        .bind(by.tenant.as_str())
        .bind(&workflow_id)
        .bind(new.key.as_str())
        .bind(&new.name)
        .bind(&new.description)
        .bind(&new.graph.canonical)
        .bind(new.graph.checksum.to_string())
        .bind(int(now.0))
        .bind(&actor)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        if made.rows_affected() == 0 {
            return Err(StoreError::KeyTaken);
        }
        let metadata = details([
            ("key", new.key.as_str().into()),
            ("draftVersion", 1.into()),
            ("checksum", new.graph.checksum.to_string().into()),
        ]);
        let draft = act(by, "workflow.created", &workflow_id, now, metadata);
        audit::append(&mut c, draft).await?;
        // Read before the commit: after it, nothing may fail any more.
        let name = WorkflowName::Id(workflow_id);
        let made = definition_read::workflow(&mut c, &by.tenant, &name).await?;
        c.commit().await.map_err(fault)?;
        Ok(made)
    }

    pub(super) async fn do_save_draft(
        &self,
        by: &By,
        save: Save,
    ) -> Result<DraftSaved, StoreError> {
        let (now, actor) = (self.clock.now(), json(&by.actor)?);
        let mut c = self.begin().await?;
        let found = present(&mut c, &by.tenant, &save.workflow_id, save.expected).await?;
        let (graph, checksum) = match &save.change.graph {
            Some(graph) => (graph.canonical.clone(), graph.checksum.to_string()),
            None => (found.draft_graph, found.draft_checksum),
        };
        let draft_version = save.expected + 1;
        sqlx::query(
            "update workflow_definitions
             set draft_version = $3, draft_graph = $4, draft_checksum = $5,
                 draft_saved_at = $6, draft_saved_by = $7, updated_at = $6,
                 updated_by = $7, name = coalesce($8, name),
                 description = coalesce($9, description)
             where tenant_id = $1 and workflow_id = $2",
        )
        .bind(by.tenant.as_str())
        .bind(&save.workflow_id)
        .bind(int(draft_version))
        .bind(&graph)
        .bind(&checksum)
        .bind(int(now.0))
        .bind(&actor)
        .bind(&save.change.name)
        .bind(&save.change.description)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        let metadata = details([
            ("draftVersion", draft_version.into()),
            ("checksum", checksum.as_str().into()),
        ]);
        let draft = act(by, "workflow.saved", &save.workflow_id, now, metadata);
        audit::append(&mut c, draft).await?;
        let checksum = Hash::parse(&checksum)
            .ok_or_else(|| StoreError::Corrupt("the draft's checksum".to_owned()))?;
        c.commit().await.map_err(fault)?;
        Ok(DraftSaved {
            draft_version,
            checksum,
        })
    }

    pub(super) async fn do_archive(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError> {
        let (now, actor) = (self.clock.now(), json(&by.actor)?);
        let mut c = self.begin().await?;
        present(&mut c, &by.tenant, workflow_id, expected).await?;
        sqlx::query(
            "update workflow_definitions
             set status = 'archived', updated_at = $3, updated_by = $4
             where tenant_id = $1 and workflow_id = $2",
        )
        .bind(by.tenant.as_str())
        .bind(workflow_id)
        .bind(int(now.0))
        .bind(&actor)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        let metadata = details([("draftVersion", expected.into())]);
        audit::append(
            &mut c,
            act(by, "workflow.archived", workflow_id, now, metadata),
        )
        .await?;
        c.commit().await.map_err(fault)?;
        Ok(())
    }

    pub(super) async fn do_delete_workflow(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut c = self.begin().await?;
        let found = present(&mut c, &by.tenant, workflow_id, expected).await?;
        let used: bool = sqlx::query_scalar(
            "select exists (
                 select from workflow_runs where tenant_id = $1 and workflow_id = $2)",
        )
        .bind(by.tenant.as_str())
        .bind(workflow_id)
        .fetch_one(&mut *c)
        .await
        .map_err(fault)?;
        if found.revision.is_some() || used {
            return Err(StoreError::InUse);
        }
        sqlx::query("delete from workflow_definitions where tenant_id = $1 and workflow_id = $2")
            .bind(by.tenant.as_str())
            .bind(workflow_id)
            .execute(&mut *c)
            .await
            .map_err(fault)?;
        let metadata = details([("draftVersion", expected.into())]);
        audit::append(
            &mut c,
            act(by, "workflow.deleted", workflow_id, now, metadata),
        )
        .await?;
        c.commit().await.map_err(fault)?;
        Ok(())
    }
}
