//! Errors of a git source.

use super::job::JobError;
use super::protocol::{ObjectId, ProtocolError};
use crate::SignersError;
use podstead_job::program::CANNOT_RUN;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why nothing new was delivered. Never contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The server does not answer.
    #[error("cannot fetch from {location}: {reason}")]
    Unreachable {
        /// The URL.
        location: String,
        /// The network error.
        reason: String,
    },
    /// The server timed out.
    #[error("{location} timed out after {} s", .after.as_secs())]
    Silent {
        /// The URL.
        location: String,
        /// The time limit.
        after: Duration,
    },
    /// The server is temporarily unavailable.
    #[error("{location} is temporarily unavailable: {reason}")]
    Busy {
        /// The URL.
        location: String,
        /// The server's message.
        reason: String,
        /// Delay that the server asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// The TLS connection failed.
    #[error("TLS connection to {location} failed: {reason}")]
    Tls {
        /// The URL.
        location: String,
        /// The TLS library's error.
        reason: String,
    },
    /// The server denied access.
    #[error("{location} denied access: {reason}; check {}", credentials(.location))]
    Authentication {
        /// The URL.
        location: String,
        /// The server's message.
        reason: String,
    },
    /// The server's host key is unknown or differs.
    #[error(
        "host key of {location} differs from the one in ssh.knownHostsFile, or is not in it: {reason}; ssh-keyscan prints the keys of a server"
    )]
    HostKey {
        /// The URL.
        location: String,
        /// The error message of ssh.
        reason: String,
    },
    /// The repository does not exist, or the credentials do not give access to it.
    #[error("repository {location} not found: {reason}; check the URL and the permissions of the credentials")]
    NotFound {
        /// The URL.
        location: String,
        /// The server's message.
        reason: String,
    },
    /// The response is not that of a git server: a captive portal, a proxy, a login page.
    #[error("{location} did not answer like a git server: {reason}")]
    NotGit {
        /// The URL.
        location: String,
        /// The difference.
        reason: String,
    },
    /// The server refused the request with a reason.
    #[error("{location} refused the request: {reason}")]
    Refused {
        /// The URL.
        location: String,
        /// The server's message.
        reason: String,
    },
    /// A branch or tag does not exist.
    #[error("the repository has no {0}")]
    NoReference(String),
    /// The reference does not lead to a commit.
    #[error("{0} is not a commit")]
    NotACommit(ObjectId),
    /// The path does not exist in the commit. This is not treated as empty, because a directory may have been renamed.
    #[error(
        "commit {commit} has no {path}; to remove all pods, keep the directory in the repository without manifests (with a .gitkeep)"
    )]
    NoPath {
        /// The commit.
        commit: ObjectId,
        /// The path in the repository.
        path: String,
    },
    /// The path cannot hold manifests.
    #[error("commit {commit}: {path} {reason}")]
    BadPath {
        /// The commit.
        commit: ObjectId,
        /// The path in the repository.
        path: String,
        /// The kind of entry.
        reason: String,
    },
    /// A limit is exceeded.
    #[error("{0}")]
    Limit(String),
    /// The revision may not be used: not signed by the right key, or older than what is in force.
    #[error("refused: {0}")]
    Rejected(String),
    /// An object is not what git makes: hostile, or of a broken program.
    #[error("{kind} {id} is refused: {fault}")]
    Malformed {
        /// Its kind.
        kind: String,
        /// Its name.
        id: ObjectId,
        /// The fault.
        fault: String,
    },
    /// The process that reads objects failed.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Local objects cannot be read. A copy of a remote repository is then fetched again.
    #[error("the repository at {path} is damaged")]
    Damaged {
        /// Path of the repository.
        path: PathBuf,
        /// The damage.
        #[source]
        source: DamageError,
    },
    /// The copy is damaged, and a fresh one could not be fetched.
    #[error("{damage}; fetching a fresh copy failed")]
    NotHealed {
        /// The damage of the copy.
        damage: String,
        /// Reason why fetching failed.
        #[source]
        source: Box<GitError>,
    },
    /// An I/O operation failed.
    #[error("{what} {path}")]
    Disk {
        /// The failed operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// A file with credentials or certificates cannot be used, or a program is missing.
    #[error("{0}")]
    Setup(String),
    /// It is not known who may sign.
    #[error(transparent)]
    Signers(SignersError),
}

/// Damage of a repository on disk.
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
    /// The record of what was fetched makes no sense.
    #[error("state.json is not valid")]
    Record(#[source] serde_json::Error),
}

impl GitError {
    /// Reports whether the content of the revision is the cause, not the connection or the disk.
    pub(super) fn is_of_the_revision(&self) -> bool {
        matches!(
            self,
            Self::Rejected(_) | Self::NoPath { .. } | Self::BadPath { .. } | Self::NotACommit(_) | Self::Malformed { .. }
        )
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
        if reason.starts_with(CANNOT_RUN) {
            return Self::Setup(format!("{location}: {reason}"));
        }
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

/// Longest foreign message that is shown, in characters.
const SHOWN: usize = 400;

/// Fields of the configuration for the protocol of a URL.
fn credentials(location: &str) -> &'static str {
    if location.starts_with("http") {
        "auth, headers or clientCertFile of the source"
    } else {
        "ssh.keyFile of the source, and that the server has its public key"
    }
}

/// Without the full stop: more words follow.
fn end_of(words: String) -> String {
    let words = words.trim_end_matches('.').to_owned();
    match words.char_indices().rev().nth(SHOWN) {
        Some((start, _)) => format!("... {}", &words[start..]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_is_that_of_the_protocol() {
        let told = |location: &str, words: &str| GitError::of_words(location.into(), words.into()).to_string();
        let ssh = told("git@git.lan:fleet.git", "git@git.lan: Permission denied (publickey).");
        assert_eq!(
            ssh,
            "git@git.lan:fleet.git denied access: git@git.lan: Permission denied (publickey); check ssh.keyFile of the source, and that the \
             server has its public key"
        );
        let https = told("https://git.lan/fleet.git", "HTTP status 401 Unauthorized: authentication failed");
        assert!(https.ends_with("; check auth, headers or clientCertFile of the source"), "{https}");
        let key = told("ssh://git.lan/a", "Host key verification failed.");
        assert!(key.ends_with("Host key verification failed; ssh-keyscan prints the keys of a server"), "{key}");
    }

    #[test]
    fn words_of_ssh_and_servers_become_what_people_can_act_on() {
        let kind = |words: &str| match GitError::of_words("ssh://git.lan/a".into(), words.into()) {
            GitError::HostKey { .. } => "host key",
            GitError::Authentication { .. } => "authentication",
            GitError::NotFound { .. } => "not found",
            GitError::Unreachable { .. } => "unreachable",
            GitError::Setup(_) => "setup",
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
            ("podstead cannot run ssh: No such file or directory (os error 2)", "setup"),
            ("ssh: connect to host git.lan port 22: Connection refused", "unreachable"),
            ("ssh: Could not resolve hostname git.lan: Name or service not known", "unreachable"),
            ("upload-pack: not our ref 1234", "refused"),
        ] {
            assert_eq!(kind(words), expected, "{words}");
        }
    }
}
