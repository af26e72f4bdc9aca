//! Proofs about schemas (S6): that no value fits, and that every value fits. What is not
//! proven is not known; a proof that would take long is given up.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::{
    Compatibility, Schema,
    facts::{End, Facts, Types},
};
use crate::value::{Map, Value};

/// Steps that one proof may take, which bounds a hostile pair of schemas to milliseconds.
const STEPS: u32 = 2_000;
/// Steps that one comparison may take: it tries two proofs.
pub(crate) const COMPARISON_STEPS: u32 = 2 * STEPS;
/// How deep one proof may lean on another.
const DEPTH: u32 = 48;

/// Compares by S6; refuses only what is certainly wrong.
///
/// `Compatible` is a proof that every value of the source fits the target, `Incompatible` a proof
/// that none does (a source without any value counts as compatible). Sound, not complete.
#[must_use]
pub fn compare(source: &Schema, target: &Schema) -> Compatibility {
    let mut steps = u32::MAX;
    compare_within(source, target, &mut steps)
}

/// As [`compare`], taking its steps from a stock that many comparisons share; with none left
/// nothing is proven.
pub(crate) fn compare_within(source: &Schema, target: &Schema, stock: &mut u32) -> Compatibility {
    if source.document() == target.document() {
        return Compatibility::Compatible;
    }
    let mut proven = |proof: &dyn Fn(&Prover) -> bool| {
        let prover = Prover::with((*stock).min(STEPS));
        let before = prover.steps.get();
        let proven = proof(&prover);
        *stock -= before - prover.steps.get();
        proven
    };
    let facts = Facts::of(source, source.document());
    if proven(&|prover| prover.fits(&facts, target, target.document())) {
        Compatibility::Compatible
    } else if proven(&|prover| prover.empty(&facts.and(target, target.document()))) {
        Compatibility::Incompatible
    } else {
        Compatibility::Unknown
    }
}

pub(super) struct Prover {
    steps: Cell<u32>,
    depth: Cell<u32>,
}

impl Prover {
    pub(super) fn new() -> Self {
        Self::with(STEPS)
    }

    fn with(steps: u32) -> Self {
        Self {
            steps: Cell::new(steps),
            depth: Cell::new(0),
        }
    }

    /// A step of a proof; `false` (nothing proven) when too many were taken.
    fn step(&self, proof: impl FnOnce() -> bool) -> bool {
        if self.steps.get() == 0 || self.depth.get() == DEPTH {
            return false;
        }
        self.steps.set(self.steps.get() - 1);
        self.depth.set(self.depth.get() + 1);
        let proven = proof();
        self.depth.set(self.depth.get() - 1);
        proven
    }

    /// Whether it is certain that no value fits.
    pub(super) fn empty(&self, facts: &Facts<'_>) -> bool {
        facts.never || self.step(|| self.empty_by_keywords(facts))
    }

    fn empty_by_keywords(&self, facts: &Facts<'_>) -> bool {
        let types = facts.types();
        if let Some(values) = facts.values()
            && values.iter().all(|value| refutes(facts, value))
        {
            return true;
        }
        let alive = |one: &Types| types.meets(*one) && !self.dead(facts, *one);
        if !Types::EACH.iter().any(alive) {
            return true;
        }
        if facts
            .each("not")
            .any(|(owner, schema)| self.fits_by_keywords(facts, owner, schema))
        {
            return true;
        }
        facts
            .alternatives()
            .any(|branches| branches.iter().all(|branch| self.empty(branch)))
    }

