//! Workflows as they are read (api.md "Definitions"): a detail is one consistent view of all
//! its tables.

use sluicegate_core::ids::{TenantId, WorkflowKey};

use super::{Columns, SqliteStore, fault, int};
use crate::store::definition::{revision_row, status_word, workflow_row};
use crate::store::{
    DraftText, LiveRevision, PublishedRevision, StoreError, WorkflowDetail, WorkflowFilter,
    WorkflowName, WorkflowRow,
};

/// The id that a name stands for.
async fn id_of<'e, E>(
    executor: E,
    tenant: &TenantId,
    name: &WorkflowName,
) -> Result<String, StoreError>
where
    E: sqlx::Executor<'e, Database = sqlx::Sqlite>,
{
    let found: Option<String> = match name {
        WorkflowName::Id(id) => sqlx::query_scalar(
            "select workflow_id from workflow_definitions where tenant_id = ? and workflow_id = ?",
        )
        .bind(tenant.as_str().to_owned())
        .bind(id.clone()),
        WorkflowName::Key(key) => sqlx::query_scalar(
            "select workflow_id from workflow_definitions where tenant_id = ? and key = ?",
        )
        .bind(tenant.as_str().to_owned())
        .bind(key.as_str().to_owned()),
    }
    .fetch_optional(executor)
    .await
    .map_err(fault)?;
    found.ok_or(StoreError::NotFound)
}

impl SqliteStore {
    pub(super) async fn do_workflows(
        &self,
        tenant: &TenantId,
        filter: &WorkflowFilter,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        let rows = sqlx::query(
            "select workflow_id, key, name, description, status, draft_version, revision,
                    updated_at, updated_by
             from workflow_definitions
             where tenant_id = ?1 and key > ?2 and (?3 is null or status = ?3)
               and (?4 is null or instr(lower(key), lower(?4)) > 0
                    or instr(lower(name), lower(?4)) > 0)
             order by key limit ?5",
        )
        .bind(tenant.as_str())
        .bind(filter.after.as_ref().map_or("", WorkflowKey::as_str))
        .bind(filter.status.map(status_word))
        .bind(filter.q.as_deref())
        .bind(filter.limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(workflow_row).collect()
    }

    pub(super) async fn do_workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
    ) -> Result<WorkflowDetail, StoreError> {
        let mut reading = self.readers.begin().await.map_err(fault)?;
        let id = id_of(&mut *reading, tenant, name).await?;
        let row = sqlx::query(
            "select workflow_id, key, name, description, status, draft_version, revision,
                    updated_at, updated_by, draft_graph, draft_checksum, draft_saved_at,
                    draft_saved_by
             from workflow_definitions where tenant_id = ? and workflow_id = ?",
        )
        .bind(tenant.as_str())
        .bind(&id)
        .fetch_one(&mut *reading)
        .await
        .map_err(fault)?;
        let revisions = sqlx::query(
            "select revision, draft_version, checksum, compiler_version, plan_hash, published_at,
                    published_by, note
             from workflow_revisions where tenant_id = ? and workflow_id = ?
             order by revision desc",
        )
        .bind(tenant.as_str())
        .bind(&id)
        .fetch_all(&mut *reading)
        .await
        .map_err(fault)?;
        Ok(WorkflowDetail {
            row: workflow_row(&row)?,
            draft: DraftText {
                draft_version: row.number("draft_version")?,
                graph: row.document("draft_graph")?,
                checksum: row.hash("draft_checksum")?,
                saved_at: row.instant("draft_saved_at")?,
                saved_by: row.json("draft_saved_by")?,
            },
            revisions: revisions
                .iter()
                .map(revision_row)
                .collect::<Result<_, _>>()?,
        })
    }

    pub(super) async fn do_live_revision(
        &self,
        tenant: &TenantId,
        key: &WorkflowKey,
    ) -> Result<LiveRevision, StoreError> {
        let row = sqlx::query(
            "select d.workflow_id, d.status, r.revision, r.checksum, r.plan_hash
             from workflow_definitions d
             left join workflow_revisions r
               on r.tenant_id = d.tenant_id and r.workflow_id = d.workflow_id
              and r.revision = d.revision
             where d.tenant_id = ? and d.key = ?",
        )
        .bind(tenant.as_str())
        .bind(key.as_str())
        .fetch_optional(&self.readers)
        .await
        .map_err(fault)?
        .ok_or(StoreError::NotFound)?;
        let revision = row.maybe_number("revision")?;
        Ok(LiveRevision {
            workflow_id: row.text("workflow_id")?,
            revision: revision.ok_or(StoreError::NotPublished)?,
            checksum: row.hash("checksum")?,
            plan_hash: row.hash("plan_hash")?,
            archived: row.text("status")? == "archived",
        })
    }

    pub(super) async fn do_revision(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        revision: Option<u64>,
    ) -> Result<PublishedRevision, StoreError> {
        let mut reading = self.readers.begin().await.map_err(fault)?;
        let id = id_of(&mut *reading, tenant, name).await?;
        let row = sqlx::query(
            "select d.key, d.status, r.revision, r.draft_version, r.checksum, r.compiler_version,
                    r.plan_hash, r.published_at, r.published_by, r.note, r.graph, r.plan
             from workflow_definitions d
             join workflow_revisions r
               on r.tenant_id = d.tenant_id and r.workflow_id = d.workflow_id
             where d.tenant_id = ?1 and d.workflow_id = ?2
               and r.revision = coalesce(?3, d.revision)",
        )
        .bind(tenant.as_str())
        .bind(&id)
        .bind(revision.map(int))
        .fetch_optional(&mut *reading)
        .await
        .map_err(fault)?;
        let missing = match revision {
            Some(_) => StoreError::NotFound,
            None => StoreError::NotPublished,
        };
        let row = row.ok_or(missing)?;
        Ok(PublishedRevision {
            workflow_id: id,
            key: WorkflowKey::from(row.text("key")?),
            row: revision_row(&row)?,
            archived: row.text("status")? == "archived",
            graph: row.document("graph")?,
            plan: row.document("plan")?,
        })
    }
}
