//! Definitions: rows, drafts, revisions and the requests that change them (api.md
//! "Definitions").
//!
//! Two numbers are never mixed: `draftVersion` counts saves and is what `expectedRevision`
//! means; `revision` counts publications.

use serde::{Deserialize, Serialize};

use super::present;
use crate::actor::Actor;
use crate::compile::Reference;
use crate::ids::{Hash, Permission, WorkflowKey};
use crate::time::Instant;
use crate::validate::Issue;
use crate::value::{JsonError, Object, Place, Value};

/// Whether a workflow can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowStatus {
    /// It was never published.
    Draft,
    /// It can.
    Published,
    /// Not any more.
    Archived,
}

/// A workflow in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRow {
    /// Its identity.
    pub workflow_id: String,
    /// What callers name it by.
    pub key: WorkflowKey,
    /// What people call it.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// Whether it can be run.
    pub status: WorkflowStatus,
    /// How often the draft was saved.
    pub draft_version: u64,
    /// The live revision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revision: Option<u64>,
    /// When the definition last changed.
    pub updated_at: Instant,
    /// Who changed it.
    pub updated_by: Actor,
}

/// A workflow with its draft and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDetail {
    /// As in the list.
    #[serde(flatten)]
    pub row: WorkflowRow,
    /// What is being edited.
    pub draft: Draft,
    /// What was published, the oldest first.
    pub revisions: Vec<Revision>,
    /// The graph of the revision that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub graph: Option<Value>,
}

/// What is being edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    /// How often it was saved.
    pub draft_version: u64,
    /// The document.
    pub graph: Value,
    /// Its semantic checksum (G1).
    pub checksum: Hash,
    /// When it was saved.
    pub saved_at: Instant,
    /// By whom.
    pub saved_by: Actor,
}

/// A published revision; it never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// From 1.
    pub revision: u64,
    /// The draft that was published.
    pub draft_version: u64,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// The compiler that made its plan.
    pub compiler_version: String,
    /// The plan's own hash.
    pub plan_hash: Hash,
    /// When it was published.
    pub published_at: Instant,
    /// By whom.
    pub published_by: Actor,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

/// The answer to a save.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The version that was made.
    pub draft_version: u64,
    /// The draft's semantic checksum.
    pub checksum: Hash,
    /// What is wrong with it; saved all the same.
    pub issues: Vec<Issue>,
}

/// The answer to a publication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The live revision.
    pub revision: u64,
    /// Its semantic checksum.
    pub checksum: Hash,
    /// Its plan's hash.
    pub plan_hash: Hash,
    /// What it pins, as in the dry-run report.
    pub references: Vec<Reference>,
    /// What a run needs to be allowed.
    pub required_permissions: Vec<Permission>,
}

/// `POST /api/workflows`
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateRequest {
    /// What callers will name it by.
    pub key: WorkflowKey,
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The first draft; none: an empty document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Value>,
}

/// `POST /api/workflows/update`
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRequest {
    /// Which.
    pub workflow_id: String,
    /// The draft version that was seen; none where `If-Match` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<u64>,
    /// The new draft; none: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Value>,
    /// The new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `POST /api/workflows/validate`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateRequest {
    /// The document.
    pub graph: Value,
    /// A sample input; `null` is one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "present"
    )]
    pub input: Option<Value>,
}

/// `POST /api/workflows/publish`
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishRequest {
    /// Which.
    pub workflow_id: String,
    /// The draft version that was seen; none where `If-Match` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<u64>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `POST /api/workflows/archive` and `/delete`
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRequest {
    /// Which.
    pub workflow_id: String,
    /// The draft version that was seen; none where `If-Match` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<u64>,
}

impl CreateRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            key: object.required("key")?.text()?.into(),
            name: object.required("name")?.text()?.to_owned(),
            description: text(&mut object, "description")?,
            graph: object.optional("graph").map(|p| p.value().clone()),
        };
        object.done()?;
        Ok(request)
    }
}

impl UpdateRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            workflow_id: object.required("workflowId")?.text()?.to_owned(),
            expected_revision: count(&mut object, "expectedRevision")?,
            graph: object.optional("graph").map(|p| p.value().clone()),
            name: text(&mut object, "name")?,
            description: text(&mut object, "description")?,
        };
        object.done()?;
        Ok(request)
    }
}

impl ValidateRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            graph: object.required("graph")?.value().clone(),
            input: object.optional("input").map(|p| p.value().clone()),
        };
        object.done()?;
        Ok(request)
    }
}

impl PublishRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            workflow_id: object.required("workflowId")?.text()?.to_owned(),
            expected_revision: count(&mut object, "expectedRevision")?,
            note: text(&mut object, "note")?,
        };
        object.done()?;
        Ok(request)
    }
}

impl ChangeRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal of J7 with the pointer.
    pub fn read(body: &Value) -> Result<Self, JsonError> {
        let mut object = Place::root(body).object()?;
        let request = Self {
            workflow_id: object.required("workflowId")?.text()?.to_owned(),
            expected_revision: count(&mut object, "expectedRevision")?,
        };
        object.done()?;
        Ok(request)
    }
}

/// An optional text.
pub(super) fn text(
    object: &mut Object<'_>,
    name: &'static str,
) -> Result<Option<String>, JsonError> {
    object
        .optional(name)
        .map(|place| place.text().map(str::to_owned))
        .transpose()
}

/// An optional integer from 0.
pub(super) fn count(object: &mut Object<'_>, name: &'static str) -> Result<Option<u64>, JsonError> {
    let Some(place) = object.optional(name) else {
        return Ok(None);
    };
    let integer = place.integer()?;
    u64::try_from(integer).map(Some).map_err(|_| {
        place.error(
            crate::code::Code::JsonWrongType,
            "an integer from 0 is needed here",
        )
    })
}
