//! The server's settings: flags over environment over `sluicegate.toml` (server.md §1). A
//! wrong one names itself, its value and what is accepted.

mod remote;
mod sources;
mod storage;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sluicegate_core::time::Millis;

use crate::store::postgres::Address;

pub use remote::{Remote, RemoteArguments};
pub use sources::WrongSetting;
pub(crate) use sources::os_reason;
pub use storage::{Storage, StorageArguments};

use sources::Sources;

/// The flags of `serve` and `config`.
#[derive(Debug, Default, clap::Args)]
pub struct Arguments {
    /// Where to listen [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The data folder [default: ./sluicegate-data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<String>,
    /// A PostgreSQL database, shared with other processes, instead of the data folder's own
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The key file; processes on one database share it [default: keys in the data folder]
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// What this process does: all, api or worker [default: all]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// The built app [default: web beside the binary, or target/web]
    #[arg(long, value_name = "FOLDER")]
    web: Option<String>,
    /// Load the sample workflows and agents
    #[arg(long)]
    demo: bool,
    /// How many runs are worked on at once [default: 16]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    workers: Option<String>,
    /// What the events of runs call this process [default: a name of its own]
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// How long a worker's lease lasts [default: 30000]
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    lease_ms: Option<String>,
    /// How often a lease is renewed [default: 10000]
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    renew_ms: Option<String>,
    /// How long values and results of ended runs are kept [default: for ever]
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    retention_days: Option<String>,
    /// How long previews of them are kept [default: for ever]
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    preview_retention_days: Option<String>,
    /// What is logged: off, error, warn, info, debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// The settings file [default: sluicegate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The settings in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The data folder.
    pub data: PathBuf,
    /// The database that several processes share; none: the data folder's own.
    pub database: Option<Address>,
    /// The key file; none: the data folder's.
    pub key_file: Option<PathBuf>,
    /// What this process does.
    pub role: Role,
    /// The built app; none: where it usually is.
    pub web: Option<PathBuf>,
    /// Whether the samples are loaded.
    pub demo: bool,
    /// How many runs are worked on at once.
    pub workers: usize,
    /// What events call this process; none: a name of its own.
    pub worker_name: Option<String>,
    /// How long a lease lasts (W5).
    pub lease: Millis,
    /// How often it is renewed (W5).
    pub renew: Millis,
    /// How many days values and results of ended runs are kept; none: for ever.
    pub retention_days: Option<u64>,
    /// How many days previews of them are kept; none: for ever.
    pub preview_retention_days: Option<u64>,
    /// What is logged.
    pub log: tracing::level_filters::LevelFilter,
}

/// What a process does for the others on its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It answers and works.
    All,
    /// It answers and leaves the work to others.
    Api,
    /// It works and answers nobody.
    Worker,
}

impl Role {
    fn read(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "api" => Some(Self::Api),
            "worker" => Some(Self::Worker),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
        }
    }
}

