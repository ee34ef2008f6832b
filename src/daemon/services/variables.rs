//! Variables with the addresses of Services, for containers that are made (S26).

use async_trait::async_trait;
use podstead_mux::ObjectView;
use podstead_pod::Pod;
use podstead_pod::objects::Objects;
use podstead_service::allocate::Grants;
use podstead_service::definition::Definition;
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
    pub(super) definitions: Vec<Definition>,
    pub(super) grants: Grants,
}

/// Answers for containers.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(super) objects: Arc<ObjectView>,
    pub(super) allocated: watch::Receiver<Arc<Allocated>>,
}

#[async_trait]
impl ServiceVariables for Variables {
    async fn of_pod(&self, pod: &Pod) -> Vec<(String, String)> {
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
        let Allocated { definitions, grants, .. } = &**allocated.borrow();
        let has_links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
        environment::variables(definitions, grants, &ObjectName::of(&pod.metadata).namespace, has_links)
    }
}
