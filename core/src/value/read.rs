//! Reading JSON text strictly (J1, J4): serde_json tokenises, the rules are ours.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;

use super::{JsonError, Map, Number, Value, pointer::escape};
use crate::{code::Code, limits::Limits};

/// The smallest magnitude that J1 refuses: 2^53.
pub(super) const LIMIT: u64 = 1 << 53;
pub(super) const LIMIT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// Reads one I-JSON document (J1, J4), normalised.
///
/// The error is one of `json.syntax` (with line and column; empty text, a byte order mark and
/// trailing text too), `json.duplicate-member`, `json.lone-surrogate`, `json.number-range` or
/// `json.too-deep`; all but the first name the place by pointer.
pub fn read(text: &str) -> Result<Value, JsonError> {
    if text.starts_with('\u{FEFF}') {
        return Err(syntax(
            Some((1, 1)),
            "the text begins with a byte order mark; remove it",
        ));
    }
    if text.trim_ascii().is_empty() {
        return Err(syntax(
            Some((1, 1)),
            "the text is empty; a JSON value is needed",
        ));
    }
    let reading = Reading::default();
    let mut tokens = serde_json::Deserializer::from_str(text);
    Here {
        reading: &reading,
        depth: 0,
    }
    .deserialize(&mut tokens)
    .and_then(|value| tokens.end().map(|()| value))
    .map_err(|error| reading.explain(&error, text))
}

/// As [`read`], from bytes that must be UTF-8; else `json.syntax`.
pub fn read_bytes(bytes: &[u8]) -> Result<Value, JsonError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + good.iter().filter(|b| **b == b'\n').count();
            let column = 1 + characters(good.rsplit(|b| *b == b'\n').next().unwrap_or_default());
            Err(syntax(
                Some((line, column)),
                format!("the text is not UTF-8 at line {line}, column {column}"),
            ))
        }
    }
}

/// Brings a value that did not come through [`read`] (from JavaScript, from a provider's
/// client library) under the same rules: number range (J1), depth (J4), normal form (J5).
///
/// The error is `json.number-range` or `json.too-deep`; the value is then partly normalised
/// and to be dropped.
pub fn normalise(value: &mut Value) -> Result<(), JsonError> {
    normalise_within(value, Limits::JSON_DEPTH)
}

/// As [`normalise`], with another bound for the containers that nest.
pub(super) fn normalise_within(value: &mut Value, depth: usize) -> Result<(), JsonError> {
    let mut trail = Vec::new();
    normalise_at(value, depth, &mut trail).map_err(|code| refusal(code, &trail, None))
}

/// Whether at most 64 containers are nested, so that the value could be read again (J4).
#[must_use]
pub fn fits_depth(value: &Value) -> bool {
    fits_at(value, 0)
}

