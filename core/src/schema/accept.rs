//! The accept-list (S1–S4): what is outside the subset is refused by keyword and pointer.

use std::collections::BTreeMap;

use super::{
    Fault,
    expansion::{self, Place},
    failure::quoted,
    pattern, reference,
};
use crate::{
    code::Code,
    limits::Limits,
    value::{Value, canonical_len, escape},
};

/// The one dialect (S1).
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The formats that are asserted (S4).
pub(super) const FORMATS: [&str; 8] = [
    "date",
    "date-time",
    "email",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
];

/// The names of `type`.
pub(super) const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// What a keyword's value must look like.
#[derive(Clone, Copy)]
enum Shape {
    Anything,
    Text,
    Flag,
    /// An integer from 0.
    Count,
    Number,
    PositiveNumber,
    /// An array of anything.
    List,
    /// An array of different strings.
    Names,
    /// An object of arrays of different strings.
    NamesByName,
    Types,
    Dialect,
    Format,
    Pattern,
    Reference,
    Schema,
    /// An array of at least one schema.
    Schemas,
    SchemaByName,
    SchemaByPattern,
    /// Schemas that apply only where a `$ref` names them.
    Definitions,
}

/// The subset (S1): every keyword and the shape of its value; `None` for all others.
fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "type" => Shape::Types,
        "const" | "default" => Shape::Anything,
        "enum" | "examples" => Shape::List,
        "properties" => Shape::SchemaByName,
        "patternProperties" => Shape::SchemaByPattern,
        "additionalProperties"
        | "propertyNames"
        | "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else" => Shape::Schema,
        "prefixItems" | "allOf" | "anyOf" | "oneOf" => Shape::Schemas,
        "required" => Shape::Names,
        "dependentRequired" => Shape::NamesByName,
        "minProperties" | "maxProperties" | "minContains" | "maxContains" | "minItems"
        | "maxItems" | "minLength" | "maxLength" => Shape::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Shape::Flag,
        "pattern" => Shape::Pattern,
        "format" => Shape::Format,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Shape::Number,
        "multipleOf" => Shape::PositiveNumber,
        "$defs" => Shape::Definitions,
        "$ref" => Shape::Reference,
        "$schema" => Shape::Dialect,
        "$comment" | "title" | "description" => Shape::Text,
        _ => return None,
    })
}

/// What is worth keeping of an accepted document.
#[derive(Debug)]
pub(super) struct Measure {
    /// How many patterns it holds, which bounds the size of each.
    pub(super) patterns: usize,
    /// The patterns of `patternProperties`.
    pub(super) name_patterns: Vec<String>,
    /// The validator, where patterns had to be compiled to judge them.
    pub(super) validator: Option<jsonschema::Validator>,
}

/// Judges a whole document. No faults: the document is inside the subset, refers only to
/// itself, ends, and is small.
///
/// The faults are sorted by pointer, then code.
pub(super) fn judge(document: &Value) -> Result<Measure, Vec<Fault>> {
    if canonical_len(document) > Limits::SCHEMA_BYTES {
        return Err(vec![Fault {
            code: Code::SchemaTooLarge,
            pointer: String::new(),
            message: format!(
                "the schema has more than {} bytes in canonical form; split or shorten it",
                Limits::SCHEMA_BYTES
            ),
        }]);
    }
    let mut walk = Walk::default();
    walk.schema(document, String::new());
    expansion::judge(&walk.places, &mut walk.faults);
    let validator = walk.validator(document);
    let mut faults = walk.faults;
    if faults.is_empty() {
        return Ok(Measure {
            validator,
            patterns: walk.patterns.len(),
            name_patterns: walk.name_patterns,
        });
    }
    faults.sort_by(|a, b| {
        (a.pointer.as_str(), a.code.as_str()).cmp(&(b.pointer.as_str(), b.code.as_str()))
    });
    Err(faults)
}

#[derive(Default)]
struct Walk<'d> {
    faults: Vec<Fault>,
    /// Every subschema by its pointer; a `$ref` may name only these.
    places: BTreeMap<String, Place>,
    /// Every pattern and where it stands.
    patterns: Vec<(&'d str, String)>,
    name_patterns: Vec<String>,
}

impl<'d> Walk<'d> {
    fn fault(&mut self, code: Code, pointer: &str, message: impl Into<String>) {
        self.faults.push(Fault {
            code,
            pointer: pointer.to_owned(),
            message: message.into(),
        });
    }

    fn invalid(&mut self, pointer: &str, needed: &str) {
        self.fault(
            Code::SchemaInvalid,
            pointer,
            format!("{needed} is needed here"),
        );
    }

