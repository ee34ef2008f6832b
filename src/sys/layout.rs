//! Layout on disk. The only place that joins path components of the layout.

use podstead_pod::claims::ClaimName;
use podstead_pod::{ContainerId, PodFullName, PodUid, SourceId};
use std::path::{Path, PathBuf};

/// Top of the cgroup tree, unless tests or a second instance use another.
pub const DEFAULT_SLICE: &str = "podstead.slice";

/// The roots, all absolute. Tests use private ones, so nothing else in the code may name `/var` or `/run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Durable state; `/var/lib/podstead`.
    pub state: PathBuf,
    /// Lost at reboot; `/run/podstead`.
    pub run: PathBuf,
    /// CRI logs; `/var/log/pods`.
    pub logs: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self { state: "/var/lib/podstead".into(), run: "/run/podstead".into(), logs: "/var/log/pods".into() }
    }
}

impl Paths {
    /// Name of the top cgroup. A daemon takes what it finds there for its own: one with a run directory of its own (a demonstration, a
    /// test) needs a tree of its own, so that it does not kill the pods of the other.
    pub fn cgroup_slice(&self) -> String {
        match self.instance() {
            None => DEFAULT_SLICE.to_owned(),
            Some(instance) => format!("podstead-{instance:08x}.slice"),
        }
    }

    /// Identifier of this daemon's cgroups, interfaces and packet rules among those of others on the same host; `None` with the default run
    /// directory.
    pub fn instance(&self) -> Option<u32> {
        let bytes = self.run.as_os_str().as_encoded_bytes();
        // FNV-1a: all that counts is that it stays the same.
        let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        (self.run != Self::default().run).then_some(hash)
    }

    /// The API socket.
    pub fn api_socket(&self) -> PathBuf {
        self.run.join("podstead.sock")
    }

    /// Certificate and private key of the API's TLS port, as PEM.
    pub fn api_identity(&self) -> PathBuf {
        self.state.join("api").join("tls.pem")
    }

    /// Records of workloads: a directory for each namespace, in it one for each kind.
    pub fn workloads(&self) -> PathBuf {
        self.state.join("workloads")
    }

    /// Moments of this boot that are remembered of workloads.
    pub fn workloads_run(&self) -> PathBuf {
        self.run.join("workloads")
    }

    /// Failures that hooks were notified of, and notifications that wait for them.
    pub fn notifications(&self) -> PathBuf {
        self.state.join("notify.json")
    }

    /// States of revisions that the servers of their repositories have.
    pub fn commit_statuses(&self) -> PathBuf {
        self.state.join("commit-status.json")
    }

    /// Events of the last hours.
    pub fn events(&self) -> PathBuf {
        self.state.join("events.jsonl")
    }

    /// Directories of all sources.
    pub fn sources(&self) -> PathBuf {
        self.state.join("sources")
    }

    /// Last good objects of a source.
    pub fn source(&self, id: &SourceId) -> PathBuf {
        self.sources().join(id)
    }

    /// Records of the objects that clients wrote to a source.
    pub fn source_objects(&self, id: &SourceId) -> PathBuf {
        self.source(id).join("applied")
    }

    /// Repository copy of the git source of this name.
    pub fn source_repository(&self, id: &SourceId) -> PathBuf {
        self.source(id).join("git")
    }

    /// Root of the image store.
    pub fn images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// Mark of the boot in which the write-ahead log was opened.
    pub fn write_ahead_mark(&self) -> PathBuf {
        self.run.join("write-ahead")
    }

    /// Addresses and ports of Services: a file for each.
    pub fn services(&self) -> PathBuf {
        self.state.join("services")
    }

    /// Address ranges of the pod network.
    pub fn network_record(&self) -> PathBuf {
        self.state.join("network.json")
    }

    /// NetworkPolicies that are in force.
    pub fn network_policies(&self) -> PathBuf {
        self.state.join("network-policies.json")
    }

