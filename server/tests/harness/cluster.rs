//! A private PostgreSQL for one test binary, on loopback alone (architecture.md "Tests"). A
//! shell watches over it: when this process ends, however it ends, the shell's pipe closes,
//! and it stops the database and removes its folder.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use sqlx::{ConnectOptions, Connection, postgres::PgConnectOptions};

const PASSWORD: &str = "test-only";

/// Makes the database where there is none, and starts it. Then it reads one line: `immediate`
/// or `fast` stops the database and keeps the folder; an end without a line means that the
/// tests are gone.
const WATCH: &str = r#"
trap '' INT TERM HUP PIPE
[ -d "$2/data" ] || "$1/initdb" --no-sync --no-instructions --encoding=UTF8 --username=sluicegate \
    --auth=scram-sha-256 --pwfile="$2/password" --pgdata="$2/data" </dev/null >"$2/log" 2>&1
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w -t 60 -s -o "$3" start </dev/null && echo up || echo down
read -r how || how=
"$1/pg_ctl" -D "$2/data" -m "${how:-immediate}" -w -s stop </dev/null
[ -n "$how" ] || rm -rf "$2"
"#;

/// A running PostgreSQL of one's own.
pub(crate) struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    owner: Option<(u32, u32)>,
    port: u16,
    watcher: Mutex<Option<Child>>,
    made: AtomicU32,
}

impl Cluster {
    /// The one that the tests of this binary share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Self::begin)
    }

    /// Another one, to be stopped and started.
    pub(crate) fn begin() -> Self {
        let programs = programs().unwrap_or_else(|| {
            panic!("PostgreSQL is missing; install the Debian package `postgresql` (`make setup`)")
        });
        let folder = tempfile::Builder::new().prefix("sluicegate-pg-").tempdir();
        let folder = folder.unwrap().keep();
        let cluster = Self {
            owner: other_than_root(&folder),
            programs,
            port: free_port(),
            watcher: Mutex::new(None),
            made: AtomicU32::new(0),
            folder,
        };
        let password = cluster.folder.join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        std::fs::set_permissions(&password, PermissionsExt::from_mode(0o644)).unwrap();
        cluster.start();
        cluster
    }

    /// Starts it, after [`Cluster::stop`] on the same port and folder.
    pub(crate) fn start(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=on \
             -c max_connections=300 -c shared_buffers=32MB -c log_min_messages=fatal",
            self.port
        );
        let mut shell = Command::new("/bin/sh");
        if let Some((user, group)) = self.owner {
            shell.uid(user).gid(group);
        }
        let mut watcher = shell
            .args(["-c", WATCH, "watch"])
            .arg(&self.programs)
            .arg(&self.folder)
            .arg(options)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(watcher.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        if said != "up\n" {
            drop(watcher.stdin.take());
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            panic!("PostgreSQL did not start: {log}");
        }
        *self.watcher.lock().unwrap() = Some(watcher);
    }

    /// Stops it as a crash would, and keeps what is durable.
    pub(crate) fn stop(&self) {
        let mut watcher = self.watcher.lock().unwrap().take().unwrap();
        let mut pipe = watcher.stdin.take().unwrap();
        pipe.write_all(b"immediate\n").unwrap();
        drop(pipe);
        watcher.wait().unwrap();
    }

    /// The address of a database in it.
    pub(crate) fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// A new, empty database, by its address.
    pub(crate) async fn database(&self) -> String {
        let name = format!("t{}", self.made.fetch_add(1, Ordering::Relaxed));
        execute(&self.url("postgres"), &format!("create database {name}")).await;
        self.url(&name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.lock().unwrap().take() {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

/// The address of a database behind a port of this machine.
pub(crate) fn url(port: u16, database: &str) -> String {
    format!("postgres://sluicegate:{PASSWORD}@127.0.0.1:{port}/{database}")
}

/// Runs statements behind the store's back.
pub(crate) async fn execute(url: &str, sql: &str) {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Takes the triggers away that refuse changes.
pub(crate) async fn disarm(url: &str) {
    let every = "do $$ declare t record; begin
        for t in select tgname, tgrelid::regclass as owner from pg_trigger where not tgisinternal
        loop execute format('drop trigger %I on %s', t.tgname, t.owner); end loop; end $$";
    execute(url, every).await;
}

/// Where `initdb` and `pg_ctl` are: in the PATH, where `pg_config` says, or where Debian
/// puts them.
fn programs() -> Option<PathBuf> {
    let there = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("pg_ctl").exists();
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A link in the PATH is followed: the programs look for each other beside themselves.
    let in_path = std::env::split_paths(&path).filter_map(|folder| {
        Some(
            folder
                .join("initdb")
                .canonicalize()
                .ok()?
                .parent()?
                .to_owned(),
        )
    });
    let told = Command::new("pg_config").arg("--bindir").output().ok();
    let told = told.and_then(|told| String::from_utf8(told.stdout).ok());
    let told = told.map(|folder| PathBuf::from(folder.trim()));
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = debian.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    in_path.chain(told).chain(debian).find(there)
}

/// PostgreSQL refuses to run as root: then another user owns the folder.
fn other_than_root(folder: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata(folder).unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = ["postgres", "nobody"].iter().find_map(|name| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let (user, group) = user.unwrap_or_else(|| panic!("no user `postgres` or `nobody` here"));
    chown(folder, Some(user), Some(group)).unwrap();
    Some((user, group))
}

fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    socket.local_addr().unwrap().port()
}
