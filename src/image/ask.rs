//! Documents of an image from the first host that has them: mirrors of the registry, then the registry itself.
//!
//! Each document with a digest is verified here, so that a mirror with another one is passed over.

use super::document::Descriptor;
use super::registry::{Caller, Need, Registry, RegistryError, Route};
use super::transfer::{LONGEST_WAIT, chance, pause};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use std::time::Duration;

const CONFIG_MAX: u64 = 8 << 20;
/// Time limit of a whole document, so that no registry can delay a pull byte by byte.
pub(super) const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Requests for a document before a pull is given up.
const ATTEMPTS: u32 = 3;

/// Whom hosts answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// Whoever the pull asks as, or everybody.
    AsAsked,
    /// This host, which has credentials of its own for a mirror.
    WithHostCredentials,
}

impl Served {
    /// Both of two documents.
    pub(super) fn and(self, other: Self) -> Self {
        if self == Self::AsAsked { other } else { self }
    }
}

/// Questions about the images of a registry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) registry: &'a dyn Registry,
    pub(super) caller: &'a Caller,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, RegistryError>>;

impl<'a> Ask<'a> {
    /// Digest that the reference has now.
    pub(super) async fn digest(self, reference: &'a Reference) -> Result<(Digest, Served), RegistryError> {
        let ask = |route: Route| async move { self.registry.resolve(reference, &route).await }.boxed();
        self.first(reference, Need::of(reference), ask).await
    }

    /// The tags of the reference's repository.
    pub(super) async fn tags(self, reference: &'a Reference) -> Result<Vec<String>, RegistryError> {
        let ask = |route: Route| async move { self.registry.tags(reference, &route).await }.boxed();
        self.first(reference, Need::Tag, ask).await.map(|(tags, _)| tags)
    }

    /// The index or manifest of a reference; with the digest of the reference, if that has one.
    pub(super) async fn manifest(self, reference: &'a Reference) -> Result<(Bytes, Served), RegistryError> {
        let ask = |route: Route| {
            let answer = async move {
                let bytes = self.registry.manifest(reference, &route).await?;
                verified(bytes, reference.digest(), "manifest", &route)
            };
            answer.boxed()
        };
        self.first(reference, Need::of(reference), ask).await
    }

    /// A manifest at a tag that proves nothing of an image, whichever host has it.
    pub(super) async fn signatures(self, reference: &'a Reference) -> Result<Bytes, RegistryError> {
        let ask = |route: Route| async move { self.registry.manifest(reference, &route).await }.boxed();
        self.newest(reference, ask).await
    }

    /// The list of what refers to the digest of the reference; `None` from a registry without such lists.
    pub(super) async fn referrers(self, reference: &'a Reference) -> Result<Option<Bytes>, RegistryError> {
        let ask = |route: Route| async move { self.registry.referrers(reference, &route).await }.boxed();
        self.newest(reference, ask).await
    }

    /// A document that may be older on a mirror: asked of hosts that know the newest tags, of others only where there is none.
    async fn newest<T>(self, reference: &'a Reference, ask: impl Fn(Route) -> Answer<'a, T>) -> Result<T, RegistryError> {
        let answer = match self.first(reference, Need::Tag, &ask).await {
            Err(RegistryError::NoHost { .. }) => self.first(reference, Need::Content, &ask).await,
            answer => answer,
        };
        answer.map(|(answer, _)| answer)
    }

    /// The configuration of an image.
    pub(super) async fn configuration(self, reference: &'a Reference, descriptor: &'a Descriptor) -> Result<Bytes, RegistryError> {
        self.blob(reference, descriptor, "image configuration", CONFIG_MAX, DOCUMENT_TIMEOUT).await
    }

    /// A small blob, from a host that takes no longer than `timeout`; `what` names it in messages.
    pub(super) async fn blob(
        self,
        reference: &'a Reference,
        descriptor: &'a Descriptor,
        what: &'static str,
        limit: u64,
        timeout: Duration,
    ) -> Result<Bytes, RegistryError> {
        let ask = |route: Route| {
            let answer = async move {
                let late = |_| RegistryError::Stalled { host: route.host().to_owned() };
                let body = self.body(reference, &route, descriptor, limit);
                let bytes = tokio::time::timeout(timeout, body).await.map_err(late)??;
                verified(bytes, Some(descriptor.digest), what, &route)
            };
            answer.boxed()
        };
        self.first(reference, Need::Content, ask).await.map(|(bytes, _)| bytes)
    }

    async fn body(self, reference: &Reference, route: &Route, descriptor: &Descriptor, limit: u64) -> Result<Bytes, RegistryError> {
        let limit = limit.min(descriptor.size);
        let mut stream = self.registry.blob(reference, route, descriptor.digest, 0).await?;
        let mut body = BytesMut::new();
        while let Some(chunk) = stream.chunks.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() as u64 > limit {
                return Err(RegistryError::TooLarge { host: route.host().to_owned(), limit });
            }
        }
        Ok(body.freeze())
    }

    /// Asks all hosts in their order, and again after a pause if that may help.
    async fn first<T>(
        self,
        reference: &'a Reference,
        need: Need,
        ask: impl Fn(Route) -> Answer<'a, T>,
    ) -> Result<(T, Served), RegistryError> {
        let mut attempts = 0;
        loop {
            let mut failures: Vec<(Route, RegistryError)> = Vec::new();
            for route in self.registry.routes(reference, self.caller, need).await? {
                match ask(route.clone()).await {
                    Ok(answer) => {
                        let others = failures.iter().filter(|(failed, _)| failed.host() != route.host());
                        others.for_each(|(failed, error)| self.registry.passed_over(reference, failed, error));
                        let served = if route.uses_host_credentials() { Served::WithHostCredentials } else { Served::AsAsked };
                        return Ok((answer, served));
                    }
                    Err(error) => failures.push((route, error)),
                }
            }
            let failures = failures.into_iter().map(|(route, error)| (!route.is_mirror(), error)).collect();
            let error = RegistryError::of_all(failures)
                .unwrap_or_else(|| RegistryError::NoHost { registry: reference.host().to_owned(), need: "content" });
            attempts += 1;
            match error.is_transient() {
                Some(wanted) if attempts < ATTEMPTS && wanted <= LONGEST_WAIT => {
                    tokio::time::sleep(pause(attempts, wanted, chance())).await;
                }
                Some(_) | None => return Err(error),
            }
        }
    }
}

fn verified(bytes: Bytes, expected: Option<Digest>, what: &'static str, route: &Route) -> Result<Bytes, RegistryError> {
    let actual = Digest::of(&bytes);
    match expected {
        Some(expected) if expected != actual => Err(RegistryError::Digest {
            host: route.host().to_owned(),
            what,
            expected: Box::new(expected),
            actual: Box::new(actual),
        }),
        Some(_) | None => Ok(bytes),
    }
}
