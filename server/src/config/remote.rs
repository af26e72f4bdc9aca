//! Which server a command speaks with, and by which key (server.md §2).

use std::fmt;
use std::path::PathBuf;

use super::basic_string;
use super::sources::{Sources, WrongSetting};

/// The flags of what speaks with a server.
#[derive(Debug, Default, clap::Args)]
pub struct RemoteArguments {
    /// The server's address, also SLUICEGATE_SERVER [default: http://127.0.0.1:7420]
    #[arg(long, value_name = "URL")]
    pub(super) server: Option<String>,
    /// The API key, also SLUICEGATE_API_KEY
    #[arg(long, value_name = "KEY")]
    pub(super) api_key: Option<String>,
    /// The settings file [default: sluicegate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// Which server is spoken with, and by which key.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The address without a slash at its end.
    pub server: String,
    /// The key, where one was given.
    pub api_key: Option<String>,
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
        let server = sources.read(
            "server",
            "an address such as http://127.0.0.1:7420, without a user name or password",
            address,
        );
        let api_key = sources.read_secret(
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
                    other => other.secret(),
                })?
                .unwrap_or_else(|| "http://127.0.0.1:7420".to_owned()),
            api_key: api_key?,
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
