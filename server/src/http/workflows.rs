//! Definitions: list, create, save, judge, publish (api.md "Definitions").

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sluicegate_core::api::{
    ChangeRequest, CreateRequest, Draft, Page, PublishRequest, Published, Revision, Saved,
    UpdateRequest, ValidateRequest, WorkflowDetail, WorkflowRow, WorkflowStatus,
};
use sluicegate_core::code::Code;
use sluicegate_core::compile;
use sluicegate_core::graph::Graph;
use sluicegate_core::ids::{Hash, TenantId, WorkflowKey, is_identifier};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::{COMPILER_VERSION, Plan};
use sluicegate_core::validate::{self, Issue};
use sluicegate_core::value::{self, JsonError, Value};

use super::App;
use super::body::{Expected, Json, Query, expected};
use super::refusal::Refusal;
use crate::auth::Context;
use crate::engine::crash::{self, CrashPoint};
use crate::store::{
    self, DraftChange, GraphText, NewWorkflow, Publication, RevisionRow, Save, WorkflowFilter,
    WorkflowName,
};
use crate::stream::Purpose;

/// A place in the list of workflows.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListCursor {
    tenant_id: TenantId,
    filter: Hash,
    after: WorkflowKey,
}

pub(super) async fn list(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let accepts = "draft, published or archived";
    let status = query.word::<store::WorkflowStatus>("status", accepts)?;
    let status = match status.as_slice() {
        [] => None,
        [status] => Some(*status),
        _ => return Err(Refusal::malformed("the parameter status stands once")),
    };
    let q = query.optional("q")?.map(str::to_owned);
    let limit = query.number("limit", 1, Page::<()>::MAX_LIMIT as u64)?;
    let limit = limit.unwrap_or(Page::<()>::DEFAULT_LIMIT as u64);
    let cursor = query.optional("cursor")?.map(str::to_owned);
    query.done()?;
    // A cursor goes on in the very list that made it.
    let filter_digest = value::hash(&serde_json::json!([status, q]));
    let after = match &cursor {
        None => None,
        Some(text) => {
            let place: ListCursor = app.cursors.read(Purpose::Workflows, text)?;
            if place.tenant_id != *context.tenant() {
                return Err(crate::stream::CursorError.into());
            }
            if place.filter != filter_digest {
                let code = Code::WorkflowCursorMismatch;
                return Err(Refusal::new(code, code.sentence()));
            }
            Some(place.after)
        }
    };
    let filter = WorkflowFilter {
        status,
        q,
        after,
        // One more than the page shows whether there is another.
        limit: u32::try_from(limit + 1).unwrap_or(u32::MAX),
    };
    let mut rows = app.store.workflows(context.tenant(), &filter).await?;
    let more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = rows.last().filter(|_| more).and_then(|last| {
        let place = ListCursor {
            tenant_id: context.tenant().clone(),
            filter: filter_digest,
            after: last.key.clone(),
        };
        app.cursors.make(Purpose::Workflows, &place)
    });
    let items = rows.into_iter().map(row).collect();
    Ok(Answer(Page { items, next_cursor }).into_response())
}

pub(super) async fn create(
    State(app): State<App>,
    context: Context,
    query: Query,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = CreateRequest::read(&body)?;
    if !is_identifier(request.key.as_str()) {
        return Err(Refusal::malformed(
            "a key is 1 to 128 characters: a-z, 0-9, - and _, in segments joined by .",
        )
        .pointer("/key"));
    }
    let description = request.description.unwrap_or_default();
    texts(Some(&request.name), Some(&description))?;
    let graph = match &request.graph {
        Some(document) => graph_in_body(document)?,
        None => Graph::default(),
    };
    let new = NewWorkflow {
        key: request.key,
        name: request.name,
        description,
        graph: text(&graph)?,
    };
    let made = app.store.create_workflow(context.by(), new).await?;
    let tag = etag(made.row.draft_version);
    let detail = Answer(detail_of(made, None));
    Ok((StatusCode::CREATED, [(ETAG, tag)], detail).into_response())
}

