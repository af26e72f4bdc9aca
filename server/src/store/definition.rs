//! Workflows, drafts, published revisions and agents as the store keeps them (api.md
//! "Definitions"; server.md §6; seed A "Persistence outline").

use serde::{Deserialize, Serialize};
use sluicegate_core::actor::{Actor, Origin};
use sluicegate_core::audit::{Draft, Subject};
use sluicegate_core::catalogue::AgentStatus;
use sluicegate_core::ids::{Hash, TenantId, WorkflowKey};
use sluicegate_core::time::Instant;
use sluicegate_core::value::{Map, Value};

use super::StoreError;
use super::column::Columns;
use super::row::word;

pub use crate::agents::AgentDefinition;

/// Who does something, for which tenant, through what. Only a trusted context makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct By {
    /// The tenant.
    pub tenant: TenantId,
    /// Who.
    pub actor: Actor,
    /// Through what.
    pub origin: Origin,
}

/// A graph in the forms that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphText {
    /// Canonical JSON of the whole document, layout included.
    pub canonical: String,
    /// The semantic checksum (G1).
    pub checksum: Hash,
}

/// A workflow to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorkflow {
    /// Its key.
    pub key: WorkflowKey,
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// The first draft.
    pub graph: GraphText,
}

/// A save of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// The workflow.
    pub workflow_id: String,
    /// The draft version that the writer saw.
    pub expected: u64,
    /// What changes.
    pub change: DraftChange,
}

/// What a save changes; absent members stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftChange {
    /// The graph.
    pub graph: Option<GraphText>,
    /// The name.
    pub name: Option<String>,
    /// The description.
    pub description: Option<String>,
}

/// A draft after a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftSaved {
    /// The new version.
    pub draft_version: u64,
    /// The draft's semantic checksum.
    pub checksum: Hash,
}

/// A compiled draft to publish.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// The workflow.
    pub workflow_id: String,
    /// The draft version that was compiled.
    pub expected: u64,
    /// The draft that was compiled.
    pub graph: GraphText,
    /// The plan's stored document.
    pub plan: Value,
    /// The plan's own hash.
    pub plan_hash: Hash,
    /// The compiler.
    pub compiler_version: String,
    /// For people.
    pub note: Option<String>,
}

/// A revision after publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The live revision.
    pub revision: u64,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// Its plan's hash.
    pub plan_hash: Hash,
    /// Whether this call made it.
    pub created: bool,
}

/// How a workflow is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowName {
    /// By its id.
    Id(String),
    /// By its key.
    Key(WorkflowKey),
}

/// A workflow's lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowStatus {
    /// Never published.
    Draft,
    /// It has a live revision.
    Published,
    /// No new run starts.
    Archived,
}

/// Which workflows to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkflowFilter {
    /// Only these.
    pub status: Option<WorkflowStatus>,
    /// Key or name holds this text, whatever its case.
    pub q: Option<String>,
    /// The key after which the page begins.
    pub after: Option<WorkflowKey>,
    /// At most this many.
    pub limit: u32,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRow {
    /// Its id.
    pub workflow_id: String,
    /// Its key.
    pub key: WorkflowKey,
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Its lifecycle.
    pub status: WorkflowStatus,
    /// Counts saves.
    pub draft_version: u64,
    /// The live revision.
    pub revision: Option<u64>,
    /// When it last changed.
    pub updated_at: Instant,
    /// Who changed it.
    pub updated_by: Actor,
}

/// A draft with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftText {
    /// Counts saves.
    pub draft_version: u64,
    /// The document.
    pub graph: Value,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// When it was saved.
    pub saved_at: Instant,
    /// By whom.
    pub saved_by: Actor,
}

/// A published revision in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionRow {
    /// From 1.
    pub revision: u64,
    /// The draft version that it was published from.
    pub draft_version: u64,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// The compiler.
    pub compiler_version: String,
    /// Its plan's hash.
    pub plan_hash: Hash,
    /// When.
    pub published_at: Instant,
    /// By whom.
    pub published_by: Actor,
    /// For people.
    pub note: Option<String>,
}

/// A workflow with its draft and revisions, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowDetail {
    /// The list row.
    pub row: WorkflowRow,
    /// The draft.
    pub draft: DraftText,
    /// The revisions.
    pub revisions: Vec<RevisionRow>,
}

/// The revision that new runs take, without its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRevision {
    /// The workflow.
    pub workflow_id: String,
    /// The revision.
    pub revision: u64,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// Its plan's hash.
    pub plan_hash: Hash,
    /// Whether the workflow takes no new runs.
    pub archived: bool,
}

/// A published revision whole.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRevision {
    /// The workflow.
    pub workflow_id: String,
    /// Its key.
    pub key: WorkflowKey,
    /// The revision.
    pub row: RevisionRow,
    /// Whether the workflow takes no new runs.
    pub archived: bool,
    /// The document.
    pub graph: Value,
    /// The plan's stored document.
    pub plan: Value,
}

/// One immutable revision of an agent, with the agent's present status.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRevision {
    /// From 1.
    pub revision: u64,
    /// The agent's status, not the revision's.
    pub status: AgentStatus,
    /// What was fixed.
    pub definition: AgentDefinition,
    /// When it was stored.
    pub created_at: Instant,
}

/// The audit entry of an act on a workflow.
pub(super) fn act(
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

/// What such an entry says.
pub(super) fn details<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// A status as its column has it.
pub(super) fn status_word(status: WorkflowStatus) -> &'static str {
    match status {
        WorkflowStatus::Draft => "draft",
        WorkflowStatus::Published => "published",
        WorkflowStatus::Archived => "archived",
    }
}

/// A workflow's row.
pub(super) fn workflow_row(row: &impl Columns) -> Result<WorkflowRow, StoreError> {
    Ok(WorkflowRow {
        workflow_id: row.text("workflow_id")?,
        key: WorkflowKey::from(row.text("key")?),
        name: row.text("name")?,
        description: row.text("description")?,
        status: word(row.text("status")?)?,
        draft_version: row.number("draft_version")?,
        revision: row.maybe_number("revision")?,
        updated_at: row.instant("updated_at")?,
        updated_by: row.json("updated_by")?,
    })
}

/// A revision's row, without its documents.
pub(super) fn revision_row(row: &impl Columns) -> Result<RevisionRow, StoreError> {
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

/// An agent's revision, from a row with the agent's status.
pub(super) fn agent_revision(row: &impl Columns) -> Result<AgentRevision, StoreError> {
    Ok(AgentRevision {
        revision: row.number("revision")?,
        status: word(row.text("status")?)?,
        definition: row.json("definition")?,
        created_at: row.instant("created_at")?,
    })
}
