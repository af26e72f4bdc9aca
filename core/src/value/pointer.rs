//! JSON Pointers by RFC 6901 (J3).

use std::borrow::Cow;
use std::fmt;

use super::{JsonError, Value};
use crate::code::Code;

/// A parsed JSON Pointer (RFC 6901, J3). Serializes as its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pointer {
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses; a text that is neither empty nor begins with `/`, or has a `~` not followed by
    /// `0` or `1`, is `json.pointer-invalid`.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(invalid("a JSON Pointer is empty or begins with \"/\""));
        };
        let tokens = rest.split('/').map(unescape).collect::<Option<_>>();
        tokens
            .map(|tokens| Self { tokens })
            .ok_or_else(|| invalid("in a JSON Pointer \"~\" stands only in \"~0\" and \"~1\""))
    }

    /// The pointer one step further, to a member or an item of the place.
    #[must_use]
    pub fn child(&self, token: impl Into<String>) -> Self {
        let mut tokens = self.tokens.clone();
        tokens.push(token.into());
        Self { tokens }
    }

    /// The unescaped reference tokens.
    #[must_use]
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Reads a value; `None` where there is nothing (`-` never reads, an array index has no
    /// leading zero and no sign, J3).
    #[must_use]
    pub fn read<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens
            .iter()
            .try_fold(value, |value, token| match value {
                Value::Object(members) => members.get(token),
                Value::Array(items) => items.get(index(token)?),
                _ => None,
            })
    }

    /// Whether one of the two is a prefix of the other, or they are equal (M1).
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.tokens.iter().zip(&other.tokens).all(|(a, b)| a == b)
    }
}

/// The array index that a reference token writes: `0`, or digits without a leading zero that
/// the platform can count to.
#[must_use]
pub fn index(token: &str) -> Option<usize> {
    let plain =
        token == "0" || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
    plain.then(|| token.parse().ok()).flatten()
}

/// A reference token as it stands in a pointer's text: `~` as `~0`, `/` as `~1`.
#[must_use]
pub fn escape(token: &str) -> Cow<'_, str> {
    if token.contains(['~', '/']) {
        Cow::Owned(token.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(token)
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match part.strip_prefix('0') {
            Some(rest) => ('~', rest),
            None => ('/', part.strip_prefix('1')?),
        };
        plain.push(character);
        plain.push_str(rest);
    }
    Some(plain)
}

fn invalid(detail: &str) -> JsonError {
    JsonError {
        code: Code::JsonPointerInvalid,
        pointer: String::new(),
        position: None,
        detail: detail.to_owned(),
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens
            .iter()
            .try_for_each(|token| write!(f, "/{}", escape(token)))
    }
}

impl serde::Serialize for Pointer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Pointer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value, pointer: &str) -> Option<Value> {
        Pointer::parse(pointer).unwrap().read(value).cloned()
    }

    #[test]
    fn j3_b029_array_indices_have_one_spelling() {
        let value = json!({"arr": [10, 20, 30], "obj": {"01": 7, "-": 8}});
        assert_eq!(read(&value, "/arr/0"), Some(json!(10)));
        assert_eq!(read(&value, "/arr/2"), Some(json!(30)));
        for missing in [
            "/arr/01",
            "/arr/+1",
            "/arr/-",
            "/arr/-1",
            "/arr/3",
            "/arr/1e0",
            "/arr/",
            "/arr/18446744073709551616",
            "/arr/0/0",
        ] {
            assert_eq!(read(&value, missing), None, "{missing}");
        }
        assert_eq!(read(&value, "/obj/01"), Some(json!(7)));
        assert_eq!(read(&value, "/obj/-"), Some(json!(8)));
    }

    #[test]
    fn j3_b031_a_tilde_stands_only_before_0_and_1() {
        let value = json!({"num~s": 1, "nums~": [0, 1], "a/b": 2, "~1": 3});
        for bad in ["/num~s", "/nums~/0", "/nums~", "num", "/~2", "/~~0", "#/a"] {
            let error = Pointer::parse(bad).unwrap_err();
            assert_eq!(error.code, Code::JsonPointerInvalid, "{bad}");
        }
        assert_eq!(read(&value, "/num~0s"), Some(json!(1)));
        assert_eq!(read(&value, "/nums~0/1"), Some(json!(1)));
        assert_eq!(read(&value, "/a~1b"), Some(json!(2)));
        assert_eq!(read(&value, "/~01"), Some(json!(3)));
    }

    #[test]
    fn j3_text_round_trips() {
        for text in ["", "/", "/a//b", "/~0~1", "/~01/x~1y"] {
            assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn m1_overlap_is_prefix_in_tokens() {
        let p = |text| Pointer::parse(text).unwrap();
        assert!(p("/a").overlaps(&p("/a/b")));
        assert!(p("").overlaps(&p("/a")));
        assert!(!p("/a").overlaps(&p("/ab")));
        assert!(!p("/a/b").overlaps(&p("/a/c")));
    }
}
