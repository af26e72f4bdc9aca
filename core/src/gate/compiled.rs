//! A gate made ready for many inputs (L2–L5).
//!
//! All of a gate's pointers are read in one walk over the input, which visits each member of a
//! small object once however many pointers lead through it; then the operators work on what was
//! found. Whatever this form has no answer for, every error included, [`Expr::evaluate`] decides.

use serde::{Deserialize, Serialize};

use super::{Expr, GateError};
use crate::limits::Limits;
use crate::value::{Pointer, Value, index};

/// A gate with more pointers is evaluated as it is written.
const SLOTS: usize = 16;
/// An object with more members is asked for each name instead of walked.
const FEW: usize = 32;

/// An expression with its compiled form. Equal, stored and shown as the expression alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Expr")]
pub struct Gate {
    expr: Expr,
    compiled: Option<Compiled>,
}

impl Gate {
    /// The expression as it is written.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// As [`Expr::evaluate`], faster.
    ///
    /// # Errors
    /// As [`Expr::evaluate`].
    pub fn evaluate(&self, input: &Value) -> Result<bool, GateError> {
        let truth = self.compiled.as_ref().and_then(|compiled| {
            let mut found = [None; SLOTS];
            compiled.reads.find(input, &mut found);
            compiled.root.truth(&found)
        });
        truth.map_or_else(|| self.expr.evaluate(input), Ok)
    }
}

impl From<Expr> for Gate {
    fn from(expr: Expr) -> Self {
        let mut reads = Reads::default();
        let mut count = 0;
        let root = Step::of(&expr, &mut |pointer| reads.slot(pointer, &mut count));
        let compiled = root.map(|root| Compiled { root, reads });
        Self { expr, compiled }
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

impl Serialize for Gate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.expr.serialize(serializer)
    }
}

#[derive(Debug, Clone)]
struct Compiled {
    root: Step,
    reads: Reads,
}

/// What stands at each pointer, by slot.
type Found<'v> = [Option<&'v Value>; SLOTS];

/// The place of a pointer's value in [`Found`]; below [`SLOTS`].
type Slot = usize;

/// The pointers of a gate as a tree of their tokens.
#[derive(Debug, Clone, Default)]
struct Reads {
    /// The pointer that ends here.
    here: Option<Slot>,
    /// In order of their tokens' bytes, as an object holds its names.
    members: Vec<Member>,
    /// Bit n (modulo 64): some token here is n bytes long. Most names are passed over by it.
    lengths: u64,
}

#[derive(Debug, Clone)]
struct Member {
    token: Text,
    /// What the token means to an array.
    index: Option<usize>,
    next: Reads,
}

impl Reads {
    /// The slot of a pointer, the same one each time. `None`: there are too many, or it is
    /// longer than a value is deep.
    fn slot(&mut self, pointer: &Pointer, count: &mut usize) -> Option<Slot> {
        if pointer.tokens().len() > Limits::JSON_DEPTH {
            return None;
        }
        let mut at = self;
        for token in pointer.tokens() {
            at.lengths |= length_bit(token);
            let known = at.members.binary_search_by(|m| m.token.text.cmp(token));
            let position = known.unwrap_or_else(|position| {
                let member = Member {
                    token: Text::new(token),
                    index: index(token),
                    next: Self::default(),
                };
                at.members.insert(position, member);
                position
            });
            at = &mut at.members.get_mut(position)?.next;
        }
        if at.here.is_none() && *count < SLOTS {
            at.here = Some(*count);
            *count += 1;
        }
        at.here
    }

    /// Notes the values that stand at the pointers through this place.
    fn find<'v>(&self, value: &'v Value, found: &mut Found<'v>) {
        let (mut at, mut value) = (self, value);
        // Most pointers go on alone after their first token or two.
        loop {
            at.note(value, found);
            let [only] = at.members.as_slice() else { break };
            let Some(next) = only.of(value) else { return };
            (at, value) = (&only.next, next);
        }
        match value {
            // Both sides are in order of their bytes: what is behind a name that was met is
            // behind it for good.
            Value::Object(object) if object.len() <= FEW => {
                let mut ahead = at.members.iter();
                for (name, value) in object {
                    if at.lengths & length_bit(name) == 0 {
                        continue;
                    }
                    let ends = Text::ends(name.as_bytes());
                    let mut rest = ahead.clone();
                    let Some(Member { next, .. }) = rest.find(|m| m.token.is(name, ends)) else {
                        continue;
                    };
                    if next.members.is_empty() {
                        next.note(value, found);
                    } else {
                        next.find(value, found);
                    }
                    if rest.len() == 0 {
                        break;
                    }
                    ahead = rest;
                }
            }
            value => {
                for member in &at.members {
                    if let Some(value) = member.of(value) {
                        member.next.find(value, found);
                    }
                }
            }
        }
    }

    #[inline]
    fn note<'v>(&self, value: &'v Value, found: &mut Found<'v>) {
        if let Some(slot) = self.here.and_then(|slot| found.get_mut(slot)) {
            *slot = Some(value);
        }
    }
}

