//! Published pods as Services see them.

use k8s_openapi::api::core::v1::PodStatus;
use podstead_pod::{DesiredPod, PodUid, SourceId};
use podstead_service::endpoints::Backend;
use podstead_service::shared_map::SharedMap;
use podstead_status::PodStatusSink;
use std::sync::Arc;
use tokio::sync::watch;

/// A published pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedPod {
    /// Its properties that Services depend on.
    pub(super) backend: Backend,
    /// The source that it is of.
    pub(super) source: SourceId,
}

/// All published pods.
pub(crate) type Pods = SharedMap<PodUid, Arc<PublishedPod>>;

/// A sink in front of the others. The name of a pod is known to them before connections are led to it.
#[derive(Debug)]
pub(crate) struct PublishedBackends {
    pods: watch::Sender<Pods>,
    next: Arc<dyn PodStatusSink>,
}

impl PublishedBackends {
    /// No pods yet; `next` is told everything, too.
    pub(crate) fn new(next: Arc<dyn PodStatusSink>) -> Self {
        Self { pods: watch::Sender::default(), next }
    }

    /// The pods of every moment.
    pub(crate) fn pods(&self) -> watch::Receiver<Pods> {
        self.pods.subscribe()
    }
}

impl PodStatusSink for PublishedBackends {
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus) {
        let backend = Backend { uid: desired.uid.to_string(), ..Backend::with_status(&desired.pod, Some(&status)) };
        self.next.publish(desired, status);
        let published = PublishedPod { backend, source: desired.source.clone() };
        self.pods.send_if_modified(|pods| {
            let is_other = pods.get(&desired.uid).is_none_or(|known| **known != published);
            if is_other {
                pods.insert(desired.uid.clone(), Arc::new(published));
            }
            is_other
        });
    }

    fn withdraw(&self, uid: &PodUid) {
        self.pods.send_if_modified(|pods| pods.remove(uid).is_some());
        self.next.withdraw(uid);
    }
}
