//! DER of X.509 public keys: definite lengths only (X.690, chapter 10).

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OBJECT: u8 = 0x06;

/// Takes the next value, which must have this tag, from the front of `bytes`.
pub(super) fn take<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ ..=0x7f => (usize::from(short), rest),
        0x81 => {
            let (length, rest) = rest.split_first()?;
            (usize::from(*length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    (*found == tag).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_never_reach_past_the_end() {
        let mut good: &[u8] = &[0x30, 2, 7, 8, 9];
        assert_eq!(take(&mut good, SEQUENCE), Some(&[7, 8][..]));
        assert_eq!(good, [9]);
        let long = [&[0x30, 0x81, 128][..], &[1; 128]].concat();
        assert_eq!(take(&mut &long[..], SEQUENCE).map(<[u8]>::len), Some(128));
        for bad in [&[][..], &[0x30], &[0x30, 3, 1, 2], &[0x30, 0x80, 0, 0], &[0x30, 0x83, 0, 0, 0], &[0x30, 0x82, 0], &[2, 1, 1]] {
            assert_eq!(take(&mut &bad[..], SEQUENCE), None, "{bad:?}");
        }
    }
}
