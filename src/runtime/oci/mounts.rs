//! The mounts of a container: what every container has, then what its spec adds.

use super::dev::is_at_dev;
use super::{BuildExt, OciError, SandboxView};
use crate::runtime::{BoundDirectory, ContainerSpec, Mount, Propagation};
use crate::sys::cgroup::CgroupVersion;
use libcontainer::oci_spec::runtime::{Mount as OciMount, MountBuilder};
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

/// Where v1 hierarchies appear in a container. libcontainer ignores that the cgroup mount is to be read-only on v1, and root in a
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

/// How files of devices are bound is decided here, whatever their spec says.
const CHOSEN: [&str; 6] = ["bind", "rbind", "private", "rprivate", "slave", "rslave"];

const DEFAULT_SHM_SIZE: u64 = 64 << 20;

/// All mounts in the order of their making: the defaults but for those that the spec replaces, then the spec's, parents before children.
/// Without a volume at `/dev` itself (see [`super::dev`]).
pub(super) fn mounts(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Vec<OciMount>, OciError> {
    let mut own: Vec<&Mount> = spec.mounts.iter().filter(|mount| !is_at_dev(mount)).collect();
    let mut result = Vec::new();
    for mount in defaults(spec, sandbox)? {
        if !own.iter().any(|own| own.container_path == *mount.destination()) {
            result.push(mount);
        }
    }
    own.sort_by_key(|mount| mount.container_path.components().count());
    for mount in own {
        result.push(bind(mount)?);
    }
    for BoundDirectory { host_path, container_path, options } in &spec.devices.mounts {
        let mut words = vec!["rbind", "rprivate"];
        words.extend(options.iter().map(String::as_str).filter(|word| !CHOSEN.contains(word)));
        result.push(bound(container_path, host_path, &words)?);
    }
    Ok(result)
}

/// The propagation that the container's mount namespace as a whole must have, so that volumes can have theirs: libcontainer ignores
/// what single mounts ask for. The caller makes all mounts private beforehand but the volumes concerned.
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
        filesystem("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", access])?,
    ];
    let shm = match (&sandbox.dev_shm, sandbox.namespaces.host_ipc) {
        (Some(path), _) => bound("/dev/shm", path, &["rbind", "rprivate", "rw"])?,
        (None, true) => bound("/dev/shm", Path::new("/dev/shm"), &["rbind", "rprivate", "rw"])?,
        (None, false) => {
            let size = format!("size={}", spec.shm_size.unwrap_or(DEFAULT_SHM_SIZE));
            filesystem("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", &size])?
        }
    };
    mounts.push(shm);
    Ok(mounts)
}

fn bind(mount: &Mount) -> Result<OciMount, OciError> {
    let propagation = match mount.propagation {
        Propagation::Private => "rprivate",
        Propagation::HostToContainer => "rslave",
        Propagation::Bidirectional => "rshared",
    };
    let access = match (mount.read_only, mount.recursive_read_only) {
        (true, true) => "rro",
        (true, false) => "ro",
        (false, _) => "rw",
    };
    let destination = &mount.container_path;
    MountBuilder::default()
        .destination(destination)
        .typ("bind")
        .source(&mount.host_path)
        .options(
            ["rbind", propagation, access]
                .into_iter()
                .chain(mount.no_exec.then_some("noexec"))
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
        .build()
        .part("mount")
}

fn bound(destination: impl Into<PathBuf>, source: &Path, options: &[&str]) -> Result<OciMount, OciError> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    MountBuilder::default().destination(destination).typ("bind").source(source).options(options).build().part("mount")
}

fn filesystem(destination: &str, kind: &str, options: &[&str]) -> Result<OciMount, OciError> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    MountBuilder::default().destination(destination).typ(kind).source(kind).options(options).build().part("mount")
}
