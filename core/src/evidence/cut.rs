//! Cutting a value to a preview that is still JSON and still says most (server.md §7).
//!
//! Room is shared out: what is small stays whole, and what is large shares what is left
//! evenly, so one long text cannot push the short members beside it out of sight.

use crate::value::{Map, Value, canonical_len};

/// Marks a cut: behind a shortened string, or as an item or member that says how many more
/// there were.
const MORE: char = '…';
/// Bytes kept free for the item or member that says how many more there were.
const MORE_BYTES: usize = 24;
/// What a part may take before the sharing begins. Whatever is cut to it still has room
/// for a mark of its own.
const FLOOR: usize = 64;

/// A value of at most `room` canonical bytes; `room` is 64 or more.
pub(super) fn cut(value: &Value, room: usize) -> Value {
    if canonical_len(value) <= room {
        return value.clone();
    }
    match value {
        Value::String(text) => Value::String(cut_text(text, room)),
        Value::Array(items) => cut_array(items, room),
        Value::Object(members) => cut_object(members, room),
        scalar => scalar.clone(),
    }
}

/// The beginning of a text, such that it takes `room` bytes with its quotes.
fn cut_text(text: &str, room: usize) -> String {
    let mut left = room.saturating_sub(2 + MORE.len_utf8());
    let fits = text
        .char_indices()
        .find(|(_, c)| match left.checked_sub(escaped_len(*c)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
    let end = fits.map_or(text.len(), |(at, _)| at);
    let mut kept = text.get(..end).unwrap_or_default().to_owned();
    kept.push(MORE);
    kept
}

/// Bytes of a character in canonical form (RFC 8785 §3.2.2.2).
fn escaped_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

/// The first items, as many as have a little room each.
fn cut_array(items: &[Value], room: usize) -> Value {
    let mut left = room.saturating_sub(2 + MORE_BYTES);
    let mut sizes = Vec::new();
    for item in items {
        let size = canonical_len(item);
        // One byte for the comma.
        match left.checked_sub(size.min(FLOOR) + 1) {
            Some(rest) => left = rest,
            None => break,
        }
        sizes.push(size);
    }
    let most = share(left, sizes.iter().copied());
    let mut kept: Vec<_> = items
        .iter()
        .zip(&sizes)
        .map(|(item, size)| cut(item, (*size).min(most)))
        .collect();
    if kept.len() < items.len() {
        let more = items.len() - kept.len();
        kept.push(Value::String(format!("{MORE} {more} more")));
    }
    Value::Array(kept)
}

/// The first members, without those whose very name leaves no room.
fn cut_object(members: &Map<String, Value>, room: usize) -> Value {
    let mut left = room.saturating_sub(2 + MORE_BYTES);
    let mut sizes = Vec::new();
    for (name, member) in members {
        let size = canonical_len(member);
        // The quotes of the name, the colon and the comma.
        let fixed = name.chars().map(escaped_len).sum::<usize>() + 4;
        if let Some(rest) = left.checked_sub(size.min(FLOOR) + fixed) {
            left = rest;
            sizes.push((name, member, size));
        }
    }
    let most = share(left, sizes.iter().map(|(_, _, size)| *size));
    let mut kept: Map<String, Value> = sizes
        .into_iter()
        .map(|(name, member, size)| (name.clone(), cut(member, size.min(most))))
        .collect();
    if kept.len() < members.len() {
        let more = members.len() - kept.len();
        kept.entry(MORE.to_string())
            .or_insert_with(|| Value::String(format!("{more} more")));
    }
    Value::Object(kept)
}

/// How large a part may be when `left` bytes beyond everyone's floor are shared evenly and
/// the small ones leave to the large ones what they do not need.
fn share(mut left: usize, sizes: impl Iterator<Item = usize>) -> usize {
    let mut wants: Vec<_> = sizes.filter_map(|size| size.checked_sub(FLOOR)).collect();
    wants.sort_unstable();
    let count = wants.len();
    for (i, want) in wants.into_iter().enumerate() {
        let each = left / (count - i);
        if want > each {
            return FLOOR + each;
        }
        left -= want;
    }
    usize::MAX
}
