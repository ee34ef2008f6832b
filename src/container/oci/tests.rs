//! Golden specs: a default container whole, every other by what it changes in it.

use super::places::Bind;
use super::*;
use crate::kernel::{HostDevice, KernelFacts};
use crate::{BoundDirectory, CgroupResources, ContainerKind, Mount, ProcessUser, Propagation, ResolvedImage, Security};
use podstead_pod::security::{ALL_CAPABILITIES, DEFAULT_CAPABILITIES};
use podstead_pod::{ContainerId, ContainerName, PodFullName, PodUid};
use serde_json::{Value, json};

fn container() -> ContainerSpec {
    ContainerSpec {
        pod: PodUid::new("uid"),
        sandbox_attempt: 0,
        full_name: PodFullName { name: "web-node".into(), namespace: "default".into() },
        id: ContainerId::new("0123456789abcdef0123456789abcdef"),
        name: ContainerName::new("web"),
        kind: ContainerKind::Main,
        attempt: 0,
        hash: "h".into(),
        image_ref: "nginx".into(),
        image: ResolvedImage {
            digest: "sha256:0".into(),
            layers: Vec::new(),
            config: Default::default(),
            lease: Default::default(),
        },
        args: vec!["/bin/sh".into(), "-c".into(), "sleep 1".into()],
        env: vec!["PATH=/usr/bin:/bin".into()],
        cwd: "/work".into(),
        user: ProcessUser { uid: 0, gid: 0, additional_gids: vec![10] },
        mounts: vec![volume("/var/lib/podstead/pods/uid/etc/hosts", "/etc/hosts")],
        shm_size: None,
        security: Security {
            privileged: false,
            capabilities: DEFAULT_CAPABILITIES.map(str::to_owned).to_vec(),
            no_new_privileges: false,
            read_only_root: false,
            unmasked_proc: false,
            seccomp: SeccompProfile::RuntimeDefault,
            apparmor: None,
        },
        resources: CgroupResources { cpu_shares: Some(2), ..CgroupResources::default() },
        declared: Default::default(),
        devices: Default::default(),
        oom_score_adj: 1000,
        log_path: "/var/log/pods/x/web/0.log".into(),
        termination_log: None,
        fallback_to_logs: false,
        tty: false,
        stdin: false,
        stdin_once: false,
        stop_signal: 15,
        grace_secs: 30,
        always_restarts: false,
        shutdown: Default::default(),
    }
}

fn volume(host_path: &str, container_path: &str) -> Mount {
    Mount {
        host_path: host_path.into(),
        container_path: container_path.into(),
        read_only: false,
        recursive_read_only: false,
        no_exec: false,
        propagation: Propagation::Private,
        pinned: None,
    }
}

fn sandbox() -> SandboxView {
    let pin = |name: &str| Some(PathBuf::from("/run/podstead/pods/uid/ns").join(name));
    SandboxView {
        namespaces: PodNamespaces::default(),
        net: pin("net"),
        ipc: pin("ipc"),
        uts: pin("uts"),
        user: None,
        pid: None,
        cgroup: "/podstead.slice/besteffort/poduid".into(),
        cgroup_mounts: Vec::new(),
        dev_shm: None,
        binds: Vec::new(),
        rootfs: "rootfs".into(),
        facts: KernelFacts {
            cgroup: CgroupVersion::V2,
            release: (6, 1),
            apparmor: true,
            capabilities: u64::MAX,
            oom_score_adj_floor: None,
            swap_accounting: true,
        },
        huge_page_sizes: Vec::new(),
        host_devices: vec![HostDevice { path: "/dev/sda".into(), block: true, major: 8, minor: 0, mode: 0o660, uid: 0, gid: 6 }],
        localhost_seccomp: None,
    }
}

/// The spec as JSON, with capability sets in order (they are hash sets) and a seccomp filter in one word.
fn json_of(spec: &ContainerSpec, sandbox: &SandboxView) -> Value {
    let mut value = serde_json::to_value(oci_spec(spec, sandbox).unwrap()).unwrap();
    for set in value["process"]["capabilities"].as_object_mut().unwrap().values_mut() {
        set.as_array_mut().unwrap().sort_by_key(Value::to_string);
    }
    if let Some(filter) = value["linux"].get_mut("seccomp") {
        *filter = json!(format!("{} rules", filter["syscalls"].as_array().unwrap().len()));
    }
    value
}

