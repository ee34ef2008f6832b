//! Environment of a container, as far as its spec depends on it.

use super::super::PodNamespaces;
use super::places::Bind;
use super::seccomp::ProfileFile;
use crate::kernel::{HostDevice, KernelFacts};
use std::path::PathBuf;

/// Environment of a container, as far as its spec depends on it.
///
/// One type because it is the whole input of [`oci_spec`](super::oci_spec) beside the container: the same view gives the same spec.
#[derive(Clone, Debug)]
pub struct SandboxView {
    /// Namespaces of the host that the pod uses.
    pub namespaces: PodNamespaces,
    /// Pin of the network namespace; must be there unless the pod uses the host's.
    pub net: Option<PathBuf>,
    /// Pin of the IPC namespace; must be there unless the pod uses the host's.
    pub ipc: Option<PathBuf>,
    /// Pin of the UTS namespace; must be there unless the pod uses the host's network.
    pub uts: Option<PathBuf>,
    /// Pin of the user namespace of a pod with users of its own.
    pub user: Option<PathBuf>,
    /// PID namespace of the pod; must be there exactly with `shareProcessNamespace`.
    pub pid: Option<PathBuf>,
    /// The pod's cgroup, absolute below the hierarchy's root; the container's is made below it, by its id.
    pub cgroup: PathBuf,
    /// Mount points of the v1 hierarchies that the container is in; empty on v2.
    pub cgroup_mounts: Vec<PathBuf>,
    /// Directory to bind on `/dev/shm`: the pod's (one tmpfs per pod) or the host's; with `None` the container gets a tmpfs of its own.
    pub dev_shm: Option<PathBuf>,
    /// Volumes and files of devices that libcontainer mounts; all others are in their places before.
    pub binds: Vec<Bind>,
    /// The root directory, absolute or relative to the bundle.
    pub rootfs: PathBuf,
    /// The kernel.
    pub facts: KernelFacts,
    /// Sizes of huge pages that the container's cgroup can be limited in, as the kernel spells them.
    pub huge_page_sizes: Vec<String>,
    /// All device nodes of the host; used by privileged containers only.
    pub host_devices: Vec<HostDevice>,
    /// The parsed profile ([`parse_profile`](super::parse_profile)) when the container's is `Localhost`.
    pub localhost_seccomp: Option<ProfileFile>,
}