pub(super) async fn detail(
    State(app): State<App>,
    context: Context,
    mut query: Query,
) -> Result<Response, Refusal> {
    let id = query.optional("workflowId")?.map(str::to_owned);
    let key = query.optional("key")?.map(str::to_owned);
    let revision = query.number("revision", 1, Limits::COUNTER)?;
    query.done()?;
    let name = match (id, key) {
        (Some(id), None) => WorkflowName::Id(id),
        (None, Some(key)) => WorkflowName::Key(key.into()),
        _ => {
            return Err(Refusal::malformed(
                "name the workflow by workflowId or by key",
            ));
        }
    };
    let found = app.store.workflow(context.tenant(), &name).await?;
    let graph = match revision {
        None => None,
        Some(_) => {
            let published = app.store.revision(context.tenant(), &name, revision);
            Some(published.await?.graph)
        }
    };
    let tag = etag(found.row.draft_version);
    Ok(([(ETAG, tag)], Answer(detail_of(found, graph))).into_response())
}

pub(super) async fn update(
    State(app): State<App>,
    context: Context,
    query: Query,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = UpdateRequest::read(&body)?;
    let seen = expected(&headers, request.expected_revision)?;
    texts(request.name.as_deref(), request.description.as_deref())?;
    let graph = request.graph.as_ref().map(graph_in_body).transpose()?;
    let save = Save {
        workflow_id: request.workflow_id.clone(),
        expected: seen.version,
        change: DraftChange {
            graph: graph.as_ref().map(text).transpose()?,
            name: request.name,
            description: request.description,
        },
    };
    crash::at(CrashPoint::BeforeSave);
    let saved = app.store.save_draft(context.by(), save).await;
    let saved = saved.map_err(|error| conflict(error, seen))?;
    crash::at(CrashPoint::AfterSave);
    let graph = match graph {
        Some(graph) => graph,
        None => {
            let name = WorkflowName::Id(request.workflow_id);
            let kept = app.store.workflow(context.tenant(), &name).await?;
            stored_graph(&kept.draft.graph)?
        }
    };
    let mut catalogue = app.engine.catalogue(context.tenant()).await?;
    catalogue.permissions = Some(context.permissions().to_vec());
    let answer = Saved {
        draft_version: saved.draft_version,
        checksum: saved.checksum,
        issues: validate::check(&graph, Some(&catalogue), &Limits::default()),
    };
    let tag = etag(saved.draft_version);
    Ok(([(ETAG, tag)], Answer(answer)).into_response())
}

pub(super) async fn validate(
    State(app): State<App>,
    context: Context,
    query: Query,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = ValidateRequest::read(&body)?;
    let graph = graph_in_body(&request.graph)?;
    let catalogue = app.engine.catalogue(context.tenant()).await?;
    let report = compile::dry_run(
        &graph,
        request.input.as_ref(),
        Some(&catalogue),
        Some(context.permissions()),
        &Limits::default(),
    );
    Ok(Answer(report).into_response())
}

pub(super) async fn publish(
    State(app): State<App>,
    context: Context,
    query: Query,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = PublishRequest::read(&body)?;
    storable("note", request.note.as_deref())?;
    let seen = expected(&headers, request.expected_revision)?;
    let answer = publish_draft(&app, &context, request, seen).await?;
    Ok(Answer(answer).into_response())
}

