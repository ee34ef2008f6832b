//! Effects of the generated OCI spec on a process, on this kernel and through libcontainer, which ignores parts of a spec.

use super::harness::{Host, Node};
use podstead::pod::security::ALL_CAPABILITIES;
use podstead::sys::layout::Paths;
use podstead::sys::mounts::mounts;
use podstead::{
    container::{ContainerSpec, ContainerState, Mount, Propagation, SandboxSpec, SeccompProfile},
    runtime::{Runtime, StartError},
};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::fs;
use std::path::Path;

/// Runs a script in a container that `change` has changed; what it wrote, line by line.
async fn said(host: &Host, script: &str, change: impl FnOnce(&mut SandboxSpec, &mut ContainerSpec)) -> Vec<String> {
    let mut node = host.node();
    let mut pod = host.pod("seen");
    let mut container = host.container(&pod, "main", script);
    change(&mut pod, &mut container);
    node.runtime.create_sandbox(&pod).await.unwrap();
    node.runtime.start_container(&container).await.unwrap();
    let state = node.exited(&container).await;
    assert!(matches!(state, ContainerState::Exited { exit_code: 0, .. }), "{state:?}: {:?}", host.log(&container));
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    host.log(&container)
}

/// Writes `<name> yes` or `<name> no` for each shell condition.
fn conditions(conditions: &[(&str, &str)]) -> String {
    conditions
        .iter()
        .map(|(name, condition)| format!("if {condition}; then echo {name} yes; else echo {name} no; fi 2>/dev/null\n"))
        .collect()
}

fn granted(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_suffix(" yes")).collect()
}

const REACH: [(&str, &str); 10] = [
    ("write-sysctl", "echo 1 >/proc/sys/kernel/print-fatal-signals"),
    ("read-kcore", "test -n \"$(head -c 1 /proc/kcore)\""),
    ("see-timers", "test -s /proc/timer_list"),
    ("see-firmware", "test -n \"$(ls -A /sys/firmware)\""),
    ("write-sysfs", "mkdir /sys/kernel/mm/x || touch /sys/fs/cgroup/x"),
    ("make-cgroup", "mkdir /sys/fs/cgroup/x || mkdir /sys/fs/cgroup/memory/x || mkdir /sys/fs/cgroup/systemd/x"),
    ("mount", "mount -t tmpfs none /tmp"),
    ("see-disks", "ls /dev | grep -qE '^(vd|sd|nvme|loop)'"),
    ("open-new-device", "mknod /tmp/kmsg c 1 11 && head -c 1 /tmp/kmsg >/dev/null"),
    ("unshare", "unshare -m true"),
];

