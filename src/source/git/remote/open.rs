//! Connections that stay open for a whole conversation: ssh, and git's own server.

use super::MAX_LISTING;
use super::lines::{Chunks, Lines, NoLine};
use super::ssh::{Ssh, SshOptions};
use super::url::SshUrl;
use crate::git::error::GitError;
use crate::git::job::ObjectJobs;
use crate::git::protocol::encode;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

/// Time that ssh has to print its error message.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// An open connection.
pub(super) struct Open {
    pub(super) lines: Lines,
    input: Input,
}

enum Input {
    Ssh(Box<Ssh>),
    Daemon(OwnedWriteHalf),
}

impl Open {
    pub(super) async fn ssh(
        url: &SshUrl,
        options: &SshOptions,
        jobs: &Arc<ObjectJobs>,
        timeout: Duration,
    ) -> Result<Self, GitError> {
        let (ssh, output) = Ssh::start(url, options, jobs, timeout).await?;
        Ok(Self { lines: Lines::new(Chunks::Stream(Box::new(output)), timeout, MAX_LISTING), input: Input::Ssh(Box::new(ssh)) })
    }

    pub(super) async fn daemon(host: &str, port: u16, path: &str, timeout: Duration, location: &str) -> Result<Self, GitError> {
        let unreachable =
            |error: std::io::Error| GitError::Unreachable { location: location.to_owned(), reason: error.to_string() };
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        let (output, mut input) = stream.into_split();
        let mut request = Vec::new();
        encode(&mut request, &format!("git-upload-pack {path}\0host={host}:{port}\0\0version=2\0"));
        input.write_all(&request).await.map_err(unreachable)?;
        Ok(Self { lines: Lines::new(Chunks::Stream(Box::new(output)), timeout, MAX_LISTING), input: Input::Daemon(input) })
    }

    /// Sends a request. A failure is reported by the next read.
    pub(super) async fn send(&mut self, request: &[u8]) {
        let sent = match &mut self.input {
            Input::Ssh(ssh) => async { ssh.input.write_all(request).await.and(ssh.input.flush().await) }.await,
            Input::Daemon(input) => input.write_all(request).await,
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "cannot send the request");
        }
    }

    /// Reason why there was no line: stderr of ssh says more than the end of its output.
    pub(super) async fn explain(&mut self, location: &str, no_line: NoLine) -> GitError {
        match (&mut self.input, no_line) {
            (Input::Ssh(ssh), NoLine::Ended | NoLine::Broken(_)) => {
                let words = ssh.last_words(LAST_WORDS).await;
                GitError::of_words(location.to_owned(), words)
            }
            (Input::Ssh(_) | Input::Daemon(_), no_line) => no_line.into_error(location),
        }
    }
}
