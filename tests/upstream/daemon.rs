//! The real daemon against the server over TLS.

use crate::server::Server;
use crate::support::{TestHost, eventually};
use crate::wire::Wire;
use serde_json::{Value, json};
use std::fs;

/// Name of the node of every test host.
const NODE: &str = "edge-1";

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: c\n    \
                   image: localhost/busybox:1\n    imagePullPolicy: Never\n    command: [/bin/sh, -c, exec sleep 1000000]\n";

fn kubeconfig(wire: &Wire, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": format!("https://127.0.0.1:{}", wire.port), "certificate-authority": "ca.pem"}}],
        "users": [{"name": "u", "user": user}],
    })
    .to_string()
}

fn host(wire: &Wire, user: &Value) -> TestHost {
    let host = TestHost::prepare("");
    let path = host.path("kubeconfig");
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml"), format!("{config}upstream: {{kubeconfig: {}}}\n", path.display())).unwrap();
    fs::write(host.path("ca.pem"), &wire.authority).unwrap();
    fs::write(path, kubeconfig(wire, user)).unwrap();
    host
}

fn mirror(server: &Server) -> Option<Value> {
    server.store().get("pods", "default", &format!("web-{NODE}"))
}

fn wait_for_phase(server: &Server, phase: &str) -> Value {
    eventually(&format!("a mirror that is {phase}"), || match mirror(server) {
        Some(mirror) if mirror["status"]["phase"] == phase => Ok(mirror),
        other => Err(format!("{other:?}")),
    })
}

#[test]
fn a_real_pod_has_its_mirror_which_comes_back_and_goes_with_it_and_a_rotated_token_is_read() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("first".into());
    let mut host = host(&wire, &json!({"tokenFile": "token"}));
    fs::write(host.path("token"), "first\n").unwrap();
    host.start_daemon();
    host.write_manifest("web.yaml", POD);
    let running = host.wait_running("web");
    let shown = wait_for_phase(&server, "Running");
    assert_eq!(shown["status"]["containerStatuses"][0]["containerID"], running.0["status"]["containerStatuses"][0]["containerID"]);
    assert_eq!(server.store().get("nodes", "", NODE).unwrap()["status"]["nodeInfo"]["operatingSystem"], "linux");
    let pid = host.container_pid(&running, "c");

    wire.known.lock().unwrap().token = Some("second".into());
    fs::write(host.path("token"), "second\n").unwrap();
    server.store().remove("pods", "default", &format!("web-{NODE}"));
    let again = wait_for_phase(&server, "Running");
    assert_ne!(again["metadata"]["uid"], shown["metadata"]["uid"]);
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid, "the container was not touched");
    eventually("podstead status to say that all is well", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("node registered, mirrors 1/1") && status.contains("127.0.0.1") { Ok(()) } else { Err(status) }
    });
    eventually("an event of the pod", || {
        let events = server.store().all("events");
        let started = |event: &Value| event["reason"] == "Started" && event["involvedObject"]["kind"] == "Pod";
        if events.iter().any(started) { Ok(()) } else { Err(format!("{events:?}")) }
    });

    host.remove_manifest("web.yaml");
    eventually("the mirror to go", || mirror(&server).map_or(Ok(()), |mirror| Err(mirror.to_string())));
    host.wait_gone("web");
}

#[test]
fn a_server_that_is_not_there_or_knows_nobody_keeps_no_pod_from_running_and_a_new_certificate_is_presented() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    let (first, second) = (wire.client_pair(), wire.client_pair());
    wire.known.lock().unwrap().certificate = Some(second.der);
    let mut host = host(&wire, &json!({"client-certificate": "node.pem"}));
    host.start_daemon();
    host.write_manifest("web.yaml", POD);
    host.wait_running("web");
    let status_says = |host: &TestHost, what: &str| {
        eventually(what, || {
            let status = host.cli_ok(&["status"]);
            if status.contains(what) { Ok(()) } else { Err(status) }
        });
    };
    status_says(&host, "node.pem");
    fs::write(host.path("node.pem"), first.pem).unwrap();
    status_says(&host, "answers 401");
    fs::write(host.path("node.pem"), second.pem).unwrap();
    wait_for_phase(&server, "Running");
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
}

#[test]
fn without_a_cluster_in_the_configuration_there_is_no_thread_for_one_and_with_one_it_costs_less_than_5_mib() {
    let threads = |host: &TestHost| -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", host.daemon_pid())).unwrap().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).map(|name| name.trim().to_owned()).collect()
    };
    let mut without = TestHost::prepare("");
    without.start_daemon();
    assert!(!threads(&without).contains(&"upstream".to_owned()));
    without.write_manifest("web.yaml", POD);
    without.wait_running("web");
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("first".into());
    let mut with = host(&wire, &json!({"tokenFile": "token"}));
    fs::write(with.path("token"), "first").unwrap();
    with.start_daemon();
    assert!(threads(&with).contains(&"upstream".to_owned()));
    with.write_manifest("web.yaml", POD);
    with.wait_running("web");
    wait_for_phase(&server, "Running");
    let (plain, connected) = (pss_kib(&without), pss_kib(&with));
    eprintln!("PSS of the daemon: {plain} KiB without a cluster, {connected} KiB with one");
    assert!(connected < plain + 5 * 1024, "{connected} KiB with a cluster, {plain} without");
    for host in [&with, &without] {
        host.remove_manifest("web.yaml");
        host.wait_gone("web");
    }
}

fn pss_kib(host: &TestHost) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", host.daemon_pid())).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn config_check_looks_into_the_kubeconfig() {
    let wire = Wire::start(Server::new(NODE));
    let host = host(&wire, &json!({"tokenFile": "token"}));
    let config = host.path("config.yaml").display().to_string();
    let check = || {
        let out = host.cli(&["config", "check", "--config", &config]);
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert!(check().0, "{}", check().1);
    fs::write(host.path("kubeconfig"), kubeconfig(&wire, &json!({"username": "me"}))).unwrap();
    let (success, said) = check();
    assert!(!success && said.contains("kubeconfig") && said.contains("username"), "{said}");
}
