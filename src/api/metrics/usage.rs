//! What pods and this host use now, read from the kernel. Nothing is read unless somebody asks.

use super::super::Backend;
use crate::pod::{ContainerId, PodUid};
use crate::sys::cgroup::{Cgroups, Usage};
use crate::sys::proc_stat::{HostUsage, host_usage};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// One container that runs.
#[derive(Clone, Debug)]
pub(super) struct ContainerUsage {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) image: String,
    pub(super) started_at: Option<Timestamp>,
    pub(super) usage: Usage,
    pub(super) oom_kills: u64,
}

/// One pod with a cgroup.
#[derive(Clone, Debug)]
pub(super) struct PodUsage {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) started_at: Option<Timestamp>,
    /// Of all its containers together.
    pub(super) usage: Usage,
    pub(super) containers: Vec<ContainerUsage>,
}

/// Everything at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) node: String,
    pub(super) host: HostUsage,
    pub(super) pods: Vec<PodUsage>,
}

/// Looks. Blocks for as long as the kernel takes for a few small files per container.
pub(super) fn look(backend: &Backend) -> std::io::Result<Snapshot> {
    let cgroups = Cgroups::detect(&backend.paths.cgroup_slice()).map_err(std::io::Error::other)?;
    let groups = cgroups.list().map_err(std::io::Error::other)?.into_iter();
    // Shims are not the pods' cost: they are in groups of their own.
    let groups: HashMap<PodUid, PathBuf> = groups.filter(|(uid, group)| *group != cgroups.shim(uid)).collect();
    let (_, pods) = backend.published.pods().list();
    let pods = pods.iter().filter_map(|pod| pod_usage(&cgroups, &groups, &pod.object())).collect();
    Ok(Snapshot { at: (backend.now)(), node: backend.node.to_string(), host: host_usage()?, pods })
}

fn pod_usage(cgroups: &Cgroups, groups: &HashMap<PodUid, PathBuf>, pod: &Pod) -> Option<PodUsage> {
    let status = pod.status.as_ref()?;
    let uid = pod.metadata.uid.clone()?;
    let group = groups.get(&PodUid::new(uid.clone()))?;
    let lists = [&status.init_container_statuses, &status.container_statuses];
    let statuses = lists.into_iter().flatten().flatten();
    let containers: Vec<_> = statuses.filter_map(|status| container_usage(cgroups, group, status)).collect();
    // A group that is gone since has used nothing: the pod has ended in between.
    let usage = cgroups.usage(group).ok()?;
    (!containers.is_empty()).then(|| PodUsage {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid,
        started_at: status.start_time.as_ref().map(|time| time.0),
        usage,
        containers,
    })
}

fn container_usage(cgroups: &Cgroups, pod: &Path, status: &ContainerStatus) -> Option<ContainerUsage> {
    let running = status.state.as_ref()?.running.as_ref()?;
    let written = status.container_id.clone()?;
    let id = written.split_once("://").map_or(written.as_str(), |(_, id)| id);
    let group = Cgroups::container(pod, &ContainerId::new(id));
    Some(ContainerUsage {
        name: status.name.clone(),
        image: status.image.clone(),
        started_at: running.started_at.as_ref().map(|time| time.0),
        usage: cgroups.usage(&group).ok()?,
        oom_kills: cgroups.oom_kills(&group).unwrap_or_default(),
        id: written,
    })
}
