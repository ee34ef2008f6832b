//! What a pod shall be, prepared once per edit: everything that the plan compares with what is observed. **Pure**.

use crate::mux::DesiredPod;
use crate::pod::containers::{self, ContainerKind, PullPolicy};
use crate::pod::identity::ANNOTATION_CONFIG_HASH;
use crate::pod::resources::{pod_cgroup, qos_class};
use crate::pod::restart::{RestartPolicy, restart_policy};
use crate::pod::security::{pod_namespaces, sysctls};
use crate::pod::{ContainerName, Pod, hash, host_files};
use crate::runtime::SandboxSpec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Domain of this host's services, of which there are none yet.
const CLUSTER_DOMAIN: &str = "cluster.local";

/// A desired pod with what follows from it.
#[derive(Clone, Debug)]
pub struct PodDefinition {
    /// As the mux delivered it.
    pub desired: Arc<DesiredPod>,
    /// The sandbox that it needs, with attempt 0.
    pub sandbox: SandboxSpec,
    /// All containers in the order of their start: init containers and sidecars as written, then main containers.
    pub containers: Vec<ContainerDefinition>,
    /// `spec.restartPolicy`.
    pub restart_policy: RestartPolicy,
    /// Time between stop signal and SIGKILL; at least one second (kubelet rule C7).
    pub grace: Duration,
    /// `spec.activeDeadlineSeconds`.
    pub active_deadline: Option<Duration>,
}

/// One container of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDefinition {
    /// Its name.
    pub name: ContainerName,
    /// Its role.
    pub kind: ContainerKind,
    /// What its process can see.
    pub hash: DefinitionHash,
    /// Image reference as written.
    pub image: String,
    /// When to ask the registry.
    pub pull_policy: PullPolicy,
}

/// Hash of what a container's process can see, in two parts; recorded as `<base>.<own>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionHash {
    /// Of the sandbox and of all init containers that run before: when one of them is edited, this container starts anew after it.
    pub base: String,
    /// Of the container itself.
    pub own: String,
}

impl DefinitionHash {
    /// Whether a container with this recorded hash was made from the same definition.
    pub fn is(&self, recorded: &str) -> bool {
        recorded.strip_prefix(self.base.as_str()).and_then(|rest| rest.strip_prefix('.')).is_some_and(|own| own == self.own)
    }

    /// Whether a container with this recorded hash was started after the same init containers in the same kind of sandbox.
    pub fn has_base_of(&self, recorded: &str) -> bool {
        recorded.strip_prefix(self.base.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.base, self.own)
    }
}

impl PodDefinition {
    /// Prepares a pod. `pids_limit` is the host's limit for one pod.
    pub fn new(desired: Arc<DesiredPod>, pids_limit: Option<i64>) -> Self {
        let pod = &desired.pod;
        let mut resources = pod_cgroup(pod);
        resources.pids_limit = pids_limit;
        let sandbox = SandboxSpec {
            uid: desired.uid.clone(),
            full_name: desired.full_name.clone(),
            attempt: 0,
            hostname: host_files::kernel_hostname(pod, CLUSTER_DOMAIN).unwrap_or_else(|_| desired.full_name.name.clone()),
            namespaces: pod_namespaces(pod),
            qos: qos_class(pod),
            resources,
            sysctls: sysctls(pod),
        };
        let mut base = fnv([hash::sandbox_hash(pod), identity(&sandbox)]);
        let mut definitions = Vec::new();
        for (kind, container) in containers::all(pod) {
            let role = match kind {
                ContainerKind::Init => 'i',
                ContainerKind::Sidecar => 's',
                ContainerKind::Main => 'm',
            };
            let own = format!("{role}{}", hash::container_hash(pod, container));
            definitions.push(ContainerDefinition {
                name: ContainerName::new(&container.name),
                kind,
                hash: DefinitionHash { base: base.clone(), own: own.clone() },
                image: container.image.clone().unwrap_or_default(),
                pull_policy: containers::pull_policy(container),
            });
            if kind == ContainerKind::Init {
                base = fnv([base, own]);
            }
        }
        Self {
            sandbox,
            containers: definitions,
            restart_policy: restart_policy(pod),
            grace: Duration::from_secs(containers::termination_grace_secs(pod).max(1)),
            active_deadline: containers::active_deadline_secs(pod).map(Duration::from_secs),
            desired,
        }
    }

    /// The container of that name.
    pub fn container(&self, name: &ContainerName) -> Option<&ContainerDefinition> {
        self.containers.iter().find(|container| container.name == *name)
    }

    /// Whether a sandbox of this spec serves the pod as it is, but for limits that can be changed in place.
    pub fn fits(&self, actual: &SandboxSpec) -> bool {
        identity(&self.sandbox) == identity(actual)
    }
}

/// All of a sandbox that cannot be changed while it lives.
fn identity(spec: &SandboxSpec) -> String {
    // Destructured in full, so that a new field has to be placed here.
    let SandboxSpec { uid, full_name, attempt: _, hostname, namespaces, qos, resources: _, sysctls } = spec;
    format!("{uid} {full_name} {hostname} {namespaces:?} {qos:?} {sysctls:?}")
}

/// FNV-1a over both; only ever compared with itself.
fn fnv(texts: [String; 2]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in texts.iter().flat_map(|text| text.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Whether two manifests say the same, whatever revision they are from.
pub fn has_same_content(one: &Pod, other: &Pod) -> bool {
    let hash =
        |pod: &Pod| pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_CONFIG_HASH).cloned());
    match (hash(one), hash(other)) {
        (Some(one), Some(other)) => one == other,
        (Some(_), None) | (None, Some(_)) | (None, None) => one == other,
    }
}
