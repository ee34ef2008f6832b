//! The volume store as root, each test in a mount namespace of its own.

use super::*;
use podstead_container::Propagation;
use podstead_container::cgroup::Hierarchies;
use podstead_container::kernel::KernelFacts;
use podstead_pod::{Origin, Pod, PodFullName, Position, Revision, SourceId};
use podstead_sys::layout::Paths;
use podstead_sys::mounts::mounts;
use podstead_sys::testing::in_private_mounts;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

/// A pod with this spec.
pub(super) fn desired(spec: &str) -> DesiredPod {
    let pod: Pod = serde_yaml::from_str(&format!("{{metadata: {{name: web-edge, namespace: shop}}, spec: {spec}}}")).unwrap();
    DesiredPod {
        uid: PodUid::new("uid-1"),
        full_name: PodFullName { name: "web-edge".into(), namespace: "shop".into() },
        source: SourceId::new("dir"),
        revision: Revision("1".into()),
        origin: Origin { file: "web.yaml".into(), position: Position { line: 1, column: 1 } },
        pod: Arc::new(pod),
    }
}

/// Memory that all pods may use.
const MEMORY: u64 = 96 << 20;

/// A store in a directory of its own.
struct Store {
    root: tempfile::TempDir,
    paths: Paths,
    volumes: Volumes,
    executor: tokio::runtime::Runtime,
}

impl Store {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // The state directory is reached through a symlink, as on hosts that keep it on another disk.
        fs::create_dir(root.path().join("disk")).unwrap();
        symlink("disk", root.path().join("state")).unwrap();
        fs::write(root.path().join("resolv.conf"), "nameserver 192.0.2.53\n").unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let node = NodeFiles { resolv_conf: root.path().join("resolv.conf"), ..NodeFiles::default() };
        let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let policy = Arc::new(HostPathPolicy::default());
        policy.configure([(SourceId::new("dir"), None)]);
        Self { volumes: Volumes::new(paths.clone(), node, policy, MEMORY), paths, root, executor }
    }

    fn pod(&self, spec: &str) -> DesiredPod {
        desired(spec)
    }

    fn prepare(&self, pod: &DesiredPod) -> Result<(), VolumeError> {
        self.executor.block_on(self.volumes.prepare(pod, VolumeContents::default()))
    }

    fn mounts(&self, pod: &DesiredPod, attempt: u32) -> Result<ContainerMounts, VolumeError> {
        let environment = [("NAME".to_owned(), "web".to_owned())];
        self.executor.block_on(self.volumes.container_mounts(pod, &ContainerName::new("c"), attempt, &[], None, &environment))
    }

    fn remove(&self, pod: &DesiredPod) -> Result<(), VolumeError> {
        self.executor.block_on(self.volumes.remove(&pod.uid))
    }

    fn list(&self) -> Vec<PodUid> {
        self.executor.block_on(self.volumes.list()).unwrap()
    }

    fn empty_dir(&self, pod: &DesiredPod, name: &str) -> PathBuf {
        fs::canonicalize(self.paths.empty_dir(&pod.uid, name)).unwrap()
    }

    /// Mounts that the store, or a container of it, has made.
    fn mounted(&self) -> Vec<PathBuf> {
        let root = fs::canonicalize(self.root.path()).unwrap();
        mounts().unwrap().into_iter().map(|mount| mount.point).filter(|point| point.starts_with(&root)).collect()
    }
}

/// One container `c` with these mounts.
fn container(mounts: &str) -> String {
    format!("[{{name: c, image: i, volumeMounts: [{mounts}]}}]")
}

fn tmpfs_bytes(directory: &Path) -> u64 {
    let filesystem = rustix::fs::statvfs(directory).unwrap();
    filesystem.f_blocks * filesystem.f_frsize
}

