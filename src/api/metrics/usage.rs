//! Resource usage of pods and of this host, read from the kernel at each request.

use super::super::Backend;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use podstead_container::cgroup::{Cgroups, Counters, Usage};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::net_dev::{InterfaceCounters, interfaces};
use podstead_sys::proc_stat::{HostUsage, host_usage};
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
    pub(super) counters: Counters,
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
    /// Of its network namespace; none for a pod on the host's network, whose traffic the host counts.
    pub(super) interfaces: Vec<InterfaceCounters>,
    pub(super) containers: Vec<ContainerUsage>,
}

/// Everything at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) node: String,
    pub(super) host: HostUsage,
    pub(super) interfaces: Vec<InterfaceCounters>,
    /// File system of the state directory; `None` if the kernel does not report it.
    pub(super) filesystem: Option<Filesystem>,
    pub(super) pods: Vec<PodUsage>,
}

/// The file system of the durable state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filesystem {
    pub(super) capacity_bytes: u64,
    pub(super) available_bytes: u64,
    pub(super) used_bytes: u64,
    pub(super) inodes: u64,
    pub(super) free_inodes: u64,
}

/// Looks. Blocks for as long as the kernel takes for a few small files per container.
pub(super) fn look(backend: &Backend) -> std::io::Result<Snapshot> {
    let cgroups = Cgroups::detect(&backend.paths.cgroup_slice()).map_err(std::io::Error::other)?;
    let groups = cgroups.list().map_err(std::io::Error::other)?.into_iter();
    // Shims are not the pods' cost: they are in groups of their own.
    let groups: HashMap<PodUid, PathBuf> = groups.filter(|(uid, group)| *group != cgroups.shim(uid)).collect();
    let (_, pods) = backend.published.pods().list();
    let pods = pods.iter().filter_map(|pod| pod_usage(&cgroups, &groups, &pod.object())).collect();
    Ok(Snapshot {
        at: (backend.now)(),
        node: backend.node.to_string(),
        host: host_usage()?,
        interfaces: interfaces(std::process::id()).unwrap_or_default(),
        filesystem: filesystem(&backend.paths.state),
        pods,
    })
}

fn filesystem(path: &Path) -> Option<Filesystem> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Filesystem {
        capacity_bytes: found.f_blocks * found.f_frsize,
        available_bytes: found.f_bavail * found.f_frsize,
        used_bytes: found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize,
        inodes: found.f_files,
        free_inodes: found.f_ffree,
    })
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
    let is_on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    // Any of its processes sees all of its interfaces.
    let process = if is_on_host { None } else { cgroups.processes(group).ok().and_then(|processes| processes.first().copied()) };
    (!containers.is_empty()).then(|| PodUsage {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid,
        started_at: status.start_time.as_ref().map(|time| time.0),
        usage,
        interfaces: process.and_then(|pid| interfaces(pid).ok()).unwrap_or_default(),
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
        counters: cgroups.counters(&group).unwrap_or_default(),
        oom_kills: cgroups.oom_kills(&group).unwrap_or_default(),
        id: written,
    })
}
