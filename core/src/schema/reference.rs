//! `$ref` to `#/$defs/…` of the same schema (S1).

use crate::value::{Pointer, Value};

/// What the text of a `$ref` names.
pub(super) enum Target {
    /// A place at or below a definition of the same document.
    Definition(Pointer),
    /// The document itself.
    Root,
    /// Another document, an anchor, or a place outside `$defs`.
    Elsewhere,
    /// Nothing: the text is no URI reference, or its fragment no pointer.
    Malformed,
}

/// Reads the text of a `$ref`.
pub(super) fn target(text: &str) -> Target {
    let Some(fragment) = text.strip_prefix('#') else {
        return Target::Elsewhere;
    };
    if fragment.is_empty() {
        return Target::Root;
    }
    let pointer = decode(fragment).and_then(|plain| Pointer::parse(&plain).ok());
    match pointer {
        Some(pointer)
            if pointer.tokens().len() >= 2
                && pointer.tokens().first().is_some_and(|t| t == "$defs") =>
        {
            Target::Definition(pointer)
        }
        Some(_) => Target::Elsewhere,
        None if fragment.starts_with('/') => Target::Malformed,
        None => Target::Elsewhere,
    }
}

/// The schema that a `$ref` names; `None` only in a document that was not accepted.
pub(super) fn resolve<'d>(document: &'d Value, text: &str) -> Option<&'d Value> {
    match target(text) {
        Target::Definition(pointer) => pointer.read(document),
        _ => None,
    }
}

/// Percent-decodes a URI fragment; `None` where a character may not stand in one (RFC 3986).
fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).ok()?
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => byte,
            _ if b"-._~!$&'()*+,;=:@/?".contains(&byte) => byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}
