//! The common model of compose files, Quadlet units and commands. **Pure**.

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
    /// Ports.
    pub(super) ports: Vec<Port>,
    /// Mounts.
    pub(super) mounts: Vec<Mount>,
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
    /// Kernel parameters.
    pub(super) sysctls: Vec<(String, String)>,
    /// It reads standard input and has a terminal.
    pub(super) tty: bool,
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
    /// UDP instead of TCP.
    pub(super) udp: bool,
}

/// A mount.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mount {
    /// The source of the mount.
    pub(super) source: MountSource,
    /// The platform to import.
    pub(super) target: String,
    /// Only for reading.
    pub(super) read_only: bool,
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
}

impl Service {
    /// Adds a note.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}
