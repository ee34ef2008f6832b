//! Looking at persistent volumes, and deleting one on request.

use super::claims::{self, PersistentVolume};
use super::volumes::{Shared, Volumes};
use super::{VolumeError, usage};
use async_trait::async_trait;
use podstead_pod::claims::{ClaimName, ClaimOwner, Tenure};
use podstead_pod::objects::{ObjectKind, ObjectName, Objects};
use podstead_pod::{PodUid, SourceId};
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};

/// Reason why the data of a claim are not deleted.
#[derive(Debug, thiserror::Error)]
pub enum PruneClaimError {
    /// There is no such volume.
    #[error("claim {namespace}/{name} has no data on this host", namespace = .0.namespace, name = .0.name)]
    NotFound(ClaimName),
    /// A source has the claim.
    #[error(
        "claim {namespace}/{name} is declared by source {from}: remove it there; set {POLICY}: Delete on it first to delete its data as well",
        namespace = claim.namespace, name = claim.name, POLICY = podstead_pod::claims::RECLAIM_POLICY_ANNOTATION
    )]
    Wanted {
        /// The claim.
        claim: ClaimName,
        /// The source.
        from: String,
    },
    /// A source that was not heard yet may have the claim.
    #[error("a source may still declare claim {namespace}/{name}: waiting for the first sync of all sources", namespace = .0.namespace, name = .0.name)]
    NotSettled(ClaimName),
    /// Pods use it.
    #[error("claim {namespace}/{name} is used by {count} of this host's pods", namespace = claim.namespace, name = claim.name, count = users.len())]
    InUse {
        /// The claim.
        claim: ClaimName,
        /// The pods, also those that terminate.
        users: Vec<PodUid>,
    },
    /// The disk failed.
    #[error("delete the data of claim {namespace}/{name}", namespace = claim.namespace, name = claim.name)]
    Failed {
        /// The claim.
        claim: ClaimName,
        /// The reason.
        #[source]
        source: VolumeError,
    },
}

/// The persistent volumes as the API uses them.
#[async_trait]
pub trait ClaimStore: Send + Sync + fmt::Debug + 'static {
    /// All that are on disk.
    async fn claims(&self) -> Result<Vec<PersistentVolume>, VolumeError>;

    /// Bytes on disk of each of them; one that is too large to be counted is left out. May take long; one measurement at a time.
    async fn measure_claims(&self, claims: Vec<ClaimName>) -> BTreeMap<ClaimName, u64>;

    /// Deletes the data of a claim that no source has and no pod uses. Once begun it is finished, by the next daemon if need be.
    async fn prune_claim(&self, claim: &ClaimName, objects: &Objects) -> Result<(), PruneClaimError>;
}

#[async_trait]
impl ClaimStore for Volumes {
    async fn claims(&self) -> Result<Vec<PersistentVolume>, VolumeError> {
        self.blocking(list).await
    }

    async fn measure_claims(&self, claims: Vec<ClaimName>) -> BTreeMap<ClaimName, u64> {
        // Walks compete for the disk with the pods: one after the other. The semaphore is never closed.
        let _permit = self.shared.measuring.acquire().await;
        let shared = Arc::clone(&self.shared);
        let walk = move || {
            let sizes = claims.into_iter().filter_map(|claim| {
                let size = usage::whole(&shared.paths.persistent_data(&claim))?;
                Some((claim, size))
            });
            sizes.collect()
        };
        // A panic in there is one of walking: nothing was measured.
        tokio::task::spawn_blocking(walk).await.unwrap_or_default()
    }

    async fn prune_claim(&self, claim: &ClaimName, objects: &Objects) -> Result<(), PruneClaimError> {
        let object = ObjectName {
            kind: ObjectKind::PersistentVolumeClaim,
            namespace: (&claim.namespace).into(),
            name: (&claim.name).into(),
        };
        let restricted = |source: &SourceId| objects.sharing().is_restricted(source);
        let claims = objects.all().filter(|(name, _)| **name == object).map(|(_, held)| &held.source);
        let claimants: Vec<ClaimOwner> =
            claims.map(|source| ClaimOwner { source: source.clone(), restricted: restricted(source) }).collect();
        if claimants.is_empty() && !objects.is_complete() {
            return Err(PruneClaimError::NotSettled(claim.clone()));
        }
        let (wanted, is_complete) = (claim.clone(), objects.is_complete());
        let done = self.blocking(move |shared| Ok(prune(shared, &wanted, &claimants, is_complete))).await;
        done.unwrap_or_else(|source| Err(PruneClaimError::Failed { claim: claim.clone(), source }))
    }
}

impl Volumes {
    /// Deletes what an earlier daemon has begun to delete.
    pub async fn finish_deletions(&self) -> Result<(), VolumeError> {
        self.blocking(empty_trash).await
    }
}

