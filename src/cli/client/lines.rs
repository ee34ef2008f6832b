//! A body that comes in lines.

use super::ClientError;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

/// Reads a body piece by piece or line by line.
#[derive(Debug)]
pub(crate) struct Lines {
    body: Incoming,
    buffer: BytesMut,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// The next bytes as they come; `None` at the end.
    pub(crate) async fn next_piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(bytes) = frame.map_err(|source| ClientError::Broken { source })?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The next line with its newline; the last one may have none. `None` at the end. Cancel-safe.
    pub(crate) async fn next_line(&mut self) -> Result<Option<Bytes>, ClientError> {
        let mut searched = 0;
        loop {
            if let Some(newline) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.buffer.split_to(searched + newline + 1).freeze()));
            }
            searched = self.buffer.len();
            match self.next_piece().await? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.buffer.has_remaining() => return Ok(Some(self.buffer.split().freeze())),
                None => return Ok(None),
            }
        }
    }

    /// The next line as a JSON document.
    pub(crate) async fn next_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        match self.next_line().await? {
            Some(line) => serde_json::from_slice(&line).map(Some).map_err(|source| ClientError::NotUnderstood { source }),
            None => Ok(None),
        }
    }
}
