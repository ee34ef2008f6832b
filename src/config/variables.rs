//! Labels and variables of this host, for paths of sources and for manifests. Pure.

use podstead_manifest::{Substitution, is_variable_name, variable_name_problem};
use podstead_pod::NodeName;
use podstead_settings::ConfigError;
use podstead_settings::check::{Check, label};
use std::collections::{BTreeMap, BTreeSet};

/// The variable that every host has.
pub const NODE_NAME: &str = "NODE_NAME";
/// Prefix of the variables of labels.
const LABEL: &str = "LABEL_";
/// Bytes of a value.
const MAX_VALUE: usize = 1024;

/// All variables of this host, [`NODE_NAME`] and those of its labels among them.
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Checks names and values.
    pub(super) fn resolve(
        check: &Check<'_>,
        node: &NodeName,
        labels: &BTreeMap<String, String>,
        written: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let mut names = BTreeSet::new();
        for (key, value) in labels {
            let field = format!("labels.{key}");
            label(check, &field, key, value)?;
            let name = name_of_label(key);
            if !names.insert(name.clone()) {
                return Err(check.invalid(&field, format!("becomes the variable {name}, as another label does")));
            }
        }
        for (name, value) in written {
            let field = format!("variables.{name}");
            if !is_variable_name(name) {
                return Err(check.invalid(&field, variable_name_problem(name)));
            }
            if name == NODE_NAME {
                return Err(check.invalid(&field, "is reserved for the name of this host; set nodeName instead".to_owned()));
            }
            if name.starts_with(LABEL) {
                return Err(check.invalid(&field, format!("starts with {LABEL}, which is reserved for labels; set labels instead")));
            }
            if value.len() > MAX_VALUE || value.chars().any(char::is_control) {
                let message = format!("must have at most {MAX_VALUE} bytes, and no line break or other control character");
                return Err(check.invalid(&field, message));
            }
        }
        Ok(Self(values(node, labels, written)))
    }

    /// The name of this host.
    pub(super) fn node_name(&self) -> &str {
        self.0.get(NODE_NAME).map(String::as_str).unwrap_or_default()
    }

    /// Replaces all variables in the value of a field; what looks like one and is none is a mistake.
    pub(super) fn expand(&self, check: &Check<'_>, field: &str, text: &str) -> Result<String, ConfigError> {
        let values = self.0.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        let expanded = Substitution::new(values).in_line(text).map_err(|message| check.invalid(field, message))?;
        if let Some((_, rest)) = expanded.split_once("${") {
            let name = rest.split(['}', ':']).next().unwrap_or(rest);
            let known = self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(check.invalid(field, format!("unknown variable {name:?}; this host has {known}")));
        }
        Ok(expanded)
    }

    /// Returns the substitution for a source that lists these names.
    pub(super) fn substitution(&self, check: &Check<'_>, field: &str, names: &[String]) -> Result<Substitution, ConfigError> {
        if let Some((index, name)) = names.iter().enumerate().find(|(_, name)| !is_variable_name(name)) {
            return Err(check.invalid(&format!("{field}[{index}]"), variable_name_problem(name)));
        }
        Ok(Substitution::new(names.iter().map(|name| (name.clone(), self.0.get(name).cloned()))))
    }
}

/// Everything that may be replaced on a host, by name.
pub(super) fn values(
    node: &NodeName,
    labels: &BTreeMap<String, String>,
    variables: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let labels = labels.iter().map(|(key, value)| (name_of_label(key), value.clone()));
    variables.clone().into_iter().chain(labels).chain([(NODE_NAME.to_owned(), node.to_string())]).collect()
}

/// `LABEL_` and the key in upper case, with `_` for everything but letters and digits.
fn name_of_label(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{LABEL}{}", key.chars().map(plain).collect::<String>())
}
