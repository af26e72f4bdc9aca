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

/// A value of at most `room` canonical bytes; `room` is 64 or more. Nothing is looked at
/// beyond what could fit, so the time depends on `room` and the depth alone.
pub(super) fn cut(value: &Value, room: usize) -> Value {
    if rest(value, room).is_some() {
        return value.clone();
    }
    match value {
        Value::String(text) => Value::String(cut_text(text, room)),
        Value::Array(items) => cut_array(items, room),
        Value::Object(members) => cut_object(members, room),
        scalar => scalar.clone(),
    }
}

/// What a value's canonical form leaves of `room`; `None` as soon as it is too large.
fn rest(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::String(text) => rest_of_text(text, room),
        // A bracket, then each item with its comma or the other bracket.
        Value::Array(items) => items.iter().try_fold(
            room.checked_sub(1 + usize::from(items.is_empty()))?,
            |room, item| rest(item, room.checked_sub(1)?),
        ),
        Value::Object(members) => members.iter().try_fold(
            room.checked_sub(1 + usize::from(members.is_empty()))?,
            |room, (name, member)| rest(member, rest_of_text(name, room.checked_sub(2)?)?),
        ),
        scalar => room.checked_sub(canonical_len(scalar)),
    }
}

fn rest_of_text(text: &str, room: usize) -> Option<usize> {
    text.chars().try_fold(room.checked_sub(2)?, |room, c| {
        room.checked_sub(escaped_len(c))
    })
}

/// The canonical length of a value, or more than `room` if it is more.
fn size(value: &Value, room: usize) -> usize {
    rest(value, room).map_or(usize::MAX, |rest| room - rest)
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
        let size = size(item, room);
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
        // The colon and the comma, the name, and the least of the member.
        let Some(beyond_name) = left
            .checked_sub(2)
            .and_then(|left| rest_of_text(name, left))
        else {
            continue;
        };
        let size = size(member, room);
        if let Some(beyond) = beyond_name.checked_sub(size.min(FLOOR)) {
            left = beyond;
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
