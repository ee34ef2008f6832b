//! Settings of an image for its process.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// The part of an OCI image configuration that a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// `Entrypoint`.
    pub entrypoint: Vec<String>,
    /// `Cmd`.
    pub cmd: Vec<String>,
    /// `Env`, as `NAME=value`.
    pub env: Vec<String>,
    /// `User`: `name`, `uid`, `name:group`, `uid:gid`; empty for root.
    pub user: String,
    /// `WorkingDir`; empty for `/`.
    pub working_dir: String,
    /// `StopSignal`, e.g. `SIGQUIT` or `3`.
    pub stop_signal: Option<String>,
    /// `Labels`.
    pub labels: BTreeMap<String, String>,
}

/// An image that is whole on this host's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedImage {
    /// Digest of the image's manifest (of this platform), `sha256:...`.
    pub digest: String,
    /// Unpacked layers, lowest first, as overlayfs takes them.
    pub layers: Vec<PathBuf>,
    /// Settings of the image for its process.
    pub config: ImageConfig,
    /// Keeps the layers on disk.
    #[serde(skip)]
    pub lease: ImageLease,
}

/// A claim on the layers of an image, which stay on disk as long as a copy of it lives. It says nothing about the image: all are equal, and none is
/// written.
#[derive(Clone, Debug, Default)]
pub struct ImageLease(Arc<()>);

impl ImageLease {
    /// For finding out whether a copy lives.
    pub fn watch(&self) -> Weak<()> {
        Arc::downgrade(&self.0)
    }
}

impl PartialEq for ImageLease {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ImageLease {}

/// The user that a container's first process runs as, resolved to numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUser {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplemental groups.
    pub additional_gids: Vec<u32>,
}
