//! Persistent volumes, as a pod's `persistentVolumeClaim` volumes refer to them. **Pure**.

use super::containers::{all, has_volume, list, spec};
use super::files::{ProjectionError, ProjectionProblem};
use super::objects::{Object, ObjectError, ObjectKind, ObjectName, SourceView, namespace_of};
use super::{Pod, SourceId};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Volume};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use crate::annotations::{BLOCK_DEVICE as BLOCK_DEVICE_ANNOTATION, RECLAIM_POLICY as RECLAIM_POLICY_ANNOTATION};

const DEFAULT_NAMESPACE: &str = "default";

/// Handling of the data when no source has the claim any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReclaimPolicy {
    /// It stays until it is deleted by hand.
    #[default]
    Retain,
    /// It is deleted as soon as no pod uses it.
    Delete,
}

impl ReclaimPolicy {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReclaimPolicy::Retain => "Retain",
            ReclaimPolicy::Delete => "Delete",
        }
    }
}

/// The request of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTerms {
    /// As written.
    pub access_modes: Vec<String>,
    /// `resources.requests.storage`, as written.
    pub capacity: String,
    /// Handling of the data.
    pub reclaim_policy: ReclaimPolicy,
    /// The block device behind it, with `volumeMode: Block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
}

impl ClaimTerms {
    /// Reads an accepted claim.
    pub fn of(claim: &PersistentVolumeClaim) -> Self {
        let spec = claim.spec.as_ref();
        let requests = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
        let policy = claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(RECLAIM_POLICY_ANNOTATION));
        Self {
            access_modes: spec.and_then(|spec| spec.access_modes.clone()).unwrap_or_default(),
            capacity: requests.and_then(|requests| requests.get("storage")).map(|size| size.0.clone()).unwrap_or_default(),
            reclaim_policy: match policy.map(String::as_str) {
                Some("Delete") => ReclaimPolicy::Delete,
                _ => ReclaimPolicy::Retain,
            },
            device: block_device(claim),
        }
    }

    /// Returns true if only one pod at a time may use it.
    pub fn is_exclusive(&self) -> bool {
        self.access_modes.iter().any(|mode| mode == "ReadWriteOncePod")
    }
}

/// The block device behind a claim.
pub fn block_device(claim: &PersistentVolumeClaim) -> Option<PathBuf> {
    let is_block = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block");
    let annotations = claim.metadata.annotations.as_ref().filter(|_| is_block)?;
    annotations.get(BLOCK_DEVICE_ANNOTATION).map(PathBuf::from)
}

/// Namespace and name of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClaimName {
    /// Of the claim and its pods.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Source that owns a persistent volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimOwner {
    /// The source.
    pub source: SourceId,
    /// It has `allow`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// Right of a source's claim to the data that exist under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// They are its own, or become its own.
    Owns,
    /// They are those of a restricted source, and make room.
    Displaces,
    /// They are another source's.
    None,
}

impl ClaimOwner {
    /// An owner that is not configured: no source has this name.
    pub fn unknown() -> Self {
        Self { source: SourceId::new("-"), restricted: false }
    }

    /// Right of a claim of this source to data recorded as those of `recorded`; data of a version that did not record it belong to the
    /// first source that has the claim.
    pub fn tenure(&self, recorded: Option<&Self>) -> Tenure {
        match recorded {
            None => Tenure::Owns,
            Some(recorded) if recorded.source == self.source => Tenure::Owns,
            Some(_) if self.restricted => Tenure::None,
            Some(recorded) if recorded.restricted => Tenure::Displaces,
            Some(_) => Tenure::Owns,
        }
    }
}

/// A volume of a pod that a claim stands behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedVolume {
    /// Name in `spec.volumes`.
    pub volume: String,
    /// The claim.
    pub claim: ClaimName,
    /// The request.
    pub terms: ClaimTerms,
    /// The source that has the claim, which need not be the pod's.
    pub owner: ClaimOwner,
    /// The claim whose data become this one's, where the source has come into a namespace of its own.
    pub moves_from: Option<ClaimName>,
}

/// The claim whose data become those of a claim in the namespace that is the source's own by default. Versions before the one that gave restricted
/// sources namespaces of their own had it in `default`.
pub fn moves_from(claim: &ClaimName, own_namespace: Option<&str>) -> Option<ClaimName> {
    (own_namespace == Some(claim.namespace.as_str()))
        .then(|| ClaimName { namespace: DEFAULT_NAMESPACE.to_owned(), name: claim.name.clone() })
}

/// The claim that a volume of the pod refers to.
pub fn claim_of(pod: &Pod, volume: &Volume) -> Option<ClaimName> {
    let source = volume.persistent_volume_claim.as_ref()?;
    Some(ClaimName { namespace: namespace_of(pod).to_owned(), name: source.claim_name.clone() })
}

