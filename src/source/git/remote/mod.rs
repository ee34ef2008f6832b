//! Ways to a repository on another host, and the conversation over them.
//!
//! In: what is asked. Out: references, and the bytes of a pack. Every answer is bounded in size, and in the time that it may be silent.

mod http;
mod lines;
mod open;
mod session;
mod ssh;
mod url;

pub(super) use session::Session;
pub use ssh::SshOptions;
pub use url::{RemoteUrl, SshUrl, UrlError};

use super::error::GitError;
use super::job::ObjectJobs;
use super::protocol::Reference;
use crate::http_client::HttpAccess;
use http::HttpRemote;
use open::Open;
use podstead_fetch::Requester;
use std::sync::Arc;
use std::time::Duration;

/// Largest response that is not a pack.
const MAX_LISTING: u64 = 32 << 20;

/// Transport to a server.
#[derive(Debug)]
pub(super) enum Way {
    /// The URL is the location. The requester sends what is asked.
    Http(Box<HttpAccess>, Requester),
    /// Through the system's ssh, which runs in the place of a job.
    Ssh(SshUrl, SshOptions, Arc<ObjectJobs>),
    /// Git's own server, without any protection.
    Daemon {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Absolute path on the server.
        path: String,
    },
}

/// A repository on another host.
#[derive(Debug)]
pub(super) struct Remote {
    location: String,
    way: Way,
    timeout: Duration,
    /// Over HTTP: where the server is, and whether it knows shallow histories. Saves a request.
    known: Option<(HttpRemote, bool)>,
}

impl Remote {
    /// `timeout`: for connecting, for a list of references as a whole, and for silence while a pack comes.
    pub(super) fn new(location: String, way: Way, timeout: Duration) -> Self {
        Self { location, way, timeout, known: None }
    }

    /// The URL.
    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// The references whose names begin with one of `prefixes`, and the conversation for going on. A server of version 0 gives all.
    pub(super) async fn references(&mut self, prefixes: &[String]) -> Result<(Vec<Reference>, Session), GitError> {
        if let Some((http, shallow)) = self.known.clone() {
            let mut session = Session::known(self.location.clone(), http, shallow);
            match self.within(session.references(prefixes)).await {
                // Where it was is not for ever: a redirect may lead elsewhere by now, and a server may have closed a connection that
                // was kept.
                Err(
                    GitError::Unreachable { .. }
                    | GitError::NotGit { .. }
                    | GitError::NotFound { .. }
                    | GitError::Refused { .. }
                    | GitError::Authentication { .. },
                ) => {
                    self.known = None;
                }
                other => return other.map(|references| (references, session)),
            }
        }
        let mut session = self.connect().await?;
        let references = self.within(session.references(prefixes)).await?;
        self.known = session.http();
        Ok((references, session))
    }

    /// Ends what is kept between the conversations of one poll.
    pub(super) fn rest(&self) {
        if let Some((http, _)) = &self.known {
            http.rest();
        }
    }

    /// Begins a conversation.
    pub(super) async fn connect(&self) -> Result<Session, GitError> {
        self.within(self.greet()).await
    }

    async fn greet(&self) -> Result<Session, GitError> {
        let location = self.location.clone();
        let open = match &self.way {
            Way::Http(access, requester) => {
                return Session::greet_http(HttpRemote::new(&location, access, requester, self.timeout), location).await;
            }
            Way::Ssh(url, options, jobs) => Open::ssh(url, options, jobs, self.timeout).await?,
            Way::Daemon { host, port, path } => Open::daemon(host, *port, path, self.timeout, &location).await?,
        };
        Session::greet_open(open, location).await
    }

    async fn within<T>(&self, answer: impl Future<Output = Result<T, GitError>>) -> Result<T, GitError> {
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(GitError::Silent { location: self.location.clone(), after: self.timeout }),
        }
    }
}
