//! Which JSON types a value can have, as far as literals and schemas alone show (L6).

use std::fmt;

use crate::value::Value;

/// A set of JSON types. Integers are numbers (J5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const NUMBER: Self = Self(1 << 2);
    pub(super) const STRING: Self = Self(1 << 3);
    pub(super) const ARRAY: Self = Self(1 << 4);
    pub(super) const OBJECT: Self = Self(1 << 5);
    pub(super) const ANY: Self = Self(0b11_1111);

    /// The type of one value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Every type that a value fitting `schema` may have. Only keywords that speak of the
    /// whole value are read; what another keyword would exclude stays possible, so an
    /// answer errs towards run time (S6).
    pub(super) fn of_schema(schema: &Value) -> Self {
        let members = match schema {
            Value::Bool(false) => return Self::NONE,
            Value::Object(members) => members,
            _ => return Self::ANY,
        };
        let union = |schemas: &[Value]| {
            schemas
                .iter()
                .fold(Self::NONE, |all, one| all.or(Self::of_schema(one)))
        };
        members.iter().fold(Self::ANY, |all, (keyword, argument)| {
            all.and(match (keyword.as_str(), argument) {
                ("type", Value::String(name)) => Self::named(name),
                ("type", Value::Array(names)) => names
                    .iter()
                    .filter_map(Value::as_str)
                    .fold(Self::NONE, |types, name| types.or(Self::named(name))),
                ("const", value) => Self::of(value),
                ("enum", Value::Array(values)) => values
                    .iter()
                    .fold(Self::NONE, |types, value| types.or(Self::of(value))),
                ("anyOf" | "oneOf", Value::Array(schemas)) => union(schemas),
                ("allOf", Value::Array(schemas)) => schemas
                    .iter()
                    .fold(Self::ANY, |types, one| types.and(Self::of_schema(one))),
                _ => Self::ANY,
            })
        })
    }

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "number" | "integer" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether no value can be of both sets.
    pub(super) fn excludes(self, other: Self) -> bool {
        self.and(other) == Self::NONE
    }

    /// Whether no value can have any of these types.
    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

/// With articles: `a number`, `a string or null`.
impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::BOOLEAN, "a boolean"),
            (Self::NUMBER, "a number"),
            (Self::STRING, "a string"),
            (Self::ARRAY, "an array"),
            (Self::OBJECT, "an object"),
            (Self::NULL, "null"),
        ];
        let mut separator = "";
        for (types, name) in names {
            if !self.excludes(types) {
                write!(f, "{separator}{name}")?;
                separator = " or ";
            }
        }
        Ok(())
    }
}
