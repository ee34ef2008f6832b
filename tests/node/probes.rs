//! Requests and times of probes: each kind with each action, against servers that write down what they are asked (kubelet rule D15).

use crate::support::servers::{GrpcServer, Server};
use crate::support::{PodView, TestHost, eventually, eventually_within};
use std::time::Duration;

/// Many periods of a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const KINDS: [&str; 3] = ["startupProbe", "readinessProbe", "livenessProbe"];

/// A pod on the host's network whose one container sleeps and has these fields.
fn pod(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:1
    command: [/bin/sleep, '1000000']
{fields}"
    )
}

fn is_ready(pod: &PodView) -> bool {
    let container = pod.container("c");
    container["started"] == true && container["ready"] == true
}

fn wait_ready(host: &TestHost, name: &str) -> PodView {
    host.wait_for_pod(name, "ready", is_ready)
}

fn of_each_kind(probe: impl Fn(&str) -> String) -> String {
    KINDS.map(|kind| format!("    {kind}: {}\n", probe(kind))).concat()
}

/// shows: spec.containers[].startupProbe.httpGet.host, spec.containers[].startupProbe.httpGet.port, spec.containers[].startupProbe.httpGet.path
/// shows: spec.containers[].readinessProbe.httpGet.host, spec.containers[].readinessProbe.httpGet.port, spec.containers[].readinessProbe.httpGet.path
/// shows: spec.containers[].livenessProbe.httpGet.host, spec.containers[].livenessProbe.httpGet.port, spec.containers[].livenessProbe.httpGet.path
/// shows: spec.containers[].startupProbe.httpGet.httpHeaders[].name, spec.containers[].startupProbe.httpGet.httpHeaders[].value
/// shows: spec.containers[].readinessProbe.httpGet.httpHeaders[].name, spec.containers[].readinessProbe.httpGet.httpHeaders[].value
/// shows: spec.containers[].livenessProbe.httpGet.httpHeaders[].name, spec.containers[].livenessProbe.httpGet.httpHeaders[].value
/// shows: spec.containers[].startupProbe.httpGet.scheme, spec.containers[].readinessProbe.httpGet.scheme
/// shows: spec.containers[].livenessProbe.httpGet.scheme
#[test]
fn d15_http_probes_ask_with_host_and_headers() {
    let host = TestHost::start();
    for (name, tls, scheme) in [("plain", false, "HTTP"), ("secure", true, "HTTPS")] {
        let server = Server::start("127.0.0.2", tls, Box::new(|_, _| (200, Duration::ZERO)));
        let port = server.address.port();
        let probes = of_each_kind(|kind| {
            let headers = format!("httpHeaders: [{{name: X-Kind, value: {kind}}}, {{name: Host, value: shop.example}}]");
            format!(
                "{{httpGet: {{host: 127.0.0.2, port: {port}, path: '/{kind}?full=1', scheme: {scheme}, {headers}}}, timeoutSeconds: 30}}"
            )
        });
        host.write_manifest(&format!("{name}.yaml"), &pod(name, &probes));
        wait_ready(&host, name);
        for kind in KINDS {
            let asked = eventually("the request", || {
                server.asked_for(&format!("/{kind}?full=1")).pop().ok_or_else(|| format!("{kind}: {:?}", server.asked()))
            });
            let head = asked.1.to_lowercase();
            for line in
                [&format!("x-kind: {}", kind.to_lowercase()), "host: shop.example", "user-agent: kube-probe/1.36", "accept: */*"]
            {
                assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
            }
        }
    }
}

/// shows: spec.containers[].startupProbe.tcpSocket.host, spec.containers[].startupProbe.tcpSocket.port
/// shows: spec.containers[].readinessProbe.tcpSocket.host, spec.containers[].readinessProbe.tcpSocket.port
/// shows: spec.containers[].livenessProbe.tcpSocket.host, spec.containers[].livenessProbe.tcpSocket.port
#[test]
fn d15_tcp_probes_connect_to_host_and_port() {
    let host = TestHost::start();
    let servers = KINDS.map(|_| Server::start("127.0.0.2", false, Box::new(|_, _| (200, Duration::ZERO))));
    let port = |kind: &str| servers[KINDS.iter().position(|known| *known == kind).unwrap()].address.port();
    let probes = of_each_kind(|kind| format!("{{tcpSocket: {{host: 127.0.0.2, port: {}}}, timeoutSeconds: 30}}", port(kind)));
    host.write_manifest("web.yaml", &pod("web", &probes));
    wait_ready(&host, "web");
    for server in &servers {
        eventually("a connection", || if server.asked().is_empty() { Err(String::new()) } else { Ok(()) });
    }
}