fn list(shared: &Shared) -> Result<Vec<PersistentVolume>, VolumeError> {
    claims::list(&shared.paths).map_err(|source| VolumeError::ClaimsOnDisk { is_deletion: false, source })
}

/// Empties the trash; one caller at a time.
pub(super) fn empty_trash(shared: &Shared) -> Result<(), VolumeError> {
    let _emptying = shared.trash.lock().unwrap_or_else(PoisonError::into_inner);
    claims::empty_trash(&shared.paths).map_err(|source| VolumeError::ClaimsOnDisk { is_deletion: true, source })
}

fn prune(shared: &Shared, claim: &ClaimName, claimants: &[ClaimOwner], is_complete: bool) -> Result<(), PruneClaimError> {
    let failed = |source| PruneClaimError::Failed { claim: claim.clone(), source };
    let held = shared.claims.lock().unwrap_or_else(PoisonError::into_inner);
    // Only a name that is on disk: none leads out of the directory of volumes.
    let volumes = list(shared).map_err(failed)?;
    let volume = volumes.into_iter().find(|volume| volume.claim == *claim);
    let volume = volume.ok_or_else(|| PruneClaimError::NotFound(claim.clone()))?;
    let recorded = volume.record.as_ref().and_then(|record| record.owner.as_ref());
    // A source that may not have the data does not keep them from being deleted.
    if let Some(owner) = claimants.iter().find(|owner| owner.tenure(recorded) != Tenure::None) {
        return Err(PruneClaimError::Wanted { claim: claim.clone(), from: owner.source.to_string() });
    }
    if !is_complete {
        return Err(PruneClaimError::NotSettled(claim.clone()));
    }
    if !volume.users.is_empty() {
        return Err(PruneClaimError::InUse { claim: claim.clone(), users: volume.users });
    }
    tracing::info!(namespace = claim.namespace, claim = claim.name, "deleting the data of a claim on request");
    claims::discard(&shared.paths, claim).map_err(|source| failed(VolumeError::ClaimsOnDisk { is_deletion: false, source }))?;
    shared.deleted.notify_one();
    drop(held);
    // The claim has no data any more, even if this fails: housekeeping retries.
    if let Err(error) = empty_trash(shared) {
        tracing::warn!(error = %error_chain(&error), "cannot empty the trash of volumes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeFiles;
    use podstead_pod::testing::view;
    use podstead_sys::layout::Paths;
    use std::fs;

    fn name(claim: &str) -> ClaimName {
        ClaimName { namespace: "shop".into(), name: claim.into() }
    }

    #[tokio::test]
    async fn only_data_that_nobody_wants_and_nobody_uses_are_deleted_on_request() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let volumes = Volumes::new(paths.clone(), NodeFiles::default(), Arc::default(), 0);
        let data = paths.persistent_data(&name("data"));
        fs::create_dir_all(data.join("deep")).unwrap();
        fs::write(data.join("deep/file"), vec![1; 100_000]).unwrap();
        assert!(volumes.measure_claims(vec![name("data")]).await[&name("data")] >= 100_000);

        let claim = "{kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop},
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}";
        let wanted = view(&[("a", Some(claim))]);
        let refused = volumes.prune_claim(&name("data"), &wanted).await.unwrap_err();
        assert!(matches!(&refused, PruneClaimError::Wanted { from, .. } if from == "a"), "{refused}");
        let refused = volumes.prune_claim(&name("data"), &view(&[("a", None)])).await.unwrap_err();
        assert!(matches!(refused, PruneClaimError::NotSettled(_)));

        let nothing = view(&[("a", Some(""))]);
        let marks = paths.claim_marks(&PodUid::new("1"));
        fs::create_dir_all(&marks).unwrap();
        fs::write(marks.join("d.data"), serde_json::to_vec(&name("data")).unwrap()).unwrap();
        let refused = volumes.prune_claim(&name("data"), &nothing).await.unwrap_err();
        assert!(matches!(&refused, PruneClaimError::InUse { users, .. } if *users == [PodUid::new("1")]), "{refused}");
        assert!(data.join("deep/file").is_file());

        fs::remove_dir_all(&marks).unwrap();
        for outside in ["../..", "..", "nothing"] {
            let refused = volumes.prune_claim(&name(outside), &nothing).await.unwrap_err();
            assert!(matches!(refused, PruneClaimError::NotFound(_)), "{outside}");
        }
        volumes.prune_claim(&name("data"), &nothing).await.unwrap();
        assert!(volumes.claims().await.unwrap().is_empty());
        assert_eq!(fs::read_dir(paths.volume_trash()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn what_an_earlier_daemon_has_begun_to_delete_is_deleted() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        fs::create_dir_all(paths.volume_trash().join("1/data")).unwrap();
        Volumes::new(paths.clone(), NodeFiles::default(), Arc::default(), 0).finish_deletions().await.unwrap();
        assert_eq!(fs::read_dir(paths.volume_trash()).unwrap().count(), 0);
    }
}
