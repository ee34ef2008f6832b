//! The kubelet's words for why something is as it is.

/// Waiting: before a container's first start, in a pod without init containers.
pub const CONTAINER_CREATING: &str = "ContainerCreating";
/// Waiting: before a container's first start, in a pod with init containers; also of these.
pub const POD_INITIALIZING: &str = "PodInitializing";
/// Waiting: the image could not be fetched just now.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// Waiting: the image could not be fetched repeatedly; pausing.
pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// Waiting: the image is absent and must not be fetched.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// Waiting: the image reference is malformed.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// Waiting: the image store cannot be read.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// Waiting: the container's definition cannot be made into a process (user, environment, mounts).
pub const CREATE_CONTAINER_CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Waiting: the container could not be made.
pub const CREATE_CONTAINER_ERROR: &str = "CreateContainerError";
/// Waiting: its process could not be made, or its program not be executed.
pub const RUN_CONTAINER_ERROR: &str = "RunContainerError";
/// Waiting: a port of the host that the pod wants has an owner (podstead's word; the kubelet rejects the pod).
pub const HOST_PORT_CONFLICT: &str = "HostPortConflict";
/// Waiting: its postStart hook failed, so that it was stopped.
pub const POST_START_HOOK_ERROR: &str = "PostStartHookError";
/// Waiting: it ended repeatedly; pausing.
pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";

/// Waiting: all containers of the pod are restarted together; terminated: it was killed for that.
pub const RESTARTING_ALL_CONTAINERS: &str = "RestartingAllContainers";

/// Terminated with exit code 0.
pub const COMPLETED: &str = "Completed";
/// Terminated with another exit code.
pub const ERROR: &str = "Error";
/// Terminated for want of memory.
pub const OOM_KILLED: &str = "OOMKilled";
/// Terminated before its program was executed.
pub const START_ERROR: &str = "StartError";
/// Terminated in a way that nobody saw.
pub const CONTAINER_STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// Pod: `activeDeadlineSeconds` are over.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// Pod: it used more of the host's disk than it may.
pub const EVICTED: &str = "Evicted";
/// Condition: containers are not ready.
pub const CONTAINERS_NOT_READY: &str = "ContainersNotReady";
/// Condition: init containers are not done.
pub const CONTAINERS_NOT_INITIALIZED: &str = "ContainersNotInitialized";
/// Condition: the pod succeeded.
pub const POD_COMPLETED: &str = "PodCompleted";
/// Condition: the pod failed.
pub const POD_FAILED: &str = "PodFailed";
/// Condition: the end of a container has all containers restarted.
pub const RESTART_ALL_CONTAINERS_STARTED: &str = "RestartAllContainersStarted";
/// Condition: the host can never give what the pod requests.
pub const INFEASIBLE: &str = "Infeasible";
