//! Registries whose configuration may change while images are pulled.

use super::{BlobStream, Caller, HostLogins, Need, Registries, Registry, RegistryError, Route};
use async_trait::async_trait;
use bytes::Bytes;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_fetch::Session;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};

/// The registries as they are configured now. What is under way goes on with the hosts that it was begun with.
#[derive(Debug)]
pub(crate) struct LiveRegistries(RwLock<Arc<Registries>>);

impl LiveRegistries {
    pub(crate) fn new(registries: Registries) -> Self {
        Self(RwLock::new(Arc::new(registries)))
    }

    /// From now on these are asked. Connections and tokens of the earlier ones are not used any more.
    pub(crate) fn set(&self, registries: Registries) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registries);
    }

    fn now(&self) -> Arc<Registries> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Registry for LiveRegistries {
    fn session(&self) -> Session {
        self.now().session()
    }

    async fn host_logins(&self, reference: &Reference) -> HostLogins {
        self.now().host_logins(reference).await
    }

    async fn routes(&self, reference: &Reference, caller: &Caller, need: Need) -> Result<Vec<Route>, RegistryError> {
        self.now().routes(reference, caller, need).await
    }

    async fn resolve(&self, reference: &Reference, route: &Route) -> Result<Digest, RegistryError> {
        self.now().resolve(reference, route).await
    }

    async fn manifest(&self, reference: &Reference, route: &Route) -> Result<Bytes, RegistryError> {
        self.now().manifest(reference, route).await
    }

    async fn referrers(&self, reference: &Reference, route: &Route) -> Result<Option<Bytes>, RegistryError> {
        self.now().referrers(reference, route).await
    }

    async fn tags(&self, reference: &Reference, route: &Route) -> Result<Vec<String>, RegistryError> {
        self.now().tags(reference, route).await
    }

    async fn blob(&self, reference: &Reference, route: &Route, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError> {
        self.now().blob(reference, route, digest, offset).await
    }

    fn interrupted(&self, route: &Route) {
        self.now().interrupted(route);
    }

    fn passed_over(&self, reference: &Reference, route: &Route, failure: &(dyn Error + 'static)) {
        self.now().passed_over(reference, route, failure);
    }
}