/// shows: spec.containers[].startupProbe.grpc.port, spec.containers[].startupProbe.grpc.service
/// shows: spec.containers[].readinessProbe.grpc.port, spec.containers[].readinessProbe.grpc.service
/// shows: spec.containers[].livenessProbe.grpc.port, spec.containers[].livenessProbe.grpc.service
#[test]
fn d15_grpc_probes_ask_for_service_health() {
    let host = TestHost::start();
    let server = GrpcServer::start();
    let port = server.port;
    let probes = of_each_kind(|kind| format!("{{grpc: {{port: {port}, service: {kind}}}, timeoutSeconds: 30, periodSeconds: 1}}"));
    host.write_manifest("web.yaml", &pod("web", &probes));
    wait_ready(&host, "web");
    for kind in KINDS {
        eventually("the call", || {
            let asked = server.asked.lock().unwrap();
            if asked.iter().any(|service| service == kind) { Ok(()) } else { Err(format!("{asked:?}")) }
        });
    }
    // An edit takes effect on the container that runs: its service is sick.
    let probes = format!("    readinessProbe: {{grpc: {{port: {port}, service: sick}}, timeoutSeconds: 30, periodSeconds: 1}}\n");
    host.write_manifest("web.yaml", &pod("web", &probes));
    let pod = host.wait_for_pod("web", "not ready", |pod| pod.container("c")["ready"] == false);
    assert_eq!(pod.restarts("c"), 0);
    assert!(pod.0["status"].to_string().contains("service unhealthy (responded with \\\"NOT_SERVING\\\")"), "{}", pod.0["status"]);
}

/// shows: spec.containers[].startupProbe.exec.command, spec.containers[].readinessProbe.exec.command
/// shows: spec.containers[].livenessProbe.exec.command
#[test]
fn d15_exec_probes_run_their_command_in_container() {
    let host = TestHost::start();
    let probes =
        of_each_kind(|kind| format!("{{exec: {{command: [/bin/sh, -c, 'touch /asked-$0', {kind}]}}, timeoutSeconds: 30}}"));
    host.write_manifest("web.yaml", &pod("web", &probes));
    wait_ready(&host, "web");
    for kind in KINDS {
        eventually("the command", || {
            let seen = host.exec("web", "c", &["/bin/ls", "/"]);
            if seen.contains(&format!("asked-{kind}")) { Ok(()) } else { Err(seen) }
        });
    }
}

