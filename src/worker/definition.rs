//! Definition of a pod, prepared once per edit: everything that the plan compares with the observed state. **Pure**.

use super::hook_action::Hook;
use podstead_container::{ContainerStatus, ObservedPod, SandboxSpec};
use podstead_pod::claims::{claimed_volumes, has_claims};
use podstead_pod::containers::{self, ContainerKind, PullPolicy};
use podstead_pod::devices::{self, DeviceRequest};
use podstead_pod::env::{EnvFacts, ObjectEnvironment, object_environment};
use podstead_pod::identity::ANNOTATION_CONFIG_HASH;
use podstead_pod::objects::{Fingerprint, FingerprintKey, Objects};
use podstead_pod::resources::{ContainerResources, pod_cgroup, pod_requests, qos_class, restarting_resources};
use podstead_pod::restart::{ExitPolicy, RestartPolicy, restart_policy};
use podstead_pod::security::{pod_namespaces, sysctls};
use podstead_pod::storage::StorageLimits;
use podstead_pod::{ContainerName, DesiredPod, Pod, files, hash, host_files};
use podstead_probe::{ProbeSpec, probes};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Between a hash and the round.
const ROUND: char = '~';

/// Inputs of a definition besides the pod.
#[derive(Clone, Debug)]
pub struct DefinitionContext {
    /// The host's limit of processes in one pod.
    pub pids_limit: Option<i64>,
    /// ConfigMaps and Secrets.
    pub objects: Arc<Objects>,
    /// For telling whether values from them are the same.
    pub fingerprint_key: FingerprintKey,
    /// Facts about this host for environment variables and files.
    pub facts: EnvFacts,
}

/// A desired pod with what follows from it.
///
/// One type because all of it is made at once from one revision of the pod and the objects, and replaced at once.
#[derive(Clone, Debug)]
pub struct PodDefinition {
    /// As the mux delivered it.
    pub desired: Arc<DesiredPod>,
    /// ConfigMaps and Secrets that it was prepared with.
    pub objects: Arc<Objects>,
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
    /// Images that it mounts as volumes.
    pub volume_images: Vec<VolumeImage>,
    /// Devices of the host that it names.
    pub devices: Vec<DeviceRequest>,
    /// Limits of its disk usage.
    pub storage: StorageLimits,
    /// Reason why this host can never give it what it requests. What runs keeps what it has.
    pub infeasible: Option<String>,
    /// Files of its volumes come from objects or from itself, and follow their changes.
    pub has_files: bool,
    /// Reason why some of these cannot be made. No container is started for the first time then; what runs goes on with the files that it
    /// has.
    pub missing_files: Option<String>,
}

/// An image that a volume is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeImage {
    /// Name in `spec.volumes`.
    pub volume: String,
    /// As written.
    pub reference: String,
    /// The pull policy.
    pub policy: PullPolicy,
}

/// One container of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDefinition {
    /// Its name.
    pub name: ContainerName,
    /// Its role.
    pub kind: ContainerKind,
    /// Hash of everything that its process can see.
    pub hash: DefinitionHash,
    /// Image reference as written.
    pub image: String,
    /// The pull policy.
    pub pull_policy: PullPolicy,
    /// Its resources.
    pub resources: ContainerResources,
    /// Resources for whose change it is restarted.
    pub restarting: Vec<String>,
    /// Reaction to its exit.
    pub exits: ExitPolicy,
    /// Done right after its start.
    pub post_start: Option<Hook>,
    /// Done before its stop signal. Both are read when their moment comes: an edit restarts nothing.
    pub pre_stop: Option<Hook>,
    /// Its probes. An edit takes effect on what runs.
    pub probes: Vec<Arc<ProbeSpec>>,
    /// Reason why its environment cannot be made, if an object or key that it refers to is missing. It cannot be started then; what runs
    /// goes on.
    pub missing: Option<String>,
}

/// Hash of what a container's process can see; recorded as `<base>.<own>`, or as `<base>.<own>.<environment>` when ConfigMaps or Secrets put
/// something into its environment. `~<round>` follows in a sandbox in which all containers were restarted so many times (kubelet rule
/// D5): it is part of the text because shims of any age keep that as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionHash {
    /// Of the sandbox and of all init containers that run before: when one of them is edited, this container starts anew after it.
    pub base: String,
    /// Of the container itself.
    pub own: String,
    /// Base and own as versions before in-place resize recorded them, where they differ.
    pub earlier: Option<(String, String)>,
    /// Of what its environment has from ConfigMaps and Secrets. A change restarts this container and no other: that of an init container
    /// which is done has no effect before the next sandbox.
    pub environment: Option<Fingerprint>,
}

impl DefinitionHash {
    /// Returns true if a container with this recorded hash was made from the same definition.
    pub fn is(&self, recorded: &str) -> bool {
        let recorded = split_round(recorded).0;
        self.versions().any(|(base, own)| {
            let rest = recorded.strip_prefix(base).and_then(|rest| rest.strip_prefix('.'));
            let rest = rest.and_then(|rest| rest.strip_prefix(own));
            match &self.environment {
                None => rest == Some(""),
                Some(environment) => {
                    rest.and_then(|rest| rest.strip_prefix('.')).is_some_and(|recorded| environment.may_be(recorded))
                }
            }
        })
    }

