//! Storage in words of the domain (architecture.md "Rules"; server.md §4; run-machine.md
//! §§6, 7, 11): each verb is one business transaction, no connection is handed out, and
//! nothing is decided here that core could decide.
//!
//! Every verb says what is true once it returns. Every verb that names a tenant sees that
//! tenant alone: what belongs to another is answered exactly as what does not exist.

mod audit;
mod child;
mod column;
mod definition;
mod error;
mod flat;
mod identity;
mod news;
pub mod postgres;
mod repair;
mod retention;
mod row;
mod run;
pub mod sqlite;
mod stood;
mod table;
mod turns;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use sluicegate_core::audit::{Covered, Head};
use sluicegate_core::catalogue::AgentStatus;
use sluicegate_core::ids::{AgentId, ChildId, Hash, PayloadId, RunId, TenantId, WorkflowKey};
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;

pub use audit::{AuditFilter, AuditTail};
pub use child::{
    ChildCancelled, ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus, ChildView,
};
pub use definition::{
    AgentDefinition, AgentRevision, By, DraftChange, DraftSaved, DraftText, GraphText,
    LiveRevision, NewWorkflow, Publication, Published, PublishedRevision, RevisionRow, Save,
    WorkflowDetail, WorkflowFilter, WorkflowName, WorkflowRow, WorkflowStatus,
};
pub use error::StoreError;
pub use identity::{Account, ApiKey, KeyGrant, Session};
pub use news::News;
pub use repair::{Difference, Rebuilt, RowIs};
pub use retention::{Ended, Kept, Retained, Rule};
pub use run::{
    Accepted, AuditDraft, ChildChanges, Commit, Committed, Due, Encrypted, EnqueueOutcome, Guard,
    Held, LoadedRun, NewEvent, NewRun, Parked, PreviewRow, RunCursor, RunDetailRows, RunFilter,
    RunListRow, RunReference, RunSimulated, Sealed, StoredEvent,
};

/// The one trait between the engine and a database.
#[async_trait]
pub trait Store: Send + Sync {
    // Definitions (seed A "Persistence outline"; api.md "Definitions").

    /// Creates a workflow with its first draft, version 1, and its audit entry.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`].
    async fn create_workflow(
        &self,
        by: &By,
        new: NewWorkflow,
    ) -> Result<WorkflowDetail, StoreError>;

    /// Saves a draft, if `expected` is still its version. A save that changes nothing is a
    /// save all the same.
    ///
    /// # Errors
    /// [`StoreError::DraftConflict`], [`StoreError::Archived`], [`StoreError::NotFound`].
    async fn save_draft(&self, by: &By, save: Save) -> Result<DraftSaved, StoreError>;

    /// Publishes the draft as it stands, if `expected` is still its version and its text is
    /// the one that was compiled. A draft equal to the live revision makes no new one.
    ///
    /// # Errors
    /// As [`Store::save_draft`].
    async fn publish(&self, by: &By, publication: Publication) -> Result<Published, StoreError>;

    /// No new run starts from here on.
    ///
    /// # Errors
    /// As [`Store::save_draft`].
    async fn archive(&self, by: &By, workflow_id: &str, expected: u64) -> Result<(), StoreError>;

    /// Deletes a workflow that was never published and has no run.
    ///
    /// # Errors
    /// As [`Store::save_draft`]; [`StoreError::InUse`].
    async fn delete_workflow(
        &self,
        by: &By,
        workflow_id: &str,
        expected: u64,
    ) -> Result<(), StoreError>;

    /// Workflows by key, after `filter.after`.
    async fn workflows(
        &self,
        tenant: &TenantId,
        filter: &WorkflowFilter,
    ) -> Result<Vec<WorkflowRow>, StoreError>;

