//! What a check learns about schemas, kept for the next one (wire-format.md §6, S6), so that a
//! second check after a small edit costs only what changed.
//!
//! All of it follows from schemas alone and is found by their canonical hashes, so that a check
//! with a memory finds exactly what a fresh one finds. What a check did not use is forgotten at
//! its end: a memory holds what one graph needs, which the limits bound.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::ids::Hash;
use crate::schema::{self, Compatibility, Fault, Reach, Schema};
use crate::value::{self, Map, Pointer, Value};

/// Steps that all comparisons of schemas in one check may take together: some ten that are given
/// up, and far more than a graph of ordinary schemas needs.
const STEPS: u32 = 40_000;

/// What earlier checks have learnt about schemas. An empty one is always right.
#[derive(Debug, Default)]
pub struct Memory {
    /// The number of the check that is going on.
    check: u64,
    /// Steps that are left for the comparisons of this check.
    steps: u32,
    /// What a schema of each name was, so that an unchanged one need not be hashed again.
    named: Kept<String, Hash>,
    accepted: Kept<Hash, Verdict>,
    places: Kept<(Hash, Pointer), Place>,
    shapes: Kept<Vec<Pointer>, Option<Arc<Schema>>>,
    compared: Kept<(Hash, Hash), Comparison>,
}

/// Whether a document is in the subset.
pub(super) type Verdict = Result<Arc<Schema>, Arc<[Fault]>>;

/// What a schema says about a place inside its values.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// What is there fits this schema.
    Fits(Arc<Schema>),
    /// Nothing is known.
    Unknown,
    /// No value has it.
    Impossible,
}

/// A comparison, and what it took.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    found: Compatibility,
    steps: u32,
    /// Whether it had all the steps that one comparison may take.
    whole: bool,
}

impl Memory {
    /// A new check begins.
    pub(super) fn begin(&mut self) {
        self.check += 1;
        self.steps = STEPS;
    }

    /// The check is over: what it did not use is forgotten.
    pub(super) fn end(&mut self) {
        self.named.forget(self.check);
        self.accepted.forget(self.check);
        self.places.forget(self.check);
        self.shapes.forget(self.check);
        self.compared.forget(self.check);
    }

    /// Whether a document is in the subset. The name only helps to find it.
    pub(super) fn accept(&mut self, name: &str, document: &Value) -> Verdict {
        if let Some((hash, named)) = self.named.0.get_mut(name)
            && let Some((Ok(schema), used)) = self.accepted.0.get_mut(hash)
            && schema.document() == document
        {
            (*named, *used) = (self.check, self.check);
            return Ok(Arc::clone(schema));
        }
        let hash = value::hash(document);
        self.named.0.insert(name.to_owned(), (hash, self.check));
        let accept = || match Schema::accept(document) {
            Ok(schema) => Ok(Arc::new(schema)),
            Err(faults) => Err(faults.into()),
        };
        self.accepted.recall(&hash, self.check, accept)
    }

    pub(super) fn place(&mut self, schema: &Schema, pointer: &Pointer) -> Place {
        let reach = || match schema.reach(pointer) {
            Reach::Impossible => Place::Impossible,
            Reach::Certain(place) | Reach::Possible(place) => match Schema::accept(&place) {
                Ok(place) => Place::Fits(Arc::new(place)),
                Err(_) => Place::Unknown,
            },
        };
        let key = (schema.hash(), pointer.clone());
        self.places.recall(&key, self.check, reach)
    }

    /// The schema of what mappings with these targets build: an object with these members alone,
    /// each of them anything.
    pub(super) fn shape(&mut self, targets: &[Pointer]) -> Option<Arc<Schema>> {
        let build = || {
            let mut shape = Value::Bool(true);
            for target in targets {
                grow(&mut shape, target.tokens());
            }
            Schema::accept(&shape).ok().map(Arc::new)
        };
        self.shapes.recall(targets, self.check, build)
    }

    /// Compares by S6, each pair once a check; where the check has taken too many steps already,
    /// nothing is known. What an earlier check found stands where this one has the steps for it.
    pub(super) fn compare(&mut self, source: &Schema, target: &Schema) -> Compatibility {
        let pair = (source.hash(), target.hash());
        match self.compared.0.get_mut(&pair) {
            Some((known, used)) if *used == self.check => return known.found,
            Some((known, used)) if known.whole && known.steps <= self.steps => {
                self.steps -= known.steps;
                *used = self.check;
                return known.found;
            }
            _ => {}
        }
        let before = self.steps;
        let found = schema::compare_within(source, target, &mut self.steps);
        let comparison = Comparison {
            found,
            steps: before - self.steps,
            whole: before >= schema::COMPARISON_STEPS,
        };
        self.compared.0.insert(pair, (comparison, self.check));
        found
    }
}

/// Facts by what they are about, each with the last check that used it.
#[derive(Debug)]
struct Kept<K, V>(BTreeMap<K, (V, u64)>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Clone> Kept<K, V> {
    /// What is known, or is now learnt.
    fn recall<Q>(&mut self, key: &Q, check: u64, learn: impl FnOnce() -> V) -> V
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        if let Some((known, used)) = self.0.get_mut(key) {
            *used = check;
            return known.clone();
        }
        let learnt = learn();
        self.0.insert(key.to_owned(), (learnt.clone(), check));
        learnt
    }

    fn forget(&mut self, check: u64) {
        self.0.retain(|_, (_, used)| *used == check);
    }
}

/// Adds a target to the schema of what mappings build.
fn grow(shape: &mut Value, tokens: &[String]) {
    let Some((token, rest)) = tokens.split_first() else {
        return;
    };
    if !shape.is_object() {
        *shape = json!({
            "type": "object", "properties": {}, "required": [], "additionalProperties": false
        });
    }
    let Value::Object(members) = shape else {
        return;
    };
    let entry = |members: &mut Map<String, Value>| {
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            let is_new = !properties.contains_key(token);
            grow(
                properties
                    .entry(token.as_str())
                    .or_insert(Value::Bool(true)),
                rest,
            );
            return is_new;
        }
        false
    };
    if entry(members)
        && let Some(Value::Array(required)) = members.get_mut("required")
    {
        required.push(Value::String(token.clone()));
    }
}

#[cfg(test)]
mod tests;
