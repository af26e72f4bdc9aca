//! Where a server's data are, for the commands that work on them without it (server.md §2).

use std::path::PathBuf;

use crate::store::postgres::Address;

use super::sources::{Sources, WrongSetting};

/// The flags of what works on a server's data.
#[derive(Debug, Default, clap::Args)]
pub struct StorageArguments {
    /// The data folder, also SLUICEGATE_DATA [default: ./sluicegate-data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<String>,
    /// A PostgreSQL database instead of the data folder's own, also SLUICEGATE_DATABASE_URL
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The key file [default: keys in the data folder]
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// The settings file [default: sluicegate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Where a server's data are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The data folder.
    pub data: PathBuf,
    /// The database that several processes share; none: the data folder's own.
    pub database: Option<Address>,
    /// The key file.
    pub key_file: PathBuf,
}

impl Storage {
    /// The settings in force.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn resolve(
        arguments: &StorageArguments,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WrongSetting> {
        let texts = [
            ("data", &arguments.data),
            ("database", &arguments.database),
            ("key-file", &arguments.key_file),
        ];
        let flags = texts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        let sources = Sources::open(arguments.config.as_deref(), flags.collect(), environment)?;
        let data = sources.data()?;
        Ok(Self {
            database: sources.database()?,
            key_file: sources.key_file()?.unwrap_or_else(|| data.join("keys")),
            data,
        })
    }
}

impl Sources<'_> {
    pub(super) fn data(&self) -> Result<PathBuf, WrongSetting> {
        let data = self.read("data", "a folder", path)?;
        Ok(data.unwrap_or_else(|| PathBuf::from("sluicegate-data")))
    }

    pub(super) fn database(&self) -> Result<Option<Address>, WrongSetting> {
        self.read_secret(
            "database",
            "an address such as postgres://user:password@127.0.0.1:5432/sluicegate",
            |v| v.parse().ok(),
        )
    }

    pub(super) fn key_file(&self) -> Result<Option<PathBuf>, WrongSetting> {
        self.read("key-file", "a file", path)
    }
}

pub(super) fn path(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
}
