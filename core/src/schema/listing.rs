//! How many failures a value can have at most, asked before any is made (G4): the validator
//! makes all of them at once, and each repeats names, lists and the way to its place.

use super::{Schema, for_item};
use crate::value::{Map, Value};

/// Bytes of a path, or of a text that the schema quotes, that weigh as much as one failure.
const BYTES_EACH: usize = 256;

/// Whether all failures that the value can have weigh at most so much together. It takes no
/// more steps than that, whatever the schema and the value are.
pub(super) fn weighs_at_most(schema: &Schema, value: &Value, most: u64) -> bool {
    let mut scale = Scale { schema, left: most };
    scale.add(schema.document(), value, 0).is_some()
}

struct Scale<'s> {
    schema: &'s Schema,
    left: u64,
}

impl Scale<'_> {
    fn take(&mut self, weight: usize, path: usize) -> Option<()> {
        let weight = weight.saturating_mul(1 + path / BYTES_EACH);
        self.left = self.left.checked_sub(weight as u64)?;
        Some(())
    }

    /// Every schema that may apply counts as if it did. Recursion ends with the depth of an
    /// accepted schema (S2).
    fn add(&mut self, schema: &Value, value: &Value, path: usize) -> Option<()> {
        self.take(1, path)?;
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        for (keyword, word) in keywords {
            self.take(self.own(keyword, word, value), path)?;
            match keyword.as_str() {
                "allOf" | "anyOf" | "oneOf" => {
                    for branch in word.as_array().into_iter().flatten() {
                        self.add(branch, value, path)?;
                    }
                }
                // What "if", "not" and "contains" ask is answered by yes or no.
                "then" | "else" => self.add(word, value, path)?,
                _ => {}
            }
        }
        if let Some(target) = self.schema.target(keywords) {
            self.add(target, value, path)?;
        }
        self.below(keywords, value, path)
    }

    /// What one keyword's own failures at one place weigh.
    fn own(&self, keyword: &str, word: &Value, value: &Value) -> usize {
        match keyword {
            "required" => word.as_array().map_or(1, Vec::len),
            "dependentRequired" => {
                let lists = word.as_object().into_iter().flat_map(Map::values);
                lists.filter_map(Value::as_array).map(Vec::len).sum()
            }
            // The error repeats what was wanted.
            "enum" | "const" => nodes(word),
            "pattern" => 1 + word.as_str().map_or(0, str::len) / BYTES_EACH,
            // The error lists all names that are too many.
            "additionalProperties" => value.as_object().map_or(1, Map::len),
            _ => 1,
        }
    }

    fn below(&mut self, keywords: &Map<String, Value>, value: &Value, path: usize) -> Option<()> {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let path = path + 1 + name.len();
                    self.take(1, path)?;
                    if let Some(names) = keywords.get("propertyNames") {
                        self.add(names, &Value::Null, path)?;
                    }
                    let schema = self.schema;
                    for applied in schema.for_member(keywords, name) {
                        self.add(applied, member, path)?;
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.take(1, path)?;
                    if let Some(applied) = for_item(keywords, index) {
                        self.add(applied, item, path + 6)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// Whether any place has alternatives. A failing one carries the failures of every branch, even
/// where a single failure is asked for.
pub(super) fn has_alternatives(document: &Value) -> bool {
    match document {
        Value::Array(items) => items.iter().any(has_alternatives),
        Value::Object(members) => members.iter().any(|(name, member)| {
            matches!(name.as_str(), "anyOf" | "oneOf") || has_alternatives(member)
        }),
        _ => false,
    }
}

/// The values in a value, itself included.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}