impl Settings {
    /// The settings in force.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn resolve(
        arguments: &Arguments,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WrongSetting> {
        let sources = Sources::open(arguments.config.as_deref(), arguments.given(), environment)?;
        let settings = Self {
            listen: sources
                .read(
                    "listen",
                    "an address and port such as 127.0.0.1:7420",
                    |v| v.parse().ok(),
                )?
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7420))),
            data: sources.data()?,
            database: sources.database()?,
            key_file: sources.key_file()?,
            role: sources
                .read("role", "all, api or worker", Role::read)?
                .unwrap_or(Role::All),
            web: sources.read("web", "a folder", storage::path)?,
            demo: sources
                .read("demo", "true or false", |v| match v {
                    "true" | "1" => Some(true),
                    "false" | "0" => Some(false),
                    _ => None,
                })?
                .unwrap_or(false),
            workers: sources
                .read("workers", "a number from 1 to 1000", |v| {
                    within(v, 1, 1_000).and_then(|v| usize::try_from(v).ok())
                })?
                .unwrap_or(16),
            worker_name: sources.read("worker-name", "1 to 64 visible characters", |v| {
                let fits = (1..=64).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_graphic());
                fits.then(|| v.to_owned())
            })?,
            lease: sources
                .read("lease-ms", "milliseconds from 100 to 3600000", |v| {
                    within(v, 100, 3_600_000).map(Millis)
                })?
                .unwrap_or(Millis(30_000)),
            renew: sources
                .read("renew-ms", "milliseconds from 10 to 3600000", |v| {
                    within(v, 10, 3_600_000).map(Millis)
                })?
                .unwrap_or(Millis(10_000)),
            retention_days: sources.read("retention-days", DAYS, days)?,
            preview_retention_days: sources.read("preview-retention-days", DAYS, days)?,
            log: sources
                .read("log", "off, error, warn, info or debug", |v| match v {
                    "off" | "error" | "warn" | "info" | "debug" => v.parse().ok(),
                    _ => None,
                })?
                .unwrap_or(tracing::level_filters::LevelFilter::INFO),
        };
        if settings.database.is_none() && settings.role != Role::All {
            return Err(WrongSetting::Alone {
                role: settings.role.as_str(),
            });
        }
        if settings.renew >= settings.lease {
            let default = sources.given("renew-ms").is_none();
            let default = if default { " (its default)" } else { "" };
            return Err(WrongSetting::Lease {
                lease: settings.lease.0,
                renew: format!("{}{default}", settings.renew.0),
            });
        }
        Ok(settings)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |path: &Path| basic_string(&path.display().to_string());
        writeln!(f, "listen = \"{}\"", self.listen)?;
        writeln!(f, "data = {}", text(&self.data))?;
        if let Some(database) = &self.database {
            // Without its password, so it is a comment: what is printed reads back without a
            // wrong one.
            let note = if database.has_password() { "# " } else { "" };
            writeln!(
                f,
                "{note}database = {}",
                basic_string(&database.to_string())
            )?;
        }
        if let Some(key_file) = &self.key_file {
            writeln!(f, "key-file = {}", text(key_file))?;
        }
        writeln!(f, "role = \"{}\"", self.role.as_str())?;
        if let Some(web) = &self.web {
            writeln!(f, "web = {}", text(web))?;
        }
        writeln!(f, "demo = {}", self.demo)?;
        writeln!(f, "workers = {}", self.workers)?;
        if let Some(name) = &self.worker_name {
            writeln!(f, "worker-name = {}", basic_string(name))?;
        }
        writeln!(f, "lease-ms = {}", self.lease.0)?;
        writeln!(f, "renew-ms = {}", self.renew.0)?;
        if let Some(days) = self.retention_days {
            writeln!(f, "retention-days = {days}")?;
        }
        if let Some(days) = self.preview_retention_days {
            writeln!(f, "preview-retention-days = {days}")?;
        }
        write!(f, "log = \"{}\"", self.log)
    }
}

