//! Start, exit, signals, memory, removal.

use super::harness::{Host, bind, eventually, outcome};
use podstead::telemetry::error_chain;
use podstead::{
    container::{ContainerState, SandboxState},
    runtime::{Runtime, StartError},
};

#[tokio::test(flavor = "multi_thread")]
async fn exit_of_container_is_recorded() {
    let host = Host::new();
    let mut node = host.node();
    let (pod, container) = node.run(&host, "web", "echo out; echo err >&2; hostname; exit 7").await;
    let state = node.exited(&container).await;
    assert_eq!(outcome(&state), (7, None, false));
    let mut log = host.log(&container);
    log.sort();
    assert_eq!(log, ["err", "out", "web"]);
    let sandbox = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap();
    assert_eq!(sandbox.state, SandboxState::Ready);
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn program_that_is_not_there_says_so() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("broken");
    node.runtime.create_sandbox(&pod).await.unwrap();
    for (args, expected) in [
        (vec!["no-such-program"], r#"exec "no-such-program": executable file not found in $PATH"#),
        (vec!["/no/such/program"], r#"exec "/no/such/program": no such file or directory"#),
        (vec!["/etc/passwd"], r#"exec "/etc/passwd": permission denied"#),
    ] {
        let mut container = host.container(&pod, "main", "");
        container.args = args.into_iter().map(str::to_owned).collect();
        match node.runtime.start_container(&container).await {
            Err(StartError::Execute(reason)) => assert_eq!(reason, expected),
            other => panic!("{other:?}"),
        }
        let status = node.status(&container).await;
        assert!(
            matches!(status.state, ContainerState::Exited { exit_code: 128, error: Some(_), started_at: None, .. }),
            "{status:?}"
        );
        node.runtime.remove_container(&pod.uid, &container.id).await.unwrap();
    }
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_executes_program_closed_to_others() {
    let host = Host::new();
    let mut node = host.node();
    std::fs::create_dir(host.layer().join("private")).unwrap();
    let program = host.layer().join("private/busybox");
    std::fs::copy(host.layer().join("bin/busybox"), &program).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
    let pod = host.pod("private");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "");
    container.args = ["/private/busybox", "sh", "-c", "exit 3"].map(str::to_owned).to_vec();
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (3, None, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn program_that_is_none_is_explained() {
    let host = Host::new();
    let node = host.node();
    let of_s390x = b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x16";
    let programs: [(&str, &[u8], &str); 3] = [
        ("damaged", &[0x7f, 1, 2, 3], ""),
        ("foreign", of_s390x, ": it is a program for s390x, and this host is "),
        ("script", b"exit 0\n", ": it is a text without a first line such as #!/bin/sh"),
    ];
    for (name, content, _) in programs {
        let program = host.layer().join("bin").join(name);
        std::fs::write(&program, content).unwrap();
        std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let pod = host.pod("none");
    node.runtime.create_sandbox(&pod).await.unwrap();
    for (name, _, explained) in programs {
        let mut container = host.container(&pod, name, "");
        container.args = vec![format!("/bin/{name}")];
        match node.runtime.start_container(&container).await {
            Err(StartError::Execute(reason)) => {
                let expected = format!("exec \"/bin/{name}\": exec format error{explained}");
                assert!(reason.starts_with(&expected) && (reason == expected) != explained.ends_with("is "), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn immediate_end_is_recorded_with_start() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("short");
    node.runtime.create_sandbox(&pod).await.unwrap();
    for attempt in 0..10 {
        let mut container = host.container(&pod, "main", "");
        container.args = vec!["/bin/true".to_owned()];
        container.attempt = attempt;
        node.runtime.start_container(&container).await.unwrap();
        let state = node.exited(&container).await;
        assert!(matches!(state, ContainerState::Exited { started_at: Some(_), exit_code: 0, error: None, .. }), "{state:?}");
    }
    assert_eq!(node.runtime.observe(&pod.uid).await.unwrap().unwrap().containers.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_first_process_kill_all() {
    let host = Host::new();
    let mut node = host.node();
    let (pod, container) =
        node.run(&host, "signals", "trap 'echo got; exit 5' TERM; echo ready; while true; do sleep 0.05; done").await;
    eventually("the trap is set", || host.log(&container) == ["ready"]).await;
    node.runtime.signal_container(&pod.uid, &container.id, libc::SIGTERM).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (5, None, false));
    assert_eq!(host.log(&container), ["ready", "got"]);
    node.runtime.signal_container(&pod.uid, &container.id, libc::SIGTERM).await.expect("an exited container is success");

    let stubborn = host.container(&pod, "stubborn", "trap '' TERM; (trap '' TERM; sleep 1000) & sleep 1000");
    node.runtime.start_container(&stubborn).await.unwrap();
    node.runtime.signal_container(&pod.uid, &stubborn.id, libc::SIGTERM).await.unwrap();
    node.runtime.kill_container(&pod.uid, &stubborn.id).await.unwrap();
    assert_eq!(outcome(&node.exited(&stubborn).await), (137, Some(9), false));
    node.runtime.kill_container(&pod.uid, &stubborn.id).await.expect("an exited container is success");
    let unknown = podstead::pod::ContainerId::random();
    assert!(node.runtime.kill_container(&pod.uid, &unknown).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory_end_is_recorded() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("hungry");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "exec /bin/dd if=/dev/zero of=/dev/null bs=64M count=1");
    container.resources.memory_limit = Some(16 << 20);
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (137, Some(9), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn termination_message_falls_back_to_log() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("message");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let message_of = |state: ContainerState| match state {
        ContainerState::Exited { message, .. } => message,
        other => panic!("{other:?}"),
    };
    for (name, script, fallback, expected) in [
        ("written", "echo said > /message; echo log; exit 1", true, Some("said\n")),
        ("fallback", "echo one; echo two; exit 1", true, Some("one\ntwo\n")),
        ("success", "echo one; exit 0", true, None),
        ("none", "echo one; exit 1", false, None),
    ] {
        let file = host.root().join(name);
        std::fs::write(&file, "").unwrap();
        let mut container = host.container(&pod, name, script);
        container.mounts.push(bind(&file, "/message"));
        container.termination_log = Some(file);
        container.fallback_to_logs = fallback;
        node.runtime.start_container(&container).await.unwrap();
        assert_eq!(message_of(node.exited(&container).await).as_deref(), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_removed_container_leaves_nothing() {
    let host = Host::new();
    let mut node = host.node();
    let (pod, container) = node.run(&host, "gone", "echo kept > /file; echo logged; sleep 1000").await;
    let error = node.runtime.remove_container(&pod.uid, &container.id).await.unwrap_err();
    assert!(error_chain(&error).to_string().contains("is still running"), "{error:?}");
    eventually("the container to have written", || host.log(&container) == ["logged"]).await;
    node.runtime.kill_container(&pod.uid, &container.id).await.unwrap();
    node.exited(&container).await;
    let paths = host.paths();
    assert!(paths.container_layer(&pod.uid, &container.id).join("upper/file").is_file());
    node.runtime.remove_container(&pod.uid, &container.id).await.unwrap();
    node.runtime.remove_container(&pod.uid, &container.id).await.unwrap();
    for gone in [
        paths.container_layer(&pod.uid, &container.id),
        paths.container_record(&pod.uid, &container.id),
        paths.bundle(&pod.uid, &container.id),
        paths.oci_state(&pod.uid).join(&container.id),
        container.log_path.clone(),
    ] {
        assert!(!gone.try_exists().unwrap(), "{}", gone.display());
    }
    assert!(node.runtime.observe(&pod.uid).await.unwrap().unwrap().containers.is_empty());

    assert!(node.runtime.remove_pod(&pod.uid).await.is_err(), "its sandbox is not stopped");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    node.runtime.remove_pod(&pod.uid).await.unwrap();
    assert!(!paths.pod(&pod.uid).try_exists().unwrap());
    assert!(node.runtime.observe(&pod.uid).await.unwrap().is_none());
    assert_eq!(host.leftovers(), Vec::<String>::new());
}
