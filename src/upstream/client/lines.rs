//! Lines out of chunks, of bounded length. **Pure**.

use std::collections::VecDeque;

/// Buffer of received data that is not yet a whole line.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: VecDeque<u8>,
    /// Bytes of the buffer that are known to hold no end of a line.
    searched: usize,
    limit: usize,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(super) const fn new(limit: usize) -> Self {
        Self { buffer: VecDeque::new(), searched: 0, limit }
    }

    /// More bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend(chunk);
    }

    /// The next whole line that is not blank, without its end; an error if it is too long.
    pub(super) fn take(&mut self) -> Result<Option<Vec<u8>>, ()> {
        loop {
            let Some(end) = self.buffer.range(self.searched..).position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return if self.searched > self.limit { Err(()) } else { Ok(None) };
            };
            let line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
            self.searched = 0;
            if line.len() > self.limit + 1 {
                return Err(());
            }
            // A long line must not hold its memory for ever.
            if self.buffer.is_empty() {
                self.buffer = VecDeque::new();
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                return Ok(Some(line.to_vec()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\r\n{\"c\"";
        for size in 1..text.len() {
            let mut lines = Lines::new(20);
            let mut found = Vec::new();
            for chunk in text.chunks(size) {
                lines.push(chunk);
                while let Some(line) = lines.take().unwrap() {
                    found.push(String::from_utf8(line).unwrap());
                }
            }
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"], "chunks of {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut lines = Lines::new(10);
        lines.push(b"0123456789");
        assert_eq!(lines.take(), Ok(None));
        lines.push(b"0");
        assert_eq!(lines.take(), Err(()));
    }
}
