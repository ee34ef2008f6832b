//! Errors in words.

use std::io::{self, Write};

/// An error with its causes, in one line.
pub(super) fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Writes a problem to standard error, which is a file in the pod's run directory.
pub(super) fn complain(what: &str, error: &dyn std::error::Error) {
    let text = format!("{} {what}: {}", jiff::Timestamp::now(), explain(error));
    let _full_disk: io::Result<()> = writeln!(io::stderr(), "{text}");
}