    /// One workflow with its draft and all its revisions.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
    ) -> Result<WorkflowDetail, StoreError>;

    /// The revision that a new run of the workflow takes, without its documents.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotPublished`].
    async fn live_revision(
        &self,
        tenant: &TenantId,
        key: &WorkflowKey,
    ) -> Result<LiveRevision, StoreError>;

    /// One published revision: the live one without `revision`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotPublished`]. An archived workflow's
    /// revisions are still given; `archived` says so.
    async fn revision(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        revision: Option<u64>,
    ) -> Result<PublishedRevision, StoreError>;

    // Agents (server.md §6).

    /// Stores the next immutable revision of an agent, creating the agent with its first.
    /// A definition equal to the latest one makes no new revision.
    async fn revise_agent(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<AgentRevision, StoreError>;

    /// Every revision of every agent, by agent, newest first.
    async fn agents(&self, tenant: &TenantId) -> Result<Vec<AgentRevision>, StoreError>;

    /// The present status of the agent of each of these revisions, in their order; `None`
    /// for a revision that does not exist.
    async fn agent_statuses(
        &self,
        tenant: &TenantId,
        revisions: &[(AgentId, u64)],
    ) -> Result<Vec<Option<AgentStatus>>, StoreError>;

    /// One exact revision, with its agent's present status.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn agent(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        revision: u64,
    ) -> Result<AgentRevision, StoreError>;

    // Runs (run-machine.md §§6–8).

    /// The run that an idempotency key stands for, if one was accepted (N2). Asked before
    /// the input or the workflow is judged.
    async fn accepted(
        &self,
        tenant: &TenantId,
        idempotency_key: &str,
    ) -> Result<Option<Accepted>, StoreError>;

    /// Stores a live run with its first decision, if its idempotency key is new and the
    /// revision that it was decided from is still the published one (N2, N3).
    async fn enqueue(&self, run: NewRun) -> Result<EnqueueOutcome, StoreError>;

    /// Stores a finished simulation with one audit entry (V3).
    async fn store_simulation(&self, run: RunSimulated) -> Result<(), StoreError>;

    /// Commits one decision whole: events, rows, payloads, the changes of children and the
    /// audit entry, or nothing.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the guard's lease is no longer held or to be had,
    /// [`StoreError::Stale`] when the run has moved on or its child has another owner.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Up to `limit` runs that may be claimed: unparked, not ended, without a holder or with
    /// an expired or void one, and due (W3); one per tenant and turn (W9). Nothing is taken:
    /// a commit under [`Guard::Claim`] does that.
    async fn due(&self, limit: u32) -> Result<Vec<Due>, StoreError>;

    /// Extends a lease from now on and gives its new end.
    ///
    /// # Errors
    /// [`StoreError::Fenced`].
    async fn renew(&self, held: &Held, lease_ms: u64) -> Result<Instant, StoreError>;

    /// Gives a lease back; without effect when it is no longer held.
    async fn release(&self, held: &Held) -> Result<(), StoreError>;

    /// Declares every lease void, because the folder lock proves that its owner is dead
    /// (W6). Returns how many there were.
    async fn void_leases(&self) -> Result<u64, StoreError>;

    /// When the next waiting run becomes due, if one waits.
    async fn next_due(&self) -> Result<Option<Instant>, StoreError>;

    /// Takes a run out of work because its log cannot be folded (A9).
    async fn park(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        parked: &Parked,
    ) -> Result<(), StoreError>;

    /// A run as its log and its invocation say it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn load_run(&self, tenant: &TenantId, run_id: &RunId) -> Result<LoadedRun, StoreError>;

    /// The stored plan of a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn run_plan(&self, tenant: &TenantId, run_id: &RunId) -> Result<Value, StoreError>;

    /// Encrypted payloads of a run: the execution forms of these ids. Those that are gone
    /// are left out.
    async fn payloads(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        ids: &[PayloadId],
    ) -> Result<Vec<Encrypted>, StoreError>;

    /// The encrypted result of a run; `None` before it ended well and after retention.
    async fn result_payload(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Option<Encrypted>, StoreError>;

    /// Runs, newest first by `(queuedAt, runId)`, after `filter.before`.
    async fn runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
    ) -> Result<Vec<RunListRow>, StoreError>;

    /// One run's list row.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn run_row(&self, tenant: &TenantId, run_id: &RunId) -> Result<RunListRow, StoreError>;

    /// One run with all its rows.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn run_detail(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<RunDetailRows, StoreError>;

    /// Events after a sequence, in order.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn events_after(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    // Children (run-machine.md N1, W8, C3).

    /// Records that a child is to run, once for each (key, attempt), or says what stands
    /// there. A higher fence takes a running attempt over.
    async fn start_child(&self, intent: ChildIntent) -> Result<ChildStanding, StoreError>;

    /// Settles an attempt of a child, once: `false` when it was settled before or another
    /// owner has taken it over.
    async fn settle_child(&self, settlement: ChildSettlement) -> Result<bool, StoreError>;

    /// Takes a known child over for a fence and says how its attempt stands.
    async fn observe_child(
        &self,
        tenant: &TenantId,
        child_id: &ChildId,
        attempt: u32,
        fence: u64,
    ) -> Result<ChildStanding, StoreError>;

    /// Asks a child to stop, by key. An unknown key is kept as refused, so that nothing can
    /// start late (C3).
    async fn cancel_child(&self, intent: ChildIntent) -> Result<ChildCancelled, StoreError>;

    /// The children of a run, in the order of their start.
    async fn children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Vec<ChildView>, StoreError>;

    // Audit (run-machine.md §11).

    /// Appends an act that is no decision of a run (`run.enqueue-refused` and the like).
    async fn record_act(&self, draft: AuditDraft) -> Result<u64, StoreError>;

    /// Entries after a sequence, in order.
    async fn audit_after(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError>;

    /// The last sequence and hash of the chain; sequence 0 before the first.
    async fn audit_head(&self, tenant: &TenantId) -> Result<Head, StoreError>;

    /// Entries before a sequence, newest first.
    async fn audit_before(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
    ) -> Result<Vec<Value>, StoreError>;

    // The check of the chain (H3). What these give may have been damaged, and is given all the
    // same, as something that no hash can fit.

    /// The head and the sequence of the last entry, of one moment.
    async fn audit_tail(&self, tenant: &TenantId) -> Result<AuditTail, StoreError>;

    /// Entries after a sequence, up to another, in order: one value a row.
    async fn entries_as_stored(
        &self,
        tenant: &TenantId,
        after: u64,
        through: u64,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError>;

    /// The first entry about a run after a sequence.
    async fn entry_about(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        after: u64,
    ) -> Result<Option<Value>, StoreError>;

    /// The full events that each of some entries stands for, in order, as far as they are there
    /// and a run can have them.
    async fn events_as_stored(
        &self,
        tenant: &TenantId,
        covered: &[Covered],
    ) -> Result<Vec<Vec<Value>>, StoreError>;

    /// Runs that have events, by id, each with its last event's sequence, or how many it has
    /// if that is more.
    async fn last_events(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<(RunId, u64)>, StoreError>;

    // Retention (server.md §8).

    /// Tenants by id, after one.
    async fn tenants(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError>;

    /// Runs that had ended by a time, in the order of their ends, after one of them.
    async fn ended(
        &self,
        tenant: &TenantId,
        rule: Rule,
        until: Instant,
        after: Option<&(Instant, RunId)>,
        limit: u32,
    ) -> Result<Vec<Ended>, StoreError>;

    /// What a run still has that the rule is about.
    async fn retained(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
    ) -> Result<Vec<Retained>, StoreError>;

    /// Removes payloads that an event has named: values with their rows; of evidence the
    /// preview, so that it shows as expired. Without effect for those that are gone.
    async fn expire(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
        payloads: &[Retained],
    ) -> Result<(), StoreError>;

    /// Removes the encrypted outputs and messages of up to so many attempts of a run's
    /// children. `false`: there were none left.
    async fn expire_children(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        limit: usize,
    ) -> Result<bool, StoreError>;

    /// Gives up to so many free pages of the file back, where the database does not do that by
    /// itself. `false`: there is nothing more to give.
    async fn reclaim(&self, pages: u32) -> Result<bool, StoreError>;

    // Repair (server.md §2).

    /// Runs by id, after one: those that have a row, and those that have events.
    async fn run_ids(
        &self,
        tenant: &TenantId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>, StoreError>;

    /// The rows of a run that are not what its log projects, column by column.
    async fn differences(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<Vec<Difference>, StoreError>;

    /// Puts the rows that a log projects in the place of those that stand there, and takes the
    /// run back into work if it was parked. A preview that is gone cannot be had back.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the log goes on behind what was folded.
    async fn rebuild(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rebuilt: &Rebuilt,
    ) -> Result<(), StoreError>;

    // Identity (server.md §3). Secrets arrive as hashes.

    /// Creates a tenant with its owner account, if it is new; says whether it was.
    async fn ensure_tenant(&self, tenant: &TenantId, owner: &Account) -> Result<bool, StoreError>;

    /// The owner account of a tenant.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn owner(&self, tenant: &TenantId) -> Result<Account, StoreError>;

    /// Stores an API key.
    async fn create_api_key(&self, key: &ApiKey) -> Result<(), StoreError>;

    /// The key with this hash, unless it is revoked or expired; marks its use.
    async fn api_key(&self, secret: &Hash, now: Instant) -> Result<Option<KeyGrant>, StoreError>;

    /// Stores a single-use sign-in link.
    async fn create_sign_in_link(
        &self,
        tenant: &TenantId,
        account_id: &str,
        token: &Hash,
        expires_at: Instant,
    ) -> Result<(), StoreError>;

    /// Spends a link and opens the session in one transaction. `None`: the link is unknown,
    /// spent or expired, and no session was opened.
    async fn exchange_sign_in_link(
        &self,
        token: &Hash,
        session: &Session,
        now: Instant,
    ) -> Result<Option<(TenantId, Account)>, StoreError>;

    /// The open session with this hash; moves its idle end to `idle_until`.
    async fn session(
        &self,
        token: &Hash,
        now: Instant,
        idle_until: Instant,
    ) -> Result<Option<(TenantId, Account, Session)>, StoreError>;

    /// Ends a session.
    async fn end_session(&self, token: &Hash) -> Result<(), StoreError>;

    /// The ids of all keys with which stored payloads and children are encrypted
    /// (server.md §7).
    async fn payload_keys(&self) -> Result<Vec<String>, StoreError>;

    /// How many transactions this process has committed through its committer: what gathering
    /// saves shows in it.
    fn committed(&self) -> u64;

    /// Whether the database answers and its schema is the one this binary knows.
    async fn ready(&self) -> Result<(), StoreError>;
}

/// A workflow by the key that callers use.
#[must_use]
pub fn by_key(key: &str) -> WorkflowName {
    WorkflowName::Key(WorkflowKey::from(key))
}
