//! A file cut into its documents before any of them is parsed, so that one that cannot be parsed does not hide the others.
//!
//! A line that begins with `---` and a blank ends whatever is open, quoted text and block scalars included (YAML 1.2, 9.1.2:
//! such a line cannot be content), so the cut never splits a document that a YAML parser would read as one.

use super::fault::{Fault, code};
use super::lines::BYTE_ORDER_MARK;

/// One document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// Byte offset in the file.
    pub(super) start: usize,
    /// Its bytes, without the `---`.
    pub(super) bytes: &'a [u8],
}

/// The documents that hold more than blanks and comments: the first `max`, and one more if there are more.
pub(super) fn cut(file: &[u8], max: usize) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let mut start = if file.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut content = Content::Nothing;
    let mut at = start;
    while at < file.len() && documents.len() <= max {
        let end = line_end(file, at);
        let line = &file[at..end];
        if is_marker(line, b"---") {
            match content {
                Content::Something => documents.push(Document { start, bytes: &file[start..at] }),
                Content::Nothing | Content::Directives => {}
            }
            // Directives (`%YAML 1.1`) belong to the document behind the marker and need it.
            if content != Content::Directives {
                start = at + 3;
            }
            content = if is_blank(&line[3..]) { Content::Nothing } else { Content::Something };
        } else if content != Content::Something && !is_blank(line) && !is_marker(line, b"...") {
            content = if line.starts_with(b"%") { Content::Directives } else { Content::Something };
        }
        at = end;
    }
    match content {
        _ if documents.len() > max => {}
        Content::Something | Content::Directives => documents.push(Document { start, bytes: &file[start..] }),
        Content::Nothing => {}
    }
    documents
}

/// Content of a document that was seen so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Blanks and comments.
    Nothing,
    /// And directives.
    Directives,
    /// And more.
    Something,
}

/// The offset behind the line that begins at `at`, its line break included.
fn line_end(file: &[u8], at: usize) -> usize {
    file[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(file.len(), |length| at + length + 1)
}

fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.starts_with(marker) && matches!(line.get(3), None | Some(b' ' | b'\t' | b'\n' | b'\r'))
}

/// Only white space, or a comment.
fn is_blank(line: &[u8]) -> bool {
    matches!(line.iter().find(|byte| !byte.is_ascii_whitespace()), None | Some(b'#'))
}

/// Brackets that may be open at once. The parser takes time in proportion to it for every token.
const MAX_OPEN_BRACKETS: usize = 1000;

/// Refuses a document that would cost the parser much more memory or time than its size suggests, by counting what could begin
/// a value. Text in block scalars does not count, text in quotes does.
pub(super) fn check_density(document: &Document<'_>, max_nodes: u32) -> Result<(), Fault> {
    let (mut values, mut open, mut block) = (0_usize, 0_usize, None);
    let mut at = 0;
    while at < document.bytes.len() {
        let end = line_end(document.bytes, at);
        let line = document.bytes[at..end].trim_ascii_end();
        let start = document.start + at;
        at = end;
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        match block {
            _ if line.is_empty() => continue,
            Some(parent) if indent > parent => continue,
            Some(_) | None => block = (open == 0 && begins_block_scalar(line)).then_some(indent),
        }
        for (column, pair) in line.windows(2).enumerate() {
            match pair {
                [b'[' | b'{', _] => {
                    values += 1;
                    open += 1;
                }
                [b']' | b'}', _] => open = open.saturating_sub(1),
                [b',', _] | [b':' | b'-' | b'?', b' ' | b'\t'] => values += 1,
                _ => {}
            }
            if open > MAX_OPEN_BRACKETS {
                let message = format!("more than {MAX_OPEN_BRACKETS} brackets are open");
                return Err(Fault::at(code::TOO_COMPLEX, (start + column) as u32, message).hint("is a closing bracket missing?"));
            }
        }
        match line.last() {
            Some(b'[' | b'{') => (values, open) = (values + 1, open + 1),
            Some(b']' | b'}') => open = open.saturating_sub(1),
            Some(b',' | b':' | b'-' | b'?') => values += 1,
            Some(_) | None => {}
        }
        if values > max_nodes as usize {
            let message = format!("the document has more than {max_nodes} values");
            return Err(Fault::at(code::TOO_COMPLEX, start as u32, message).hint("split it into several documents"));
        }
    }
    Ok(())
}