    /// As it is recorded of a container that is started in this round.
    pub fn in_round(&self, round: u32) -> String {
        if round == 0 { self.to_string() } else { format!("{self}{ROUND}{round}") }
    }

    /// Returns true if a container with this recorded hash was started after the same init containers in the same kind of sandbox.
    pub fn has_base_of(&self, recorded: &str) -> bool {
        self.versions().any(|(base, _)| recorded.strip_prefix(base).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Base and own, as this version records them and as earlier ones did.
    fn versions(&self) -> impl Iterator<Item = (&str, &str)> {
        let earlier = self.earlier.as_ref().map(|(base, own)| (base.as_str(), own.as_str()));
        std::iter::once((self.base.as_str(), self.own.as_str())).chain(earlier)
    }
}

/// The number of restarts of all containers of its sandbox when a container with this recorded hash was started.
pub fn round_of(recorded: &str) -> u32 {
    split_round(recorded).1
}

fn split_round(recorded: &str) -> (&str, u32) {
    match recorded.rsplit_once(ROUND) {
        Some((hash, round)) => (hash, round.parse().unwrap_or(0)),
        None => (recorded, 0),
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.base, self.own)?;
        match &self.environment {
            Some(environment) => write!(f, ".{}", environment.value),
            None => Ok(()),
        }
    }
}

impl ContainerDefinition {
    /// Returns true if the run is of this definition and its resources need no restart.
    pub fn is_run_by(&self, run: &ContainerStatus, observed: &ObservedPod) -> bool {
        let restarts = observed.given.get(&run.id).is_some_and(|given| self.resources.restarts(given, &self.restarting));
        self.hash.is(&run.hash) && !restarts
    }
}

impl PodDefinition {
    /// Returns true if the data of claims are given to the pod's `fsGroup`.
    pub fn gives_claims(&self) -> bool {
        let spec = self.desired.pod.spec.as_ref();
        let has_group = spec.and_then(|spec| spec.security_context.as_ref()?.fs_group).is_some();
        let mut volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default().iter();
        has_group && volumes.any(|volume| volume.persistent_volume_claim.is_some())
    }

    /// Prepares a pod.
    pub fn new(desired: Arc<DesiredPod>, context: &DefinitionContext) -> Self {
        let pod = &desired.pod;
        let mut resources = pod_cgroup(pod);
        resources.pids_limit = context.pids_limit;
        let sandbox = SandboxSpec {
            uid: desired.uid.clone(),
            full_name: desired.full_name.clone(),
            attempt: 0,
            hostname: host_files::kernel_hostname(pod, &context.facts.cluster_domain)
                .unwrap_or_else(|_| desired.full_name.name.clone()),
            namespaces: pod_namespaces(pod),
            qos: qos_class(pod),
            resources,
            sysctls: sysctls(pod),
            own_users: containers::spec(pod).host_users == Some(false),
            first_host_id: None,
        };
        let infeasible = infeasible(pod, &context.facts);
        let mut base = fnv([hash::sandbox_hash(pod), identity(&sandbox)]);
        let mut earlier_base = base.clone();
        let mut definitions = Vec::with_capacity(containers::all(pod).count());
        for (kind, container) in containers::all(pod) {
            let role = match kind {
                ContainerKind::Init => 'i',
                ContainerKind::Sidecar => 's',
                ContainerKind::Main => 'm',
            };
            let own = format!("{role}{}", hash::container_hash(pod, container));
            let earlier_own =
                hash::earlier_container_hash(pod, container).map_or_else(|| own.clone(), |hash| format!("{role}{hash}"));
            let differs = earlier_base != base || earlier_own != own;
            let ObjectEnvironment { fingerprint, missing } =
                object_environment(pod, container, context.objects.seen_by(&desired.source), &context.fingerprint_key);
            let lifecycle = container.lifecycle.as_ref();
            definitions.push(ContainerDefinition {
                name: ContainerName::new(&container.name),
                kind,
                hash: DefinitionHash {
                    base: base.clone(),
                    own: own.clone(),
                    earlier: differs.then(|| (earlier_base.clone(), earlier_own.clone())),
                    environment: fingerprint,
                },
                image: container.image.clone().unwrap_or_default(),
                pull_policy: containers::pull_policy(container),
                resources: ContainerResources::of(pod, container),
                restarting: if infeasible.is_none() { restarting_resources(container) } else { Vec::new() },
                exits: ExitPolicy::of(pod, kind, container),
                post_start: lifecycle.and_then(|hooks| hooks.post_start.as_ref()).map(|hook| Hook::of(hook, container)),
                pre_stop: lifecycle.and_then(|hooks| hooks.pre_stop.as_ref()).map(|hook| Hook::of(hook, container)),
                probes: match kind {
                    // It ends; validation refuses probes of it.
                    ContainerKind::Init => Vec::new(),
                    ContainerKind::Sidecar | ContainerKind::Main => probes(container),
                },
                missing: missing.map(|error| error.to_string()),
            });
            if kind == ContainerKind::Init {
                base = fnv([base, own]);
                earlier_base = fnv([earlier_base, earlier_own]);
            }
        }
        let has_files = files::has_projected(pod);
        let missing_files = if has_files || has_claims(pod) { missing_files(&desired, context) } else { None };
        Self {
            devices: devices_of(&desired, context),
            volume_images: volume_images(pod),
            storage: StorageLimits::of(pod),
            infeasible,
            has_files,
            missing_files,
            objects: Arc::clone(&context.objects),
            sandbox,
            containers: definitions,
            restart_policy: restart_policy(pod),
            grace: Duration::from_secs(containers::termination_grace_secs(pod).max(1)),
            active_deadline: containers::active_deadline_secs(pod).map(Duration::from_secs),
            desired,
        }
    }

