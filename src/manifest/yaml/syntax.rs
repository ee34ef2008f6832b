//! Syntax errors with a remedy.

use crate::fault::{Fault, code};

/// Messages of libyaml, and their most frequent remedies.
const HINTS: &[(&str, &str)] = &[
    (
        "mapping values are not allowed",
        "a value with `: ` in it needs quotes; otherwise check the indentation of this line and the one before",
    ),
    (
        "did not find expected key",
        "check the indentation of this line and the ones before; text after a closing quote is not allowed",
    ),
    ("did not find expected '-' indicator", "the items of a list must begin with `- ` in the same column"),
    ("did not find expected ',' or", "a `[` or `{` is not closed, or a comma is missing"),
    ("could not find expected ':'", "expected `key: value`; text over several lines needs `|` or quotes"),
    ("found unexpected end of stream", "a quote is not closed, or the file is cut off"),
    ("found unexpected document indicator", "a quote is not closed before the next `---`"),
    ("block sequence entries are not allowed", "a list must begin on its own line"),
    ("did not find expected node content", "a value is missing, or a `[` or `{` is not closed"),
    ("unknown anchor", "define it with `&name` earlier in the same document"),
    ("found undefined tag handle", "remove the tag"),
    ("found incompatible YAML document", "remove the %YAML line"),
];

/// The fault behind an error of the YAML parser in a document that begins at byte `start`, in line `line`.
pub(super) fn yaml_fault(error: &serde_yaml::Error, text: &str, start: usize, line: u32) -> Fault {
    let message = error.to_string();
    let (problem, context) = split_places(&message, line);
    let index = error.location().map_or(0, |location| location.index());
    let mut at = index.min(text.len());
    // At the end of a cut-off file, the last thing written is the place to look at.
    if text[floor_boundary(text, at)..].trim().is_empty() {
        at = text.trim_end().len();
    }
    let wrong = text.as_bytes().get(at).copied();
    let (message, hint) = match (problem.contains("cannot start any token") || problem.contains("a tab character"), wrong) {
        (true, Some(b'\t')) => ("tabs are not allowed for indentation".to_owned(), Some("indent with spaces")),
        (true, Some(byte @ (b'@' | b'`' | b'%'))) => {
            (format!("a value cannot begin with `{}`", char::from(byte)), Some("quote the value"))
        }
        (true | false, _) => {
            let hint = HINTS.iter().find(|(words, _)| problem.contains(words)).map(|(_, hint)| *hint);
            (format!("{problem}{context}"), hint)
        }
    };
    let fault = Fault::at(code::YAML_SYNTAX, (start + at) as u32, message);
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// The fault behind an error of the JSON parser.
pub(super) fn json_fault(error: &serde_json::Error, text: &str, start: usize) -> Fault {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let line_begin: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = match error.is_eof() {
        true => text.trim_end().len(),
        false => floor_boundary(text, line_begin + error.column().saturating_sub(1)),
    };
    let fault = Fault::at(code::JSON_SYNTAX, (start + at) as u32, format!("not JSON: {message}"));
    match error.classify() {
        serde_json::error::Category::Eof => fault.hint("a bracket or quote is not closed, or the file is cut off"),
        serde_json::error::Category::Syntax if message.contains("trailing characters") => {
            fault.hint("one object per document: put a line `---` between two, or make them items of a List")
        }
        serde_json::error::Category::Syntax | serde_json::error::Category::Data | serde_json::error::Category::Io => fault,
    }
}

/// libyaml's `problem at line 1 column 2, while parsing something at line 3 column 4`, whose lines count from the start of the
/// document: the problem alone, and what was parsed with its line in the file.
fn split_places(message: &str, first_line: u32) -> (String, String) {
    let mut parts = message.split(", ").map(|part| {
        let end = [" at line ", " at position "].iter().filter_map(|words| part.find(words)).min().unwrap_or(part.len());
        part.split_at(end)
    });
    let problem = parts.next().map_or("", |(problem, _)| problem).trim_start_matches(".: ").to_owned();
    let context = parts.filter(|(part, _)| part.starts_with("while ")).map(|(part, place)| {
        let line = place.strip_prefix(" at line ").and_then(|place| place.split(' ').next()?.parse::<u32>().ok());
        match line {
            Some(line) => format!(" {part} that begins in line {}", first_line + line - 1),
            None => format!(" {part}"),
        }
    });
    (problem, context.collect())
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
