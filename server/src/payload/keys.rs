//! The key file (server.md §§1, 7): one key a line, the newest last, mode 0600. A key's id
//! is its fingerprint, so that a file with other keys shows as unknown ids.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use sluicegate_core::ids::Hash;

/// The keys of a server. Clones share what is read anew.
#[derive(Clone)]
pub struct Keys {
    path: PathBuf,
    ring: Arc<RwLock<Ring>>,
}

/// The keys of a file, oldest first; at least one.
struct Ring {
    oldest: Key,
    later: Vec<Key>,
}

/// A key and its id.
type Key = (String, [u8; 32]);

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The file cannot be read or made.
    #[error("the key file {path}: {reason}", reason = crate::config::os_reason(error))]
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
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let ids = ring.all().map(|(id, _)| id);
        f.debug_list().entries(ids).finish()
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
        match fs::metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                begin(path, &fresh().map_err(fault)?).map_err(fault)?;
            }
            Err(error) => return Err(fault(error)),
        }
        Ok(Self {
            path: path.to_owned(),
            ring: Arc::new(RwLock::new(Ring::read(path)?)),
        })
    }

    /// Puts a new key at the end of an existing file and gives its id. The file is replaced as a
    /// whole, so that no crash leaves half a key.
    ///
    /// # Errors
    /// [`KeyFault`]; the file is as it was.
    pub fn rotate(path: &Path) -> Result<String, KeyFault> {
        let fault = |error| KeyFault::File {
            path: path.to_owned(),
            error,
        };
        Ring::read(path)?;
        let mut text = fs::read_to_string(path).map_err(fault)?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&fresh().map_err(fault)?);
        let mut next = path.as_os_str().to_owned();
        next.push(".next");
        let next = PathBuf::from(next);
        let replaced = match fs::remove_file(&next) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => write(&next, &text)
                .and_then(|()| fs::rename(&next, path))
                .and_then(|()| keep_name(path)),
        };
        replaced.map_err(fault)?;
        let ring = Ring::read(path)?;
        Ok(ring.newest().0.clone())
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
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let (_, key) = &ring.oldest;
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

    pub(super) fn newest(&self) -> Key {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        ring.newest().clone()
    }

    /// A key by its id. Another process may have begun to use one that was put into the file
    /// since it was read here, so an unknown id is looked for there once more.
    pub(super) fn find(&self, id: &str) -> Option<[u8; 32]> {
        let known = |keys: &Self| {
            let ring = keys.ring.read().unwrap_or_else(PoisonError::into_inner);
            ring.all()
                .find(|(found, _)| found == id)
                .map(|(_, key)| *key)
        };
        known(self).or_else(|| {
            let read = Ring::read(&self.path).ok()?;
            *self.ring.write().unwrap_or_else(PoisonError::into_inner) = read;
            known(self)
        })
    }
}

impl Ring {
    fn read(path: &Path) -> Result<Self, KeyFault> {
        let text = fs::read_to_string(path).map_err(|error| KeyFault::File {
            path: path.to_owned(),
            error,
        })?;
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
        let mut keys = keys.into_iter();
        let oldest = keys.next().ok_or_else(|| KeyFault::Line {
            path: path.to_owned(),
            line: 1,
        })?;
        Ok(Self {
            oldest,
            later: keys.collect(),
        })
    }

    fn newest(&self) -> &Key {
        self.later.last().unwrap_or(&self.oldest)
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.oldest).chain(&self.later)
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

/// A line with a new key.
fn fresh() -> std::io::Result<String> {
    let mut line = hex(&random::<32>()?);
    line.push('\n');
    Ok(line)
}

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the first key file, whole or not at all: of several processes that share it and start
/// at the same moment, all read the one that was first.
fn begin(path: &Path, text: &str) -> std::io::Result<()> {
    let mut own = path.as_os_str().to_owned();
    // By chance, not by process: a container's first process always has the same number, and
    // what a death left behind would be in the way of every later start.
    own.push(format!(".{}", hex(&random::<8>()?)));
    write(Path::new(&own), text)?;
    let linked = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => keep_name(path),
    }
}

/// Makes a file that its owner alone may read, durably.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    keep_name(path)
}

/// Makes a file's name as durable as its content: values that a lost key encrypted are lost too.
fn keep_name(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = fs::File::open(folder.unwrap_or(Path::new(".")))?;
    folder.sync_all()
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
