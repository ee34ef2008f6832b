//! Lines with their length before them, the envelope of everything in the protocol.

use super::{ProtocolError, not_git};
use bytes::{Buf, Bytes, BytesMut};

/// Ends a list.
pub(in crate::git) const FLUSH: &[u8] = b"0000";
/// Ends a section of a list.
pub(super) const DELIMITER: &[u8] = b"0001";

const LENGTH: usize = 4;
/// The longest line that the protocol allows, its length included.
const MAX_LINE: usize = 65520;

/// One line, or one of the marks that stand between lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum Pkt {
    /// A line, with the line feed that it may end in.
    Line(Bytes),
    /// The end of a list.
    Flush,
    /// The end of a section.
    Delimiter,
    /// The end of an answer in stateless connections.
    ResponseEnd,
}

/// Removes the first line from `buffer` and returns it; `None` while it is incomplete.
pub(in crate::git) fn decode(buffer: &mut BytesMut) -> Result<Option<Pkt>, ProtocolError> {
    let Some(head) = buffer.first_chunk::<LENGTH>() else { return Ok(None) };
    let length = head.iter().try_fold(0, |length, digit| {
        let digit = char::from(*digit).to_digit(16).ok_or_else(|| not_git("the response does not start with a packet length"))?;
        Ok(length * 16 + digit as usize)
    })?;
    let mark = match length {
        0 => Some(Pkt::Flush),
        1 => Some(Pkt::Delimiter),
        2 => Some(Pkt::ResponseEnd),
        3 => return Err(not_git("a packet has an invalid length")),
        _ => None,
    };
    if let Some(mark) = mark {
        buffer.advance(LENGTH);
        return Ok(Some(mark));
    }
    if length > MAX_LINE {
        return Err(not_git("a packet is longer than the protocol allows"));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    let mut line = buffer.split_to(length);
    line.advance(LENGTH);
    Ok(Some(Pkt::Line(line.freeze())))
}

/// Adds a line to a request. Requests are made of short lines only.
pub(in crate::git) fn encode(request: &mut Vec<u8>, line: &str) {
    request.extend_from_slice(format!("{:04x}{line}", line.len() + LENGTH).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Pkt>, ProtocolError> {
        let mut buffer = BytesMut::from(bytes);
        let mut pkts = Vec::new();
        while let Some(pkt) = decode(&mut buffer)? {
            pkts.push(pkt);
        }
        Ok(pkts)
    }

    #[test]
    fn lines_and_marks_are_told_apart() {
        let mut bytes = Vec::new();
        encode(&mut bytes, "want\n");
        bytes.extend_from_slice(b"0004000100020000");
        let line = |text: &'static str| Pkt::Line(Bytes::from_static(text.as_bytes()));
        assert_eq!(all(&bytes).unwrap(), [line("want\n"), line(""), Pkt::Delimiter, Pkt::ResponseEnd, Pkt::Flush]);
    }

    #[test]
    fn a_line_is_waited_for_until_it_is_whole() {
        for end in 0..9 {
            assert_eq!(all(&b"0009want\n"[..end]).unwrap(), [], "{end}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused_at_its_first_bytes() {
        for wrong in ["<htm", "+001", "0003", "fff1", "ffff", "000g"] {
            assert!(matches!(all(wrong.as_bytes()), Err(ProtocolError::NotGit(_))), "{wrong}");
        }
    }
}
