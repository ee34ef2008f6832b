//! Lifecycle hooks (kubelet rules D8 and D12), on real containers: their order is read from what the containers wrote.

use crate::support::servers::Server;
use crate::support::{TestHost, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::time::Duration;

/// A pod whose containers share `/work`, a directory of the host that outlives the pod.
fn manifest(host: &TestHost, name: &str, grace: u32, spec: &str) -> String {
    let work = host.path("work");
    std::fs::create_dir_all(&work).unwrap();
    let spec = spec.replace("IMAGE", "image: localhost/busybox:1, volumeMounts: [{name: work, mountPath: /work}]");
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: {grace}\n{spec}\
         \x20 volumes: [{{name: work, hostPath: {{path: {}}}}}]\n",
        work.display()
    )
}

fn written(host: &TestHost) -> Vec<String> {
    let text = std::fs::read_to_string(host.path("work/log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn touch(host: &TestHost, name: &str) -> PathBuf {
    let path = host.path("work").join(name);
    std::fs::write(&path, "").unwrap();
    path
}

fn event(host: &TestHost, reason: &str) {
    eventually(&format!("an event {reason}"), || {
        let events = host.cli_ok(&["get", "events"]);
        events.contains(reason).then_some(()).ok_or(events)
    });
}

const FOREVER: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

/// shows: spec.containers[].lifecycle.postStart.exec, spec.containers[].lifecycle.postStart.exec.command
/// shows: spec.initContainers[].lifecycle.postStart.exec, spec.initContainers[].lifecycle.postStart.exec.command
#[test]
fn d8_next_container_waits_for_post_start() {
    let host = TestHost::start();
    let hook = |name: &str| {
        format!(
            "postStart: {{exec: {{command: [/bin/sh, -c, 'until [ -e /work/go-{name} ]; do sleep 0.1; done; echo hook-{name} >> /work/log']}}}}"
        )
    };
    let spec = format!(
        "  initContainers:
    - {{name: side, restartPolicy: Always, IMAGE, command: [/bin/sh, -c, \"echo side >> /work/log; {FOREVER}\"], lifecycle: {{{}}}}}
  containers:
    - {{name: first, IMAGE, command: [/bin/sh, -c, \"echo first >> /work/log; {FOREVER}\"], lifecycle: {{{}}}}}
    - {{name: second, IMAGE, command: [/bin/sh, -c, \"echo second >> /work/log; {FOREVER}\"]}}
",
        hook("side"),
        hook("first")
    );
    host.write_manifest("post.yaml", &manifest(&host, "post", 5, &spec));
    let side = host.wait_for_pod("post", "the sidecar's hook", |pod| pod.container("side")["containerID"].is_string());
    assert_eq!(side.waiting_reason("side"), "PodInitializing", "{}", side.0["status"]);
    touch(&host, "go-side");
    let first = host.wait_for_pod("post", "the first container's hook", |pod| {
        pod.runs("side") && pod.container("first")["containerID"].is_string()
    });
    assert_eq!((first.waiting_reason("first"), first.phase()), ("PodInitializing", "Pending"), "{}", first.0["status"]);
    assert!(first.container("second")["containerID"].is_null(), "{}", first.0["status"]);
    touch(&host, "go-first");
    host.wait_running("post");
    eventually("the second container to write", || {
        (written(&host).len() == 5).then_some(()).ok_or_else(|| format!("{:?}", written(&host)))
    });
    assert_eq!(written(&host), ["side", "hook-side", "first", "hook-first", "second"]);
}

#[test]
fn d8_failed_post_start_ends_its_container() {
    let host = TestHost::start();
    let spec = r#"  restartPolicy: Never
  containers:
    - {name: main, IMAGE, command: [/bin/sh, -c, "trap 'echo asked >> /work/log; exit 5' TERM; touch /work/up; while true; do sleep 0.1; done"],
       lifecycle: {postStart: {exec: {command: [/bin/sh, -c, 'until [ -e /work/up ]; do sleep 0.1; done; echo wrong; exit 3']}}}}
"#;
    host.write_manifest("fails.yaml", &manifest(&host, "fails", 10, spec));
    let pod = host.wait_for_pod("fails", "Failed", |pod| pod.phase() == "Failed");
    assert_eq!(pod.container("main")["state"]["terminated"]["exitCode"], 5, "{}", pod.0["status"]);
    assert_eq!(written(&host), ["asked"]);
    let events = host.cli_ok(&["get", "events"]);
    assert!(events.contains("FailedPostStartHook") && events.contains("command exited with 3: wrong"), "{events}");
}

#[test]
fn commands_of_hooks_are_taken_as_written() {
    let host = TestHost::start();
    let spec = format!(
        r#"  containers:
    - {{name: main, IMAGE, command: [/bin/sh, -c, "{FOREVER}"], env: [{{name: WORD, value: expanded}}], lifecycle: {{
       postStart: {{exec: {{command: [/bin/sh, -c, 'echo "$1" >> /work/log', after, '$(WORD) $$(WORD) $$']}}}},
       preStop: {{exec: {{command: [/bin/sh, -c, 'echo "$1" >> /work/log', before, '$(WORD) $$']}}}}}}}}
"#
    );
    host.write_manifest("plain.yaml", &manifest(&host, "plain", 10, &spec));
    host.wait_running("plain");
    assert_eq!(written(&host), ["$(WORD) $$(WORD) $$"]);
    host.remove_manifest("plain.yaml");
    eventually("the preStop hook", || if written(&host).len() == 2 { Ok(()) } else { Err(written(&host).join("\n")) });
    assert_eq!(written(&host)[1], "$(WORD) $$");
}

/// shows: spec.containers[].lifecycle.preStop.exec, spec.containers[].lifecycle.preStop.exec.command
/// shows: spec.initContainers[].lifecycle.preStop.exec, spec.initContainers[].lifecycle.preStop.exec.command
#[test]
fn d12_hooks_precede_signals_and_sidecars_follow() {
    let host = TestHost::start();
    let container = |name: &str, more: &str| {
        format!(
            "    - {{name: {name}, IMAGE, {more} command: [/bin/sh, -c, \"trap 'echo term-{name} >> /work/log; exit 0' TERM; touch /work/up-{name}; while true; do sleep 0.1; done\"], \
             lifecycle: {{preStop: {{exec: {{command: [/bin/sh, -c, 'sleep 0.3; echo hook-{name} >> /work/log']}}}}}}}}\n"
        )
    };
    let spec = format!(
        "  initContainers:\n{}{}  containers:\n{}{}",
        container("side1", "restartPolicy: Always,"),
        container("side2", "restartPolicy: Always,"),
        container("main1", ""),
        container("main2", "")
    );
    host.write_manifest("order.yaml", &manifest(&host, "order", 60, &spec));
    host.wait_running("order");
    for name in ["side1", "side2", "main1", "main2"] {
        eventually("the container's trap", || {
            host.path(&format!("work/up-{name}")).try_exists().unwrap().then_some(()).ok_or(name.to_owned())
        });
    }
    host.remove_manifest("order.yaml");
    host.wait_gone("order");
    let log = written(&host);
    let at = |line: &str| log.iter().position(|found| found == line).unwrap_or_else(|| panic!("no {line} in {log:?}"));
    for name in ["main1", "main2", "side1", "side2"] {
        assert!(at(&format!("hook-{name}")) < at(&format!("term-{name}")), "{log:?}");
    }
    let mains = at("term-main1").max(at("term-main2"));
    assert!(mains < at("term-side2") && at("term-side2") < at("term-side1"), "{log:?}");
    assert_eq!(log.len(), 8, "{log:?}");
}

/// shows: spec.containers[].lifecycle.preStop.sleep, spec.containers[].lifecycle.preStop.sleep.seconds,
/// shows: spec.containers[].lifecycle.postStart.sleep, spec.containers[].lifecycle.postStart.sleep.seconds
#[test]
fn d12_pause_before_signal_and_after_start() {
    let host = TestHost::start();
    let note = |what: &str| format!("read at rest < /proc/uptime; echo {what} $at >> /work/log");
    let spec = format!(
        "  containers:
    - {{name: main, IMAGE, command: [/bin/sh, -c, \"trap '{}; exit 0' TERM; {}; while true; do sleep 0.05; done\"],
       lifecycle: {{postStart: {{sleep: {{seconds: 5}}}}, preStop: {{sleep: {{seconds: 5}}}}}}}}
    - {{name: next, IMAGE, command: [/bin/sh, -c, \"trap '{}; exit 0' TERM; {}; while true; do sleep 0.05; done\"]}}
",
        note("main-term"),
        note("main"),
        note("next-term"),
        note("next")
    );
    host.write_manifest("pause.yaml", &manifest(&host, "pause", 30, &spec));
    host.wait_running("pause");
    eventually("both to be up", || (written(&host).len() == 2).then_some(()).ok_or_else(|| format!("{:?}", written(&host))));
    host.remove_manifest("pause.yaml");
    host.wait_gone("pause");
    let log = written(&host);
    let at = |what: &str| -> f64 {
        let line = log.iter().find_map(|line| line.strip_prefix(&format!("{what} ")));
        line.unwrap_or_else(|| panic!("no {what} in {log:?}")).parse().unwrap()
    };
    // Each notes its time a moment after its start or its signal; how long that moment is, is the machine's matter.
    assert!(at("next") - at("main") >= 4.0, "{log:?}");
    assert!(at("main-term") - at("next-term") >= 4.0, "{log:?}");
}

/// shows: spec.containers[].lifecycle.preStop.httpGet.path, spec.containers[].lifecycle.preStop.httpGet.port
/// shows: spec.containers[].lifecycle.preStop.httpGet.httpHeaders, spec.containers[].lifecycle.postStart.httpGet.httpHeaders
/// shows: spec.containers[].lifecycle.postStart.httpGet.path, spec.containers[].lifecycle.postStart.httpGet.port
/// shows: spec.containers[].ports[].name
#[test]
fn d12_http_hooks_ask_the_container() {
    let host = TestHost::start();
    // Each line of a request into the log. The first may come before the server listens.
    let server = "while true; do nc -ll -p 8080 -e /work/answer; done";
    let hook = |kind: &str| {
        format!("{kind}: {{httpGet: {{path: '/{kind}?a=b', port: web, httpHeaders: [{{name: X-Hook, value: told-{kind}}}]}}}}")
    };
    let spec = format!(
        "  initContainers:
    - {{name: prepare, IMAGE, command: [/bin/sh, -c, 'printf \"%s\\\\n\" \"#!/bin/sh\" \"while read -r line; do line=\\$(echo \\$line | tr -d [:cntrl:]); [ -z \\\"\\$line\\\" ] && break; echo \\$line >> /work/log; done; echo HTTP/1.0 200 OK; echo\" > /work/answer; chmod +x /work/answer']}}
    - {{name: side, IMAGE, restartPolicy: Always, command: [/bin/sh, -c, '{server}']}}
    - {{name: wait, IMAGE, command: [/bin/sh, -c, 'until echo GET / | nc 127.0.0.1 8080; do sleep 0.1; done; echo > /work/log']}}
  containers:
    - {{name: main, IMAGE, ports: [{{name: web, containerPort: 8080}}], command: [/bin/sh, -c, \"{FOREVER}\"], lifecycle: {{{}, {}}}}}
",
        hook("postStart"),
        hook("preStop")
    );
    host.write_manifest("http.yaml", &manifest(&host, "http", 10, &spec));
    host.wait_running("http");
    let has = |lines: &[&str]| {
        let log = written(&host);
        lines
            .iter()
            .all(|wanted| log.iter().any(|line| line.eq_ignore_ascii_case(wanted)))
            .then_some(())
            .ok_or_else(|| format!("{log:?}"))
    };
    eventually("the postStart request", || has(&["GET /postStart?a=b HTTP/1.1", "X-Hook: told-postStart"]));
    host.remove_manifest("http.yaml");
    host.wait_gone("http");
    eventually("the preStop request", || has(&["GET /preStop?a=b HTTP/1.1", "X-Hook: told-preStop"]));
    assert!(
        written(&host).iter().any(|line| line.to_lowercase().starts_with("user-agent: kube-lifecycle/")),
        "{:?}",
        written(&host)
    );
}

#[test]
fn d12_http_hooks_run_at_host_shutdown() {
    let mut host = TestHost::start();
    let server = "while true; do nc -ll -p 8080 -e /work/answer; done";
    let spec = format!(
        "  initContainers:
    - {{name: prepare, IMAGE, command: [/bin/sh, -c, 'printf \"%s\\\\n\" \"#!/bin/sh\" \"while read -r line; do line=\\$(echo \\$line | tr -d [:cntrl:]); [ -z \\\"\\$line\\\" ] && break; echo \\$line >> /work/log; done; echo HTTP/1.0 200 OK; echo\" > /work/answer; chmod +x /work/answer']}}
    - {{name: side, IMAGE, restartPolicy: Always, command: [/bin/sh, -c, '{server}']}}
    - {{name: wait, IMAGE, command: [/bin/sh, -c, 'until echo GET / | nc 127.0.0.1 8080; do sleep 0.1; done; echo > /work/log']}}
  containers:
    - {{name: main, IMAGE, ports: [{{name: web, containerPort: 8080}}], command: [/bin/sh, -c, \"trap 'echo signal >> /work/log; exit 0' TERM; touch /work/ready; while true; do sleep 0.1; done\"],
       lifecycle: {{preStop: {{httpGet: {{path: '/bye?a=b', port: web, httpHeaders: [{{name: X-Hook, value: told}}]}}}}}}}}
"
    );
    host.write_manifest("http.yaml", &manifest(&host, "http", 30, &spec));
    let pod = host.wait_running("http");
    eventually("the trap", || host.path("work/ready").try_exists().unwrap().then_some(()).ok_or_else(String::new));
    let shim = i32::try_from(host.shim_pid(&pod)).unwrap();
    host.kill_daemon();
    kill(Pid::from_raw(shim), Signal::SIGTERM).unwrap();
    eventually("the signal", || {
        let log = written(&host);
        if log.iter().any(|line| line == "signal") { Ok(()) } else { Err(format!("{log:?}")) }
    });
    let log = written(&host);
    let at = |wanted: &str| log.iter().position(|line| line.to_lowercase().starts_with(wanted));
    assert!(at("get /bye?a=b http/1.1").is_some() && at("x-hook: told").is_some(), "{log:?}");
    assert!(at("user-agent: kube-lifecycle/").is_some(), "{log:?}");
    assert!(at("x-hook: told") < at("signal"), "{log:?}");
    host.start_daemon();
}

/// shows: spec.containers[].lifecycle.preStop.httpGet.host, spec.containers[].lifecycle.preStop.httpGet.scheme
/// shows: spec.containers[].lifecycle.postStart.httpGet.host, spec.containers[].lifecycle.postStart.httpGet.scheme
#[test]
fn d12_http_hooks_may_ask_another_host() {
    let host = TestHost::start();
    for (name, tls, scheme) in [("plain", false, "HTTP"), ("secure", true, "HTTPS")] {
        let server = Server::start("127.0.0.2", tls, Box::new(|_, _| (200, Duration::ZERO)));
        let port = server.address.port();
        let hook = |kind: &str| format!("{kind}: {{httpGet: {{host: 127.0.0.2, scheme: {scheme}, port: {port}, path: /{kind}}}}}");
        let spec = format!(
            "  containers:\n    - {{name: main, IMAGE, command: [/bin/sh, -c, \"{FOREVER}\"], lifecycle: {{{}, {}}}}}\n",
            hook("postStart"),
            hook("preStop")
        );
        host.write_manifest(&format!("{name}.yaml"), &manifest(&host, name, 30, &spec));
        host.wait_running(name);
        assert_eq!(server.asked_for("/postStart").len(), 1, "{scheme}: it runs when its hook is done");
        assert_eq!(server.asked_for("/preStop").len(), 0);
        host.remove_manifest(&format!("{name}.yaml"));
        host.wait_gone(name);
        assert_eq!(server.asked_for("/preStop").len(), 1, "{scheme}");
    }
}

#[test]
fn d12_failing_pre_stop_hook_is_reported() {
    let host = TestHost::start();
    let container = |name: &str, hook: &str| {
        format!(
            "    - {{name: {name}, IMAGE, command: [/bin/sh, -c, \"trap 'echo term-{name} >> /work/log; exit 0' TERM; touch /work/up-{name}; while true; do sleep 0.1; done\"], \
             lifecycle: {{preStop: {{exec: {{command: [/bin/sh, -c, '{hook}']}}}}}}}}\n"
        )
    };
    let spec = format!("  containers:\n{}{}", container("fails", "exit 4"), container("hangs", "exec sleep 1000000"));
    host.write_manifest("bad.yaml", &manifest(&host, "bad", 2, &spec));
    host.wait_running("bad");
    for name in ["fails", "hangs"] {
        eventually("the container's trap", || {
            host.path(&format!("work/up-{name}")).try_exists().unwrap().then_some(()).ok_or(name.to_owned())
        });
    }
    host.remove_manifest("bad.yaml");
    host.wait_gone("bad");
    assert_eq!(written(&host), ["term-fails", "term-hangs"], "the signal comes all the same, and there is time to answer it");
    event(&host, "command exited with 4");
    event(&host, "did not complete");
}

#[test]
fn only_unfinished_hooks_are_repeated() {
    let mut host = TestHost::start();
    let container = |name: &str, wait: &str| {
        format!(
            "    - {{name: {name}, IMAGE, command: [/bin/sh, -c, \"{FOREVER}\"], \
             lifecycle: {{postStart: {{exec: {{command: [/bin/sh, -c, 'echo {name} >> /work/log; {wait}']}}}}}}}}\n"
        )
    };
    let spec =
        format!("  containers:\n{}{}", container("done", "true"), container("cut", "until [ -e /work/go ]; do sleep 0.1; done"));
    host.write_manifest("twice.yaml", &manifest(&host, "twice", 5, &spec));
    eventually("the second hook to run", || {
        (written(&host) == ["done", "cut"]).then_some(()).ok_or_else(|| format!("{:?}", written(&host)))
    });
    // What a container's hook writes can be read before its status is shown.
    let before = host.wait_for_pod("twice", "its second container", |pod| pod.container("cut")["containerID"].is_string());
    host.kill_daemon();
    host.start_daemon();
    eventually("the second hook to run again", || {
        (written(&host) == ["done", "cut", "cut"]).then_some(()).ok_or_else(|| format!("{:?}", written(&host)))
    });
    touch(&host, "go");
    let after = host.wait_running("twice");
    assert_eq!(after.container_id("cut"), before.container_id("cut"), "no container was restarted for it");
    host.kill_daemon();
    host.start_daemon();
    host.wait_running("twice");
    assert_eq!(written(&host), ["done", "cut", "cut"]);
}
