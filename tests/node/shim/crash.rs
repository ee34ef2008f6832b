//! Death of daemons, shims and helpers.

use super::harness::{Host, PATIENCE, eventually, outcome, processes_naming};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use podstead::container::record::{ContainerRecord, Durability};
use podstead::telemetry::error_chain;
use podstead::{
    container::{ContainerState, PodLifecycleEventKind, SandboxState},
    runtime::Runtime,
};
use std::fs;
use std::time::Instant;

fn kill_hard(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_without_daemon_are_told_later() {
    let host = Host::new();
    let node = host.node();
    let (pod, lives) = node.run(&host, "outlives", "sleep 1000").await;
    let dies = host.container(&pod, "dies", "while ! [ -e /tmp/go ]; do sleep 0.02; done; echo last words; exit 3");
    node.runtime.start_container(&dies).await.unwrap();
    let before = node.runtime.observe(&pod.uid).await.unwrap().unwrap();
    drop(node);
    let go = format!("/proc/{}/root/tmp/go", running_pid(&before, &dies.id));
    fs::write(go, "").unwrap();
    let record = host.paths().container_record(&pod.uid, &dies.id);
    eventually("its exit is recorded", || fs::read_to_string(&record).unwrap().contains("exited")).await;
    assert_eq!(host.log(&dies), ["last words"]);

    let mut node = host.node();
    let recovered = node.runtime.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].sandbox, before.sandbox);
    // First, since waiting for the exit takes the events that come.
    let event = node.event().await;
    assert_eq!((&event.uid, event.kind), (&pod.uid, PodLifecycleEventKind::ContainerDied(dies.id.clone())));
    assert_eq!(outcome(&node.exited(&dies).await), (3, None, false));
    assert_eq!(node.status(&lives).await, before.containers.iter().find(|status| status.id == lives.id).unwrap().clone());
    let (output, _, _) = node.exec(&lives, &["echo", "served"]).await;
    assert_eq!(output, "served\n");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

