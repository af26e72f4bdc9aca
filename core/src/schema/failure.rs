//! One entry per failing assertion, in our own words (G4): a text may name what the schema
//! says and what type was found, and never quotes a value.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::Failure;
use crate::value::{self, Value};

/// Names that one message lists.
const LISTED: usize = 5;

/// Characters of a name or a pattern that a message quotes.
const QUOTED: usize = 80;

/// A name or a pattern in quotes, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// A name that the value has. It may be a secret, which is known by its whole form and by JSON's
/// escapes alone (S5), so it is never cut.
fn found(name: &str) -> String {
    match name.chars().count() {
        long if long > QUOTED => format!("a name of {long} characters"),
        _ => value::canonical(&Value::from(name)),
    }
}

/// Where a schema cannot be used, which is a fault of ours.
pub(super) fn unusable() -> Failure {
    Failure {
        path: String::new(),
        keyword: String::new(),
        message: "the schema cannot be used".to_owned(),
    }
}

/// Where naming the place would cost too much.
pub(super) fn somewhere() -> Failure {
    Failure {
        path: String::new(),
        keyword: String::new(),
        message: "does not fit; schema and value are too large to say where".to_owned(),
    }
}

/// The entry for one error of the validator.
pub(super) fn failure(error: &ValidationError<'_>) -> Failure {
    let keyword = keyword(error);
    Failure {
        path: error.instance_path().as_str().to_owned(),
        message: message(error, &keyword),
        keyword,
    }
}

/// The keyword as the schema writes it. The kind alone does not say which one refused:
/// `false` stands below many keywords, and `dependentRequired` speaks as `required`.
fn keyword(error: &ValidationError<'_>) -> String {
    let path = error.schema_path().as_str();
    let mut tokens = path.rsplit('/');
    let last = tokens.next().unwrap_or_default();
    let holder = tokens.next().unwrap_or_default();
    match error.kind() {
        Kind::FalseSchema => match holder {
            "properties" | "patternProperties" | "prefixItems" | "allOf" => holder.to_owned(),
            "$defs" => "$ref".to_owned(),
            _ if last.is_empty() => "false".to_owned(),
            _ => last.to_owned(),
        },
        Kind::Required { .. } if path.contains("/dependentRequired") => {
            "dependentRequired".to_owned()
        }
        Kind::Contains if matches!(last, "minContains" | "maxContains") => last.to_owned(),
        kind => kind.keyword().to_owned(),
    }
}

fn message(error: &ValidationError<'_>, keyword: &str) -> String {
    match error.kind() {
        Kind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(name) => name.to_string(),
                TypeKind::Multiple(names) => {
                    let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
                    names.join(" or ")
                }
            };
            format!(
                "must be of type {wanted}, not {}",
                type_name(error.instance())
            )
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("must have the member {}", quoted(name))
        }
        Kind::AdditionalProperties { unexpected } => {
            let names: Vec<_> = unexpected
                .iter()
                .take(LISTED)
                .map(|name| found(name))
                .collect();
            let more = match unexpected.len().saturating_sub(LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("must not have the members {}{more}", names.join(", "))
        }
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::AnyOf { .. } => "must fit at least one of the alternatives".to_owned(),
        Kind::OneOfNotValid { .. } => "must fit one of the alternatives, and fits none".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "must fit exactly one of the alternatives, and fits several".to_owned()
        }
        Kind::Constant { .. } => "must be the one value that the schema names".to_owned(),
        Kind::Enum { .. } => "must be one of the values that the schema lists".to_owned(),
        Kind::Contains => match keyword {
            "minContains" => "must contain more items that fit \"contains\"".to_owned(),
            "maxContains" => "must contain fewer items that fit \"contains\"".to_owned(),
            _ => "must contain an item that fits \"contains\"".to_owned(),
        },
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be below {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be above {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members"),
        Kind::MinProperties { limit } => format!("must have at least {limit} members"),
        Kind::UniqueItems => "must have no two equal items".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quoted(pattern)),
        Kind::Format { format } => format!("must have the format {format:?}"),
        Kind::Not { .. } => "must not fit the schema below \"not\"".to_owned(),
        Kind::PropertyNames { .. } => "must have only names that fit \"propertyNames\"".to_owned(),
        Kind::FalseSchema => "must not be there".to_owned(),
        _ => "does not fit".to_owned(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
