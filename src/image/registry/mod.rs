//! Registries: the interface for pulls, and the client of the distribution protocol.
//!
//! An image is asked of [mirrors](hosts) of its registry, too.
//!
//! The client is our own on [`podstead_fetch`], for what ready-made ones lack: limits on every body, an error for each thing that can go wrong
//! on the way that says which it was, and content that is digested once, where it is unpacked.

mod challenge;
mod client;
mod error;
mod hosts;
mod live;
pub(super) mod login;
mod origin;
mod token;
mod transport;

pub(super) use client::Registries;
pub(super) use error::RegistryError;
pub(super) use live::LiveRegistries;
pub(super) use login::{HostLogin, HostLogins};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use hosts::{Endpoint, Role};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_fetch::Session;
use podstead_runtime::credentials::Credentials;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Identity of the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// This host, with one of its credentials.
    Host(HostLogin),
    /// A pod, with credentials of one of its Secrets.
    Pod(Credentials),
}

/// Identity of the client, and what else of this host it may use.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Identity towards the registry itself.
    pub(super) who: Who,
    /// Mirrors may be asked with credentials that this host has for them.
    pub(super) of_host: bool,
    /// The pull or question, whose requests share processes.
    pub(super) session: Session,
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The image that a tag names: the host decides which.
    Tag,
    /// Content with a digest.
    Content,
}

impl Need {
    /// The purpose of a request for a manifest.
    pub(super) fn of(reference: &Reference) -> Self {
        if reference.digest().is_some() { Self::Content } else { Self::Tag }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Tag => "tags",
            Self::Content => "content",
        }
    }
}

/// A host that has images of a registry, and as whom it is asked.
#[derive(Clone, Debug)]
pub(super) struct Route {
    endpoint: Arc<Endpoint>,
    who: Who,
    session: Session,
}

/// The same host, asked as the same one, whichever pull asks.
impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        (&self.endpoint, &self.who) == (&other.endpoint, &other.who)
    }
}

impl Eq for Route {}

impl Route {
    /// Name of the host: the registry as in references, a mirror by its name and port.
    pub(super) fn host(&self) -> &str {
        &self.endpoint.access.host
    }

    /// Returns true for another host than the registry itself.
    pub(super) fn is_mirror(&self) -> bool {
        self.endpoint.role == Role::Mirror
    }

    /// Returns true if the host gives to this host what it may not give to everybody, other than to whom the registry itself was asked as.
    pub(super) fn uses_host_credentials(&self) -> bool {
        let is_host_login = matches!(&self.who, Who::Host(HostLogin::Configured | HostLogin::File(_)));
        self.endpoint.has_identity() || (self.is_mirror() && is_host_login)
    }
}

/// Registries as pulls use them. Nothing is verified here.
#[async_trait]
pub(super) trait Registry: fmt::Debug + Send + Sync + 'static {
    /// A new pull or question.
    fn session(&self) -> Session;

    /// The credentials that this host has for the image at its registry.
    async fn host_logins(&self, reference: &Reference) -> HostLogins;

    /// The hosts that may be asked, in their order; at least one. A host with several credentials is there for each.
    async fn routes(&self, reference: &Reference, caller: &Caller, need: Need) -> Result<Vec<Route>, RegistryError>;

    /// Digest that the reference has now: that of an index or a manifest.
    async fn resolve(&self, reference: &Reference, route: &Route) -> Result<Digest, RegistryError>;

    /// The index or manifest itself.
    async fn manifest(&self, reference: &Reference, route: &Route) -> Result<Bytes, RegistryError>;

    /// The list of what refers to the reference's digest; `None` from a registry without such lists.
    async fn referrers(&self, reference: &Reference, route: &Route) -> Result<Option<Bytes>, RegistryError>;

    /// The tags of the reference's repository, in the order of the registry.
    async fn tags(&self, reference: &Reference, route: &Route) -> Result<Vec<String>, RegistryError>;

    /// A blob of the reference's repository from `offset` on.
    async fn blob(&self, reference: &Reference, route: &Route, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError>;

    /// Takes note that a host broke off in a blob, or was too slow.
    fn interrupted(&self, route: &Route);

    /// Tells that a mirror did not help, but another host did.
    fn passed_over(&self, reference: &Reference, route: &Route, failure: &(dyn Error + 'static));
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
