//! Variables with the addresses of Services, for containers that are made (S26).

use super::plan::SourcedService;
use async_trait::async_trait;
use podstead_mux::ObjectView;
use podstead_pod::objects::{NetworkKind, ObjectKind, Objects};
use podstead_pod::{Pod, SourceId};
use podstead_service::allocate::Grants;
use podstead_service::environment;
use podstead_service::name::ObjectName;
use podstead_worker::ServiceVariables;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time limit for waiting: a pod that runs without variables of a Service is better than one that does not run.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The Services of one moment, and their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocated {
    /// The view that they are from; `None` before the first turn.
    pub(super) of: Option<Arc<Objects>>,
    pub(super) services: Arc<Vec<Arc<SourcedService>>>,
    pub(super) grants: Arc<Grants>,
}

impl Allocated {
    /// Variables for a pod. Services of sources that are apart from its own, and not shared with it, are left out: nobody may lead the clients
    /// of others to pods of their own.
    pub(super) fn variables(&self, namespace: &str, source: &SourceId, has_links: bool) -> Vec<(String, String)> {
        let Some(objects) = &self.of else { return Vec::new() };
        let kind = ObjectKind::Network(NetworkKind::Service);
        let is_reached = |owner: &SourceId, name: &str| objects.sharing().may_use(source, owner, kind, name);
        let reached = self.services.iter().filter(|service| is_reached(&service.source, &service.definition.name.name));
        environment::variables(reached.map(|service| &service.definition), &self.grants, namespace, has_links)
    }
}

/// Answers for containers.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(super) objects: Arc<ObjectView>,
    pub(super) allocated: watch::Receiver<Arc<Allocated>>,
}

#[async_trait]
impl ServiceVariables for Variables {
    async fn of_pod(&self, pod: &Pod, source: &SourceId) -> Vec<(String, String)> {
        let mut allocated = self.allocated.clone();
        let present = self.objects.get();
        let is_heard = |allocated: &Arc<Allocated>| allocated.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &present));
        // Later views than the present one do as well.
        let heard = tokio::time::timeout(LONGEST_WAIT, async {
            while !is_heard(&allocated.borrow_and_update()) && allocated.changed().await.is_ok() {
                if !Arc::ptr_eq(&present, &self.objects.get()) {
                    return;
                }
            }
        });
        if heard.await.is_err() {
            tracing::warn!(pod = pod.metadata.name, "Services have no addresses yet: the container may lack their variables");
        }
        let has_links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
        allocated.borrow().variables(&ObjectName::of(&pod.metadata).namespace, source, has_links)
    }
}
