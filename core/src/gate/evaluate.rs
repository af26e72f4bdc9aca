//! Deciding one input (L2–L5). Nothing here allocates before there is an error to report.

use super::{Expr, GateError, types::Types};
use crate::{
    code::Code,
    value::{Pointer, Value},
};

/// What an operand gave: a value that stands in the expression or the input, or a truth
/// that was just worked out.
#[derive(Clone, Copy)]
enum Operand<'v> {
    Value(&'v Value),
    Truth(bool),
}

impl Expr {
    /// Evaluates against the gate's input by L2–L5. Operands are taken left to right, each
    /// judged before the next is looked at, so the leftmost error is the one reported.
    pub fn evaluate(&self, input: &Value) -> Result<bool, GateError> {
        self.truth(input, "the whole expression")
    }

    /// The value of an expression that must be a boolean for `whose` sake.
    fn truth(&self, input: &Value, whose: &str) -> Result<bool, GateError> {
        match self {
            Self::Literal(Value::Bool(truth)) => Ok(*truth),
            Self::Literal(value) => Err(self.mismatch(whose, Types::BOOLEAN, value)),
            Self::Read(pointer) => match read(pointer, input)? {
                Value::Bool(truth) => Ok(*truth),
                value => Err(self.mismatch(whose, Types::BOOLEAN, value)),
            },
            Self::Exists(pointer) => Ok(pointer.read(input).is_some()),
            Self::And(operands) => {
                for operand in operands {
                    if !operand.truth(input, "`and`")? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(operands) => {
                for operand in operands {
                    if operand.truth(input, "`or`")? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(operand) => Ok(!operand.truth(input, "`not`")?),
            Self::Eq(both) => equal(both, input),
            Self::Ne(both) => Ok(!equal(both, input)?),
            Self::Lt(both) => self.ordered(both, input, |left, right| left < right),
            Self::Le(both) => self.ordered(both, input, |left, right| left <= right),
            Self::Gt(both) => self.ordered(both, input, |left, right| left > right),
            Self::Ge(both) => self.ordered(both, input, |left, right| left >= right),
            Self::In(both) => contained(both, input),
        }
    }

    fn operand<'v>(&'v self, input: &'v Value) -> Result<Operand<'v>, GateError> {
        match self {
            Self::Literal(value) => Ok(Operand::Value(value)),
            Self::Read(pointer) => Ok(Operand::Value(read(pointer, input)?)),
            _ => Ok(Operand::Truth(self.truth(input, "the whole expression")?)),
        }
    }

    fn ordered(
        &self,
        (left, right): &(Self, Self),
        input: &Value,
        holds: impl Fn(f64, f64) -> bool,
    ) -> Result<bool, GateError> {
        let left = left.number(input, self)?;
        Ok(holds(left, right.number(input, self)?))
    }

    /// An operand of an ordered comparison. A normalised number is a double of magnitude
    /// below 2^53 (J1), so comparing doubles compares exact values.
    fn number(&self, input: &Value, operator: &Self) -> Result<f64, GateError> {
        let operand = self.operand(input)?;
        match operand {
            Operand::Value(Value::Number(number)) => number.as_f64(),
            _ => None,
        }
        .ok_or_else(|| {
            let whose = format!("`{}`", operator.operator());
            match operand {
                Operand::Value(value) => self.mismatch(&whose, Types::NUMBER, value),
                Operand::Truth(truth) => self.mismatch(&whose, Types::NUMBER, &Value::Bool(truth)),
            }
        })
    }

    /// This operand gave `found`, where `whose` needs another type. The message tells the
    /// type that was found, never the value.
    #[cold]
    fn mismatch(&self, whose: &str, needed: Types, found: &Value) -> GateError {
        let origin = match self {
            Self::Literal(_) => "a literal".to_owned(),
            Self::Read(pointer) => format!("the value at {:?}", pointer.to_string()),
            other => format!("the result of `{}`", other.operator()),
        };
        GateError {
            code: Code::GateTypeMismatch,
            message: format!(
                "{whose} needs {needed}, but {origin} is {}",
                Types::of(found)
            ),
        }
    }
}

fn read<'v>(pointer: &Pointer, input: &'v Value) -> Result<&'v Value, GateError> {
    pointer.read(input).ok_or_else(|| GateError {
        code: Code::GatePathMissing,
        message: format!("the input has nothing at {:?}", pointer.to_string()),
    })
}

fn equal((left, right): &(Expr, Expr), input: &Value) -> Result<bool, GateError> {
    let left = left.operand(input)?;
    Ok(match (left, right.operand(input)?) {
        (Operand::Value(left), Operand::Value(right)) => left == right,
        (Operand::Truth(left), Operand::Truth(right)) => left == right,
        (Operand::Truth(truth), Operand::Value(value))
        | (Operand::Value(value), Operand::Truth(truth)) => *value == Value::Bool(truth),
    })
}

fn contained((left, right): &(Expr, Expr), input: &Value) -> Result<bool, GateError> {
    let element = left.operand(input)?;
    match right.operand(input)? {
        Operand::Value(Value::Array(elements)) => Ok(match element {
            Operand::Value(value) => elements.contains(value),
            Operand::Truth(truth) => elements.contains(&Value::Bool(truth)),
        }),
        Operand::Value(value) => Err(right.mismatch("`in`", Types::ARRAY, value)),
        Operand::Truth(truth) => Err(right.mismatch("`in`", Types::ARRAY, &Value::Bool(truth))),
    }
}
