//! Identifiers and hashes as newtypes (wire-format.md I1–I3, J2).

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether `text` is an identifier by I1: 1 to 128 characters, segments joined
/// by `.`, each `[a-z0-9][a-z0-9_-]*`.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    text.len() <= 128
        && text.split('.').all(|segment| {
            let mut bytes = segment.bytes();
            bytes
                .next()
                .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && bytes
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        })
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text as it is: a draft may hold an identifier that I1 refuses,
            /// which is then an issue and not a loss.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    )*};
}

text_ids! {
    /// A node's identifier, stable within one workflow.
    NodeId;
    /// An edge's identifier.
    EdgeId;
    /// A schema's identifier: of the graph's own map or `std.…` (I2).
    SchemaId;
    /// The key that callers name a workflow by.
    WorkflowKey;
    /// An agent's identifier.
    AgentId;
    /// An action's identifier.
    ActionId;
    /// A tenant.
    TenantId;
    /// A run.
    RunId;
    /// A child: an agent run or action invocation that a node started.
    ChildId;
    /// `<nodeId>/<attempt>/<port>`, `<nodeId>/<attempt>/input`, `input` or `result`
    /// (run-machine.md §2).
    PayloadId;
    /// A worker process' name.
    WorkerId;
}

/// One end of an edge. A plan and an event store it too, so it can be read by serde.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Endpoint {
    /// The node.
    pub node_id: NodeId,
    /// Its port.
    pub port: String,
}

impl Endpoint {
    /// An end at a node's port.
    #[must_use]
    pub fn new(node_id: impl Into<NodeId>, port: impl Into<String>) -> Self {
        Self {
            node_id: node_id.into(),
            port: port.into(),
        }
    }
}

/// A permission such as `workflows.runs.execute`.
pub type Permission = String;

/// SHA-256 over canonical bytes, written `sha256:` and lower-case hex (J2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The first previous hash of an audit chain (run-machine.md H2).
    pub const ZERO: Self = Self([0; 32]);

    /// Hashes bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The raw bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads `sha256:` and 64 lower-case hex digits; anything else is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?.as_bytes();
        if hex.len() != 64 {
            return None;
        }
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Hashes are in every row; written digit by digit they would show in a profile.
        let digit = |half: u8| {
            char::from(if half < 10 {
                b'0' + half
            } else {
                b'a' + half - 10
            })
        };
        let mut hex = String::with_capacity(71);
        hex.push_str("sha256:");
        for byte in self.0 {
            hex.push(digit(byte >> 4));
            hex.push(digit(byte & 15));
        }
        f.write_str(&hex)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::invalid_value(
                serde::de::Unexpected::Str(&text),
                &"sha256: and 64 lower-case hex digits",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_identifiers() {
        for good in [
            "a",
            "0",
            "a.b",
            "expenses.review",
            "a-b_c.9",
            &"a".repeat(128),
        ] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "A",
            "a b",
            "-a",
            "_a",
            "é",
            &"a".repeat(129),
        ] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }

    #[test]
    fn j2_hash_text_round_trips() {
        let hash = Hash::of(b"");
        assert_eq!(
            hash.to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse(&hash.to_string().to_uppercase()), None);
    }
}
