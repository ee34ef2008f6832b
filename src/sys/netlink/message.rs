//! Netlink messages: headers, and attributes that nest. **Pure**.
//!
//! Everything is in the byte order of this machine but what says otherwise, and aligned to four bytes.

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE_HEADER: usize = 4;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLM_F_ACK`: the kernel shall confirm success, too.
pub const ACK: u16 = 4;
/// `NLM_F_DUMP`.
pub const DUMP: u16 = 0x300;
/// `NLM_F_CREATE`.
pub const CREATE: u16 = 0x400;
/// `NLM_F_EXCL`: fail if it is there.
pub const EXCLUSIVE: u16 = 0x200;
/// `NLM_F_REPLACE`: change what is there.
pub const REPLACE: u16 = 0x100;
/// `NLM_F_APPEND`: after what is there.
pub const APPEND: u16 = 0x800;
/// `NLMSG_ERROR`, also an acknowledgement.
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLA_F_NESTED`, and the mask that leaves an attribute's type without flags.
pub(super) const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;
/// `NLM_F_CAPPED`: an error does not repeat the whole message that it is about.
const CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: attributes follow the error.
const EXPLAINED: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`.
const EXPLANATION: u16 = 1;

/// Messages that are sent together; each has a label for error messages. Their sequence numbers count from 1.
#[derive(Clone, Debug, Default)]
pub struct Request {
    bytes: Vec<u8>,
    labels: Vec<String>,
    acknowledged: usize,
    is_too_long: bool,
}

impl Request {
    /// No message yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message. `label` says what it does ("add address 10.0.0.1"), for errors.
    pub fn message(&mut self, label: impl Into<String>, kind: u16, flags: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.bytes.len();
        self.labels.push(label.into());
        self.acknowledged += usize::from(flags & ACK != 0);
        let sequence = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((REQUEST | flags).to_ne_bytes());
        self.bytes.extend(sequence.to_ne_bytes());
        // The kernel fills in who sends.
        self.bytes.extend(0_u32.to_ne_bytes());
        fill(&mut Body { request: self });
        let length = self.bytes.len() - start;
        match u32::try_from(length) {
            Ok(length) => self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes()),
            Err(_) => self.is_too_long = true,
        }
    }

    /// The messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of messages that request a confirmation.
    pub const fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Purpose of the message with that sequence number.
    pub fn label(&self, sequence: u32) -> &str {
        let index = usize::try_from(sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        index.and_then(|index| self.labels.get(index)).map_or("send messages", String::as_str)
    }

    /// An attribute exceeded the 64 KiB of its header: the message must not be sent.
    pub const fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    fn align(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }
}

/// Attributes after a message's header, or inside of a nested attribute.
#[derive(Debug)]
pub struct Body<'a> {
    request: &'a mut Request,
}

impl Body<'_> {
    /// Appends a fixed structure.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.request.bytes.extend(bytes);
        self.request.align();
    }

    /// Appends an attribute.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.open(kind, |body| body.request.bytes.extend(value));
    }

    /// Appends an attribute that is a text with a NUL at its end.
    pub fn text(&mut self, kind: u16, text: &str) {
        self.open(kind, |body| {
            body.request.bytes.extend(text.bytes());
            body.request.bytes.push(0);
        });
    }

    /// Appends a number in this machine's byte order (rtnetlink).
    pub fn u32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// Appends a number in network byte order (nftables).
    pub fn be32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Appends an attribute that consists of attributes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        self.open(kind | NESTED, fill);
    }

    fn open(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.request.bytes.len();
        self.request.bytes.extend([0; 2]);
        self.request.bytes.extend(kind.to_ne_bytes());
        fill(&mut Body { request: self.request });
        match u16::try_from(self.request.bytes.len() - start) {
            Ok(length) => self.request.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes()),
            Err(_) => self.request.is_too_long = true,
        }
        self.request.align();
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Its type.
    pub kind: u16,
    /// Its flags.
    pub flags: u16,
    /// The sequence number of the request that it answers.
    pub sequence: u32,
    /// Originator: a socket's port, 0 for the kernel.
    pub port: u32,
    /// Bytes after the header.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// The error number of an error message, 0 for a confirmation; `None` for any other message.
    pub fn error(&self) -> Option<i32> {
        let bytes = self.body.get(..4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        bytes.filter(|_| self.kind == ERROR).map(|bytes| i32::from_ne_bytes(bytes).saturating_neg())
    }

    /// The kernel's explanation of an error.
    pub fn explanation(&self) -> Option<String> {
        if self.kind != ERROR || self.flags & EXPLAINED == 0 {
            return None;
        }
        // The header of the message in question follows, and its body where the answer is not capped.
        let header = self.body.get(4..)?;
        let repeated = if self.flags & CAPPED == 0 { u32_at(header, 0)? as usize } else { HEADER };
        let rest = header.get(repeated.checked_next_multiple_of(4)?..)?;
        let text = attributes(rest).find(|(kind, _)| *kind == EXPLANATION)?.1;
        Some(text_of(text))
    }
}

/// A text attribute without its NUL.
pub fn text_of(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// A number at an offset, in this machine's byte order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(u32::from_ne_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).map(u16::from_ne_bytes)
}

/// The messages of one datagram, up to the first that is malformed.
pub fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let body = bytes.get(HEADER..length)?;
        let answer = Answer {
            kind: u16_at(bytes, 4)?,
            flags: u16_at(bytes, 6)?,
            sequence: u32_at(bytes, 8)?,
            port: u32_at(bytes, 12)?,
            body,
        };
        bytes = bytes.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
        Some(answer)
    })
}

/// Type (without flags) and value of each attribute, up to the first that is malformed.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & TYPE_MASK;
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_built_is_read_back() {
        let mut request = Request::new();
        request.message("make it", 16, CREATE | ACK, |body| {
            body.raw(&[1, 2, 3, 4, 5]);
            body.text(3, "eth0");
            body.nest(18, |inner| {
                inner.u32(1, 0xdead_beef);
                inner.be32(2, 1);
                inner.bytes(3, &[9]);
            });
        });
        request.message("ask", 18, 0, |_| {});
        assert_eq!((request.acknowledged(), request.label(1), request.label(2)), (1, "make it", "ask"));
        assert_eq!((request.label(0), request.label(3)), ("send messages", "send messages"));

        let read: Vec<Answer<'_>> = answers(request.bytes()).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].kind, read[0].flags, read[0].sequence), (16, REQUEST | CREATE | ACK, 1));
        assert_eq!(&read[0].body[..8], [1, 2, 3, 4, 5, 0, 0, 0]);
        let outer: Vec<_> = attributes(&read[0].body[8..]).collect();
        assert_eq!(outer[0], (3, &b"eth0\0"[..]));
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!(inner, [(1, &0xdead_beef_u32.to_ne_bytes()[..]), (2, &[0, 0, 0, 1][..]), (3, &[9][..])]);
        assert_eq!((read[1].kind, read[1].body.len()), (18, 0));
    }

    #[test]
    fn an_attribute_that_its_header_cannot_tell_of_is_noticed() {
        let mut request = Request::new();
        request.message("x", 1, 0, |body| body.nest(1, |inner| inner.bytes(1, &vec![0; 65_500])));
        assert!(!request.is_too_long());
        request.message("x", 1, 0, |body| body.nest(1, |inner| inner.bytes(1, &vec![0; 65_536])));
        assert!(request.is_too_long());
    }

    #[test]
    fn errors_are_read_with_what_the_kernel_says_about_them() {
        let error = |flags: u16, number: i32, rest: &[u8]| {
            let body: Vec<u8> = number.to_ne_bytes().into_iter().chain(rest.iter().copied()).collect();
            let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
            bytes.extend(ERROR.to_ne_bytes());
            bytes.extend(flags.to_ne_bytes());
            bytes.extend([7, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend(body);
            bytes
        };
        let repeated = [20, 0, 0, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        let said = [12_u8, 0, 1, 0, b'n', b'o', b' ', b'w', b'a', b'y', 0, 0];
        let capped = error(CAPPED | EXPLAINED, -17, &[&repeated[..], &said].concat());
        let whole = error(EXPLAINED, -17, &[&repeated[..], &[0; 4], &said].concat());
        for bytes in [capped, whole] {
            let answer = answers(&bytes).next().unwrap();
            assert_eq!((answer.error(), answer.sequence), (Some(17), 7));
            assert_eq!(answer.explanation().as_deref(), Some("no way"));
        }
        let plain = error(0, 0, &repeated);
        let answer = answers(&plain).next().unwrap();
        assert_eq!((answer.error(), answer.explanation()), (Some(0), None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic_and_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for answer in answers(&bytes) {
                answer.error();
                answer.explanation();
                prop_assert!(attributes(answer.body).count() <= bytes.len() / 4);
            }
            prop_assert!(attributes(&bytes).count() <= bytes.len() / 4);
        }
    }
}