/// Differences between `base` and `changed`, as `path: before -> after` lines.
fn differences(base: &Value, changed: &Value, path: &str, found: &mut Vec<String>) {
    match (base, changed) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differences(&base[key.as_str()], &changed[key.as_str()], &format!("{path}.{key}"), found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let only = |these: &[Value], those: &[Value]| -> Vec<String> {
                these.iter().filter(|value| !those.contains(value)).map(Value::to_string).collect()
            };
            found.extend(only(a, b).iter().map(|value| format!("{path}: - {value}")));
            found.extend(only(b, a).iter().map(|value| format!("{path}: + {value}")));
        }
        _ if base == changed => {}
        _ => found.push(format!("{path}: {base} -> {changed}")),
    }
}

/// Effect of a change of container and sandbox on the default spec.
fn effect(change: impl FnOnce(&mut ContainerSpec, &mut SandboxView)) -> Vec<String> {
    let (mut spec, mut view) = (container(), sandbox());
    let base = json_of(&spec, &view);
    change(&mut spec, &mut view);
    let mut found = Vec::new();
    differences(&base, &json_of(&spec, &view), "", &mut found);
    found
}

#[test]
fn the_default_container_has_what_containerd_gives_it() {
    insta::assert_json_snapshot!("default", json_of(&container(), &sandbox()));
}

#[test]
fn a_privileged_container_has_all_devices_and_capabilities_and_neither_masks_nor_filter() {
    let effect = effect(|spec, _| {
        spec.security.privileged = true;
        spec.security.capabilities = ALL_CAPABILITIES.map(str::to_owned).to_vec();
    });
    insta::assert_json_snapshot!("privileged", effect);
}

#[test]
fn the_hosts_namespaces_are_those_that_are_not_listed() {
    let kinds = |namespaces: PodNamespaces| -> Vec<String> {
        let mut view = sandbox();
        view.namespaces = namespaces;
        view.pid = Some("/run/podstead/pods/uid/ns/pid".into());
        let spec = oci_spec(&container(), &view).unwrap();
        let linux = spec.linux().as_ref().unwrap();
        linux.namespaces().iter().flatten().map(|ns| format!("{} {}", ns.typ(), ns.path().is_some())).collect()
    };
    let none = PodNamespaces::default();
    assert_eq!(kinds(none), ["mnt false", "net true", "uts true", "ipc true", "pid false", "cgroup false"]);
    assert_eq!(kinds(PodNamespaces { host_network: true, ..none }), ["mnt false", "ipc true", "pid false", "cgroup false"]);
    assert_eq!(kinds(PodNamespaces { host_pid: true, ..none }), ["mnt false", "net true", "uts true", "ipc true", "cgroup false"]);
    assert_eq!(kinds(PodNamespaces { share_process: true, ..none })[4], "pid true");
    let all = PodNamespaces { host_network: true, host_pid: true, host_ipc: true, share_process: false };
    assert_eq!(kinds(all), ["mnt false", "cgroup false"]);
}

#[test]
fn a_missing_namespace_is_an_error_and_never_the_hosts() {
    let mut view = sandbox();
    view.net = None;
    assert_eq!(oci_spec(&container(), &view).unwrap_err().to_string(), "the sandbox has no net namespace");
    view = sandbox();
    view.namespaces.share_process = true;
    assert_eq!(oci_spec(&container(), &view).unwrap_err().to_string(), "the sandbox has no pid namespace");
}

