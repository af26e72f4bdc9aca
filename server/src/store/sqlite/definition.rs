//! Workflows, drafts and revisions in their tables (api.md "Definitions"; seed A
//! "Persistence outline"): every change and its audit entry are one transaction.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::audit::{Draft, Subject};
use sluicegate_core::ids::{TenantId, WorkflowKey};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, Map, Value};

use super::{Columns, SqliteStore, audit, fault, int, json};
use crate::store::{
    By, DraftSaved, DraftText, NewWorkflow, Publication, Published, PublishedRevision, RevisionRow,
    Save, StoreError, WorkflowDetail, WorkflowFilter, WorkflowName, WorkflowRow, WorkflowStatus,
};

fn word(status: WorkflowStatus) -> &'static str {
    match status {
        WorkflowStatus::Draft => "draft",
        WorkflowStatus::Published => "published",
        WorkflowStatus::Archived => "archived",
    }
}

fn act(
    by: &By,
    action: &str,
    workflow_id: &str,
    now: Instant,
    metadata: Map<String, Value>,
) -> Draft {
    Draft {
        tenant_id: by.tenant.clone(),
        actor: by.actor.clone(),
        origin: Some(by.origin.clone()),
        action: action.to_owned(),
        subject: Subject {
            kind: "workflow".to_owned(),
            id: workflow_id.to_owned(),
        },
        metadata: Value::Object(metadata),
        occurred_at: now,
    }
}

fn details<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn list_row(row: &SqliteRow) -> Result<WorkflowRow, StoreError> {
    Ok(WorkflowRow {
        workflow_id: row.text("workflow_id")?,
        key: WorkflowKey::from(row.text("key")?),
        name: row.text("name")?,
        description: row.text("description")?,
        status: serde_json::from_value(Value::String(row.text("status")?))
            .map_err(|error| StoreError::Corrupt(error.to_string()))?,
        draft_version: row.number("draft_version")?,
        revision: row.maybe_number("revision")?,
        updated_at: row.instant("updated_at")?,
        updated_by: row.json("updated_by")?,
    })
}

fn revision_row(row: &SqliteRow) -> Result<RevisionRow, StoreError> {
    Ok(RevisionRow {
        revision: row.number("revision")?,
        draft_version: row.number("draft_version")?,
        checksum: row.hash("checksum")?,
        compiler_version: row.text("compiler_version")?,
        plan_hash: row.hash("plan_hash")?,
        published_at: row.instant("published_at")?,
        published_by: row.json("published_by")?,
        note: row.maybe_text("note")?,
    })
}

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

/// A definition whose draft is still at `expected` and that still takes changes.
struct Present {
    draft_version: u64,
    draft_graph: String,
    draft_checksum: String,
    revision: Option<u64>,
    status: String,
}

