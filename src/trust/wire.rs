//! The encoding of RFC 4251: big-endian lengths before bytes.

/// Reads from the front of some bytes; every answer is bounded by what is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `count` bytes; `None` if there are fewer.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next 32-bit number.
    pub(super) fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    /// The next string: a length and that many bytes.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// The next number of any size, as its magnitude without leading zeros. Negative and padded encodings are refused.
    pub(super) fn magnitude(&mut self) -> Option<&'a [u8]> {
        match self.string()? {
            [0, rest @ ..] if rest.first().is_some_and(|first| *first >= 0x80) => Some(rest),
            bytes @ [first, ..] if (1..0x80).contains(first) => Some(bytes),
            _ => None,
        }
    }

    /// Reports whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a string. Its length is one that was read from a string before, or that of a digest.
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// `magnitude` with zeros in front, `width` bytes in all; `None` if it is longer.
pub(super) fn padded(magnitude: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; width.checked_sub(magnitude.len())?];
    out.extend_from_slice(magnitude);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_where_their_length_says_and_never_after_the_end() {
        let mut reader = Reader::new(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 9, 1]);
        assert_eq!(reader.string(), Some(&[7, 8][..]));
        assert_eq!(reader.string(), None);
        assert_eq!(Reader::new(&[255, 255, 255, 255, 0]).string(), None);
        assert_eq!(Reader::new(&[0, 0, 0]).number(), None);
        assert!(Reader::new(&[]).is_at_end());
    }

    #[test]
    fn a_magnitude_has_one_encoding() {
        let magnitude = |bytes: &[u8]| {
            let mut encoded = Vec::new();
            put_string(&mut encoded, bytes);
            Reader::new(&encoded).magnitude().map(<[u8]>::to_vec)
        };
        assert_eq!(magnitude(&[1, 0, 1]), Some(vec![1, 0, 1]));
        assert_eq!(magnitude(&[0, 0x80]), Some(vec![0x80]));
        for bad in [&[][..], &[0], &[0, 1], &[0x80], &[0, 0, 0x80]] {
            assert_eq!(magnitude(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn padding_never_cuts() {
        assert_eq!(padded(&[1], 3), Some(vec![0, 0, 1]));
        assert_eq!(padded(&[1, 2], 1), None);
    }
}
