//! Encryption of execution payloads and results (server.md §7): XChaCha20-Poly1305, the
//! key's id in the row, tenant, run and payload id as associated data.

mod keys;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::value::{self, Value};

pub use keys::{KeyFault, Keys};

const NONCE: usize = 24;

/// Whose value it is: what a ciphertext is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The run.
    pub run_id: &'a RunId,
    /// The payload within the run.
    pub payload: &'a str,
}

/// Why a stored value cannot be had back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// No key of the file has this id.
    #[error("no key {0} is known")]
    KeyUnknown(String),
    /// The bytes were changed, or moved to another place.
    #[error("a stored payload cannot be decrypted")]
    Broken,
    /// Encryption or randomness failed.
    #[error("a payload cannot be encrypted")]
    NotEncrypted,
}

impl Place<'_> {
    /// An array in canonical form, so that no two places share their bytes.
    fn bytes(&self) -> Vec<u8> {
        let parts = [self.tenant.as_str(), self.run_id.as_str(), self.payload];
        let parts = parts.map(Value::from);
        value::canonical(&Value::Array(parts.to_vec())).into_bytes()
    }
}

impl Keys {
    /// Encrypts a value with the newest key: the key's id, and nonce and ciphertext.
    ///
    /// # Errors
    /// [`Unreadable::NotEncrypted`] when there is no randomness.
    pub fn seal(&self, place: Place<'_>, plain: &Value) -> Result<(String, Vec<u8>), Unreadable> {
        let (id, key) = self.newest();
        let mut bytes = vec![0; NONCE];
        getrandom::fill(&mut bytes).map_err(|_| Unreadable::NotEncrypted)?;
        let nonce = XNonce::clone_from_slice(&bytes);
        let text = value::canonical(plain);
        let payload = Payload {
            msg: text.as_bytes(),
            aad: &place.bytes(),
        };
        let sealed = XChaCha20Poly1305::new((&key).into()).encrypt(&nonce, payload);
        bytes.extend(sealed.map_err(|_| Unreadable::NotEncrypted)?);
        Ok((id, bytes))
    }

    /// Decrypts what [`Keys::seal`] made for the same place.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn open_sealed(
        &self,
        place: Place<'_>,
        key_id: &str,
        sealed: &[u8],
    ) -> Result<Value, Unreadable> {
        let key = self.find(key_id);
        let key = key.ok_or_else(|| Unreadable::KeyUnknown(key_id.to_owned()))?;
        let (nonce, rest) = sealed.split_at_checked(NONCE).ok_or(Unreadable::Broken)?;
        let payload = Payload {
            msg: rest,
            aad: &place.bytes(),
        };
        let plain = XChaCha20Poly1305::new((&key).into())
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_| Unreadable::Broken)?;
        value::read_bytes(&plain).map_err(|_| Unreadable::Broken)
    }
}

#[cfg(test)]
mod tests;
