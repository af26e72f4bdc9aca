//! Where a server's data are, for the commands that work on them without it (server.md §2).

use std::path::PathBuf;

use super::folder;
use super::sources::{Sources, WrongSetting};

/// The flags of what works on a server's data.
#[derive(Debug, Default, clap::Args)]
pub struct StorageArguments {
    /// The data folder, also SLUICEGATE_DATA [default: ./sluicegate-data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<String>,
    /// The settings file [default: sluicegate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Where a server's data are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The data folder.
    pub data: PathBuf,
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
        let flags = arguments.data.clone().map(|data| ("data", data));
        let flags = flags.into_iter().collect();
        let sources = Sources::open(arguments.config.as_deref(), flags, environment)?;
        Ok(Self {
            data: sources
                .read("data", "a folder", folder)?
                .unwrap_or_else(|| PathBuf::from("sluicegate-data")),
        })
    }
}
