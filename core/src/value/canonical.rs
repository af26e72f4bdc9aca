use super::{JsonError, Value};
use crate::ids::Hash;
/// The canonical text by RFC 8785 (J2).
#[must_use]
pub fn canonical(value: &Value) -> String {
    value.to_string()
}
/// The length of the canonical text in bytes, without building it where that is cheaper.
#[must_use]
pub fn canonical_len(value: &Value) -> usize {
    canonical(value).len()
}
/// The hash over canonical bytes (J2).
#[must_use]
pub fn hash(value: &Value) -> Hash {
    Hash::of(canonical(value).as_bytes())
}
/// Any serializable thing of ours as a normalised value; the error is a number out of
/// range (J1) or a map whose keys are not strings.
pub fn to_value<T: serde::Serialize>(thing: &T) -> Result<Value, JsonError> {
    serde_json::to_value(thing).map_err(|e| JsonError {
        code: crate::code::Code::JsonSyntax,
        pointer: String::new(),
        position: None,
        detail: e.to_string(),
    })
}
