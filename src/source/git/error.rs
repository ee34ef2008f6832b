//! What can go wrong, and what a person does about it.

use super::protocol::{ObjectId, ProtocolError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why nothing new was delivered. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The server does not answer.
    #[error("cannot fetch from {location}: {reason}")]
    Unreachable {
        /// The URL.
        location: String,
        /// What the network said.
        reason: String,
    },
    /// It went silent.
    #[error("{location} timed out after {} s", .after.as_secs())]
    Silent {
        /// The URL.
        location: String,
        /// How long was waited.
        after: Duration,
    },
    /// It cannot answer now.
    #[error("{location} is temporarily unavailable: {reason}")]
    Busy {
        /// The URL.
        location: String,
        /// What it said.
        reason: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The connection is not to be trusted.
    #[error("TLS connection to {location} failed: {reason}")]
    Tls {
        /// The URL.
        location: String,
        /// What the TLS library said.
        reason: String,
    },
    /// The server wants to know who asks, or does not believe it.
    #[error("{location} denied access: {reason}; check the source's auth, client certificate or ssh.keyFile")]
    Authentication {
        /// The URL.
        location: String,
        /// What the server said.
        reason: String,
    },
    /// The server is not the one that is known by this name.
    #[error("host key of {location} differs from the one in ssh.knownHostsFile, or is not in it: {reason}")]
    HostKey {
        /// The URL.
        location: String,
        /// What ssh said.
        reason: String,
    },
    /// There is no such repository, or it is not shown to us.
    #[error("repository {location} not found: {reason}; check the URL and the permissions of the credentials")]
    NotFound {
        /// The URL.
        location: String,
        /// What the server said.
        reason: String,
    },
    /// What answers is no git server: a captive portal, a proxy, a page to log in.
    #[error("{location} did not answer like a git server: {reason}")]
    NotGit {
        /// The URL.
        location: String,
        /// What it said instead.
        reason: String,
    },
    /// The server says why it does not do what it was asked for.
    #[error("{location} refused the request: {reason}")]
    Refused {
        /// The URL.
        location: String,
        /// Its words.
        reason: String,
    },
    /// A branch or tag was deleted or never was.
    #[error("the repository has no {0}")]
    NoReference(String),
    /// The reference does not lead to a commit.
    #[error("{0} is not a commit")]
    NotACommit(ObjectId),
    /// The commit has nothing there. Not an emptiness: somebody may have renamed a directory.
    #[error(
        "commit {commit} has no {path}; to remove all pods, keep the directory in the repository without manifests (with a .gitkeep)"
    )]
    NoPath {
        /// The commit.
        commit: ObjectId,
        /// The path in the repository.
        path: String,
    },
    /// Something stands at the path that holds no manifests.
    #[error("commit {commit}: {path} {reason}")]
    BadPath {
        /// The commit.
        commit: ObjectId,
        /// The path in the repository.
        path: String,
        /// What it is.
        reason: String,
    },
    /// More than is taken.
    #[error("{0}")]
    Limit(String),
    /// The revision may not be used: not signed by the right key, or older than what is in force.
    #[error("refused: {0}")]
    Rejected(String),
    /// Objects that should be here cannot be read. A copy of ours is then fetched anew.
    #[error("the repository at {path} is damaged")]
    Damaged {
        /// Where it lies.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: DamageError,
    },
    /// The copy is damaged, and no fresh one can be had.
    #[error("{damage}; fetching a fresh copy failed")]
    NotHealed {
        /// What is wrong with the copy.
        damage: String,
        /// Why there is no other.
        #[source]
        source: Box<GitError>,
    },
    /// The disk does not do what it should.
    #[error("{what} {path}")]
    Disk {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the disk said.
        #[source]
        source: io::Error,
    },
    /// A file with credentials or certificates cannot be used, or a program is missing.
    #[error("{0}")]
    Setup(String),
}

/// What is wrong with a repository on disk.
#[derive(Debug, thiserror::Error)]
pub enum DamageError {
    /// libgit2 cannot read it.
    #[error("{0}")]
    Git(String),
    /// The disk cannot.
    #[error("read")]
    Read(#[source] io::Error),
    /// It was cut off, overwritten or written by another version.
    #[error("{0}")]
    State(String),
}

impl From<git2::Error> for DamageError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error.message().to_owned())
    }
}

impl GitError {
    /// Whether it is about what a revision holds, and not about the way to it.
    pub(super) fn is_of_the_revision(&self) -> bool {
        matches!(self, Self::Rejected(_) | Self::NoPath { .. } | Self::BadPath { .. } | Self::NotACommit(_))
    }

    /// Of an answer from `location`.
    pub(super) fn of_protocol(location: &str, error: ProtocolError) -> Self {
        let location = location.to_owned();
        match error {
            ProtocolError::NotGit(reason) => Self::NotGit { location, reason },
            ProtocolError::Refused(reason) => Self::of_words(location, reason),
            ProtocolError::Unsupported(reason) => Self::Refused { location, reason },
            ProtocolError::TooMuch(reason) => Self::Limit(format!("{location}: {reason}")),
        }
    }

    /// Of a server's or ssh's own words.
    pub(super) fn of_words(location: String, reason: String) -> Self {
        let lower = reason.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        // Of the whole text: what matters may stand anywhere in it. What is shown is its end, where the verdict usually is.
        let reason = end_of(reason);
        if says(&["host key verification failed", "host key is known for", "no matching host key type"]) {
            Self::HostKey { location, reason }
        } else if says(&["not exported"]) {
            Self::NotFound { location, reason }
        } else if says(&["permission denied", "authentication", "access denied"]) {
            Self::Authentication { location, reason }
        } else if says(&["not found", "does not exist", "does not appear to be a git repository", "no such file"]) {
            Self::NotFound { location, reason }
        } else if says(&[
            "connection refused",
            "could not resolve",
            "timed out",
            "no route to host",
            "network is unreachable",
            "connection closed",
            "connection reset",
        ]) {
            Self::Unreachable { location, reason }
        } else {
            Self::Refused { location, reason }
        }
    }
}

/// The most of somebody else's words that is shown.
const SHOWN: usize = 400;

fn end_of(words: String) -> String {
    match words.char_indices().rev().nth(SHOWN) {
        Some((start, _)) => format!("... {}", &words[start..]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ssh_and_servers_become_what_people_can_act_on() {
        let kind = |words: &str| match GitError::of_words("ssh://git.lan/a".into(), words.into()) {
            GitError::HostKey { .. } => "host key",
            GitError::Authentication { .. } => "authentication",
            GitError::NotFound { .. } => "not found",
            GitError::Unreachable { .. } => "unreachable",
            _ => "refused",
        };
        for (words, expected) in [
            (
                "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking. Host key verification failed.",
                "host key",
            ),
            ("git@git.lan: Permission denied (publickey).", "authentication"),
            ("ERROR: Repository not found.", "not found"),
            ("fatal: '/srv/x' does not appear to be a git repository", "not found"),
            ("access denied or repository not exported: /x", "not found"),
            ("ssh: connect to host git.lan port 22: Connection refused", "unreachable"),
            ("ssh: Could not resolve hostname git.lan: Name or service not known", "unreachable"),
            ("upload-pack: not our ref 1234", "refused"),
        ] {
            assert_eq!(kind(words), expected, "{words}");
        }
    }
}
