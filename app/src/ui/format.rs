//! Times, durations and costs as people read them.

/// A duration: `320 ms`, `4.2 s`, `3 min 5 s`, `2 h 4 min`, `12 d 3 h`.
pub(crate) fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{s}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", s / 60, s % 60),
        3_600_000..86_400_000 => format!("{} h {} min", s / 3_600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3_600 % 24),
    }
}

/// How long ago, coarsely.
pub(crate) fn ago(then_ms: u64, now_ms: u64) -> String {
    let s = now_ms.saturating_sub(then_ms) / 1_000;
    let many = |n: u64, unit: &str| {
        let plural = if n == 1 { "" } else { "s" };
        format!("{n} {unit}{plural} ago")
    };
    match s {
        0..60 => "just now".to_owned(),
        60..3_600 => many(s / 60, "minute"),
        3_600..86_400 => many(s / 3_600, "hour"),
        _ => many(s / 86_400, "day"),
    }
}

/// Micro-USD as dollars, with as many digits as small amounts need.
pub(crate) fn dollars(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    if part.is_multiple_of(10_000) {
        return format!("${whole}.{:02}", part / 10_000);
    }
    let digits = format!("{part:06}");
    format!("${whole}.{}", digits.trim_end_matches('0'))
}

/// A count with spaces between thousands.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// An instant in the reader's own zone and language.
pub(crate) fn instant(ms: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "instants are far below 2^53")]
    let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(ms as f64));
    date.to_locale_string("default", &wasm_bindgen::JsValue::UNDEFINED)
        .into()
}

/// The present instant.
pub(crate) fn now() -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds since 1970 are positive and below 2^53"
    )]
    let now = js_sys::Date::now() as u64;
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_amounts_read_well() {
        let durations = [0, 999, 1_250, 185_000, 7_440_000, 1_047_600_000].map(duration);
        assert_eq!(
            durations,
            [
                "0 ms",
                "999 ms",
                "1.2 s",
                "3 min 5 s",
                "2 h 4 min",
                "12 d 3 h"
            ]
        );
        assert_eq!(
            [0, 1_500_000, 12_300, 7].map(dollars),
            ["$0.00", "$1.50", "$0.0123", "$0.000007"]
        );
        assert_eq!(count(1_234_567).replace('\u{202f}', " "), "1 234 567");
        assert_eq!(ago(0, 61_000), "1 minute ago");
        assert_eq!(ago(5_000, 1_000), "just now");
    }
}
