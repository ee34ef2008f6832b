//! Durable leases: the lease of a new pod is written while the rest of the pod is prepared, and before its first process starts.

use super::record;
use super::state::State;
use crate::OperationError;
use crate::record::RecordError;
use podstead_pod::PodUid;
use podstead_runtime::NetworkError;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// Records of leases on disk, as far as they are not synced.
#[derive(Debug)]
pub(super) struct LeaseRecords {
    paths: Paths,
    write_ahead: WriteAheadLog,
    /// Has the leases that are written.
    state: Arc<Mutex<State>>,
    unsynced: Mutex<Unsynced>,
    /// Serialises lease writes.
    writing: Mutex<()>,
}

/// Pods with a lease that is not synced to disk, and the sync under way, if any.
type Unsynced = BTreeMap<PodUid, Option<JoinHandle<Result<(), RecordError>>>>;

impl LeaseRecords {
    pub(super) fn new(paths: Paths, write_ahead: WriteAheadLog, state: Arc<Mutex<State>>) -> Self {
        Self { paths, write_ahead, state, unsynced: Mutex::default(), writing: Mutex::default() }
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a lease of an earlier daemon, which may have died between writing it and syncing it.
    pub(super) fn recover(&self, uid: PodUid) {
        self.unsynced().insert(uid, None);
    }

    /// Has a lease recorded. Called where the daemon's executor is known.
    pub(super) fn begin(self: &Arc<Self>, uid: &PodUid) {
        // Under the lock: the work does not begin before it is known of.
        self.unsynced().insert(uid.clone(), Some(self.recording(uid)));
    }

    fn recording(self: &Arc<Self>, uid: &PodUid) -> JoinHandle<Result<(), RecordError>> {
        let (records, uid) = (Arc::clone(self), uid.clone());
        tokio::task::spawn_blocking(move || {
            if records.write(&uid)? { record::sync_lease(&records.paths, &uid, &records.write_ahead) } else { Ok(()) }
        })
    }

    /// Writes what the pod has now; `false` if that is not wanted any more. Synced later, so that pods do not wait for each other's disk.
    fn write(&self, uid: &PodUid) -> Result<bool, RecordError> {
        let _writing = self.writing();
        if !self.unsynced().contains_key(uid) {
            return Ok(false);
        }
        let lease = self.state.lock().unwrap_or_else(PoisonError::into_inner).leases.get(uid).cloned();
        lease.map_or(Ok(false), |lease| record::write_lease(&self.paths, uid, &lease).map(|()| true))
    }

    /// Removes the record of a lease, and prevents later writes of it.
    pub(super) fn remove(&self, uid: &PodUid) -> Result<(), RecordError> {
        let writing = self.writing();
        self.unsynced().remove(uid);
        drop(writing);
        record::remove_lease(&self.paths, uid, &self.write_ahead)
    }

    /// Waits until the pod's lease outlives a power cut. What failed is tried again by the next call.
    pub(super) async fn settle(self: &Arc<Self>, uid: &PodUid) -> Result<(), NetworkError> {
        let Some(under_way) = self.unsynced().get_mut(uid).map(Option::take) else { return Ok(()) };
        let recorded = under_way.unwrap_or_else(|| self.recording(uid)).await;
        recorded
            .map_err(|error| NetworkError::failed(uid, OperationError::Interrupted(error)))?
            .map_err(|error| NetworkError::failed(uid, error))?;
        self.unsynced().remove(uid);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::lease::{Facts, Wish};
    use crate::builtin::{BuiltinNetwork, NetworkLinks, NoPolicies, record};
    use podstead_pod::{PodFullName, PodUid};
    use podstead_runtime::{NetworkError, PodNetwork};
    use podstead_settings::NetworkConfig;
    use podstead_sys::layout::Paths;
    use podstead_telemetry::EventLog;
    use std::fs;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_lease_that_cannot_be_recorded_keeps_its_pod_from_starting_until_it_can() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let events = Arc::new(EventLog::new(0, jiff::Timestamp::now));
        let (pokes, _) = tokio::sync::mpsc::unbounded_channel();
        let links = NetworkLinks {
            paths: paths.clone(),
            write_ahead: Default::default(),
            config: NetworkConfig::default(),
            events,
            dns_port: None,
            pokes,
            policies: Arc::new(NoPolicies::default()),
        };
        let network = BuiltinNetwork::open(links).await;
        let uid = PodUid::new("uid");
        network.settle(&uid).await.unwrap();
        let pod = PodFullName { namespace: "default".into(), name: "a".into() };
        let wish = Wish { pod, ports: Vec::new(), is_isolated: false, facts: Facts::default() };
        let lease = network.shared.state().leases.grant(&uid, &wish, &["10.0.0.0/24".parse().unwrap()], false).unwrap();
        fs::create_dir_all(paths.pods()).unwrap();
        fs::write(paths.pod(&uid), "in the way of a directory").unwrap();
        network.shared.records.begin(&uid);
        for _ in 0..2 {
            let error = network.settle(&uid).await.unwrap_err();
            let shown = podstead_telemetry::error_chain(&error).to_string();
            assert!(matches!(error, NetworkError::Failed { .. }) && shown.contains("pods/uid"), "{shown}");
        }
        fs::remove_file(paths.pod(&uid)).unwrap();
        network.settle(&uid).await.unwrap();
        assert_eq!(record::read_lease(&paths, &uid).unwrap().map(|read| read.addresses), Some(lease.addresses));
        assert!(network.shared.records.unsynced().is_empty());
        // A lease released while its record is being written must not be on record afterwards.
        network.shared.records.begin(&uid);
        let under_way = network.shared.records.unsynced().get_mut(&uid).and_then(Option::take).unwrap();
        network.release(&uid).await.unwrap();
        under_way.await.unwrap().unwrap();
        assert_eq!(record::read_lease(&paths, &uid).unwrap(), None);
    }
}