    /// Addresses and interfaces of a pod.
    pub fn pod_network(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("network.json")
    }

    /// Results of CNI plugins for a pod.
    pub fn pod_cni(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("cni.json")
    }

    /// Kernel settings that the network changed since boot.
    pub fn network_switches(&self) -> PathBuf {
        self.run.join("network-switches.json")
    }

    /// Archives put here are imported.
    pub fn preload(&self) -> PathBuf {
        self.images().join("preload")
    }

    /// Seccomp profiles that `localhostProfile` names (the kubelet's `<root>/seccomp`).
    pub fn seccomp_profiles(&self) -> PathBuf {
        self.state.join("seccomp")
    }

    /// The secret of this host.
    pub fn machine_key(&self) -> PathBuf {
        self.state.join("machine.key")
    }

    /// The configuration that was valid last.
    pub fn last_valid_config(&self) -> PathBuf {
        self.state.join("config.yaml")
    }

    /// Marks of the log directories whose pods are gone.
    pub fn gone(&self) -> PathBuf {
        self.state.join("gone")
    }

    /// Durable directories of all pods.
    pub fn pods(&self) -> PathBuf {
        self.state.join("pods")
    }

    /// Durable directory of a pod.
    pub fn pod(&self, uid: &PodUid) -> PathBuf {
        self.pods().join(uid)
    }

    /// The pod's own record: the desired pod as last acted on.
    pub fn pod_record(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("pod.json")
    }

    /// Transition times of the pod's conditions.
    pub fn pod_conditions(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("conditions.json")
    }

    /// The sandbox's record.
    pub fn sandbox_record(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("sandbox.json")
    }

    /// Records of the pod's containers, one file each, written by the shim.
    pub fn container_records(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("containers")
    }

    /// The record of one container.
    pub fn container_record(&self, uid: &PodUid, id: &ContainerId) -> PathBuf {
        self.container_records(uid).join(format!("{id}.json"))
    }

    /// Writable layer and work directory of one container.
    pub fn container_layer(&self, uid: &PodUid, id: &ContainerId) -> PathBuf {
        self.pod(uid).join("layers").join(id)
    }

    /// Volumes of a pod.
    pub fn volumes(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("volumes")
    }

    /// Data of all emptyDir volumes of a pod.
    pub fn empty_dirs(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("empty-dir")
    }

    /// Data of an emptyDir volume.
    pub fn empty_dir(&self, uid: &PodUid, volume: &str) -> PathBuf {
        self.empty_dirs(uid).join(volume)
    }

    /// Files of volumes that come from ConfigMaps, Secrets and the pod itself; a tmpfs is mounted there.
    pub fn projected(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("projected")
    }

    /// Images that are mounted as volumes.
    pub fn image_volumes(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("image")
    }

    /// One of them.
    pub fn image_volume(&self, uid: &PodUid, volume: &str) -> PathBuf {
        self.image_volumes(uid).join(volume)
    }

    /// NFS exports that are mounted as volumes.
    pub fn nfs_volumes(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("nfs")
    }

    /// One of them.
    pub fn nfs_volume(&self, uid: &PodUid, volume: &str) -> PathBuf {
        self.nfs_volumes(uid).join(volume)
    }

    /// Marks of the claims that a pod uses.
    pub fn claim_marks(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("claims")
    }

    /// Persistent volumes of all claims, by namespace and name.
    pub fn persistent_volumes(&self) -> PathBuf {
        self.state.join("volumes")
    }

    /// Persistent volumes that are being deleted. No namespace begins with a dot.
    pub fn volume_trash(&self) -> PathBuf {
        self.persistent_volumes().join(".trash")
    }

    /// A persistent volume that made room for another source's claim.
    pub fn displaced_volume(&self, unique: &str, claim: &ClaimName) -> PathBuf {
        self.persistent_volumes().join(".displaced").join(unique).join(&claim.namespace).join(&claim.name)
    }

