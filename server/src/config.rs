//! The server's settings: flags over environment over `sluicegate.toml` (server.md §1). A
//! wrong one names itself, its value and what is accepted.

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sluicegate_core::time::Millis;

/// The flags of `serve` and `config`.
#[derive(Debug, Default, clap::Args)]
pub struct Arguments {
    /// Where to listen [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The data folder [default: ./sluicegate-data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<String>,
    /// The built app [default: web beside the binary, or target/web]
    #[arg(long, value_name = "FOLDER")]
    web: Option<String>,
    /// Load the sample workflows and agents
    #[arg(long)]
    demo: bool,
    /// How many runs are worked on at once [default: 16]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    workers: Option<String>,
    /// How long a worker's lease lasts [default: 30000]
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    lease_ms: Option<String>,
    /// How often a lease is renewed [default: 10000]
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    renew_ms: Option<String>,
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
    /// The built app; none: where it usually is.
    pub web: Option<PathBuf>,
    /// Whether the samples are loaded.
    pub demo: bool,
    /// How many runs are worked on at once.
    pub workers: usize,
    /// How long a lease lasts (W5).
    pub lease: Millis,
    /// How often it is renewed (W5).
    pub renew: Millis,
    /// What is logged.
    pub log: tracing::level_filters::LevelFilter,
}

/// The flags of what speaks with a server.
#[derive(Debug, Default, clap::Args)]
pub struct RemoteArguments {
    /// The server's address, also SLUICEGATE_SERVER [default: http://127.0.0.1:7420]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The API key, also SLUICEGATE_API_KEY
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// The settings file [default: sluicegate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Which server is spoken with, and by which key.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The address without a slash at its end.
    pub server: String,
    /// The key, where one was given.
    pub api_key: Option<String>,
}

/// Why a setting does not stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongSetting {
    /// A value is not accepted.
    #[error("{name}: {value:?} is not accepted; it takes {accepts}")]
    Value {
        /// The flag, variable or key.
        name: String,
        /// What it was given.
        value: String,
        /// What it takes.
        accepts: &'static str,
    },
    /// A value is not accepted and may hold a secret: it is not repeated.
    #[error("{name}: this value is not accepted (nothing was sent); it takes {accepts}")]
    Secret {
        /// The flag, variable or key.
        name: String,
        /// What it takes.
        accepts: &'static str,
    },
    /// A lease would end before it is renewed (W5).
    #[error(
        "renew-ms {renew} is not less than lease-ms {lease}: a lease is renewed before it ends"
    )]
    Lease {
        /// Its length in milliseconds.
        lease: u64,
        /// How often it is renewed, and whether that is the default.
        renew: String,
    },
    /// The settings file cannot be read.
    #[error("{file}: {reason}")]
    File {
        /// Which.
        file: String,
        /// Why.
        reason: String,
    },
}

/// The names of all settings; a flag, a variable and a key of the file each.
const NAMES: [&str; 10] = [
    "listen", "data", "web", "demo", "workers", "lease-ms", "renew-ms", "log", "server", "api-key",
];

/// The longest settings file, in bytes.
const LONGEST_FILE: u64 = 1_048_576;

/// What a setting was given, and through what.
struct Given {
    name: String,
    value: String,
}

/// Where settings come from.
struct Sources<'a> {
    flags: Vec<(&'static str, String)>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: toml::Table,
    file_name: String,
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
            data: sources
                .read("data", "a folder", folder)?
                .unwrap_or_else(|| PathBuf::from("sluicegate-data")),
            web: sources.read("web", "a folder", folder)?,
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
            log: sources
                .read("log", "off, error, warn, info or debug", |v| match v {
                    "off" | "error" | "warn" | "info" | "debug" => v.parse().ok(),
                    _ => None,
                })?
                .unwrap_or(tracing::level_filters::LevelFilter::INFO),
        };
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
        if let Some(web) = &self.web {
            writeln!(f, "web = {}", text(web))?;
        }
        writeln!(f, "demo = {}", self.demo)?;
        writeln!(f, "workers = {}", self.workers)?;
        writeln!(f, "lease-ms = {}", self.lease.0)?;
        writeln!(f, "renew-ms = {}", self.renew.0)?;
        write!(f, "log = \"{}\"", self.log)
    }
}

