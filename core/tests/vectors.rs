//! The native door of the golden vectors (architecture.md "Tests"): the files that the npm
//! package passes too. `tests/vectors/README.md` says what a vector is.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

mod door;

use std::path::{Path, PathBuf};

use serde_json::json;
use sluicegate_core::value::{self, Value};

use door::{Thrown, call};

/// Equality by J5, but for a `message` that the expectation does not name.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len() && expected.iter().zip(actual).all(|(e, a)| fits(e, a))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let named = |(name, e): (&String, &Value)| actual.get(name).is_some_and(|a| fits(e, a));
            let known = |name: &String| name == "message" || expected.contains_key(name);
            expected.iter().all(named) && actual.keys().all(known)
        }
        (expected, actual) => expected == actual,
    }
}

/// Whether all that the expectation names is there: members by name, items in this order with
/// others between them.
fn holds(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => {
            let mut rest = actual.iter();
            expected.iter().all(|e| rest.any(|a| holds(e, a)))
        }
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(name, e)| actual.get(name).is_some_and(|a| holds(e, a))),
        (expected, actual) => expected == actual,
    }
}

/// What is wrong with the outcome of a vector.
fn judge(vector: &Value) -> Option<String> {
    let given = vector["given"].as_array().unwrap();
    let then = &vector["then"];
    let (right, outcome) = match call(text_of(&vector["when"]), given) {
        Ok(gives) => {
            let right = match (then.get("gives"), then.get("has")) {
                (Some(expected), None) => fits(expected, &gives),
                (None, Some(expected)) => {
                    let lacked = then.get("lacks").and_then(Value::as_array);
                    let lacks = |absent: &Vec<Value>| !absent.iter().any(|a| holds(a, &gives));
                    holds(expected, &gives) && lacked.is_none_or(lacks)
                }
                _ => false,
            };
            (right, json!({ "gives": gives }))
        }
        Err(Thrown(code, pointer)) => {
            let throws = then.get("throws");
            let right = throws.is_some_and(|expected| {
                let named = expected.get("pointer").map(text_of);
                expected["code"] == code.as_str()
                    && named.is_none_or(|named| Some(named) == pointer.as_deref())
            });
            (
                right,
                json!({ "throws": { "code": code.as_str(), "pointer": pointer } }),
            )
        }
    };
    (!right).then(|| format!("expected {then}, got {outcome}"))
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Every vector file below a folder, in order.
fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inside = |path: PathBuf| match path.extension() {
        None => files(&path),
        Some(end) if end == "json" => vec![path],
        Some(_) => Vec::new(),
    };
    paths.into_iter().flat_map(inside).collect()
}

#[test]
fn every_vector_holds_natively() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files(&root) {
        let vectors = value::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for (index, vector) in vectors.as_array().unwrap().iter().enumerate() {
            count += 1;
            let place = file.strip_prefix(&root).unwrap().display();
            let clause = text_of(&vector["clause"]);
            wrong.extend(judge(vector).map(|why| format!("{place} [{index}] {clause}: {why}")));
        }
    }
    assert!(count > 0, "no vector was found");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
