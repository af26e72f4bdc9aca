//! Sample texts and numbers for example values: within the bounds (S1), in the formats (S4),
//! matching the patterns (S3).

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::facts::{End, Facts};
use crate::value::{Number, Value};

/// Characters that one sample may have.
const LONGEST: usize = 4_096;

/// A text within length, format and pattern; `salt` above 0 makes it different, `short` as short
/// as it may be.
pub(super) fn text(facts: &Facts<'_>, salt: usize, short: bool) -> Option<String> {
    if let Some((_, pattern)) = facts.each("pattern").next() {
        let bounds = (facts.at_least("minLength"), facts.at_most("maxLength"));
        return matching(pattern.as_str()?, salt, bounds);
    }
    if let Some((_, format)) = facts.each("format").next() {
        return Some(formatted(format.as_str()?, salt));
    }
    let least = usize::try_from(facts.at_least("minLength")).ok()?;
    let most = usize::try_from(facts.at_most("maxLength")).unwrap_or(usize::MAX);
    if least > LONGEST {
        return None;
    }
    let mut text = match salt {
        0 if short => String::new(),
        0 => "text".to_owned(),
        _ => format!("{salt}text"),
    };
    text.truncate(most);
    while text.len() < least {
        text.push('x');
    }
    Some(text)
}

fn formatted(format: &str, salt: usize) -> String {
    let byte = salt % 250 + 1;
    match format {
        "date-time" => format!("2025-01-{:02}T12:00:00Z", salt % 28 + 1),
        "date" => format!("2025-01-{:02}", salt % 28 + 1),
        "time" => format!("12:{:02}:00Z", salt % 60),
        "email" => format!("person{byte}@example.com"),
        "uri" => format!("https://example.com/{byte}"),
        "uuid" => format!("00000000-0000-4000-8000-{byte:012}"),
        "ipv4" => format!("192.0.2.{byte}"),
        "ipv6" => format!("2001:db8::{byte}"),
        _ => String::new(),
    }
}

/// A short text that a pattern matches, as far as one is easily found, with so many characters at
/// least and at most.
pub(super) fn matching(pattern: &str, salt: usize, (least, most): (u64, u64)) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let written = |optional, room| {
        let mut sample = Sample {
            text: String::new(),
            salt,
            optional,
            room,
        };
        sample.write(&hir)?;
        let count = sample.text.chars().count() as u64;
        Some((sample.text, count))
    };
    let (text, count) = written(true, 0)?;
    if count > most {
        return Some(written(false, 0)?.0);
    }
    let missing = usize::try_from(least.saturating_sub(count)).ok()?;
    Some(if missing == 0 {
        text
    } else {
        written(true, missing)?.0
    })
}

/// A text while it is written.
struct Sample {
    text: String,
    salt: usize,
    /// Whether what may be absent is shown once, so that `.+` and `.*` both show something.
    optional: bool,
    /// Characters that repetitions have yet to add.
    room: usize,
}

impl Sample {
    /// `None` where the sample would grow too long, or nothing matches.
    fn write(&mut self, hir: &Hir) -> Option<()> {
        if self.text.len() > LONGEST {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => self.text.push(member(class, self.salt)?),
            HirKind::Repetition(repetition) => self.repeat(repetition)?,
            HirKind::Capture(capture) => self.write(&capture.sub)?,
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.write(part))?,
            HirKind::Alternation(branches) => {
                let at = self.salt % branches.len().max(1);
                self.write(branches.get(at)?)?;
            }
        }
        Some(())
    }

    fn repeat(&mut self, repetition: &Repetition) -> Option<()> {
        let most = repetition.max.unwrap_or(u32::MAX);
        let shown = u32::from(self.optional).min(most);
        let mut count = 0;
        while count < repetition.min.max(shown) || (count < most && self.room > 0) {
            let (before, asked) = (self.text.len(), count >= repetition.min.max(shown));
            self.write(&repetition.sub)?;
            count += 1;
            let added = self.text.get(before..).map_or(0, |new| new.chars().count());
            if asked {
                self.room = self.room.saturating_sub(added);
            }
            // Repeating nothing never ends.
            if added == 0 && asked {
                break;
            }
        }
        Some(())
    }
}

/// A character of a class: a letter or digit if there is one.
fn member(class: &Class, salt: usize) -> Option<char> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let within = |c: &char| {
        class
            .ranges()
            .iter()
            .any(|r| r.start() <= *c && *c <= r.end())
    };
    let mut plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').collect();
    plain.retain(within);
    match plain.len() {
        0 => class.ranges().first().map(|range| range.start()),
        many => plain.get(salt % many).copied(),
    }
}

/// An integer within the bounds, 0 if it may be.
pub(super) fn integer(facts: &Facts<'_>, salt: usize) -> Option<Value> {
    let step = facts
        .each("multipleOf")
        .filter_map(|(_, step)| step.as_f64())
        .filter(|step| step.fract() == 0.0)
        .fold(1.0, common_multiple);
    let salt = salt as f64 * step;
    let number = match (facts.lower(), facts.upper()) {
        (Some(lower), _) if lower.at > 0.0 || (lower.at == 0.0 && lower.open) => {
            up(lower, step) + salt
        }
        (_, Some(upper)) if upper.at < 0.0 || (upper.at == 0.0 && upper.open) => {
            down(upper, step) - salt
        }
        (Some(lower), Some(_)) if salt > 0.0 => up(lower, step) + salt,
        _ => salt,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float-to-integer cast saturates"
    )]
    let integer = number as i64;
    Some(integer.into())
}

/// The least common multiple of two whole steps; the larger one where it is out of range (J1).
fn common_multiple(a: f64, b: f64) -> f64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0.0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let multiple = a / divisor * b;
    if multiple < 9_007_199_254_740_992.0 {
        multiple
    } else {
        a.max(b)
    }
}

/// The first multiple above a lower end.
fn up(lower: End, step: f64) -> f64 {
    let first = (lower.at / step).ceil() * step;
    if lower.open && first == lower.at {
        first + step
    } else {
        first
    }
}

/// The last multiple below an upper end.
fn down(upper: End, step: f64) -> f64 {
    let last = (upper.at / step).floor() * step;
    if upper.open && last == upper.at {
        last - step
    } else {
        last
    }
}

/// A number that is no integer, within the bounds.
pub(super) fn fraction(facts: &Facts<'_>) -> Option<Value> {
    let number = match (facts.lower(), facts.upper()) {
        (Some(lower), Some(upper)) => f64::midpoint(lower.at, upper.at),
        (Some(lower), None) => lower.at + 0.5,
        (None, Some(upper)) => upper.at - 0.5,
        (None, None) => 0.5,
    };
    let step = facts
        .each("multipleOf")
        .next()
        .and_then(|(_, step)| step.as_f64());
    let number = step.map_or(number, |step| {
        // A step such as 0.05 is a part of 1; a division gives the double that is written so.
        let (count, parts) = ((number / step).floor(), (1.0 / step).round());
        if parts >= 1.0 && 1.0 / parts == step {
            count / parts
        } else {
            count * step
        }
    });
    Number::from_f64(number).map(Value::Number)
}