impl Member {
    /// What stands at the token in a value.
    #[inline]
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match value {
            Value::Object(object) => object.get(&self.token.text),
            Value::Array(items) => items.get(self.index?),
            _ => None,
        }
    }
}

fn length_bit(name: &str) -> u64 {
    1 << (name.len() % 64)
}

/// A text to compare with many. Its two ends are all of it up to 16 bytes, as names and the
/// words of enumerations are, and tell most longer ones apart.
#[derive(Debug, Clone)]
struct Text {
    text: String,
    ends: Ends,
}

impl Text {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ends: Self::ends(text.as_bytes()),
        }
    }

    /// Whether this is the text `other`, whose ends are given.
    #[inline]
    fn is(&self, other: &str, ends: Ends) -> bool {
        self.text.len() == other.len()
            && self.ends == ends
            && (other.len() <= 16 || self.text == other)
    }

    /// The first and the last eight bytes, or four; of less than four, all.
    #[inline]
    fn ends(bytes: &[u8]) -> Ends {
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let of = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four));
            (of(first), of(last))
        } else if let (Some(first), Some(middle), Some(last)) =
            (bytes.first(), bytes.get(bytes.len() / 2), bytes.last())
        {
            (
                u64::from(*first) << 8 | u64::from(*middle),
                u64::from(*last),
            )
        } else {
            (0, 0)
        }
    }
}

/// The two ends of a text, by [`Text::ends`].
type Ends = (u64, u64);

/// An expression over slots. Where it gives `None`, the expression itself is asked.
#[derive(Debug, Clone)]
enum Step {
    Test(Test),
    And(Vec<Step>),
    Or(Vec<Step>),
    Not(Box<Step>),
}

/// A step without steps inside.
#[derive(Debug, Clone)]
enum Test {
    Literal(bool),
    Read(Slot),
    Exists(Slot),
    /// `eq` where `holds`, `ne` where not.
    Equal {
        left: Operand,
        right: Operand,
        holds: bool,
    },
    Ordered {
        left: Quantity,
        right: Quantity,
        order: Order,
    },
    /// Whether what was read is one of some texts: `eq` and `in` of business rules.
    OneOf {
        read: Slot,
        texts: Vec<Text>,
    },
    In {
        element: Operand,
        list: Operand,
    },
}

#[derive(Debug, Clone)]
enum Operand {
    Literal(Value),
    Read(Slot),
}

#[derive(Debug, Clone)]
enum Quantity {
    Literal(f64),
    Read(Slot),
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Lt,
    Le,
    Gt,
    Ge,
}

impl Step {
    /// `None` for what the compiled form leaves to the expression: an operator on the result of
    /// another, which is rare, and operands that can only fail.
    fn of(expr: &Expr, slot: &mut dyn FnMut(&Pointer) -> Option<Slot>) -> Option<Self> {
        let mut all = |operands: &[Expr]| -> Option<Vec<Self>> {
            operands.iter().map(|one| Self::of(one, slot)).collect()
        };
        Some(match expr {
            Expr::And(operands) => Self::And(all(operands)?),
            Expr::Or(operands) => Self::Or(all(operands)?),
            Expr::Not(operand) => Self::Not(Box::new(Self::of(operand, slot)?)),
            test => Self::Test(Test::of(test, slot)?),
        })
    }

    #[inline]
    fn truth(&self, found: &Found<'_>) -> Option<bool> {
        match self {
            Self::Test(test) => test.truth(found),
            steps => steps.combined(found),
        }
    }

