//! Messages between the daemon and the job.
//!
//! The daemon sends [`Begin`] with the [`Setup`](crate::Setup) in a file in memory, then [`Open`] for each request with the job's end of a socket. All
//! else of a request goes over this socket: a [`Question`] and the body from the daemon; a [`Reply`], the body in pieces, and a [`BodyEnd`] from the job. Each piece
//! has its length in front, four bytes (big endian); the length 0 is the end of the body. The daemon closes the socket when it wants no more.

use crate::request::{Request, header_value, text_of};
use podstead_job::confine::Rlimits;
use podstead_outbound::Failure;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LINK,
    LOCATION, RETRY_AFTER, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use reqwest::{Method, Url};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The longest question: a header may have a token of 64 KiB.
pub(crate) const QUESTION_MAX: usize = 256 << 10;
/// The longest piece of a body.
pub(crate) const PIECE_MAX: usize = 256 << 10;

/// The headers of an answer that podstead reads.
static CHOSEN: [HeaderName; 13] = [
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    DATE,
    ETAG,
    LAST_MODIFIED,
    LINK,
    LOCATION,
    RETRY_AFTER,
    TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
    HeaderName::from_static("docker-content-digest"),
];

/// The first message to the job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
    /// Limits of the process.
    pub(crate) rlimits: Rlimits,
    /// The user that it becomes.
    pub(crate) uid: u32,
    /// Its group.
    pub(crate) gid: u32,
}

/// A request begins, on the socket that comes with this.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {}

/// Message of the job on its own socket: the reason why it does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) enum Refusal {
    /// It could not give its rights up.
    Confine(String),
    /// Its own error.
    Panic(String),
}

/// A request. Values of headers are bytes, each of which is written as the character with its number.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the body, which follow.
    pub(crate) body: u64,
    pub(crate) unpack: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) homes: Vec<IpAddr>,
}

/// Neither URL nor headers are shown.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("method", &self.method).field("body", &self.body).finish_non_exhaustive()
    }
}

/// The answer up to its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// There is one.
    Head(Head),
    /// There is none.
    Failed(Failure),
}

/// Status and headers of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Chosen ones.
    pub(crate) headers: Vec<(String, String)>,
    /// Length of the body, if it is known.
    pub(crate) length: Option<u64>,
    /// The address that answered.
    pub(crate) remote: Option<SocketAddr>,
}

/// The end of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) enum BodyEnd {
    /// All of it came.
    Whole,
    /// It did not.
    Failed(Failure),
}

impl Head {
    /// Returns true if all of its headers are chosen ones.
    pub(crate) fn is_chosen(&self) -> bool {
        self.headers.iter().all(|(name, _)| CHOSEN.iter().any(|chosen| chosen.as_str() == name))
    }
}

/// The headers that the daemon gets.
pub(crate) fn chosen(headers: &HeaderMap) -> Vec<(String, String)> {
    let chosen = headers.iter().filter(|(name, _)| CHOSEN.contains(name));
    chosen.map(|(name, value)| (name.as_str().to_owned(), text_of(value))).collect()
}

impl Question {
    pub(crate) fn of(request: &Request) -> Self {
        let headers = request.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text_of(value)));
        Self {
            method: request.method.as_str().to_owned(),
            url: request.url.as_str().to_owned(),
            headers: headers.collect(),
            body: request.body.len() as u64,
            unpack: request.unpack,
            timeout: request.timeout,
            homes: request.homes.clone(),
        }
    }

    /// The request without its body; `None` if it is invalid.
    pub(crate) fn request(self) -> Option<Request> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, header_value(value)?);
        }
        Some(Request {
            method: Method::from_bytes(self.method.as_bytes()).ok()?,
            url: Url::parse(&self.url).ok()?,
            headers,
            body: bytes::Bytes::new(),
            unpack: self.unpack,
            timeout: self.timeout,
            homes: self.homes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn question_is_the_request() {
        let mut headers = HeaderMap::new();
        headers.append("accept", "a".parse().unwrap());
        headers.append("accept", "b".parse().unwrap());
        headers.append("authorization", "Bearer secret".parse().unwrap());
        let request = Request {
            method: Method::POST,
            url: "https://registry.lan:5000/v2/a?b=%20c".parse().unwrap(),
            headers,
            body: Bytes::from_static(b"body"),
            unpack: Some(7),
            timeout: Some(Duration::from_millis(1)),
            homes: vec!["127.0.0.1".parse().unwrap()],
        };
        let question = Question::of(&request);
        assert!(!format!("{question:?}").contains("secret"));
        let json = serde_json::to_vec(&question).unwrap();
        let found: Question = serde_json::from_slice(&json).unwrap();
        assert_eq!(found.body, 4);
        let found = found.request().unwrap();
        assert_eq!((found.method, found.url, found.headers), (request.method, request.url, request.headers));
        assert_eq!((found.unpack, found.timeout, found.homes), (Some(7), request.timeout, request.homes));
    }

    #[test]
    fn headers_are_chosen() {
        let mut headers = HeaderMap::new();
        headers.append("link", "a".parse().unwrap());
        headers.append("link", "b".parse().unwrap());
        headers.append("set-cookie", "c".parse().unwrap());
        let headers = chosen(&headers);
        assert_eq!(headers, [("link".to_owned(), "a".to_owned()), ("link".to_owned(), "b".to_owned())]);
        let head = Head { status: 200, headers, length: None, remote: None };
        assert!(head.is_chosen());
        assert!(!Head { headers: vec![("set-cookie".into(), "c".into())], ..head }.is_chosen());
    }
}
