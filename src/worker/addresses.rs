//! Recovery of a living sandbox's addresses after a restart of the daemon.

use super::pod_worker::PodWorker;
use super::services::Services;
use podstead_container::{ObservedPod, SandboxState};
use podstead_runtime::PodNetworkStatus;
use podstead_telemetry::error_chain;

impl PodWorker {
    /// Asks for the addresses that a living sandbox has, so that the first status after a start of the daemon shows them. Setting the
    /// network up asks again, and says what is wrong.
    pub(super) async fn recall_addresses(&mut self, services: &Services, observed: &ObservedPod) {
        let living = observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready);
        let Some(sandbox) = living.filter(|_| self.memory.pod_ips.is_empty()) else { return };
        let desired = &self.definition.desired;
        match services.network.status(&desired.uid, &desired.pod, sandbox.netns.as_deref()).await {
            Ok(PodNetworkStatus { ips, report, dns }) => {
                (self.memory.pod_ips, self.memory.network_report, self.memory.network_dns) = (ips, report, dns);
            }
            Err(error) => {
                tracing::debug!(pod = %desired.full_name, error = %error_chain(&error), "cannot read the pod's addresses yet")
            }
        }
    }
}