#[test]
fn an_empty_dir_is_for_everybody_and_survives_restarts_and_in_memory_until_reboot() {
    in_private_mounts("tests::an_empty_dir_is_for_everybody_and_survives_restarts_and_in_memory_until_reboot", || {
        let store = Store::new();
        let pod = store.pod("{containers: [], volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory}}]}");
        store.prepare(&pod).unwrap();
        let (disk, memory) = (store.empty_dir(&pod, "disk"), store.empty_dir(&pod, "memory"));
        for directory in [&disk, &memory] {
            assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o777);
            fs::write(directory.join("file"), "x").unwrap();
        }
        assert_eq!(store.mounted(), std::slice::from_ref(&memory));

        // A restarted daemon finds what is there.
        store.prepare(&pod).unwrap();
        assert_eq!(store.mounted(), std::slice::from_ref(&memory));
        assert!(disk.join("file").is_file() && memory.join("file").is_file());

        // After a reboot nothing is mounted.
        rustix::mount::unmount(&memory, rustix::mount::UnmountFlags::empty()).unwrap();
        store.prepare(&pod).unwrap();
        assert_eq!(store.mounted(), std::slice::from_ref(&memory));
        assert!(disk.join("file").is_file() && !memory.join("file").try_exists().unwrap());

        assert_eq!(store.list(), std::slice::from_ref(&pod.uid));
        store.remove(&pod).unwrap();
        assert_eq!((store.mounted(), store.list()), (vec![], vec![]));
        assert!(!store.paths.pod(&pod.uid).try_exists().unwrap());
        store.remove(&pod).unwrap();
    });
}

#[test]
fn memory_is_limited_by_the_volume_and_by_the_pod_and_can_be_resized() {
    in_private_mounts("tests::memory_is_limited_by_the_volume_and_by_the_pod_and_can_be_resized", || {
        let store = Store::new();
        let pod = |limit: &str, size: &str| {
            let container = format!("{{name: c, image: i, resources: {{limits: {{memory: {limit}, cpu: 1}}}}}}");
            store.pod(&format!("{{containers: [{container}], volumes: [{{name: v, emptyDir: {{medium: Memory{size}}}}}]}}"))
        };
        let size = |pod: &DesiredPod| {
            store.prepare(pod).unwrap();
            tmpfs_bytes(&store.empty_dir(pod, "v"))
        };
        assert_eq!(size(&pod("64Mi", "")), 64 << 20, "the pod's limit");
        fs::write(store.empty_dir(&pod("64Mi", ""), "v").join("file"), "x").unwrap();
        assert_eq!(size(&pod("64Mi", ", sizeLimit: 8Mi")), 8 << 20, "the volume's own");
        assert_eq!(size(&pod("4Mi", ", sizeLimit: 8Mi")), 4 << 20, "the smaller");
        let unlimited = store.pod("{containers: [], volumes: [{name: v, emptyDir: {medium: Memory}}]}");
        assert_eq!(size(&unlimited), MEMORY, "all that pods may use");
        assert_eq!(size(&pod("1Gi", ", sizeLimit: 1Gi")), MEMORY, "no more than that");
        assert_eq!(store.mounted().len(), 1);
        assert!(store.empty_dir(&unlimited, "v").join("file").is_file(), "resizing keeps the data");
        let swap =
            |place: &Path| mounts().unwrap().into_iter().rfind(|mount| mount.point == place).unwrap().options.contains("noswap");
        let place = store.empty_dir(&unlimited, "v");
        assert_eq!(swap(&place), KernelFacts::probe(&Hierarchies::detect().unwrap()).unwrap().release >= (6, 4));
        // A volume of a version that did not ask for it is resized too.
        rustix::mount::unmount(&place, rustix::mount::UnmountFlags::empty()).unwrap();
        mount("tmpfs", &place, "tmpfs", MountFlags::empty(), c"size=1m").unwrap();
        assert_eq!((size(&pod("64Mi", "")), swap(&place)), (64 << 20, false));
    });
}

#[test]
fn a_changed_medium_takes_effect() {
    in_private_mounts("tests::a_changed_medium_takes_effect", || {
        let store = Store::new();
        let pod = |medium: &str| store.pod(&format!("{{containers: [], volumes: [{{name: v, emptyDir: {{medium: {medium}}}}}]}}"));
        store.prepare(&pod("Memory")).unwrap();
        let user = fs::File::create(store.empty_dir(&pod(""), "v").join("file")).unwrap();
        store.prepare(&pod("''")).unwrap();
        assert!(store.mounted().is_empty());
        drop(user);
        let error = store.prepare(&pod("HugePages")).unwrap_err();
        let expected = "volume \"v\": medium \"HugePages\" names no page size, and the pod does not limit exactly one";
        assert_eq!(error.to_string(), expected);
        for (medium, kind) in [("HugePages-2Mi", "hugetlbfs"), ("Memory", "tmpfs"), ("HugePages-2Mi", "hugetlbfs")] {
            store.prepare(&pod(medium)).unwrap();
            let place = fs::canonicalize(store.empty_dir(&pod(""), "v")).unwrap();
            let kinds: Vec<String> =
                mounts().unwrap().into_iter().filter(|mount| mount.point == place).map(|mount| mount.kind).collect();
            assert_eq!(kinds, [kind]);
        }
    });
}

