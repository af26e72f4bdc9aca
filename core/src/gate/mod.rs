//! The gate language, version 1 (wire-format.md §5, L1–L6).
//!
//! [`Expr::parse`] reads the wire form and judges what can be judged without a value;
//! [`Expr::evaluate`] decides one input, [`Gate`] many. Evaluation allocates only to report an
//! error.

mod compiled;
mod evaluate;
mod parse;
mod types;

pub use compiled::Gate;

use crate::{
    code::Code,
    value::{Pointer, Value},
};
use serde::{Deserialize, Serialize};

/// A parsed expression. Its serde form is the wire form of L1, so that a plan can store it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expr {
    /// `{"literal": V}`.
    Literal(Value),
    /// `{"read": "/pointer"}`.
    Read(Pointer),
    /// `{"exists": "/pointer"}`.
    Exists(Pointer),
    /// All of, left to right.
    And(Vec<Expr>),
    /// Any of, left to right.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
    /// Equal by J5.
    Eq(Box<(Expr, Expr)>),
    /// Not equal by J5.
    Ne(Box<(Expr, Expr)>),
    /// Less.
    Lt(Box<(Expr, Expr)>),
    /// Less or equal.
    Le(Box<(Expr, Expr)>),
    /// Greater.
    Gt(Box<(Expr, Expr)>),
    /// Greater or equal.
    Ge(Box<(Expr, Expr)>),
    /// Some element of the array on the right is equal.
    In(Box<(Expr, Expr)>),
}

/// The operators of L1, as they are written.
pub const OPERATORS: [&str; 13] = [
    "literal", "read", "exists", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "in",
];

impl Expr {
    /// The operator as it is written, one of [`OPERATORS`].
    #[must_use]
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Literal(_) => "literal",
            Self::Read(_) => "read",
            Self::Exists(_) => "exists",
            Self::And(_) => "and",
            Self::Or(_) => "or",
            Self::Not(_) => "not",
            Self::Eq(_) => "eq",
            Self::Ne(_) => "ne",
            Self::Lt(_) => "lt",
            Self::Le(_) => "le",
            Self::Gt(_) => "gt",
            Self::Ge(_) => "ge",
            Self::In(_) => "in",
        }
    }
}

/// What is wrong with an expression: a code of §8 and where in the expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `gate.operator-unknown`, `gate.operands`, `gate.type-mismatch` or
    /// `gate.path-impossible`. A malformed pointer is `gate.operands`.
    pub code: Code,
    /// JSON Pointer inside the expression, to the operand that is wrong.
    pub pointer: String,
    /// What is wrong and what to do. It names operators, pointers and types, never a value.
    pub message: String,
}

/// Why an evaluation failed: `gate.path-missing` or `gate.type-mismatch`, both permanent.
/// The message names pointers and types, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GateError {
    /// The code.
    pub code: Code,
    /// What happened.
    pub message: String,
}

#[cfg(test)]
mod tests;
