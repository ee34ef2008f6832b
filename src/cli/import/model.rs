//! The common model of compose files, Quadlet units and commands. **Pure**.

use super::words::object_name;

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Project {
    /// File, directory or command.
    pub(super) origin: String,
    /// The services, in the order of the file.
    pub(super) services: Vec<Service>,
    /// Remarks that concern no service.
    pub(super) notes: Vec<String>,
}

/// One container.
///
/// One type because each reader fills all of it, field by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Service {
    /// Its name, by which others reach it.
    pub(super) name: String,
    /// Reference of the image.
    pub(super) image: String,
    /// The program; empty for that of the image.
    pub(super) entrypoint: Vec<String>,
    /// Its arguments; empty for those of the image.
    pub(super) command: Vec<String>,
    /// Variables.
    pub(super) environment: Vec<(String, String)>,
    /// Variables with the value of a Secret: name of the variable, and of the Secret, which is its key, too.
    pub(super) secret_environment: Vec<(String, String)>,
    /// Ports.
    pub(super) ports: Vec<Port>,
    /// Mounts.
    pub(super) mounts: Vec<Mount>,
    /// Devices of the host.
    pub(super) devices: Vec<Device>,
    /// Further names by which others reach it.
    pub(super) aliases: Vec<String>,
    /// Name of its pod, if that is not its own.
    pub(super) pod: Option<String>,
    /// The service in whose pod it runs, because it shares its network.
    pub(super) joins: Option<String>,
    /// Its container.
    pub(super) run: Run,
    /// Its rights.
    pub(super) rights: Rights,
    /// Check of its health.
    pub(super) health: Option<Health>,
    /// Settings that could not be carried over.
    pub(super) notes: Vec<String>,
}

/// Settings of a container.
///
/// One type because each field is an option of a command of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Run {
    /// Reaction to its end.
    pub(super) restart: Restart,
    /// Number of pods.
    pub(super) replicas: Option<u32>,
    /// Directory of the process.
    pub(super) directory: Option<String>,
    /// Name of the host inside.
    pub(super) hostname: Option<String>,
    /// Names that the hosts file has: address and name.
    pub(super) hosts: Vec<(String, String)>,
    /// Seconds between signal and SIGKILL.
    pub(super) grace: Option<u64>,
    /// Limit of memory, as a quantity.
    pub(super) memory: Option<String>,
    /// Limit of processors, as a quantity.
    pub(super) cpu: Option<String>,
    /// Memory that it is to have, as a quantity.
    pub(super) memory_request: Option<String>,
    /// Share of processors when they are busy, as a quantity.
    pub(super) cpu_request: Option<String>,
    /// Signal that ends it, with `SIG`.
    pub(super) stop_signal: Option<String>,
    /// Policy of Kubernetes for pulls.
    pub(super) pull: Option<&'static str>,
    /// Name servers, search list and options of its resolver.
    pub(super) dns: Dns,
    /// Kernel parameters.
    pub(super) sysctls: Vec<(String, String)>,
    /// It reads standard input and has a terminal.
    pub(super) tty: bool,
}

/// Settings of a resolver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dns {
    /// Addresses of name servers.
    pub(super) servers: Vec<String>,
    /// Search list.
    pub(super) searches: Vec<String>,
    /// Options, such as `ndots:1`.
    pub(super) options: Vec<String>,
}

/// Reaction to the end of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Restart {
    /// It runs again.
    #[default]
    Always,
    /// It runs again after a failure.
    OnFailure,
    /// It is over.
    Never,
}

/// Rights of a container.
///
/// One type because each field is an option of a command of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rights {
    /// User id.
    pub(super) user: Option<i64>,
    /// Group id.
    pub(super) group: Option<i64>,
    /// All rights.
    pub(super) privileged: bool,
    /// The image cannot be written to.
    pub(super) read_only: bool,
    /// The network of the host.
    pub(super) host_network: bool,
    /// The processes of the host.
    pub(super) host_pid: bool,
    /// The shared memory of the host.
    pub(super) host_ipc: bool,
    /// Further group ids.
    pub(super) groups: Vec<i64>,
    /// Programs with setuid get no rights.
    pub(super) no_new_privileges: bool,
    /// No seccomp profile.
    pub(super) seccomp_unconfined: bool,
    /// No AppArmor profile.
    pub(super) apparmor_unconfined: bool,
    /// Added capabilities, without `CAP_`.
    pub(super) add: Vec<String>,
    /// Dropped capabilities.
    pub(super) drop: Vec<String>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// Address of the host.
    pub(super) host_ip: Option<String>,
    /// Port of the host.
    pub(super) host: Option<u16>,
    /// Port of the container.
    pub(super) container: u16,
    /// Protocol.
    pub(super) protocol: Protocol,
}

/// Protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

/// A device of the host, whose node a container gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Path on the host.
    pub(super) path: String,
    /// Path in the container, if it differs.
    pub(super) container_path: Option<String>,
    /// The container may not write to it.
    pub(super) read_only: bool,
}

/// A mount.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mount {
    /// The source of the mount.
    pub(super) source: MountSource,
    /// Path in the container.
    pub(super) target: String,
    /// Only for reading.
    pub(super) read_only: bool,
    /// Policy of Kubernetes for mounts that appear below it later.
    pub(super) propagation: Option<&'static str>,
}

/// Source of a mount.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MountSource {
    /// A volume by name, which services share.
    Named(String),
    /// A directory that goes with the container.
    Anonymous,
    /// Memory, of at most this size.
    Memory(Option<String>),
    /// A path of the host.
    Host(String),
    /// A directory of another host, by NFS.
    Export {
        /// Name of the volume.
        name: String,
        /// Name or address of the server.
        server: String,
        /// Path on the server.
        path: String,
        /// Mount options.
        options: String,
        /// Nothing is written there.
        read_only: bool,
    },
    /// The content of a file.
    File {
        /// Name of the object.
        name: String,
        /// Key in it.
        key: String,
        /// Its content; `None` if it has to be added.
        content: Option<String>,
        /// A Secret instead of a ConfigMap.
        is_secret: bool,
    },
}

/// Check of the health of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Command.
    pub(super) command: Vec<String>,
    /// Seconds between two checks.
    pub(super) period: Option<u64>,
    /// Seconds that one may take.
    pub(super) timeout: Option<u64>,
    /// Seconds before the first one.
    pub(super) delay: Option<u64>,
    /// Failures until it counts.
    pub(super) retries: Option<u64>,
    /// A container that is not healthy restarts. docker only says that it is not.
    pub(super) restarts: bool,
}

impl Mount {
    /// A mount that can be written to, and has nothing unusual.
    pub(super) fn new(source: MountSource, target: impl Into<String>) -> Self {
        Self { source, target: target.into(), read_only: false, propagation: None }
    }
}

impl Service {
    /// The name of its pod.
    pub(super) fn pod_name(&self) -> String {
        object_name(self.pod.as_deref().unwrap_or(&self.name))
    }

    /// Adds a note.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}