/// Compiles a draft and publishes it, if it is still the one that was seen.
async fn publish_draft(
    app: &App,
    context: &Context,
    request: PublishRequest,
    seen: Expected,
) -> Result<Published, Refusal> {
    let name = WorkflowName::Id(request.workflow_id.clone());
    let found = app.store.workflow(context.tenant(), &name).await?;
    if found.draft.draft_version != seen.version {
        let draft_version = found.draft.draft_version;
        return Err(conflict(
            store::StoreError::DraftConflict { draft_version },
            seen,
        ));
    }
    let graph = stored_graph(&found.draft.graph)?;
    let catalogue = app.engine.catalogue(context.tenant()).await?;
    let limits = Limits::default();
    let report = compile::dry_run(
        &graph,
        None,
        Some(&catalogue),
        Some(context.permissions()),
        &limits,
    );
    if !report.valid {
        let code = family(&report.issues);
        return Err(Refusal::new(code, code.sentence()).issues(report.issues));
    }
    let compiled = compile::compile(&graph, Some(&catalogue), &limits);
    let plan = compiled.plan.map(Plan::load).transpose();
    let plan = plan
        .ok()
        .flatten()
        .ok_or_else(|| broken("a valid graph has no plan"))?;
    let publication = Publication {
        workflow_id: request.workflow_id,
        expected: seen.version,
        graph: text(&graph)?,
        plan: value::to_value(plan.document())?,
        plan_hash: plan.hash(),
        compiler_version: COMPILER_VERSION.to_owned(),
        note: request.note,
    };
    crash::at(CrashPoint::BeforePublish);
    let published = app.store.publish(context.by(), publication).await;
    let published = published.map_err(|error| conflict(error, seen))?;
    crash::at(CrashPoint::AfterPublish);
    Ok(Published {
        revision: published.revision,
        checksum: published.checksum,
        plan_hash: published.plan_hash,
        references: report.references,
        required_permissions: report.required_permissions,
    })
}

/// Creates a workflow of the samples and publishes it.
pub(crate) async fn publish_sample(
    app: &App,
    context: &Context,
    key: &str,
    name: &str,
    description: &str,
    document: Value,
) -> Result<(), String> {
    let told = |refusal: Refusal| refusal.0.detail;
    let graph = graph_in_body(&document).map_err(told)?;
    let new = NewWorkflow {
        key: key.into(),
        name: name.to_owned(),
        description: description.to_owned(),
        graph: text(&graph).map_err(told)?,
    };
    let made = app.store.create_workflow(context.by(), new).await;
    let made = made.map_err(|error| error.to_string())?.row;
    let seen = Expected {
        version: made.draft_version,
        by_header: false,
    };
    let request = PublishRequest {
        workflow_id: made.workflow_id,
        expected_revision: None,
        note: Some("sample".to_owned()),
    };
    publish_draft(app, context, request, seen)
        .await
        .map(drop)
        .map_err(told)
}

