//! What goes in and out of a [`Runtime`](super::Runtime).

pub use crate::pod::containers::ContainerKind;
pub use crate::pod::resources::{CgroupResources, ContainerResources, DeclaredAmounts, QosClass};
pub use crate::pod::security::{PodNamespaces, SeccompProfile, Security};

pub use crate::image::ProcessUser;
use crate::image::ResolvedImage;
use crate::pod::{ContainerId, ContainerName, PodFullName, PodUid};
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// What a sandbox shall be. Two sandboxes whose specs differ in more than `attempt` and `resources` are different sandboxes.
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

/// How a sandbox is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SandboxState {
    /// The shim lives and answers.
    Ready,
    /// The shim is gone without having been asked: it was killed, or the host rebooted. Its containers are dead.
    Lost,
    /// Stopped on request.
    Stopped,
}

/// A sandbox as observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// What it was asked to be.
    pub spec: SandboxSpec,
    /// How it is.
    pub state: SandboxState,
    /// When it was made.
    pub created_at: Timestamp,
    /// The shim's process id while it lives.
    pub shim_pid: Option<u32>,
    /// Path of the pinned network namespace; `None` with the host's network.
    pub netns: Option<PathBuf>,
}

/// A pod as observed.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPod {
    /// The pod.
    pub uid: PodUid,
    /// Its newest sandbox, if a record of one is left.
    pub sandbox: Option<SandboxStatus>,
    /// All containers with a record, oldest first.
    pub containers: Vec<ContainerStatus>,
    /// What living containers were given last, where that is known.
    pub given: BTreeMap<ContainerId, ContainerResources>,
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
    /// How mounts below travel.
    pub propagation: Propagation,
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
    /// How often the container was started before in this pod: the restart count, and the number of its log file (rule D11).
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
    /// What it may do.
    pub security: Security,
    /// Limits.
    pub resources: CgroupResources,
    /// Devices of the host, and what comes with them.
    #[serde(default)]
    pub devices: GivenDevices,
    /// What they were made from, as written.
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
    /// What its shim needs to stop it when the host shuts down and no daemon is there.
    #[serde(default)]
    pub shutdown: ShutdownTurn,
}

/// How a container is stopped by its shim alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShutdownTurn {
    /// Its place in the order of starts: sidecars are stopped from the last one on.
    pub position: u32,
    /// The part of its `preStop` hook that needs no daemon.
    pub hook: Option<ShutdownHook>,
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
    /// Files and directories that belong to them.
    pub mounts: Vec<BoundDirectory>,
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
    /// What the cgroup lets its processes do: of `r`, `w` and `m` (make nodes).
    pub permissions: String,
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

impl std::fmt::Debug for ContainerSpec {
    /// Which container it is, not what its process sees.
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

/// Where a container is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ContainerState {
    /// Being created; a crash in between leaves it so.
    Created,
    /// Its first process runs.
    Running {
        /// Process id on the host.
        pid: u32,
        /// When it was executed.
        started_at: Timestamp,
    },
    /// Its first process ended, or it could not be started.
    Exited {
        /// When it was executed; `None` when it never was.
        started_at: Option<Timestamp>,
        /// When it ended.
        finished_at: Timestamp,
        /// Exit code; 128 + signal for a signal.
        exit_code: i32,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The kernel killed a process of it for want of memory.
        oom_killed: bool,
        /// Why it could not be started, or `None`.
        error: Option<String>,
        /// The termination message (at most 4096 bytes).
        message: Option<String>,
    },
    /// It was running when its sandbox was lost: how it ended is not known.
    Unknown {
        /// When it was executed.
        started_at: Option<Timestamp>,
        /// When the loss was found.
        found_at: Timestamp,
    },
}

/// A container as observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// Identity of this run.
    pub id: ContainerId,
    /// Name in the pod's spec.
    pub name: ContainerName,
    /// Role.
    pub kind: ContainerKind,
    /// Restart count at its start.
    pub attempt: u32,
    /// Attempt of the sandbox that it was started in.
    pub sandbox_attempt: u32,
    /// Hash of its definition.
    pub hash: String,
    /// Image reference as written.
    pub image_ref: String,
    /// Digest of the image's manifest, `sha256:...`.
    pub image_id: String,
    /// Whom its first process runs as; unknown of one that an older shim started.
    #[serde(default)]
    pub user: Option<ProcessUser>,
    /// Signal number that asks it to stop.
    pub stop_signal: i32,
    /// When its record was made.
    pub created_at: Timestamp,
    /// The log file.
    pub log_path: PathBuf,
    /// Where it is in its life.
    pub state: ContainerState,
}

/// Something happened to a pod; the receiver looks again with [`Runtime::observe`](super::Runtime::observe).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLifecycleEvent {
    /// The pod.
    pub uid: PodUid,
    /// What happened.
    pub kind: PodLifecycleEventKind,
}

/// What happened to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodLifecycleEventKind {
    /// A container's process was executed.
    ContainerStarted(ContainerId),
    /// A container's process ended.
    ContainerDied(ContainerId),
    /// The shim went away without having been asked.
    SandboxLost,
}

/// A process to run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// Program and arguments.
    pub args: Vec<String>,
    /// Allocate a terminal of this size (columns, rows).
    pub tty: Option<(u16, u16)>,
    /// Keep stdin open.
    pub stdin: bool,
}

/// The near end of a running exec or attach. Dropping it kills an exec and leaves an attached container alone.
#[derive(Debug)]
pub struct ExecSession {
    /// To the process; capacity gives back-pressure.
    pub input: mpsc::Sender<ExecInput>,
    /// From the process; ends after [`ExecOutput::Exited`] or when the container is gone.
    pub output: mpsc::Receiver<ExecOutput>,
}

/// To a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecInput {
    /// Bytes for stdin.
    Stdin(Bytes),
    /// No more stdin.
    CloseStdin,
    /// The terminal's new size (columns, rows).
    Resize(u16, u16),
}

/// From a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecOutput {
    /// Bytes of stdout (or of the terminal).
    Stdout(Bytes),
    /// Bytes of stderr.
    Stderr(Bytes),
    /// It ended with this code (128 + signal).
    Exited(i32),
}

/// Why the runtime could not do something.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No sandbox or container of that name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The shim does not answer, or went away in between.
    #[error("the shim of pod {uid} is gone: {reason}")]
    ShimGone {
        /// The pod.
        uid: PodUid,
        /// What was seen.
        reason: String,
    },
    /// The shim or the kernel refused.
    #[error("{operation}: {reason}")]
    Failed {
        /// What was tried, with its subject.
        operation: String,
        /// Why it failed.
        reason: String,
    },
}

/// Why a container could not be started; each becomes a waiting reason (kubelet rule D8).
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `CreateContainerError`: before the program was executed.
    #[error("create container: {0}")]
    Create(String),
    /// `RunContainerError` (exit code 128): the program could not be executed, e.g. not found or no permission.
    #[error("{0}")]
    Execute(String),
    /// The sandbox is not there.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}
