//! A problem before it has a file and a line, as passed between the stages of decoding.

use super::lines::Lines;
use super::{ObjectKey, Problem};
use podstead_pod::Severity;

/// Stable words for the classes of problems.
pub(super) mod code {
    pub(crate) const BINARY_FILE: &str = "binary-file";
    pub(crate) const DUPLICATE_KEY: &str = "duplicate-key";
    pub(crate) const DUPLICATE_NAME: &str = "duplicate-name";
    pub(crate) const ENCODING: &str = "encoding";
    pub(crate) const FILE_TOO_LARGE: &str = "file-too-large";
    pub(crate) const INVALID_VALUE: &str = "invalid-value";
    pub(crate) const JSON_SYNTAX: &str = "json-syntax";
    pub(crate) const MISSING_FIELD: &str = "required";
    pub(crate) const NOT_AN_OBJECT: &str = "not-an-object";
    /// An encrypted document: it cannot be opened, or what that means.
    pub const SOPS: &str = "sops";
    pub(crate) const TOO_COMPLEX: &str = "too-complex";
    pub(crate) const TOO_MANY_PROBLEMS: &str = "too-many-problems";
    pub(crate) const UNKNOWN_FIELD: &str = "unknown-field";
    pub(crate) const UNSUPPORTED_KIND: &str = "unsupported-kind";
    pub(crate) const UNSUPPORTED_YAML: &str = "unsupported-yaml";
    pub(crate) const WRONG_TYPE: &str = "wrong-type";
    pub(crate) const YAML_SYNTAX: &str = "yaml-syntax";
}

/// One thing that is wrong at a byte of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// One of [`code`].
    pub(super) code: &'static str,
    /// Byte offset in the file; `None` when the file as a whole is concerned.
    pub(super) at: Option<u32>,
    /// The field, as the document spells its way (`items[3].spec...`).
    pub(super) field: String,
    /// The message.
    pub(super) message: String,
    /// The remedy.
    pub(super) hint: Option<String>,
}

impl Fault {
    /// A fault of the file as a whole.
    pub(super) fn of_file(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, at: None, field: String::new(), message: message.into(), hint: None }
    }

    /// A fault at a byte.
    pub(super) fn at(code: &'static str, at: u32, message: impl Into<String>) -> Self {
        Self { code, at: Some(at), field: String::new(), message: message.into(), hint: None }
    }

    /// Names the field.
    pub(super) fn field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// Sets the remedy.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the file and line.
    pub(super) fn into_problem(self, file: &str, lines: &Lines<'_>, object: Option<&ObjectKey>) -> Problem {
        Problem {
            severity: Severity::Error,
            code: self.code.to_owned(),
            file: file.to_owned(),
            position: self.at.map(|at| lines.position(at)),
            field: fit_for_a_line(self.field),
            message: fit_for_a_line(self.message),
            hint: self.hint.map(fit_for_a_line),
            object: object.cloned(),
        }
    }
}

/// Text that may hold words of the manifest, as it may stand in a log and on a terminal: of one line, without control characters,
/// not endless.
fn fit_for_a_line(text: String) -> String {
    const LONGEST: usize = 500;
    match text.char_indices().nth(LONGEST) {
        None if !text.chars().any(char::is_control) => text,
        None => text.escape_debug().to_string(),
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
    }
}

/// `text` in double quotes, control characters escaped, cut when it is long.
pub(super) fn quoted(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A path in double quotes. Of a long one, the end is shown: it has the name.
pub(super) fn quoted_path(path: &str) -> String {
    const MAX: usize = 80;
    let cut = path.char_indices().rev().nth(MAX - 1).map_or(0, |(at, _)| at);
    match path[cut..].find('/') {
        Some(slash) if cut > 0 => format!("\"...{}\"", path[cut + slash..].escape_debug()),
        Some(_) | None => format!("{path:?}"),
    }
}
