//! Cleaning up without a request: remains of unknown pods, log directories of removed pods.

use podstead_pod::PodUid;
use podstead_pod::resources::milli_cpu_to_shares;
use podstead_sys::layout::Paths;
use podstead_sys::quiet_look::paths_in;
use podstead_telemetry::error_chain;
use podstead_worker::{Services, record, remains};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// Time that logs of a removed pod stay, for readers (kubelet rule D17).
const KEEP_LOGS: Duration = Duration::from_secs(60);

/// State of the housekeeping.
#[derive(Debug)]
pub struct Housekeeping {
    services: Arc<Services>,
    /// Pods that are in no record and no source, but of which something was found.
    remains: BTreeSet<PodUid>,
    /// CPU shares of the tier of Burstable pods.
    burstable_shares: Option<u64>,
}

impl Housekeeping {
    /// `remains` are the UIDs found at start that are not those of known pods.
    pub fn new(services: Arc<Services>, remains: BTreeSet<PodUid>) -> Self {
        Self { services, remains, burstable_shares: None }
    }

    /// Cleans up. `is_known` tells the pods that must be left alone. Only to be called when every source was heard (kubelet rule B5).
    pub async fn turn(&mut self, is_known: impl Fn(&PodUid) -> bool) {
        let paths = self.services.paths.clone();
        // A panic in there is one of listing directories: the next turn tries again.
        self.remains.extend(tokio::task::spawn_blocking(move || pods_on_disk(&paths)).await.unwrap_or_default());
        self.remains.retain(|uid| !is_known(uid));
        let mut left = BTreeSet::new();
        for uid in std::mem::take(&mut self.remains) {
            if !self.remove(&uid).await {
                left.insert(uid);
            }
        }
        self.remains = left;
        self.reclaim().await;
        self.services.network.look_after().await;
        let paths = self.services.paths.clone();
        // A panic in there is one of removing files: the next turn tries again.
        tokio::task::spawn_blocking(move || remove_old_logs(&paths)).await.ok();
    }

    /// Makes the volumes of claims, and deletes the data of claims that are gone. Only to be called when every source was heard.
    pub async fn reclaim(&self) {
        if let Err(error) = self.services.volumes.reclaim(&self.services.objects.get()).await {
            tracing::warn!(error = %error_chain(&error), "cannot reclaim persistent volumes");
        }
    }

    /// Gives the tier of Burstable pods the sum of their requests, in thousandths of a processor (kubelet rule D24: once a minute).
    pub fn weigh(&mut self, burstable_milli: i64) {
        let shares = milli_cpu_to_shares(burstable_milli);
        if self.burstable_shares == Some(shares) {
            return;
        }
        match self.services.runtime.weigh_burstable(shares) {
            Ok(()) => self.burstable_shares = Some(shares),
            Err(error) => tracing::warn!(error = %error_chain(&error), "cannot update the CPU shares of the burstable cgroup"),
        }
    }

    /// Removes the remains of a pod; returns true if nothing is left.
    async fn remove(&self, uid: &PodUid) -> bool {
        tracing::info!(pod_uid = %uid, "cleaning up an orphaned pod");
        let Services { runtime, volumes, network, paths, write_ahead, .. } = &*self.services;
        let mut problems = Vec::new();
        problems.extend(network.release(uid).await.err().map(|error| error_chain(&error).to_string()));
        problems.extend(runtime.stop_sandbox(uid).await.err().map(|error| error_chain(&error).to_string()));
        problems.extend(volumes.remove(uid).await.err().map(|error| error_chain(&error).to_string()));
        problems.extend(runtime.remove_pod(uid).await.err().map(|error| error_chain(&error).to_string()));
        // Only the UID of a pod without a record is known.
        problems.extend(remains::mark_logs_of(paths, uid).err().map(|error| error_chain(&error).to_string()));
        problems.extend(record::remove(paths, uid, write_ahead).err().map(|error| error_chain(&error).to_string()));
        if !problems.is_empty() {
            tracing::warn!(pod_uid = %uid, error = problems.join("; "), "cannot clean up an orphaned pod");
        }
        problems.is_empty()
    }
}

/// The pods that have a directory. One that cannot be listed has none to be cleaned up now.
fn pods_on_disk(paths: &Paths) -> BTreeSet<PodUid> {
    let entries = [paths.pods(), paths.pods_run()].into_iter().flat_map(|directory| paths_in(&directory).unwrap_or_default());
    let directories = entries.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()));
    directories.filter_map(|path| Some(PodUid::new(path.file_name()?.to_str()?))).collect()
}

fn remove_old_logs(paths: &Paths) {
    if let Err(error) = remains::remove_old_logs(paths, KEEP_LOGS) {
        tracing::warn!(error = %error_chain(&error), "cannot delete logs of removed pods");
    }
}
