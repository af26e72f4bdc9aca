//! Agents and their immutable revisions in their tables (server.md §6).

use sqlx::sqlite::SqliteRow;

use sluicegate_core::catalogue::AgentStatus;
use sluicegate_core::ids::{AgentId, TenantId};
use sluicegate_core::value::{self};

use super::{Columns, SqliteStore, fault, int, json};
use crate::store::definition::agent_revision;
use crate::store::row::word;
use crate::store::{AgentDefinition, AgentRevision, StoreError};

impl SqliteStore {
    pub(super) async fn do_revise_agent(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<AgentRevision, StoreError> {
        let now = self.clock.now();
        let text = value::to_value(definition).map(|value| value::canonical(&value));
        let text = text.map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let (owned, agent) = (tenant.clone(), definition.agent_id.clone());
        let number = self
            .write(move |c| {
                Box::pin(async move {
                    sqlx::query(
                        "insert into agents (tenant_id, agent_id, status, revision, created_at)
                         values (?, ?, 'active', 0, ?) on conflict do nothing",
                    )
                    .bind(owned.as_str())
                    .bind(agent.as_str())
                    .bind(int(now.0))
                    .execute(&mut *c)
                    .await
                    .map_err(fault)?;
                    let row = sqlx::query(
                        "select a.revision, r.definition from agents a
                         left join agent_definition_revisions r
                           on r.tenant_id = a.tenant_id and r.agent_id = a.agent_id
                          and r.revision = a.revision
                         where a.tenant_id = ? and a.agent_id = ?",
                    )
                    .bind(owned.as_str())
                    .bind(agent.as_str())
                    .fetch_one(&mut *c)
                    .await
                    .map_err(fault)?;
                    let latest = row.number("revision")?;
                    if row.maybe_text("definition")?.as_ref() == Some(&text) {
                        return Ok(latest);
                    }
                    sqlx::query(
                        "insert into agent_definition_revisions
                             (tenant_id, agent_id, revision, definition, created_at)
                         values (?, ?, ?, ?, ?)",
                    )
                    .bind(owned.as_str())
                    .bind(agent.as_str())
                    .bind(int(latest + 1))
                    .bind(&text)
                    .bind(int(now.0))
                    .execute(&mut *c)
                    .await
                    .map_err(fault)?;
                    sqlx::query(
                        "update agents set revision = ? where tenant_id = ? and agent_id = ?",
                    )
                    .bind(int(latest + 1))
                    .bind(owned.as_str())
                    .bind(agent.as_str())
                    .execute(c)
                    .await
                    .map_err(fault)?;
                    Ok(latest + 1)
                })
            })
            .await?;
        self.do_agent(tenant, &definition.agent_id, number).await
    }

    pub(super) async fn do_agents(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<AgentRevision>, StoreError> {
        let rows = sqlx::query(
            "select a.status, r.revision, r.definition, r.created_at from agents a
             join agent_definition_revisions r
               on r.tenant_id = a.tenant_id and r.agent_id = a.agent_id
             where a.tenant_id = ? order by a.agent_id, r.revision desc",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        rows.iter().map(agent_revision).collect()
    }

    pub(super) async fn do_agent_statuses(
        &self,
        tenant: &TenantId,
        revisions: &[(AgentId, u64)],
    ) -> Result<Vec<Option<AgentStatus>>, StoreError> {
        let rows = sqlx::query(
            "select a.status from json_each(?2) asked
             left join agent_definition_revisions r
               on r.tenant_id = ?1 and r.agent_id = asked.value ->> 0
              and r.revision = asked.value ->> 1
             left join agents a on a.tenant_id = r.tenant_id and a.agent_id = r.agent_id
             order by asked.key",
        )
        .bind(tenant.as_str())
        .bind(json(&revisions)?)
        .fetch_all(&self.readers)
        .await
        .map_err(fault)?;
        let status = |row: &SqliteRow| {
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
             where a.tenant_id = ? and a.agent_id = ? and r.revision = ?",
        )
        .bind(tenant.as_str())
        .bind(agent_id.as_str())
        .bind(int(number))
        .fetch_optional(&self.readers)
        .await
        .map_err(fault)?;
        agent_revision(&row.ok_or(StoreError::NotFound)?)
    }
}