#[test]
fn the_groups_of_a_pod_own_its_volumes() {
    in_private_mounts("tests::the_groups_of_a_pod_own_its_volumes", || {
        let store = Store::new();
        let volumes = "volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory}}]";
        let pod = store.pod(&format!("{{containers: [], {volumes}}}"));
        store.prepare(&pod).unwrap();
        let outside = store.root.path().join("outside");
        fs::write(&outside, "").unwrap();
        for name in ["disk", "memory"] {
            fs::create_dir(store.empty_dir(&pod, name).join("sub")).unwrap();
            fs::write(store.empty_dir(&pod, name).join("sub/file"), "").unwrap();
            symlink(&outside, store.empty_dir(&pod, name).join("link")).unwrap();
        }
        let grouped = store.pod(&format!("{{containers: [], securityContext: {{fsGroup: 4321}}, {volumes}}}"));
        store.prepare(&grouped).unwrap();
        for name in ["disk", "memory"] {
            let top = store.empty_dir(&pod, name);
            let seen = |path: &str| {
                let metadata = fs::metadata(top.join(path)).unwrap();
                (metadata.gid(), metadata.mode() & 0o7777)
            };
            assert_eq!(seen(""), (4321, 0o2777), "{name}");
            assert_eq!(seen("sub").0, 4321, "{name}");
            assert_eq!(seen("sub").1 & 0o2070, 0o2070, "{name}");
            assert_eq!((seen("sub/file").0, seen("sub/file").1 & 0o060), (4321, 0o060), "{name}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().gid(), 0, "no symlink is followed");
    });
}

#[test]
fn owners_and_modes_of_a_volume_that_is_ready_are_the_containers() {
    in_private_mounts("tests::owners_and_modes_of_a_volume_that_is_ready_are_the_containers", || {
        let store = Store::new();
        let of = |context: &str, medium: &str| {
            store.pod(&format!(
                "{{containers: [], securityContext: {{{context}}}, volumes: [{{name: v, emptyDir: {{medium: {medium}}}}}]}}"
            ))
        };
        for medium in ["''", "Memory"] {
            let pod = of("fsGroup: 4321", medium);
            store.prepare(&pod).unwrap();
            let top = store.empty_dir(&pod, "v");
            let seen = |path: &str| {
                let metadata = fs::metadata(top.join(path)).unwrap();
                (metadata.gid(), metadata.mode() & 0o7777)
            };
            assert_eq!(seen(""), (4321, 0o2777));
            fs::write(top.join("file"), "").unwrap();
            let close = || {
                for (path, mode) in [("file", 0o600), ("", 0o1700)] {
                    fs::set_permissions(top.join(path), fs::Permissions::from_mode(mode)).unwrap();
                }
            };
            close();
            store.prepare(&pod).unwrap();
            assert_eq!((seen(""), seen("file").1), ((4321, 0o1700), 0o600), "{medium}");
            // For another group it is prepared again, and so where a crash came before it was ready.
            store.prepare(&of("fsGroup: 99", medium)).unwrap();
            assert_eq!((seen(""), seen("file")), ((99, 0o3777), (99, 0o660)), "{medium}");
            close();
            fs::remove_file(top.with_extension("ready")).unwrap();
            store.prepare(&of("fsGroup: 99", medium)).unwrap();
            assert_eq!((seen(""), seen("file").1), ((99, 0o3777), 0o660), "{medium}");
        }
        // A new volume is prepared regardless of the note about the one that it replaces.
        let memory = of("fsGroup: 99", "Memory");
        let top = store.empty_dir(&memory, "v");
        rustix::mount::unmount(&top, rustix::mount::UnmountFlags::empty()).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o700)).unwrap();
        store.prepare(&memory).unwrap();
        assert_eq!(fs::metadata(&top).unwrap().mode() & 0o7777, 0o2777);
        store.prepare(&of("fsGroup: 99", "''")).unwrap();
        assert_eq!(fs::metadata(&top).unwrap().mode() & 0o7777, 0o2777);
        fs::remove_dir_all(&top).unwrap();
        store.prepare(&of("fsGroup: 99", "''")).unwrap();
        assert_eq!(fs::metadata(&top).unwrap().mode() & 0o7777, 0o2777);
    });
}

