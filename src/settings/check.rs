//! Checks of single values that name the file and the field. Pure.

use super::ConfigError;
use crate::invalid;
use podstead_sys::layout::is_clean_absolute;
use std::path::{Path, PathBuf};

/// Checks that name the file.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The file.
    pub path: &'a Path,
}

impl Check<'_> {
    /// A mistake in a field.
    pub fn invalid(&self, field: &str, message: String) -> ConfigError {
        invalid(self.path, field, message)
    }

    /// A written absolute path, or the default.
    pub fn directory(&self, field: &str, written: Option<&PathBuf>, default: &Path) -> Result<PathBuf, ConfigError> {
        written.map_or_else(|| Ok(default.to_owned()), |written| self.file(field, written))
    }

    /// A written absolute path.
    pub fn file(&self, field: &str, written: &Path) -> Result<PathBuf, ConfigError> {
        if is_clean_absolute(written) {
            // `components` drops a trailing slash and doubled ones.
            return Ok(written.components().collect());
        }
        Err(self.invalid(field, format!("{:?} is not an absolute path without . and ..", written.display().to_string())))
    }

    /// A value from `least` to `most`.
    pub fn range<T: PartialOrd + std::fmt::Display>(&self, field: &str, value: T, least: T, most: T) -> Result<T, ConfigError> {
        if value < least {
            Err(self.invalid(field, format!("is {value}, must be at least {least}")))
        } else if value > most {
            Err(self.invalid(field, format!("is {value}, must be at most {most}")))
        } else {
            Ok(value)
        }
    }
}

/// RFC 1123 label, lower case.
pub fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// RFC 1123 subdomain, lower case.
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Checks a label, which is written in `field`.
pub fn label(check: &Check<'_>, field: &str, key: &str, value: &str) -> Result<(), ConfigError> {
    if !is_label_key(key) {
        return Err(
            check.invalid(field, "is not a label key: must be letters, digits, '-', '_', '.' and at most one '/'".to_owned())
        );
    }
    if !is_label_value(value) {
        let message = format!("is {value:?}, which is not a label value: must be at most 63 letters, digits, '-', '_' and '.'");
        return Err(check.invalid(field, message));
    }
    Ok(())
}

/// As Kubernetes has them: an optional prefix of names with dots, and a name.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("x", key));
    let is_part = |part: &str| !part.is_empty() && is_label_value(part);
    is_part(name) && prefix.len() <= 253 && prefix.split('.').all(is_part)
}

fn is_label_value(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    value.len() <= 63 && value.bytes().all(inner) && outer(value.bytes().next()) && outer(value.bytes().last())
}
