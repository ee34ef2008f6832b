//! The way through a document: opens each sealed value, and adds all that counts to the MAC in the order of writing.

use super::{fault, is_encrypted};
use crate::fault::Fault;
use crate::node::{Node, Value};
use crate::sops::{DataKey, Mac, Plain, Rule, SopsError};
use serde_json::Number;

/// Limit for the reported problems of one document.
const MAX_FAULTS: usize = 20;

/// Values that are added to the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    All,
    SealedOnly,
}

pub(super) struct Walk<'a> {
    key: &'a DataKey,
    rule: &'a Rule,
    mac: Option<(&'a mut Mac, Counted)>,
    pub(super) faults: Vec<Fault>,
    /// The keys that lead to where it is, each with a colon behind it; items of a list add nothing.
    place: String,
}

impl<'a> Walk<'a> {
    /// Opens, and adds to the MAC if there is one.
    pub(super) fn new(key: &'a DataKey, rule: &'a Rule, mac: Option<(&'a mut Mac, Counted)>) -> Self {
        Self { key, rule, mac, faults: Vec::new(), place: String::new() }
    }

    /// Opens all of a document that begins at byte `at`.
    pub(super) fn document(&mut self, node: &mut Node, at: u32) {
        self.value(node, false, at);
    }

    /// `is_named` when a key on the way here decides about what is encrypted.
    fn value(&mut self, node: &mut Node, is_named: bool, at: u32) {
        if self.faults.len() >= MAX_FAULTS {
            return;
        }
        let at = node.at.unwrap_or(at);
        match &mut node.value {
            Value::Map(entries) => {
                for entry in entries {
                    let length = self.place.len();
                    self.place.push_str(&entry.key);
                    self.place.push(':');
                    let is_named = is_named || self.rule.is_named(&entry.key);
                    self.value(&mut entry.value, is_named, entry.key_at.unwrap_or(at));
                    self.place.truncate(length);
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.value(item, is_named, at)),
            // Nothing is not encrypted, and does not count.
            Value::Null => {}
            Value::String(text) if is_encrypted(self.rule, is_named, text) => {
                // Nor is an empty text.
                if text.is_empty() {
                    return;
                }
                if !crate::sops::is_sealed(text) {
                    return self.fail(&SopsError::InClear, at);
                }
                match self.key.open(text, &self.place) {
                    Ok((plain, text)) => {
                        if let Some((mac, _)) = &mut self.mac {
                            mac.add(&text);
                        }
                        match typed(plain) {
                            Some(value) => node.value = value,
                            None => self.fail(&SopsError::Malformed, at),
                        }
                    }
                    Err(error) => self.fail(&error, at),
                }
            }
            Value::Bool(_) | Value::Number(_) if is_encrypted(self.rule, is_named, "") => self.fail(&SopsError::InClear, at),
            plain @ (Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Unsupported(_)) => {
                if let Some((mac, Counted::All)) = &mut self.mac {
                    mac.add(&spelled(plain));
                }
            }
        }
    }

    fn fail(&mut self, error: &SopsError, at: u32) {
        let field = self.place.trim_end_matches(':').replace(':', ".");
        self.faults.push(fault(error, at).field(field));
    }
}

fn typed(plain: Plain) -> Option<Value> {
    match plain {
        Plain::Text(text) => Some(Value::String(text)),
        Plain::Bool(value) => Some(Value::Bool(value)),
        Plain::Int(number) => Some(Value::Number(number.into())),
        Plain::Float(number) => whole(number).or_else(|| Number::from_f64(number)).map(Value::Number),
    }
}

/// A number without a fraction, as what it is in a manifest: of JSON, SOPS takes every number for a float.
fn whole(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some((number as i64).into())
}

/// A plain value as SOPS takes it into the MAC.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // Never with an exponent, as Go's format 'f'.
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => number.to_string(),
            (_, Some(number), _) => number.to_string(),
            (_, _, Some(number)) => number.to_string(),
            (None, None, None) => number.to_string(),
        },
        Value::Null | Value::List(_) | Value::Map(_) | Value::Unsupported(_) => String::new(),
    }
}
