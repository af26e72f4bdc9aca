//! The key file (server.md §§1, 7): one key a line, the newest last, mode 0600. A key's id
//! is its fingerprint, so that a file with other keys shows as unknown ids.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use sluicegate_core::ids::Hash;

/// The keys of a server, oldest first; at least one.
#[derive(Clone)]
pub struct Keys {
    oldest: (String, [u8; 32]),
    later: Vec<(String, [u8; 32])>,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The file cannot be read or made.
    #[error("the key file {path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line is no key.
    #[error("the key file {path}, line {line}: a key is 64 hexadecimal digits")]
    Line {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// Others may read it.
    #[error("the key file {0} may be read by others; make its mode 0600")]
    Open(PathBuf),
    /// Stored payloads name keys that the file lacks.
    #[error("the key file {path} lacks the key {key_id}, with which stored payloads are encrypted")]
    Lacks {
        /// Which file.
        path: PathBuf,
        /// The missing key.
        key_id: String,
    },
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl Keys {
    /// Reads the file, or makes it with one new key.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn open(path: &Path) -> Result<Self, KeyFault> {
        let fault = |error| KeyFault::File {
            path: path.to_owned(),
            error,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => create(path).map_err(fault)?,
            Err(error) => return Err(fault(error)),
        };
        private(path)?;
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let key = key(line.trim()).ok_or_else(|| KeyFault::Line {
                path: path.to_owned(),
                line: index + 1,
            })?;
            keys.push((fingerprint(&key), key));
        }
        if keys.is_empty() {
            return Err(KeyFault::Line {
                path: path.to_owned(),
                line: 1,
            });
        }
        let later = keys.split_off(1);
        match keys.pop() {
            Some(oldest) => Ok(Self { oldest, later }),
            None => Err(KeyFault::Line {
                path: path.to_owned(),
                line: 1,
            }),
        }
    }

    /// Checks that every key that stored payloads name is here.
    ///
    /// # Errors
    /// [`KeyFault::Lacks`].
    pub fn cover(&self, path: &Path, named: &[String]) -> Result<(), KeyFault> {
        match named.iter().find(|id| self.find(id).is_none()) {
            None => Ok(()),
            Some(key_id) => Err(KeyFault::Lacks {
                path: path.to_owned(),
                key_id: key_id.clone(),
            }),
        }
    }

    /// A key for another purpose, such as signing cursors: the same as long as the oldest
    /// key is in the file.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let (_, key) = &self.oldest;
        match <Hmac<Sha256> as Mac>::new_from_slice(key) {
            Ok(mac) => mac
                .chain_update(b"sluicegate ")
                .chain_update(purpose.as_bytes())
                .finalize()
                .into_bytes()
                .into(),
            // HMAC takes keys of any length.
            Err(_) => *key,
        }
    }

    pub(super) fn newest(&self) -> (&str, &[u8; 32]) {
        let (id, key) = self.later.last().unwrap_or(&self.oldest);
        (id, key)
    }

    pub(super) fn find(&self, id: &str) -> Option<&[u8; 32]> {
        let all = std::iter::once(&self.oldest).chain(&self.later);
        all.into_iter()
            .find(|(found, _)| found == id)
            .map(|(_, key)| key)
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.oldest)
            .chain(&self.later)
            .map(|(id, _)| id.as_str())
    }
}

fn fingerprint(key: &[u8; 32]) -> String {
    let named = [b"sluicegate key ".as_slice(), key].concat();
    let hash = Hash::of(&named).to_string();
    hash.chars().skip("sha256:".len()).take(16).collect()
}

fn key(line: &str) -> Option<[u8; 32]> {
    // The same reading as a hash's: 64 lower-case hexadecimal digits.
    Hash::parse(&format!("sha256:{line}")).map(|hash| *hash.bytes())
}

fn create(path: &Path) -> std::io::Result<String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut line = String::with_capacity(65);
    for byte in key {
        line.push_str(&format!("{byte:02x}"));
    }
    line.push('\n');
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()?;
    Ok(line)
}

#[cfg(unix)]
fn private(path: &Path) -> Result<(), KeyFault> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_err(|error| KeyFault::File {
        path: path.to_owned(),
        error,
    })?;
    if mode.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(KeyFault::Open(path.to_owned()))
}

#[cfg(not(unix))]
fn private(_path: &Path) -> Result<(), KeyFault> {
    Ok(())
}
