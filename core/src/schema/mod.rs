//! The JSON Schema subset: accept, validate, compare, example values (wire-format.md §6, S1–S6).
//!
//! [`Schema::accept`] is the only door: it refuses every keyword outside the subset, so that
//! what stands behind it (the `jsonschema` crate) never meets one, reads no other document and
//! matches every pattern in linear time.

mod accept;
mod built_in;
mod example;
mod expansion;
mod facts;
mod failure;
mod listing;
mod pattern;
mod prove;
mod reach;
mod reference;
mod sample;
mod secret;

use std::{collections::BTreeMap, sync::OnceLock};

use jsonschema::Validator;

pub use built_in::{BUILT_IN, built_in};
pub use prove::compare;
pub(crate) use prove::{COMPARISON_STEPS, compare_within};

use crate::{
    code::Code,
    ids::Hash,
    value::{self, Map, Pointer, Value},
};

/// A schema that is inside the subset. Cheap to share (`Arc`); its validator is built on
/// first use, or on acceptance where there are patterns to judge.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    hash: Hash,
    measure: accept::Measure,
    holds_secret: bool,
    validator: OnceLock<Option<Validator>>,
    /// A matcher for each pattern of `patternProperties`.
    matchers: OnceLock<BTreeMap<String, Validator>>,
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

/// What all failures of one value may weigh together for them to be listed: a hostile pair of
/// schema and value could otherwise make gigabytes of them.
const LISTABLE: u64 = 50_000;

/// The same where only the first one is asked for.
const SORTABLE: u64 = 1_000;

/// Failures in one list at most, and the bytes of their paths and messages.
const LISTED: usize = 1_000;
const LISTED_BYTES: usize = 256 << 10;

impl Schema {
    /// Accepts a schema of the subset, or says everything that is wrong, sorted by pointer, then
    /// code.
    ///
    /// Faults are `schema.keyword-unsupported` (a keyword, format or kind of `$ref` outside S1 and
    /// S4), `schema.invalid` (a keyword's value is malformed, a `$ref` dangles),
    /// `schema.recursive`, `schema.too-deep`, `schema.too-large` (S2) and
    /// `schema.pattern-unsupported` (S3). A document over the size limit is judged no further.
    pub fn accept(document: &Value) -> Result<Self, Vec<Fault>> {
        let mut document = document.clone();
        value::normalise(&mut document).map_err(|error| {
            vec![Fault {
                code: Code::SchemaInvalid,
                pointer: error.pointer,
                message: error.detail,
            }]
        })?;
        let mut measure = accept::judge(&document)?;
        Ok(Self {
            hash: value::hash(&document),
            holds_secret: secret::marks(&document),
            validator: measure
                .validator
                .take()
                .map_or_else(OnceLock::new, |built| OnceLock::from(Some(built))),
            measure,
            document,
            matchers: OnceLock::new(),
        })
    }

