//! What several schemas together say about one value (S6): the ground of compare, reach and
//! example values. Everything here errs on one side only: it may know too little, and never
//! claims what one of the schemas does not say.

use std::collections::{BTreeMap, BTreeSet};

use super::{Schema, for_item};
use crate::value::{Map, Value};

/// A set of JSON types, `number` split into its integers and the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const OBJECT: Self = Self(4);
    pub(super) const ARRAY: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const INTEGER: Self = Self(32);
    pub(super) const FRACTION: Self = Self(64);
    pub(super) const NUMBER: Self = Self(32 | 64);
    pub(super) const ALL: Self = Self(127);
    /// Each type alone, containers first.
    pub(super) const EACH: [Self; 7] = [
        Self::OBJECT,
        Self::ARRAY,
        Self::STRING,
        Self::INTEGER,
        Self::FRACTION,
        Self::BOOLEAN,
        Self::NULL,
    ];

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "object" => Self::OBJECT,
            "array" => Self::ARRAY,
            "string" => Self::STRING,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            _ => Self(0),
        }
    }

    /// The types that a `type` keyword allows.
    pub(super) fn of_keyword(keyword: &Value) -> Self {
        match keyword {
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Self(0), |all, name| Self(all.0 | Self::named(name).0)),
            name => Self::named(name.as_str().unwrap_or_default()),
        }
    }

    /// The type of a normalised value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Object(_) => Self::OBJECT,
            Value::Array(_) => Self::ARRAY,
            Value::String(_) => Self::STRING,
            Value::Number(number) if number.is_f64() => Self::FRACTION,
            Value::Number(_) => Self::INTEGER,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// One end of a range of numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct End {
    pub(super) at: f64,
    pub(super) open: bool,
}

/// Schemas that all hold for one value. A `$ref` and the branches of `allOf` are taken apart.
#[derive(Clone, Default)]
pub(super) struct Facts<'s> {
    /// The keywords of every schema that holds, with the document that it belongs to.
    all: Vec<(&'s Schema, &'s Map<String, Value>)>,
    /// What was added, before it was taken apart.
    pub(super) added: Vec<&'s Value>,
    /// One of the schemas is `false`.
    pub(super) never: bool,
    /// Alternatives that a branch was chosen of, and conditions that were taken or left, by address.
    decided: BTreeSet<*const Value>,
}

impl<'s> Facts<'s> {
    /// Nothing but this schema.
    pub(super) fn of(owner: &'s Schema, schema: &'s Value) -> Self {
        let mut facts = Self::default();
        facts.add(owner, schema);
        facts
    }

    /// These, and one schema more.
    pub(super) fn and(&self, owner: &'s Schema, schema: &'s Value) -> Self {
        let mut facts = self.clone();
        facts.add(owner, schema);
        facts
    }

    pub(super) fn add(&mut self, owner: &'s Schema, schema: &'s Value) {
        self.added.push(schema);
        self.take_apart(owner, schema);
    }