#[test]
fn a_container_gets_its_volumes_and_the_host_files_that_it_does_not_mount_itself() {
    in_private_mounts("tests::a_container_gets_its_volumes_and_the_host_files_that_it_does_not_mount_itself", || {
        let store = Store::new();
        let host = store.root.path().join("host");
        let spec = format!(
            "{{containers: {}, volumes: [{{name: data, emptyDir: {{}}}}, {{name: host, hostPath: {{path: {host:?}}}}}]}}",
            container(
                "{name: data, mountPath: /data}, {name: host, mountPath: /etc/hosts/, subPath: hosts, readOnly: true}, \
                 {name: data, mountPath: /logs, subPathExpr: logs/$(NAME), readOnly: true, recursiveReadOnly: Enabled}"
            )
        );
        let pod = store.pod(&spec);
        fs::create_dir(&host).unwrap();
        fs::write(host.join("hosts"), "mine").unwrap();
        store.prepare(&pod).unwrap();
        let mounts = store.mounts(&pod, 3).unwrap();
        let list: Vec<(&str, bool, bool)> = mounts
            .mounts
            .iter()
            .map(|mount| (mount.container_path.to_str().unwrap(), mount.read_only, mount.recursive_read_only))
            .collect();
        assert_eq!(
            list,
            [
                ("/data", false, false),
                ("/etc/hosts/", true, false),
                ("/logs", true, true),
                ("/etc/hostname", false, false),
                ("/etc/resolv.conf", false, false),
                ("/dev/termination-log", false, false),
            ]
        );
        let source = |at: &str| &mounts.mounts.iter().find(|mount| mount.container_path == Path::new(at)).unwrap().host_path;
        assert_eq!(fs::read(source("/etc/hosts/")).unwrap(), b"mine");
        assert_eq!(fs::read(source("/etc/hostname")).unwrap(), b"web-edge\n");
        assert_eq!(source("/dev/termination-log"), &mounts.termination_log);
        assert!(mounts.termination_log.ends_with("etc/termination.c.3"));
        fs::write(source("/logs").join("file"), "x").unwrap();
        assert!(store.empty_dir(&pod, "data").join("logs/web/file").is_file());
        assert_eq!(mounts.shm_size, None);
        store.remove(&pod).unwrap();
        assert_eq!(fs::read(host.join("hosts")).unwrap(), b"mine");
    });
}

#[test]
fn what_cannot_be_mounted_is_told_with_its_name_and_reason() {
    in_private_mounts("tests::what_cannot_be_mounted_is_told_with_its_name_and_reason", || {
        let store = Store::new();
        let volumes = "volumes: [{name: v, emptyDir: {}}, {name: h, hostPath: {path: /nowhere/at/all, type: Directory}}, \
                       {name: s, configMap: {name: x}}, {name: n, iscsi: {targetPortal: a, iqn: b, lun: 0}}]";
        let told = |mount: &str| {
            let pod = store.pod(&format!("{{containers: {}, {volumes}}}", container(mount)));
            store.mounts(&pod, 0).unwrap_err().to_string()
        };
        assert_eq!(told("{name: v, mountPath: /v}"), "volume \"v\": the directory of the emptyDir is missing");
        let plain = store.pod("{containers: [], volumes: [{name: v, emptyDir: {}}]}");
        store.prepare(&plain).unwrap();
        symlink("/etc", store.empty_dir(&plain, "v").join("out")).unwrap();
        assert_eq!(
            told("{name: v, mountPath: /v, subPath: out/passwd}"),
            "volume mount \"v\" of container c: subPath \"out/passwd\" points outside the volume through a symlink"
        );
        assert_eq!(
            told("{name: v, mountPath: /v, subPathExpr: $(NOPE)}"),
            "volume mount \"v\" of container c: subPathExpr \"$(NOPE)\" refers to the unset variable \"NOPE\""
        );
        assert_eq!(
            told("{name: h, mountPath: /h}"),
            "volume \"h\": hostPath \"/nowhere/at/all\" does not exist, expected a directory"
        );
        let unready = |mounts: &str| {
            store.prepare(&store.pod(&format!(
                "{{containers: {}, volumes: [{}]}}",
                container(mounts),
                "{name: v, emptyDir: {}}, {name: h, hostPath: {path: /nowhere/at/all, type: Directory}}"
            )))
        };
        let told_before = unready("{name: h, mountPath: /h}").unwrap_err().to_string();
        assert_eq!(told_before, "volume \"h\": hostPath \"/nowhere/at/all\" does not exist, expected a directory");
        unready("{name: v, mountPath: /v}").unwrap();
        assert_eq!(told("{name: s, mountPath: /s}"), "volume \"s\": its files are not written yet");
        assert_eq!(told("{name: n, mountPath: /n}"), "volume \"n\": volumes of this type are not supported");
        assert_eq!(told("{name: x, mountPath: /x}"), "volume mount \"x\" of container c: the pod has no such volume");
        let private = told("{name: v, mountPath: /v, mountPropagation: Bidirectional}");
        assert!(private.contains("but it is not a shared mount"), "{private}");
    });
}