    fn combined(&self, found: &Found<'_>) -> Option<bool> {
        match self {
            Self::Test(test) => test.truth(found),
            Self::And(steps) => {
                for step in steps {
                    if !step.truth(found)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Self::Or(steps) => {
                for step in steps {
                    if step.truth(found)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Self::Not(step) => Some(!step.truth(found)?),
        }
    }
}

impl Test {
    fn of(expr: &Expr, slot: &mut dyn FnMut(&Pointer) -> Option<Slot>) -> Option<Self> {
        Some(match expr {
            Expr::Literal(value) => Self::Literal(value.as_bool()?),
            Expr::Read(pointer) => Self::Read(slot(pointer)?),
            Expr::Exists(pointer) => Self::Exists(slot(pointer)?),
            Expr::Eq(both) | Expr::Ne(both) => {
                let holds = matches!(expr, Expr::Eq(_));
                match (Operand::of(&both.0, slot)?, Operand::of(&both.1, slot)?) {
                    (Operand::Read(read), Operand::Literal(Value::String(text))) if holds => {
                        let texts = vec![Text::new(&text)];
                        Self::OneOf { read, texts }
                    }
                    (left, right) => Self::Equal { left, right, holds },
                }
            }
            Expr::Lt(both) => Self::ordered(both, Order::Lt, slot)?,
            Expr::Le(both) => Self::ordered(both, Order::Le, slot)?,
            Expr::Gt(both) => Self::ordered(both, Order::Gt, slot)?,
            Expr::Ge(both) => Self::ordered(both, Order::Ge, slot)?,
            Expr::In(both) => match (Operand::of(&both.0, slot)?, Operand::of(&both.1, slot)?) {
                (Operand::Read(read), Operand::Literal(Value::Array(all)))
                    if all.iter().all(Value::is_string) =>
                {
                    let texts = all.iter().filter_map(Value::as_str).map(Text::new);
                    let texts = texts.collect();
                    Self::OneOf { read, texts }
                }
                (element, list) => Self::In { element, list },
            },
            Expr::And(_) | Expr::Or(_) | Expr::Not(_) => return None,
        })
    }

    fn ordered(
        (left, right): &(Expr, Expr),
        order: Order,
        slot: &mut dyn FnMut(&Pointer) -> Option<Slot>,
    ) -> Option<Self> {
        let mut quantity = |expr: &Expr| match Operand::of(expr, slot)? {
            Operand::Literal(value) => value.as_f64().map(Quantity::Literal),
            Operand::Read(slot) => Some(Quantity::Read(slot)),
        };
        Some(Self::Ordered {
            left: quantity(left)?,
            right: quantity(right)?,
            order,
        })
    }

    #[inline]
    fn truth(&self, found: &Found<'_>) -> Option<bool> {
        Some(match self {
            Self::Literal(truth) => *truth,
            Self::Read(slot) => read(found, *slot)?.as_bool()?,
            Self::Exists(slot) => read(found, *slot).is_some(),
            Self::Equal { left, right, holds } => {
                (left.value(found)? == right.value(found)?) == *holds
            }
            Self::Ordered { left, right, order } => {
                let (left, right) = (left.number(found)?, right.number(found)?);
                match order {
                    Order::Lt => left < right,
                    Order::Le => left <= right,
                    Order::Gt => left > right,
                    Order::Ge => left >= right,
                }
            }
            Self::OneOf { read: slot, texts } => match read(found, *slot)? {
                Value::String(text) => texts.iter().any(|one| {
                    one.text.len() == text.len() && one.is(text, Text::ends(text.as_bytes()))
                }),
                _ => false,
            },
            Self::In { element, list } => {
                let element = element.value(found)?;
                list.value(found)?.as_array()?.contains(element)
            }
        })
    }
}

impl Operand {
    fn of(expr: &Expr, slot: &mut dyn FnMut(&Pointer) -> Option<Slot>) -> Option<Self> {
        match expr {
            Expr::Literal(value) => Some(Self::Literal(value.clone())),
            Expr::Read(pointer) => slot(pointer).map(Self::Read),
            _ => None,
        }
    }

    fn value<'v>(&'v self, found: &Found<'v>) -> Option<&'v Value> {
        match self {
            Self::Literal(value) => Some(value),
            Self::Read(slot) => read(found, *slot),
        }
    }
}

impl Quantity {
    fn number(&self, found: &Found<'_>) -> Option<f64> {
        match self {
            Self::Literal(number) => Some(*number),
            Self::Read(slot) => read(found, *slot)?.as_f64(),
        }
    }
}

fn read<'v>(found: &Found<'v>, slot: Slot) -> Option<&'v Value> {
    found.get(slot).copied().flatten()
}

#[cfg(test)]
mod tests;
