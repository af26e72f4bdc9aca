//! Patterns on a linear-time engine (S3).

use jsonschema::{EmailOptions, PatternOptions, Regex, ValidationOptions};
use serde_json::json;

use crate::code::Code;

/// Bytes that all compiled patterns of one schema may take together, and one of them at most.
/// The engine is linear in the text, but each of its steps may cost as much as the program has.
const ALL_BYTES: usize = 256 << 10;
const ONE_BYTES: usize = 128 << 10;

/// Bytes that matching may keep to be faster.
const CACHE_BYTES: usize = 1 << 20;

/// The engine for a schema with so many patterns. Together they stay within `ALL_BYTES`.
pub(super) fn engine(patterns: usize) -> PatternOptions<Regex> {
    let bytes = (ALL_BYTES / patterns.max(1)).min(ONE_BYTES);
    PatternOptions::regex()
        .size_limit(bytes)
        .dfa_size_limit(CACHE_BYTES)
}

/// Draft 2020-12 as the subset has it: linear patterns, asserted formats, and no reference
/// that leaves the document.
pub(super) fn options<'o>(patterns: usize) -> ValidationOptions<'o> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(engine(patterns))
        .should_validate_formats(true)
        // An address alone, without the name of its owner around it.
        .with_email_options(EmailOptions::default().without_display_text())
        .should_ignore_unknown_formats(false)
        .offline()
}

/// A test for one pattern; `None` where the engine refuses it.
pub(super) fn compile(pattern: &str, patterns: usize) -> Option<jsonschema::Validator> {
    options(patterns).build(&json!({"pattern": pattern})).ok()
}

/// The faults of a schema's patterns: code, pointer and message.
pub(super) fn judge(patterns: &[(&str, String)]) -> Vec<(Code, String, String)> {
    let bad = |(pattern, pointer): &(&str, String)| {
        let (code, message) = if looks_around(pattern) {
            (
                Code::SchemaPatternUnsupported,
                "look-around and back references are not supported; write the pattern without",
            )
        } else if is_foreign(pattern) {
            (
                Code::SchemaPatternUnsupported,
                "`\\<`, `\\>`, `\\A`, `\\z` and `\\b{…}` are not of ECMA-262; write `^`, `$` or the character alone",
            )
        } else if compile(pattern, patterns.len()).is_some() {
            return None;
        } else if regex_syntax::parse(pattern).is_ok() {
            (
                Code::SchemaPatternUnsupported,
                "the pattern grows too large; use fewer or smaller repetitions",
            )
        } else {
            (
                Code::SchemaInvalid,
                "this is not a regular expression that is supported",
            )
        };
        Some((code, pointer.clone(), message.to_owned()))
    };
    patterns.iter().filter_map(bad).collect()
}

/// Whether a pattern holds look-around or a back reference, outside classes and escapes.
pub(super) fn looks_around(pattern: &str) -> bool {
    let mut rest = pattern.chars();
    let mut in_class = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('1'..='9' | 'k') if !in_class => return true,
                _ => {}
            },
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let tail = rest.as_str();
                if ["?=", "?!", "?<=", "?<!"]
                    .iter()
                    .any(|s| tail.starts_with(s))
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether a pattern holds an escape that only this engine knows as an assertion: elsewhere it is a
/// mistake or the character itself, so that it would be judged otherwise there.
pub(super) fn is_foreign(pattern: &str) -> bool {
    let mut rest = pattern.chars();
    let mut in_class = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('<' | '>' | 'A' | 'z') if !in_class => return true,
                Some('b' | 'B') if !in_class && rest.as_str().starts_with('{') => return true,
                _ => {}
            },
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
    }
    false
}
