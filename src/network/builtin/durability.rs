//! Leases on their way to the disk: a record is synced beside what else a new pod needs, and before the first process of the pod starts.

use super::Shared;
use super::record;
use crate::network::NetworkError;
use crate::network::record::RecordError;
use crate::pod::PodUid;
use crate::telemetry::error_chain;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// Pods whose lease a power cut could take, and the work on that if there is any under way.
pub(super) type Unsynced = BTreeMap<PodUid, Option<JoinHandle<Result<(), RecordError>>>>;

impl Shared {
    pub(super) fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a lease that was just written synced. Called where the daemon's executor is known.
    pub(super) fn begin_to_sync(&self, uid: &PodUid) {
        self.unsynced().insert(uid.clone(), Some(self.syncing(uid)));
    }

    fn syncing(&self, uid: &PodUid) -> JoinHandle<Result<(), RecordError>> {
        let (paths, uid) = (self.links.paths.clone(), uid.clone());
        tokio::task::spawn_blocking(move || record::sync_lease(&paths, &uid))
    }

    /// Waits until the pod's lease outlives a power cut. What failed is tried again by the next call.
    pub(super) async fn settle(&self, uid: &PodUid) -> Result<(), NetworkError> {
        let Some(under_way) = self.unsynced().get_mut(uid).map(Option::take) else { return Ok(()) };
        let failed = |reason: String| NetworkError::Failed { uid: uid.clone(), reason };
        let synced = under_way.unwrap_or_else(|| self.syncing(uid)).await;
        synced
            .map_err(|error| failed(format!("the work was cut short: {error}")))?
            .map_err(|error| failed(error_chain(&error).to_string()))?;
        self.unsynced().remove(uid);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{NetworkConfig, Paths};
    use crate::network::builtin::{BuiltinNetwork, NetworkLinks};
    use crate::network::{NetworkError, PodNetwork};
    use crate::pod::PodUid;
    use crate::telemetry::EventLog;
    use std::fs;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_lease_that_cannot_be_synced_keeps_its_pod_from_starting_until_it_can() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let events = Arc::new(EventLog::new(0, jiff::Timestamp::now));
        let (pokes, _) = tokio::sync::mpsc::unbounded_channel();
        let links = NetworkLinks { paths: paths.clone(), config: NetworkConfig::default(), events, dns_port: None, pokes };
        let network = BuiltinNetwork::open(links).await;
        let uid = PodUid::new("uid");
        network.settle(&uid).await.unwrap();
        fs::create_dir_all(paths.pods()).unwrap();
        fs::write(paths.pod(&uid), "in the way of a directory").unwrap();
        network.shared.begin_to_sync(&uid);
        for _ in 0..2 {
            let error = network.settle(&uid).await.unwrap_err();
            assert!(matches!(error, NetworkError::Failed { .. }) && error.to_string().contains("network.json"), "{error}");
        }
        fs::remove_file(paths.pod(&uid)).unwrap();
        fs::create_dir(paths.pod(&uid)).unwrap();
        fs::write(paths.pod_network(&uid), "{}").unwrap();
        network.settle(&uid).await.unwrap();
        assert!(network.shared.unsynced().is_empty());
    }
}