pub(super) async fn archive(
    State(app): State<App>,
    context: Context,
    query: Query,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = ChangeRequest::read(&body)?;
    let seen = expected(&headers, request.expected_revision)?;
    let done = app
        .store
        .archive(context.by(), &request.workflow_id, seen.version);
    done.await.map_err(|error| conflict(error, seen))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn delete(
    State(app): State<App>,
    context: Context,
    query: Query,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Response, Refusal> {
    query.done()?;
    let request = ChangeRequest::read(&body)?;
    let seen = expected(&headers, request.expected_revision)?;
    let by = context.by();
    let done = app
        .store
        .delete_workflow(by, &request.workflow_id, seen.version);
    done.await.map_err(|error| conflict(error, seen))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads the graph of a body; a refusal's pointer is into the body (J7).
pub(super) fn graph_in_body(document: &Value) -> Result<Graph, Refusal> {
    Graph::read(document).map_err(|error| {
        Refusal::from(JsonError {
            pointer: format!("/graph{}", error.pointer),
            ..error
        })
    })
}

/// A stored draft was read once, so it reads again.
fn stored_graph(document: &Value) -> Result<Graph, Refusal> {
    Graph::read(document).map_err(|error| broken(&format!("a stored draft: {error}")))
}

/// A graph in the forms that are stored; beyond the limit it is not stored at all.
pub(super) fn text(graph: &Graph) -> Result<GraphText, Refusal> {
    let canonical = value::canonical(&graph.to_value()?);
    let most = Limits::default().graph_bytes;
    if canonical.len() as u64 > most {
        let bytes = canonical.len();
        let detail = format!("the graph is {bytes} bytes of canonical JSON; at most {most} fit");
        return Err(Refusal::new(Code::WorkflowLimitExceeded, detail).pointer("/graph"));
    }
    Ok(GraphText {
        canonical,
        checksum: graph.checksum()?,
    })
}

/// The code of a publication that errors prevent (api.md): a family's own when all errors
/// are of that family.
fn family(issues: &[Issue]) -> Code {
    let errors: Vec<_> = issues.iter().filter(|issue| issue.is_error()).collect();
    let all = |codes: &[Code]| errors.iter().all(|issue| codes.contains(&issue.code));
    if all(&[Code::AgentRevisionMissing, Code::AgentInactive]) {
        Code::WorkflowAgentRevisionMissing
    } else if all(&[Code::ActionVersionMissing]) {
        Code::WorkflowActionVersionMissing
    } else if all(&[Code::PermissionDenied]) {
        Code::WorkflowPermissionDenied
    } else {
        Code::WorkflowGraphInvalid
    }
}

/// Bounds of a workflow's name and description (I3).
fn texts(name: Option<&str>, description: Option<&str>) -> Result<(), Refusal> {
    let bounds = [
        ("name", name, 1, Limits::LABEL_CHARS),
        ("description", description, 0, Limits::DESCRIPTION_CHARS),
    ];
    for (what, text, least, most) in bounds {
        let length = text.map(|text| text.chars().count());
        if length.is_some_and(|length| !(least..=most).contains(&length)) {
            let detail = format!("the {what} has {least} to {most} characters");
            return Err(Refusal::malformed(detail).pointer(format!("/{what}")));
        }
        storable(what, text)?;
    }
    Ok(())
}

/// A column of text keeps every character but one.
fn storable(what: &str, text: Option<&str>) -> Result<(), Refusal> {
    if text.is_none_or(|text| !text.contains('\0')) {
        return Ok(());
    }
    let detail = format!("the {what} holds the character U+0000");
    Err(Refusal::malformed(detail).pointer(format!("/{what}")))
}

fn conflict(error: store::StoreError, seen: Expected) -> Refusal {
    let refusal = Refusal::from(error);
    if seen.by_header {
        refusal.by_header()
    } else {
        refusal
    }
}

fn broken(what: &str) -> Refusal {
    tracing::error!(what, "the server contradicts itself");
    Refusal::new(Code::Internal, Code::Internal.sentence())
}

fn etag(draft_version: u64) -> String {
    format!("\"{draft_version}\"")
}

fn row(row: store::WorkflowRow) -> WorkflowRow {
    WorkflowRow {
        workflow_id: row.workflow_id,
        key: row.key,
        name: row.name,
        description: row.description,
        status: match row.status {
            store::WorkflowStatus::Draft => WorkflowStatus::Draft,
            store::WorkflowStatus::Published => WorkflowStatus::Published,
            store::WorkflowStatus::Archived => WorkflowStatus::Archived,
        },
        draft_version: row.draft_version,
        revision: row.revision,
        updated_at: row.updated_at,
        updated_by: row.updated_by,
    }
}

fn detail_of(detail: store::WorkflowDetail, graph: Option<Value>) -> WorkflowDetail {
    let store::WorkflowDetail {
        row: list_row,
        draft,
        mut revisions,
    } = detail;
    revisions.sort_by_key(|revision| revision.revision);
    WorkflowDetail {
        row: row(list_row),
        draft: Draft {
            draft_version: draft.draft_version,
            graph: draft.graph,
            checksum: draft.checksum,
            saved_at: draft.saved_at,
            saved_by: draft.saved_by,
        },
        revisions: revisions.into_iter().map(revision).collect(),
        graph,
    }
}

fn revision(row: RevisionRow) -> Revision {
    Revision {
        revision: row.revision,
        draft_version: row.draft_version,
        checksum: row.checksum,
        compiler_version: row.compiler_version,
        plan_hash: row.plan_hash,
        published_at: row.published_at,
        published_by: row.published_by,
        note: row.note,
    }
}