    /// Recursion follows the nesting of the document, which J4 bounds.
    fn schema(&mut self, schema: &'d Value, pointer: String) {
        let mut place = Place::default();
        match schema {
            Value::Bool(_) => {}
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let below = format!("{pointer}/{}", escape(keyword));
                    match shape(keyword) {
                        Some(Shape::Dialect) if !pointer.is_empty() => self.fault(
                            Code::SchemaInvalid,
                            &below,
                            "\"$schema\" stands only at the root of a schema",
                        ),
                        Some(shape) => self.keyword(shape, value, &below, &mut place),
                        None => self.fault(
                            Code::SchemaKeywordUnsupported,
                            &below,
                            format!(
                                "the keyword {} is not supported; remove it",
                                quoted(keyword)
                            ),
                        ),
                    }
                }
            }
            _ => self.invalid(&pointer, "a schema (an object, true or false)"),
        }
        self.places.insert(pointer, place);
    }

    fn keyword(&mut self, shape: Shape, value: &'d Value, pointer: &str, place: &mut Place) {
        match shape {
            Shape::Anything => {}
            Shape::Schema => self.child(value, pointer.to_owned(), place),
            Shape::Schemas => match value.as_array().filter(|items| !items.is_empty()) {
                Some(items) => {
                    for (i, item) in items.iter().enumerate() {
                        self.child(item, format!("{pointer}/{i}"), place);
                    }
                }
                None => self.invalid(pointer, "an array of at least one schema"),
            },
            Shape::SchemaByName => self.members(value, pointer, |walk, name, schema| {
                walk.child(schema, format!("{pointer}/{}", escape(name)), place);
            }),
            Shape::SchemaByPattern => self.members(value, pointer, |walk, name, schema| {
                let below = format!("{pointer}/{}", escape(name));
                walk.patterns.push((name, below.clone()));
                walk.name_patterns.push(name.to_owned());
                walk.child(schema, below, place);
            }),
            Shape::Definitions => self.members(value, pointer, |walk, name, schema| {
                walk.schema(schema, format!("{pointer}/{}", escape(name)));
            }),
            Shape::NamesByName => self.members(value, pointer, |walk, name, names| {
                if !different_names(names) {
                    walk.invalid(
                        &format!("{pointer}/{}", escape(name)),
                        "an array of different strings",
                    );
                }
            }),
            Shape::Pattern => match value.as_str() {
                Some(text) => self.patterns.push((text, pointer.to_owned())),
                None => self.invalid(pointer, "a string with a regular expression"),
            },
            Shape::Reference => self.reference(value, pointer, place),
            Shape::Format => match value.as_str() {
                Some(name) if FORMATS.contains(&name) => {}
                Some(name) => self.fault(
                    Code::SchemaKeywordUnsupported,
                    pointer,
                    format!(
                        "the format {} is not supported; supported: {}",
                        quoted(name),
                        FORMATS.join(", ")
                    ),
                ),
                None => self.invalid(pointer, "the name of a format"),
            },
            Shape::Dialect => match value
                .as_str()
                .map(|text| text.strip_suffix('#').unwrap_or(text))
            {
                Some(DIALECT) => {}
                Some(_) => self.fault(
                    Code::SchemaInvalid,
                    pointer,
                    format!("the only dialect is {DIALECT:?}"),
                ),
                None => self.invalid(pointer, "a string"),
            },
            plain => {
                if let Some(needed) = plain_fault(plain, value) {
                    self.invalid(pointer, needed);
                }
            }
        }
    }

    fn child(&mut self, schema: &'d Value, pointer: String, place: &mut Place) {
        place.children.push(pointer.clone());
        self.schema(schema, pointer);
    }

    fn members(
        &mut self,
        value: &'d Value,
        pointer: &str,
        mut each: impl FnMut(&mut Self, &'d str, &'d Value),
    ) {
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(name, member)| each(self, name, member)),
            _ => self.invalid(pointer, "an object"),
        }
    }

    fn reference(&mut self, value: &Value, pointer: &str, place: &mut Place) {
        let Some(text) = value.as_str() else {
            return self.invalid(pointer, "a string");
        };
        match reference::target(text) {
            reference::Target::Definition(target) => place.target = Some(target.to_string()),
            reference::Target::Root => self.fault(
                Code::SchemaRecursive,
                pointer,
                "a schema must not refer to itself",
            ),
            reference::Target::Elsewhere => self.fault(
                Code::SchemaKeywordUnsupported,
                pointer,
                "a \"$ref\" names only \"#/$defs/…\" of the same schema; move the target there",
            ),
            reference::Target::Malformed => {
                self.invalid(pointer, "a URI reference such as \"#/$defs/name\"");
            }
        }
    }

    /// Judges the patterns. Compiling them is the dear part of a schema, so where nothing else is
    /// wrong the whole validator is built, to be kept.
    fn validator(&mut self, document: &Value) -> Option<jsonschema::Validator> {
        let count = self.patterns.len();
        if count == 0 {
            return None;
        }
        let plain = self
            .patterns
            .iter()
            .all(|(text, _)| !pattern::looks_around(text) && !pattern::is_foreign(text));
        if plain && self.faults.is_empty() {
            let built = pattern::options(count).build(document).ok();
            if built.is_some() {
                return built;
            }
        }
        let faults = pattern::judge(&self.patterns);
        if faults.is_empty() && self.faults.is_empty() {
            self.fault(Code::SchemaInvalid, "", "the schema cannot be compiled");
        }
        for (code, at, message) in faults {
            self.fault(code, &at, message);
        }
        None
    }
}

fn plain_fault(shape: Shape, value: &Value) -> Option<&'static str> {
    let (fits, needed) = match shape {
        Shape::Text => (value.is_string(), "a string"),
        Shape::Flag => (value.is_boolean(), "true or false"),
        Shape::Count => (value.is_u64(), "an integer from 0"),
        Shape::Number => (value.is_number(), "a number"),
        Shape::PositiveNumber => (
            value.as_f64().is_some_and(|number| number > 0.0),
            "a number above 0",
        ),
        Shape::List => (value.is_array(), "an array"),
        Shape::Names => (different_names(value), "an array of different strings"),
        Shape::Types => (
            types(value),
            "the name of a type, or an array of different names of types",
        ),
        _ => (true, ""),
    };
    (!fits).then_some(needed)
}

fn types(value: &Value) -> bool {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => {
            !names.is_empty() && names.iter().all(known) && different_names(value)
        }
        name => known(name),
    }
}

fn different_names(value: &Value) -> bool {
    let Value::Array(items) = value else {
        return false;
    };
    let mut names: Vec<_> = items.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == items.len()
}
