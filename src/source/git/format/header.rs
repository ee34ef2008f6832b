//! Common parts of objects of text: headers in lines, and faults.

use crate::git::protocol::ObjectId;

/// Reason why an object is not what its kind says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::git) struct Fault(pub(in crate::git) &'static str);

/// The next line without its end, and what follows.
pub(super) fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// The id in the header `name`, if the line is that.
pub(super) fn id_of(line: &[u8], name: &str) -> Option<ObjectId> {
    let text = line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