#[test]
fn shared_pid_namespace_on_v1_has_groups_bound() {
    let mut view = sandbox();
    view.namespaces.share_process = true;
    view.pid = Some("/run/podstead/pods/uid/ns/pid".into());
    view.facts.cgroup = CgroupVersion::V1;
    view.cgroup_mounts = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu,cpuacct"].map(PathBuf::from).to_vec();
    let spec = oci_spec(&container(), &view).unwrap();
    let below = |mount: &&oci_spec::runtime::Mount| mount.destination().starts_with("/sys/fs/cgroup");
    let told = |mount: &oci_spec::runtime::Mount| {
        let source = mount.source().as_ref().unwrap().display().to_string();
        format!("{} {} {source}", mount.destination().display(), mount.typ().as_deref().unwrap())
    };
    let mounts: Vec<String> = spec.mounts().iter().flatten().filter(below).map(told).collect();
    let group = "podstead.slice/besteffort/poduid/0123456789abcdef0123456789abcdef";
    assert_eq!(
        mounts,
        [
            "/sys/fs/cgroup tmpfs tmpfs".to_owned(),
            format!("/sys/fs/cgroup/memory bind /sys/fs/cgroup/memory/{group}"),
            format!("/sys/fs/cgroup/cpu,cpuacct bind /sys/fs/cgroup/cpu,cpuacct/{group}"),
            format!("/sys/fs/cgroup/cpu bind /sys/fs/cgroup/cpu,cpuacct/{group}"),
            format!("/sys/fs/cgroup/cpuacct bind /sys/fs/cgroup/cpu,cpuacct/{group}"),
        ]
    );
    view.namespaces = PodNamespaces::default();
    let spec = oci_spec(&container(), &view).unwrap();
    let mounts: Vec<String> = spec.mounts().iter().flatten().filter(below).map(told).collect();
    assert_eq!(mounts, ["/sys/fs/cgroup cgroup cgroup"]);
}

#[test]
fn the_hosts_ipc_brings_the_hosts_shared_memory() {
    let effect = effect(|_, view| {
        view.namespaces.host_ipc = true;
        view.dev_shm = Some("/dev/shm".into());
    });
    assert_eq!(
        effect,
        [
            r#".linux.namespaces: - {"path":"/run/podstead/pods/uid/ns/ipc","type":"ipc"}"#,
            r#".mounts: - {"destination":"/dev/shm","options":["nosuid","noexec","nodev","mode=1777","size=67108864"],"source":"tmpfs","type":"tmpfs"}"#,
            r#".mounts: + {"destination":"/dev/shm","options":["rbind"],"source":"/dev/shm","type":"bind"}"#,
        ]
    );
}

