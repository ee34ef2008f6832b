//! The framing of OpenPGP packets (RFC 9580, 4.2): both header formats, whole packets only.

/// A packet: its type and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

pub(super) const SIGNATURE: u8 = 2;
pub(super) const SECRET_KEY: u8 = 5;
pub(super) const PUBLIC_KEY: u8 = 6;
pub(super) const SECRET_SUBKEY: u8 = 7;
pub(super) const USER_ID: u8 = 13;
pub(super) const PUBLIC_SUBKEY: u8 = 14;
pub(super) const USER_ATTRIBUTE: u8 = 17;

const SHORT: &str = "it is truncated";

/// All packets, to the last byte.
pub(super) fn packets(mut bytes: &[u8]) -> Result<Vec<Packet<'_>>, &'static str> {
    let mut packets = Vec::new();
    while let Some((header, rest)) = bytes.split_first() {
        let (tag, length, rest) = match header >> 6 {
            0b11 => {
                let (length, rest) = new_length(rest)?;
                (header & 0x3f, length, rest)
            }
            0b10 => {
                let width = match header & 3 {
                    0 => 1,
                    1 => 2,
                    2 => 4,
                    _ => return Err("it has a packet without a length"),
                };
                let (length, rest) = rest.split_at_checked(width).ok_or(SHORT)?;
                (header >> 2 & 0xf, number(length), rest)
            }
            _ => return Err("it does not consist of OpenPGP packets"),
        };
        let (body, after) = rest.split_at_checked(length).ok_or(SHORT)?;
        packets.push(Packet { tag, body });
        bytes = after;
    }
    Ok(packets)
}

fn new_length(bytes: &[u8]) -> Result<(usize, &[u8]), &'static str> {
    match length(bytes) {
        Some(found) => Ok(found),
        None if matches!(bytes.first(), Some(224..=254)) => Err("it has a packet with partial lengths"),
        None => Err(SHORT),
    }
}

/// The length in front of `bytes`, in the form of packets with one, two or five bytes.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [first @ 0..192, ref rest @ ..] => Some((first.into(), rest)),
        [first @ 192..224, second, ref rest @ ..] => Some((((usize::from(first) - 192) << 8) + usize::from(second) + 192, rest)),
        [255, a, b, c, d, ref rest @ ..] => Some((number(&[a, b, c, d]), rest)),
        _ => None,
    }
}

/// The length in front of a subpacket (RFC 9580, 5.2.3.7): as that of packets, without parts.
pub(super) fn subpacket_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [first @ 224..=254, second, ref rest @ ..] => Some((((usize::from(first) - 192) << 8) + usize::from(second) + 192, rest)),
        _ => length(bytes),
    }
}

/// A multiprecision integer without its leading zeros, and what comes after it.
pub(super) fn integer(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bits, rest) = bytes.split_at_checked(2)?;
    let (value, rest) = rest.split_at_checked(number(bits).div_ceil(8))?;
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    Some((&value[zeros..], rest))
}

/// Big-endian, of at most four bytes.
pub(super) fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_headers_and_all_lengths_are_read() {
        let long = [vec![0xc0 | 13, 192, 8], vec![7; 200]].concat();
        let longest = [vec![0xc0 | 13, 255, 0, 0, 1, 0], vec![7; 256]].concat();
        let old = [vec![0x80 | 13 << 2 | 1, 0, 3], vec![7; 3]].concat();
        for (bytes, length) in [(vec![0xc0 | 13, 1, 7], 1), (long, 200), (longest, 256), (old, 3)] {
            let found = packets(&bytes).unwrap();
            assert_eq!(found, [Packet { tag: USER_ID, body: &vec![7; length] }]);
            assert!(packets(&bytes[..bytes.len() - 1]).is_err());
        }
        assert_eq!(packets(&[0xc2, 0, 0xcd, 0]).unwrap().len(), 2);
    }

    #[test]
    fn what_has_no_length_or_comes_in_parts_is_refused() {
        assert_eq!(packets(&[0x83 | 2 << 2, 0]), Err("it has a packet without a length"));
        assert_eq!(packets(&[0xc2, 224, 0]), Err("it has a packet with partial lengths"));
        assert_eq!(packets(b"text"), Err("it does not consist of OpenPGP packets"));
        assert_eq!(packets(&[0xc2]), Err(SHORT));
    }

    #[test]
    fn integers_lose_their_leading_zeros() {
        assert_eq!(integer(&[0, 9, 1, 2, 3]), Some((&[1, 2][..], &[3][..])));
        assert_eq!(integer(&[0, 16, 0, 2]), Some((&[2][..], &[][..])));
        assert_eq!(integer(&[0, 9, 1]), None);
    }
}