    fn take_apart(&mut self, owner: &'s Schema, schema: &'s Value) {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => {
                self.never = true;
                return;
            }
            _ => return,
        };
        if self
            .all
            .iter()
            .any(|(_, known)| std::ptr::eq(*known, keywords))
        {
            return;
        }
        self.all.push((owner, keywords));
        if let Some(target) = owner.target(keywords) {
            self.take_apart(owner, target);
        }
        for branch in keywords
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.take_apart(owner, branch);
        }
    }

    pub(super) fn all(&self) -> &[(&'s Schema, &'s Map<String, Value>)] {
        &self.all
    }

    /// Every value of one keyword, with the document that it belongs to.
    pub(super) fn each(&self, keyword: &str) -> impl Iterator<Item = (&'s Schema, &'s Value)> {
        self.all
            .iter()
            .filter_map(move |(owner, keywords)| Some((*owner, keywords.get(keyword)?)))
    }

    /// The types that a value may have.
    pub(super) fn types(&self) -> Types {
        let named = self.each("type").fold(Types::ALL, |types, (_, names)| {
            types.and(Types::of_keyword(names))
        });
        match self.listed() {
            Some(values) => values
                .iter()
                .fold(Types(0), |types, value| Types(types.0 | Types::of(value).0))
                .and(named),
            None => named,
        }
    }

    /// The values of all `const` and `enum`; `None` where there is neither.
    fn listed(&self) -> Option<Vec<&'s Value>> {
        let constants = self
            .each("const")
            .map(|(_, value)| std::slice::from_ref(value));
        let lists = self
            .each("enum")
            .filter_map(|(_, list)| Some(list.as_array()?.as_slice()));
        let mut lists = constants.chain(lists);
        let mut values: Vec<_> = lists.next()?.iter().collect();
        for list in lists {
            values.retain(|value| list.contains(value));
        }
        Some(values)
    }

    /// All values that can fit, where they can be listed.
    pub(super) fn values(&self) -> Option<Vec<&'s Value>> {
        static NULL: Value = Value::Null;
        static FALSE: Value = Value::Bool(false);
        static TRUE: Value = Value::Bool(true);
        let types = self.types();
        if let Some(mut values) = self.listed() {
            values.retain(|value| Types::of(value).within(types));
            return Some(values);
        }
        let listable = Types(Types::NULL.0 | Types::BOOLEAN.0);
        types.within(listable).then(|| {
            let all = [&NULL, &FALSE, &TRUE];
            all.into_iter()
                .filter(|value| Types::of(value).within(types))
                .collect()
        })
    }

    /// The highest lower end of the numbers.
    pub(super) fn lower(&self) -> Option<End> {
        self.ends("minimum", "exclusiveMinimum").reduce(|a, b| {
            if b.at > a.at || (b.at == a.at && b.open) {
                b
            } else {
                a
            }
        })
    }

    /// The lowest upper end of the numbers.
    pub(super) fn upper(&self) -> Option<End> {
        self.ends("maximum", "exclusiveMaximum").reduce(|a, b| {
            if b.at < a.at || (b.at == a.at && b.open) {
                b
            } else {
                a
            }
        })
    }

    fn ends(&self, closed: &'static str, open: &'static str) -> impl Iterator<Item = End> {
        let of = |keyword, open| {
            self.each(keyword).filter_map(move |(_, limit)| {
                Some(End {
                    at: limit.as_f64()?,
                    open,
                })
            })
        };
        of(closed, false).chain(of(open, true))
    }

    /// The largest of a keyword that bounds a count from below.
    pub(super) fn at_least(&self, keyword: &str) -> u64 {
        self.each(keyword)
            .filter_map(|(_, limit)| limit.as_u64())
            .max()
            .unwrap_or(0)
    }

    /// The smallest of a keyword that bounds a count from above.
    pub(super) fn at_most(&self, keyword: &str) -> u64 {
        self.each(keyword)
            .filter_map(|(_, limit)| limit.as_u64())
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The members that an object must have.
    pub(super) fn required(&self) -> BTreeSet<&'s str> {
        self.each("required")
            .filter_map(|(_, names)| names.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// The members that some `properties` names.
    pub(super) fn named(&self) -> BTreeSet<&'s str> {
        self.each("properties")
            .filter_map(|(_, named)| named.as_object())
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect()
    }

    /// What holds for a member of this name, where an object has it.
    pub(super) fn member(&self, name: &str) -> Self {
        let mut facts = Self::default();
        for (owner, keywords) in &self.all {
            for schema in owner.for_member(keywords, name) {
                facts.add(owner, schema);
            }
        }
        facts
    }

    /// What holds for every member that no `properties` names.
    pub(super) fn other_member(&self) -> Self {
        let mut facts = Self::default();
        for (owner, keywords) in &self.all {
            // A pattern may take the name away from `additionalProperties`.
            if !keywords.contains_key("patternProperties")
                && let Some(schema) = keywords.get("additionalProperties")
            {
                facts.add(owner, schema);
            }
        }
        facts
    }

    /// What holds for the item at an index, where an array has it.
    pub(super) fn item(&self, index: usize) -> Self {
        let mut facts = Self::default();
        for (owner, keywords) in &self.all {
            if let Some(schema) = for_item(keywords, index) {
                facts.add(owner, schema);
            }
        }
        facts
    }

    /// How many items some `prefixItems` names; behind them all items are alike.
    pub(super) fn prefix(&self) -> usize {
        self.each("prefixItems")
            .filter_map(|(_, schemas)| schemas.as_array().map(Vec::len))
            .max()
            .unwrap_or(0)
    }

    /// For each `anyOf` and `oneOf` that is not decided yet, these facts with each of its
    /// branches: every value fits one of the branches.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = Vec<Self>> {
        self.each("anyOf")
            .chain(self.each("oneOf"))
            .filter(|(_, branches)| !self.decided.contains(&std::ptr::from_ref(*branches)))
            .filter_map(|(owner, branches)| {
                let decide = |branch| {
                    let mut facts = self.and(owner, branch);
                    facts.decided.insert(branches);
                    facts
                };
                Some(branches.as_array()?.iter().map(decide).collect())
            })
    }

    /// These facts with every `if` that is not decided yet taken, or left; `None` where there is
    /// none. A value of the answer need not fit: that the condition fails is not among the facts.
    pub(super) fn conditions(&self, taken: bool) -> Option<Self> {
        let open: Vec<_> = self
            .all
            .iter()
            .filter_map(|(owner, keywords)| Some((*owner, *keywords, keywords.get("if")?)))
            .filter(|(_, _, condition)| !self.decided.contains(&std::ptr::from_ref(*condition)))
            .collect();
        let mut facts = (!open.is_empty()).then(|| self.clone())?;
        for (owner, keywords, condition) in open {
            facts.decided.insert(condition);
            let holds = if taken {
                [Some(condition), keywords.get("then")]
            } else {
                [keywords.get("else"), None]
            };
            holds
                .into_iter()
                .flatten()
                .for_each(|schema| facts.add(owner, schema));
        }
        Some(facts)
    }

    /// Whether one schema has all of these keywords with equal values, and no `$ref` in them
    /// that could name something else.
    pub(super) fn says(&self, owner: &Schema, keywords: &BTreeMap<&str, Option<&Value>>) -> bool {
        self.all.iter().any(|(known_by, known)| {
            keywords.iter().all(|(keyword, value)| {
                known.get(*keyword) == *value
                    && (std::ptr::eq(*known_by, owner) || !value.is_some_and(refers))
            })
        })
    }
}

/// Whether a `$ref` stands anywhere in a value.
pub(super) fn refers(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(refers),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}
