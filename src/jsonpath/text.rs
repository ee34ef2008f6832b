//! Values as text, as programs in Go write them. **Pure**.

use crate::evaluate::EvaluateError;
use serde_json::{Number, Value};

/// Bytes that a rendering may have.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// Text with a limit.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// The text.
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), EvaluateError> {
        if self.0.len() + text.len() > MAX_BYTES {
            return Err(EvaluateError::TooLong);
        }
        self.0.push_str(text);
        Ok(())
    }

    /// Adds a result of a template: strings as they are, objects and arrays as JSON.
    pub(crate) fn push_result(&mut self, value: &Value) -> Result<(), EvaluateError> {
        match value {
            Value::Null => self.push("null"),
            Value::Array(_) | Value::Object(_) => self.push_json(value),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => self.push_plain(value),
        }
    }

    /// Adds a value as `fmt.Sprint` has it: `[a b]`, `map[a:1 b:2]`.
    pub(crate) fn push_plain(&mut self, value: &Value) -> Result<(), EvaluateError> {
        match value {
            Value::Null => self.push("<nil>"),
            Value::Bool(is) => self.push(if *is { "true" } else { "false" }),
            Value::Number(number) => self.push(&plain_number(number)),
            Value::String(text) => self.push(text),
            Value::Array(elements) => {
                self.push("[")?;
                for (index, element) in elements.iter().enumerate() {
                    self.push(if index > 0 { " " } else { "" })?;
                    self.push_plain(element)?;
                }
                self.push("]")
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                self.push("map[")?;
                for (index, (name, value)) in fields.into_iter().enumerate() {
                    self.push(if index > 0 { " " } else { "" })?;
                    self.push(name)?;
                    self.push(":")?;
                    self.push_plain(value)?;
                }
                self.push("]")
            }
        }
    }

    fn push_json(&mut self, value: &Value) -> Result<(), EvaluateError> {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(is) => self.push(if *is { "true" } else { "false" }),
            Value::Number(number) => self.push(&json_number(number)),
            Value::String(text) => self.push(&json_string(text)),
            Value::Array(elements) => {
                self.push("[")?;
                for (index, element) in elements.iter().enumerate() {
                    self.push(if index > 0 { "," } else { "" })?;
                    self.push_json(element)?;
                }
                self.push("]")
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                self.push("{")?;
                for (index, (name, value)) in fields.into_iter().enumerate() {
                    self.push(if index > 0 { "," } else { "" })?;
                    self.push(&json_string(name))?;
                    self.push(":")?;
                    self.push_json(value)?;
                }
                self.push("}")
            }
        }
    }
}

/// As `encoding/json` has it, which is safe to stand in HTML.
fn json_string(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    let mut safe = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe += &format!("\\u{:04x}", u32::from(character)),
            _ => safe.push(character),
        }
    }
    safe
}

/// The number, if it is not a whole one of 64 bits.
fn float(number: &Number) -> Option<f64> {
    number.as_i64().is_none().then(|| number.as_f64()).flatten()
}

/// As `%v` has it: with an exponent from 1e+06 on, and below 0.0001.
fn plain_number(number: &Number) -> String {
    float(number).map_or_else(|| number.to_string(), |float| with_exponent(float, -4, 6))
}

/// As `encoding/json` has it: with an exponent from 1e+21 on, and below 0.000001.
fn json_number(number: &Number) -> String {
    let text = float(number).map_or_else(|| number.to_string(), |float| with_exponent(float, -6, 21));
    text.replace("e-0", "e-")
}

/// The shortest digits that mean the number, with an exponent where it is below `least`, or `most` or more.
fn with_exponent(float: f64, least: i32, most: i32) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if float == 0.0 || (least..most).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
