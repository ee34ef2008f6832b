//! Lines of the protocol from any transport, within limits of time and size.

use crate::git::error::GitError;
use crate::git::protocol::{Pkt, ProtocolError, decode};
use crate::http_client::HttpAnswer;
use bytes::{Bytes, BytesMut};
use podstead_telemetry::error_chain;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Read size for streams.
const PIECE: usize = 64 << 10;

/// Transport of a response.
pub(super) enum Chunks {
    /// The body of an HTTP answer.
    Http(Box<HttpAnswer>),
    /// Standard output of ssh, or a connection.
    Stream(Box<dyn AsyncRead + Send + Sync + Unpin>),
}

/// Reason why no line was received.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The server closed the connection.
    Ended,
    /// Nothing came for so long.
    Silent(Duration),
    /// The connection broke.
    Broken(String),
    /// The data does not follow the protocol.
    Protocol(ProtocolError),
}

impl NoLine {
    /// As the failure of a poll.
    pub(super) fn into_error(self, location: &str) -> GitError {
        let unreachable = |reason: String| GitError::Unreachable { location: location.to_owned(), reason };
        match self {
            Self::Ended => unreachable("the response was cut off".to_owned()),
            Self::Silent(after) => GitError::Silent { location: location.to_owned(), after },
            Self::Broken(reason) => unreachable(reason),
            Self::Protocol(error) => GitError::of_protocol(location, error),
        }
    }
}

/// The lines of one answer, or of a whole conversation.
pub(super) struct Lines {
    chunks: Chunks,
    buffer: BytesMut,
    silence: Duration,
    received: u64,
    limit: u64,
}

impl Lines {
    /// Gives up after `silence` without a byte, and after `limit` bytes.
    pub(super) fn new(chunks: Chunks, silence: Duration, limit: u64) -> Self {
        Self { chunks, buffer: BytesMut::new(), silence, received: 0, limit }
    }

    /// Resets the counter, with a limit of `limit` bytes.
    pub(super) fn allow(&mut self, limit: u64) {
        (self.received, self.limit) = (0, limit);
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> Result<Pkt, NoLine> {
        loop {
            if let Some(pkt) = decode(&mut self.buffer).map_err(NoLine::Protocol)? {
                return Ok(pkt);
            }
            let got = match tokio::time::timeout(self.silence, self.chunk()).await {
                Ok(got) => got?,
                Err(_) => return Err(NoLine::Silent(self.silence)),
            };
            if got == 0 {
                return Err(NoLine::Ended);
            }
            self.received += got as u64;
            if self.received > self.limit {
                let text = format!("the response exceeds the limit of {} bytes (for packs, raise maxFetchBytes)", self.limit);
                return Err(NoLine::Protocol(ProtocolError::TooMuch(text)));
            }
        }
    }

    /// Adds what came to the buffer; 0 at the end.
    async fn chunk(&mut self) -> Result<usize, NoLine> {
        match &mut self.chunks {
            Chunks::Http(answer) => loop {
                match answer.chunk().await {
                    Ok(Some(bytes)) if bytes.is_empty() => {}
                    Ok(Some(bytes)) => break Ok(self.append(&bytes)),
                    Ok(None) => break Ok(0),
                    Err(error) => break Err(NoLine::Broken(error_chain(&error).to_string())),
                }
            },
            Chunks::Stream(stream) => {
                self.buffer.reserve(PIECE);
                stream.read_buf(&mut self.buffer).await.map_err(|error| NoLine::Broken(error.to_string()))
            }
        }
    }

    fn append(&mut self, bytes: &Bytes) -> usize {
        self.buffer.extend_from_slice(bytes);
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    const SILENCE: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn lines_come_in_pieces_of_any_size_and_silence_ends_the_wait() {
        let (mut server, client) = tokio::io::duplex(64);
        let mut lines = Lines::new(Chunks::Stream(Box::new(client)), SILENCE, 100);
        server.write_all(b"000").await.unwrap();
        let (line, ()) = tokio::join!(lines.next(), async { server.write_all(b"6ab0000").await.unwrap() });
        assert_eq!(line.unwrap(), Pkt::Line(Bytes::from_static(b"ab")));
        assert_eq!(lines.next().await.unwrap(), Pkt::Flush);
        assert!(matches!(lines.next().await, Err(NoLine::Silent(SILENCE))));
        drop(server);
        assert!(matches!(lines.next().await, Err(NoLine::Ended)));
    }

    #[tokio::test]
    async fn what_exceeds_the_limit_is_not_waited_for() {
        let (mut server, client) = tokio::io::duplex(64);
        let mut lines = Lines::new(Chunks::Stream(Box::new(client)), SILENCE, 7);
        server.write_all(b"00000000").await.unwrap();
        assert!(matches!(lines.next().await, Err(NoLine::Protocol(ProtocolError::TooMuch(_)))));
    }
}