#[test]
fn propagation_is_passed_on_where_the_hosts_mount_allows_it() {
    in_private_mounts("tests::propagation_is_passed_on_where_the_hosts_mount_allows_it", || {
        let store = Store::new();
        let host = store.root.path().join("host");
        fs::create_dir(&host).unwrap();
        mount("tmpfs", &host, "tmpfs", MountFlags::empty(), None).unwrap();
        let list = |propagation: &str| {
            let mounts = container(&format!("{{name: h, mountPath: /h, mountPropagation: {propagation}}}"));
            let pod = store.pod(&format!("{{containers: {mounts}, volumes: [{{name: h, hostPath: {{path: {host:?}}}}}]}}"));
            store.mounts(&pod, 0).map(|mounts| mounts.mounts[0].propagation)
        };
        assert_eq!(list("None").unwrap(), Propagation::Private);
        list("HostToContainer").unwrap_err();
        mount_change(&host, MountPropagationFlags::SHARED).unwrap();
        assert_eq!(list("HostToContainer").unwrap(), Propagation::HostToContainer);
        assert_eq!(list("Bidirectional").unwrap(), Propagation::Bidirectional);
        mount_change(&host, MountPropagationFlags::DOWNSTREAM).unwrap();
        list("Bidirectional").unwrap_err();
    });
}

#[test]
fn removal_unmounts_what_containers_mounted_and_deletes_nothing_of_the_hosts() {
    in_private_mounts("tests::removal_unmounts_what_containers_mounted_and_deletes_nothing_of_the_hosts", || {
        let store = Store::new();
        let host = store.root.path().join("host");
        fs::create_dir_all(host.join("sub")).unwrap();
        for file in ["kept", "sub/kept"] {
            fs::write(host.join(file), "x").unwrap();
        }
        let mounts =
            container("{name: h, mountPath: /h, subPath: sub}, {name: h, mountPath: /f, subPath: kept}, {name: m, mountPath: /m}");
        let pod = store.pod(&format!(
            "{{containers: {mounts}, volumes: [{{name: h, hostPath: {{path: {host:?}}}}}, {{name: m, emptyDir: {{medium: Memory}}}}, \
             {{name: d, emptyDir: {{}}}}]}}"
        ));
        store.prepare(&pod).unwrap();
        store.mounts(&pod, 0).unwrap();
        // A privileged container bound a directory of the host into its emptyDir, twice over each other, and left a symlink to it.
        let (memory, disk) = (store.empty_dir(&pod, "m"), store.empty_dir(&pod, "d"));
        for directory in [&memory, &disk] {
            fs::create_dir(directory.join("bound")).unwrap();
            symlink(&host, directory.join("link")).unwrap();
            for _ in 0..2 {
                podstead_sys::mounts::bind_descriptor(fs::File::open(&host).unwrap(), &directory.join("bound")).unwrap();
            }
        }
        assert_eq!(store.mounted().len(), 7);
        // Something keeps one of them busy.
        let user = fs::File::open(memory.join("bound/kept")).unwrap();
        store.remove(&pod).unwrap();
        drop(user);
        assert_eq!(store.mounted(), Vec::<PathBuf>::new());
        assert!(!store.paths.pod(&pod.uid).try_exists().unwrap());
        for file in ["kept", "sub/kept"] {
            assert_eq!(fs::read(host.join(file)).unwrap(), b"x");
        }
    });
}

#[test]
fn records_of_the_runtime_stay_when_volumes_go() {
    in_private_mounts("tests::records_of_the_runtime_stay_when_volumes_go", || {
        let store = Store::new();
        let pod = store.pod("{containers: [], volumes: [{name: v, emptyDir: {}}]}");
        store.prepare(&pod).unwrap();
        fs::write(store.paths.pod_record(&pod.uid), "{}").unwrap();
        store.remove(&pod).unwrap();
        assert!(store.paths.pod_record(&pod.uid).is_file());
        assert_eq!(store.list(), [], "a pod without volumes is not listed");
    });
}
