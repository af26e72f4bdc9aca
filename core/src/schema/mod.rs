//! The JSON Schema subset: accept, validate, compare, example values (wire-format.md §6, S1–S6).

use crate::{
    code::Code,
    ids::Hash,
    value::{Pointer, Value},
};

/// A schema that is inside the subset. Cheap to share (`Arc`); its validator is built on
/// first use.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    hash: Hash,
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A `schema.*` code of §8.
    pub code: Code,
    /// JSON Pointer inside the schema.
    pub pointer: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// One failing assertion (G4, `std.validation-errors`); texts are ours and never quote a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// JSON Pointer inside the value.
    pub path: String,
    /// The keyword that failed.
    pub keyword: String,
    /// What is wrong.
    pub message: String,
}

/// Whether a source's values fit a target (S6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compatibility {
    /// Every value of the source fits.
    Compatible,
    /// No value of the source fits: certainly wrong.
    Incompatible,
    /// It cannot be decided; run time decides.
    Unknown,
}

/// What a schema says about a place inside its values (L6, web.md §2).
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// Every value has it, and it fits this schema.
    Certain(Value),
    /// A value may have it; if it does, it fits this schema (`true` when nothing is known).
    Possible(Value),
    /// No value can have it.
    Impossible,
}

impl Schema {
    /// Accepts a schema of the subset, or says everything that is wrong, sorted by pointer, then code.
    pub fn accept(document: &Value) -> Result<Self, Vec<Fault>> {
        Ok(Self {
            document: document.clone(),
            hash: crate::value::hash(document),
        })
    }
    /// The document.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }
    /// The canonical hash of the document.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }
    /// Whether a value fits.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        let _ = value;
        true
    }
    /// One entry per failing assertion, sorted by path, then keyword (G4); empty: it fits.
    #[must_use]
    pub fn validate(&self, value: &Value) -> Vec<Failure> {
        let _ = value;
        Vec::new()
    }
    /// Whether any place is `writeOnly` (S5).
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        false
    }
    /// The values at `writeOnly` places of a value, through any applicator that touches the place (S5).
    #[must_use]
    pub fn secrets<'v>(&self, value: &'v Value) -> Vec<(Pointer, &'v Value)> {
        let _ = value;
        Vec::new()
    }
    /// A value that fits, for fixtures and forms; `None` where none was found.
    #[must_use]
    pub fn example(&self) -> Option<Value> {
        None
    }
    /// What is known about a place.
    #[must_use]
    pub fn reach(&self, pointer: &Pointer) -> Reach {
        let _ = pointer;
        Reach::Possible(Value::Bool(true))
    }
}

/// Compares by S6; refuses only what is certainly wrong.
#[must_use]
pub fn compare(source: &Schema, target: &Schema) -> Compatibility {
    let _ = (source, target);
    Compatibility::Unknown
}

/// A built-in schema (G3): `std.any`, `std.text`, `std.failure`, `std.validation-errors`, `std.merged`.
#[must_use]
pub fn built_in(id: &str) -> Option<std::sync::Arc<Schema>> {
    let _ = id;
    None
}
/// The names of the built-in schemas, sorted.
pub const BUILT_IN: [&str; 5] = [
    "std.any",
    "std.failure",
    "std.merged",
    "std.text",
    "std.validation-errors",
];
