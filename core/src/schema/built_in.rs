//! The built-in schemas (G3).

use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::Schema;
use crate::value::Value;

/// The names of the built-in schemas, sorted.
pub const BUILT_IN: [&str; 5] = [
    "std.any",
    "std.failure",
    "std.merged",
    "std.text",
    "std.validation-errors",
];

/// A built-in schema (G3): `std.any`, `std.text`, `std.failure`, `std.validation-errors`,
/// `std.merged`; `None` for every other name.
#[must_use]
pub fn built_in(id: &str) -> Option<Arc<Schema>> {
    static ALL: [OnceLock<Option<Arc<Schema>>>; BUILT_IN.len()] =
        [const { OnceLock::new() }; BUILT_IN.len()];
    let cell = ALL.get(BUILT_IN.iter().position(|name| *name == id)?)?;
    // A test holds that every name has a document that is accepted.
    cell.get_or_init(|| Schema::accept(&document(id)?).ok().map(Arc::new))
        .clone()
}

fn document(id: &str) -> Option<Value> {
    Some(match id {
        "std.any" => json!(true),
        "std.text" => json!({"type": "string"}),
        "std.failure" => json!({
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "nodeId": {"type": "string"},
                "attempt": {"type": "integer", "minimum": 1},
                "classification": {"enum": ["retryable", "permanent"]},
            },
            "required": ["code", "message", "nodeId", "attempt", "classification"],
            "additionalProperties": false,
        }),
        "std.validation-errors" => json!({
            "type": "object",
            "properties": {
                "errors": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string"},
                            "keyword": {"type": "string"},
                            "message": {"type": "string"},
                        },
                        "required": ["path", "keyword", "message"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["errors"],
            "additionalProperties": false,
        }),
        "std.merged" => json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "edgeId": {"type": "string"},
                    "nodeId": {"type": "string"},
                    "port": {"type": "string"},
                    "data": true,
                },
                "required": ["edgeId", "nodeId", "port", "data"],
                "additionalProperties": false,
            },
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_every_built_in_is_accepted() {
        for id in BUILT_IN {
            assert!(built_in(id).is_some(), "{id}");
        }
        assert!(built_in("std.none").is_none());
        assert!(BUILT_IN.is_sorted());
    }

    #[test]
    fn g3_failure_is_closed_and_complete() {
        let schema = built_in("std.failure").unwrap();
        let mut failure = json!({"code": "a.b", "message": "m", "nodeId": "n", "attempt": 1,
            "classification": "retryable"});
        assert!(schema.is_valid(&failure));
        failure["attempt"] = json!(0);
        assert!(!schema.is_valid(&failure));
        failure["attempt"] = json!(1);
        failure["more"] = json!(1);
        assert!(!schema.is_valid(&failure));
    }
}
