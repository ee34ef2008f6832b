//! Specs of sandboxes and containers: input of a `Runtime`, and of the shim.

use crate::ProcessUser;
use crate::ResolvedImage;
pub use podstead_pod::containers::ContainerKind;
pub use podstead_pod::resources::{CgroupResources, ContainerResources, DeclaredAmounts, QosClass};
pub use podstead_pod::security::{PodNamespaces, SeccompProfile, Security};

use podstead_pod::{ContainerId, ContainerName, PodFullName, PodUid};
use podstead_sys::device_node::Node;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Spec of a sandbox. Two sandboxes whose specs differ in more than `attempt` and `resources` are different sandboxes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The pod.
    pub uid: PodUid,
    /// Its name, for process titles, log directories and messages.
    pub full_name: PodFullName,
    /// 0 for the first sandbox of this UID, one more each time it is made again.
    pub attempt: u32,
    /// Host name in the UTS namespace; not used with the host's.
    pub hostname: String,
    /// Namespaces.
    pub namespaces: PodNamespaces,
    /// Parent of the pod's cgroup.
    pub qos: QosClass,
    /// Limits of the pod's cgroup.
    pub resources: CgroupResources,
    /// Sysctls of the pod's namespaces.
    pub sysctls: Vec<(String, String)>,
    /// The pod has users of its own: a user namespace (`hostUsers: false`).
    #[serde(default)]
    pub own_users: bool,
    /// The host's id of their root; given by the runtime when the sandbox is made.
    #[serde(default)]
    pub first_host_id: Option<u32>,
}

impl SandboxSpec {
    /// The host's id of a user or group of the pod.
    pub fn host_id(&self, id: u32) -> u32 {
        self.first_host_id.map_or(id, |first| first.saturating_add(id))
    }
}

/// A bind mount into a container. The source exists and is a file or a directory as it shall appear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Path on the host (or, for a path below a volume, already resolved without leaving the volume).
    pub host_path: PathBuf,
    /// Absolute path in the container.
    pub container_path: PathBuf,
    /// Mount read-only.
    pub read_only: bool,
    /// With `read_only`: submounts too.
    pub recursive_read_only: bool,
    /// Nothing in it can be executed.
    #[serde(default)]
    pub no_exec: bool,
    /// Propagation of later mounts below.
    pub propagation: Propagation,
    /// Identity that the path must lead to; `None` for a path that only the host's operator can change.
    #[serde(default)]
    pub pinned: Option<PinnedSource>,
}

/// The source of a mount that others may rename or replace: it is mounted only as it was when it was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedSource {
    /// The source is at or below this path of the host, and links may not lead elsewhere.
    pub beneath: PathBuf,
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// `volumeMounts[].mountPropagation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Propagation {
    /// `None`: private.
    #[default]
    Private,
    /// `HostToContainer`: slave.
    HostToContainer,
    /// `Bidirectional`: shared; privileged containers only.
    Bidirectional,
}

/// One container, everything resolved: the runtime decides nothing about it. Arguments and environment may hold secrets: the spec is
/// written below the run directory only.
///
/// One type because it is plain data of one request in the protocol of the shim, and mirrors a container of a Pod.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The pod.
    pub pod: PodUid,
    /// The pod's name, for messages.
    pub full_name: PodFullName,
    /// Identity of this run.
    pub id: ContainerId,
    /// Name in the pod's spec.
    pub name: ContainerName,
    /// Role.
    pub kind: ContainerKind,
    /// Number of earlier starts of the container in this pod: the restart count, and the number of its log file (rule D11).
    pub attempt: u32,
    /// Attempt of the sandbox that it runs in: init containers run once per sandbox (kubelet rule D6).
    pub sandbox_attempt: u32,
    /// Hash of everything that the process can see; a different hash means restart.
    pub hash: String,
    /// The image reference as written, for status.
    pub image_ref: String,
    /// The image as it is on disk.
    pub image: ResolvedImage,
    /// Arguments, first the program; never empty.
    pub args: Vec<String>,
    /// Environment as `NAME=value`; has PATH.
    pub env: Vec<String>,
    /// Working directory; made if missing.
    pub cwd: PathBuf,
    /// User.
    pub user: ProcessUser,
    /// Bind mounts in the order of their making, host files (`/etc/hosts` ...) and the termination log included.
    pub mounts: Vec<Mount>,
    /// Bytes of `/dev/shm`; `None` for 64 MiB.
    pub shm_size: Option<u64>,
    /// Its privileges.
    pub security: Security,
    /// Limits.
    pub resources: CgroupResources,
    /// Devices of the host, and what comes with them.
    #[serde(default)]
    pub devices: GivenDevices,
    /// The resources in the manifest, as written.
    #[serde(default)]
    pub declared: DeclaredAmounts,
    /// `oom_score_adj` (kubelet rule D25).
    pub oom_score_adj: i32,
    /// Absolute path of the CRI log file.
    pub log_path: PathBuf,
    /// Host file behind `terminationMessagePath`, read after the exit.
    pub termination_log: Option<PathBuf>,
    /// `terminationMessagePolicy: FallbackToLogsOnError`: after a failure with an empty message, the end of the log is the message
    /// (kubelet rule D19).
    #[serde(default)]
    pub fallback_to_logs: bool,
    /// Allocate a terminal.
    pub tty: bool,
    /// Keep stdin open for attach.
    pub stdin: bool,
    /// Close stdin after the first attach ended.
    pub stdin_once: bool,
    /// Signal number that asks it to stop.
    pub stop_signal: i32,
    /// Seconds between that signal and SIGKILL, as known at start; used when the daemon knows no better.
    pub grace_secs: u64,
    /// It runs again after every exit. Its record need not survive a power cut then: the pod starts anew after one, whatever became of the run.
    #[serde(default)]
    pub always_restarts: bool,
    /// Settings for its shim to stop it when the host shuts down and no daemon is there.
    #[serde(default)]
    pub shutdown: ShutdownTurn,
}

