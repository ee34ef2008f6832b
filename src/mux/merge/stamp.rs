//! From a claim to a desired pod: UID and the `kubernetes.io/config.*` annotations (kubelet rules A19, B3).

use super::target::Claim;
use jiff::Timestamp;
use podstead_pod::hash::config_hash;
use podstead_pod::identity::{ANNOTATION_CONFIG_HASH, ANNOTATION_CONFIG_SEEN, ANNOTATION_CONFIG_SOURCE};
use podstead_pod::{DesiredPod, Pod, PodFullName, PodUid};
use std::sync::Arc;

/// The first incarnation under a UID, first seen `now`.
pub(super) fn desired(full_name: &PodFullName, uid: PodUid, claim: &Claim, now: Timestamp) -> Arc<DesiredPod> {
    stamped(full_name.clone(), uid, claim, format!("{now:.9}"))
}

/// The next version of the pod of `previous`: same UID, same time of first sight.
pub(super) fn successor(previous: &DesiredPod, claim: &Claim, now: Timestamp) -> Arc<DesiredPod> {
    let seen = annotation(&previous.pod, ANNOTATION_CONFIG_SEEN).map_or_else(|| format!("{now:.9}"), str::to_owned);
    stamped(previous.full_name.clone(), previous.uid.clone(), claim, seen)
}

fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(name)).map(String::as_str)
}

fn stamped(full_name: PodFullName, uid: PodUid, claim: &Claim, seen: String) -> Arc<DesiredPod> {
    let mut pod = Pod::clone(&claim.pod);
    let hash = config_hash(&pod);
    pod.metadata.uid = Some(uid.as_str().to_owned());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION_CONFIG_HASH.to_owned(), hash);
    annotations.insert(ANNOTATION_CONFIG_SOURCE.to_owned(), claim.source.as_str().to_owned());
    annotations.insert(ANNOTATION_CONFIG_SEEN.to_owned(), seen);
    Arc::new(DesiredPod {
        uid,
        full_name,
        source: claim.source.clone(),
        revision: claim.revision.clone(),
        origin: claim.origin.clone(),
        pod: Arc::new(pod),
    })
}
