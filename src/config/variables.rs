//! What tells this host from others: variables, for paths of sources and for manifests. Pure.

use super::ConfigError;
use super::check::Check;
use crate::manifest::{Substitution, is_variable_name, variable_name_problem};
use crate::pod::NodeName;
use std::collections::BTreeMap;

/// The variable that every host has.
pub const NODE_NAME: &str = "NODE_NAME";
/// Bytes of a value.
const MAX_VALUE: usize = 1024;

/// All variables of this host, [`NODE_NAME`] among them.
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Checks names and values.
    pub(super) fn resolve(check: &Check<'_>, node: &NodeName, written: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        for (name, value) in written {
            let field = format!("variables.{name}");
            if !is_variable_name(name) {
                return Err(check.invalid(&field, variable_name_problem(name)));
            }
            if name == NODE_NAME {
                return Err(check.invalid(&field, "is the name of this host: set nodeName".to_owned()));
            }
            if value.len() > MAX_VALUE || value.chars().any(char::is_control) {
                let message = format!("is longer than {MAX_VALUE} bytes, or has an end of line or another control character");
                return Err(check.invalid(&field, message));
            }
        }
        let own = (NODE_NAME.to_owned(), node.to_string());
        Ok(Self(written.clone().into_iter().chain([own]).collect()))
    }

    /// Replaces all variables in the value of a field; what looks like one and is none is a mistake.
    pub(super) fn expand(&self, check: &Check<'_>, field: &str, text: &str) -> Result<String, ConfigError> {
        let values = self.0.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        let expanded = Substitution::new(values).in_line(text).map_err(|message| check.invalid(field, message))?;
        if let Some((_, rest)) = expanded.split_once("${") {
            let name = rest.split(['}', ':']).next().unwrap_or(rest);
            let known = self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(check.invalid(field, format!("there is no variable {name:?}; this host has {known}")));
        }
        Ok(expanded)
    }

    /// What is replaced in the manifests of a source that lists these names.
    pub(super) fn substitution(&self, check: &Check<'_>, field: &str, names: &[String]) -> Result<Substitution, ConfigError> {
        if let Some((index, name)) = names.iter().enumerate().find(|(_, name)| !is_variable_name(name)) {
            return Err(check.invalid(&format!("{field}[{index}]"), variable_name_problem(name)));
        }
        Ok(Substitution::new(names.iter().map(|name| (name.clone(), self.0.get(name).cloned()))))
    }
}
