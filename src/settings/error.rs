//! Errors of the configuration.

use podstead_pod::Position;
use std::path::{Path, PathBuf};

/// Reason why there is no valid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("read configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// Not YAML, an unknown field, or a value of the wrong type.
    #[error("{location}: {message}")]
    Syntax {
        /// `file:line:column`.
        location: String,
        /// The message, with a suggestion for a misspelt field.
        message: String,
    },
    /// A value that cannot be used.
    #[error("{}{}: {field}: {message}", path.display(), place_of(*position))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Position of the field, or of its parent.
        position: Option<Position>,
        /// The field, e.g. `sources[1].name`.
        field: String,
        /// The reason.
        message: String,
    },
}

/// A mistake in a field of the file at `path`.
pub fn invalid(path: &Path, field: &str, message: String) -> ConfigError {
    ConfigError::Invalid { path: path.to_owned(), position: None, field: field.to_owned(), message }
}

fn place_of(position: Option<Position>) -> String {
    position.map_or_else(String::new, |position| format!(":{}:{}", position.line, position.column))
}