/// shows: spec.containers[].startupProbe.initialDelaySeconds, spec.containers[].startupProbe.periodSeconds
/// shows: spec.containers[].readinessProbe.initialDelaySeconds, spec.containers[].readinessProbe.periodSeconds
/// shows: spec.containers[].livenessProbe.initialDelaySeconds, spec.containers[].livenessProbe.periodSeconds
/// shows: spec.containers[].startupProbe.failureThreshold, spec.containers[].livenessProbe.failureThreshold
/// shows: spec.containers[].readinessProbe.successThreshold
#[test]
fn d15_delay_period_and_thresholds_are_as_written() {
    let host = TestHost::start();
    // Four failures in a row, one more than the default allows.
    let server = Server::start("127.0.0.2", false, Box::new(|_, count| (if count < 4 { 500 } else { 200 }, Duration::ZERO)));
    let port = server.address.port();
    let delay = 4;
    for kind in KINDS {
        let thresholds = if kind == "readinessProbe" { "successThreshold: 3" } else { "failureThreshold: 6" };
        let name = kind.to_lowercase();
        let probe = format!(
            "    {kind}: {{httpGet: {{host: 127.0.0.2, port: {port}, path: /{kind}}}, initialDelaySeconds: {delay}, periodSeconds: 2, \
             timeoutSeconds: 30, {thresholds}}}\n"
        );
        host.write_manifest(&format!("{name}.yaml"), &pod(&name, &probe));
    }
    for kind in KINDS {
        let pod = host.wait_running(&kind.to_lowercase());
        let started: jiff::Timestamp = pod.container("c")["state"]["running"]["startedAt"].as_str().unwrap().parse().unwrap();
        let (first_at, wall, now) = eventually_within(PATIENCE, "five requests", || {
            let asked = server.asked_for(&format!("/{kind}"));
            if asked.len() >= 5 {
                Ok((asked[0].0, jiff::Timestamp::now(), std::time::Instant::now()))
            } else {
                Err(format!("{asked:?}"))
            }
        });
        let first_wall = wall - now.duration_since(first_at);
        // Times in a status are whole seconds.
        let waited = f64::from(first_wall.duration_since(started).as_millis() as i32) / 1000.0;
        assert!(waited > f64::from(delay) - 1.0, "{kind}: asked {waited} s after the start");
        let asked = server.asked_for(&format!("/{kind}"));
        let mut gaps: Vec<f64> = asked.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        assert!(gaps[gaps.len() / 2] > 1.0 && gaps[gaps.len() / 2] < 6.0, "{kind}: {gaps:?}");
    }
    // Not ready at the first success, but at the third one. Times in a status are whole seconds, cut.
    let ready = wait_ready(&host, "readinessprobe");
    let conditions = ready.0["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    let since: jiff::Timestamp = condition["lastTransitionTime"].as_str().unwrap().parse().unwrap();
    let (now, wall) = (std::time::Instant::now(), jiff::Timestamp::now());
    let third = wall - now.duration_since(server.asked_for("/readinessProbe")[4 + 2].0);
    let early = f64::from(third.duration_since(since).as_millis() as i32) / 1000.0;
    assert!(early < 1.5, "ready {early} s before the third success, which is four seconds after the first one");
    for kind in ["startupProbe", "livenessProbe"] {
        assert_eq!(wait_ready(&host, &kind.to_lowercase()).restarts("c"), 0);
    }
}

/// shows: spec.containers[].startupProbe.timeoutSeconds, spec.containers[].readinessProbe.timeoutSeconds
/// shows: spec.containers[].livenessProbe.timeoutSeconds
#[test]
fn d15_check_takes_at_most_its_timeout() {
    let host = TestHost::start();
    let server =
        Server::start("127.0.0.2", false, Box::new(|path, _| (200, Duration::from_secs(if path == "/too-slow" { 5 } else { 2 }))));
    let port = server.address.port();
    let probe = |path: &str, timeout: u32| {
        format!("{{httpGet: {{host: 127.0.0.2, port: {port}, path: /{path}}}, timeoutSeconds: {timeout}, periodSeconds: 2}}")
    };
    host.write_manifest("patient.yaml", &pod("patient", &of_each_kind(|kind| probe(kind, 40))));
    host.write_manifest("hasty.yaml", &pod("hasty", &format!("    readinessProbe: {}\n", probe("too-slow", 2))));
    wait_ready(&host, "patient");
    eventually("two liveness checks", || if server.asked_for("/livenessProbe").len() >= 3 { Ok(()) } else { Err(String::new()) });
    let events = host.cli_ok(&["get", "events"]);
    assert!(!events.contains("Liveness probe failed"), "{events}");
    let hasty = host.wait_for_pod("hasty", "told why", |pod| pod.0["status"].to_string().contains("context deadline exceeded"));
    assert_eq!(hasty.container("c")["ready"], false);
}

/// The pod has a network namespace of its own, and its server is reached in there.
/// shows: spec.containers[].ports[].name
#[test]
fn d15_pod_without_address_is_probed_inside() {
    let host = TestHost::start();
    let manifest = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:1
    command: [/bin/sh, -c, 'mkdir /www; echo fine > /www/index.html; exec httpd -f -p 8080 -h /www']
    ports: [{name: web, containerPort: 8080}]
    startupProbe: {tcpSocket: {port: web}, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 30}
    readinessProbe: {httpGet: {port: web, path: /index.html}, periodSeconds: 1, timeoutSeconds: 30}
";
    host.write_manifest("web.yaml", manifest);
    wait_ready(&host, "web");
    host.write_manifest("web.yaml", &manifest.replace("/index.html}", "/none}"));
    let pod = host.wait_for_pod("web", "not ready", |pod| pod.container("c")["ready"] == false);
    assert!(pod.0["status"].to_string().contains("HTTP probe failed with statuscode: 404"), "{}", pod.0["status"]);
    assert_eq!(pod.restarts("c"), 0);
}

/// shows: spec.containers[].startupProbe.successThreshold, spec.containers[].livenessProbe.successThreshold
#[test]
fn restarting_probe_needs_one_success() {
    let host = TestHost::start();
    for kind in ["startupProbe", "livenessProbe"] {
        let file = host.path(&format!("{kind}.yaml"));
        std::fs::write(&file, pod("web", &format!("    {kind}: {{tcpSocket: {{port: 1}}, successThreshold: 2}}\n"))).unwrap();
        let refused = host.cli(&["validate", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("successThreshold"), "{said}");
    }
}
