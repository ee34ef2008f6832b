//! An answer, whichever process asked.

use crate::coming::Coming;
use crate::incoming::Incoming;
use crate::message::Head;
use crate::request::header_value;
use bytes::Bytes;
use podstead_outbound::Failure;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName};
use std::net::SocketAddr;

/// An answer up to the end of its headers, and its body to come. Dropping it ends the request.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    headers: HeaderMap,
    length: Option<u64>,
    remote: Option<SocketAddr>,
    body: Body,
}

/// The way of a body.
#[derive(Debug)]
pub(crate) enum Body {
    /// This process asked.
    Here(Box<Coming>),
    /// A job asked.
    Job(Box<Incoming>),
}

impl Response {
    /// `None` for an invalid status.
    pub(crate) fn new(head: &Head, body: Body) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in &head.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, header_value(value)?);
        }
        Some(Self { status: StatusCode::from_u16(head.status).ok()?, headers, length: head.length, remote: head.remote, body })
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Those headers that podstead reads.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Length of the body, if it is known.
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }

    /// The address that answered: that of a proxy, where there is one.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// The next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match &mut self.body {
            Body::Here(coming) => coming.chunk().await,
            Body::Job(incoming) => incoming.chunk().await,
        }
    }
}
