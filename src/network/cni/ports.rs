//! Ownership of host ports, so that two pods, or a pod and a service of the host, never have the same.

use super::record::PodRecord;
use super::{Shared, lock};
use crate::builtin::listeners;
use podstead_pod::host_ports::HostPort;
use podstead_pod::{PodFullName, PodUid};
use podstead_runtime::NetworkError;
use std::path::Path;
use std::sync::Arc;

impl Shared {
    /// Gives ports of the host to a pod. `listens`: it is on the host's network, and takes them itself.
    pub(super) async fn claim_ports(
        self: &Arc<Self>,
        uid: &PodUid,
        name: &PodFullName,
        ports: Vec<HostPort>,
        listens: bool,
    ) -> Result<(), NetworkError> {
        let (shared, owner, name) = (Arc::clone(self), uid.clone(), name.clone());
        match tokio::task::spawn_blocking(move || shared.claim_ports_now(&owner, &name, &ports, listens)).await {
            Ok(claimed) => claimed,
            Err(error) => Err(NetworkError::failed(uid, error)),
        }
    }

    fn claim_ports_now(&self, uid: &PodUid, name: &PodFullName, ports: &[HostPort], listens: bool) -> Result<(), NetworkError> {
        let mut records = lock(&self.records);
        for (other, record) in records.iter().filter(|(other, _)| *other != uid) {
            if let Some(port) = ports.iter().find(|port| record.ports.iter().any(|held| held.collides(port))) {
                tracing::debug!(%uid, %other, %port, "port is in use");
                return Err(NetworkError::PortTaken(format!("hostPort {port} is in use by pod {}", record.pod)));
            }
        }
        let had = records.get(uid).map(|record| record.ports.clone()).unwrap_or_default();
        if let Some(port) = ports.iter().find(|port| !listens && !had.contains(port))
            && let Some(owner) =
                listeners::owner_of(Path::new("/proc"), port, |address, port| self.names.is_resolver(address, port))
        {
            return Err(NetworkError::PortTaken(format!("hostPort {port} is in use by {owner}")));
        }
        if had != ports {
            let record = records.entry(uid.clone()).or_insert_with(|| PodRecord::new(name.clone()));
            record.ports = ports.to_vec();
            let record = record.clone();
            self.keep(uid, &record).map_err(|error| NetworkError::failed(uid, error))?;
            if record.is_empty() {
                records.remove(uid);
            }
        }
        Ok(())
    }
}
