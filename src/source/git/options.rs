//! Options of a git source.

use super::job::ObjectJobs;
use super::remote::{RemoteUrl, SshOptions};
use super::select::Follow;
use crate::SignatureRequirement;
use crate::http_client::HttpAccess;
use crate::tree_rules::ReadLimits;
use podstead_pod::Revision;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a git source.
///
/// One type because a source has them all from its configuration, once, and each part of it takes its own.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// URL of the repository.
    pub url: RemoteUrl,
    /// Reference to follow.
    pub follow: Follow,
    /// The directory or file in the repository, as [`repository_path`] makes it; empty for all of it.
    pub path: String,
    /// Credentials, certificates and proxy, for http and https.
    pub http: HttpAccess,
    /// The key and the known hosts of ssh.
    pub ssh: SshOptions,
    /// Time between two polls.
    pub interval: Duration,
    /// For connecting, for a list of references as a whole, and for silence while a pack comes.
    pub timeout: Duration,
    /// Limits for fetching and reading.
    pub limits: GitLimits,
    /// Signers of commits and tags; `None` if no signature is required.
    pub trust: Option<SignatureRequirement>,
    /// True if a revision may be used that is not a descendant of the last accepted one.
    pub allow_rollback: bool,
    /// The revision of the last good set.
    pub last_accepted: Option<Revision>,
    /// The source's own directory for what it fetches.
    pub store: PathBuf,
    /// The starter of the processes that read objects.
    pub jobs: Arc<ObjectJobs>,
}

/// Limits of a git source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitLimits {
    /// Size of one pack as it comes over the network.
    pub max_fetch_bytes: u64,
    /// Limits for reading a commit.
    pub read: ReadLimits,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self { max_fetch_bytes: 256 << 20, read: ReadLimits::default() }
    }
}

/// Path with an empty, `.` or `..` component, or with a control character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid path in a repository: it must not have empty components, . or .., or control characters")]
pub struct BadRepositoryPath(String);

/// A path in the repository without slashes at its ends; `.` and `/` mean the whole repository.
pub fn repository_path(text: &str) -> Result<String, BadRepositoryPath> {
    let path = text.strip_prefix("./").unwrap_or(text).trim_matches('/');
    if path.is_empty() || path == "." {
        return Ok(String::new());
    }
    if path.split('/').any(|component| matches!(component, "" | "." | "..")) || path.contains(char::is_control) {
        return Err(BadRepositoryPath(text.to_owned()));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_repository() {
        for (text, path) in [("", ""), (".", ""), ("/", ""), ("./a/", "a"), ("/a/b", "a/b"), ("a b", "a b")] {
            assert_eq!(repository_path(text).as_deref(), Ok(path), "{text}");
        }
        for text in ["..", "a/../b", "a//b", "./../a", "a/./b", "a\n"] {
            assert!(repository_path(text).is_err(), "{text}");
        }
    }
}