fn fits_at(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if depth == Limits::JSON_DEPTH => false,
        Value::Array(items) => items.iter().all(|item| fits_at(item, depth + 1)),
        Value::Object(members) => members.values().all(|member| fits_at(member, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn normalise_at(value: &mut Value, left: usize, trail: &mut Vec<String>) -> Result<(), Code> {
    match value {
        Value::Number(number) => {
            *number = normal(number)?;
            Ok(())
        }
        Value::Array(_) | Value::Object(_) if left == 0 => Err(Code::JsonTooDeep),
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(i, item)| {
            normalise_at(item, left - 1, trail).inspect_err(|_| trail.push(i.to_string()))
        }),
        Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
            normalise_at(member, left - 1, trail).inspect_err(|_| trail.push(name.clone()))
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn normal(number: &Number) -> Result<Number, Code> {
    if let Some(integer) = number.as_i64() {
        return if integer.unsigned_abs() < LIMIT {
            Ok(integer.into())
        } else {
            Err(Code::JsonNumberRange)
        };
    }
    number
        .as_f64()
        .and_then(normal_double)
        .ok_or(Code::JsonNumberRange)
}

/// An integer value as an integer (so `1.0` is `1` and `-0` is `0`), another as it is;
/// `None` out of the range of J1.
fn normal_double(double: f64) -> Option<Number> {
    if double.abs() >= LIMIT_DOUBLE {
        None
    } else if double.fract() == 0.0 {
        // Exact: the magnitude is an integer below 2^53.
        #[expect(clippy::cast_possible_truncation, reason = "below 2^53 and integral")]
        Some((double as i64).into())
    } else {
        Number::from_f64(double)
    }
}

/// What one reading remembers beside the value: why it stopped, and where. The place is
/// gathered while the recursion unwinds, so a good document pays nothing for it.
#[derive(Default)]
struct Reading {
    code: Cell<Option<Code>>,
    /// Reference tokens from the offender up to the root.
    trail: RefCell<Vec<String>>,
}

impl Reading {
    /// Stops the reading. Our own refusals travel beside serde's error, which is opaque.
    fn stop<E: serde::de::Error>(&self, code: Code) -> E {
        self.code.set(Some(code));
        E::custom("")
    }

    fn below(&self, token: impl ToString) {
        self.trail.borrow_mut().push(token.to_string());
    }

    fn explain(&self, error: &serde_json::Error, text: &str) -> JsonError {
        let position = position(error, text);
        let said = error.to_string();
        // serde_json tells these two kinds of refusal apart from syntax by their words only;
        // tests hold us to them.
        let code = self.code.get().or_else(|| {
            if said.starts_with("number out of range") {
                Some(Code::JsonNumberRange)
            } else if said.starts_with("lone leading surrogate")
                || said.starts_with("unexpected end of hex escape")
            {
                Some(Code::JsonLoneSurrogate)
            } else {
                None
            }
        });
        if let Some(code) = code {
            return refusal(code, &self.trail.borrow(), Some(position));
        }
        let (line, column) = position;
        let what = said.split(" at line ").next().unwrap_or_default();
        syntax(
            Some(position),
            format!("the text is not JSON at line {line}, column {column}: {what}"),
        )
    }
}

/// A value about to be read, `depth` containers below the root.
#[derive(Clone, Copy)]
struct Here<'r> {
    reading: &'r Reading,
    depth: usize,
}

impl Here<'_> {
    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == Limits::JSON_DEPTH {
            return Err(self.reading.stop(Code::JsonTooDeep));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Here<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<Value, D::Error> {
        tokens.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Here<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value < LIMIT {
            Ok(Value::Number(value.into()))
        } else {
            Err(self.reading.stop(Code::JsonNumberRange))
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() < LIMIT {
            Ok(Value::Number(value.into()))
        } else {
            Err(self.reading.stop(Code::JsonNumberRange))
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        normal_double(value)
            .map(Value::Number)
            .ok_or_else(|| self.reading.stop(Code::JsonNumberRange))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut tokens: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        loop {
            match tokens.next_element_seed(inside) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Value::Array(items)),
                Err(error) => {
                    self.reading.below(items.len());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut tokens: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Map::new();
        while let Some(name) = tokens.next_key::<String>()? {
            match members.entry(name) {
                Entry::Vacant(place) => match tokens.next_value_seed(inside) {
                    Ok(value) => {
                        place.insert(value);
                    }
                    Err(error) => {
                        self.reading.below(place.key());
                        return Err(error);
                    }
                },
                Entry::Occupied(place) => {
                    self.reading.below(place.key());
                    return Err(self.reading.stop(Code::JsonDuplicateMember));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

fn syntax(position: Option<(usize, usize)>, detail: impl Into<String>) -> JsonError {
    JsonError {
        code: Code::JsonSyntax,
        pointer: String::new(),
        position,
        detail: detail.into(),
    }
}

fn refusal(code: Code, trail: &[String], position: Option<(usize, usize)>) -> JsonError {
    let mut pointer = String::new();
    for token in trail.iter().rev() {
        pointer.push('/');
        pointer.push_str(&escape(token));
    }
    JsonError {
        code,
        detail: match code {
            Code::JsonNumberRange => format!(
                "the number at {pointer:?} has a magnitude of 2^53 or more; write it as a string"
            ),
            Code::JsonTooDeep => format!(
                "more than {} containers are nested at {pointer:?}; make it flatter",
                Limits::JSON_DEPTH
            ),
            Code::JsonDuplicateMember => {
                format!("the member at {pointer:?} stands twice; keep one")
            }
            Code::JsonLoneSurrogate => format!(
                "a string at {pointer:?} holds half of a surrogate pair; write the pair or neither"
            ),
            other => other.sentence().to_owned(),
        },
        pointer,
        position,
    }
}

/// Line and column from 1, the column in characters. serde_json counts bytes.
fn position(error: &serde_json::Error, text: &str) -> (usize, usize) {
    let line = error.line().max(1);
    let bytes = text.as_bytes().split(|b| *b == b'\n').nth(line - 1);
    let before = bytes.and_then(|b| b.get(..error.column().min(b.len())));
    (line, characters(before.unwrap_or_default()).max(1))
}

/// Counts the characters of UTF-8 text: every byte but the continuation bytes.
fn characters(utf8: &[u8]) -> usize {
    utf8.iter().filter(|b| **b & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(text: &str) -> (Code, String) {
        let error = read(text).unwrap_err();
        (error.code, error.pointer)
    }

    #[test]
    fn j1_refuses_2_pow_53_however_it_is_written() {
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740992.0",
            "9.007199254740992e15",
            "18446744073709551617",
            "-9223372036854775809",
            "1e400",
            "-1e400",
            // Rounds to 2^53 as a double.
            "9007199254740991.9",
        ] {
            let text = format!("{{\"a\":[0,{text}]}}");
            assert_eq!(refused(&text), (Code::JsonNumberRange, "/a/1".into()));
        }
        assert_eq!(
            read("[9007199254740991,-9007199254740991.0]").unwrap(),
            json!([9_007_199_254_740_991_i64, -9_007_199_254_740_991_i64])
        );
        assert!(refused("1e400").1.is_empty());
        assert!(
            read("9007199254740992")
                .unwrap_err()
                .detail
                .contains("string")
        );
    }

    #[test]
    fn j5_numbers_are_normalised() {
        assert_eq!(
            read("[1.0, 1e0, -0, -0.0, 10e-1, 1e-999, 0.5]").unwrap(),
            json!([1, 1, 0, 0, 1, 0, 0.5])
        );
    }

    #[test]
    fn j1_refuses_duplicate_members_by_pointer() {
        assert_eq!(
            refused(r#"{"x":[{"a/~":1,"b":2,"a/~":1}]}"#),
            (Code::JsonDuplicateMember, "/x/0/a~1~0".into())
        );
        assert_eq!(
            refused(r#"{"a":1,"\u0061":2}"#),
            (Code::JsonDuplicateMember, "/a".into())
        );
    }

    #[test]
    fn j1_refuses_lone_surrogates() {
        for half in [
            r"\ud800",
            r"\udc00",
            r"\ud800\u0041",
            r"\ud800x",
            r"\uDFFF\uD800",
        ] {
            let text = format!("{{\"a\":\"{half}\"}}");
            assert_eq!(
                refused(&text),
                (Code::JsonLoneSurrogate, "/a".into()),
                "{half}"
            );
            let text = format!("{{\"a\":{{\"{half}\":1}}}}");
            assert_eq!(
                refused(&text),
                (Code::JsonLoneSurrogate, "/a".into()),
                "{half}"
            );
        }
        assert_eq!(read(r#""\ud83d\ude00""#).unwrap(), json!("\u{1F600}"));
    }

    #[test]
    fn j4_64_containers_pass_and_65_are_refused() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&nested(64)).is_ok());
        assert_eq!(refused(&nested(65)), (Code::JsonTooDeep, "/0".repeat(64)));
        assert_eq!(refused(&"[".repeat(100_000)).0, Code::JsonTooDeep);
        assert_eq!(refused(&"{\"a\":".repeat(100_000)).0, Code::JsonTooDeep);
        let objects = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
        assert!(read(&objects(64)).is_ok());
        assert_eq!(refused(&objects(65)), (Code::JsonTooDeep, "/a".repeat(64)));
    }

    #[test]
    fn j4_normalise_holds_the_same_rules() {
        let mut value = json!({"a": [1.0, -0.0]});
        normalise(&mut value).unwrap();
        assert_eq!(value, json!({"a": [1, 0]}));
        let error = normalise(&mut json!({"a": [0, 1_u64 << 53]})).unwrap_err();
        assert_eq!(
            (error.code, error.pointer.as_str()),
            (Code::JsonNumberRange, "/a/1")
        );
        let mut deep = json!(1);
        for _ in 0..65 {
            deep = json!([deep]);
        }
        assert_eq!(normalise(&mut deep).unwrap_err().code, Code::JsonTooDeep);
    }

    #[test]
    fn j7_syntax_errors_say_where() {
        for (text, at) in [
            ("", (1, 1)),
            (" \n ", (1, 1)),
            ("\u{FEFF}{}", (1, 1)),
            ("{\n  \"é\" 1}", (2, 7)),
            ("[1] 2", (1, 5)),
            ("[1,]", (1, 4)),
            ("\"\t\"", (1, 2)),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(
                (error.code, error.position),
                (Code::JsonSyntax, Some(at)),
                "{text:?}"
            );
            assert!(error.pointer.is_empty());
        }
        assert!(read("").unwrap_err().detail.contains("empty"));
        let error = read_bytes(b"[\n\"\xC3\xA9\xFF\"]").unwrap_err();
        assert_eq!(
            (error.code, error.position),
            (Code::JsonSyntax, Some((2, 3)))
        );
    }

    #[test]
    fn b042_members_named_like_javascript_builtins_are_ordinary() {
        let value = read(r#"{"__proto__":{"admin":true},"constructor":{"x":1}}"#).unwrap();
        assert_eq!(
            super::super::canonical(&value),
            r#"{"__proto__":{"admin":true},"constructor":{"x":1}}"#
        );
    }
}
