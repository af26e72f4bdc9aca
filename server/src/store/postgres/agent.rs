//! Agents and their immutable revisions in their tables (server.md §6).

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use sluicegate_core::catalogue::AgentStatus;
use sluicegate_core::ids::{AgentId, TenantId};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self};

use super::{Columns, PostgresStore, fault, int, nat};
use crate::store::definition::agent_revision;
use crate::store::row::word;
use crate::store::{AgentDefinition, AgentRevision, StoreError};

async fn insert_revision(
    c: &mut PgConnection,
    tenant: &TenantId,
    agent: &str,
    number: i64,
    definition: &str,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into agent_definition_revisions
             (tenant_id, agent_id, revision, definition, created_at)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(tenant.as_str())
    .bind(agent)
    .bind(number)
    .bind(definition)
    .bind(int(now.0))
    .execute(&mut *c)
    .await
    .map_err(fault)?;
    sqlx::query("update agents set revision = $1 where tenant_id = $2 and agent_id = $3")
        .bind(number)
        .bind(tenant.as_str())
        .bind(agent)
        .execute(c)
        .await
        .map_err(fault)?;
    Ok(())
}

impl PostgresStore {
    pub(super) async fn do_revise_agent(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<AgentRevision, StoreError> {
        let now = self.clock.now();
        let text = value::to_value(definition).map(|value| value::canonical(&value));
        let text = text.map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let agent = definition.agent_id.as_str();
        let mut c = self.begin().await?;
        sqlx::query(
            "insert into agents (tenant_id, agent_id, status, revision, created_at)
             values ($1, $2, 'active', 0, $3) on conflict do nothing",
        )
        .bind(tenant.as_str())
        .bind(agent)
        .bind(int(now.0))
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        // Of two revisions at the same time the second one waits here and sees the first.
        let latest: i64 = sqlx::query_scalar(
            "select revision from agents where tenant_id = $1 and agent_id = $2 for update",
        )
        .bind(tenant.as_str())
        .bind(agent)
        .fetch_one(&mut *c)
        .await
        .map_err(fault)?;
        let same: Option<i64> = sqlx::query_scalar(
            "select revision from agent_definition_revisions
             where tenant_id = $1 and agent_id = $2 and revision = $3 and definition = $4",
        )
        .bind(tenant.as_str())
        .bind(agent)
        .bind(latest)
        .bind(&text)
        .fetch_optional(&mut *c)
        .await
        .map_err(fault)?;
        let number = same.unwrap_or(latest + 1);
        if same.is_none() {
            insert_revision(&mut c, tenant, agent, number, &text, now).await?;
        }
        c.commit().await.map_err(fault)?;
        self.do_agent(tenant, &definition.agent_id, nat(number))
            .await
    }

    pub(super) async fn do_agents(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<AgentRevision>, StoreError> {
        let rows = sqlx::query(
            "select a.status, r.revision, r.definition, r.created_at from agents a
             join agent_definition_revisions r
               on r.tenant_id = a.tenant_id and r.agent_id = a.agent_id
             where a.tenant_id = $1 order by a.agent_id, r.revision desc",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        rows.iter().map(agent_revision).collect()
    }

    pub(super) async fn do_agent_statuses(
        &self,
        tenant: &TenantId,
        revisions: &[(AgentId, u64)],
    ) -> Result<Vec<Option<AgentStatus>>, StoreError> {
        let (ids, numbers): (Vec<&str>, Vec<i64>) = revisions
            .iter()
            .map(|(id, number)| (id.as_str(), int(*number)))
            .unzip();
        let rows = sqlx::query(
            "select a.status
             from unnest($2::text[], $3::bigint[]) with ordinality asked (agent_id, revision, at)
             left join agent_definition_revisions r
               on r.tenant_id = $1 and r.agent_id = asked.agent_id
              and r.revision = asked.revision
             left join agents a on a.tenant_id = r.tenant_id and a.agent_id = r.agent_id
             order by asked.at",
        )
        .bind(tenant.as_str())
        .bind(ids)
        .bind(numbers)
        .fetch_all(&self.pool)
        .await
        .map_err(fault)?;
        let status = |row: &PgRow| {
            let status = row.maybe_text("status")?;
            status.map(word).transpose()
        };
        rows.iter().map(status).collect()
    }

    pub(super) async fn do_agent(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        number: u64,
    ) -> Result<AgentRevision, StoreError> {
        let row = sqlx::query(
            "select a.status, r.revision, r.definition, r.created_at from agents a
             join agent_definition_revisions r
               on r.tenant_id = a.tenant_id and r.agent_id = a.agent_id
             where a.tenant_id = $1 and a.agent_id = $2 and r.revision = $3",
        )
        .bind(tenant.as_str())
        .bind(agent_id.as_str())
        .bind(int(number))
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        agent_revision(&row.ok_or(StoreError::NotFound)?)
    }
}
