//! What a run must not show, and taking it out of values and texts (S5; server.md §7).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    sync::OnceLock,
};

use super::{
    credentials,
    occurrences::{Occurrences, find_long},
};
use crate::{
    ids::Hash,
    schema::Schema,
    value::{self, Map, Pointer, Value, canonical},
};

/// What stands in the place of a secret.
pub const MARK: &str = "***";

/// How often JSON text may stand inside JSON text before an escaped secret is not known
/// any more.
const ESCAPES: usize = 3;

/// Bytes of the longest secret that is searched together with others.
const SHORT: usize = 4 << 10;

/// Bytes that all short secrets of a run may have, and all longer ones; they bound the memory and
/// the time of a search. A run with more shows no text at all.
const ALL_SHORT: usize = 128 << 10;
const ALL_LONG: usize = 8 << 20;

/// Bytes of the longest escaped form that is looked for: no envelope has so long a text.
const LONGEST_ESCAPED: usize = 128 << 10;

/// The values that a run must not show (S5): everything found at `writeOnly` places so far.
/// The same values learnt in any order hide the same things.
#[derive(Clone, Default)]
pub struct Secrets {
    short: BTreeSet<String>,
    long: BTreeSet<String>,
    /// Bytes in `short` and in `long`.
    short_bytes: usize,
    long_bytes: usize,
    /// There were too many: every text is hidden, and none is kept.
    too_many: bool,
    /// Secret objects, whose members' names are secret with them.
    objects: BTreeSet<Hash>,
    /// Secret numbers by their bits; normalised numbers that are equal have equal bits.
    numbers: BTreeSet<u64>,
    search: OnceLock<Occurrences>,
}

/// Counts only: secrets must not reach a log through a debug print.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("texts", &(self.short.len() + self.long.len()))
            .field("numbers", &self.numbers.len())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.short == other.short
            && self.long == other.long
            && self.too_many == other.too_many
            && self.objects == other.objects
            && self.numbers == other.numbers
    }
}

impl Secrets {
    /// Adds what a schema marks `writeOnly` in a value. Trivial values (null, booleans, empty
    /// strings, empty containers) are not secrets by value; only their place is redacted. Of
    /// a container every string and number in it is a secret, since a mapping can carry a
    /// part of it elsewhere, and every object with the names of its members; a name alone is
    /// none, or a common one would hide every other of its kind.
    pub fn learn(&mut self, schema: &Schema, value: &Value) {
        if !schema.holds_secret() {
            return;
        }
        for (_, secret) in schema.secrets(value) {
            self.learn_value(secret);
            if secret.is_object() {
                // As a template writes it, names and all.
                self.add_text(&canonical(secret));
            }
        }
    }

