//! The values that the steps of a template select. **Pure**.

use crate::parse::{Comparison, End, Operator, Slice, Step};
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::LazyLock;
use thiserror::Error;

/// Values that one rendering may touch.
const MAX_VALUES: usize = 4_000_000;
/// Depth of ranges in ranges.
const MAX_RANGES: usize = 32;

/// Template that fits no such value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EvaluateError {
    /// An index of something else.
    #[error("an index or filter is applied to what is not an array")]
    NotArray,
    /// An element that the array does not have.
    #[error("index {index} is out of bounds: the array has {length} elements")]
    OutOfBounds {
        /// As counted from the first element.
        index: i64,
        /// Number of elements.
        length: i64,
    },
    /// `[3:1]`.
    #[error("the first index, {from}, is greater than the last, {to}")]
    Backwards {
        /// First index.
        from: i64,
        /// Index behind the last.
        to: i64,
    },
    /// `[::0]`.
    #[error("the step of a slice must be greater than 0")]
    Step,
    /// `end` alone.
    #[error("there is an end without a range")]
    End,
    /// Several values on one side.
    #[error("a filter compares more than one value")]
    Several,
    /// Objects, arrays, null; `<` of booleans.
    #[error("a filter compares values that have no order")]
    Unordered,
    /// `1 == "1"`.
    #[error("a filter compares values of different types")]
    Incomparable,
    /// Ranges in ranges.
    #[error("ranges are nested more than {MAX_RANGES} levels deep")]
    TooDeep,
    /// More than [`MAX_VALUES`].
    #[error("the template selects more than {MAX_VALUES} values")]
    TooMany,
    /// Text without end.
    #[error("the output is longer than {} bytes", crate::text::MAX_BYTES)]
    TooLong,
}

/// Selection of a step.
type Values<'a> = Vec<&'a Value>;

/// The bytes that `.*` selects of a string.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=u8::MAX).map(Value::from).collect());

/// One rendering of a template: ranges that are open, and how much is left to do.
#[derive(Debug)]
pub(crate) struct Evaluation {
    begun: usize,
    open: usize,
    ended: usize,
    last_end: Option<usize>,
    left: usize,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { begun: 0, open: 0, ended: 0, last_end: None, left: MAX_VALUES }
    }
}

impl Evaluation {
    /// Evaluates blocks; each has a list of results.
    pub(crate) fn run<'a>(&mut self, blocks: &'a [Vec<Step>], value: &'a Value) -> Result<Vec<Values<'a>>, EvaluateError> {
        self.blocks(blocks, 0, &[value])
    }

    /// Evaluates the blocks from a place to the end of the range that is open, or to the last.
    fn blocks<'a>(&mut self, blocks: &'a [Vec<Step>], from: usize, input: &[&'a Value]) -> Result<Vec<Values<'a>>, EvaluateError> {
        let mut all = Vec::new();
        let mut at = from;
        while let Some(block) = blocks.get(at) {
            let results = self.steps(block, input.to_vec())?;
            if self.ended > 0 && self.ended <= self.open {
                self.ended -= 1;
                self.last_end = Some(at);
                break;
            }
            if self.begun == 0 {
                all.push(results);
                at += 1;
                continue;
            }
            self.begun -= 1;
            self.open += 1;
            if self.open > MAX_RANGES {
                return Err(EvaluateError::TooDeep);
            }
            for value in &results {
                all.extend(self.blocks(blocks, at + 1, &[value])?);
            }
            if results.is_empty() {
                // Only to find the end.
                self.blocks(blocks, at + 1, &[])?;
            }
            self.open -= 1;
            at = self.last_end.filter(|end| *end > at).unwrap_or(at) + 1;
        }
        Ok(all)
    }

    /// Counts what was touched.
    fn spend(&mut self, values: usize) -> Result<(), EvaluateError> {
        self.left = self.left.checked_sub(values + 1).ok_or(EvaluateError::TooMany)?;
        Ok(())
    }

    fn steps<'a>(&mut self, steps: &'a [Step], input: Values<'a>) -> Result<Values<'a>, EvaluateError> {
        let mut values = input;
        for step in steps {
            values = self.step(step, values)?;
            self.spend(values.len())?;
        }
        self.spend(0)?;
        Ok(values)
    }

    fn step<'a>(&mut self, step: &'a Step, input: Values<'a>) -> Result<Values<'a>, EvaluateError> {
        Ok(match step {
            Step::Literal(literal) => vec![literal],
            Step::Constant(constant) => vec![constant; input.len()],
            Step::Field(name) => input.into_iter().filter_map(|value| value.as_object()?.get(name)).collect(),
            Step::Wildcard => {
                let mut all = Vec::new();
                for value in input {
                    let inside = contents(value);
                    self.spend(inside.len())?;
                    all.extend(inside);
                }
                all
            }
            Step::Descent => {
                let mut all = Vec::new();
                for value in input {
                    self.descend(value, &mut all)?;
                }
                all
            }
            Step::Slice(slice) => sliced(*slice, &input)?,
            Step::Union(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.steps(part, input.clone())?);
                }
                all
            }
            Step::Exists(path) => self.filtered(&input, |this, value| this.exists(path, value))?,
            Step::Compare(comparison) => self.filtered(&input, |this, value| this.compares(comparison, value))?,
            Step::Range => {
                self.begun += 1;
                input
            }
            Step::End if self.open > 0 => {
                self.ended += 1;
                Vec::new()
            }
            Step::End => return Err(EvaluateError::End),
        })
    }

    /// A value and all below it that have contents, each before its contents.
    fn descend<'a>(&mut self, value: &'a Value, all: &mut Values<'a>) -> Result<(), EvaluateError> {
        let inside = contents(value);
        self.spend(inside.len())?;
        if !inside.is_empty() {
            all.push(value);
        }
        inside.into_iter().try_for_each(|value| self.descend(value, all))
    }

    fn filtered<'a>(
        &mut self,
        input: &[&'a Value],
        passes: impl Fn(&mut Self, &'a Value) -> Result<bool, EvaluateError>,
    ) -> Result<Values<'a>, EvaluateError> {
        let mut all = Vec::new();
        for value in input {
            for element in value.as_array().ok_or(EvaluateError::NotArray)? {
                self.spend(0)?;
                if passes(self, element)? {
                    all.push(element);
                }
            }
        }
        Ok(all)
    }

    /// As kubectl has it, a path that fails exists: `[?(@.args[5])]` is true where `args` is shorter.
    fn exists<'a>(&mut self, path: &'a [Step], value: &'a Value) -> Result<bool, EvaluateError> {
        match self.steps(path, vec![value]) {
            Ok(found) => Ok(!found.is_empty()),
            Err(EvaluateError::TooMany) => Err(EvaluateError::TooMany),
            Err(_) => Ok(true),
        }
    }

    fn compares<'a>(&mut self, comparison: &'a Comparison, value: &'a Value) -> Result<bool, EvaluateError> {
        let mut sides = Vec::new();
        for side in [&comparison.left, &comparison.right] {
            match self.steps(side, vec![value])?[..] {
                [] => return Ok(false),
                [value] => sides.push(value),
                _ => return Err(EvaluateError::Several),
            }
        }
        holds(comparison.operator, sides[0], sides[1])
    }
}

