//! Opaque cursors (server.md §5; seed A "Full run history and evidence"): base64url of a
//! canonical payload and an HMAC-SHA-256 with a key derived per purpose from the server key.
//! Verified before anything in them is read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;
use sluicegate_core::value;

/// What a cursor is for; its version stands in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A place in the list of workflows.
    Workflows,
    /// A place in the list of runs.
    Runs,
    /// A place in the audit chain.
    Audit,
    /// A place in a run's events.
    Events,
}

/// Why a cursor is refused; nothing more is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one that this server made for this purpose")]
pub struct CursorError;

/// Makes and verifies cursors.
#[derive(Clone)]
pub struct Cursors {
    key: [u8; 32],
}

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors")
    }
}

impl Purpose {
    /// The version that begins the cursor's text.
    fn version(self) -> &'static str {
        match self {
            Self::Workflows => "wfdc1",
            Self::Runs => "wfrc1",
            Self::Audit => "wfac1",
            Self::Events => "wfre1",
        }
    }
}

impl Cursors {
    /// Cursors under a server key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The text of a cursor that holds `payload`.
    #[must_use]
    pub fn make<T: Serialize>(&self, purpose: Purpose, payload: &T) -> Option<String> {
        let payload = value::to_value(payload).ok()?;
        let payload = value::canonical(&payload);
        let mac = self.mac(purpose, payload.as_bytes())?.finalize();
        Some(format!(
            "{}.{}.{}",
            purpose.version(),
            URL_SAFE_NO_PAD.encode(payload),
            URL_SAFE_NO_PAD.encode(mac.into_bytes())
        ))
    }

    /// What a cursor holds.
    ///
    /// # Errors
    /// [`CursorError`] for a text that was not made here, or for another purpose.
    pub fn read<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        text: &str,
    ) -> Result<T, CursorError> {
        let mut parts = text.split('.');
        let (Some(version), Some(payload), Some(mac), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(CursorError);
        };
        if version != purpose.version() {
            return Err(CursorError);
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| CursorError)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| CursorError)?;
        let expected = self.mac(purpose, &payload).ok_or(CursorError)?;
        expected.verify_slice(&mac).map_err(|_| CursorError)?;
        serde_json::from_slice(&payload).map_err(|_| CursorError)
    }

    fn mac(&self, purpose: Purpose, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let mut derive = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        derive.update(b"sluicegate cursor ");
        derive.update(purpose.version().as_bytes());
        let derived = derive.finalize().into_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(&derived).ok()?;
        mac.update(payload);
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn b084_a_cursor_of_another_purpose_key_or_text_is_refused() {
        let cursors = Cursors::new([7; 32]);
        let payload = json!({"runId": "r", "sequence": 10});
        let text = cursors.make(Purpose::Events, &payload).unwrap();
        assert!(text.starts_with("wfre1."));
        assert_eq!(cursors.read::<Value>(Purpose::Events, &text), Ok(payload));
        assert!(cursors.read::<Value>(Purpose::Runs, &text).is_err());
        let relabelled = text.replacen("wfre1", "wfrc1", 1);
        assert!(cursors.read::<Value>(Purpose::Runs, &relabelled).is_err());
        let other = Cursors::new([8; 32]);
        assert!(other.read::<Value>(Purpose::Events, &text).is_err());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bytes).unwrap();
            assert!(
                cursors.read::<Value>(Purpose::Events, &bent).is_err(),
                "{bent}"
            );
        }
        for bad in ["", ".", "wfre1", "wfre1..", "wfre1.a.b.c", "10"] {
            assert!(
                cursors.read::<Value>(Purpose::Events, bad).is_err(),
                "{bad}"
            );
        }
    }
}