/// A basic string of TOML: a JSON string in which what steers a terminal is escaped too.
fn basic_string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if crate::cli::steers(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

impl Arguments {
    /// Where what these settings do not hold is read from.
    #[must_use]
    pub fn remote(&self) -> RemoteArguments {
        RemoteArguments {
            config: self.config.clone(),
            ..RemoteArguments::default()
        }
    }

    fn given(&self) -> Vec<(&'static str, String)> {
        let texts = [
            ("listen", &self.listen),
            ("data", &self.data),
            ("database", &self.database),
            ("key-file", &self.key_file),
            ("role", &self.role),
            ("web", &self.web),
            ("workers", &self.workers),
            ("worker-name", &self.worker_name),
            ("lease-ms", &self.lease_ms),
            ("renew-ms", &self.renew_ms),
            ("retention-days", &self.retention_days),
            ("preview-retention-days", &self.preview_retention_days),
            ("log", &self.log),
        ];
        let demo = self.demo.then(|| ("demo", "true".to_owned()));
        texts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .chain(demo)
            .collect()
    }
}

const DAYS: &str = "days from 0 (at once) to 36500";

fn days(value: &str) -> Option<u64> {
    within(value, 0, 36_500)
}

fn within(value: &str, least: u64, most: u64) -> Option<u64> {
    let number = value.parse().ok()?;
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn resolve(
        mut arguments: Arguments,
        environment: &[(&str, &str)],
        text: &str,
    ) -> Result<Settings, String> {
        let (_kept, path) = file(text);
        arguments.config = Some(path);
        let lookup = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::resolve(&arguments, &lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_stand_over_environment_over_file() {
        let text = "listen = \"127.0.0.1:1\"\nworkers = 3\nlease-ms = 20000\n";
        let environment = [
            ("SLUICEGATE_LISTEN", "127.0.0.1:2"),
            ("SLUICEGATE_LEASE_MS", "15000"),
        ];
        let arguments = Arguments {
            listen: Some("127.0.0.1:3".to_owned()),
            ..Arguments::default()
        };
        let settings = resolve(arguments, &environment, text).unwrap();
        assert_eq!(settings.listen.port(), 3);
        assert_eq!(settings.lease, Millis(15_000));
        assert_eq!(settings.workers, 3);
        assert_eq!(settings.renew, Millis(10_000));
    }

    #[test]
    fn a_wrong_setting_names_itself_its_value_and_what_is_accepted() {
        let flag = Arguments {
            listen: Some("7420".to_owned()),
            ..Arguments::default()
        };
        assert_eq!(
            resolve(flag, &[], "").unwrap_err(),
            "--listen: \"7420\" is not accepted; it takes an address and port such as 127.0.0.1:7420"
        );
        let environment = [("SLUICEGATE_WORKERS", "0")];
        assert_eq!(
            resolve(Arguments::default(), &environment, "").unwrap_err(),
            "SLUICEGATE_WORKERS: \"0\" is not accepted; it takes a number from 1 to 1000"
        );
        let wrong = resolve(Arguments::default(), &[], "demo = 7").unwrap_err();
        assert!(
            wrong.ends_with("settings.toml: demo: \"7\" is not accepted; it takes true or false"),
            "{wrong}"
        );
        let environment = [("SLUICEGATE_WORKER_NAME", "two words")];
        assert_eq!(
            resolve(Arguments::default(), &environment, "").unwrap_err(),
            "SLUICEGATE_WORKER_NAME: \"two words\" is not accepted; it takes 1 to 64 visible \
             characters"
        );
        let unknown = resolve(Arguments::default(), &[], "colour = 1").unwrap_err();
        assert!(
            unknown.contains("\"colour\" is no setting; there are listen"),
            "{unknown}"
        );
        let broken = resolve(Arguments::default(), &[], "\nlisten = [").unwrap_err();
        assert!(broken.contains("settings.toml: line 2"), "{broken}");
    }

    #[test]
    fn w5_a_lease_is_renewed_before_it_ends() {
        let wrong = resolve(Arguments::default(), &[], "lease-ms = 5000").unwrap_err();
        assert_eq!(
            wrong,
            "renew-ms 10000 (its default) is not less than lease-ms 5000: a lease is renewed \
             before it ends"
        );
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_settings() {
        let settings = resolve(
            Arguments::default(),
            &[("SLUICEGATE_RETENTION_DAYS", "0")],
            "web = \"a\\\\b\\\"c\"\npreview-retention-days = 30\nworker-name = \"a\\\"b\"",
        )
        .unwrap();
        assert_eq!(settings.retention_days, Some(0));
        let again = resolve(Arguments::default(), &[], &settings.to_string()).unwrap();
        assert_eq!(settings, again);
    }
}