impl std::fmt::Debug for ContainerSpec {
    /// Prints the identity of the container, without what its process sees.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerSpec")
            .field("pod", &self.full_name)
            .field("id", &self.id)
            .field("name", &self.name)
            .field("attempt", &self.attempt)
            .field("hash", &self.hash)
            .field("image", &self.image_ref)
            .finish_non_exhaustive()
    }
}

/// Settings for a stop of the container by its shim alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShutdownTurn {
    /// Its place in the order of starts: sidecars are stopped from the last one on.
    pub position: u32,
    /// The part of its `preStop` hook that needs no daemon.
    pub hook: Option<ShutdownHook>,
    /// Instead of it, what is asked of the container. A field of its own: a shim that does not know it passes it over.
    pub request: Option<ShutdownRequest>,
}

/// A `preStop` hook by `httpGet`, with what is needed to ask without a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownRequest {
    /// A name or an address: that of the pod unless the hook names another host.
    pub host: String,
    /// Asked from the pod's own network, which may be all that is left of it by then.
    pub in_pod: bool,
    /// TCP port.
    pub port: u16,
    /// Path with its query.
    pub path: String,
    /// Headers in the order of the spec; `Host` may be one of them.
    pub headers: Vec<(String, String)>,
}

/// A `preStop` hook that a shim can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShutdownHook {
    /// `exec`: program and arguments.
    Exec(Vec<String>),
    /// `sleep`: seconds.
    Sleep(u64),
}

/// Devices of the host that a container gets without being privileged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GivenDevices {
    /// Device nodes.
    pub nodes: Vec<GivenDevice>,
    /// Device nodes that may go and come back while the container runs, as they are at its start. `None` of a container that has no such.
    pub plugged: Option<Vec<GivenDevice>>,
    /// Files and directories that belong to them.
    pub mounts: Vec<BoundDirectory>,
    /// Programs of the host that are run while the container is made, in this order at each of their times.
    pub hooks: Vec<GivenHook>,
}

/// A program that is run while a container is made. It gets the container's state on stdin, as the OCI runtime specification says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenHook {
    /// The time at which it runs.
    pub time: HookTime,
    /// The program.
    pub path: PathBuf,
    /// Its arguments, its own name first.
    pub args: Vec<String>,
    /// All of its environment.
    pub env: Vec<String>,
    /// Seconds after which it is killed and the start has failed.
    pub timeout_secs: u32,
}

/// The times at which hooks run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookTime {
    /// In the host's namespaces, before the container's root is entered.
    Prestart,
    /// The same, after those.
    CreateRuntime,
    /// In the container's namespaces, before its root is entered.
    CreateContainer,
    /// In the container, before its program is executed.
    StartContainer,
}

/// A device node of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenDevice {
    /// In the container.
    pub path: PathBuf,
    /// A block device; else a character device.
    pub block: bool,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Operations that the cgroup allows: of `r`, `w` and `m` (make nodes).
    pub permissions: String,
}

impl GivenDevice {
    /// The node, with owner and group as the host counts. `first_host_id` is the root of a pod with users of its own.
    pub fn node(&self, first_host_id: Option<u32>) -> Node {
        let Self { path: _, block, major, minor, mode, uid, gid, permissions: _ } = *self;
        let of_host = |id: u32| first_host_id.map_or(id, |first| first.saturating_add(id));
        Node { block, major, minor, mode, uid: of_host(uid), gid: of_host(gid) }
    }

    /// Returns true if both have the same number, whatever they are called.
    pub fn has_number_of(&self, other: &Self) -> bool {
        (self.block, self.major, self.minor) == (other.block, other.major, other.minor)
    }
}

/// A path of the host, bound as words of mount(8) say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundDirectory {
    /// On the host.
    pub host_path: PathBuf,
    /// In the container.
    pub container_path: PathBuf,
    /// Such as `ro` or `nosuid`.
    pub options: Vec<String>,
}
