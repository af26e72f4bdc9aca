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
            return Err(JsonError {
                code: Code::JsonPointerInvalid,
                pointer: String::new(),
                position: None,
                detail: format!("{text:?} is not a JSON Pointer"),
            });
        };
        Ok(Self {
            tokens: rest
                .split('/')
                .map(|t| t.replace("~1", "/").replace("~0", "~"))
                .collect(),
        })
    }
    /// The unescaped reference tokens.
    #[must_use]
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
    /// Reads a value; `None` where there is nothing (`-` never reads, J3).
    #[must_use]
    pub fn read<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens.iter().try_fold(value, |v, t| match v {
            Value::Object(m) => m.get(t),
            Value::Array(a) => a.get(t.parse::<usize>().ok()?),
            _ => None,
        })
    }
    /// Whether one of the two is a prefix of the other, or they are equal (M1).
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.tokens.iter().zip(&other.tokens).all(|(a, b)| a == b)
    }
}
impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tokens
            .iter()
            .try_for_each(|t| write!(f, "/{}", t.replace('~', "~0").replace('/', "~1")))
    }
}
impl serde::Serialize for Pointer {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> serde::Deserialize<'de> for Pointer {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let t = String::deserialize(d)?;
        Self::parse(&t).map_err(serde::de::Error::custom)
    }
}