    /// The persistent volume of a claim: its record and its data.
    pub fn persistent_volume(&self, claim: &ClaimName) -> PathBuf {
        self.persistent_volumes().join(&claim.namespace).join(&claim.name)
    }

    /// Directory that pods mount for a claim.
    pub fn persistent_data(&self, claim: &ClaimName) -> PathBuf {
        self.persistent_volume(claim).join("data")
    }

    /// Pins of the paths below volumes that containers mount (`subPath`). They may pin the host's own directories: whoever deletes a
    /// pod's directory leaves its volumes to the volume store.
    pub fn sub_paths(&self, uid: &PodUid) -> PathBuf {
        self.volumes(uid).join("sub-paths")
    }

    /// Host files of a pod: hosts, resolv.conf, hostname, termination logs.
    pub fn host_files(&self, uid: &PodUid) -> PathBuf {
        self.pod(uid).join("etc")
    }

    /// Run directories of all pods.
    pub fn pods_run(&self) -> PathBuf {
        self.run.join("pods")
    }

    /// Compiled filters of system calls, by what they were compiled from.
    pub fn filters(&self) -> PathBuf {
        self.run.join("filters")
    }

    /// Progress of the hooks of a pod's containers.
    pub fn hook_marks(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("hooks")
    }

    /// Run directory of a pod: shim socket, namespace pins, OCI bundles and state.
    pub fn pod_run(&self, uid: &PodUid) -> PathBuf {
        self.pods_run().join(uid)
    }

    /// Health of its containers.
    pub fn pod_health(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("health.json")
    }

    /// The shim's socket.
    pub fn shim_socket(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("shim.sock")
    }

    /// Pins of the pod's namespaces: `net`, `ipc`, `uts`.
    pub fn namespaces(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("ns")
    }

    /// Configuration of the shim.
    pub fn shim_config(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("shim.json")
    }

    /// Resources that were last applied to the containers of a pod.
    pub fn given(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("resources.json")
    }

    /// Devices of the containers of a pod that may be unplugged.
    pub fn plugged(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("devices.json")
    }

    /// Mount point of the pod's `/dev/shm`.
    pub fn shared_memory(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("shm")
    }

    /// OCI bundles of the pod's containers, one directory each.
    pub fn bundles(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("bundles")
    }

    /// The OCI bundle of one container.
    pub fn bundle(&self, uid: &PodUid, id: &ContainerId) -> PathBuf {
        self.bundles(uid).join(id)
    }

    /// libcontainer's own state of the pod's containers.
    pub fn oci_state(&self, uid: &PodUid) -> PathBuf {
        self.pod_run(uid).join("oci")
    }

    /// Log directory of a pod (kubelet rule D18).
    pub fn pod_logs(&self, name: &PodFullName, uid: &PodUid) -> PathBuf {
        self.logs.join(format!("{}_{}_{uid}", name.namespace, name.name))
    }

    /// Directory of links to logs by the names of their containers (kubelet rule D18): `containers` beside a directory of logs that is
    /// called `pods`, as `/var/log/pods` is. Under any other name they are not where anybody would look for such links.
    pub fn log_links(&self) -> Option<PathBuf> {
        self.logs.ends_with("pods").then(|| self.logs.with_file_name("containers"))
    }

    /// Log file of one run of a container (kubelet rule D18).
    pub fn container_log(&self, name: &PodFullName, uid: &PodUid, container: &str, attempt: u32) -> PathBuf {
        self.pod_logs(name, uid).join(container).join(format!("{attempt}.log"))
    }
}

/// Reports whether a path is absolute and has no `.` or `..` component.
pub fn is_clean_absolute(path: &Path) -> bool {
    use std::path::Component;
    path.is_absolute() && path.components().all(|component| matches!(component, Component::RootDir | Component::Normal(_)))
}
