//! What a schema says about a place inside its values (L6, web.md §2).

use std::cell::Cell;

use serde_json::json;

use super::{
    Reach, Schema,
    facts::{Facts, Types, refers},
    prove::Prover,
};
use crate::{
    limits::Limits,
    value::{Pointer, Value, index},
};

/// What is known about the place that a pointer names.
pub(super) fn reach(schema: &Schema, pointer: &Pointer) -> Reach {
    // Nothing lies deeper in a value than containers nest (J4).
    if pointer.tokens().len() > Limits::JSON_DEPTH {
        return Reach::Impossible;
    }
    let facts = Facts::of(schema, schema.document());
    let walk = Walk {
        prover: Prover::new(),
        branches: Cell::new(BRANCHES),
    };
    let complete = |found| with_definitions(schema, found);
    match walk.go(&facts, pointer.tokens(), true) {
        Reach::Certain(found) => Reach::Certain(complete(found)),
        Reach::Possible(found) => Reach::Possible(complete(found)),
        Reach::Impossible => Reach::Impossible,
    }
}

/// Branches that one question follows: those of alternatives, and the two that a token such as `0`
/// has where both an object and an array may stand. Beyond, less is known.
const BRANCHES: u32 = 200;

struct Walk {
    prover: Prover,
    branches: Cell<u32>,
}

impl Walk {
    fn go(&self, facts: &Facts<'_>, tokens: &[String], certain: bool) -> Reach {
        let Some((token, rest)) = tokens.split_first() else {
            let found = together(facts);
            return if certain {
                Reach::Certain(found)
            } else {
                Reach::Possible(found)
            };
        };
        // Where nothing is said, nothing more is said below.
        if facts.all().is_empty() && !facts.never {
            return Reach::Possible(Value::Bool(true));
        }
        let plain = self.step(facts, token, rest, certain);
        if plain == Reach::Impossible {
            return plain;
        }
        // Each value fits one branch: what all branches say, holds.
        facts
            .alternatives()
            .map_while(|branches| {
                let left = self
                    .branches
                    .get()
                    .checked_sub(u32::try_from(branches.len()).ok()?)?;
                self.branches.set(left);
                let branches = branches.iter().filter(|branch| !self.prover.empty(branch));
                let reached = branches.map(|branch| self.go(branch, tokens, certain));
                Some(reached.reduce(either).unwrap_or(Reach::Impossible))
            })
            .fold(plain, narrower)
    }

    /// One token, by the keywords alone.
    fn step(&self, facts: &Facts<'_>, token: &str, rest: &[String], certain: bool) -> Reach {
        let types = facts.types();
        let member = types.meets(Types::OBJECT).then(|| facts.member(token));
        let member = member
            .filter(|member| facts.at_most("maxProperties") > 0 && !self.prover.empty(member));
        let at = index(token)
            .filter(|at| types.meets(Types::ARRAY) && (*at as u64) < facts.at_most("maxItems"));
        let item = at
            .map(|at| facts.item(at))
            .filter(|item| !self.prover.empty(item));
        match (member, item) {
            (None, None) => Reach::Impossible,
            (Some(member), None) => {
                let has = types == Types::OBJECT && facts.required().contains(token);
                self.go(&member, rest, certain && has)
            }
            (None, Some(item)) => {
                let has = at.is_some_and(|at| (at as u64) < facts.at_least("minItems"));
                self.go(&item, rest, certain && has && types == Types::ARRAY)
            }
            (Some(member), Some(item)) => match self.branches.get().checked_sub(2) {
                Some(left) => {
                    self.branches.set(left);
                    either(self.go(&member, rest, false), self.go(&item, rest, false))
                }
                None => Reach::Possible(Value::Bool(true)),
            },
        }
    }
}

/// What is known where one of two things holds.
fn either(a: Reach, b: Reach) -> Reach {
    match (a, b) {
        (Reach::Impossible, Reach::Impossible) => Reach::Impossible,
        (Reach::Impossible, Reach::Certain(found) | Reach::Possible(found))
        | (Reach::Certain(found) | Reach::Possible(found), Reach::Impossible) => {
            Reach::Possible(found)
        }
        (Reach::Certain(a), Reach::Certain(b)) => Reach::Certain(any_of(a, b)),
        (Reach::Certain(a) | Reach::Possible(a), Reach::Certain(b) | Reach::Possible(b)) => {
            Reach::Possible(any_of(a, b))
        }
    }
}

