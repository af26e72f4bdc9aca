//! I-JSON values: reading, canonical form, pointers, hashes (wire-format.md §1, J1–J7).
//!
//! A [`Value`] that came through [`read()`] is *normalised*: a number whose value is an
//! integer is held as an integer and `-0` as `0`. So `==` on values is equality by J5.

mod canonical;
mod measure;
mod pointer;
mod read;
mod shape;

pub use canonical::{canonical, canonical_len, hash, to_answer, to_value};
pub use measure::canonical_len_of;
pub use pointer::{Pointer, escape, index};
pub use read::{fits_depth, normalise, read, read_bytes};
pub use serde_json::{Map, Number, Value};
pub use shape::{Object, Place};

use crate::code::Code;

/// Why a text or a value is refused (J7): the code, the place and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct JsonError {
    /// One of the codes of J7.
    pub code: Code,
    /// JSON Pointer to the offender; empty for the whole document.
    pub pointer: String,
    /// Line and column in the text, from 1, where there is a text.
    pub position: Option<(usize, usize)>,
    /// What is wrong and what to do, in one sentence.
    pub detail: String,
}
