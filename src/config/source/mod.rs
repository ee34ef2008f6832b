//! Sources, resolved: every value is set and valid.

mod access;
mod bundle;
mod commit_status;
mod git;
mod oci;
mod resolve;
mod share;
mod written;

#[cfg(test)]
mod tests;

pub use commit_status::{CommitStatus, Provider};
pub use share::sharing;

pub(super) use resolve::sources;

pub(super) use written::WrittenSource;

use podstead_artifact::Layers;
use podstead_manifest::Substitution;
use podstead_pod::SourceId;
use podstead_pod::sharing::Share;
use podstead_settings::{Allow, Requirements};
use podstead_source::SignatureRequirement;
use podstead_source::git::{Follow, RemoteUrl};
use podstead_source::http_client::HttpAccess;
use podstead_source::oci::{OciFollow, OciUrl};
use reqwest::Url;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A place that manifests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Unique name; names the directory of its last good objects.
    pub name: SourceId,
    /// Its kind and location.
    pub place: SourcePlace,
    /// Required signers of http and git; `None` if no signature is required.
    pub signature: Option<SignatureRequirement>,
    /// Older revisions than the last accepted one are accepted, too.
    pub allow_rollback: bool,
    /// Earlier accepted revisions that are kept.
    pub history_limit: usize,
    /// Permissions of its pods; `None` for all.
    pub allow: Option<Arc<Allow>>,
    /// Requirements for its pods.
    pub requirements: Arc<Requirements>,
    /// Objects of it that pods of other sources may use, where that needs permission.
    pub share: Vec<Share>,
    /// Variables that are replaced in its manifests; `None` for none.
    pub substitute: Option<Arc<Substitution>>,
    /// Its layers.
    pub layers: Arc<Layers>,
    /// Clients of the API may write to it.
    pub writable: bool,
}

/// The kinds of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePlace {
    /// A directory or a single file.
    Directory {
        /// Absolute path.
        path: PathBuf,
        /// Interval of listings without an event.
        relist_interval: Duration,
    },
    /// One document of manifests at a URL.
    Http(HttpPlace),
    /// A git repository.
    Git(GitPlace),
    /// An artifact in a registry.
    Oci(OciPlace),
    /// Bundles in a directory or on removable media.
    Bundle(BundlePlace),
}

/// A URL that is asked from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlace {
    /// http or https, without user and fragment.
    pub url: Url,
    /// Time between polls.
    pub interval: Duration,
    /// For one poll as a whole.
    pub timeout: Duration,
    /// Credentials, proxy, TLS.
    pub access: HttpAccess,
}

/// A git repository that is asked from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitPlace {
    /// URL of the repository.
    pub url: RemoteUrl,
    /// Reference to follow.
    pub follow: Follow,
    /// Directory or file in the repository, without a slash at either end; empty for its root.
    pub path: String,
    /// Time between polls.
    pub interval: Duration,
    /// For connecting, for a list of references as a whole, and for silence while objects come.
    pub timeout: Duration,
    /// Credentials, proxy, TLS: for http and https.
    pub access: HttpAccess,
    /// For ssh.
    pub ssh: Option<SshAccess>,
    /// Report of the state of each revision.
    pub commit_status: Option<Box<CommitStatus>>,
}

/// A repository of a registry that is asked from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciPlace {
    /// URL of the repository.
    pub url: OciUrl,
    /// Artifact to follow.
    pub follow: OciFollow,
    /// Directory or file in the artifact, without a slash at either end; empty for its root.
    pub path: String,
    /// Time between polls.
    pub interval: Duration,
    /// For one poll as a whole.
    pub timeout: Duration,
    /// Files of the public keys of which one must have signed; empty if no signature is required.
    pub keys: Vec<PathBuf>,
}

/// Bundles in a directory or on removable media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePlace {
    /// Absolute path.
    pub directory: PathBuf,
    /// File systems that others mount count, too.
    pub removable: bool,
    /// Label of a file system that is mounted to look for bundles.
    pub mount_label: Option<String>,
    /// Name of the bundles; `None` for that of the first one.
    pub name: Option<String>,
    /// Name of this host.
    pub host: String,
    /// Time between two looks without an event.
    pub interval: Duration,
}

/// Keys for ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshAccess {
    /// Private key.
    pub key_file: PathBuf,
    /// Keys of the servers.
    pub known_hosts_file: PathBuf,
}

impl SourcePlace {
    /// The kind, as the field of the configuration that names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "directory",
            Self::Http(_) => "http",
            Self::Git(_) => "git",
            Self::Oci(_) => "oci",
            Self::Bundle(_) => "bundle",
        }
    }

    /// URL by which other hosts may name it.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Directory { .. } | Self::Bundle(_) => None,
            Self::Http(place) => Some(place.url.to_string()),
            Self::Git(place) => Some(place.url.to_string()),
            Self::Oci(place) => Some(place.url.to_string()),
        }
    }
}
