//! Probe work in a worker's turn: it applies results, updates the prober and saves the state.

use super::health_file::{self, KeptHealth};
use super::memory::Step;
use super::pod_worker::PodWorker;
use super::services::Services;
use podstead_container::ObservedPod;
use std::sync::Arc;

impl PodWorker {
    /// Applies the results of probes, and gives the prober the probes to run.
    pub(super) fn look_at_health(&mut self, services: &Arc<Services>, observed: &ObservedPod) {
        let (uid, now) = (&self.definition.desired.uid, services.clock.now());
        self.memory.take_in_health(&self.definition, observed, &services.probes.health(uid), now);
        let is_probed = self.probed.is_some() || self.definition.containers.iter().any(|container| !container.probes.is_empty());
        // Before the network is looked at again, the pod's address is not known.
        if !is_probed || self.memory.network != Step::Done {
            return;
        }
        let probed = if self.definition.sandbox.namespaces.host_network {
            self.memory.probed_pod(&self.definition, observed, &self.phase, &services.host_addresses.get(now.moment))
        } else {
            self.memory.probed_pod(&self.definition, observed, &self.phase, &self.memory.pod_ips)
        };
        if self.probed == probed {
            return;
        }
        match &probed {
            Some(probed) => services.probes.declare(uid, probed.clone()),
            None => services.probes.forget(uid),
        }
        self.probed = probed;
    }

    /// Keeps what is known of the runs, if they are probed, for the next daemon. Nothing is lost that could not be asked again.
    pub(super) async fn keep_health(&mut self, services: &Arc<Services>) {
        let kept = if self.probed.is_some() { health_file::to_keep(&self.memory.health) } else { KeptHealth::new() };
        if kept == self.kept_health {
            return;
        }
        let (paths, uid) = (services.paths.clone(), self.definition.desired.uid.clone());
        let content = kept.clone();
        match tokio::task::spawn_blocking(move || health_file::write(&paths, &uid, &content)).await {
            Ok(Ok(())) => self.kept_health = kept,
            // Without a sandbox there is nothing to keep.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Ok(Err(error)) => tracing::warn!(pod = %self.definition.desired.full_name, %error, "cannot save probe results"),
            // The daemon is going.
            Err(_) => {}
        }
    }
}