#[tokio::test(flavor = "multi_thread")]
async fn by_default_container_reaches_nothing_of_host() {
    let host = Host::new();
    let lines = said(&host, &conditions(&REACH), |_, _| {}).await;
    assert_eq!(lines.len(), REACH.len(), "{lines:?}");
    assert_eq!(granted(&lines), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn privileged_container_reaches_what_host_has() {
    let host = Host::new();
    let script = conditions(&[("mount", "mount -t tmpfs none /tmp"), ("null", "test -c /dev/null"), ("kmsg", "test -c /dev/kmsg")])
        + "grep CapEff /proc/self/status; grep Seccomp: /proc/self/status";
    let lines = said(&host, &script, |_, container| {
        container.security.privileged = true;
        container.security.capabilities = ALL_CAPABILITIES.map(str::to_owned).to_vec();
    })
    .await;
    let kmsg = fs::symlink_metadata("/dev/kmsg").is_ok();
    assert_eq!(granted(&lines), if kmsg { vec!["mount", "null", "kmsg"] } else { vec!["mount", "null"] }, "{lines:?}");
    let of_host = fs::read_to_string("/proc/self/status").unwrap();
    let bounding = of_host.lines().find_map(|line| line.strip_prefix("CapBnd:")).unwrap().trim();
    assert!(lines.contains(&format!("CapEff:\t{bounding}")), "{lines:?}");
    assert!(lines.contains(&"Seccomp:\t0".to_owned()), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unmasked_proc_shows_proc_and_nothing_else() {
    let host = Host::new();
    let lines = said(&host, &conditions(&REACH), |_, container| container.security.unmasked_proc = true).await;
    // Whether the files that are no longer masked hold something is the kernel's affair.
    let granted = granted(&lines);
    assert!(granted.contains(&"write-sysctl"), "{granted:?}");
    assert!(!granted.iter().any(|name| ["make-cgroup", "mount", "open-new-device", "see-disks"].contains(name)), "{granted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn localhost_profile_comes_from_its_directory() {
    let host = Host::new();
    let profiles = Paths::seccomp_profiles(host.paths());
    fs::create_dir_all(profiles.join("sub")).unwrap();
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 122}]}"#;
    fs::write(profiles.join("sub/no-mkdir.json"), profile).unwrap();
    let lines = said(&host, "mkdir /tmp/x 2>&1; true", |_, container| {
        container.security.seccomp = SeccompProfile::Localhost("sub/no-mkdir.json".into());
    })
    .await;
    assert!(lines[0].contains("Disk quota exceeded") || lines[0].contains("Quota exceeded"), "{lines:?}");

    let node = host.node();
    let pod = host.pod("missing");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "true");
    container.security.seccomp = SeccompProfile::Localhost("absent.json".into());
    match node.runtime.start_container(&container).await {
        Err(StartError::Create(reason)) => assert!(reason.contains("absent.json"), "{reason}"),
        other => panic!("{other:?}"),
    }
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
}

/// A directory of the host, shared with whoever asks for it, on which `inner` is a place for a further mount.
fn shared_directory(host: &Host) -> std::path::PathBuf {
    let directory = host.root().join("shared");
    fs::create_dir(&directory).unwrap();
    mount("tmpfs", &directory, "tmpfs", MountFlags::empty(), None).unwrap();
    mount_change(&directory, MountPropagationFlags::SHARED).unwrap();
    fs::create_dir(directory.join("inner")).unwrap();
    directory
}

async fn started(node: &Node, host: &Host, directory: &Path, propagation: Propagation) -> (SandboxSpec, ContainerSpec) {
    let pod = host.pod("travel");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "while :; do sleep 0.05; done");
    container.security.privileged = true;
    container.security.capabilities = ALL_CAPABILITIES.map(str::to_owned).to_vec();
    let other = host.root().join("other");
    fs::create_dir_all(&other).unwrap();
    let bind = |host_path: &Path, container_path: &str, propagation| Mount {
        host_path: host_path.to_owned(),
        container_path: container_path.into(),
        read_only: false,
        recursive_read_only: false,
        no_exec: false,
        propagation,
        pinned: None,
    };
    container.mounts = vec![bind(&other, "/other", Propagation::Private), bind(directory, "/vol", propagation)];
    node.runtime.start_container(&container).await.unwrap();
    (pod, container)
}

fn is_mounted(path: &Path) -> bool {
    let real = fs::canonicalize(path).unwrap();
    mounts().unwrap().iter().any(|mount| mount.point == real)
}

#[tokio::test(flavor = "multi_thread")]
async fn mount_propagation_follows_the_volume_mount() {
    for (propagation, in_container, on_host) in [
        (Propagation::Private, false, false),
        (Propagation::HostToContainer, true, false),
        (Propagation::Bidirectional, true, true),
    ] {
        let host = Host::new();
        let node = host.node();
        let directory = shared_directory(&host);
        let (pod, container) = started(&node, &host, &directory, propagation).await;

        mount("tmpfs", directory.join("inner"), "tmpfs", MountFlags::empty(), None).unwrap();
        fs::write(directory.join("inner/of-host"), "").unwrap();
        let (_, _, code) = node.exec(&container, &["/bin/cat", "/vol/inner/of-host"]).await;
        assert_eq!(code == Some(0), in_container, "{propagation:?}: host to container");

        let (_, error, code) = node.exec(&container, &["/bin/sh", "-c", "mkdir /vol/own && mount -t tmpfs none /vol/own"]).await;
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(is_mounted(&directory.join("own")), on_host, "{propagation:?}: container to host");

        // What is mounted elsewhere in the container never leaves it.
        let (_, error, code) =
            node.exec(&container, &["/bin/sh", "-c", "mkdir /other/own && mount -t tmpfs none /other/own"]).await;
        assert_eq!(code, Some(0), "{error}");
        assert!(!is_mounted(&host.root().join("other/own")), "{propagation:?}");
        node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    }
}
