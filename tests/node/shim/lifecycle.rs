//! Start, exit, signals, memory, removal.

use super::harness::{Host, outcome};
use podstead::runtime::{ContainerState, Runtime, SandboxState, StartError};

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_in_its_sandbox_and_its_exit_is_recorded() {
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
async fn a_program_that_is_not_there_says_so() {
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
