//! Reading an expression and judging it without a value (L1, L6).

use std::collections::BTreeMap;

use super::{Expr, Fault, OPERATORS, types::Types};
use crate::{
    code::Code,
    limits::Limits,
    schema::{Reach, Schema},
    value::{Pointer, Value, escape},
};

impl Expr {
    /// Parses by L1 and judges by L6 what literals and the input's schema alone show. All
    /// faults are found, sorted by pointer, then code.
    ///
    /// Types are judged everywhere, also behind a literal that would stop the evaluation
    /// first. `exists` of a path that the schema excludes is no fault: it is just false.
    pub fn parse(expr: &Value, input: Option<&Schema>) -> Result<Self, Vec<Fault>> {
        let mut parser = Parser {
            input,
            reached: BTreeMap::new(),
            faults: Vec::new(),
        };
        let parsed = parser.operand(expr, "", 1, Types::BOOLEAN, "the whole expression");
        let mut faults = parser.faults;
        match parsed {
            Some(expr) if faults.is_empty() => Ok(expr),
            _ => {
                faults.sort_by(|a, b| {
                    (&a.pointer, a.code.as_str()).cmp(&(&b.pointer, b.code.as_str()))
                });
                Err(faults)
            }
        }
    }
}

struct Parser<'s> {
    input: Option<&'s Schema>,
    /// What was asked of the input's schema: an expression may name one place very often.
    reached: BTreeMap<Pointer, Types>,
    faults: Vec<Fault>,
}

