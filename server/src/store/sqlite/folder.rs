//! The data folder and its lock (run-machine.md W6; server.md §1): while it is held, no
//! other process has the folder, so that leases found at start belong to the dead.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// A folder that this process holds. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderFault {
    /// Another process holds it.
    #[error("the data folder {0} is held by another process")]
    Held(PathBuf),
    /// It cannot be made or written.
    #[error("the data folder {path}: {reason}", reason = crate::config::os_reason(error))]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Folder {
    /// Makes the folder where there is none, readable by its owner alone.
    ///
    /// # Errors
    /// [`FolderFault::Unusable`].
    pub fn make(path: &Path) -> Result<(), FolderFault> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(|error| FolderFault::Unusable {
            path: path.to_owned(),
            error,
        })
    }

    /// Makes the folder where there is none, and takes its lock.
    ///
    /// # Errors
    /// [`FolderFault`].
    pub fn hold(path: &Path) -> Result<Self, FolderFault> {
        Self::make(path)?;
        let unusable = |error| FolderFault::Unusable {
            path: path.to_owned(),
            error,
        };
        let lock = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(FolderFault::Held(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    /// Where the database is.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path.join("sluicegate.sqlite")
    }
}
