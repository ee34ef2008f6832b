//! Hashes that show which parts an edit of a manifest changes.
//!
//! * [`config_hash`]: the whole content; differs on every edit.
//! * [`sandbox_hash`]: what the pod's sandbox is made from; a different one means a new sandbox, and so new containers.
//! * [`container_hash`]: what one container is made from; a different one means that this container is restarted.
//!
//! What is in neither of the last two takes effect on a running container (probes, grace periods, restart policy) or has none.
//!
//! Hashes are kept on disk and must not change when podstead is upgraded, since that would restart every container. So they are taken over
//! a *projection*: named entries, left out where they are unset, written as JSON with sorted keys. A field that a later version learns
//! to honour adds an entry only to the pods that set it.

mod container;
mod projection;
mod sandbox;
#[cfg(test)]
mod table_test;

pub use container::{container_hash, earlier_container_hash};
pub use sandbox::sandbox_hash;

use super::Pod;
use super::identity::STAMPED_ANNOTATIONS;
use projection::digest;
use serde_json::{Value, json};

/// Hash of all that a pod's author wrote: labels, annotations, name and spec. Not of what podstead adds to it (UID, `config.*`
/// annotations, status).
pub fn config_hash(pod: &Pod) -> String {
    let mut annotations = pod.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| !STAMPED_ANNOTATIONS.contains(&key.as_str()));
    digest(
        "config",
        &json!({
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "labels": pod.metadata.labels.clone().unwrap_or_default(),
            "annotations": annotations,
            "spec": serde_json::to_value(&pod.spec).unwrap_or(Value::Null),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(metadata: &str, spec: &str) -> Pod {
        serde_yaml::from_str(&format!("{{metadata: {{name: web, {metadata}}}, spec: {{{spec}}}}}")).unwrap()
    }

    #[test]
    fn the_config_hash_follows_what_the_author_wrote() {
        let hash = |metadata, spec| config_hash(&pod(metadata, spec));
        let plain = hash("", "containers: [{name: a, image: x}]");
        assert_eq!(plain, hash("", "containers: [{image: x, name: a}]"), "order of keys");
        assert_ne!(plain, hash("", "containers: [{name: a, image: y}]"));
        assert_ne!(plain, hash("labels: {a: b}", "containers: [{name: a, image: x}]"));
        assert_ne!(plain, hash("annotations: {a: b}", "containers: [{name: a, image: x}]"));
        assert_ne!(plain, hash("", "containers: [{name: a, image: x}], terminationGracePeriodSeconds: 1"));
    }

    #[test]
    fn the_config_hash_does_not_follow_what_podstead_adds() {
        let hash = |metadata| config_hash(&pod(metadata, "containers: []"));
        let stamps =
            "uid: u, annotations: {kubernetes.io/config.hash: h, kubernetes.io/config.seen: s, kubernetes.io/config.source: f}";
        assert_eq!(hash(""), hash(stamps));
    }

    /// An upgrade of podstead must not look like an edit: these values may never change.
    #[test]
    fn hashes_are_the_same_in_every_version() {
        let pod = pod(
            "namespace: default, labels: {app: web}",
            "containers: [{name: a, image: 'x:1', env: [{name: A, value: a}], resources: {limits: {cpu: 500m}}}], hostNetwork: true",
        );
        let container = &pod.spec.as_ref().unwrap().containers[0];
        assert_eq!(config_hash(&pod), "ce53630a0e55ce2e40e12e2e612f1ce9");
        assert_eq!(sandbox_hash(&pod), "5e1050692460fb628e44769cd4440261");
        assert_eq!(earlier_container_hash(&pod, container).as_deref(), Some("b4a1409dbf3e1584e6f4e8e00c0689e2"));
        assert_eq!(container_hash(&pod, container), "e83e957ef25957ee7f5badf7fe557d69");
        let mut unlimited = container.clone();
        unlimited.resources = None;
        assert_eq!(container_hash(&pod, &unlimited), container_hash(&pod, container));
        assert_eq!(earlier_container_hash(&pod, &unlimited), None);
    }
}
