//! JSON values as YAML text that every reader of YAML 1.1 and 1.2 understands as the same values. `serde_yaml` writes `on` and `N`
//! without quotes, which Kubernetes, and so this decoder, reads as booleans.

use super::scalar;
use crate::encoding::is_printable;
use crate::node::Value as Scalar;
use serde_json::Value;
use std::fmt::Write as _;

/// Writes a value as a YAML document, in kubectl's style.
pub fn to_yaml(value: &Value) -> String {
    written(value, |_| 0)
}

/// As [`to_yaml`], with the keys that people look for first before the others.
pub fn to_manifest(value: &Value) -> String {
    const FIRST: [&str; 8] = ["apiVersion", "kind", "metadata", "name", "namespace", "image", "command", "args"];
    written(value, |key| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len()))
}

/// Rank of a key; keys of one rank are in alphabetical order.
type Rank = fn(&str) -> usize;

fn written(value: &Value, rank: Rank) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(&mut text, value, 0, rank),
        Value::Array(items) if !items.is_empty() => block(&mut text, value, 0, rank),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            inline(&mut text, value, 0);
            text.push('\n');
        }
    }
    text
}

/// The lines of a list or mapping; the first one is already indented.
fn block(text: &mut String, value: &Value, indent: usize, rank: Rank) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| rank(key));
            for (index, (key, value)) in entries.into_iter().enumerate() {
                begin_line(text, index, indent);
                scalar_text(text, key);
                text.push(':');
                below(text, value, indent, if value.is_array() { indent } else { indent + 2 }, rank);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                begin_line(text, index, indent);
                text.push('-');
                if is_block(item) {
                    text.push(' ');
                    block(text, item, indent + 2, rank);
                } else {
                    below(text, item, indent, indent + 2, rank);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn begin_line(text: &mut String, index: usize, indent: usize) {
    if index > 0 {
        text.extend(std::iter::repeat_n(' ', indent));
    }
}

/// A value behind `key:` or `-`, with the line break.
fn below(text: &mut String, value: &Value, indent: usize, block_indent: usize, rank: Rank) {
    if is_block(value) {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', block_indent));
        block(text, value, block_indent, rank);
    } else {
        text.push(' ');
        inline(text, value, indent + 2);
        text.push('\n');
    }
}

fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty()) || value.as_array().is_some_and(|items| !items.is_empty())
}

/// A value that fits on a line, or a text of several lines indented by `indent`; without the last line break.
fn inline(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(string) if fits_a_literal(string) => literal(text, string, indent),
        Value::String(string) => scalar_text(text, string),
        // Empty lists and mappings are the same in JSON.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => text.push_str(&value.to_string()),
    }
}

fn scalar_text(text: &mut String, string: &str) {
    if can_stand_plain(string) {
        text.push_str(string);
    } else {
        quoted(text, string);
    }
}

/// Nobody reads it as anything else than this string.
fn can_stand_plain(string: &str) -> bool {
    let first = string.bytes().next().unwrap_or(b' ');
    let begins_well = !b" -?:,[]{}#&*!|>'\"%@`<=.".contains(&first) || (first == b'.' && string.starts_with("./"));
    // Times, dates and sexagesimal numbers.
    let like_a_time = first.is_ascii_digit() && string.contains(['-', ':']) && !string.contains(char::is_alphabetic)
        || first.is_ascii_digit() && string.contains('T') && string.contains(':');
    begins_well
        && !like_a_time
        && !string.ends_with([' ', ':'])
        && !string.contains(": ")
        && !string.contains(" #")
        && string.chars().all(|character| character != '\t' && is_inside_a_line(character))
        && matches!(scalar::plain(string), Scalar::String(_))
        // What only YAML 1.2 or Rust takes for a number.
        && string.parse::<f64>().is_err()
}

fn is_inside_a_line(character: char) -> bool {
    is_printable(character) && !matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn quoted(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        let written = match character {
            '"' | '\\' => write!(text, "\\{character}"),
            '\n' => write!(text, "\\n"),
            '\t' => write!(text, "\\t"),
            character if is_inside_a_line(character) => write!(text, "{character}"),
            character if u32::from(character) > 0xffff => write!(text, "\\U{:08x}", u32::from(character)),
            character => write!(text, "\\u{:04x}", u32::from(character)),
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
    text.push('"');
}

/// Several lines that lose nothing in a block scalar.
fn fits_a_literal(string: &str) -> bool {
    let whole_lines = string.strip_suffix('\n').unwrap_or(string);
    whole_lines.contains('\n')
        && !string.starts_with([' ', '\t', '\n'])
        && !string.ends_with("\n\n")
        && string.split('\n').all(|line| line.chars().all(is_inside_a_line) && (line.is_empty() || !line.ends_with([' ', '\t'])))
}

fn literal(text: &mut String, string: &str, indent: usize) {
    text.push_str(if string.ends_with('\n') { "|" } else { "|-" });
    for line in string.strip_suffix('\n').unwrap_or(string).split('\n') {
        text.push('\n');
        if !line.is_empty() {
            text.extend(std::iter::repeat_n(' ', indent));
            text.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_in_kubectl_style() {
        let value = json!({
            "apiVersion": "v1",
            "items": [{"name": "a", "args": ["x", "on"]}, ["y", {"z": {}}], [], "q"],
            "number": 5, "float": 1.5, "nothing": null, "true": true, "e": "",
            "script": "#!/bin/sh\nset -e\n", "tail": "a\nb", "image": "nginx:1.27", "ip": "10.0.0.1", "time": "2024-05-01T12:00:00Z",
        });
        let expected = "\
apiVersion: v1
e: \"\"
float: 1.5
image: nginx:1.27
ip: 10.0.0.1
items:
- args:
  - x
  - \"on\"
  name: a
- - \"y\"
  - z: {}
- []
- q
nothing: null
number: 5
script: |
  #!/bin/sh
  set -e
tail: |-
  a
  b
time: \"2024-05-01T12:00:00Z\"
\"true\": true
";
        assert_eq!(to_yaml(&value), expected);
        assert_eq!(to_yaml(&json!({})), "{}\n");
        assert_eq!(to_yaml(&json!("no")), "\"no\"\n");
    }

    #[test]
    fn what_a_reader_could_take_for_something_else_is_quoted() {
        for string in [
            "y",
            "NO",
            "null",
            "~",
            "",
            "0644",
            "1_000",
            "1e3",
            ".5",
            "0x1F",
            ".inf",
            "inf",
            "nan",
            "<<",
            "=",
            "- a",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "\ta",
            "a\tb",
            "\u{85}",
            "\u{7f}",
            "\u{feff}",
            "\u{2028}",
            "1:30",
            "2001-01-01",
            "---",
            "...",
            "@a",
            "%a",
            "`a",
            "{",
            "[a]",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "'a'",
            "\"",
            "#a",
            "?",
        ] {
            assert!(to_yaml(&json!(string)).starts_with('"'), "{string:?}: {}", to_yaml(&json!(string)));
        }
        for string in [
            "a",
            "a b",
            "a:b",
            "a#b",
            "it's",
            "nginx:1.27",
            "/bin/sh",
            "100m",
            "64Mi",
            "10.0.0.0/8",
            "1.2.3",
            "é",
            "./a",
            "a-b",
            "5-a",
        ] {
            assert_eq!(to_yaml(&json!(string)), format!("{string}\n"));
        }
    }
}
