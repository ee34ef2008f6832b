//! `fileKeyRef`: variables that an init container wrote into a file of an emptyDir volume.
//!
//! The format is Kubernetes' env file, which a POSIX shell could read too:
//!
//! ```text
//! # a comment
//! NAME='value'      # nothing is expanded in it, and it may go on over several lines
//! ```

use super::EnvError;
use k8s_openapi::api::core::v1::{Container, FileKeySelector};
use std::collections::{BTreeMap, BTreeSet};

use crate::containers::list;

/// Content of the files that a container's variables refer to, by volume and path; `None` for a missing file.
pub type EnvFiles = BTreeMap<(String, String), Option<Vec<u8>>>;

/// Volume and path of every file that the container's variables refer to.
pub fn env_files(container: &Container) -> BTreeSet<(String, String)> {
    let references = list(&container.env).iter().filter_map(|variable| variable.value_from.as_ref()?.file_key_ref.as_ref());
    references.map(|selector| (selector.volume_name.clone(), selector.path.clone())).collect()
}

/// The value of one variable; `None` when file or key is not there and need not be. Messages are the kubelet's, with the place added; what
/// a file holds is in none of them.
pub(super) fn from_file(selector: &FileKeySelector, files: &EnvFiles) -> Result<Option<String>, EnvError> {
    let FileKeySelector { volume_name, path, key, optional } = selector;
    let is_optional = *optional == Some(true);
    let unparsable = |reason: String| EnvError::File { path: path.clone(), volume: volume_name.clone(), reason };
    let Some(content) = files.get(&(volume_name.clone(), path.clone())).and_then(Option::as_ref) else {
        return if is_optional { Ok(None) } else { Err(unparsable("it does not exist".to_owned())) };
    };
    let text = std::str::from_utf8(content).map_err(|_| unparsable("it is not UTF-8 text".to_owned()))?;
    let found = find(text, key).map_err(|Fault { line, reason }| unparsable(format!("line {line}: {reason}")))?;
    match found {
        Some(value) => Ok(Some(value.to_owned())),
        None if is_optional => Ok(None),
        None => Err(EnvError::FileKey { key: key.clone(), path: path.clone() }),
    }
}

/// A line that is no declaration.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// Counted from 1.
    line: usize,
    reason: &'static str,
}

/// The value that is declared for `wanted` first. The file is read to its end: a fault anywhere makes all of it unusable.
fn find<'a>(text: &'a str, wanted: &str) -> Result<Option<&'a str>, Fault> {
    let mut found = None;
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let fault = |reason| Fault { line, reason };
        let start = rest.trim_start_matches([' ', '\t', '\r']);
        if start.starts_with('\n') || start.starts_with('#') || start.is_empty() {
            rest = after_line(start);
            line += 1;
            continue;
        }
        let declaration = start.split('\n').next().unwrap_or_default();
        let (key, _) = declaration.split_once('=').ok_or_else(|| fault("'=' is missing"))?;
        if key.is_empty() || key.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(fault("'=' must directly follow a name without blanks"));
        }
        let quoted = start.get(key.len() + 1..).and_then(|value| value.strip_prefix('\''));
        let quoted = quoted.ok_or_else(|| fault("a value in single quotes must directly follow '='"))?;
        let (value, end) = quoted.split_once('\'').ok_or_else(|| fault("the closing quote is missing"))?;
        let tail = end.split('\n').next().unwrap_or_default();
        let comment = tail.trim_start_matches([' ', '\t', '\r']);
        let is_comment = comment.starts_with('#') && comment.len() < tail.len();
        if !comment.is_empty() && !is_comment {
            return Err(fault("only a comment may follow the value"));
        }
        if value.contains('\0') {
            return Err(fault("a value must not contain a NUL character"));
        }
        if key == wanted && found.is_none() {
            found = Some(value);
        }
        line += value.matches('\n').count() + 1;
        rest = after_line(end);
    }
    Ok(found)
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_single_quotes_and_mean_what_is_written() {
        let text = "# a comment\n\n  A='one' # and another\n\tB='two\nlines # in it'\nC=''\nD='$A ${A} \\ \"'\nA='again'\nlast='no newline'";
        for (key, expected) in [
            ("A", Some("one")),
            ("B", Some("two\nlines # in it")),
            ("C", Some("")),
            ("D", Some("$A ${A} \\ \"")),
            ("last", Some("no newline")),
            ("E", None),
        ] {
            assert_eq!(find(text, key), Ok(expected), "{key}");
        }
    }

    #[test]
    fn what_is_no_declaration_is_told_with_its_line() {
        for (text, line, reason) in [
            ("A='1'\nB", 2, "'=' is missing"),
            ("A='1\n2'\nB=2", 3, "a value in single quotes must directly follow '='"),
            ("A = '1'", 1, "'=' must directly follow a name without blanks"),
            ("A= '1'", 1, "a value in single quotes must directly follow '='"),
            ("='1'", 1, "'=' must directly follow a name without blanks"),
            ("\n\nA='1", 3, "the closing quote is missing"),
            ("A='1'2", 1, "only a comment may follow the value"),
            ("A='1'# x", 1, "only a comment may follow the value"),
            ("A='1'\nB='\0'", 2, "a value must not contain a NUL character"),
        ] {
            assert_eq!(find(text, "A"), Err(Fault { line, reason }), "{text:?}");
        }
    }

    #[test]
    fn what_is_missing_is_told_unless_it_is_optional() {
        let selector = |key: &str, path: &str, optional| FileKeySelector {
            volume_name: "v".to_owned(),
            path: path.to_owned(),
            key: key.to_owned(),
            optional: Some(optional),
        };
        let files = EnvFiles::from([(("v".to_owned(), "f".to_owned()), Some(b"A='1'".to_vec()))]);
        assert_eq!(from_file(&selector("A", "f", false), &files), Ok(Some("1".to_owned())));
        let told = |key, path| from_file(&selector(key, path, false), &files).unwrap_err().to_string();
        assert_eq!(told("B", "f"), "environment variable key \"B\" not found in file \"f\"");
        assert_eq!(told("A", "g"), "couldn't parse env file \"g\" of volume \"v\": it does not exist");
        assert_eq!(from_file(&selector("B", "f", true), &files), Ok(None));
        assert_eq!(from_file(&selector("A", "g", true), &files), Ok(None));
    }
}
