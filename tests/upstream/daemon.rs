//! The real daemon against the server over TLS.

use crate::relay::Relay;
use crate::server::Server;
use crate::support::{TestHost, eventually, eventually_within};
use crate::wire::{NAME, Wire};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

/// Name of the node of every test host.
pub(crate) const NODE: &str = "edge-1";

pub(crate) const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: c\n    \
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

pub(crate) fn host(wire: &Wire, user: &Value) -> TestHost {
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

pub(crate) fn wait_for_phase(server: &Server, phase: &str) -> Value {
    wait_for_phase_within(Duration::from_secs(60), server, phase)
}

pub(crate) fn wait_for_phase_within(patience: Duration, server: &Server, phase: &str) -> Value {
    eventually_within(patience, &format!("a mirror that is {phase}"), || match mirror(server) {
        Some(mirror) if mirror["status"]["phase"] == phase => Ok(mirror),
        other => Err(format!("{other:?}")),
    })
}

#[test]
fn real_pod_has_mirror_and_token_rotates() {
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
fn absent_server_stops_no_pod() {
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
    status_says(&host, "returned 401");
    fs::write(host.path("node.pem"), second.pem).unwrap();
    wait_for_phase(&server, "Running");
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
}

#[test]
fn unconfigured_cluster_costs_no_thread() {
    // Of TCP, as the kernel numbers them.
    let connections = |host: &TestHost| -> usize {
        let pid = host.daemon_pid();
        let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
        let rows = table("tcp") + &table("tcp6");
        let inodes: Vec<&str> = rows.lines().filter_map(|row| row.split_whitespace().nth(9)).collect();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten().filter_map(|file| fs::read_link(file.path()).ok());
        open.filter(|file| inodes.iter().any(|inode| file.as_os_str() == format!("socket:[{inode}]").as_str())).count()
    };
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
    eventually("the thread", || {
        let threads = threads(&with);
        if threads.contains(&"upstream".to_owned()) { Ok(()) } else { Err(threads.join(" ")) }
    });
    with.write_manifest("web.yaml", POD);
    with.wait_running("web");
    wait_for_phase(&server, "Running");
    assert_eq!(connections(&without), 0);
    assert!((1..=3).contains(&connections(&with)), "{}", connections(&with));
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
fn daemon_uses_proxy_of_its_environment() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("t".into());
    let proxy = Relay::start(wire.port, true);
    let mut host = host(&wire, &json!({"token": "t"}));
    let text = kubeconfig(&wire, &json!({"token": "t"})).replace(&format!("127.0.0.1:{}", wire.port), &format!("{NAME}:6443"));
    fs::write(host.path("kubeconfig"), text).unwrap();
    host.environment.push(("HTTPS_PROXY".into(), format!("http://127.0.0.1:{}", proxy.port)));
    host.start_daemon();
    eventually("the Node", || server.store().get("nodes", "", NODE).ok_or_else(|| host.cli_ok(&["status"])));
    assert!(proxy.tunnels() > 0);
}

/// Status, reason and message of a condition of the Node.
fn condition(server: &Server, kind: &str) -> Option<(String, String, String)> {
    let node = server.store().get("nodes", "", NODE)?;
    let found = node["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)?.clone();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

#[test]
fn node_without_pod_network_is_not_ready() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("t".into());
    let mut host = host(&wire, &json!({"token": "t"}));
    let networks = host.path("net.d");
    fs::create_dir(&networks).unwrap();
    let text = fs::read_to_string(host.path("config.yaml")).unwrap();
    let cni = format!("network: {{type: cni, cni: {{configDir: {}}}}}", networks.display());
    fs::write(host.path("config.yaml"), text.replace("network: {type: none}", &cni)).unwrap();
    host.start_daemon();
    let wait_for = |kind: &str, status: &str, reason: &str| {
        eventually(&format!("{kind} {status}"), || match condition(&server, kind) {
            Some((is, why, message)) if is == status && why == reason => Ok(message),
            other => Err(format!("{other:?}")),
        })
    };
    let said = wait_for("Ready", "False", "KubeletNotReady");
    assert!(said.contains("NetworkReady=false reason:NetworkPluginNotReady"), "{said}");
    wait_for("NetworkUnavailable", "True", "NetworkPluginNotReady");
    let network = r#"{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "loopback"}]}"#;
    fs::write(networks.join("10-n.conflist"), network).unwrap();
    wait_for("Ready", "True", "KubeletReady");
    wait_for("NetworkUnavailable", "False", "PodNetworkReady");
}

#[test]
fn doctor_and_bundle_hide_cluster_secrets() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("hunter2".into());
    let mut host = host(&wire, &json!({"token": "hunter2"}));
    fs::set_permissions(host.path("kubeconfig"), fs::Permissions::from_mode(0o600)).unwrap();
    host.start_daemon();
    let config = host.path("config.yaml").display().to_string();
    let doctor = || {
        let out = host.cli(&["--config", &config, "doctor", "upstream"]);
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    eventually("doctor to be content", || {
        let said = doctor();
        if said.starts_with("ok       upstream") && said.contains("no problems found") { Ok(()) } else { Err(said) }
    });
    fs::set_permissions(host.path("kubeconfig"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(doctor().contains("every user can read"), "{}", doctor());
    let bundle = host.path("bundle.tgz");
    let out = host.cli(&["--config", &config, "support-bundle", "-o", &bundle.display().to_string()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let unpacked =
        Command::new("tar").arg("-xzOf").arg(&bundle).arg("--wildcards").args(["*/kubeconfig.yaml", "*/status.txt"]).output();
    let text = String::from_utf8_lossy(&unpacked.unwrap().stdout).into_owned();
    assert!(text.contains(&format!("https://127.0.0.1:{}", wire.port)) && text.contains("node registered"), "{text}");
    assert!(!text.contains("hunter2") && text.contains("<redacted>"), "{text}");
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