    /// Adds one value that is secret as a whole.
    pub(super) fn learn_value(&mut self, secret: &Value) {
        match secret {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.numbers.extend(number.as_f64().map(bits)),
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.learn_value(item)),
            Value::Object(members) => {
                if !members.is_empty() {
                    self.objects.insert(value::hash(secret));
                }
                members.values().for_each(|member| self.learn_value(member));
            }
        }
    }

    /// A text, as it looks in a JSON Pointer, and as either looks when JSON text that holds it
    /// stands inside a string.
    fn add_text(&mut self, text: &str) {
        self.add_escaped(text.to_owned());
        if let Cow::Owned(token) = value::escape(text) {
            self.add_escaped(token);
        }
    }

    fn add_escaped(&mut self, mut form: String) {
        for escapes in 0..=ESCAPES {
            if form.is_empty() || (escapes > 0 && form.len() > LONGEST_ESCAPED) {
                return;
            }
            self.insert(&form);
            let quoted = canonical(&Value::String(form.clone()));
            let escaped = quoted
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'))
                .unwrap_or(&quoted)
                .to_owned();
            if escaped == form {
                return;
            }
            form = escaped;
        }
    }

    /// What was built to search is kept where nothing new came.
    fn insert(&mut self, text: &str) {
        if self.too_many {
            return;
        }
        let (texts, bytes) = if text.len() > SHORT {
            (&mut self.long, &mut self.long_bytes)
        } else {
            (&mut self.short, &mut self.short_bytes)
        };
        if texts.contains(text) {
            return;
        }
        texts.insert(text.to_owned());
        *bytes += text.len();
        if text.len() <= SHORT {
            self.search = OnceLock::new();
        }
        if self.short_bytes > ALL_SHORT || self.long_bytes > ALL_LONG {
            self.too_many = true;
            self.short.clear();
            self.long.clear();
        }
    }

    /// Whether nothing was learnt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.too_many
            && self.short.is_empty()
            && self.long.is_empty()
            && self.objects.is_empty()
            && self.numbers.is_empty()
    }

    /// A text (message, log line) with every secret and every recognisable credential
    /// replaced by [`MARK`]. Secret strings are found anywhere, however short; a number only
    /// where it stands as a whole number, or a secret 1 would take the ones out of every text.
    #[must_use]
    pub fn scrub_text(&self, text: &str) -> String {
        self.scrubbed(text).unwrap_or_else(|| text.to_owned())
    }

    /// The scrubbed text; `None` when there is nothing to hide.
    fn scrubbed(&self, text: &str) -> Option<String> {
        if self.too_many {
            return (!text.is_empty() && text != MARK).then(|| MARK.to_owned());
        }
        let mut hidden: Vec<Range<usize>> = Vec::new();
        let mut hide = |range| hidden.push(range);
        credentials::find(text, &mut hide);
        self.search
            .get_or_init(|| Occurrences::of(self.short.iter().map(String::as_str)))
            .find(text, &mut hide);
        for long in &self.long {
            find_long(text, long, &mut hide);
        }
        if !self.numbers.is_empty() {
            numbers(text, |range, number| {
                if self.numbers.contains(&bits(number)) {
                    hide(range);
                }
            });
        }
        if hidden.is_empty() {
            return None;
        }
        hidden.sort_by_key(|range| (range.start, range.end));
        let (mut scrubbed, mut hidden_to) = (String::new(), None);
        for range in hidden {
            // A range that overlaps or touches the one before continues it: one mark for both.
            if hidden_to.is_none_or(|end| range.start > end) {
                let shown = hidden_to.unwrap_or(0)..range.start;
                scrubbed.push_str(text.get(shown).unwrap_or_default());
                scrubbed.push_str(MARK);
            }
            hidden_to = hidden_to.max(Some(range.end));
        }
        scrubbed.push_str(text.get(hidden_to.unwrap_or(0)..).unwrap_or_default());
        Some(scrubbed)
    }

    /// A value with every secret replaced: `writeOnly` places by `schema` where one is given,
    /// well-known member names (server.md §7), recognisable credentials, and known secrets by
    /// value anywhere, inside longer strings and in member names too.
    #[must_use]
    pub fn redact(&self, schema: Option<&Schema>, value: &Value) -> Value {
        let mut redacted = value.clone();
        if let Some(schema) = schema.filter(|schema| schema.holds_secret()) {
            for (place, _) in schema.secrets(value) {
                replace(&mut redacted, &place);
            }
        }
        self.hide(&mut redacted);
        redacted
    }

    fn hide(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if number
                    .as_f64()
                    .is_some_and(|n| self.numbers.contains(&bits(n)))
                {
                    *value = Value::from(MARK);
                }
            }
            Value::String(text) => {
                if let Some(scrubbed) = self.scrubbed(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide(item)),
            Value::Object(_) if self.is_secret_object(value) => {
                *value = Value::from(MARK);
            }
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    if credentials::is_secret_name(name) {
                        *member = Value::from(MARK);
                    } else {
                        self.hide(member);
                    }
                }
                self.hide_names(members);
            }
        }
    }

    fn is_secret_object(&self, value: &Value) -> bool {
        !self.objects.is_empty() && self.objects.contains(&value::hash(value))
    }

    /// Member names may hold secrets as well. Names that become equal are numbered in order,
    /// so that no member is lost.
    fn hide_names(&self, members: &mut Map<String, Value>) {
        let renamed: Vec<_> = members
            .keys()
            .filter_map(|name| Some((name.clone(), self.scrubbed(name)?)))
            .collect();
        let mut times = BTreeMap::new();
        for (name, scrubbed) in renamed {
            let Some(member) = members.remove(&name) else {
                continue;
            };
            let count = times.entry(scrubbed.clone()).or_insert(0_usize);
            let fresh = loop {
                *count += 1;
                let candidate = if *count == 1 {
                    scrubbed.clone()
                } else {
                    format!("{scrubbed} ({count})")
                };
                if !members.contains_key(&candidate) {
                    break candidate;
                }
            };
            members.insert(fresh, member);
        }
    }
}

/// A number as a key of a set: `-0` is `0`.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// Puts the mark at a place. A place inside one that was replaced already is gone.
fn replace(value: &mut Value, place: &Pointer) {
    let found = place.tokens().iter().try_fold(value, |at, token| match at {
        Value::Object(members) => members.get_mut(token),
        Value::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
        _ => None,
    });
    if let Some(found) = found {
        *found = Value::from(MARK);
    }
}

/// The numbers that stand in a text, each as far as JSON's grammar goes. A sign counts only
/// as a second reading: `a-5` may mean 5 or −5.
fn numbers(text: &str, mut found: impl FnMut(Range<usize>, f64)) {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut at = 0;
    while at < bytes.len() {
        let mut end = digits(at);
        if end == at {
            at += 1;
            continue;
        }
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if fraction > end + 1 {
                end = fraction;
            }
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
            let from = end + 1 + usize::from(signed);
            let exponent = digits(from);
            if exponent > from {
                end = exponent;
            }
        }
        if let Some(Ok(number)) = text.get(at..end).map(str::parse::<f64>) {
            found(at..end, number);
            let before = at.checked_sub(1);
            if let Some(sign) = before.filter(|i| bytes.get(*i) == Some(&b'-')) {
                found(sign..end, -number);
            }
        }
        at = end;
    }
}