    /// The document, normalised.
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
        self.validator()
            .is_some_and(|validator| validator.is_valid(value))
    }

    /// One entry per failing assertion, sorted by path, then keyword (G4); empty: it fits.
    ///
    /// At most the first 1,000 of them and 256 KiB. Where a large schema meets a large value, only
    /// one failure is given.
    #[must_use]
    pub fn validate(&self, value: &Value) -> Vec<Failure> {
        self.failures(value, LISTABLE)
    }

    /// One failing assertion, for those who need no more; `None`: it fits. Costs little more than
    /// [`Schema::is_valid`]. It is the first of [`Schema::validate`] where few are possible.
    #[must_use]
    pub fn first_failure(&self, value: &Value) -> Option<Failure> {
        self.failures(value, SORTABLE).into_iter().next()
    }

    fn failures(&self, value: &Value, most: u64) -> Vec<Failure> {
        let Some(validator) = self.validator() else {
            return vec![failure::unusable()];
        };
        if validator.is_valid(value) {
            return Vec::new();
        }
        if !listing::weighs_at_most(self, value, most) {
            let dear = listing::has_alternatives(&self.document)
                && !listing::weighs_at_most(self, value, LISTABLE);
            if dear {
                return vec![failure::somewhere()];
            }
            let first = validator.validate(value).err();
            return first.iter().map(failure::failure).collect();
        }
        let mut failures: Vec<_> = validator
            .iter_errors(value)
            .map(|error| failure::failure(&error))
            .collect();
        failures.sort();
        failures.dedup();
        let mut bytes = 0;
        let room = failures.iter().take(LISTED).take_while(|failure| {
            bytes += failure.path.len() + failure.message.len();
            bytes <= LISTED_BYTES
        });
        let fit = room.count().max(1);
        failures.truncate(fit);
        failures
    }

    /// Whether any place is `writeOnly` (S5).
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.holds_secret
    }

    /// The values at `writeOnly` places of a value, through any applicator that touches the place
    /// (S5), sorted by pointer. A secret inside a secret is not listed again.
    #[must_use]
    pub fn secrets<'v>(&self, value: &'v Value) -> Vec<(Pointer, &'v Value)> {
        if self.holds_secret {
            secret::find(self, value)
        } else {
            Vec::new()
        }
    }

    /// A value that fits, for fixtures and forms; `None` where none was found.
    #[must_use]
    pub fn example(&self) -> Option<Value> {
        example::example(self)
    }

    /// What is known about a place: `Impossible` and `Certain` only where it is proven. The schema
    /// in the answer stands for itself; it carries the definitions that it refers to.
    #[must_use]
    pub fn reach(&self, pointer: &Pointer) -> Reach {
        reach::reach(self, pointer)
    }

    /// A validator for a part of the document.
    fn part(&self, part: &Value) -> Option<Validator> {
        let whole = reach::with_definitions(self, part.clone());
        pattern::options(self.measure.patterns).build(&whole).ok()
    }

    /// `None` is a fault of ours: an accepted document always builds, which tests hold.
    fn validator(&self) -> Option<&Validator> {
        self.validator
            .get_or_init(|| {
                pattern::options(self.measure.patterns)
                    .build(&self.document)
                    .ok()
            })
            .as_ref()
    }

    /// Whether a member's name matches one of the patterns of `patternProperties`.
    fn matches(&self, pattern: &str, name: &str) -> bool {
        let matchers = self.matchers.get_or_init(|| {
            let compiled = self.measure.name_patterns.iter().filter_map(|pattern| {
                let matcher = pattern::compile(pattern, self.measure.patterns)?;
                Some((pattern.clone(), matcher))
            });
            compiled.collect()
        });
        matchers
            .get(pattern)
            .is_some_and(|matcher| matcher.is_valid(&Value::from(name)))
    }

    /// The schema that `$ref` names, where there is one.
    fn target(&self, keywords: &Map<String, Value>) -> Option<&Value> {
        reference::resolve(&self.document, keywords.get("$ref")?.as_str()?)
    }

    /// The schemas that one object's keywords apply to a member of this name.
    fn for_member<'s>(&'s self, keywords: &'s Map<String, Value>, name: &str) -> Vec<&'s Value> {
        let mut schemas = Vec::new();
        let below = |keyword| keywords.get(keyword).and_then(Value::as_object);
        schemas.extend(below("properties").and_then(|named| named.get(name)));
        for (pattern, schema) in below("patternProperties").into_iter().flatten() {
            if self.matches(pattern, name) {
                schemas.push(schema);
            }
        }
        if schemas.is_empty() {
            schemas.extend(keywords.get("additionalProperties"));
        }
        schemas
    }
}

/// The schema that one object's keywords apply to the item at an index, `contains` aside.
fn for_item(keywords: &Map<String, Value>, index: usize) -> Option<&Value> {
    let prefix = keywords.get("prefixItems").and_then(Value::as_array);
    prefix
        .and_then(|schemas| schemas.get(index))
        .or_else(|| keywords.get("items"))
}
