//! Publishing in the tables (api.md "Definitions"; seed A "Graph validation and
//! publication"): an immutable revision, the live one from here on, and its audit entry.

use sqlx::PgConnection;

use sluicegate_core::time::Instant;
use sluicegate_core::value;

use super::definition::present;
use super::{PostgresStore, audit, fault, int, json};
use crate::store::definition::{act, details};
use crate::store::{By, Publication, Published, StoreError};

impl PostgresStore {
    pub(super) async fn do_publish(
        &self,
        by: &By,
        publication: Publication,
    ) -> Result<Published, StoreError> {
        let (now, actor) = (self.clock.now(), json(&by.actor)?);
        let plan = value::canonical(&publication.plan);
        let mut c = self.begin().await?;
        let Publication {
            workflow_id,
            expected,
            graph,
            ..
        } = &publication;
        let found = present(&mut c, &by.tenant, workflow_id, *expected).await?;
        if found.draft_graph != graph.canonical {
            return Err(StoreError::Stale);
        }
        let plan_hash = publication.plan_hash.to_string();
        if let Some(revision) = found.revision {
            let same: bool = sqlx::query_scalar(
                "select exists (
                     select from workflow_revisions where tenant_id = $1 and workflow_id = $2
                     and revision = $3 and graph = $4 and plan_hash = $5)",
            )
            .bind(by.tenant.as_str())
            .bind(workflow_id)
            .bind(int(revision))
            .bind(&graph.canonical)
            .bind(&plan_hash)
            .fetch_one(&mut *c)
            .await
            .map_err(fault)?;
            if same {
                return Ok(Published {
                    revision,
                    checksum: graph.checksum,
                    plan_hash: publication.plan_hash,
                    created: false,
                });
            }
        }
        let revision = found.revision.unwrap_or(0) + 1;
        insert_revision(&mut c, by, &publication, revision, &plan, now, &actor).await?;
        let metadata = details([
            ("revision", revision.into()),
            ("draftVersion", (*expected).into()),
            ("checksum", graph.checksum.to_string().into()),
            ("planHash", plan_hash.into()),
        ]);
        let draft = act(by, "workflow.published", workflow_id, now, metadata);
        audit::append(&mut c, draft).await?;
        c.commit().await.map_err(fault)?;
        Ok(Published {
            revision,
            checksum: graph.checksum,
            plan_hash: publication.plan_hash,
            created: true,
        })
    }
}

async fn insert_revision(
    connection: &mut PgConnection,
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
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
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
         set revision = $3, status = 'published', updated_at = $4, updated_by = $5
         where tenant_id = $1 and workflow_id = $2",
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
