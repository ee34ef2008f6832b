//! The kubelet's words for why something is as it is.

/// Waiting: an operator stopped the pod with `podstead stop`; an edit, a reboot or `podstead start` starts it.
pub const STOPPED: &str = "Stopped";
/// Waiting: before a container's first start, in a pod without init containers.
pub const CONTAINER_CREATING: &str = "ContainerCreating";
/// Waiting: before a container's first start, in a pod with init containers; also for the init containers.
pub const POD_INITIALIZING: &str = "PodInitializing";
/// Waiting: the image could not be pulled.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// Waiting: `imagePolicy` refuses the image: it is not signed as demanded, or no image of its name may run.
pub const SIGNATURE_VALIDATION_FAILED: &str = "SignatureValidationFailed";
/// Waiting: the image could not be pulled repeatedly; pausing before the next attempt.
pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// Waiting: the image is not present and must not be pulled.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// Waiting: the image reference is invalid.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// Waiting: the image store cannot be read.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// Waiting: the container's configuration cannot be resolved (user, environment, mounts).
pub const CREATE_CONTAINER_CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Waiting: the container could not be created.
pub const CREATE_CONTAINER_ERROR: &str = "CreateContainerError";
/// Waiting: the container's process could not be started.
pub const RUN_CONTAINER_ERROR: &str = "RunContainerError";
/// Waiting: a hostPort of the pod is in use (podstead's reason; the kubelet rejects the pod).
pub const HOST_PORT_CONFLICT: &str = "HostPortConflict";
/// Waiting: the postStart hook failed, so the container was stopped.
pub const POST_START_HOOK_ERROR: &str = "PostStartHookError";
/// Waiting: the container exited repeatedly; pausing before the next start.
pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";

/// Waiting: all containers of the pod are restarted together; terminated: the container was killed for that.
pub const RESTARTING_ALL_CONTAINERS: &str = "RestartingAllContainers";

/// Terminated with exit code 0.
pub const COMPLETED: &str = "Completed";
/// Terminated with another exit code.
pub const ERROR: &str = "Error";
/// Terminated by the kernel for lack of memory.
pub const OOM_KILLED: &str = "OOMKilled";
/// Terminated before its program was executed.
pub const START_ERROR: &str = "StartError";
/// Terminated in an unknown way.
pub const CONTAINER_STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// Pod: `activeDeadlineSeconds` have passed.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// Pod: it exceeded a limit of its disk usage.
pub const EVICTED: &str = "Evicted";
/// Condition: containers are not ready.
pub const CONTAINERS_NOT_READY: &str = "ContainersNotReady";
/// Condition: init containers are not done.
pub const CONTAINERS_NOT_INITIALIZED: &str = "ContainersNotInitialized";
/// Condition: the pod succeeded.
pub const POD_COMPLETED: &str = "PodCompleted";
/// Condition: the pod failed.
pub const POD_FAILED: &str = "PodFailed";
/// Condition: the exit of a container restarts all containers.
pub const RESTART_ALL_CONTAINERS_STARTED: &str = "RestartAllContainersStarted";
/// Waiting: a device that the container names is not plugged in; also the reason of the condition `podstead.dev/DevicesAttached`.
pub const DEVICE_MISSING: &str = "DeviceMissing";
/// Condition: the host can never provide the requested resources.
pub const INFEASIBLE: &str = "Infeasible";
