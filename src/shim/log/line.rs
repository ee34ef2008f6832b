//! Cuts a byte stream into log lines. Pure.

/// The longest text of one log line, as containerd's default; longer lines are split and tagged `P` but for their last part.
pub(super) const MAX_TEXT: usize = 16 * 1024;

/// Stream of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamName {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl StreamName {
    /// As in the log.
    pub(super) fn as_bytes(self) -> &'static [u8; 6] {
        match self {
            Self::Stdout => b"stdout",
            Self::Stderr => b"stderr",
        }
    }
}

/// `F` or `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// The line ends here.
    Full,
    /// The line goes on in the next entry of the same stream.
    Partial,
}

/// Holds the part of a line whose end has not come yet, so that a line is not cut where a read happened to end.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    held: Vec<u8>,
}

impl LineSplitter {
    /// Calls `emit` with each line (without its newline) that `bytes` complete.
    pub(super) fn split(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Tag, &[u8])) {
        while !bytes.is_empty() {
            let room = MAX_TEXT - self.held.len();
            let newline = memchr_newline(&bytes[..bytes.len().min(room + 1)]);
            let (tag, text, rest) = match newline {
                Some(at) => (Tag::Full, &bytes[..at], &bytes[at + 1..]),
                None if bytes.len() > room => (Tag::Partial, &bytes[..room], &bytes[room..]),
                None => {
                    self.held.extend_from_slice(bytes);
                    return;
                }
            };
            if self.held.is_empty() {
                emit(tag, text);
            } else {
                self.held.extend_from_slice(text);
                emit(tag, &self.held);
                // Memory goes back: a shim is idle most of its life.
                self.held = Vec::new();
            }
            bytes = rest;
        }
    }

    /// At the end of the stream: what is held is emitted as a partial line, as containerd does with text that has no newline.
    pub(super) fn finish(&mut self, emit: impl FnOnce(Tag, &[u8])) {
        if !self.held.is_empty() {
            emit(Tag::Partial, &std::mem::take(&mut self.held));
        }
    }
}

fn memchr_newline(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split_all(chunks: &[&[u8]]) -> Vec<(Tag, Vec<u8>)> {
        let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
        for chunk in chunks {
            splitter.split(chunk, |tag, text| lines.push((tag, text.to_vec())));
        }
        splitter.finish(|tag, text| lines.push((tag, text.to_vec())));
        lines
    }

    #[test]
    fn a_line_cut_by_reads_is_one_line() {
        assert_eq!(
            split_all(&[b"he", b"llo", b"\nwor", b"ld\n"]),
            [(Tag::Full, b"hello".to_vec()), (Tag::Full, b"world".to_vec())]
        );
    }

    #[test]
    fn an_empty_line_is_a_line() {
        assert_eq!(split_all(&[b"\n", b"\n"]), [(Tag::Full, Vec::new()), (Tag::Full, Vec::new())]);
    }

    #[test]
    fn text_without_newline_at_the_end_is_partial() {
        assert_eq!(split_all(&[b"a\nb"]), [(Tag::Full, b"a".to_vec()), (Tag::Partial, b"b".to_vec())]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_not_split() {
        let mut text = vec![b'x'; MAX_TEXT];
        text.push(b'\n');
        assert_eq!(split_all(&[&text]), [(Tag::Full, vec![b'x'; MAX_TEXT])]);
        assert_eq!(split_all(&[&text[..MAX_TEXT], b"\n"]), [(Tag::Full, vec![b'x'; MAX_TEXT])]);
    }

    #[test]
    fn a_longer_line_is_split_and_its_last_part_is_full() {
        let mut text = vec![b'x'; 2 * MAX_TEXT + 5];
        text.push(b'\n');
        let lines = split_all(&[&text]);
        assert_eq!(
            lines.iter().map(|(tag, text)| (*tag, text.len())).collect::<Vec<_>>(),
            [(Tag::Partial, MAX_TEXT), (Tag::Partial, MAX_TEXT), (Tag::Full, 5)]
        );
    }

    /// Runs of one byte, newlines among them: as long lines as matter, cheaply made.
    fn output() -> impl Strategy<Value = Vec<u8>> {
        let run = (prop_oneof![Just(b'\n'), any::<u8>()], prop_oneof![1_usize..4, 1_usize..40_000]);
        prop::collection::vec(run, 0..12).prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_byte_is_lost_or_moved_however_the_reads_cut(
            bytes in output(),
            cuts in prop::collection::vec(1_usize..20_000, 1..20),
        ) {
            let (mut rest, mut chunks, mut cuts) = (bytes.as_slice(), Vec::new(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (head, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                chunks.push(head);
                rest = tail;
            }
            let lines = split_all(&chunks);
            let mut joined = Vec::new();
            for (tag, text) in &lines {
                prop_assert!(text.len() <= MAX_TEXT);
                joined.extend_from_slice(text);
                if *tag == Tag::Full {
                    joined.push(b'\n');
                }
            }
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(lines, split_all(&[&bytes]), "cuts do not matter");
        }
    }
}