impl Remote {
    /// The server and the key in force.
    ///
    /// # Errors
    /// The first setting that is wrong; what may hold a secret is not repeated.
    pub fn resolve(
        arguments: &RemoteArguments,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WrongSetting> {
        let texts = [
            ("server", &arguments.server),
            ("api-key", &arguments.api_key),
        ];
        let flags = texts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        let sources = Sources::open(arguments.config.as_deref(), flags.collect(), environment)?;
        let secret = |wrong| match wrong {
            WrongSetting::Value { name, accepts, .. } => WrongSetting::Secret { name, accepts },
            other => other,
        };
        let server = sources.read(
            "server",
            "an address such as http://127.0.0.1:7420, without a user name or password",
            address,
        );
        let api_key = sources.read(
            "api-key",
            "a key such as sgk_…, without spaces or line breaks",
            |v| {
                let whole = !v.is_empty() && v.bytes().all(|b| b.is_ascii_graphic());
                whole.then(|| v.to_owned())
            },
        );
        Ok(Self {
            server: server
                .map_err(|wrong| match wrong {
                    // Where there is no @ there is no password.
                    WrongSetting::Value { ref value, .. } if !value.contains('@') => wrong,
                    other => secret(other),
                })?
                .unwrap_or_else(|| "http://127.0.0.1:7420".to_owned()),
            api_key: api_key.map_err(secret)?,
        })
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server = {}", basic_string(&self.server))?;
        match &self.api_key {
            // A comment, so that what is printed reads back without a wrong key.
            Some(_) => write!(f, "\n# api-key is set and not shown"),
            None => Ok(()),
        }
    }
}

/// An `http` address of a host without user, query or fragment.
fn address(value: &str) -> Option<String> {
    let uri: ureq::http::Uri = value.parse().ok()?;
    let authority = uri.authority()?;
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host)?;
    let well = uri.scheme_str() == Some("http")
        && !host.is_empty()
        && (port.is_empty() || authority.port_u16().is_some())
        && uri.query().is_none()
        && !value.contains('#');
    well.then(|| value.trim_end_matches('/').to_owned())
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
            ("web", &self.web),
            ("workers", &self.workers),
            ("lease-ms", &self.lease_ms),
            ("renew-ms", &self.renew_ms),
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

impl<'a> Sources<'a> {
    /// Flags, environment and the settings file, whose keys are all known.
    fn open(
        config: Option<&Path>,
        flags: Vec<(&'static str, String)>,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WrongSetting> {
        let variable = environment("SLUICEGATE_CONFIG").map(PathBuf::from);
        let (file_name, file) = read_file(config.or(variable.as_deref()))?;
        let sources = Self {
            flags,
            environment,
            file,
            file_name,
        };
        sources.known()?;
        Ok(sources)
    }

    /// The value in force and where it comes from.
    fn given(&self, name: &str) -> Option<Given> {
        if let Some((_, value)) = self.flags.iter().find(|(flag, _)| *flag == name) {
            let (name, value) = (format!("--{name}"), value.clone());
            return Some(Given { name, value });
        }
        let variable = format!("SLUICEGATE_{}", name.to_uppercase().replace('-', "_"));
        if let Some(value) = (self.environment)(&variable) {
            let name = variable;
            return Some(Given { name, value });
        }
        let value = match self.file.get(name)? {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(truth) => truth.to_string(),
            other => format!("a {}", other.type_str()),
        };
        let name = format!("{}: {name}", self.file_name);
        Some(Given { name, value })
    }

    fn read<T>(
        &self,
        name: &str,
        accepts: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, WrongSetting> {
        let Some(Given { name, value }) = self.given(name) else {
            return Ok(None);
        };
        match parse(&value) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(WrongSetting::Value {
                name,
                value,
                accepts,
            }),
        }
    }

    /// Refuses keys of the file that are no setting.
    fn known(&self) -> Result<(), WrongSetting> {
        match self.file.keys().find(|key| !NAMES.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(WrongSetting::File {
                file: self.file_name.clone(),
                reason: format!("{key:?} is no setting; there are {}", NAMES.join(", ")),
            }),
        }
    }
}

/// Reads the settings file; one that nobody named may be missing.
fn read_file(named: Option<&Path>) -> Result<(String, toml::Table), WrongSetting> {
    let path = named.unwrap_or(Path::new("sluicegate.toml"));
    let file = path.display().to_string();
    let text = match contents(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((file, toml::Table::new()));
        }
        Err(error) => {
            let reason = os_reason(&error);
            return Err(WrongSetting::File { file, reason });
        }
    };
    match text.parse() {
        Ok(table) => Ok((file, table)),
        Err(error) => {
            let error: toml::de::Error = error;
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| 1 + before.matches('\n').count());
            let reason = format!("line {line}: {}", error.message());
            Err(WrongSetting::File { file, reason })
        }
    }
}

/// The text of a settings file. A pipe or a device may never end, so it is not opened.
fn contents(path: &Path) -> std::io::Result<String> {
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(std::io::Error::other("this is not a regular file"));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_FILE {
        let reason = format!("this is longer than {LONGEST_FILE} bytes; no settings are");
        return Err(std::io::Error::other(reason));
    }
    Ok(text)
}

/// Why the system refused something, in words and without its number.
pub(crate) fn os_reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "this may not be read or written".to_owned(),
        ErrorKind::IsADirectory => "this is a folder; a file is needed".to_owned(),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a part of this path is a file where a folder is needed".to_owned()
        }
        ErrorKind::InvalidFilename => "this name is too long".to_owned(),
        ErrorKind::InvalidData => "this is not UTF-8".to_owned(),
        ErrorKind::StorageFull => "there is no space left".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "this file system can only be read".to_owned(),
        ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        ErrorKind::TimedOut => "it took too long".to_owned(),
        _ => {
            let said = error.to_string();
            said.split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned()
        }
    }
}

fn folder(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
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
        let settings = resolve(Arguments::default(), &[], "web = \"a\\\\b\\\"c\"").unwrap();
        let again = resolve(Arguments::default(), &[], &settings.to_string()).unwrap();
        assert_eq!(settings, again);
    }
}
