//! One target for each door of the core: it reads a document, drives what is behind the door and
//! panics where a law does not hold. It tells whether the document came in.

pub(crate) mod events;
pub(crate) mod graph;
pub(crate) mod machine;
pub(crate) mod small;

use serde_json::Value;
use sluicegate_core::code::{Class, Code};
use sluicegate_core::value::{self, JsonError, Pointer};

/// The document of an input, where it is I-JSON; a refusal is one of J7.
pub(crate) fn document(input: &[u8]) -> Option<Value> {
    match value::read_bytes(input) {
        Ok(document) => Some(document),
        Err(error) => {
            assert!(
                error.code != Code::JsonSyntax || error.position.is_some(),
                "{error:?} says where"
            );
            refused(&error);
            None
        }
    }
}

/// J7: the code is of JSON, or of an issue inside a catalogue; the pointer is one.
pub(crate) fn refused(error: &JsonError) {
    let known = matches!(error.code.class(), Class::Json | Class::Error);
    assert!(known, "{error:?}");
    Pointer::parse(&error.pointer).unwrap();
    assert!(!error.detail.is_empty(), "{error:?} says what is wrong");
}

/// A member of a document, `null` where it is absent.
pub(crate) fn member<'v>(document: &'v Value, name: &str) -> &'v Value {
    document.get(name).unwrap_or(&Value::Null)
}
