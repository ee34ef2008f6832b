//! Secrets that lie in files: read when they are needed, so that rotated ones are found, and never shown.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest secret.
const MAX_BYTES: u64 = 64 << 10;

/// Text that must not be seen. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Errors of reading a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("read secret {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error; bytes that are not UTF-8 are `InvalidData`.
        #[source]
        source: io::Error,
    },
    /// No secret is that large.
    #[error("secret {} has more than {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// It has nothing in it.
    #[error("secret {} is empty", .0.display())]
    Empty(PathBuf),
}

impl Secret {
    /// A secret that is known already.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Reads a file. One final line end does not belong to the secret.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| SecretError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text)).map_err(failed)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(SecretError::TooLarge(path.to_owned()));
        }
        let end = text.strip_suffix('\n').map_or(text.len(), |text| text.strip_suffix('\r').unwrap_or(text).len());
        text.truncate(end);
        if text.is_empty() {
            return Err(SecretError::Empty(path.to_owned()));
        }
        Ok(Self(text))
    }

    /// The secret itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_final_line_end_is_not_part_of_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        for (written, expected) in [("s \r\n", "s "), ("s", "s"), ("s\n\n", "s\n"), ("s\r", "s\r")] {
            std::fs::write(&path, written).unwrap();
            assert_eq!(Secret::read(&path).unwrap().expose(), expected, "{written:?}");
        }
        assert_eq!(format!("{:?}", Secret::read(&path).unwrap()), "Secret");
    }

    #[test]
    fn what_is_no_secret_is_refused_by_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        assert!(matches!(Secret::read(&path), Err(SecretError::Read { .. })));
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(Secret::read(&path), Err(SecretError::Empty(_))));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(Secret::read(&path), Err(SecretError::Read { .. })));
        std::fs::write(&path, vec![b'x'; MAX_BYTES as usize + 1]).unwrap();
        let error = Secret::read(&path).unwrap_err();
        assert!(matches!(error, SecretError::TooLarge(_)) && error.to_string().contains("secret"), "{error}");
    }
}