    /// Images of the volumes that a container mounts.
    pub fn images_mounted_by(&self, name: &ContainerName) -> impl Iterator<Item = &VolumeImage> {
        let found = containers::find(&self.desired.pod, name.as_str());
        let mounts = found.and_then(|(_, container)| container.volume_mounts.as_deref()).unwrap_or_default();
        self.volume_images.iter().filter(|image| mounts.iter().any(|mount| mount.name == image.volume))
    }

    /// The container of that name.
    pub fn container(&self, name: &ContainerName) -> Option<&ContainerDefinition> {
        self.containers.iter().find(|container| container.name == *name)
    }

    /// Returns true if a sandbox of this spec serves the pod as it is, except for limits that can be changed in place.
    pub fn fits(&self, actual: &SandboxSpec) -> bool {
        identity(&self.sandbox) == identity(actual)
    }
}

/// Devices that its annotations and volumes name.
fn devices_of(desired: &DesiredPod, context: &DefinitionContext) -> Vec<DeviceRequest> {
    let (pod, objects) = (&desired.pod, context.objects.seen_by(&desired.source));
    let claimed = if has_claims(pod) { claimed_volumes(pod, objects) } else { Vec::new() };
    devices::all_of(pod, |claim| {
        let found = claimed.iter().flatten().find(|claimed| claimed.claim == *claim);
        found.and_then(|claimed| claimed.terms.device.clone())
    })
}

/// In the kubelet's words.
fn infeasible(pod: &Pod, facts: &EnvFacts) -> Option<String> {
    let requests = pod_requests(pod);
    let amount = |name: &str| requests.get(name).copied().unwrap_or_default();
    let whole = |amount: i64| u64::try_from(amount).unwrap_or_default();
    let (cpu, memory) = (whole(amount("cpu").milli_value()), whole(amount("memory").value()));
    let has = [("cpu", cpu, facts.allocatable_cpu_milli), ("memory", memory, facts.allocatable_memory_bytes)];
    has.into_iter().find(|(_, requested, capacity)| requested > capacity).map(|(name, requested, capacity)| {
        format!("Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}")
    })
}

fn volume_images(pod: &Pod) -> Vec<VolumeImage> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let wanted = volumes.iter().filter(|volume| containers::has_volume(pod, &volume.name)).filter_map(|volume| {
        let source = volume.image.as_ref()?;
        let reference = source.reference.clone().unwrap_or_default();
        let policy = containers::image_pull_policy(source.pull_policy.as_deref(), &reference);
        Some(VolumeImage { volume: volume.name.clone(), reference, policy })
    });
    wanted.collect()
}

/// All that is missing, the first of it for each volume.
fn missing_files(desired: &DesiredPod, context: &DefinitionContext) -> Option<String> {
    let (pod, objects) = (&desired.pod, context.objects.seen_by(&desired.source));
    let projections = files::projections(pod, objects, &context.facts);
    let missing = projections.into_iter().filter_map(Result::err);
    let missing = missing.chain(claimed_volumes(pod, objects).into_iter().filter_map(Result::err));
    let missing: Vec<String> = missing.map(|error| error.to_string()).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// All of a sandbox that cannot be changed while it lives.
fn identity(spec: &SandboxSpec) -> String {
    // Destructured in full, so that a new field has to be placed here.
    let SandboxSpec { uid, full_name, attempt: _, hostname, namespaces, qos, resources: _, sysctls, own_users, first_host_id: _ } =
        spec;
    // The text of a sandbox without users of its own is that of versions before.
    let users = if *own_users { " own users" } else { "" };
    format!("{uid} {full_name} {hostname} {namespaces:?} {qos:?} {sysctls:?}{users}")
}

/// FNV-1a over both; only ever compared with itself.
fn fnv(texts: [String; 2]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in texts.iter().flat_map(|text| text.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Compares the content of two manifests, without their revisions.
pub fn has_same_content(one: &Pod, other: &Pod) -> bool {
    let hash =
        |pod: &Pod| pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_CONFIG_HASH).cloned());
    match (hash(one), hash(other)) {
        (Some(one), Some(other)) => one == other,
        (Some(_), None) | (None, Some(_)) | (None, None) => one == other,
    }
}
