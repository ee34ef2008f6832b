//! One file of the downward API.

use super::ProjectionProblem;
use crate::Pod;
use crate::containers::{self, text};
use crate::env::{EnvFacts, ResourceFieldError, field_ref_value, resource_field_value};
use k8s_openapi::api::core::v1::DownwardAPIVolumeFile;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Content of the file. In a volume, all labels or all annotations may be named, too.
pub(super) fn value(pod: &Pod, file: &DownwardAPIVolumeFile, facts: &EnvFacts) -> Result<String, ProjectionProblem> {
    if let Some(selector) = &file.field_ref {
        return Ok(match selector.field_path.as_str() {
            "metadata.labels" => lines(pod.metadata.labels.as_ref()),
            "metadata.annotations" => lines(pod.metadata.annotations.as_ref()),
            path => field_ref_value(pod, path, facts)?,
        });
    }
    let Some(selector) = &file.resource_field_ref else { return Ok(String::new()) };
    let name = text(&selector.container_name);
    let (_, container) = containers::find(pod, name).ok_or_else(|| ResourceFieldError::NoContainer(name.to_owned()))?;
    Ok(resource_field_value(pod, container, selector, facts)?)
}

/// `key="value"` lines by key, the last without its newline, as the kubelet writes them.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

/// As Go quotes a string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            ' ' => quoted.push(' '),
            c if c.is_control() || c.is_whitespace() => {
                // Writing to a String cannot fail.
                let _written = match u32::from(c) {
                    code @ ..0x80 => write!(quoted, "\\x{code:02x}"),
                    code @ 0x80..0x10000 => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_go_does() {
        assert_eq!(quoted("a\"b\\c\nä\u{1}\u{a0}"), "\"a\\\"b\\\\c\\nä\\x01\\u00a0\"");
    }
}
