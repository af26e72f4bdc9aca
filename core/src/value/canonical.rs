//! Canonical form by RFC 8785 and the hash over it (J2).

use std::fmt::{self, Write};

use super::{JsonError, Map, Number, Value, read};
use crate::{code::Code, ids::Hash};

/// The canonical text by RFC 8785 (J2): members sorted by UTF-16 code units, the number
/// text of ECMAScript, no white space, the shortest escapes.
///
/// Recursion follows the nesting of the value, which [`super::read()`] and
/// [`super::normalise`] bound by J4.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = write(value, &mut text);
    text
}

/// The length of the canonical text in bytes, counted without building the text.
#[must_use]
pub fn canonical_len(value: &Value) -> usize {
    let mut count = Count(0);
    let _ = write(value, &mut count);
    count.0
}

/// The hash over canonical bytes (J2).
#[must_use]
pub fn hash(value: &Value) -> Hash {
    Hash::of(canonical(value).as_bytes())
}

/// Any serializable thing of ours as a normalised value (J1, J5).
///
/// The error is `json.number-range` for a number out of range, `json.too-deep` (J4), or
/// `json.wrong-type` for a thing that JSON cannot say, such as a map whose keys are no strings.
pub fn to_value<T: serde::Serialize>(thing: &T) -> Result<Value, JsonError> {
    let mut value = serialized(thing)?;
    read::normalise(&mut value)?;
    Ok(value)
}

/// As [`to_value`], for an answer: what it holds keeps the depth of J4, and what it puts around
/// that may nest it deeper.
///
/// # Errors
/// As [`to_value`], but never `json.too-deep`.
pub fn to_answer<T: serde::Serialize>(thing: &T) -> Result<Value, JsonError> {
    let mut value = serialized(thing)?;
    read::normalise_within(&mut value, usize::MAX)?;
    Ok(value)
}

fn serialized<T: serde::Serialize>(thing: &T) -> Result<Value, JsonError> {
    serde_json::to_value(thing).map_err(|error| {
        // An integer wider than 64 bits is the only number that serde_json itself refuses.
        let text = error.to_string();
        let code = if text == "number out of range" {
            Code::JsonNumberRange
        } else {
            Code::JsonWrongType
        };
        JsonError {
            code,
            pointer: String::new(),
            position: None,
            detail: format!("this cannot be written as JSON: {text}"),
        }
    })
}

/// Counts the bytes that are written to it.
struct Count(usize);

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn write<W: Write>(value: &Value, out: &mut W) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(true) => out.write_str("true"),
        Value::Bool(false) => out.write_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                write(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object<W: Write>(members: &Map<String, Value>, out: &mut W) -> fmt::Result {
    out.write_char('{')?;
    // The map iterates by UTF-8 bytes, which differs from UTF-16 only where a surrogate
    // pair (lead byte 0xF0 and up) meets U+E000 to U+FFFF (lead bytes 0xEE and 0xEF).
    if members.keys().all(|name| name.bytes().all(|b| b < 0xEE)) && members.keys().is_sorted() {
        for (i, (name, value)) in members.iter().enumerate() {
            write_member(i, name, value, out)?;
        }
    } else {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        for (i, (name, value)) in sorted.into_iter().enumerate() {
            write_member(i, name, value, out)?;
        }
    }
    out.write_char('}')
}

fn write_member<W: Write>(i: usize, name: &str, value: &Value, out: &mut W) -> fmt::Result {
    if i > 0 {
        out.write_char(',')?;
    }
    write_string(name, out)?;
    out.write_char(':')?;
    write(value, out)
}

fn write_number<W: Write>(number: &Number, out: &mut W) -> fmt::Result {
    // Below 2^53 the decimal text of an integer is the text of its double.
    if let Some(integer) = number.as_i64().filter(|i| i.unsigned_abs() < read::LIMIT) {
        return write!(out, "{integer}");
    }
    // A number is finite: JSON has no other, and `Number` holds no other.
    let double = number.as_f64().unwrap_or_default();
    out.write_str(ryu_js::Buffer::new().format_finite(double))
}

fn write_string<W: Write>(text: &str, out: &mut W) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    // Everything that is escaped is one ASCII byte, so splitting behind it stays on a
    // character boundary.
    while let Some(at) = rest
        .bytes()
        .position(|b| b < 0x20 || b == b'"' || b == b'\\')
    {
        let (plain, tail) = rest.split_at(at);
        out.write_str(plain)?;
        let mut characters = tail.chars();
        match characters.next() {
            Some('"') => out.write_str("\\\"")?,
            Some('\\') => out.write_str("\\\\")?,
            Some('\u{8}') => out.write_str("\\b")?,
            Some('\t') => out.write_str("\\t")?,
            Some('\n') => out.write_str("\\n")?,
            Some('\u{c}') => out.write_str("\\f")?,
            Some('\r') => out.write_str("\\r")?,
            Some(control) => write!(out, "\\u{:04x}", u32::from(control))?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn j2_members_are_sorted_by_utf16() {
        let value = json!({"\u{FB33}": 1, "\u{1F600}": 2, "\u{20AC}": 3, "a": 4});
        assert_eq!(
            canonical(&value),
            "{\"a\":4,\"\u{20AC}\":3,\"\u{1F600}\":2,\"\u{FB33}\":1}"
        );
    }

    #[test]
    fn j2_length_is_that_of_the_text() {
        let value = json!({"a\u{1}\n\"": [1, -5, 0.5, 1e-7, null, true, "\u{1F600}"], "b": {}});
        assert_eq!(canonical_len(&value), canonical(&value).len());
    }

    #[test]
    fn j1_to_value_normalises_and_refuses() {
        assert_eq!(to_value(&1.0_f64).unwrap(), json!(1));
        assert_eq!(to_value(&-0.0_f64).unwrap(), json!(0));
        let deep = (0..66).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(to_value(&deep).unwrap_err().code, Code::JsonTooDeep);
        assert_eq!(to_answer(&deep).unwrap(), deep);
        assert_eq!(to_answer(&-0.0_f64).unwrap(), json!(0));
        assert_eq!(
            to_value(&vec![1_u64 << 53]).unwrap_err().code,
            Code::JsonNumberRange
        );
        assert_eq!(
            to_value(&u128::MAX).unwrap_err().code,
            Code::JsonNumberRange
        );
    }
}
