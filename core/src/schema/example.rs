//! Small values that fit (S6's neighbour in the npm table, §11): built from what the schema
//! says, then judged by its validator, so that a value that is given does fit.

use std::cell::Cell;

use super::{
    Schema,
    facts::{Facts, Types},
    sample,
};
use crate::value::{Map, Value, normalise};

/// How many ways of choosing among alternatives are tried.
const WAYS: usize = 12;
/// Values that one way may make, which bounds an example's size.
const VALUES: u32 = 2_000;
/// Items and members that a bound from below may ask for.
const MANY: u64 = 1_000;

/// A value that fits; `None` where no way led to one.
pub(super) fn example(schema: &Schema) -> Option<Value> {
    (0..WAYS).find_map(|way| {
        let maker = Maker {
            way,
            left: Cell::new(VALUES),
        };
        let facts = Facts::of(schema, schema.document());
        let mut value = maker.value(&facts, 0)?;
        normalise(&mut value).ok()?;
        schema.is_valid(&value).then_some(value)
    })
}

struct Maker {
    way: usize,
    left: Cell<u32>,
}

impl Maker {
    /// A value for the facts; `salt` makes values of the same facts different.
    fn value(&self, facts: &Facts<'_>, salt: usize) -> Option<Value> {
        self.left.set(self.left.get().checked_sub(1)?);
        if facts.never {
            return None;
        }
        // The author's own examples first, but for a way or two in case they do not fit.
        if self.way < 2
            && salt == 0
            && let Some(given) = given(facts)
        {
            return Some(given.clone());
        }
        if let Some(values) = facts.values() {
            let at = (self.way + salt) % values.len().max(1);
            return values.get(at).map(|value| (*value).clone());
        }
        let chosen = facts.alternatives().next().and_then(|mut branches| {
            branches.retain(|branch| !branch.never);
            let at = self.way % branches.len().max(1);
            branches.into_iter().nth(at)
        });
        if let Some(chosen) = chosen {
            return self.value(&chosen, salt);
        }
        // Each `if` is taken on even ways, with its `then`, and left on odd ones, with its `else`.
        if let Some(chosen) = facts.conditions(self.way.is_multiple_of(2)) {
            return self.value(&chosen, salt);
        }
        match self.kind(facts)? {
            Types::OBJECT => self.object(facts, salt),
            Types::ARRAY => self.array(facts, salt),
            Types::STRING => sample::text(facts, salt, self.way >= WAYS / 2).map(Value::from),
            // The later ways look behind a number that something excludes.
            Types::INTEGER => sample::integer(facts, salt + self.way.saturating_sub(WAYS / 2)),
            Types::FRACTION => sample::fraction(facts),
            _ => None,
        }
    }

    /// The type to make: the one that the keywords speak of, else the first that may be.
    fn kind(&self, facts: &Facts<'_>) -> Option<Types> {
        let types = facts.types();
        let spoken = [
            (
                Types::OBJECT,
                &[
                    "properties",
                    "required",
                    "additionalProperties",
                    "minProperties",
                ][..],
            ),
            (
                Types::ARRAY,
                &["items", "prefixItems", "contains", "minItems"],
            ),
            (
                Types::STRING,
                &["minLength", "maxLength", "pattern", "format"],
            ),
            (
                Types::INTEGER,
                &[
                    "minimum",
                    "maximum",
                    "multipleOf",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                ],
            ),
        ];
        let speaks = |(one, words): &(Types, &[&str])| {
            types.meets(*one) && words.iter().any(|word| facts.each(word).next().is_some())
        };
        let first = spoken.iter().find(|row| speaks(row)).map(|(one, _)| *one);
        let rest: Vec<_> = Types::EACH
            .into_iter()
            .filter(|one| types.meets(*one))
            .collect();
        if self.way < WAYS / 2 {
            return first.or_else(|| rest.first().copied());
        }
        rest.get(self.way % rest.len().max(1)).copied()
    }

