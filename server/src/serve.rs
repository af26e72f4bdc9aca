//! A server from its start to its stop (server.md §1; run-machine.md W6, W7).

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ids::{Permission, TenantId};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::actions::Registry;
use crate::auth::{self, permission};
use crate::clock::Clock;
use crate::config::{Role, Settings, os_reason};
use crate::demo;
use crate::engine::{Engine, Parts};
use crate::http::{self, Server, Web};
use crate::modules::expenses::{self, Claims};
use crate::payload::Keys;
use crate::retention::Retention;
use crate::store::postgres::{Address, PostgresStore};
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

/// A server that has started.
pub struct Started {
    /// How it is reached; none: it works and answers nobody.
    pub reached: Option<Reached>,
    /// What a first start shows once.
    pub first: Option<auth::FirstStart>,
    http: Option<(TcpListener, axum::Router)>,
    close: watch::Sender<bool>,
    working: Option<(Workers, Retention)>,
    // Held until the end: no other process may open the folder before.
    _folder: Option<Folder>,
}

/// How a server is reached.
pub struct Reached {
    /// Where it listens.
    pub address: SocketAddr,
    /// A single-use link to sign in, as an address.
    pub sign_in: String,
    /// Whether the app was found.
    pub app_found: bool,
}

/// Opens the database and the port, and makes what a first start lacks.
///
/// # Errors
/// [`NoStart`]: nothing runs.
pub async fn start(settings: &Settings) -> Result<Started, NoStart> {
    let web =
        Web::find(settings.web.as_deref()).map_err(|reason| NoStart(format!("--web: {reason}")))?;
    let base = Base::open(settings).await?;
    let listener = match settings.role {
        Role::Worker => None,
        Role::All | Role::Api => Some(listen(settings).await?),
    };
    let mut actions = Registry::default();
    expenses::register(&mut actions, &base.claims).map_err(no_start)?;
    let owner_may = owner_may(&actions);
    let (close, closing) = watch::channel(false);
    let hub = Hub::default();
    let engine = Engine::new(Parts {
        store: base.store.clone(),
        clock: base.clock,
        keys: base.keys.clone(),
        hub: hub.clone(),
        actions,
    });
    if let Some(shared) = base.shared {
        let engine = Arc::clone(&engine);
        shared.listen(move |news| engine.hear(news));
    }
    let mut started = Started {
        reached: None,
        first: None,
        http: None,
        close,
        working: None,
        _folder: base.folder,
    };
    if let Some(listener) = listener {
        let (tenant, first) = auth::first_start(&*base.store, &owner_may)
            .await
            .map_err(no_start)?;
        let server = Arc::new(Server {
            store: base.store,
            engine: Arc::clone(&engine),
            clock: base.clock,
            hub,
            cursors: Cursors::new(base.keys.derive("cursors")),
            owner_may,
            closing,
        });
        if settings.demo {
            demo::load(&server, &tenant).await.map_err(NoStart)?;
        }
        let address = listener.local_addr().map_err(no_start)?;
        started.first = first;
        started.reached = Some(Reached {
            address,
            sign_in: sign_in(&server, &tenant, address).await.map_err(no_start)?,
            app_found: web.is_some(),
        });
        started.http = Some((listener, http::router(server, web)));
    }
    if settings.role != Role::Api {
        let rules = Rule::of_days(settings.retention_days, settings.preview_retention_days);
        let retention = Retention::new(Arc::clone(&engine), rules);
        let workers = Workers::start(engine, worker_settings(settings));
        started.working = Some((workers, retention));
    }
    Ok(started)
}

/// What is stored, and where.
struct Base {
    store: Arc<dyn Store>,
    claims: Arc<dyn Claims>,
    clock: Clock,
    keys: Keys,
    folder: Option<Folder>,
    /// The store again, where other processes have news of it.
    shared: Option<PostgresStore>,
}

impl Base {
    async fn open(settings: &Settings) -> Result<Self, NoStart> {
        let base = match &settings.database {
            None => Self::in_folder(settings).await?,
            Some(address) => Self::shared(settings, address).await?,
        };
        let named = base.store.payload_keys().await.map_err(no_start)?;
        base.keys
            .cover(&key_file(settings), &named)
            .map_err(no_start)?;
        Ok(base)
    }

