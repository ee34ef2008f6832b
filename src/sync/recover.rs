//! Start of the daemon, which always is a recovery (promise P7).

use podstead_container::ObservedPod;
use podstead_pod::{DesiredPod, PodUid};
use podstead_runtime::{Runtime, RuntimeError};
use podstead_sys::layout::Paths;
use podstead_volume::{VolumeError, VolumeService};
use podstead_worker::PodWorkers;
use podstead_worker::record::{self, PodRecord, RecordError, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time that a stopped pod waits for its source before it is started from its record. The last good set of every source is on disk and
/// arrives in this time; only a pod whose source cannot even read that is started without having been asked for.
const SOURCE_DELAY: Duration = Duration::from_secs(2);

/// Reason why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The runtime does not know what runs.
    #[error("list running sandboxes and containers")]
    Runtime(#[source] RuntimeError),
    /// The records cannot be listed.
    #[error("read pod records")]
    Records(#[source] RecordError),
    /// The volumes cannot be listed.
    #[error("list volumes")]
    Volumes(#[source] VolumeError),
}

/// A pod that an earlier daemon left.
#[derive(Debug)]
struct Found {
    record: PodRecord,
    observed: Option<ObservedPod>,
    /// Its record was lost: its desired state is unknown until its source delivers.
    is_rebuilt: bool,
}

/// Everything that an earlier daemon left.
#[derive(Debug, Default)]
pub struct Recovered {
    pods: Vec<Found>,
    /// Of these nothing is left but directories.
    pub remains: BTreeSet<PodUid>,
}

impl Recovered {
    /// Looks at disk, kernel and shims.
    pub async fn look(paths: &Paths, runtime: &dyn Runtime, volumes: &dyn VolumeService) -> Result<Self, RecoverError> {
        let observed = runtime.recover().await.map_err(RecoverError::Runtime)?;
        let with_volumes = volumes.list().await.map_err(RecoverError::Volumes)?;
        let Records { records, unreadable, without } = record::read_all(paths).map_err(RecoverError::Records)?;
        for (uid, error) in &unreadable {
            record::set_aside(paths, uid);
            tracing::error!(pod_uid = %uid, error = %podstead_telemetry::error_chain(error), "unreadable pod record set aside");
        }
        let mut observed: BTreeMap<PodUid, ObservedPod> = observed.into_iter().map(|pod| (pod.uid.clone(), pod)).collect();
        let mut recovered = Recovered::default();
        for record in records {
            let observed = observed.remove(&record.desired.uid);
            recovered.pods.push(Found { record, observed, is_rebuilt: false });
        }
        recovered.remains.extend(unreadable.into_iter().map(|(uid, _)| uid).chain(without).chain(with_volumes));
        for (uid, observed) in observed {
            match PodRecord::rebuilt(&observed) {
                Some(record) => recovered.pods.push(Found { record, observed: Some(observed), is_rebuilt: true }),
                None => {
                    recovered.remains.insert(uid);
                }
            }
        }
        for found in &recovered.pods {
            recovered.remains.remove(&found.record.desired.uid);
        }
        Ok(recovered)
    }

    /// The UIDs of the pods whose workers look at them without being asked, within [`SOURCE_DELAY`].
    pub fn uids(&self) -> BTreeSet<PodUid> {
        self.pods.iter().filter(|found| !found.is_rebuilt).map(|found| found.record.desired.uid.clone()).collect()
    }

    /// The pods for the mux to know: their UIDs survive.
    pub fn known(&self) -> Vec<DesiredPod> {
        self.pods.iter().filter(|found| !found.record.is_removed).map(|found| found.record.desired.clone()).collect()
    }

    /// All pods that records tell of, and whether each was being stopped.
    pub fn all(&self) -> impl Iterator<Item = (&DesiredPod, bool)> {
        self.pods.iter().map(|found| (&found.record.desired, found.record.is_removed))
    }

    /// Hands the pods to the workers.
    pub fn adopt(self, workers: &mut PodWorkers) -> BTreeSet<PodUid> {
        for Found { record, observed, is_rebuilt } in self.pods {
            tracing::info!(pod = %record.desired.full_name, uid = %record.desired.uid, "recovered pod");
            let has_sandbox =
                observed.as_ref().and_then(|pod| pod.sandbox.as_ref()).is_some_and(|sandbox| sandbox.shim_pid.is_some());
            let delay = match (is_rebuilt, has_sandbox || record.result.is_some() || record.is_removed) {
                (true, _) => None,
                (false, true) => Some(Duration::ZERO),
                (false, false) => Some(SOURCE_DELAY),
            };
            workers.recover(record, observed.as_ref(), delay);
        }
        self.remains
    }
}