fn running_pid(pod: &podstead::container::ObservedPod, id: &podstead::pod::ContainerId) -> u32 {
    match &pod.containers.iter().find(|status| status.id == *id).unwrap().state {
        ContainerState::Running { pid, .. } => *pid,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_shim_takes_its_containers_along() {
    let host = Host::new();
    let mut node = host.node();
    let (mut pod, container) = node.run(&host, "orphan", "trap '' TERM HUP; sleep 5678 & sleep 5678").await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    let killed_at = Instant::now();
    kill_hard(shim);
    node.lost(&pod.uid).await;
    let took = killed_at.elapsed();
    // Without the event, nobody would look for a minute.
    assert!(took.as_secs() < 20, "{took:?}");
    assert_eq!(processes_naming("sleep 5678"), Vec::<String>::new());
    let observed = node.runtime.observe(&pod.uid).await.unwrap().unwrap();
    assert_eq!(observed.sandbox.as_ref().unwrap().state, SandboxState::Lost);
    assert!(matches!(observed.containers[0].state, ContainerState::Unknown { started_at: Some(_), .. }), "{observed:?}");
    assert!(node.runtime.start_container(&host.container(&pod, "second", "true")).await.is_err());

    // The pod is made again, beside the record of what was lost.
    pod.attempt = 1;
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut again = host.container(&pod, "main", "exit 0");
    again.attempt = 1;
    node.runtime.start_container(&again).await.unwrap();
    assert_eq!(outcome(&node.exited(&again).await), (0, None, false));
    node.runtime.remove_container(&pod.uid, &container.id).await.unwrap();
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_end_outlives_its_shim() {
    let host = Host::new();
    let mut node = host.node();
    let (pod, container) = node.run(&host, "silent", "sleep 7890").await;
    let before = node.runtime.observe(&pod.uid).await.unwrap().unwrap();
    let ContainerState::Running { started_at, .. } = before.containers[0].state else { panic!("{before:?}") };
    // As a shim does it, up to the moment before it tells.
    let path = host.paths().container_record(&pod.uid, &container.id);
    let mut record = ContainerRecord::read(&path).unwrap();
    record.status.state = ContainerState::Exited {
        started_at: Some(started_at),
        finished_at: jiff::Timestamp::now(),
        exit_code: 3,
        signal: None,
        oom_killed: false,
        error: None,
        message: None,
    };
    record.write(&path, Durability::PowerCut).unwrap();
    kill_hard(before.sandbox.unwrap().shim_pid.unwrap());
    node.lost(&pod.uid).await;
    assert_eq!(node.status(&container).await.state, record.status.state);
    assert_eq!(ContainerRecord::read(&path).unwrap(), record);
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(node.status(&container).await.state, record.status.state);
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn shim_dead_without_daemon_is_found() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "both", "sleep 6789").await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    drop(node);
    kill_hard(shim);
    assert_ne!(processes_naming("sleep 6789"), Vec::<String>::new());

    let node = host.node();
    let recovered = node.runtime.recover().await.unwrap();
    assert_eq!(recovered[0].sandbox.as_ref().unwrap().state, SandboxState::Lost);
    assert!(matches!(node.status(&container).await.state, ContainerState::Unknown { .. }));
    assert_eq!(processes_naming("sleep 6789"), Vec::<String>::new());
    drop(node);
    // What was found is on disk: the next daemon says the same.
    let node = host.node();
    let again = node.runtime.recover().await.unwrap();
    assert_eq!(again, recovered);
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_helper_fails_start_and_leaves_nothing() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("helper");
    node.runtime.create_sandbox(&pod).await.unwrap();
    // A pipe in place of the profile holds the helper where it reads it.
    let profile = host.root().join("profile");
    nix::unistd::mkfifo(&profile, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut container = host.container(&pod, "main", "true");
    container.security.seccomp = podstead::container::SeccompProfile::Localhost(profile);
    let (runtime, held) = (node.runtime.clone(), container.clone());
    let starting = tokio::spawn(async move { runtime.start_container(&held).await });
    let mut helper = None;
    eventually("the helper is at work", || {
        helper = processes_naming(&format!("start {}", host.root().display())).first().cloned();
        helper.is_some()
    })
    .await;
    let pid = helper.unwrap().split(' ').next().unwrap().parse().unwrap();
    kill_hard(pid);
    let error = starting.await.unwrap().unwrap_err();
    assert!(error_chain(&error).to_string().contains("exited without a result"), "{error:?}");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

/// A copy of the mounts of the host takes the longer the more pods there are.
#[tokio::test(flavor = "multi_thread")]
async fn helper_takes_no_copy_of_the_mounts_of_the_host() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("alone");
    node.runtime.create_sandbox(&pod).await.unwrap();
    // It reads the profile when it has what it mounts.
    let profile = host.root().join("profile");
    nix::unistd::mkfifo(&profile, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut container = host.container(&pod, "main", "true");
    container.security.seccomp = podstead::container::SeccompProfile::Localhost(profile);
    let runtime = node.runtime.clone();
    let starting = tokio::spawn(async move { runtime.start_container(&container).await });
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let mounts = |process: &str| fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default().lines().count();
    assert!(mounts("self") > 3);
    eventually("the helper has a mount namespace without those of the host", || {
        let helpers = processes_naming(&format!("start {}", host.root().display()));
        let Some(pid) = helpers.first().and_then(|helper| helper.split(' ').next()) else { return false };
        namespace(pid).is_some_and(|own| Some(own) != namespace("self")) && mounts(pid) <= 3
    })
    .await;
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert!(starting.await.unwrap().is_err());
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

/// The helper at work, as soon as libcontainer has made a process beside it. `None` if that was not seen before `is_over`.
fn helper_with_sibling(shim: u32, is_over: impl Fn() -> bool) -> Option<u32> {
    while !is_over() {
        let children = fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap_or_default();
        let children: Vec<u32> = children.split(' ').filter_map(|child| child.parse().ok()).collect();
        if let [helper, _, ..] = children[..] {
            return Some(helper);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_helper_takes_its_processes_along() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("orphans");
    let shim = node.runtime.create_sandbox(&pod).await.unwrap().shim_pid.unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut caught = 0;
    for attempt in 0.. {
        assert!(Instant::now() < deadline, "the helper was killed in time {caught} times");
        let container = host.container(&pod, &format!("main{attempt}"), "sleep 1000");
        let (runtime, id) = (node.runtime.clone(), container.id.clone());
        let starting = tokio::spawn(async move { runtime.start_container(&container).await });
        let kill_in_time = || {
            let is_over = || starting.is_finished() || Instant::now() > deadline;
            let helper = helper_with_sibling(shim, is_over)?;
            kill(Pid::from_raw(i32::try_from(helper).unwrap()), Signal::SIGKILL).ok()
        };
        let killed = tokio::task::block_in_place(kill_in_time).is_some();
        match starting.await.unwrap() {
            Ok(_) => node.runtime.kill_container(&pod.uid, &id).await.unwrap(),
            Err(error) => assert!(killed, "{error}"),
        }
        eventually("the shim has no child left", || {
            fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap().is_empty()
        })
        .await;
        caught += usize::from(killed);
        if caught == 5 {
            break;
        }
    }
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn container_hanging_at_start_can_be_killed() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("hangs");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let profile = host.root().join("profile");
    nix::unistd::mkfifo(&profile, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut container = host.container(&pod, "main", "true");
    container.security.seccomp = podstead::container::SeccompProfile::Localhost(profile);
    let (runtime, held) = (node.runtime.clone(), container.clone());
    let starting = tokio::spawn(async move { runtime.start_container(&held).await });
    eventually("the helper is at work", || !processes_naming(&format!("start {}", host.root().display())).is_empty()).await;
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert!(starting.await.unwrap().is_err());
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_record_is_learnt_from_shim() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "garbled", "sleep 1000").await;
    let before = node.runtime.observe(&pod.uid).await.unwrap().unwrap();
    drop(node);
    let paths = host.paths();
    for record in [paths.sandbox_record(&pod.uid), paths.container_record(&pod.uid, &container.id)] {
        fs::write(record, "{\"version\":1,\"sta").unwrap();
    }
    let node = host.node();
    let recovered = node.runtime.recover().await.unwrap();
    assert_eq!(recovered, [before]);
    assert!(paths.sandbox_record(&pod.uid).with_extension("json.broken").try_exists().unwrap());
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_pods_start_and_stop_at_once() {
    let host = Host::new();
    let node = host.node();
    let pods: Vec<_> = (0..20).map(|number| host.pod(&format!("pod-{number}"))).collect();
    let starts = pods.iter().map(|pod| async {
        node.runtime.create_sandbox(pod).await.unwrap();
        let container = host.container(pod, "main", "hostname; sleep 1000");
        node.runtime.start_container(&container).await.unwrap();
        container
    });
    let containers = futures_util::future::join_all(starts).await;
    for (pod, container) in pods.iter().zip(&containers) {
        assert!(matches!(node.status(container).await.state, ContainerState::Running { .. }));
        eventually("it has said its name", || host.log(container) == [pod.hostname.clone()]).await;
    }
    let stops = pods.iter().map(|pod| node.runtime.stop_sandbox(&pod.uid));
    for stopped in futures_util::future::join_all(stops).await {
        stopped.unwrap();
    }
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_stops_pod_in_order() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("shutdown");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut polite = host.container(&pod, "polite", "trap 'echo bye; exit 8' TERM; echo ready; while true; do sleep 0.02; done");
    let mut stubborn = host.container(&pod, "stubborn", "trap '' TERM; echo ready; while true; do sleep 0.02; done");
    for container in [&mut polite, &mut stubborn] {
        container.grace_secs = 5;
        node.runtime.start_container(container).await.unwrap();
    }
    eventually("both are ready", || !host.log(&polite).is_empty() && !host.log(&stubborn).is_empty()).await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    drop(node);
    kill(Pid::from_raw(i32::try_from(shim).unwrap()), Signal::SIGTERM).unwrap();
    eventually("the shim has ended", || processes_naming(&format!("pod {}", host.root().display())).is_empty()).await;
    let node = host.node();
    let recovered = node.runtime.recover().await.unwrap();
    assert_eq!(recovered[0].sandbox.as_ref().unwrap().state, SandboxState::Lost);
    assert_eq!(outcome(&node.status(&polite).await.state), (8, None, false));
    assert_eq!(outcome(&node.status(&stubborn).await.state), (137, Some(9), false));
    assert_eq!(host.log(&polite), ["ready", "bye"]);
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}
