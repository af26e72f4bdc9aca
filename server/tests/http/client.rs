//! A server in this process and a client that speaks to it over TCP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use serde_json::Value;
use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_server::clock::Clock;
use sluicegate_server::config::{Arguments, Settings};
use sluicegate_server::serve;
use sluicegate_server::store::postgres::PostgresStore;
use sluicegate_server::store::sqlite::SqliteStore;
use sluicegate_server::store::{Account, ApiKey, Store};
use tokio::sync::oneshot;

/// A server that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) sign_in: String,
    pub(crate) folder: tempfile::TempDir,
    /// The PostgreSQL database; none: SQLite in the folder.
    database: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What a request was answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The answer's body, if it has this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The problem, if it is one with this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["requestId"], self.header("x-request-id"));
        assert!(problem["type"].as_str().unwrap().ends_with(code));
        for member in ["title", "detail"] {
            assert!(!problem[member].as_str().unwrap().is_empty(), "{problem}");
        }
        problem
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map(|value| value.to_str().unwrap()).unwrap_or("")
    }
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| None)
    }

    /// Starts with an app in the folder that `web` makes.
    pub(crate) fn start_with(web: impl FnOnce(&Path) -> Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let web = web(folder.path());
        Self::open(folder, crate::database(), web, None)
    }

    /// Stops it, and starts another one on the same data.
    pub(crate) fn restart(mut self) -> Self {
        self.stop();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        let key = std::mem::take(&mut self.key);
        let database = self.database.take();
        Self::open(folder, database, None, Some(key))
    }

    fn open(
        folder: tempfile::TempDir,
        database: Option<String>,
        web: Option<PathBuf>,
        key: Option<String>,
    ) -> Self {
        let web = web.map(|web| web.to_str().unwrap().to_owned());
        let data = folder.path().join("data");
        let text = data.to_str().unwrap().to_owned();
        let url = database.clone();
        let environment = move |name: &str| match name {
            "SLUICEGATE_DATABASE_URL" => url.clone(),
            "SLUICEGATE_LISTEN" => Some("127.0.0.1:0".to_owned()),
            "SLUICEGATE_DATA" => Some(text.clone()),
            "SLUICEGATE_DEMO" => Some("true".to_owned()),
            "SLUICEGATE_WEB" => web.clone(),
            _ => None,
        };
        let settings = Settings::resolve(&Arguments::default(), &environment).unwrap();
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let started = serve::start(&settings).await.unwrap();
                let first = started.first.as_ref().map(|first| first.api_key.clone());
                let reached = started.reached.as_ref().unwrap();
                let sign_in = reached.sign_in.clone();
                tell.send((reached.address, first, sign_in)).unwrap();
                let stop = async {
                    let _ = stopped.await;
                };
                started.run(stop).await.unwrap();
            });
        });
        let (address, first, sign_in) = told.recv().unwrap();
        Self {
            address,
            key: first.or(key).unwrap(),
            sign_in,
            folder,
            database,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// A second look at the server's own database.
    pub(crate) fn store(&self) -> (tokio::runtime::Runtime, Arc<dyn Store>) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let file = self.folder.path().join("data/sluicegate.sqlite");
        let store: Arc<dyn Store> = runtime.block_on(async {
            match &self.database {
                None => Arc::new(SqliteStore::open(&file, Clock::start()).await.unwrap()),
                Some(url) => {
                    let address = url.parse().unwrap();
                    Arc::new(PostgresStore::open(&address, Clock::start()).await.unwrap())
                        as Arc<dyn Store>
                }
            }
        });
        (runtime, store)
    }

    /// Another key with these permissions, for the tenant of that name.
    pub(crate) fn key_with(&self, tenant: &str, permissions: &[&str]) -> String {
        let (runtime, store) = self.store();
        let secret = format!("sgk_{tenant}-{}", permissions.join("-"));
        let tenant = TenantId::from(tenant);
        runtime.block_on(async {
            let account = Account {
                account_id: format!("owner of {tenant}"),
                display_name: "Owner".to_owned(),
                email: None,
                role: "owner".to_owned(),
            };
            store.ensure_tenant(&tenant, &account).await.unwrap();
            let owner = store.owner(&tenant).await.unwrap();
            let key = ApiKey {
                tenant,
                key_id: secret.clone(),
                label: "test".to_owned(),
                secret: Hash::of(secret.as_bytes()),
                permissions: permissions.iter().map(|p| (*p).to_owned()).collect(),
                created_by: owner.account_id,
                expires_at: None,
            };
            store.create_api_key(&key).await.unwrap();
        });
        secret
    }

    /// Sends a request as it is, without following anything.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .allow_non_standard_methods(true)
            .build();
        let agent = ureq::Agent::from(config);
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Some(body) => agent.run(request.body(body.to_owned()).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        };
        let mut response = sent.unwrap();
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.body_mut().read_to_string().unwrap(),
        }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    /// GET with the first key.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("authorization", &self.bearer())], None)
    }

    /// POST with the first key.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[], &body.to_string())
    }

    /// POST with the first key and more headers.
    pub(crate) fn post_with(&self, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let bearer = self.bearer();
        let mut headers = vec![
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        headers.extend(more);
        self.send("POST", path, &headers, Some(body))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