#[test]
fn limits_become_resources() {
    let limited = |spec: &mut ContainerSpec| {
        spec.resources = CgroupResources {
            cpu_shares: Some(512),
            cpu_quota_us: Some(50_000),
            cpu_period_us: None,
            memory_limit: Some(64 << 20),
            pids_limit: Some(100),
            hugepages: vec![("2MB".into(), 4 << 20)],
        };
    };
    assert_eq!(
        effect(|spec, _| limited(spec)),
        [
            r#".linux.resources.cpu.period: null -> 100000"#,
            r#".linux.resources.cpu.quota: null -> 50000"#,
            r#".linux.resources.cpu.shares: 2 -> 512"#,
            r#".linux.resources.hugepageLimits: null -> [{"limit":4194304,"pageSize":"2MB"}]"#,
            r#".linux.resources.memory: null -> {"limit":67108864,"swap":67108864}"#,
            r#".linux.resources.pids: null -> {"limit":100}"#,
        ]
    );
    let on_a_host_with_pages = effect(|spec, view| {
        limited(spec);
        view.huge_page_sizes = ["1GB", "2MB"].map(str::to_owned).to_vec();
    });
    let pages = r#".linux.resources.hugepageLimits: null -> [{"limit":4194304,"pageSize":"2MB"},{"limit":0,"pageSize":"1GB"}]"#;
    assert!(on_a_host_with_pages.contains(&pages.to_owned()), "{on_a_host_with_pages:?}");
    let without_swap = effect(|spec, view| {
        limited(spec);
        view.facts.swap_accounting = false;
    });
    assert!(without_swap.contains(&r#".linux.resources.memory: null -> {"limit":67108864}"#.to_owned()), "{without_swap:?}");
}

#[test]
fn the_user_and_its_groups_are_numbers_and_the_primary_group_is_listed() {
    let effect = effect(|spec, _| spec.user = ProcessUser { uid: 1000, gid: 2000, additional_gids: vec![3000] });
    assert_eq!(
        effect,
        [
            ".process.user.additionalGids: - 0",
            ".process.user.additionalGids: - 10",
            ".process.user.additionalGids: + 2000",
            ".process.user.additionalGids: + 3000",
            ".process.user.gid: 0 -> 2000",
            ".process.user.uid: 0 -> 1000",
        ]
    );
}

#[test]
fn each_switch_of_the_security_context_changes_its_part_only() {
    assert_eq!(effect(|spec, _| spec.security.no_new_privileges = true), [".process.noNewPrivileges: null -> true"]);
    assert_eq!(effect(|spec, _| spec.security.read_only_root = true), [".root.readonly: false -> true"]);
    assert_eq!(effect(|spec, _| spec.security.apparmor = Some("mine".into())), [r#".process.apparmorProfile: null -> "mine""#]);
    assert_eq!(effect(|spec, _| spec.tty = true), [".process.terminal: false -> true"]);
    let unconfined = effect(|spec, _| spec.security.seccomp = SeccompProfile::Unconfined);
    assert!(unconfined.len() == 1 && unconfined[0].starts_with(".linux.seccomp: "), "{unconfined:?}");
    let unmasked = effect(|spec, _| spec.security.unmasked_proc = true);
    assert!(
        unmasked.len() == 2 && unmasked[0].starts_with(".linux.maskedPaths: ") && unmasked[1].ends_with("-> null"),
        "{unmasked:?}"
    );
    let dropped = effect(|spec, _| spec.security.capabilities = vec!["CAP_CHOWN".into()]);
    assert!(
        dropped.iter().all(|line| line.starts_with(".process.capabilities.") || line.starts_with(".linux.seccomp")),
        "{dropped:?}"
    );
}

#[test]
fn what_the_kernel_lacks_is_refused_or_met_half_way() {
    let mut spec = container();
    let mut view = sandbox();
    view.facts.apparmor = false;
    view.facts.oom_score_adj_floor = Some(500);
    spec.oom_score_adj = -997;
    assert_eq!(json_of(&spec, &view)["process"]["oomScoreAdj"], json!(500));
    spec.security.apparmor = Some("mine".into());
    let refused = oci_spec(&spec, &view).unwrap_err().to_string();
    assert_eq!(refused, "AppArmor profile \"mine\" cannot be used: AppArmor is not enabled on this host");
}

#[test]
fn version_1_of_cgroups_has_no_namespace_of_its_own() {
    let effect = effect(|_, view| view.facts.cgroup = CgroupVersion::V1);
    assert_eq!(effect[0], r#".linux.namespaces: - {"type":"cgroup"}"#);
    assert!(effect.contains(&r#".linux.readonlyPaths: + "/sys/fs/cgroup/memory""#.to_owned()), "{effect:?}");
    assert_eq!(effect.last().unwrap(), r#".linux.resources.unified: {"memory.oom.group":"1"} -> null"#);
}

#[test]
fn a_localhost_profile_is_the_filter_or_an_error() {
    let mut spec = container();
    spec.security.seccomp = SeccompProfile::Localhost("mine.json".into());
    let mut view = sandbox();
    assert_eq!(oci_spec(&spec, &view).unwrap_err().to_string(), "seccomp profile \"mine.json\" was not loaded");
    let profile = br#"{ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{ "names": ["reboot"], "action": "SCMP_ACT_ERRNO" }] }"#;
    view.localhost_seccomp = Some(parse_profile(profile).unwrap());
    assert_eq!(json_of(&spec, &view)["linux"]["seccomp"], json!("1 rules"));
}

#[test]
fn binds_replace_defaults_and_follow_their_parents() {
    let mut view = sandbox();
    let bind = |source: &str, place: &str| Bind { source: source.into(), place: place.into() };
    view.binds =
        vec![bind("/v/0", "/dev/deep/b"), bind("/v/1", "/dev/shm"), bind("/v/2", "/sys/fs/cgroup"), bind("/v/3", "/dev/x")];
    let value = json_of(&container(), &view);
    let mounts: Vec<String> = value["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .skip(5)
        .map(|mount| format!("{} {} {}", mount["destination"].as_str().unwrap(), mount["source"], mount["options"]))
        .collect();
    assert_eq!(
        mounts,
        [
            r#"/dev/shm "/v/1" ["rbind"]"#,
            r#"/dev/x "/v/3" ["rbind"]"#,
            r#"/dev/deep/b "/v/0" ["rbind"]"#,
            r#"/sys/fs/cgroup "/v/2" ["rbind"]"#,
        ]
    );
}

#[test]
fn volumes_decide_how_mounts_travel_in_the_container() {
    let mut spec = container();
    assert_eq!(json_of(&spec, &sandbox())["linux"]["rootfsPropagation"], json!("private"));
    spec.mounts.push(Mount { propagation: Propagation::HostToContainer, ..volume("/h/s", "/slave") });
    assert_eq!(json_of(&spec, &sandbox())["linux"]["rootfsPropagation"], json!("slave"));
    spec.mounts.push(Mount { propagation: Propagation::Bidirectional, ..volume("/h/x", "/x") });
    assert_eq!(json_of(&spec, &sandbox())["linux"]["rootfsPropagation"], json!("shared"));
}

#[test]
fn the_hosts_dev_is_never_handed_to_libcontainer() {
    let device = HostDevice { path: "/dev/kmsg".into(), block: false, major: 1, minor: 11, mode: 0o644, uid: 0, gid: 0 };
    let change = |place: &'static str| {
        let device = device.clone();
        effect(move |spec, view| {
            spec.security.privileged = true;
            spec.mounts.push(volume("/dev", place));
            view.host_devices = vec![device];
        })
    };
    let (on_dev, elsewhere) = (change("/dev").join("\n"), change("/else").join("\n"));
    assert!(elsewhere.contains("/dev/kmsg"), "{elsewhere}");
    assert!(!on_dev.contains(r#""source":"/dev""#) && !on_dev.contains("/dev/kmsg"), "{on_dev}");
    let mut spec = container();
    spec.mounts.push(volume("/dev", "/dev"));
    let value = json_of(&spec, &sandbox());
    assert_eq!(value["mounts"][1]["destination"], json!("/dev"));
    assert_eq!(value["mounts"][1]["type"], json!("tmpfs"));
}

#[test]
fn what_a_container_has_below_dev_comes_into_the_volume_at_dev() {
    let plan = |change: &dyn Fn(&mut ContainerSpec)| {
        let mut spec = container();
        spec.mounts.push(volume("/dev", "/dev/."));
        change(&mut spec);
        dev::dev_volume(&spec).map(|found| {
            let found = found.unwrap();
            let inner: Vec<String> =
                found.inner.iter().map(|inner| format!("{} {:?}", inner.path.display(), inner.origin)).collect();
            (found.index, inner.join(", "))
        })
    };
    assert_eq!(dev::dev_volume(&container()).unwrap(), None);
    assert_eq!(plan(&|_| {}).unwrap(), (1, "pts Default, mqueue Default, shm Default".to_owned()));
    let all = plan(&|spec| {
        spec.tty = true;
        spec.termination_log = Some("/h/log".into());
        for (source, place) in
            [("/h/a", "/dev/shm/a/b"), ("/h/b", "/dev/x/y"), ("/h/c", "/dev/x"), ("/h/log", "/dev/termination-log")]
        {
            spec.mounts.push(volume(source, place));
        }
    });
    let expected = "x Named, termination-log TerminationLog, pts Default, mqueue Default, shm Default, console Default";
    assert_eq!(all.unwrap().1, expected, "what lies below another comes with it");
    let own = plan(&|spec| spec.mounts.push(volume("/h/a", "/dev/shm"))).unwrap();
    assert_eq!(own.1, "shm Named, pts Default, mqueue Default");
    let shared = plan(&|spec| spec.mounts[1].propagation = Propagation::Bidirectional);
    assert!(matches!(shared, Err(OciError::DevShared(_))), "{shared:?}");
    let device = BoundDirectory { host_path: "/dev".into(), container_path: "/dev".into(), options: Vec::new() };
    let of_device = plan(&|spec| spec.devices.mounts.push(device.clone()));
    assert!(matches!(of_device, Err(OciError::DevOfDevice)), "{of_device:?}");
}

#[test]
fn the_hosts_dev_gets_no_more_than_the_file_for_the_termination_message() {
    use dev::{Missing, Origin};
    let decide = |is_the_hosts| [Origin::Default, Origin::Named, Origin::TerminationLog].map(|it| it.when_missing(is_the_hosts));
    assert_eq!(decide(true), [Missing::LeaveOut, Missing::Refuse, Missing::Make]);
    assert_eq!(decide(false), [Missing::Make; 3]);
}

#[test]
fn shared_memory_is_the_pods_where_it_has_one() {
    let shared = effect(|_, view| view.dev_shm = Some("/run/podstead/pods/uid/shm".into()));
    assert!(shared[1].contains(r#""source":"/run/podstead/pods/uid/shm""#), "{shared:?}");
    let sized = effect(|spec, _| spec.shm_size = Some(1 << 20));
    assert!(sized[1].contains("size=1048576"), "{sized:?}");
}

#[test]
fn the_same_arguments_give_the_same_spec() {
    assert_eq!(json_of(&container(), &sandbox()), json_of(&container(), &sandbox()));
}
