//! The limit on the headers of an answer. The HTTP client has one of its own, some 400 KiB, which bounds memory.

use reqwest::header::HeaderMap;

/// Bytes of all headers of one answer.
pub const MAX_HEADERS: usize = 64 << 10;

/// Reports whether the headers are larger than [`MAX_HEADERS`].
pub fn headers_are_too_large(headers: &HeaderMap) -> bool {
    // Colon, space and line end.
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>() > MAX_HEADERS
}