impl Parser<'_> {
    fn fault(&mut self, code: Code, pointer: &str, message: impl Into<String>) {
        self.faults.push(Fault {
            code,
            pointer: pointer.to_owned(),
            message: message.into(),
        });
    }

    /// Parses one operand and refuses it when it can have none of the types in `needed`.
    /// `None` means that a fault was reported.
    fn operand(
        &mut self,
        expr: &Value,
        at: &str,
        depth: usize,
        needed: Types,
        whose: &str,
    ) -> Option<Expr> {
        if depth > Limits::GATE_DEPTH {
            let limit = Limits::GATE_DEPTH;
            self.fault(
                Code::GateOperands,
                at,
                format!("expressions nest at most {limit} deep; write it flatter"),
            );
            return None;
        }
        let (parsed, types) = self.expression(expr, at, depth)?;
        if types.excludes(needed) {
            self.fault(
                Code::GateTypeMismatch,
                at,
                format!(
                    "{whose} needs {needed}, but this is always {types}; types are never converted"
                ),
            );
            return None;
        }
        Some(parsed)
    }

    /// An expression and the types that its value can have, never an empty set.
    fn expression(&mut self, expr: &Value, at: &str, depth: usize) -> Option<(Expr, Types)> {
        let (operator, argument) = self.split(expr, at)?;
        let below = format!("{at}/{operator}");
        match operator {
            "literal" => Some((Expr::Literal(argument.clone()), Types::of(argument))),
            "read" => {
                let pointer = self.pointer(argument, &below, operator)?;
                let types = self.reached(&pointer, &below)?;
                Some((Expr::Read(pointer), types))
            }
            "exists" => Some((
                Expr::Exists(self.pointer(argument, &below, operator)?),
                Types::BOOLEAN,
            )),
            "and" => Some((
                Expr::And(self.many(argument, &below, depth, "`and`")?),
                Types::BOOLEAN,
            )),
            "or" => Some((
                Expr::Or(self.many(argument, &below, depth, "`or`")?),
                Types::BOOLEAN,
            )),
            "not" => Some((
                Expr::Not(Box::new(self.operand(
                    argument,
                    &below,
                    depth + 1,
                    Types::BOOLEAN,
                    "`not`",
                )?)),
                Types::BOOLEAN,
            )),
            _ => Some((
                self.comparison(operator, argument, &below, depth)?,
                Types::BOOLEAN,
            )),
        }
    }

    /// The one operator of an expression, which is one of [`OPERATORS`], and its argument.
    fn split<'v>(&mut self, expr: &'v Value, at: &str) -> Option<(&'static str, &'v Value)> {
        let Value::Object(members) = expr else {
            self.fault(
                Code::GateOperands,
                at,
                format!(
                    "an expression is an object with one operator, not {}; a constant is written {{\"literal\": …}}",
                    Types::of(expr)
                ),
            );
            return None;
        };
        let mut found = None;
        for (name, argument) in members {
            match OPERATORS.into_iter().find(|known| known == name) {
                Some(operator) => found = Some((operator, argument)),
                None => self.fault(
                    Code::GateOperatorUnknown,
                    &format!("{at}/{}", escape(name)),
                    format!(
                        "this operator is not known; known: {}",
                        OPERATORS.join(", ")
                    ),
                ),
            }
        }
        if members.len() != 1 {
            self.fault(
                Code::GateOperands,
                at,
                "an expression is an object with exactly one operator",
            );
            return None;
        }
        found
    }

    fn pointer(&mut self, argument: &Value, at: &str, operator: &str) -> Option<Pointer> {
        let parsed = argument.as_str().map(Pointer::parse);
        let Some(Ok(pointer)) = parsed else {
            self.fault(
                Code::GateOperands,
                at,
                format!("`{operator}` takes a JSON Pointer, empty or beginning with `/`, with `~` written `~0` and `/` written `~1`"),
            );
            return None;
        };
        Some(pointer)
    }

    /// The types that a read can give by the input's schema.
    fn reached(&mut self, pointer: &Pointer, at: &str) -> Option<Types> {
        let Some(input) = self.input else {
            return Some(Types::ANY);
        };
        let ask = || match input.reach(pointer) {
            Reach::Impossible => Types::of_schema(&Value::Bool(false)),
            Reach::Certain(schema) | Reach::Possible(schema) => Types::of_schema(&schema),
        };
        let types = *self.reached.entry(pointer.clone()).or_insert_with(ask);
        if types.is_empty() {
            self.fault(
                Code::GatePathImpossible,
                at,
                format!(
                    "the input's schema never has a value at {:?}",
                    pointer.to_string()
                ),
            );
            return None;
        }
        Some(types)
    }

    /// The operands of `and` and `or`.
    fn many(
        &mut self,
        argument: &Value,
        at: &str,
        depth: usize,
        operator: &str,
    ) -> Option<Vec<Expr>> {
        let limit = Limits::GATE_OPERANDS;
        let Some(operands) = argument
            .as_array()
            .filter(|operands| (1..=limit).contains(&operands.len()))
        else {
            self.fault(
                Code::GateOperands,
                at,
                format!("{operator} takes an array of 1 to {limit} expressions"),
            );
            return None;
        };
        let parsed: Vec<_> = operands
            .iter()
            .enumerate()
            .map(|(i, operand)| {
                self.operand(
                    operand,
                    &format!("{at}/{i}"),
                    depth + 1,
                    Types::BOOLEAN,
                    operator,
                )
            })
            .collect();
        parsed.into_iter().collect()
    }

    fn comparison(
        &mut self,
        operator: &'static str,
        argument: &Value,
        at: &str,
        depth: usize,
    ) -> Option<Expr> {
        let Some([left, right]) = argument.as_array().map(Vec::as_slice) else {
            self.fault(
                Code::GateOperands,
                at,
                format!("`{operator}` takes an array of exactly two expressions"),
            );
            return None;
        };
        let (on_left, on_right) = match operator {
            "eq" | "ne" => (Types::ANY, Types::ANY),
            "in" => (Types::ANY, Types::ARRAY),
            _ => (Types::NUMBER, Types::NUMBER),
        };
        let whose = format!("`{operator}`");
        let left = self.operand(left, &format!("{at}/0"), depth + 1, on_left, &whose);
        let right = self.operand(right, &format!("{at}/1"), depth + 1, on_right, &whose);
        let both = Box::new((left?, right?));
        Some(match operator {
            "eq" => Expr::Eq(both),
            "ne" => Expr::Ne(both),
            "lt" => Expr::Lt(both),
            "le" => Expr::Le(both),
            "gt" => Expr::Gt(both),
            "ge" => Expr::Ge(both),
            _ => Expr::In(both),
        })
    }
}
