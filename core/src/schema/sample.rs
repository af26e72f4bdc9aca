//! Sample texts and numbers for example values: within the bounds (S1), in the formats (S4),
//! matching the patterns (S3).

use regex_syntax::hir::{Class, Hir, HirKind};

use super::facts::{End, Facts};
use crate::value::{Number, Value};

/// Characters that one sample may have.
const LONGEST: usize = 4_096;

/// A text within length, format and pattern; `salt` above 0 makes it different.
pub(super) fn text(facts: &Facts<'_>, salt: usize) -> Option<String> {
    if let Some((_, pattern)) = facts.each("pattern").next() {
        return matching(pattern.as_str()?, salt);
    }
    if let Some((_, format)) = facts.each("format").next() {
        return Some(formatted(format.as_str()?, salt));
    }
    let least = usize::try_from(facts.at_least("minLength")).ok()?;
    let most = usize::try_from(facts.at_most("maxLength")).unwrap_or(usize::MAX);
    if least > LONGEST {
        return None;
    }
    let mut text = if salt == 0 {
        "text".to_owned()
    } else {
        format!("{salt}text")
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

/// A short text that a pattern matches, as far as one is easily found.
pub(super) fn matching(pattern: &str, salt: usize) -> Option<String> {
    let mut text = String::new();
    write(&regex_syntax::parse(pattern).ok()?, salt, &mut text)?;
    Some(text)
}

/// `None` where the sample would grow too long, or nothing matches.
fn write(hir: &Hir, salt: usize, text: &mut String) -> Option<()> {
    if text.len() > LONGEST {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(member(class, salt)?),
        HirKind::Repetition(repetition) => {
            // Once where it may be absent, so that `.+` and `.*` both show something.
            let once = repetition.max.unwrap_or(1).min(1);
            for _ in 0..repetition.min.max(once) {
                write(&repetition.sub, salt, text)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, salt, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, salt, text)?;
            }
        }
        HirKind::Alternation(branches) => {
            let at = salt % branches.len().max(1);
            write(branches.get(at)?, salt, text)?;
        }
    }
    Some(())
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
        .fold(1.0_f64, |all, step| {
            if step.fract() == 0.0 {
                all.max(step)
            } else {
                all
            }
        });
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
    let number = step.map_or(number, |step| (number / step).floor() * step);
    Number::from_f64(number).map(Value::Number)
}
