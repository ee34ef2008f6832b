//! An answer, read within limits.

use super::{HttpError, shown};
use crate::poll;
use bytes::{Bytes, BytesMut};
use podstead_fetch::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, DATE, HeaderMap, HeaderName, RETRY_AFTER, TRANSFER_ENCODING};
use reqwest::{StatusCode, Url};
use std::time::Duration;

/// Status and headers of an answer, and its body to come.
#[derive(Debug)]
pub struct HttpAnswer {
    url: Url,
    is_led: bool,
    /// A body that is compressed with gzip comes decompressed.
    is_unpacked: bool,
    response: Response,
}

impl HttpAnswer {
    pub(super) fn new(url: Url, is_led: bool, is_unpacked: bool, response: Response) -> Self {
        Self { url, is_led, is_unpacked, response }
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

    /// The next part of the body.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        self.response.chunk().await.map_err(|failure| HttpError::on_the_way(&self.url, failure))
    }

    /// The whole body, at most `limit` bytes of it. Where [`HttpRequest::unpack`](super::HttpRequest::unpack) was asked for, that should be the same limit.
    pub async fn body(mut self, limit: u64) -> Result<Bytes, HttpError> {
        let encoding = self.header(CONTENT_ENCODING).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default();
        if let Some(reason) = unwanted_encoding(&encoding, self.is_unpacked) {
            return Err(HttpError::Encoding { url: shown(&self.url), reason });
        }
        let url = self.url.clone();
        let too_large = || HttpError::TooLarge { url: shown(&url), limit };
        if self.response.content_length().is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

/// The fault of a content encoding. **Pure**.
fn unwanted_encoding(encoding: &str, is_unpacked: bool) -> Option<String> {
    match encoding {
        "" | "identity" => None,
        "gzip" | "x-gzip" if is_unpacked => None,
        other => Some(format!("has content encoding {other:?}, which was not requested")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_that_nobody_asked_for_are_refused() {
        for (encoding, is_unpacked, is_fine) in
            [("", false, true), ("identity", true, true), ("gzip", true, true), ("gzip", false, false), ("br", true, false)]
        {
            assert_eq!(unwanted_encoding(encoding, is_unpacked).is_none(), is_fine, "{encoding} {is_unpacked}");
        }
        assert!(unwanted_encoding("br", true).unwrap().contains("\"br\""));
    }
}
