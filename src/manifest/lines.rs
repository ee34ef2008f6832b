//! Byte offsets to lines and columns, fast for files of many lines and for files of one line.

use podstead_pod::Position;

/// UTF-8's byte order mark: has no width.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Every so many bytes, the position is noted; in between, it is counted.
const STRIDE: usize = 256;

/// Index that finds a line number in constant time, for 3 % of the file's size.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    /// The position of each byte whose offset is a multiple of the stride.
    marks: Vec<Position>,
}

impl<'a> Lines<'a> {
    /// Looks through a file once. Lines end with `\n`, `\r\n` or `\r`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut lines = Self { bytes, marks: Vec::with_capacity(bytes.len() / STRIDE + 1) };
        let mut position = Position { line: 1, column: 1 };
        for begin in (0..bytes.len()).step_by(STRIDE) {
            lines.marks.push(position);
            position = lines.walk(position, begin, begin + STRIDE);
        }
        lines
    }

    /// The position of the byte at `end`, counted from that at `begin`.
    fn walk(&self, from: Position, begin: usize, end: usize) -> Position {
        let Position { mut line, mut column } = from;
        let mark = if self.bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        for at in begin.max(mark)..end.min(self.bytes.len()) {
            match self.bytes[at] {
                b'\n' => (line, column) = (line + 1, 1),
                b'\r' if self.bytes.get(at + 1) != Some(&b'\n') => (line, column) = (line + 1, 1),
                byte if is_continuation(byte) => {}
                _ => column += 1,
            }
        }
        Position { line, column }
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
        let offset = (offset as usize).min(self.bytes.len());
        // At the very end of a file of whole strides there is no mark.
        let mark = (offset / STRIDE).min(self.marks.len().saturating_sub(1));
        match self.marks.get(mark) {
            Some(position) => self.walk(*position, mark * STRIDE, offset),
            None => Position { line: 1, column: 1 },
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
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
        for length in [0, 1, 250, 251, 252, 253, 254, 255, 256, 600] {
            let text = format!("a: 1\nß: ü€𝄞x\n{}\nend", "äb".repeat(length));
            let lines = Lines::new(text.as_bytes());
            for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
                assert_eq!(lines.position(offset as u32), counted(&text, offset), "at {offset}");
            }
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
