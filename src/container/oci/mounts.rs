//! The mounts of a container: what every container has, then what its spec adds.

use super::places::Bind;
use super::{BuildExt, OciError, SandboxView};
use crate::cgroup::{CgroupVersion, below};
use crate::{ContainerSpec, Propagation};
use oci_spec::runtime::{Mount as OciMount, MountBuilder};
use std::path::{Path, PathBuf};

/// Hidden from containers: they tell about the host, or reach into it.
const MASKED_PATHS: [&str; 12] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

/// Visible, but not to be changed.
const READONLY_PATHS: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Mount points of v1 hierarchies in a container. libcontainer ignores that the cgroup mount is to be read-only on v1, and root in a
/// container could raise its own limits up to the pod's. What is not there is skipped.
const V1_HIERARCHIES: [&str; 17] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/blkio",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/cpuacct",
    "/sys/fs/cgroup/cpuset",
    "/sys/fs/cgroup/devices",
    "/sys/fs/cgroup/freezer",
    "/sys/fs/cgroup/hugetlb",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/misc",
    "/sys/fs/cgroup/net_cls,net_prio",
    "/sys/fs/cgroup/net_prio,net_cls",
    "/sys/fs/cgroup/perf_event",
    "/sys/fs/cgroup/pids",
    "/sys/fs/cgroup/rdma",
    "/sys/fs/cgroup/systemd",
];

const DEFAULT_SHM_SIZE: u64 = 64 << 20;

/// All mounts that libcontainer makes, in this order: the defaults but for those that are replaced, then the others, parents before children.
pub(super) fn mounts(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Vec<OciMount>, OciError> {
    let mut own: Vec<&Bind> = sandbox.binds.iter().collect();
    let mut result = defaults(spec, sandbox)?;
    result.retain(|mount| !own.iter().any(|own| own.place == *mount.destination()));
    own.sort_by_key(|bind| bind.place.components().count());
    for Bind { source, place } in own {
        result.push(bound(place, source, &["rbind"])?);
    }
    Ok(result)
}

/// The propagation that the container's mount namespace as a whole must have, so that volumes can have theirs. The caller makes all mounts private
/// beforehand but the volumes concerned.
pub(super) fn rootfs_propagation(spec: &ContainerSpec) -> &'static str {
    let any = |wanted: Propagation| spec.mounts.iter().any(|mount| mount.propagation == wanted);
    if any(Propagation::Bidirectional) {
        "shared"
    } else if any(Propagation::HostToContainer) {
        "slave"
    } else {
        "private"
    }
}

/// Paths that the container cannot see into.
pub(super) fn masked_paths(spec: &ContainerSpec) -> Option<Vec<String>> {
    let masked = !spec.security.privileged && !spec.security.unmasked_proc;
    masked.then(|| MASKED_PATHS.map(str::to_owned).to_vec())
}

/// Paths that the container cannot change.
pub(super) fn readonly_paths(spec: &ContainerSpec, sandbox: &SandboxView) -> Option<Vec<String>> {
    if spec.security.privileged {
        return None;
    }
    let proc = READONLY_PATHS.iter().filter(|_| !spec.security.unmasked_proc);
    let cgroup = V1_HIERARCHIES.iter().filter(|_| sandbox.facts.cgroup == CgroupVersion::V1);
    let paths: Vec<String> = proc.chain(cgroup).map(|path| (*path).to_owned()).collect();
    (!paths.is_empty()).then_some(paths)
}

fn defaults(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Vec<OciMount>, OciError> {
    let access = if spec.security.privileged { "rw" } else { "ro" };
    let mut mounts = vec![
        filesystem("/proc", "proc", &["nosuid", "noexec", "nodev"])?,
        filesystem("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"])?,
        filesystem("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"])?,
        filesystem("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"])?,
        filesystem("/sys", "sysfs", &["nosuid", "noexec", "nodev", access])?,
    ];
    mounts.extend(cgroup_mounts(spec, sandbox, access)?);
    let shm = match &sandbox.dev_shm {
        Some(path) => bound("/dev/shm", path, &["rbind"])?,
        None => {
            let size = format!("size={}", spec.shm_size.unwrap_or(DEFAULT_SHM_SIZE));
            filesystem("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", &size])?
        }
    };
    mounts.push(shm);
    Ok(mounts)
}

/// Mounts at `/sys/fs/cgroup`. libcontainer finds the groups of v1 by the process id that the container has in its own namespace, at the host's
/// `/proc`: in a shared namespace, where that is not 1, there is no such process or another one. There the groups are bound by their names.
fn cgroup_mounts(spec: &ContainerSpec, sandbox: &SandboxView, access: &str) -> Result<Vec<OciMount>, OciError> {
    let is_shared = sandbox.namespaces.share_process && !sandbox.namespaces.host_pid;
    if !is_shared || sandbox.facts.cgroup == CgroupVersion::V2 {
        return Ok(vec![filesystem("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", access])?]);
    }
    let mut mounts = vec![filesystem("/sys/fs/cgroup", "tmpfs", &["nosuid", "noexec", "nodev", "mode=755", "size=64k"])?];
    let group = sandbox.cgroup.join(spec.id.as_str());
    for mount in &sandbox.cgroup_mounts {
        let Some(name) = mount.file_name().and_then(|name| name.to_str()) else { continue };
        let source = below(mount, &group);
        // Controllers that share a hierarchy have a name each, too.
        let single = name.split(',').filter(|part| *part != name);
        for place in std::iter::once(name).chain(single) {
            let options = ["bind", "nosuid", "noexec", "nodev", "relatime", access];
            mounts.push(bound(Path::new("/sys/fs/cgroup").join(place), &source, &options)?);
        }
    }
    Ok(mounts)
}

fn bound(destination: impl Into<PathBuf>, source: &Path, options: &[&str]) -> Result<OciMount, OciError> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    MountBuilder::default().destination(destination).typ("bind").source(source).options(options).build().part("mount")
}

fn filesystem(destination: &str, kind: &str, options: &[&str]) -> Result<OciMount, OciError> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    MountBuilder::default().destination(destination).typ(kind).source(kind).options(options).build().part("mount")
}
