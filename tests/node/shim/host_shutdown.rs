//! The host shuts down, and no daemon is there: shims stop their pods alone, in the kubelet's order.

use super::harness::{Host, eventually, outcome, processes_naming};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use podstead::{
    container::{ContainerKind, Mount, Propagation, ShutdownHook, ShutdownTurn},
    runtime::Runtime,
};
use std::fs;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn d12_host_shutdown_ends_sidecars_last() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("shutdown");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let shared = host.root().join("shared");
    fs::create_dir(&shared).unwrap();
    let order = || fs::read_to_string(shared.join("order")).unwrap_or_default();
    let ready = || fs::read_to_string(shared.join("ready")).unwrap_or_default().lines().count();
    let hook = |script: &str| Some(ShutdownHook::Exec(["/bin/sh", "-c", script].map(str::to_owned).to_vec()));
    let containers = [
        ("first", ContainerKind::Sidecar, hook("echo hook-first >> /s/order")),
        ("second", ContainerKind::Sidecar, None),
        ("web", ContainerKind::Main, hook("sleep 1; echo hook-web >> /s/order; yes | head -100000")),
        ("slow", ContainerKind::Main, Some(ShutdownHook::Sleep(3))),
        ("broken", ContainerKind::Main, Some(ShutdownHook::Exec(vec!["/no/such/program".to_owned()]))),
    ];
    let mut started = Vec::new();
    for (position, (name, kind, hook)) in containers.into_iter().enumerate() {
        // A moment between signal and end shows who waits for whom.
        let script =
            format!("trap 'sleep 0.2; echo {name} >> /s/order; exit 0' TERM; echo x >> /s/ready; while true; do sleep 0.02; done");
        let mut container = host.container(&pod, name, &script);
        container.kind = kind;
        container.shutdown = ShutdownTurn { position: u32::try_from(position).unwrap(), hook, request: None };
        container.mounts = vec![Mount {
            host_path: shared.clone(),
            container_path: "/s".into(),
            read_only: false,
            recursive_read_only: false,
            no_exec: false,
            propagation: Propagation::Private,
            pinned: None,
        }];
        node.runtime.start_container(&container).await.unwrap();
        started.push(container);
    }
    eventually("all are ready", || ready() == started.len()).await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    drop(node);
    kill(Pid::from_raw(i32::try_from(shim).unwrap()), Signal::SIGTERM).unwrap();
    let begun = Instant::now();
    eventually("the shim has ended", || processes_naming(&format!("pod {}", host.root().display())).is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(3), "a hook that sleeps is waited for");
    let node = host.node();
    node.runtime.recover().await.unwrap();
    let order = order();
    let at = |what: &str| order.lines().position(|line| line == what).unwrap_or_else(|| panic!("no {what} in {order}"));
    for (before, after) in [
        ("hook-web", "web"),
        ("hook-first", "second"),
        ("web", "second"),
        ("slow", "second"),
        ("broken", "second"),
        ("second", "first"),
    ] {
        assert!(at(before) < at(after), "{before} comes before {after}: {order}");
    }
    assert_eq!(order.lines().count(), 7, "each once: {order}");
    for container in &started {
        assert_eq!(outcome(&node.status(container).await.state), (0, None, false), "{}", container.name);
    }
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn hook_ends_with_the_grace_period() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("shutdown");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let script = "trap 'exit 7' TERM; echo ready; while true; do sleep 0.02; done";
    let mut container = host.container(&pod, "web", script);
    container.grace_secs = 1;
    container.shutdown.hook = Some(ShutdownHook::Exec(vec!["/bin/sleep".to_owned(), "1000000".to_owned()]));
    node.runtime.start_container(&container).await.unwrap();
    eventually("it is ready", || !host.log(&container).is_empty()).await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    drop(node);
    kill(Pid::from_raw(i32::try_from(shim).unwrap()), Signal::SIGTERM).unwrap();
    eventually("the shim has ended", || processes_naming(&format!("pod {}", host.root().display())).is_empty()).await;
    let node = host.node();
    node.runtime.recover().await.unwrap();
    assert_eq!(outcome(&node.status(&container).await.state), (7, None, false), "it got its signal, and time for it");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}
