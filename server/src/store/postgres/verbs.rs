//! The verbs of the trait, each carried out in the file of its tables (architecture.md
//! "Rules").

use async_trait::async_trait;

use sluicegate_core::audit::{Covered, Draft, Head};
use sluicegate_core::ids::{AgentId, ChildId, Hash, PayloadId, RunId, TenantId};
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;

use super::{PostgresStore, audit, fault, migrate, timely};
use crate::store::*;

#[async_trait]
impl Store for PostgresStore {
    async fn create_workflow(
        &self,
        by: &By,
        new: NewWorkflow,
    ) -> Result<WorkflowDetail, StoreError> {
        timely(self.do_create_workflow(by, new)).await
    }

    async fn save_draft(&self, by: &By, save: Save) -> Result<DraftSaved, StoreError> {
        timely(self.do_save_draft(by, save)).await
    }

    async fn publish(&self, by: &By, publication: Publication) -> Result<Published, StoreError> {
        timely(self.do_publish(by, publication)).await
    }

    async fn archive(&self, by: &By, workflow_id: &str, expected: u64) -> Result<(), StoreError> {
        timely(self.do_archive(by, workflow_id, expected)).await
    }

    async fn delete_workflow(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError> {
        timely(self.do_delete_workflow(by, workflow_id, expected)).await
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        filter: &WorkflowFilter,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        timely(self.do_workflows(tenant, filter)).await
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
    ) -> Result<WorkflowDetail, StoreError> {
        timely(self.do_workflow(tenant, name)).await
    }

    async fn live_revision(
        &self,
        tenant: &TenantId,
        key: &WorkflowKey,
    ) -> Result<LiveRevision, StoreError> {
        timely(self.do_live_revision(tenant, key)).await
    }

    async fn revision(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        revision: Option<u64>,
    ) -> Result<PublishedRevision, StoreError> {
        timely(self.do_revision(tenant, name, revision)).await
    }

    async fn revise_agent(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<AgentRevision, StoreError> {
        timely(self.do_revise_agent(tenant, definition)).await
    }

    async fn agents(&self, tenant: &TenantId) -> Result<Vec<AgentRevision>, StoreError> {
        timely(self.do_agents(tenant)).await
    }

    async fn agent_statuses(
        &self,
        tenant: &TenantId,
        revisions: &[(AgentId, u64)],
    ) -> Result<Vec<Option<AgentStatus>>, StoreError> {
        timely(self.do_agent_statuses(tenant, revisions)).await
    }

    async fn agent(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        revision: u64,
    ) -> Result<AgentRevision, StoreError> {
        timely(self.do_agent(tenant, agent_id, revision)).await
    }

    async fn accepted(
        &self,
        tenant: &TenantId,
        idempotency_key: &str,
    ) -> Result<Option<Accepted>, StoreError> {
        timely(self.do_accepted(tenant, idempotency_key)).await
    }

    async fn enqueue(&self, run: NewRun) -> Result<EnqueueOutcome, StoreError> {
        timely(self.do_enqueue(run)).await
    }

    async fn store_simulation(&self, run: RunSimulated) -> Result<(), StoreError> {
        timely(self.do_store_simulation(run)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        timely(self.do_commit(commit)).await
    }

    async fn due(&self, limit: u32) -> Result<Vec<Due>, StoreError> {
        timely(self.do_due(limit)).await
    }

    async fn renew(&self, held: &Held, lease_ms: u64) -> Result<Instant, StoreError> {
        timely(self.do_renew(held, lease_ms)).await
    }

    async fn release(&self, held: &Held) -> Result<(), StoreError> {
        timely(self.do_release(held)).await
    }

    async fn void_leases(&self) -> Result<u64, StoreError> {
        timely(self.do_void_leases()).await
    }

    async fn next_due(&self) -> Result<Option<Instant>, StoreError> {
        timely(self.do_next_due()).await
    }

    async fn park(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        parked: &Parked,
    ) -> Result<(), StoreError> {
        timely(self.do_park(tenant, run_id, parked)).await
    }

    async fn load_run(&self, tenant: &TenantId, run_id: &RunId) -> Result<LoadedRun, StoreError> {
        timely(self.do_load_run(tenant, run_id)).await
    }

    async fn run_plan(&self, tenant: &TenantId, run_id: &RunId) -> Result<Value, StoreError> {
        timely(self.do_run_plan(tenant, run_id)).await
    }

    async fn payloads(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        ids: &[PayloadId],
    ) -> Result<Vec<Encrypted>, StoreError> {
        timely(self.do_payloads(tenant, run_id, ids)).await
    }

    async fn result_payload(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Option<Encrypted>, StoreError> {
        timely(self.do_result_payload(tenant, run_id)).await
    }

    async fn runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
    ) -> Result<Vec<RunListRow>, StoreError> {
        timely(self.do_runs(tenant, filter)).await
    }

    async fn run_row(&self, tenant: &TenantId, run_id: &RunId) -> Result<RunListRow, StoreError> {
        timely(self.do_run_row(tenant, run_id)).await
    }

    async fn run_detail(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<RunDetailRows, StoreError> {
        timely(self.do_run_detail(tenant, run_id)).await
    }

    async fn events_after(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        timely(self.do_events_after(tenant, run_id, after, limit)).await
    }

    async fn start_child(&self, intent: ChildIntent) -> Result<ChildStanding, StoreError> {
        timely(self.do_start_child(intent)).await
    }

    async fn settle_child(&self, settlement: ChildSettlement) -> Result<bool, StoreError> {
        timely(self.do_settle_child(settlement)).await
    }

    async fn observe_child(
        &self,
        tenant: &TenantId,
        child_id: &ChildId,
        attempt: u32,
        fence: u64,
    ) -> Result<ChildStanding, StoreError> {
        timely(self.do_observe_child(tenant, child_id, attempt, fence)).await
    }

    async fn cancel_child(&self, intent: ChildIntent) -> Result<ChildCancelled, StoreError> {
        timely(self.do_cancel_child(intent)).await
    }

    async fn children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Vec<ChildView>, StoreError> {
        timely(self.do_children(tenant, run_id)).await
    }

    async fn record_act(&self, draft: Draft) -> Result<u64, StoreError> {
        timely(async {
            let mut c = self.begin().await?;
            let sequence = audit::append(&mut c, draft).await?;
            c.commit().await.map_err(fault)?;
            Ok(sequence)
        })
        .await
    }

    async fn audit_after(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        timely(self.do_audit_after(tenant, after, limit)).await
    }

    async fn audit_head(&self, tenant: &TenantId) -> Result<Head, StoreError> {
        timely(self.do_audit_head(tenant)).await
    }

    async fn audit_before(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
    ) -> Result<Vec<Value>, StoreError> {
        timely(self.do_audit_before(tenant, filter)).await
    }

    async fn audit_tail(&self, tenant: &TenantId) -> Result<AuditTail, StoreError> {
        timely(self.do_audit_tail(tenant)).await
    }

    async fn entries_as_stored(
        &self,
        tenant: &TenantId,
        after: u64,
        through: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        timely(self.do_entries_as_stored(tenant, after, through, limit)).await
    }

    async fn entry_about(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
    ) -> Result<Option<Value>, StoreError> {
        timely(self.do_entry_about(tenant, run_id, after)).await
    }

    async fn events_as_stored(
        &self,
        tenant: &TenantId,
        covered: &[Covered],
    ) -> Result<Vec<Vec<Value>>, StoreError> {
        timely(self.do_events_as_stored(tenant, covered)).await
    }

    async fn last_events(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<(RunId, u64)>, StoreError> {
        timely(self.do_last_events(tenant, after, limit)).await
    }

    async fn tenants(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        timely(self.do_tenants(after, limit)).await
    }

    async fn ended(
        &self,
        tenant: &TenantId,
        rule: Rule,
        until: Instant,
        after: Option<&(Instant, RunId)>,
        limit: u32,
    ) -> Result<Vec<Ended>, StoreError> {
        timely(self.do_ended(tenant, rule, until, after, limit)).await
    }

    async fn retained(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
    ) -> Result<Vec<Retained>, StoreError> {
        timely(self.do_retained(tenant, run_id, rule)).await
    }

    async fn expire(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
        payloads: &[Retained],
    ) -> Result<(), StoreError> {
        timely(self.do_expire(tenant, run_id, rule, payloads)).await
    }

    async fn expire_children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        limit: usize,
    ) -> Result<bool, StoreError> {
        timely(self.do_expire_children(tenant, run_id, limit)).await
    }

    async fn reclaim(&self, _pages: u32) -> Result<bool, StoreError> {
        // Autovacuum does.
        Ok(false)
    }

    async fn run_ids(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>, StoreError> {
        timely(self.do_run_ids(tenant, after, limit)).await
    }

    async fn differences(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<Vec<Difference>, StoreError> {
        timely(self.do_differences(tenant, run_id, rebuilt)).await
    }

    async fn rebuild(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<(), StoreError> {
        timely(self.do_rebuild(tenant, run_id, rebuilt)).await
    }

    async fn ensure_tenant(&self, tenant: &TenantId, owner: &Account) -> Result<bool, StoreError> {
        timely(self.do_ensure_tenant(tenant, owner)).await
    }

    async fn owner(&self, tenant: &TenantId) -> Result<Account, StoreError> {
        timely(self.do_owner(tenant)).await
    }

    async fn create_api_key(&self, key: &ApiKey) -> Result<(), StoreError> {
        timely(self.do_create_api_key(key)).await
    }

    async fn api_key(&self, secret: &Hash, now: Instant) -> Result<Option<KeyGrant>, StoreError> {
        timely(self.do_api_key(secret, now)).await
    }

    async fn create_sign_in_link(
        &self,
        tenant: &TenantId,
        account_id: &str,
        token: &Hash,
        expires_at: Instant,
    ) -> Result<(), StoreError> {
        timely(self.do_create_sign_in_link(tenant, account_id, token, expires_at)).await
    }

    async fn exchange_sign_in_link(
        &self,
        token: &Hash,
        session: &Session,
        now: Instant,
    ) -> Result<Option<(TenantId, Account)>, StoreError> {
        timely(self.do_exchange_sign_in_link(token, session, now)).await
    }

    async fn session(
        &self,
        token: &Hash,
        now: Instant,
        idle_until: Instant,
    ) -> Result<Option<(TenantId, Account, Session)>, StoreError> {
        timely(self.do_session(token, now, idle_until)).await
    }

    async fn end_session(&self, token: &Hash) -> Result<(), StoreError> {
        timely(self.do_end_session(token)).await
    }

    async fn payload_keys(&self) -> Result<Vec<String>, StoreError> {
        timely(self.do_payload_keys()).await
    }

    fn committed(&self) -> u64 {
        self.committer.committed()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        timely(async {
            let mut reading = self.pool.acquire().await.map_err(fault)?;
            let found = migrate::version(&mut reading).await?;
            if found == migrate::NEWEST {
                return Ok(());
            }
            Err(StoreError::TooNew {
                found,
                known: migrate::NEWEST,
            })
        })
        .await
    }
}