/// Content of a value: elements, fields in the order of their names, bytes of a string.
fn contents(value: &Value) -> Values<'_> {
    match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields.into_iter().map(|(_, value)| value).collect()
        }
        Value::String(text) => text.bytes().map(|byte| &BYTES[usize::from(byte)]).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn sliced<'a>(slice: Slice, input: &[&'a Value]) -> Result<Values<'a>, EvaluateError> {
    let mut all = Vec::new();
    for value in input.iter().filter(|value| !value.is_null()) {
        let elements = value.as_array().ok_or(EvaluateError::NotArray)?;
        let Some((from, to)) = bounds(slice, i64::try_from(elements.len()).unwrap_or(i64::MAX))? else { return Ok(all) };
        let step = match slice.step {
            None => 1,
            Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or(EvaluateError::Step)?,
        };
        all.extend(elements[from..to].iter().step_by(step));
    }
    Ok(all)
}

/// First index, and the one behind the last; `None` for no elements.
fn bounds(slice: Slice, length: i64) -> Result<Option<(usize, usize)>, EvaluateError> {
    let written = slice.from.unwrap_or(0);
    let from = if written < 0 { written.saturating_add(length) } else { written };
    let to = match slice.to {
        End::Open => length,
        End::Single => match written.saturating_add(1) {
            to if to <= 0 => to.saturating_add(length),
            to => to,
        },
        End::At(to) if to < 0 => to.saturating_add(length),
        End::At(to) => to,
    };
    if from == to {
        return Ok(None);
    }
    if from < 0 || from >= length {
        return Err(EvaluateError::OutOfBounds { index: from, length });
    }
    if to < 0 || to > length {
        return Err(EvaluateError::OutOfBounds { index: to.saturating_sub(1), length });
    }
    match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) if from < to => Ok(Some((from, to))),
        _ => Err(EvaluateError::Backwards { from, to }),
    }
}

fn holds(operator: Operator, left: &Value, right: &Value) -> Result<bool, EvaluateError> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => return Err(EvaluateError::Incomparable),
        },
        (Value::Bool(left), Value::Bool(right)) => {
            return match operator {
                Operator::Equal => Ok(left == right),
                Operator::NotEqual => Ok(left != right),
                Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                    Err(EvaluateError::Unordered)
                }
            };
        }
        (Value::Null | Value::Array(_) | Value::Object(_), _) | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err(EvaluateError::Unordered);
        }
        (Value::String(_) | Value::Number(_) | Value::Bool(_), _) => return Err(EvaluateError::Incomparable),
    };
    Ok(match operator {
        Operator::Equal => ordering == Some(Ordering::Equal),
        Operator::NotEqual => ordering != Some(Ordering::Equal),
        Operator::Less => ordering == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => ordering == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    })
}
