//! Local ephemeral storage: the limits of a pod on the host's disk, and the check of its usage. The messages are the kubelet's.

use super::Pod;
use super::containers::{self, list, spec};
use super::quantity::Amount;
use super::resources::{limits, pod_limits};
use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource};
use std::collections::BTreeMap;

const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// A limit in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageLimit {
    /// The limit.
    pub bytes: u64,
    /// As messages show it.
    pub text: String,
}

/// All limits of a pod. Volumes in memory are none of them: the kernel limits these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageLimits {
    /// `emptyDir.sizeLimit` by volume.
    pub volumes: Vec<(String, StorageLimit)>,
    /// `limits.ephemeral-storage` by container: what it writes beside its volumes, and its logs.
    pub containers: Vec<(String, StorageLimit)>,
    /// The sum of these, as the scheduler adds containers up: all that the containers write, their logs, and all emptyDir volumes on disk.
    pub pod: Option<StorageLimit>,
}

/// Measured disk usage of a pod, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageUsage {
    /// By volume.
    pub volumes: BTreeMap<String, u64>,
    /// By container: writable layer and logs.
    pub containers: BTreeMap<String, u64>,
}

impl StorageLimits {
    /// The limits that the manifest sets. A limit of nothing is none, as in the kubelet.
    pub fn of(pod: &Pod) -> Self {
        let volumes = list(&spec(pod).volumes).iter().filter_map(|volume| {
            let source = volume.empty_dir.as_ref().filter(|source| is_on_disk(source))?;
            let written = source.size_limit.as_ref()?;
            Some((volume.name.clone(), limit(Amount::read(written).ok()?, Some(&written.0))?))
        });
        let all: Vec<&Container> = containers::all(pod).map(|(_, container)| container).collect();
        let of_container = |container: &&Container| {
            let written = container.resources.as_ref()?.limits.as_ref()?.get(EPHEMERAL_STORAGE)?;
            Some((container.name.clone(), limit(*limits(container).get(EPHEMERAL_STORAGE)?, Some(&written.0))?))
        };
        let containers: Vec<_> = all.iter().filter_map(of_container).collect();
        let sole = containers.first().filter(|_| containers.len() == 1).map(|(_, limit)| limit.text.as_str());
        let pod = pod_limits(pod).get(EPHEMERAL_STORAGE).and_then(|amount| limit(*amount, sole));
        Self { volumes: volumes.collect(), containers, pod }
    }

    /// Returns true if there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        let Self { volumes, containers, pod } = self;
        volumes.is_empty() && containers.is_empty() && pod.is_none()
    }

    /// Volumes that have to be measured.
    pub fn measured_volumes(&self, pod: &Pod) -> Vec<String> {
        let counts = |name: &str| self.pod.is_some() || self.volumes.iter().any(|(limited, _)| limited == name);
        let on_disk = list(&spec(pod).volumes).iter().filter(|volume| volume.empty_dir.as_ref().is_some_and(is_on_disk));
        on_disk.filter(|volume| counts(&volume.name)).map(|volume| volume.name.clone()).collect()
    }

    /// The kubelet's message for the first limit that is exceeded: of a volume, of the pod, of a container, in this order.
    pub fn exceeded_by(&self, usage: &StorageUsage) -> Option<String> {
        let is_over = |used: Option<&u64>, limit: &StorageLimit| used.is_some_and(|used| *used > limit.bytes);
        if let Some((name, limit)) = self.volumes.iter().find(|(name, limit)| is_over(usage.volumes.get(name), limit)) {
            return Some(format!("Usage of EmptyDir volume {name:?} exceeds the limit {:?}. ", limit.text));
        }
        let total = usage.volumes.values().chain(usage.containers.values()).fold(0_u64, |sum, used| sum.saturating_add(*used));
        if let Some(limit) = self.pod.as_ref().filter(|limit| total > limit.bytes) {
            return Some(format!("Pod ephemeral local storage usage exceeds the total limit of containers {}. ", limit.text));
        }
        let over = self.containers.iter().find(|(name, limit)| is_over(usage.containers.get(name), limit));
        over.map(|(name, limit)| format!("Container {name} exceeded its local ephemeral storage limit {:?}. ", limit.text))
    }
}

fn is_on_disk(source: &EmptyDirVolumeSource) -> bool {
    source.medium.as_deref().unwrap_or_default().is_empty()
}

fn limit(amount: Amount, written: Option<&str>) -> Option<StorageLimit> {
    let bytes = u64::try_from(amount.value()).ok().filter(|bytes| *bytes > 0)?;
    Some(StorageLimit { bytes, text: written.map_or_else(|| in_binary_units(bytes), str::to_owned) })
}

/// `1610612736` is `1536Mi`.
fn in_binary_units(bytes: u64) -> String {
    let units = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let exact = units.into_iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift && bytes > 0);
    exact.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "{spec: {
        initContainers: [{name: i, resources: {limits: {ephemeral-storage: 1Mi}}}],
        containers: [{name: a, resources: {limits: {ephemeral-storage: 1Gi}}}, {name: b, resources: {limits: {ephemeral-storage: 512Mi}}}],
        volumes: [{name: d, emptyDir: {sizeLimit: 10Mi}}, {name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}},
          {name: free, emptyDir: {}}, {name: h, hostPath: {path: /x}}]}}";

    fn usage(volumes: &[(&str, u64)], containers: &[(&str, u64)]) -> StorageUsage {
        let map = |list: &[(&str, u64)]| list.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        StorageUsage { volumes: map(volumes), containers: map(containers) }
    }

    #[test]
    fn limits_are_those_of_volumes_on_disk_of_containers_and_their_sum() {
        let pod = serde_yaml::from_str(POD).unwrap();
        let limits = StorageLimits::of(&pod);
        assert_eq!(limits.volumes.len(), 1);
        let text: Vec<&str> = limits.containers.iter().map(|(_, limit)| limit.text.as_str()).collect();
        assert_eq!(text, ["1Mi", "1Gi", "512Mi"]);
        assert_eq!(limits.pod, Some(StorageLimit { bytes: 3 << 29, text: "1536Mi".to_owned() }));
        assert_eq!(limits.measured_volumes(&pod), ["d", "free"]);
        let pod = serde_yaml::from_str("{spec: {containers: [{name: a}], volumes: [{name: d, emptyDir: {}}]}}").unwrap();
        assert!(StorageLimits::of(&pod).is_empty());
    }

    #[test]
    fn what_is_exceeded_is_told_in_the_words_of_the_kubelet() {
        let limits = StorageLimits::of(&serde_yaml::from_str(POD).unwrap());
        let told = |volumes: &[(&str, u64)], containers: &[(&str, u64)]| limits.exceeded_by(&usage(volumes, containers));
        assert_eq!(told(&[("d", 10 << 20)], &[("a", 1 << 30)]), None);
        let volume = "Usage of EmptyDir volume \"d\" exceeds the limit \"10Mi\". ";
        assert_eq!(told(&[("d", (10 << 20) + 1)], &[]).as_deref(), Some(volume));
        let pod = "Pod ephemeral local storage usage exceeds the total limit of containers 1536Mi. ";
        assert_eq!(told(&[("free", 1 << 30)], &[("a", 1 << 30)]).as_deref(), Some(pod));
        let container = "Container b exceeded its local ephemeral storage limit \"512Mi\". ";
        assert_eq!(told(&[], &[("a", 1 << 20), ("b", (512 << 20) + 1)]).as_deref(), Some(container));
    }
}
