//! Errors for people: the whole chain of causes in one line, with the fix first where it is known.

use super::space::SpaceError;
use std::error::Error;
use std::io;
use std::sync::Arc;

/// `error` and its causes, separated by colons. A full disk is said first.
pub(super) fn explain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let message = error.to_string();
        // Some wrappers repeat what they wrap.
        if !text.ends_with(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
        cause = error.source();
    }
    match is_for_want_of_space(error) {
        true => format!("the disk of the image store is full: {text}"),
        false => text,
    }
}

/// Returns true if the disk was full.
pub(super) fn is_for_want_of_space(error: &(dyn Error + 'static)) -> bool {
    let is_full = |error: &(dyn Error + 'static)| {
        let shared = error.downcast_ref::<Arc<io::Error>>().map(|error| &**error);
        error
            .downcast_ref::<io::Error>()
            .or(shared)
            .is_some_and(|error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
            || matches!(error.downcast_ref(), Some(SpaceError::Bytes { .. } | SpaceError::Inodes { .. }))
    };
    let mut cause = Some(error);
    while let Some(error) = cause {
        if is_full(error) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::layer::LayerError;
    use super::*;

    #[test]
    fn all_causes_are_told_and_a_full_disk_first() {
        let error = LayerError::Read(io::Error::other("cable"));
        assert_eq!(explain(&error), "read layer: cable");
        let error = LayerError::Read(io::Error::from_raw_os_error(28));
        assert_eq!(explain(&error), "the disk of the image store is full: read layer: No space left on device (os error 28)");
    }
}