/// Returns true if a container of the pod has such a volume.
pub fn has_claims(pod: &Pod) -> bool {
    let volumes = list(&spec(pod).volumes).iter();
    volumes.filter(|volume| volume.persistent_volume_claim.is_some()).any(|volume| has_volume(pod, &volume.name))
}

fn is_mounted(pod: &Pod, volume: &str) -> bool {
    all(pod).any(|(_, container)| list(&container.volume_mounts).iter().any(|mount| mount.name == volume))
}

fn is_device(pod: &Pod, volume: &str) -> bool {
    all(pod).any(|(_, container)| list(&container.volume_devices).iter().any(|device| device.name == volume))
}

/// Each volume of the pod's containers that a claim stands behind, or why it cannot be mounted.
pub fn claimed_volumes(pod: &Pod, objects: SourceView<'_>) -> Vec<Result<ClaimedVolume, ProjectionError>> {
    let volumes = list(&spec(pod).volumes).iter().filter(|volume| has_volume(pod, &volume.name));
    let named = volumes.filter_map(|volume| Some((volume, claim_of(pod, volume)?)));
    let claimed = |(volume, claim): (&Volume, ClaimName)| {
        let ClaimName { namespace, name } = claim.clone();
        let name = ObjectName { kind: ObjectKind::PersistentVolumeClaim, namespace: namespace.into(), name: name.into() };
        let missing = |error: ObjectError| ProjectionError { volume: volume.name.clone(), why: Box::new(error.into()) };
        let held = objects.find(&name).map_err(missing)?;
        let terms = match &held.object {
            Object::PersistentVolumeClaim(object) => ClaimTerms::of(object),
            // The view keeps kinds apart.
            Object::ConfigMap(_) | Object::Secret(_) | Object::Network(_) => ClaimTerms::default(),
        };
        let wrong = |problem| ProjectionError { volume: volume.name.clone(), why: Box::new(problem) };
        match (&terms.device, is_mounted(pod, &volume.name), is_device(pod, &volume.name)) {
            (Some(_), true, _) => return Err(wrong(ProjectionProblem::BlockMounted)),
            (None, _, true) => return Err(wrong(ProjectionProblem::NoBlock)),
            _ => {}
        }
        let owner = ClaimOwner { source: held.source.clone(), restricted: objects.is_of_restricted(held) };
        let moves_from = moves_from(&claim, objects.own_namespace(&held.source));
        Ok(ClaimedVolume { volume: volume.name.clone(), claim, terms, owner, moves_from })
    };
    named.map(claimed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{seen, view};

    #[test]
    fn data_are_taken_over_only_from_unrestricted_sources() {
        let owner = |name: &str| ClaimOwner { source: SourceId::new(name.trim_end_matches('!')), restricted: name.ends_with('!') };
        for (claimant, recorded, expected) in [
            ("a", "a", Tenure::Owns),
            ("a", "b", Tenure::Owns),
            ("a", "r!", Tenure::Displaces),
            ("a", "-", Tenure::Owns),
            ("r!", "r!", Tenure::Owns),
            // It was not restricted before, or is no longer.
            ("r!", "r", Tenure::Owns),
            ("r", "r!", Tenure::Owns),
            ("r!", "a", Tenure::None),
            ("r!", "s!", Tenure::None),
            ("r!", "-", Tenure::None),
        ] {
            assert_eq!(owner(claimant).tenure(Some(&owner(recorded))), expected, "{claimant} {recorded}");
        }
        assert_eq!(owner("r!").tenure(None), Tenure::Owns);
    }

    #[test]
    fn a_volume_has_the_terms_of_its_claim_or_waits_for_it() {
        let pod: Pod = serde_yaml::from_str(
            "{metadata: {namespace: shop}, spec: {containers: [{name: c, volumeMounts: [{name: e, mountPath: /e}, {name: d, mountPath: /d}]}],
              volumes: [{name: e, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: data}}, {name: unused, persistentVolumeClaim: {claimName: none}}]}}",
        )
        .unwrap();
        assert_eq!(claimed_volumes(&pod, seen(&view(&[("a", Some(""))]))).len(), 1, "no container has the other");
        let missing = claimed_volumes(&pod, seen(&view(&[("a", Some(""))]))).remove(0).unwrap_err().to_string();
        let expected = "MountVolume.SetUp failed for volume \"d\" : persistentvolumeclaim \"data\" not found in namespace \"shop\" (looked in source a)";
        assert_eq!(missing, expected);
        let claim = "{kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, annotations: {podstead.dev/reclaim-policy: Delete}},
            spec: {accessModes: [ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}}";
        let found = claimed_volumes(&pod, seen(&view(&[("a", Some(claim))]))).remove(0).unwrap();
        assert_eq!((found.volume.as_str(), found.terms.capacity.as_str()), ("d", "1Gi"));
        assert!(found.terms.is_exclusive() && found.terms.reclaim_policy == ReclaimPolicy::Delete);
    }
}