    async fn in_folder(settings: &Settings) -> Result<Self, NoStart> {
        let folder =
            Folder::hold(&settings.data).map_err(|fault| NoStart(format!("--data: {fault}")))?;
        let keys = Keys::open(&key_file(settings)).map_err(no_start)?;
        let (file, clock) = (folder.database(), Clock::start());
        let store = SqliteStore::open(&file, clock)
            .await
            .map_err(|error| NoStart(format!("{}: {error}", file.display())))?;
        // The folder lock proves that whoever held a lease is dead (W6).
        store.void_leases().await.map_err(no_start)?;
        Ok(Self {
            claims: Arc::new(store.clone()),
            store: Arc::new(store),
            clock,
            keys,
            folder: Some(folder),
            shared: None,
        })
    }

    async fn shared(settings: &Settings, address: &Address) -> Result<Self, NoStart> {
        if settings.key_file.is_none() {
            Folder::make(&settings.data).map_err(|fault| NoStart(format!("--data: {fault}")))?;
        }
        let keys = Keys::open(&key_file(settings)).map_err(no_start)?;
        let fault = |error: StoreError| NoStart(format!("{address}: {error}"));
        let clock = address.clock().await.map_err(fault)?;
        let store = PostgresStore::open(address, clock).await.map_err(fault)?;
        Ok(Self {
            claims: Arc::new(store.clone()),
            store: Arc::new(store.clone()),
            clock,
            keys,
            folder: None,
            shared: Some(store),
        })
    }
}

fn key_file(settings: &Settings) -> PathBuf {
    let own = || settings.data.join("keys");
    settings.key_file.clone().unwrap_or_else(own)
}

async fn listen(settings: &Settings) -> Result<TcpListener, NoStart> {
    TcpListener::bind(settings.listen)
        .await
        .map_err(|error| NoStart(unbound(settings, &error)))
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

impl Started {
    /// Answers and works until `stop` completes, then drains and gives everything back.
    ///
    /// # Errors
    /// When the listening socket fails.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> std::io::Result<()> {
        let Self {
            http,
            close,
            working,
            _folder,
            ..
        } = self;
        let working = working.map(|(workers, retention)| {
            let sweeping = tokio::spawn(retention.run());
            (workers, sweeping)
        });
        let mut closing = close.subscribe();
        let serving = async move {
            let closing = async move {
                let _ = closing.wait_for(|closing| *closing).await;
            };
            match http {
                Some((listener, router)) => {
                    axum::serve(listener, router)
                        .with_graceful_shutdown(closing)
                        .await
                }
                None => {
                    closing.await;
                    Ok(())
                }
            }
        };
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            ended = &mut serving => return ended,
            () = stop => tracing::info!("stopping"),
        }
        // Streams end at once, so that an open one does not hold the process (B087); what is
        // held goes back while the last requests are answered (W7).
        close.send_replace(true);
        let handing_back = async {
            match working {
                Some((workers, sweeping)) => {
                    // A sweep may be left anywhere: the next one goes on.
                    sweeping.abort();
                    workers.stop(GRACE).await
                }
                None => true,
            }
        };
        let (handed_back, drained) =
            tokio::join!(handing_back, tokio::time::timeout(GRACE, serving));
        if !handed_back {
            tracing::warn!("some runs were not handed back in time; their leases will end");
        }
        drained.unwrap_or_else(|_| {
            tracing::warn!("some requests did not end in time");
            Ok(())
        })
    }
}

fn worker_settings(settings: &Settings) -> WorkerSettings {
    let name = settings.worker_name.clone();
    let name = name.unwrap_or_else(|| name_of_this_process(settings.database.is_some()));
    WorkerSettings {
        concurrency: settings.workers,
        lease: settings.lease,
        renew: settings.renew,
        ..WorkerSettings::named(name.into())
    }
}

fn name_of_this_process(shares: bool) -> String {
    let mut name = format!("sluicegate-{}", std::process::id());
    if shares {
        // Processes of several machines may have the same number.
        let chance = uuid::Uuid::new_v4().simple().to_string();
        name.push('-');
        name.extend(chance.chars().take(8));
    }
    name
}
