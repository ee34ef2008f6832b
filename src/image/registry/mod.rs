//! Registries: the interface for pulls, and the client of the distribution protocol.
//!
//! The client is our own on `reqwest`, for what ready-made ones lack: limits on every body, an error for each thing that can go wrong
//! on the way that says which it was, and content that is digested once, where it is unpacked.

mod challenge;
mod client;
mod error;
pub(super) mod login;
mod origin;
mod token;
mod transport;

pub(super) use client::Registries;
pub(super) use error::RegistryError;
pub(super) use login::{HostLogin, HostLogins};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::credentials::Credentials;
use std::fmt;

/// Identity of the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// This host, with one of its credentials.
    Host(HostLogin),
    /// A pod, with credentials of one of its Secrets.
    Pod(Credentials),
}

/// Registries as pulls use them. Nothing is verified here.
#[async_trait]
pub(super) trait Registry: fmt::Debug + Send + Sync + 'static {
    /// The credentials that this host has for the image.
    async fn host_logins(&self, reference: &Reference) -> HostLogins;

    /// Digest that the reference has now: that of an index or a manifest.
    async fn resolve(&self, reference: &Reference, who: &Who) -> Result<Digest, RegistryError>;

    /// The index or manifest itself.
    async fn manifest(&self, reference: &Reference, who: &Who) -> Result<Bytes, RegistryError>;

    /// A blob of the reference's repository from `offset` on.
    async fn blob(&self, reference: &Reference, who: &Who, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError>;
}

/// A blob on its way.
pub(super) struct BlobStream {
    /// Offset of its beginning: the requested one, or 0 from a registry that cannot begin elsewhere.
    pub(super) offset: u64,
    /// Length of the whole blob, if the registry says it.
    pub(super) total: Option<u64>,
    /// Its bytes.
    pub(super) chunks: BoxStream<'static, Result<Bytes, RegistryError>>,
}

impl fmt::Debug for BlobStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobStream").field("offset", &self.offset).finish_non_exhaustive()
    }
}
