//! Where settings come from, and how a wrong one is named (server.md §1).

use std::io::Read;
use std::path::{Path, PathBuf};

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
    /// Others would have to do the rest, and a data folder has one process.
    #[error("role {role}: this needs a --database, for a data folder has one process alone")]
    Alone {
        /// The role.
        role: &'static str,
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

impl WrongSetting {
    /// The same without the value, which may hold a secret.
    pub(super) fn secret(self) -> Self {
        match self {
            Self::Value { name, accepts, .. } => Self::Secret { name, accepts },
            other => other,
        }
    }
}

/// The names of all settings; a flag, a variable and a key of the file each.
const NAMES: [&str; 16] = [
    "listen",
    "data",
    "database",
    "key-file",
    "role",
    "web",
    "demo",
    "workers",
    "worker-name",
    "lease-ms",
    "renew-ms",
    "retention-days",
    "preview-retention-days",
    "log",
    "server",
    "api-key",
];

/// The longest settings file, in bytes.
const LONGEST_FILE: u64 = 1_048_576;

/// What a setting was given, and through what.
pub(super) struct Given {
    name: String,
    value: String,
}

/// Where settings come from.
pub(super) struct Sources<'a> {
    flags: Vec<(&'static str, String)>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: toml::Table,
    file_name: String,
}

impl<'a> Sources<'a> {
    /// Flags, environment and the settings file, whose keys are all known.
    pub(super) fn open(
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
    pub(super) fn given(&self, name: &str) -> Option<Given> {
        if let Some((_, value)) = self.flags.iter().find(|(flag, _)| *flag == name) {
            let (name, value) = (format!("--{name}"), value.clone());
            return Some(Given { name, value });
        }
        let variable = match name {
            "database" => "SLUICEGATE_DATABASE_URL".to_owned(),
            name => format!("SLUICEGATE_{}", name.to_uppercase().replace('-', "_")),
        };
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

    pub(super) fn read<T>(
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

    /// As [`Sources::read`], of a value that may hold a secret.
    pub(super) fn read_secret<T>(
        &self,
        name: &str,
        accepts: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, WrongSetting> {
        self.read(name, accepts, parse)
            .map_err(WrongSetting::secret)
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
