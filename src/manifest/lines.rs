//! Byte offsets to lines and columns, fast for files of many lines and for files of one line.

use super::Position;

/// UTF-8's byte order mark: has no width.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How far a position is counted from the nearest mark.
const STRIDE: usize = 1024;

/// A byte whose position is known.
#[derive(Clone, Copy, Debug)]
struct Mark {
    offset: u32,
    position: Position,
}

/// The places of line breaks (and, in long lines, of bytes in between).
#[derive(Debug)]
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    marks: Vec<Mark>,
}

impl<'a> Lines<'a> {
    /// Looks through a file once. Lines end with `\n`, `\r\n` or `\r`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let begin = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut at = Mark { offset: begin as u32, position: Position { line: 1, column: 1 } };
        let mut marks = vec![at];
        for (offset, &byte) in bytes.iter().enumerate().skip(begin) {
            let line_ends = byte == b'\n' || (byte == b'\r' && bytes.get(offset + 1) != Some(&b'\n'));
            if line_ends {
                at = Mark { offset: offset as u32 + 1, position: Position { line: at.position.line + 1, column: 1 } };
                marks.push(at);
            } else if offset - at.offset as usize >= STRIDE && !is_continuation(byte) {
                let column = at.position.column + characters(&bytes[at.offset as usize..offset]);
                at = Mark { offset: offset as u32, position: Position { line: at.position.line, column } };
                marks.push(at);
            }
        }
        Self { bytes, marks }
    }

    /// The unquoted word at `offset`, as written; `None` when there is a quote, or no word of a length that is worth showing.
    pub(super) fn word(&self, offset: u32) -> Option<&'a str> {
        const LONGEST: usize = 40;
        let rest = self.bytes.get(offset as usize..)?;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        let length = rest.iter().take(LONGEST).position(ends).or((rest.len() < LONGEST).then_some(rest.len()))?;
        let word = std::str::from_utf8(&rest[..length]).ok()?;
        (!word.is_empty() && !word.starts_with(['"', '\'', '|', '>', '&', '*', '!'])).then_some(word)
    }

    /// The place of the byte at `offset`; an offset behind the end is the end.
    pub(super) fn position(&self, offset: u32) -> Position {
        let mark = match self.marks.partition_point(|mark| mark.offset <= offset) {
            0 => return Position { line: 1, column: 1 },
            after => self.marks[after - 1],
        };
        let end = (offset as usize).min(self.bytes.len()).max(mark.offset as usize);
        let column = mark.position.column + characters(&self.bytes[mark.offset as usize..end]);
        Position { line: mark.position.line, column }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| !is_continuation(**byte)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and column by counting from the start.
    fn counted(text: &str, offset: usize) -> Position {
        let before = &text[..offset];
        let line = 1 + before.matches('\n').count() as u32;
        let column = 1 + before.rsplit('\n').next().unwrap().chars().count() as u32;
        Position { line, column }
    }

    #[test]
    fn positions_are_those_that_counting_gives_also_in_long_lines() {
        let text = format!("a: 1\nß: ü€𝄞x\n{}\nend", "äb".repeat(3000));
        let lines = Lines::new(text.as_bytes());
        for (offset, _) in text.char_indices() {
            assert_eq!(lines.position(offset as u32), counted(&text, offset), "at {offset}");
        }
    }

    #[test]
    fn every_kind_of_line_break_counts_once_and_a_byte_order_mark_has_no_width() {
        let text = "\u{feff}a\r\nb\rc\nd";
        let lines = Lines::new(text.as_bytes());
        let place = |of: char| lines.position(text.find(of).unwrap() as u32);
        assert_eq!(place('a'), Position { line: 1, column: 1 });
        assert_eq!(place('b'), Position { line: 2, column: 1 });
        assert_eq!(place('c'), Position { line: 3, column: 1 });
        assert_eq!(place('d'), Position { line: 4, column: 1 });
        assert_eq!(lines.position(1000), Position { line: 4, column: 2 });
    }
}
