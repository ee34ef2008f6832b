//! A request, and headers as text.

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use std::net::IpAddr;
use std::time::Duration;

/// One request to one host.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL, http or https.
    pub url: Url,
    /// All headers but those that HTTP itself needs.
    pub headers: HeaderMap,
    /// The body; none if it is empty.
    pub body: Bytes,
    /// Largest body of an answer that is compressed with gzip, in bytes, before and after decompression. Such a body then comes decompressed;
    /// `None`: every body comes as the server sends it.
    pub unpack: Option<u64>,
    /// Limit for the whole answer.
    pub timeout: Option<Duration>,
    /// Local addresses that may be reached where a server leads.
    pub homes: Vec<IpAddr>,
}

/// A header's value as text of which each character is a byte.
pub(crate) fn text_of(value: &HeaderValue) -> String {
    value.as_bytes().iter().copied().map(char::from).collect()
}

/// The other direction of [`text_of`]; `None` if it is invalid.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<_>>()?;
    HeaderValue::from_bytes(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_bytes_come_back() {
        let bytes: Vec<u8> = (32..=126).chain(128..=255).chain([9]).collect();
        let value = HeaderValue::from_bytes(&bytes).unwrap();
        assert_eq!(header_value(&text_of(&value)), Some(value));
        for text in ["a\nb", "\u{100}", "\0"] {
            assert_eq!(header_value(text), None, "{text:?}");
        }
    }
}
