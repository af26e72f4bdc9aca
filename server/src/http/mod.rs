//! HTTP (server.md §4; api.md): all endpoints on one screen, each with its permission, and
//! what stands around them.

mod audit;
mod body;
mod catalogue;
mod health;
mod outer;
mod refusal;
mod runs;
mod session;
mod web;
mod workflows;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use axum::{Extension, Router};
use sluicegate_core::code::Code;
use sluicegate_core::ids::Permission;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

use crate::auth::{Context, permission as may};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::store::Store;
use crate::stream::{Cursors, Hub};
use body::{BodyLimit, LARGE, MEDIUM, SMALL};
use refusal::Refusal;

pub use web::Web;
pub(crate) use workflows::publish_sample;

/// What requests are answered from.
pub struct Server {
    /// Storage.
    pub store: Arc<dyn Store>,
    /// What starts, stops and simulates runs.
    pub engine: Arc<Engine>,
    /// The time.
    pub clock: Clock,
    /// Who says that a run moved.
    pub hub: Hub,
    /// Makes and verifies cursors.
    pub cursors: Cursors,
    /// What the owner may do.
    pub owner_may: Vec<Permission>,
    /// Turns true when the server stops.
    pub closing: watch::Receiver<bool>,
}

type App = Arc<Server>;

/// One endpoint and who may use it.
struct Endpoint {
    rule: Rule,
    route: MethodRouter<App>,
}

/// What is checked before an endpoint runs.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its path.
    pub path: &'static str,
    /// What one must be allowed; none: to be known is enough.
    pub permission: Option<&'static str>,
    limit: usize,
    /// Whether it is a POST.
    pub post: bool,
}

fn get<H, T>(
    path: &'static str,
    permission: impl Into<Option<&'static str>>,
    handler: H,
) -> Endpoint
where
    H: Handler<T, App>,
    T: 'static,
{
    Endpoint {
        rule: Rule {
            path,
            permission: permission.into(),
            limit: 0,
            post: false,
        },
        route: routing::get(handler),
    }
}

fn post<H, T>(
    path: &'static str,
    permission: impl Into<Option<&'static str>>,
    limit: usize,
    handler: H,
) -> Endpoint
where
    H: Handler<T, App>,
    T: 'static,
{
    Endpoint {
        rule: Rule {
            path,
            permission: permission.into(),
            limit,
            post: true,
        },
        route: routing::post(handler),
    }
}

fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/session", None, session::show),
        post("/api/session/end", None, SMALL, session::end),
        get("/api/workflows", may::DEFINITIONS_READ, workflows::list),
        post(
            "/api/workflows",
            may::DEFINITIONS_MANAGE,
            MEDIUM,
            workflows::create,
        ),
        get(
            "/api/workflows/detail",
            may::DEFINITIONS_READ,
            workflows::detail,
        ),
        post(
            "/api/workflows/update",
            may::DEFINITIONS_MANAGE,
            MEDIUM,
            workflows::update,
        ),
        post(
            "/api/workflows/validate",
            may::RUNS_EXECUTE,
            MEDIUM,
            workflows::validate,
        ),
        post(
            "/api/workflows/publish",
            may::DEFINITIONS_PUBLISH,
            SMALL,
            workflows::publish,
        ),
        post(
            "/api/workflows/archive",
            may::DEFINITIONS_MANAGE,
            SMALL,
            workflows::archive,
        ),
        post(
            "/api/workflows/delete",
            may::DEFINITIONS_MANAGE,
            SMALL,
            workflows::delete,
        ),
        get(
            "/api/workflow-catalog/agents",
            may::DEFINITIONS_READ,
            catalogue::agents,
        ),
        get(
            "/api/workflow-catalog/actions",
            may::DEFINITIONS_READ,
            catalogue::actions,
        ),
        post(
            "/api/workflow-runs",
            may::RUNS_EXECUTE,
            MEDIUM,
            runs::enqueue,
        ),
        post(
            "/api/workflow-runs/simulate",
            may::RUNS_EXECUTE,
            LARGE,
            runs::simulate,
        ),
        post(
            "/api/workflow-runs/cancel",
            may::RUNS_CANCEL,
            SMALL,
            runs::cancel,
        ),
        get("/api/workflow-runs", may::RUNS_READ, runs::list),
        get("/api/workflow-runs/result", may::RUNS_READ, runs::result),
        get("/api/workflow-runs/detail", may::RUNS_READ, runs::detail),
        get("/api/workflow-runs/events", may::RUNS_READ, runs::events),
        get("/api/workflow-audit", may::RUNS_READ, audit::list),
        get("/api/workflow-audit/verify", may::RUNS_READ, audit::verify),
    ]
}

/// The rules of all endpoints, for tests that go through each.
#[must_use]
pub fn rules() -> Vec<Rule> {
    endpoints()
        .into_iter()
        .map(|endpoint| endpoint.rule)
        .collect()
}

/// Everything that a server answers.
pub fn router(app: Arc<Server>, web: Option<Web>) -> Router {
    let mut router = Router::new();
    for Endpoint { rule, route } in endpoints() {
        let gate = from_fn_with_state((app.clone(), rule), admit);
        router = router.route(rule.path, route.route_layer(gate));
    }
    router
        .route("/sign-in", routing::get(session::sign_in))
        .route("/healthz", routing::get(health::alive))
        .route("/readyz", routing::get(health::ready))
        .fallback(web::page)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(Extension(web.map(Arc::new)))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(outer::outer))
        .with_state(app)
}

/// Lets a request through to its endpoint with the context that it may act in.
async fn admit(
    State((app, rule)): State<(App, Rule)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let context = Context::of_request(
        &*app.store,
        &app.owner_may,
        app.clock.now(),
        request.method(),
        request.headers(),
    )
    .await?;
    if let Some(permission) = rule
        .permission
        .filter(|permission| !context.may(permission))
    {
        let detail = format!("this needs the permission {permission}");
        return Err(Refusal::new(Code::WorkflowPermissionDenied, detail));
    }
    request.extensions_mut().insert(context);
    request.extensions_mut().insert(BodyLimit(rule.limit));
    Ok(next.run(request).await)
}

impl FromRequestParts<App> for Context {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        // An endpoint outside the table would find none, and answer nothing.
        let context = parts.extensions.get::<Self>().cloned();
        context.ok_or_else(|| Refusal::new(Code::Internal, Code::Internal.sentence()))
    }
}

async fn method_not_allowed(method: Method) -> Refusal {
    let detail = format!("this address does not take {method}");
    Refusal::new(Code::MethodNotAllowed, detail)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that the layer takes"
)]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it said nothing");
    tracing::error!(text, "a request panicked");
    Refusal::new(Code::Internal, Code::Internal.sentence()).into_response()
}