async fn present(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    workflow_id: &str,
    expected: u64,
) -> Result<Present, StoreError> {
    let row = sqlx::query(
        "select status, draft_version, draft_graph, draft_checksum, revision
         from workflow_definitions where tenant_id = ? and workflow_id = ?",
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

impl SqliteStore {
    pub(super) async fn do_create_workflow(
        &self,
        by: &By,
        new: NewWorkflow,
    ) -> Result<WorkflowDetail, StoreError> {
        let workflow_id = uuid::Uuid::now_v7().to_string();
        let (now, actor) = (self.clock.now(), json(&by.actor)?);
        let (by, id) = (by.clone(), workflow_id.clone());
        let tenant = by.tenant.clone();
        self.write(move |c| {
            Box::pin(async move {
                let made = sqlx::query(
                    "insert into workflow_definitions
                         (tenant_id, workflow_id, key, name, description, status, draft_version,
                          draft_graph, draft_checksum, draft_saved_at, draft_saved_by,
                          created_at, created_by, updated_at, updated_by)
                     values (?1, ?2, ?3, ?4, ?5, 'draft', 1, ?6, ?7, ?8, ?9, ?8, ?9, ?8, ?9)
                     on conflict (tenant_id, key) do nothing",
                )
                .bind(by.tenant.as_str())
                .bind(&id)
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
                audit::append(c, act(&by, "workflow.created", &id, now, metadata)).await?;
                Ok(())
            })
        })
        .await?;
        self.do_workflow(&tenant, &WorkflowName::Id(workflow_id))
            .await
    }

    pub(super) async fn do_save_draft(
        &self,
        by: &By,
        save: Save,
    ) -> Result<DraftSaved, StoreError> {
        let (now, actor, by) = (self.clock.now(), json(&by.actor)?, by.clone());
        self.write(move |c| {
            Box::pin(async move {
                let found = present(&mut *c, &by.tenant, &save.workflow_id, save.expected).await?;
                let (graph, checksum) = match &save.change.graph {
                    Some(graph) => (graph.canonical.clone(), graph.checksum.to_string()),
                    None => (found.draft_graph, found.draft_checksum),
                };
                let draft_version = save.expected + 1;
                sqlx::query(
                    "update workflow_definitions
                     set draft_version = ?3, draft_graph = ?4, draft_checksum = ?5,
                         draft_saved_at = ?6, draft_saved_by = ?7, updated_at = ?6,
                         updated_by = ?7, name = coalesce(?8, name),
                         description = coalesce(?9, description)
                     where tenant_id = ?1 and workflow_id = ?2",
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
                let draft = act(&by, "workflow.saved", &save.workflow_id, now, metadata);
                audit::append(c, draft).await?;
                let checksum = sluicegate_core::ids::Hash::parse(&checksum)
                    .ok_or_else(|| StoreError::Corrupt("the draft's checksum".to_owned()))?;
                Ok(DraftSaved {
                    draft_version,
                    checksum,
                })
            })
        })
        .await
    }

    pub(super) async fn do_publish(
        &self,
        by: &By,
        publication: Publication,
    ) -> Result<Published, StoreError> {
        let (now, actor, by) = (self.clock.now(), json(&by.actor)?, by.clone());
        let plan = value::canonical(&publication.plan);
        self.write(move |c| {
            Box::pin(async move {
                let Publication {
                    workflow_id,
                    expected,
                    graph,
                    ..
                } = &publication;
                let found = present(&mut *c, &by.tenant, workflow_id, *expected).await?;
                if found.draft_graph != graph.canonical {
                    return Err(StoreError::Stale);
                }
                let plan_hash = publication.plan_hash.to_string();
                if let Some(revision) = found.revision {
                    let same: Option<i64> = sqlx::query_scalar(
                        "select 1 from workflow_revisions where tenant_id = ? and workflow_id = ?
                         and revision = ? and graph = ? and plan_hash = ?",
                    )
                    .bind(by.tenant.as_str())
                    .bind(workflow_id)
                    .bind(int(revision))
                    .bind(&graph.canonical)
                    .bind(&plan_hash)
                    .fetch_optional(&mut *c)
                    .await
                    .map_err(fault)?;
                    if same.is_some() {
                        return Ok(Published {
                            revision,
                            checksum: graph.checksum,
                            plan_hash: publication.plan_hash,
                            created: false,
                        });
                    }
                }
                let revision = found.revision.unwrap_or(0) + 1;
                insert_revision(&mut *c, &by, &publication, revision, &plan, now, &actor).await?;
                let metadata = details([
                    ("revision", revision.into()),
                    ("draftVersion", (*expected).into()),
                    ("checksum", graph.checksum.to_string().into()),
                    ("planHash", plan_hash.into()),
                ]);
                let draft = act(&by, "workflow.published", workflow_id, now, metadata);
                audit::append(c, draft).await?;
                Ok(Published {
                    revision,
                    checksum: graph.checksum,
                    plan_hash: publication.plan_hash,
                    created: true,
                })
            })
        })
        .await
    }

    pub(super) async fn do_archive(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError> {
        let (now, actor, by) = (self.clock.now(), json(&by.actor)?, by.clone());
        let id = workflow_id.to_owned();
        self.write(move |c| {
            Box::pin(async move {
                present(&mut *c, &by.tenant, &id, expected).await?;
                sqlx::query(
                    "update workflow_definitions
                     set status = 'archived', updated_at = ?3, updated_by = ?4
                     where tenant_id = ?1 and workflow_id = ?2",
                )
                .bind(by.tenant.as_str())
                .bind(&id)
                .bind(int(now.0))
                .bind(&actor)
                .execute(&mut *c)
                .await
                .map_err(fault)?;
                let metadata = details([("draftVersion", expected.into())]);
                audit::append(c, act(&by, "workflow.archived", &id, now, metadata)).await?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn do_delete_workflow(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError> {
        let (now, by, id) = (self.clock.now(), by.clone(), workflow_id.to_owned());
        self.write(move |c| {
            Box::pin(async move {
                let found = present(&mut *c, &by.tenant, &id, expected).await?;
                let used: Option<i64> = sqlx::query_scalar(
                    "select 1 from workflow_runs where tenant_id = ? and workflow_id = ? limit 1",
                )
                .bind(by.tenant.as_str())
                .bind(&id)
                .fetch_optional(&mut *c)
                .await
                .map_err(fault)?;
                if found.revision.is_some() || used.is_some() {
                    return Err(StoreError::InUse);
                }
                sqlx::query(
                    "delete from workflow_definitions where tenant_id = ? and workflow_id = ?",
                )
                .bind(by.tenant.as_str())
                .bind(&id)
                .execute(&mut *c)
                .await
                .map_err(fault)?;
                let metadata = details([("draftVersion", expected.into())]);
                audit::append(c, act(&by, "workflow.deleted", &id, now, metadata)).await?;
                Ok(())
            })
        })
        .await
    }

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
        .bind(filter.status.map(word))
        .bind(filter.q.as_deref())
        .bind(filter.limit)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(list_row).collect()
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
            row: list_row(&row)?,
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

async fn insert_revision(
    connection: &mut SqliteConnection,
    by: &By,
    publication: &Publication,
    revision: u64,
    plan: &str,
    now: Instant,
    actor: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into workflow_revisions
             (tenant_id, workflow_id, revision, draft_version, graph, checksum, compiler_version,
              plan, plan_hash, published_at, published_by, note)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(by.tenant.as_str())
    .bind(&publication.workflow_id)
    .bind(int(revision))
    .bind(int(publication.expected))
    .bind(&publication.graph.canonical)
    .bind(publication.graph.checksum.to_string())
    .bind(&publication.compiler_version)
    .bind(plan)
    .bind(publication.plan_hash.to_string())
    .bind(int(now.0))
    .bind(actor)
    .bind(&publication.note)
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    sqlx::query(
        "update workflow_definitions
         set revision = ?3, status = 'published', updated_at = ?4, updated_by = ?5
         where tenant_id = ?1 and workflow_id = ?2",
    )
    .bind(by.tenant.as_str())
    .bind(&publication.workflow_id)
    .bind(int(revision))
    .bind(int(now.0))
    .bind(actor)
    .execute(connection)
    .await
    .map_err(fault)?;
    Ok(())
}
