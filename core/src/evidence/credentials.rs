//! Credentials that show themselves (server.md §7): member names, private key blocks, bearer
//! tokens, provider key prefixes.

use std::ops::Range;

/// Member names whose values are never shown, written without `-` and `_` in lower case.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "secret",
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authorization",
    "apikey",
    "clientsecret",
    "privatekey",
    "cookie",
    "setcookie",
    "sessionid",
];

/// Beginnings of keys that providers issue, and how many key characters must follow at
/// least, so that ordinary words (`sk-`ipping) are left alone.
const PREFIXES: [(&str, usize); 32] = [
    ("sk-", 8),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("whsec_", 8),
    ("sgk_", 4),
    ("ghp_", 8),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxe-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 12),
    ("ASIA", 12),
    ("AIza", 20),
    ("ya29.", 12),
    ("hf_", 24),
    ("npm_", 24),
    ("pypi-", 24),
    ("dop_v1_", 24),
    ("shpat_", 24),
    ("SG.", 24),
    ("eyJ", 24),
];

/// Whether a member of this name is never shown: the whole name, whatever its case and
/// whatever `-` and `_` it has, so `accessToken` is `access_token`.
pub(super) fn is_secret_name(name: &str) -> bool {
    let longest = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    let plain: String = name
        .bytes()
        .filter(|b| !matches!(b, b'-' | b'_'))
        .take(longest + 1)
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect();
    NAMES.contains(&plain.as_str())
}

/// The byte ranges of `text` that hold recognisable credentials.
pub(super) fn find(text: &str, found: &mut impl FnMut(Range<usize>)) {
    private_keys(text, found);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = if begins_word(bytes, at) {
            prefixed(bytes, at).or_else(|| bearer(bytes, at))
        } else {
            None
        };
        match end {
            Some(range) => {
                at = range.end;
                found(range);
            }
            None => at += 1,
        }
    }
}

/// Whether a credential may begin here: with a letter, at the start, behind something that is no letter or
/// digit, or behind an escape such as `\n`, which is how JSON text inside a string looks.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let before = |n: usize| at.checked_sub(n).and_then(|i| bytes.get(i));
    match (before(2), before(1)) {
        (_, None) => true,
        (Some(b'\\'), Some(b'n' | b'r' | b't' | b'b' | b'f')) => true,
        (_, Some(b)) => !b.is_ascii_alphanumeric(),
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn prefixed(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = bytes.get(at..)?;
    let (prefix, least) = PREFIXES
        .into_iter()
        .find(|(prefix, _)| rest.starts_with(prefix.as_bytes()))?;
    let key = rest.get(prefix.len()..)?;
    let length = key.iter().take_while(|b| is_key_byte(**b)).count();
    (length >= least).then(|| at..at + prefix.len() + length)
}

/// The token behind `bearer` and spaces, whatever the case. Eight characters of token or
/// more: a prose word behind “bearer” may be lost, a token must not be.
fn bearer(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    const WORD: &[u8] = b"bearer";
    let rest = bytes.get(at..)?;
    let word = rest.get(..WORD.len())?;
    if !word.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let after = rest.get(WORD.len()..)?;
    let spaces = after
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t' | b':' | b'='))
        .count();
    let token = after.get(spaces..)?;
    let length = token
        .iter()
        .take_while(|b| is_key_byte(**b) || matches!(b, b'~' | b'+' | b'/' | b'='))
        .count();
    let start = at + WORD.len() + spaces;
    (spaces > 0 && length >= 8).then(|| start..start + length)
}

/// Private key blocks from `-----BEGIN` through the line that ends them; one that is not
/// ended goes to the end of the text.
fn private_keys(text: &str, found: &mut impl FnMut(Range<usize>)) {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut from = 0;
    while let Some(start) = position(text, from, BEGIN) {
        let label = start + BEGIN.len();
        let Some(label_end) = position(text, label, "-----") else {
            return;
        };
        from = label_end;
        let is_private = text
            .get(label..label_end)
            .is_some_and(|label| label.contains("PRIVATE KEY") && !label.contains('\n'));
        if is_private {
            let end = position(text, label_end, END)
                .and_then(|end| position(text, end + END.len(), "-----"))
                .map_or(text.len(), |dashes| dashes + 5);
            found(start..end);
            from = end;
        }
    }
}

fn position(text: &str, from: usize, what: &str) -> Option<usize> {
    text.get(from..)?.find(what).map(|i| from + i)
}
