//! Where secrets lie (S5): `writeOnly: true` in any applicator that touches a place.
//!
//! Whether a branch of `anyOf`, `oneOf`, `if` or `not` holds does not matter: a place that one
//! of them marks is a secret. Marking too much hides a value, marking too little leaks one.

use std::collections::{BTreeMap, BTreeSet};

use super::Schema;
use crate::value::{Map, Pointer, Value};

/// Applicators whose schemas apply to the value itself.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Pairs of subschema and place that one search looks at. A hostile pair of schema and value has
/// many millions; then the whole value is taken for a secret.
const PAIRS: usize = 500_000;

/// Whether a document marks any place. `$defs` that nothing names count too.
pub(super) fn marks(document: &Value) -> bool {
    match document {
        Value::Object(members) => {
            members.get("writeOnly") == Some(&Value::Bool(true)) || members.values().any(marks)
        }
        Value::Array(items) => items.iter().any(marks),
        _ => false,
    }
}

/// The outermost secret places of a value, by pointer.
pub(super) fn find<'v>(schema: &Schema, value: &'v Value) -> Vec<(Pointer, &'v Value)> {
    let mut search = Search {
        schema,
        seen: BTreeSet::new(),
        found: BTreeMap::new(),
    };
    let root = Pointer::default();
    search.look(schema.document(), value, &root);
    if search.seen.len() == PAIRS {
        return vec![(root, value)];
    }
    let mut outermost: Vec<(Pointer, &Value)> = Vec::new();
    // Sorted by tokens, a place is followed by what lies below it.
    for (pointer, secret) in search.found {
        let inside = outermost
            .last()
            .is_some_and(|(outer, _)| pointer.tokens().starts_with(outer.tokens()));
        if !inside {
            outermost.push((pointer, secret));
        }
    }
    outermost
}

struct Search<'s, 'v> {
    schema: &'s Schema,
    /// Pairs of subschema and value by address, so that a `$ref` that many branches name is
    /// followed once a place.
    seen: BTreeSet<(*const Value, *const Value)>,
    found: BTreeMap<Pointer, &'v Value>,
}

impl<'s, 'v> Search<'s, 'v> {
    fn look(&mut self, schema: &'s Value, value: &'v Value, at: &Pointer) {
        let Value::Object(keywords) = schema else {
            return;
        };
        if self.seen.len() == PAIRS || !self.seen.insert((schema, value)) {
            return;
        }
        if keywords.get("writeOnly") == Some(&Value::Bool(true)) {
            self.found.insert(at.clone(), value);
            return;
        }
        if let Some(target) = self.schema.target(keywords) {
            self.look(target, value, at);
        }
        for applicator in IN_PLACE {
            match keywords.get(applicator) {
                Some(Value::Array(branches)) => {
                    branches
                        .iter()
                        .for_each(|branch| self.look(branch, value, at));
                }
                Some(branch) => self.look(branch, value, at),
                None => {}
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    for below in self.schema.for_member(keywords, name) {
                        self.look(below, member, &at.child(name));
                    }
                }
            }
            Value::Array(items) => self.items(keywords, items, at),
            _ => {}
        }
    }

    fn items(&mut self, keywords: &'s Map<String, Value>, items: &'v [Value], at: &Pointer) {
        for (i, item) in items.iter().enumerate() {
            let below = super::for_item(keywords, i).into_iter();
            for schema in below.chain(keywords.get("contains")) {
                self.look(schema, item, &at.child(i.to_string()));
            }
        }
    }
}
