//! Secrets of the server's own making (server.md §3): 256 random bits each, so that a plain
//! hash of one is enough to store.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sluicegate_core::ids::Hash;

use crate::store::StoreError;

/// What every API key begins with, so that a scanner finds one that leaked.
pub(super) const KEY_PREFIX: &str = "sgk_";

/// A new secret after `prefix`.
pub(super) fn random(prefix: &str) -> Result<String, StoreError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// What is stored of a secret.
pub(super) fn hash(secret: &str) -> Hash {
    Hash::of(secret.as_bytes())
}

/// Whether two secrets are the same. Their hashes are compared, so the time it takes says
/// nothing about how much of a guess was right.
pub(super) fn same(a: &str, b: &str) -> bool {
    hash(a) == hash(b)
}
