//! Public test data that nobody here wrote, from `../shared/conformance` beside the repository.
//! A checkout without it skips these tests, unless `CI` is set.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

#[path = "conformance/gate.rs"]
mod gate;
#[path = "conformance/json.rs"]
mod json;
#[path = "conformance/keywords.rs"]
mod keywords;
#[path = "conformance/page.rs"]
mod page;
#[path = "conformance/schema.rs"]
mod schema;
#[path = "conformance/template.rs"]
mod template;

use std::path::PathBuf;

use sluicegate_core::value::Value;

/// A set's folder; `None`, after saying so, where there is none.
fn folder(set: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    if root.is_dir() {
        return Some(root.join(set));
    }
    println!("skipped: the folder of conformance data is not there");
    assert!(
        std::env::var_os("CI").is_none(),
        "CI needs the conformance data"
    );
    None
}

/// A file of test data. It may hold numbers that J1 refuses, so it is not read by our reader.
fn data(path: &PathBuf) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