    fn object(&self, facts: &Facts<'_>, salt: usize) -> Option<Value> {
        let mut members = Map::new();
        for name in facts.required() {
            members.insert(name.to_owned(), self.value(&facts.member(name), salt)?);
        }
        let most = facts.at_most("maxProperties");
        // An optional member shows what may stand there; the last ways do without.
        for name in facts.named() {
            let wanted = self.way < WAYS / 2 && (members.len() as u64) < most;
            if wanted
                && !members.contains_key(name)
                && let Some(value) = self.value(&facts.member(name), salt)
            {
                members.insert(name.to_owned(), value);
            }
        }
        for (_, lists) in facts.each("dependentRequired") {
            for (name, needed) in lists.as_object().into_iter().flatten() {
                for needed in needed
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                {
                    if members.contains_key(name) && !members.contains_key(needed) {
                        members.insert(needed.to_owned(), self.value(&facts.member(needed), 0)?);
                    }
                }
            }
        }
        let least = facts.at_least("minProperties").min(MANY) as usize;
        for salt in 0..least {
            if members.len() < least {
                let name = self.name(facts, salt)?;
                let value = self.value(&facts.member(&name), 0)?;
                members.insert(name, value);
            }
        }
        Some(Value::Object(members))
    }

    /// A name that no `properties` names: on even ways one that a pattern asks for, else any.
    fn name(&self, facts: &Facts<'_>, salt: usize) -> Option<String> {
        let mut names = Facts::default();
        for (owner, schema) in facts.each("propertyNames") {
            names.add(owner, schema);
        }
        let mut patterns = facts
            .each("patternProperties")
            .filter_map(|(_, patterns)| patterns.as_object())
            .flat_map(Map::keys);
        match patterns.next() {
            Some(pattern) if self.way.is_multiple_of(2) => {
                sample::matching(pattern, salt, (0, u64::MAX))
            }
            _ => sample::text(&names, salt + 1, false),
        }
    }

    fn array(&self, facts: &Facts<'_>, salt: usize) -> Option<Value> {
        let most = facts.at_most("maxItems");
        let least = facts.at_least("minItems");
        // One item shows what may stand there; the last ways do without.
        let shown = u64::from(self.way < WAYS / 2 && facts.each("items").next().is_some());
        let shown = shown.max(if self.way < WAYS / 2 {
            facts.prefix() as u64
        } else {
            0
        });
        let contained: Vec<_> = facts
            .all()
            .iter()
            .filter_map(|(owner, keywords)| {
                let least = keywords.get("minContains").map_or(Some(1), Value::as_u64)?;
                Some((*owner, keywords.get("contains")?, least.min(MANY)))
            })
            .collect();
        let needed: u64 = contained.iter().map(|(_, _, least)| *least).sum();
        let count = least.max(shown).max(needed).min(most).min(MANY);
        let mut wanted = contained
            .iter()
            .flat_map(|(owner, schema, least)| (0..*least).map(|_| (*owner, *schema)));
        // Items are made different only where they must be.
        let unique = facts.each("uniqueItems").any(|(_, word)| *word == true);
        let mut items = Vec::new();
        for index in 0..usize::try_from(count).ok()? {
            let plain = facts.item(index);
            let salt = if unique { salt + index } else { salt };
            let item = match wanted.next() {
                Some((owner, schema)) => self.value(&plain.and(owner, schema), salt)?,
                None => match self.value(&plain, salt) {
                    Some(item) => item,
                    None if index as u64 >= least => break,
                    None => return None,
                },
            };
            items.push(item);
        }
        Some(Value::Array(items))
    }
}

/// What an author gave as an example or default.
fn given<'s>(facts: &Facts<'s>) -> Option<&'s Value> {
    let examples = facts
        .each("examples")
        .filter_map(|(_, list)| list.as_array()?.first());
    examples
        .chain(facts.each("default").map(|(_, value)| value))
        .next()
}