/// What is known where both things hold. Of two schemas the second, which comes from an
/// alternative, says more: its facts hold those of the first.
fn narrower(a: Reach, b: Reach) -> Reach {
    match (a, b) {
        (Reach::Impossible, _) | (_, Reach::Impossible) => Reach::Impossible,
        (Reach::Certain(_), Reach::Certain(found) | Reach::Possible(found))
        | (Reach::Possible(_), Reach::Certain(found)) => Reach::Certain(found),
        (Reach::Possible(_), Reach::Possible(found)) => Reach::Possible(found),
    }
}

fn any_of(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Bool(true), _) | (_, Value::Bool(true)) => Value::Bool(true),
        (a, b) if a == b => a,
        (a, b) => json!({"anyOf": [a, b]}),
    }
}

/// The schemas that hold at a place, as one.
fn together(facts: &Facts<'_>) -> Value {
    let mut schemas: Vec<&Value> = Vec::new();
    for schema in &facts.added {
        if **schema != Value::Bool(true) && !schemas.contains(schema) {
            schemas.push(schema);
        }
    }
    match schemas[..] {
        [] => Value::Bool(true),
        [one] => one.clone(),
        ref several => json!({"allOf": several}),
    }
}

/// A part of a document, with the definitions that its references name.
pub(super) fn with_definitions(schema: &Schema, mut part: Value) -> Value {
    if let Some(definitions) = schema.document().get("$defs")
        && refers(&part)
        && let Some(keywords) = part.as_object_mut()
    {
        keywords.insert("$defs".to_owned(), definitions.clone());
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn at(schema: Value, pointer: &str) -> Reach {
        let schema = Schema::accept(&schema).unwrap();
        schema.reach(&Pointer::parse(pointer).unwrap())
    }

    #[test]
    fn l6_what_is_closed_is_impossible() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "additionalProperties": false});
        assert_eq!(at(closed.clone(), "/b"), Reach::Impossible);
        assert_eq!(at(closed.clone(), "/a/x"), Reach::Impossible);
        assert_eq!(at(closed, "/a"), Reach::Possible(json!({"type": "string"})));
        assert_eq!(at(json!({"type": "string"}), "/a"), Reach::Impossible);
        assert_eq!(at(json!({"type": "array"}), "/a"), Reach::Impossible);
        assert_eq!(
            at(json!({"type": "array", "maxItems": 1}), "/1"),
            Reach::Impossible
        );
        assert_eq!(
            at(
                json!({"prefixItems": [true], "items": false, "type": "array"}),
                "/1"
            ),
            Reach::Impossible
        );
        assert_eq!(at(json!(true), &"/a".repeat(65)), Reach::Impossible);
    }

    #[test]
    fn l6_nothing_known_is_possible() {
        assert_eq!(at(json!(true), "/a/0/b"), Reach::Possible(json!(true)));
        assert_eq!(
            at(json!({"required": ["a"]}), "/a"),
            Reach::Possible(json!(true))
        );
        assert_eq!(
            at(
                json!({"type": "object", "patternProperties": {"^x": {"type": "null"}},
                "additionalProperties": false}),
                "/xy"
            ),
            Reach::Possible(json!({"type": "null"}))
        );
    }

    #[test]
    fn l6_certain_through_ref_all_of_and_items() {
        let schema = json!({
            "$defs": {"row": {"type": "object", "required": ["n"],
                "properties": {"n": {"$ref": "#/$defs/number"}}},
                "number": {"type": "number"}},
            "allOf": [{"type": "array", "minItems": 1}],
            "items": {"$ref": "#/$defs/row"}
        });
        let Reach::Certain(found) = at(schema.clone(), "/0/n") else {
            panic!("not certain");
        };
        assert_eq!(found["$ref"], "#/$defs/number");
        assert!(Schema::accept(&found).unwrap().is_valid(&json!(1.5)));
        assert!(matches!(at(schema, "/1/n"), Reach::Possible(_)));
    }

    #[test]
    fn l6_alternatives_are_followed() {
        let schema = json!({"oneOf": [
            {"type": "object", "required": ["k", "a"], "properties": {"k": {"const": 1}, "a": {"type": "string"}}, "additionalProperties": false},
            {"type": "object", "required": ["k"], "properties": {"k": {"const": 2}}, "additionalProperties": false}
        ]});
        assert_eq!(
            at(schema.clone(), "/k"),
            Reach::Certain(json!({"anyOf": [{"const": 1}, {"const": 2}]}))
        );
        assert_eq!(
            at(schema.clone(), "/a"),
            Reach::Possible(json!({"type": "string"}))
        );
        assert_eq!(at(schema, "/z"), Reach::Impossible);
    }
}
