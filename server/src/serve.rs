//! A server from its start to its stop (server.md §1; run-machine.md W6, W7).

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::{Permission, TenantId};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::actions::{NotRegistered, Registry};
use crate::auth::{self, permission};
use crate::clock::Clock;
use crate::config::{Settings, os_reason};
use crate::demo;
use crate::engine::{Engine, Parts};
use crate::http::{self, Server, Web};
use crate::modules::expenses::{self, Claims};
use crate::payload::Keys;
use crate::retention::Retention;
use crate::store::sqlite::{Folder, SqliteStore};
use crate::store::{Rule, Store, StoreError};
use crate::stream::{Cursors, Hub};
use crate::worker::{WorkerSettings, Workers};

/// What open requests and held runs may still take once the server stops: less than the 20 s
/// of server.md §1.
const GRACE: Duration = Duration::from_secs(15);

/// Why a server does not start, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoStart(String);

/// A server that listens.
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// What a first start shows once.
    pub first: Option<auth::FirstStart>,
    /// A single-use link to sign in, as an address.
    pub sign_in: String,
    /// Whether the app was found.
    pub app_found: bool,
    listener: TcpListener,
    router: axum::Router,
    close: watch::Sender<bool>,
    workers: Workers,
    retention: Retention,
    // Held until the end: no other process may open the folder before.
    _folder: Folder,
}

/// Opens the data folder and the port, and makes what a first start lacks.
///
/// # Errors
/// [`NoStart`]: nothing runs.
pub async fn start(settings: &Settings) -> Result<Listening, NoStart> {
    let web =
        Web::find(settings.web.as_deref()).map_err(|reason| NoStart(format!("--web: {reason}")))?;
    let folder =
        Folder::hold(&settings.data).map_err(|fault| NoStart(format!("--data: {fault}")))?;
    let keys = Keys::open(&folder.keys()).map_err(no_start)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| NoStart(unbound(settings, &error)))?;
    let address = listener.local_addr().map_err(no_start)?;
    let clock = Clock::start();
    let store = SqliteStore::open(&folder.database(), clock)
        .await
        .map_err(|error| NoStart(format!("{}: {error}", folder.database().display())))?;
    let named = store.payload_keys().await.map_err(no_start)?;
    keys.cover(&folder.keys(), &named).map_err(no_start)?;
    let actions = actions(&store).map_err(no_start)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let owner_may = owner_may(&actions);
    let (tenant, first) = auth::first_start(&*store, &owner_may)
        .await
        .map_err(no_start)?;
    // The folder lock proves that whoever held a lease is dead (W6).
    store.void_leases().await.map_err(no_start)?;
    let (close, closing) = watch::channel(false);
    let hub = Hub::default();
    let cursors = Cursors::new(keys.derive("cursors"));
    let engine = Engine::new(Parts {
        store: store.clone(),
        clock,
        keys,
        hub: hub.clone(),
        actions,
    });
    let server = Arc::new(Server {
        store,
        engine,
        clock,
        hub,
        cursors,
        owner_may,
        closing,
    });
    if settings.demo {
        demo::load(&server, &tenant).await.map_err(NoStart)?;
    }
    let workers = Workers::start(server.engine.clone(), worker_settings(settings));
    let rules = Rule::of_days(settings.retention_days, settings.preview_retention_days);
    let retention = Retention::new(server.engine.clone(), rules);
    let sign_in = sign_in(&server, &tenant, address).await.map_err(no_start)?;
    Ok(Listening {
        address,
        first,
        sign_in,
        app_found: web.is_some(),
        listener,
        router: http::router(server, web),
        close,
        workers,
        retention,
        _folder: folder,
    })
}

/// The actions of this process.
fn actions(store: &SqliteStore) -> Result<Registry, NotRegistered> {
    let mut registry = Registry::default();
    let claims: Arc<dyn Claims> = Arc::new(store.clone());
    expenses::register(&mut registry, &claims)?;
    Ok(registry)
}

/// The owner may do everything: what the server asks for, and what registered actions do.
fn owner_may(actions: &Registry) -> Vec<Permission> {
    let own = permission::ALL.map(str::to_owned).into_iter();
    let asked = actions.descriptors();
    let mut all: Vec<_> = asked
        .into_iter()
        .flat_map(|action| action.required_permissions)
        .chain(own)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A link that a person follows once.
async fn sign_in(
    server: &Server,
    tenant: &TenantId,
    address: SocketAddr,
) -> Result<String, StoreError> {
    let now = server.clock.now();
    let path = auth::sign_in_link(&*server.store, tenant, now).await?;
    Ok(format!("http://{address}{path}"))
}

fn unbound(settings: &Settings, error: &std::io::Error) -> String {
    let listen = settings.listen;
    match error.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "the port of {listen} is in use; stop what listens there or choose another with \
             --listen"
        ),
        _ => format!("{listen} cannot be listened on: {}", os_reason(error)),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn no_start(error: impl ToString) -> NoStart {
    NoStart(error.to_string())
}

impl Listening {
    /// Answers until `stop` completes, then drains and gives everything back.
    ///
    /// # Errors
    /// When the listening socket fails.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> std::io::Result<()> {
        let Self {
            listener,
            router,
            close,
            workers,
            retention,
            _folder,
            ..
        } = self;
        let sweeping = tokio::spawn(retention.run());
        let mut closing = close.subscribe();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            let _ = closing.wait_for(|closing| *closing).await;
        });
        let mut serving = std::pin::pin!(serving.into_future());
        tokio::select! {
            ended = &mut serving => return ended,
            () = stop => tracing::info!("stopping"),
        }
        // A sweep may be left anywhere: the next one goes on.
        sweeping.abort();
        // Streams end at once, so that an open one does not hold the process (B087); what is
        // held goes back while the last requests are answered (W7).
        close.send_replace(true);
        let (handed_back, drained) =
            tokio::join!(workers.stop(GRACE), tokio::time::timeout(GRACE, serving),);
        if !handed_back {
            tracing::warn!("some runs were not handed back in time; their leases will be void");
        }
        drained.unwrap_or_else(|_| {
            tracing::warn!("some requests did not end in time");
            Ok(())
        })
    }
}

fn worker_settings(settings: &Settings) -> WorkerSettings {
    let name = format!("sluicegate-{}", std::process::id());
    WorkerSettings {
        concurrency: settings.workers,
        lease: settings.lease,
        renew: settings.renew,
        ..WorkerSettings::named(name.into())
    }
}
