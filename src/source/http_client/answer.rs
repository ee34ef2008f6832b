//! An answer, read within limits.

use super::{HttpError, shown};
use crate::poll;
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use podstead_fetch::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, DATE, HeaderMap, HeaderName, RETRY_AFTER, TRANSFER_ENCODING};
use reqwest::{StatusCode, Url};
use std::io::Read;
use std::time::Duration;

/// Status and headers of an answer, and its body to come.
#[derive(Debug)]
pub struct HttpAnswer {
    url: Url,
    is_led: bool,
    response: Response,
}

impl HttpAnswer {
    pub(super) fn new(url: Url, is_led: bool, response: Response) -> Self {
        Self { url, is_led, response }
    }

    /// Reports whether redirects led to another origin on the way.
    pub fn is_led(&self) -> bool {
        self.is_led
    }

    /// URL after redirects; may contain secrets.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// A header, if it is there and is text.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the delay that the server asked for, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        poll::retry_after(self.header(RETRY_AFTER)?, self.header(DATE))
    }

    /// This answer as an error, because of its status.
    pub fn unwanted(&self) -> HttpError {
        HttpError::status(&self.url, self.status(), self.retry_after())
    }

    /// Reports whether the response declares its length or is chunked, so that a truncated body is detected.
    pub fn tells_its_end(&self) -> bool {
        let chunked = self.headers().get_all(TRANSFER_ENCODING).iter().any(|value| value.as_bytes().ends_with(b"chunked"));
        chunked || self.headers().contains_key(CONTENT_LENGTH)
    }

    /// The next part of the body as it comes over the wire.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        self.response.chunk().await.map_err(|failure| HttpError::on_the_way(&self.url, failure))
    }

    /// The whole body, at most `limit` bytes over the wire and, where it is gzip, at most as many unpacked.
    pub async fn body(mut self, limit: u64) -> Result<Bytes, HttpError> {
        let encoding = self.header(CONTENT_ENCODING).map(|value| value.trim().to_ascii_lowercase());
        let too_large = || HttpError::TooLarge { url: shown(&self.url), limit };
        if self.response.content_length().is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        let url = self.url.clone();
        while let Some(chunk) = self.chunk().await? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(HttpError::TooLarge { url: shown(&url), limit });
            }
            body.extend_from_slice(&chunk);
        }
        decoded(body.freeze(), encoding.as_deref(), limit).map_err(|fault| match fault {
            None => HttpError::TooLarge { url: shown(&url), limit },
            Some(reason) => HttpError::Encoding { url: shown(&url), reason },
        })
    }
}

/// A body without its content encoding. The error is `None` for one that unpacks to more than `limit` bytes. **Pure**.
pub fn decoded(body: Bytes, encoding: Option<&str>, limit: u64) -> Result<Bytes, Option<String>> {
    match encoding {
        None | Some("" | "identity") => Ok(body),
        Some("gzip" | "x-gzip") => {
            let mut plain = Vec::new();
            let read = MultiGzDecoder::new(body.as_ref()).take(limit + 1).read_to_end(&mut plain);
            read.map_err(|error| Some(format!("is not a complete gzip stream: {error}")))?;
            if plain.len() as u64 > limit { Err(None) } else { Ok(plain.into()) }
        }
        Some(other) => Err(Some(format!("has content encoding {other:?}, which was not requested"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_limit_counts_unpacked_bytes() {
        let bomb = gzip(&vec![b'a'; 1 << 20]);
        assert!(bomb.len() < 4096);
        assert_eq!(decoded(bomb.clone().into(), Some("gzip"), 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(decoded(bomb.into(), Some("gzip"), (1 << 20) - 1), Err(None));
    }

    #[test]
    fn half_a_stream_and_unknown_encodings_are_errors() {
        let whole = gzip(b"kind: Pod");
        let half = Bytes::copy_from_slice(&whole[..whole.len() - 9]);
        assert!(decoded(half, Some("gzip"), 100).unwrap_err().unwrap().contains("not a complete gzip"));
        assert!(decoded(Bytes::from_static(b"x"), Some("br"), 100).unwrap_err().unwrap().contains("\"br\""));
        assert_eq!(decoded(Bytes::from_static(b"x"), Some("identity"), 100).unwrap(), "x");
    }
}
