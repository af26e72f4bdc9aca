//! The length of canonical text without the text (wire-format.md J2, G1).

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::{JsonError, canonical_len, read, to_value};
use crate::limits::Limits;

/// The length in bytes of the canonical text of any serializable thing of ours: that of
/// [`to_value`] in canonical form, without making the value.
///
/// # Errors
/// As [`to_value`].
pub fn canonical_len_of<T: Serialize>(thing: &T) -> Result<usize, JsonError> {
    let mut count = Count(0);
    let mut serializer = Serializer::with_formatter(&mut count, Canonical { depth: 0 });
    match thing.serialize(&mut serializer) {
        Ok(()) => Ok(count.0),
        // Whoever makes the value can say what is wrong and where.
        Err(_) => to_value(thing).map(|value| canonical_len(&value)),
    }
}

/// Counts the bytes that are written to it.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes numbers as canonical form does, and refuses what J1 and J4 refuse. The rest of the
/// compact text of `serde_json` differs from it only in the order of members.
struct Canonical {
    depth: usize,
}

impl Canonical {
    fn open(&mut self) -> io::Result<()> {
        if self.depth == Limits::JSON_DEPTH {
            return Err(io::Error::other("too deep"));
        }
        self.depth += 1;
        Ok(())
    }
}

impl Formatter for Canonical {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.abs() >= read::LIMIT_DOUBLE {
            return Err(io::Error::other("out of range"));
        }
        writer.write_all(ryu_js::Buffer::new().format_finite(value).as_bytes())
    }

    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if value.unsigned_abs() >= read::LIMIT {
            return Err(io::Error::other("out of range"));
        }
        write!(writer, "{value}")
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        if value >= read::LIMIT {
            return Err(io::Error::other("out of range"));
        }
        write!(writer, "{value}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::code::Code;

    #[test]
    fn j2_the_length_is_that_of_the_canonical_text() {
        for value in [
            json!({"b": [1, -5, 1.0, -0.0, 0.5, 1e-7, 1e21 / 1e6, 123456.789], "a": {}}),
            json!({"\u{1}\n\"\\\u{8}\u{c}\u{7f}\u{2028}/": "\u{1F600}\t\r\u{1f}", "": null}),
            json!([[], {}, true, false, "é", 9_007_199_254_740_991_i64]),
        ] {
            let canonical = to_value(&value).unwrap();
            assert_eq!(canonical_len_of(&value).unwrap(), canonical_len(&canonical));
        }
    }

    #[test]
    fn j1_j4_what_has_no_canonical_form_is_refused_at_its_place() {
        let error = canonical_len_of(&json!({"a": [1_u64 << 53]})).unwrap_err();
        assert_eq!(
            (error.code, error.pointer.as_str()),
            (Code::JsonNumberRange, "/a/0")
        );
        let error = canonical_len_of(&json!([-9_007_199_254_740_992.0])).unwrap_err();
        assert_eq!(
            (error.code, error.pointer.as_str()),
            (Code::JsonNumberRange, "/0")
        );
        let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(canonical_len_of(&deep(64)).unwrap(), 129);
        assert_eq!(
            canonical_len_of(&deep(65)).unwrap_err().code,
            Code::JsonTooDeep
        );
    }
}