    /// Whether no value of this type fits.
    fn dead(&self, facts: &Facts<'_>, one: Types) -> bool {
        let crossed = |min, max| facts.at_least(min) > facts.at_most(max);
        match one {
            Types::OBJECT => {
                let required = facts.required();
                crossed("minProperties", "maxProperties")
                    || required.len() as u64 > facts.at_most("maxProperties")
                    || required.iter().any(|name| self.empty(&facts.member(name)))
            }
            Types::ARRAY => {
                let needed = facts.at_least("minItems").min(facts.prefix() as u64 + 1);
                crossed("minItems", "maxItems")
                    || (0..usize::try_from(needed).unwrap_or(0))
                        .any(|index| self.empty(&facts.item(index)))
            }
            Types::STRING => crossed("minLength", "maxLength"),
            Types::INTEGER => match (facts.lower(), facts.upper()) {
                (Some(lower), Some(upper)) => first_integer(lower) > last_integer(upper),
                _ => false,
            },
            Types::FRACTION => {
                let whole = |(_, step): (&Schema, &Value)| {
                    step.as_f64().is_some_and(|step| step.fract() == 0.0)
                };
                facts.each("multipleOf").any(whole)
                    || match (facts.lower(), facts.upper()) {
                        (Some(lower), Some(upper)) => {
                            lower.at > upper.at
                                || (lower.at == upper.at
                                    && (lower.open || upper.open || lower.at.fract() == 0.0))
                        }
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    /// Whether it is certain that every value of the facts fits a schema.
    pub(super) fn fits(&self, facts: &Facts<'_>, owner: &Schema, schema: &Value) -> bool {
        *schema == Value::Bool(true)
            || self.step(|| self.fits_by_keywords(facts, owner, schema) || self.empty(facts))
    }

    /// As [`Self::fits`], without asking whether there is any value at all.
    fn fits_by_keywords(&self, facts: &Facts<'_>, owner: &Schema, schema: &Value) -> bool {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            other => return *other == Value::Bool(true) || facts.never,
        };
        if let Some(values) = facts.values()
            && let Some(validator) = self.validator(owner, schema)
            && values.iter().all(|value| validator.is_valid(value))
        {
            return true;
        }
        let implied = |(keyword, value): (&String, &Value)| {
            self.implied(facts, owner, keywords, keyword, value)
        };
        self.step(|| {
            keywords.iter().all(implied)
                || facts.alternatives().any(|branches| {
                    let fits = |branch| self.fits(branch, owner, schema);
                    branches.iter().all(fits)
                })
        })
    }

    /// A validator for a part of a document. Building one costs as much as many steps.
    fn validator(&self, owner: &Schema, schema: &Value) -> Option<jsonschema::Validator> {
        let left = self.steps.get().checked_sub(20)?;
        self.steps.set(left);
        owner.part(schema)
    }

    fn implied(
        &self,
        facts: &Facts<'_>,
        owner: &Schema,
        keywords: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> bool {
        let types = facts.types();
        let branches = || value.as_array().into_iter().flatten();
        match keyword {
            "type" => types.within(Types::of_keyword(value)),
            "$ref" => owner
                .target(keywords)
                .is_some_and(|target| self.fits(facts, owner, target)),
            "allOf" => branches().all(|branch| self.fits(facts, owner, branch)),
            "anyOf" => {
                facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
                    || branches().any(|branch| self.fits(facts, owner, branch))
            }
            "oneOf" => {
                facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
                    || self.fits_one(facts, owner, branches().collect())
            }
            // The facts have the life of their own documents, the schema has another.
            "not" => {
                facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
                    || self.excludes(facts, owner, value)
            }
            "if" => {
                same(facts, owner, keywords, &["if", "then", "else"])
                    || ["then", "else"]
                        .iter()
                        .filter_map(|name| keywords.get(*name))
                        .all(|branch| self.fits(facts, owner, branch))
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                !types.meets(Types::NUMBER) || implied_number(facts, types, keyword, value)
            }
            "minLength" | "maxLength" | "pattern" | "format" => {
                !types.meets(Types::STRING)
                    || implied_count(facts, keyword, value)
                    || facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
            }
            "minItems" | "maxItems" | "uniqueItems" | "items" | "prefixItems" | "contains" => {
                !types.meets(Types::ARRAY)
                    || self.implied_array(facts, owner, keywords, keyword, value)
            }
            "required"
            | "dependentRequired"
            | "minProperties"
            | "maxProperties"
            | "propertyNames"
            | "properties"
            | "patternProperties"
            | "additionalProperties" => {
                !types.meets(Types::OBJECT)
                    || self.implied_object(facts, owner, keywords, keyword, value)
            }
            // What can be listed was asked before the keywords.
            "enum" | "const" => facts.says(owner, &BTreeMap::from([(keyword, Some(value))])),
            // Annotations, `$defs`, and what `if` and `contains` have looked at.
            _ => true,
        }
    }

    fn fits_one(&self, facts: &Facts<'_>, owner: &Schema, branches: Vec<&Value>) -> bool {
        let fitting: Vec<_> = branches
            .iter()
            .map(|branch| self.fits(facts, owner, branch))
            .collect();
        fitting.iter().filter(|fits| **fits).count() == 1
            && branches
                .iter()
                .zip(&fitting)
                .all(|(branch, fits)| *fits || self.excludes(facts, owner, branch))
    }

    /// Whether no value of the facts fits a schema.
    fn excludes(&self, facts: &Facts<'_>, owner: &Schema, schema: &Value) -> bool {
        self.empty(&facts.and(owner, schema))
    }

    fn implied_array(
        &self,
        facts: &Facts<'_>,
        owner: &Schema,
        keywords: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> bool {
        let at = |schema: &Value, index| self.fits(&facts.item(index), owner, schema);
        let most = usize::try_from(facts.at_most("maxItems")).unwrap_or(usize::MAX);
        match keyword {
            "uniqueItems" => {
                *value == Value::Bool(false)
                    || most <= 1
                    || facts
                        .each("uniqueItems")
                        .any(|(_, unique)| *unique == Value::Bool(true))
            }
            "prefixItems" => {
                let schemas = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .take(most);
                schemas.into_iter().all(|(index, schema)| at(schema, index))
            }
            "items" => {
                let from = keywords
                    .get("prefixItems")
                    .and_then(Value::as_array)
                    .map_or(0, Vec::len);
                // Behind the longest prefix all items are alike.
                let to = facts.prefix().max(from);
                (from..=to)
                    .take_while(|index| *index < most)
                    .all(|index| at(value, index))
            }
            "contains" => {
                let least = keywords.get("minContains").and_then(Value::as_u64);
                (least == Some(0) && !keywords.contains_key("maxContains"))
                    || same(
                        facts,
                        owner,
                        keywords,
                        &["contains", "minContains", "maxContains"],
                    )
            }
            _ => implied_count(facts, keyword, value),
        }
    }

    fn implied_object(
        &self,
        facts: &Facts<'_>,
        owner: &Schema,
        keywords: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> bool {
        let required = facts.required();
        let names = |list: &Value| {
            let mut names = list
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            names.all(|name| required.contains(name))
        };
        match keyword {
            "required" => names(value),
            "dependentRequired" => {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(name, list)| names(list) || self.empty(&facts.member(name)))
                    || facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
            }
            "propertyNames" => {
                *value == Value::Bool(true)
                    || facts.says(owner, &BTreeMap::from([(keyword, Some(value))]))
            }
            "minProperties" => {
                implied_count(facts, keyword, value)
                    || value
                        .as_u64()
                        .is_some_and(|least| required.len() as u64 >= least)
            }
            "maxProperties" => {
                implied_count(facts, keyword, value)
                    || (facts.other_member().never
                        && value
                            .as_u64()
                            .is_some_and(|most| facts.named().len() as u64 <= most))
            }
            "properties" => value
                .as_object()
                .into_iter()
                .flatten()
                .all(|(name, schema)| self.fits(&facts.member(name), owner, schema)),
            _ => self.implied_others(facts, owner, keywords, keyword, value),
        }
    }

    /// `patternProperties` and `additionalProperties`: every name that someone names is asked
    /// for itself, all others together.
    fn implied_others(
        &self,
        facts: &Facts<'_>,
        owner: &Schema,
        keywords: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> bool {
        let own = keywords.get("properties").and_then(Value::as_object);
        let mut names = facts.named();
        names.extend(own.into_iter().flat_map(Map::keys).map(String::as_str));
        let named = names.into_iter().all(|name| {
            owner
                .for_member(keywords, name)
                .into_iter()
                .all(|schema| self.fits(&facts.member(name), owner, schema))
        });
        let others = facts.other_member();
        let fits = |schema| self.fits(&others, owner, schema);
        named
            && if keyword == "patternProperties" {
                value
                    .as_object()
                    .into_iter()
                    .flat_map(Map::values)
                    .all(fits)
            } else {
                fits(value)
            }
    }
}

/// Whether one schema says the same with all of these keywords, absent ones absent.
fn same(
    facts: &Facts<'_>,
    owner: &Schema,
    keywords: &Map<String, Value>,
    names: &[&'static str],
) -> bool {
    let values = names.iter().map(|name| (*name, keywords.get(*name)));
    facts.says(owner, &values.collect())
}

fn implied_count(facts: &Facts<'_>, keyword: &str, value: &Value) -> bool {
    let Some(limit) = value.as_u64() else {
        return false;
    };
    if keyword.starts_with("min") {
        facts.at_least(keyword) >= limit
    } else {
        facts.at_most(keyword) <= limit
    }
}

fn implied_number(facts: &Facts<'_>, types: Types, keyword: &str, value: &Value) -> bool {
    let Some(limit) = value.as_f64() else {
        return false;
    };
    let integers = !types.meets(Types::FRACTION);
    let (lower, upper) = (facts.lower(), facts.upper());
    match keyword {
        "minimum" => {
            lower.is_some_and(|end| end.at >= limit || (integers && first_integer(end) >= limit))
        }
        "exclusiveMinimum" => lower.is_some_and(|end| {
            end.at > limit
                || (end.at == limit && end.open)
                || (integers && first_integer(end) > limit)
        }),
        "maximum" => {
            upper.is_some_and(|end| end.at <= limit || (integers && last_integer(end) <= limit))
        }
        "exclusiveMaximum" => upper.is_some_and(|end| {
            end.at < limit
                || (end.at == limit && end.open)
                || (integers && last_integer(end) < limit)
        }),
        _ => {
            // Only whole steps: the arithmetic of the others is not exact.
            let multiple = |(_, step): (&Schema, &Value)| {
                step == value
                    || step
                        .as_u64()
                        .zip(value.as_u64())
                        .is_some_and(|(step, wanted)| step % wanted == 0)
            };
            (integers && limit == 1.0) || facts.each("multipleOf").any(multiple)
        }
    }
}

/// The smallest integer above a lower end.
fn first_integer(lower: End) -> f64 {
    let first = lower.at.ceil();
    if lower.open && first == lower.at {
        first + 1.0
    } else {
        first
    }
}

/// The largest integer below an upper end.
fn last_integer(upper: End) -> f64 {
    let last = upper.at.floor();
    if upper.open && last == upper.at {
        last - 1.0
    } else {
        last
    }
}

/// Whether a value certainly does not fit the facts, by what can be seen without a validator.
fn refutes(facts: &Facts<'_>, value: &Value) -> bool {
    let counted = |count: usize, min, max| {
        let count = count as u64;
        count < facts.at_least(min) || count > facts.at_most(max)
    };
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| {
            facts
                .lower()
                .is_some_and(|end| number < end.at || (end.open && number == end.at))
                || facts
                    .upper()
                    .is_some_and(|end| number > end.at || (end.open && number == end.at))
        }),
        Value::String(text) => counted(text.chars().count(), "minLength", "maxLength"),
        Value::Array(items) => {
            counted(items.len(), "minItems", "maxItems")
                || items.iter().enumerate().any(|(index, item)| {
                    let facts = facts.item(index);
                    facts.never || !Types::of(item).meets(facts.types()) || refutes(&facts, item)
                })
        }
        Value::Object(members) => {
            counted(members.len(), "minProperties", "maxProperties")
                || facts
                    .required()
                    .iter()
                    .any(|name| !members.contains_key(*name))
                || members.iter().any(|(name, member)| {
                    let facts = facts.member(name);
                    facts.never
                        || !Types::of(member).meets(facts.types())
                        || refutes(&facts, member)
                })
        }
        _ => false,
    }
}
