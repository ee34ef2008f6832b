//! Namespaces, host name, shared memory, sysctls, cgroup limits, sandboxes made again.

use super::harness::{Host, outcome, processes_naming};
use podstead::telemetry::error_chain;
use podstead::{container::SandboxState, runtime::Runtime};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn containers_of_pod_share_their_namespaces() {
    let host = Host::new();
    let mut node = host.node();
    let mut pod = host.pod("shared");
    pod.sysctls = vec![("net.ipv4.ip_unprivileged_port_start".to_owned(), "80".to_owned())];
    let sandbox = node.runtime.create_sandbox(&pod).await.unwrap();
    let netns = sandbox.netns.unwrap();
    let first = host.container(&pod, "first", "echo from-first > /dev/shm/note; readlink /proc/self/ns/net; sleep 1000");
    node.runtime.start_container(&first).await.unwrap();
    let script = "while ! [ -e /dev/shm/note ]; do sleep 0.01; done; cat /dev/shm/note; readlink /proc/self/ns/net; \
                  hostname; sysctl -n net.ipv4.ip_unprivileged_port_start; readlink /proc/self/ns/pid";
    let second = host.container(&pod, "second", script);
    node.runtime.start_container(&second).await.unwrap();
    assert_eq!(outcome(&node.exited(&second).await), (0, None, false));
    super::harness::eventually("the first one has told its namespace", || !host.log(&first).is_empty()).await;
    let (first_log, second_log) = (host.log(&first), host.log(&second));
    assert_eq!(second_log[..4], ["from-first", &first_log[0], "shared", "80"]);
    let pinned = std::os::unix::fs::MetadataExt::ino(&fs::metadata(netns).unwrap());
    assert_eq!(first_log[0], format!("net:[{pinned}]"));
    assert_ne!(first_log[0], fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap());
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

/// The group of a process in each hierarchy that is mounted, by the line of its file in `/proc`.
fn groups_in(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn shim_and_processes_are_in_their_groups_in_each_hierarchy() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("groups");
    let shim = node.runtime.create_sandbox(&pod).await.unwrap().shim_pid.unwrap();
    let own = host.cgroups().shim(&pod.uid).display().to_string();
    let groups = groups_in(&fs::read_to_string(format!("/proc/{shim}/cgroup")).unwrap());
    assert_eq!(groups.iter().filter(|group| **group != own).collect::<Vec<_>>(), Vec::<&String>::new(), "the shim is in {own}");
    let container = host.container(&pod, "main", "cat /proc/self/cgroup; sleep 1000");
    node.runtime.start_container(&container).await.unwrap();
    let (executed, errors, code) = node.exec(&container, &["cat", "/proc/self/cgroup"]).await;
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    super::harness::eventually("the first process has told its groups", || host.log(&container).len() == groups.len()).await;
    let of_first = groups_in(&host.log(&container).join("\n"));
    // The root is the container's group in a namespace of its own.
    assert!(of_first.iter().any(|group| group == "/" || group.ends_with(container.id.as_str())), "{of_first:?}");
    assert_eq!(groups_in(&executed), of_first, "the executed process is where the first one is");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_may_use_namespaces_of_host() {
    let host = Host::new();
    let mut node = host.node();
    let mut pod = host.pod("hosts");
    pod.namespaces.host_network = true;
    pod.namespaces.host_pid = true;
    pod.namespaces.host_ipc = true;
    let sandbox = node.runtime.create_sandbox(&pod).await.unwrap();
    assert_eq!(sandbox.netns, None);
    let script = "for ns in net ipc uts pid; do readlink /proc/self/ns/$ns; done; sleep 1000 & exit 4";
    let container = host.container(&pod, "main", script);
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (4, None, false));
    let own = ["net", "ipc", "uts", "pid"].map(|ns| fs::read_link(format!("/proc/self/ns/{ns}")).unwrap());
    assert_eq!(host.log(&container), own.map(|link| link.to_str().unwrap().to_owned()));
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new(), "what it left in the background is dead too");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_pid_namespace_has_a_reaper() {
    let host = Host::new();
    let mut node = host.node();
    let mut pod = host.pod("processes");
    pod.namespaces.share_process = true;
    node.runtime.create_sandbox(&pod).await.unwrap();
    let first = host.container(&pod, "first", "sleep 1234");
    node.runtime.start_container(&first).await.unwrap();
    let script = "ps -o pid,args; ls /proc/1/root/ 2>&1; (sleep 0.05 & exit 0); sleep 0.3; n=0; while ps -o stat | grep -q Z && [ $n -lt 300 ]; do \
         n=$((n+1)); sleep 0.1; done; ps -o stat | grep -c Z; kill -9 1; echo survived";
    let mut second = host.container(&pod, "second", script);
    second.security.capabilities.push("CAP_SYS_PTRACE".to_owned());
    node.runtime.start_container(&second).await.unwrap();
    assert_eq!(outcome(&node.exited(&second).await), (0, None, false));
    let log = host.log(&second).join("\n");
    assert!(log.contains("podstead-shim init\n"), "{log}");
    assert!(log.contains("sleep 1234"), "{log}");
    assert!(!log.contains("etc"), "the root of process 1 is empty: {log}");
    assert!(log.ends_with("0\nsurvived"), "no zombie: {log}");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_container_of_shared_namespace_dies_alone() {
    let host = Host::new();
    let mut node = host.node();
    let mut pod = host.pod("alone");
    pod.namespaces.share_process = true;
    node.runtime.create_sandbox(&pod).await.unwrap();
    let stays = host.container(&pod, "stays", "sleep 2345");
    node.runtime.start_container(&stays).await.unwrap();
    let dies = host.container(&pod, "dies", "sleep 3456 & exit 1");
    node.runtime.start_container(&dies).await.unwrap();
    node.exited(&dies).await;
    super::harness::eventually("its background process is dead", || processes_naming("sleep 3456").is_empty()).await;
    let (output, _, code) = node.exec(&stays, &["echo", "alive"]).await;
    assert_eq!((output.as_str(), code), ("alive\n", Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_made_again_replaces_older_one() {
    let host = Host::new();
    let node = host.node();
    let mut pod = host.pod("again");
    let first = node.runtime.create_sandbox(&pod).await.unwrap();
    let same = node.runtime.create_sandbox(&pod).await.unwrap();
    assert_eq!(first.shim_pid, same.shim_pid, "the same attempt is the same sandbox");
    let container = host.container(&pod, "main", "sleep 1000");
    node.runtime.start_container(&container).await.unwrap();
    pod.attempt = 1;
    let second = node.runtime.create_sandbox(&pod).await.unwrap();
    assert_ne!(first.shim_pid, second.shim_pid);
    assert_eq!((second.spec.attempt, second.state), (1, SandboxState::Ready));
    assert_eq!(outcome(&node.status(&container).await.state), (137, Some(9), false));
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_living_pod_can_be_changed() {
    let host = Host::new();
    let node = host.node();
    let mut pod = host.pod("limits");
    pod.resources.pids_limit = Some(100);
    node.runtime.create_sandbox(&pod).await.unwrap();
    let container = host.container(&pod, "main", "sleep 1000");
    node.runtime.start_container(&container).await.unwrap();
    pod.resources.pids_limit = Some(2);
    let status = node.runtime.update_sandbox(&pod).await.unwrap();
    assert_eq!(status.spec.resources.pids_limit, Some(2));
    let (_, error, code) = node.exec(&container, &["sh", "-c", "sleep 1 & sleep 1 & wait"]).await;
    assert!(code != Some(0) && error.contains("can't fork"), "{code:?} {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_that_cannot_be_made_leaves_nothing() {
    let host = Host::new();
    let node = host.node();
    let mut pod = host.pod("impossible");
    pod.sysctls = vec![("net.no.such.knob".to_owned(), "1".to_owned())];
    let error = node.runtime.create_sandbox(&pod).await.unwrap_err();
    assert!(error_chain(&error).to_string().contains("net.no.such.knob"), "{error:?}");
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_namespace_without_reaper_is_lost() {
    let host = Host::new();
    let mut node = host.node();
    let mut pod = host.pod("headless");
    pod.namespaces.share_process = true;
    node.runtime.create_sandbox(&pod).await.unwrap();
    let container = host.container(&pod, "main", "sleep 1000");
    node.runtime.start_container(&container).await.unwrap();
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    let children = fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap();
    let is_init = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim() == "podstead-init";
    let init = children.split_whitespace().find(is_init).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(init.parse().unwrap()), nix::sys::signal::Signal::SIGKILL).unwrap();
    node.lost(&pod.uid).await;
    assert_eq!(outcome(&node.status(&container).await.state), (137, Some(9), false), "its end was seen and recorded");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}
