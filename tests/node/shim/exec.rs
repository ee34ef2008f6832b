//! Exec and attach.

use super::harness::{Host, eventually, finish, processes_naming, read_until, type_in};
use podstead::telemetry::error_chain;
use podstead::{
    container::ExecSpec,
    runtime::{ExecInput, ExecOutput, Runtime, RuntimeError},
};
use std::time::Duration;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_brings_both_streams_and_exit_code() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "exec", "sleep 1000").await;
    let result = node.exec(&container, &["sh", "-c", "echo out; echo err >&2; exit 42"]).await;
    assert_eq!(result, ("out\n".to_owned(), "err\n".to_owned(), Some(42)));
    let (_, _, code) = node.exec(&container, &["sh", "-c", "kill -9 $$"]).await;
    assert_eq!(code, Some(137));
    let spec = ExecSpec { args: words(&["no-such-program"]), tty: None, stdin: false, copy: None };
    let error = node.runtime.exec(&pod.uid, &container.id, &spec).await.unwrap_err();
    assert!(error_chain(&error).to_string().contains(r#"exec "no-such-program": executable file not found in $PATH"#), "{error:?}");
    let spec = ExecSpec { args: words(&["true"]), tty: None, stdin: false, copy: None };
    let gone = node.runtime.exec(&pod.uid, &podstead::pod::ContainerId::random(), &spec).await;
    assert!(matches!(gone, Err(RuntimeError::NotFound(_))), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stdin_reaches_the_process_and_closes() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "stdin", "sleep 1000").await;
    let spec = ExecSpec { args: words(&["cat"]), tty: None, stdin: true, copy: None };
    let session = node.runtime.exec(&pod.uid, &container.id, &spec).await.unwrap();
    // More than pipe and queues hold, so that the back-pressure of both directions is met.
    let sent = "0123456789abcdef".repeat(64 * 1024);
    let (input, text) = (session.input.clone(), sent.clone());
    let sending = tokio::spawn(async move {
        input.send(ExecInput::Stdin(text.into())).await.unwrap();
        input.send(ExecInput::CloseStdin).await.unwrap();
    });
    let (output, _, code) = finish(session).await;
    sending.await.unwrap();
    assert_eq!((output.len(), output == sent, code), (sent.len(), true, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_has_size_and_can_be_resized() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "terminal", "sleep 1000").await;
    let spec = ExecSpec { args: words(&["sh"]), tty: Some((80, 24)), stdin: true, copy: None };
    let mut session = node.runtime.exec(&pod.uid, &container.id, &spec).await.unwrap();
    type_in(&session, "stty size; echo $TERM; tty\n").await;
    let seen = read_until(&mut session, "/dev/pts/").await;
    assert!(seen.contains("24 80\r\nxterm"), "{seen:?}");
    session.input.send(ExecInput::Resize(132, 43)).await.unwrap();
    type_in(&session, "stty size\n").await;
    read_until(&mut session, "43 132").await;
    type_in(&session, "exit 9\n").await;
    let (_, _, code) = finish(session).await;
    assert_eq!(code, Some(9));
}

/// Programs that are over before the shim has heard that they began, as many are that start at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn short_terminal_output_is_not_lost() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "short", "sleep 1000").await;
    for round in 0..10 {
        let sessions = (0..16).map(|number| {
            let spec = ExecSpec {
                args: words(&["echo", &format!("{round} {number}")]),
                tty: Some((80, 24)),
                stdin: number % 2 == 0,
                copy: None,
            };
            let (runtime, uid, container) = (&node.runtime, &pod.uid, &container.id);
            async move { (number, finish(runtime.exec(uid, container, &spec).await.unwrap()).await) }
        });
        for (number, (output, _, code)) in futures_util::future::join_all(sessions).await {
            assert_eq!((output, code), (format!("{round} {number}\r\n"), Some(0)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_session_kills_only_its_process() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "dropped", "sleep 1000").await;
    let spec =
        ExecSpec { args: words(&["sh", "-c", "sleep 4567 & echo started; sleep 4567"]), tty: None, stdin: false, copy: None };
    let mut session = node.runtime.exec(&pod.uid, &container.id, &spec).await.unwrap();
    read_until(&mut session, "started").await;
    drop(session);
    eventually("the process is dead", || processes_naming("sleep 4567").is_empty()).await;
    let (output, _, _) = node.exec(&container, &["echo", "alive"]).await;
    assert_eq!(output, "alive\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reader_delays_only_its_process() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "slow", "while true; do echo tick; sleep 0.01; done").await;
    let spec =
        ExecSpec { args: words(&["sh", "-c", "yes | head -c 50000000; echo done >&2"]), tty: None, stdin: false, copy: None };
    let session = node.runtime.exec(&pod.uid, &container.id, &spec).await.unwrap();
    // Nobody reads the session. Others are served, and the container's own log goes on.
    let (output, _, code) = node.exec(&container, &["echo", "served"]).await;
    assert_eq!((output.as_str(), code), ("served\n", Some(0)));
    let before = host.log(&container).len();
    eventually("the log goes on", || host.log(&container).len() > before + 5).await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap().trim().trim_end_matches(" kB");
    assert!(resident.parse::<u64>().unwrap() < 8 << 10, "what is not read is not kept: {resident} kB");
    let (stdout, stderr, code) = finish(session).await;
    assert_eq!((stdout.len(), stderr.as_str(), code), (50_000_000, "done\n", Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_forwards_both_ways_and_may_end() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("attach");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "while read line; do echo \"got $line\"; done; echo end");
    container.stdin = true;
    node.runtime.start_container(&container).await.unwrap();
    let mut session = node.runtime.attach(&pod.uid, &container.id).await.unwrap();
    type_in(&session, "one\n").await;
    read_until(&mut session, "got one").await;
    session.input.send(ExecInput::CloseStdin).await.unwrap();
    drop(session);

    let mut once = container.clone();
    let mut session = node.runtime.attach(&pod.uid, &container.id).await.unwrap();
    type_in(&session, "two\n").await;
    read_until(&mut session, "got two").await;
    assert_eq!(host.log(&container), ["got one", "got two"]);
    node.runtime.kill_container(&pod.uid, &container.id).await.unwrap();
    assert_eq!(finish(session).await.2, Some(137));

    once.id = podstead::pod::ContainerId::random();
    once.attempt = 1;
    once.stdin_once = true;
    node.runtime.start_container(&once).await.unwrap();
    let session = node.runtime.attach(&pod.uid, &once.id).await.unwrap();
    drop(session);
    let state = node.exited(&once).await;
    assert_eq!(super::harness::outcome(&state), (0, None, false), "stdin was closed with the first session");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_container_is_logged_and_attachable() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("console");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "echo ready; read line; stty size; exit 6");
    container.tty = true;
    container.stdin = true;
    node.runtime.start_container(&container).await.unwrap();
    eventually("it has said something", || !host.log(&container).is_empty()).await;
    let session = node.runtime.attach(&pod.uid, &container.id).await.unwrap();
    session.input.send(ExecInput::Resize(100, 50)).await.unwrap();
    type_in(&session, "go\n").await;
    let (output, _, code) = finish(session).await;
    assert!(output.contains("50 100"), "{output:?}");
    assert_eq!(code, Some(6));
    node.exited(&container).await;
    let log = host.log(&container);
    assert!(std::fs::read_to_string(&container.log_path).unwrap().contains(" stdout F ready\r\n"));
    assert!(log.iter().any(|line| line.contains("50 100")), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_attached_client_stops_nobody() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("deaf");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let container = host.container(&pod, "main", "while ! [ -e /tmp/go ]; do sleep 0.02; done; seq 300000; echo last");
    node.runtime.start_container(&container).await.unwrap();
    let mut session = node.runtime.attach(&pod.uid, &container.id).await.unwrap();
    node.exec(&container, &["touch", "/tmp/go"]).await;
    node.exited(&container).await;
    let mut bytes = 0;
    while let Ok(Some(output)) = tokio::time::timeout(Duration::from_secs(30), session.output.recv()).await {
        match output {
            ExecOutput::Stdout(chunk) | ExecOutput::Stderr(chunk) => bytes += chunk.len(),
            ExecOutput::Exited(code) => assert_eq!(code, 0),
        }
    }
    assert!(bytes > 0 && bytes < 1_500_000, "{bytes} bytes were kept for a client that did not read");
    assert_eq!(host.log(&container).last().map(String::as_str), Some("last"), "the log has it all");
}
