//! Confinement of containers, and of processes that run in them later.

use super::harness::{Host, make_privileged};
use podstead::{
    container::{ContainerState, ProcessUser},
    runtime::Runtime,
};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn exec_is_confined_as_the_container_is() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("confined");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "sleep 1000");
    container.user = ProcessUser { uid: 33, gid: 34, additional_gids: vec![50] };
    container.security.capabilities = vec!["CAP_CHOWN".to_owned()];
    container.security.no_new_privileges = true;
    container.cwd = "/tmp".into();
    node.runtime.start_container(&container).await.unwrap();
    let facts = r#"grep -E "^(Uid|Gid|Groups|CapBnd|CapEff|CapPrm|NoNewPrivs|Seccomp|SigBlk):" /proc/$1/status
        for ns in mnt net ipc uts pid cgroup; do readlink /proc/$1/ns/$ns; done; cat /proc/$1/cgroup /proc/$1/oom_score_adj; readlink /proc/$1/cwd"#;
    let (first, _, _) = node.exec(&container, &["sh", "-c", facts, "sh", "1"]).await;
    let (exec, errors, _) = node.exec(&container, &["sh", "-c", facts, "sh", "self"]).await;
    // `self` is the reader of each file: a child of the process that exec made.
    assert_eq!(exec, first, "{errors}");
    assert!(first.contains("Seccomp:\t2") && first.contains("NoNewPrivs:\t1"), "{first}");
}

/// The attack of CVE-2019-5736: keep hold of a runtime's binary by `/proc/<pid>/exe` until it does not run any more, then open it for
/// writing. A kernel says "busy" as long as it runs, so the test waits for its end, too.
#[tokio::test(flavor = "multi_thread")]
async fn runtime_binary_cannot_be_overwritten() {
    let mut host = Host::new();
    let own = host.root().join("podstead-shim");
    fs::copy(&host.options.shim_binary, &own).unwrap();
    host.options.shim_binary.clone_from(&own);
    let mut node = host.node();
    let pod = host.pod("hostile");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    // A container whose program is what executes it: the helper's binary, now running inside of the container.
    std::os::unix::fs::symlink("/proc/self/exe", host.layer().join("bin/attack")).unwrap();
    let mut container = host.container(&pod, "main", "");
    // It waits there for a configuration that never comes.
    nix::unistd::mkfifo(&host.layer().join("never"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    container.args = ["/bin/attack", "pod", "/never", "pod"].map(str::to_owned).to_vec();
    make_privileged(&mut container);
    node.runtime.start_container(&container).await.unwrap();
    let attack = match node.status(&container).await.state {
        ContainerState::Running { pid, .. } => pid,
        other => panic!("{other:?}"),
    };
    let held = [shim, attack].map(|pid| fs::File::open(format!("/proc/{pid}/exe")).unwrap());
    node.runtime.kill_container(&pod.uid, &container.id).await.unwrap();
    node.exited(&container).await;
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();

    fs::OpenOptions::new().write(true).open(&own).expect("the file itself is neither busy nor read-only");
    for file in held {
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let error = fs::OpenOptions::new().write(true).open(path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EROFS), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descriptor_of_runtime_reaches_process() {
    let host = Host::new();
    let mut node = host.node();
    let (_, container) = node.run(&host, "descriptors", "ls /proc/self/fd; echo end; sleep 1000").await;
    super::harness::eventually("it has listed", || host.log(&container).last().is_some_and(|line| line == "end")).await;
    // 3 is the directory that ls reads.
    assert_eq!(host.log(&container), ["0", "1", "2", "3", "end"]);
    let (output, _, _) = node.exec(&container, &["ls", "/proc/self/fd"]).await;
    assert_eq!(output, "0\n1\n2\n3\n");
    node.runtime.kill_container(&container.pod, &container.id).await.unwrap();
    node.exited(&container).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_of_host_are_out_of_reach() {
    let host = Host::new();
    let mut node = host.node();
    let script = "mknod /tmp/disk b 254 0 || echo no-node; dd if=/tmp/disk of=/dev/null count=1 2>&1 | grep -o 'Operation not permitted'; echo x > /dev/null && echo null";
    let (_, container) = node.run(&host, "devices", script).await;
    node.exited(&container).await;
    assert_eq!(host.log(&container), ["Operation not permitted", "null"]);
}