/// `key: |`, `- >-` and their like, with an indentation digit or a comment behind.
fn begins_block_scalar(line: &[u8]) -> bool {
    let text = match line.windows(2).position(|pair| pair == b" #") {
        Some(comment) => line[..comment].trim_ascii_end(),
        None => line,
    };
    if text.trim_ascii_start().starts_with(b"#") {
        return false;
    }
    let header = text.iter().rev().take_while(|byte| matches!(byte, b'+' | b'-' | b'0'..=b'9')).count();
    let Some((indicator, before)) = text[..text.len() - header].split_last() else { return false };
    header <= 2 && matches!(indicator, b'|' | b'>') && before.last().is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(file: &str) -> Vec<&str> {
        cut(file.as_bytes(), usize::MAX).iter().map(|document| std::str::from_utf8(document.bytes).unwrap()).collect()
    }

    #[test]
    fn documents_end_at_lines_of_three_dashes_only() {
        assert_eq!(pieces("a: 1\n---\nb: 2\n"), ["a: 1\n", "\nb: 2\n"]);
        assert_eq!(pieces("---\r\na: 1\r\n---\r\nb: 2"), ["\r\na: 1\r\n", "\r\nb: 2"]);
        assert_eq!(pieces("a: |\n  ---\n  x\nb: ---\n----\n---x\n"), ["a: |\n  ---\n  x\nb: ---\n----\n---x\n"]);
        assert_eq!(pieces("--- {a: 1}\n--- # note\nb: 2\n---"), [" {a: 1}\n", " # note\nb: 2\n"]);
    }

    #[test]
    fn documents_of_blanks_and_comments_are_no_documents() {
        assert_eq!(pieces(""), [""; 0]);
        assert_eq!(pieces("# only\n\n  # comments\n---\n---\n \t\n---\n...\n"), [""; 0]);
        assert_eq!(pieces("\u{feff}"), [""; 0]);
        assert_eq!(pieces("\u{feff}a: 1"), ["a: 1"]);
    }

    #[test]
    fn directives_stay_with_the_document_that_they_are_for() {
        assert_eq!(pieces("%YAML 1.1\n---\na: 1\n---\nb: 2\n"), ["%YAML 1.1\n---\na: 1\n", "\nb: 2\n"]);
    }

    #[test]
    fn no_more_than_one_document_above_the_limit_is_cut() {
        let count = |file: &str, max| cut(file.as_bytes(), max).len();
        assert_eq!((count("a\n---\nb\n---\nc\n---\nd", 2), count("a\n---\nb", 2), count("a\n---\nb\n---\nc", 2)), (3, 2, 3));
    }

    #[test]
    fn a_document_knows_where_it_begins() {
        let file = "a: 1\n---\nb: 2\n";
        let starts: Vec<_> = cut(file.as_bytes(), usize::MAX).iter().map(|document| document.start).collect();
        assert_eq!(starts, [0, 8]);
    }

    fn density(text: &str, max_nodes: u32) -> Result<(), Fault> {
        check_density(&Document { start: 0, bytes: text.as_bytes() }, max_nodes)
    }

    #[test]
    fn dense_documents_and_open_brackets_are_refused() {
        assert!(density(&"[a,".repeat(200), 100).is_err());
        assert!(density(&"- ".repeat(101), 100).is_err());
        assert!(density(&"a: b\n".repeat(101), 100).is_err());
        assert!(density(&"a: b\n".repeat(99), 100).is_ok());
        assert!(density(&"[".repeat(1002), 5000).is_err());
        assert!(density(&"[]\n".repeat(1002), 5000).is_ok());
    }

    #[test]
    fn text_in_block_scalars_does_not_count() {
        let json = "    {\"a\": [1, 2, 3, [[[[\n".repeat(1000);
        assert!(density(&format!("a:\n  b: |-  # json\n{json}  c: 1\n"), 20).is_ok());
        assert!(density(&format!("a:\n  - >2\n{json}"), 20).is_ok());
        assert!(density(&format!("a:\n  b: x|\n{json}"), 20).is_err());
        assert!(density(&format!("  # |\n{json}"), 20).is_err());
        assert!(density(&format!("a: |\n  x\n{json}b:\n{json}"), 20).is_err());
    }
}
