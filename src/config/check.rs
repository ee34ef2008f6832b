//! Checks of single values that name the file and the field. Pure.

use super::ConfigError;
use super::paths::is_clean_absolute;
use super::written::invalid;
use std::path::{Path, PathBuf};

/// Checks that name the file.
pub(super) struct Check<'a> {
    pub(super) path: &'a Path,
}

impl Check<'_> {
    /// A mistake in a field.
    pub(super) fn invalid(&self, field: &str, message: String) -> ConfigError {
        invalid(self.path, field, message)
    }

    /// A written absolute path, or the default.
    pub(super) fn directory(&self, field: &str, written: Option<&PathBuf>, default: &Path) -> Result<PathBuf, ConfigError> {
        written.map_or_else(|| Ok(default.to_owned()), |written| self.file(field, written))
    }

    /// A written absolute path.
    pub(super) fn file(&self, field: &str, written: &Path) -> Result<PathBuf, ConfigError> {
        if is_clean_absolute(written) {
            // `components` drops a trailing slash and doubled ones.
            return Ok(written.components().collect());
        }
        Err(self.invalid(field, format!("{:?} is not an absolute path without . and ..", written.display().to_string())))
    }

    /// A value from `least` to `most`.
    pub(super) fn range<T: PartialOrd + std::fmt::Display>(
        &self,
        field: &str,
        value: T,
        least: T,
        most: T,
    ) -> Result<T, ConfigError> {
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
pub(super) fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// RFC 1123 subdomain, lower case.
pub(super) fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}
