//! Services while what is behind them changes: edits of ports, a Deployment that is rolled out, and a source that is away.

use super::lan::Site;
use super::service_rows::{CHATTER, Program, chatter, datagram_server, hears, in_pod};
use super::services::{WEB, add_backends, answers, backend, cluster_ip, service};
use crate::support::{eventually, eventually_within};
use std::time::Duration;

/// T11: TCP and UDP at one port, and a port that is edited; nothing restarts.
#[test]
fn ports_of_both_protocols_follow_an_edit() {
    let site = Site::start();
    site.web("client", "", "");
    site.host.write_manifest("one.yaml", &backend("one", "default", ""));
    let _server = datagram_server(&site, "one");
    let ports = |number: u16| {
        let tcp = format!("{{name: tcp, port: {number}, targetPort: 8080}}");
        let udp = "{name: udp, port: 80, targetPort: 5353, protocol: UDP}, {name: dns, port: 53, targetPort: 5353, protocol: UDP}";
        service("web", &format!("selector: {{app: web}}, ports: [{tcp}, {udp}]"))
    };
    site.host.write_manifest("web.yaml", &ports(80));
    let address = cluster_ip(&site.host, "web");
    let before = site.host.wait_running("one").container_id("main");
    answers(&site, "client", &format!("http://{address}:80/"), &["one"]);
    let talk = |port: &str| chatter(in_pod(&site, "client", &["python3", "-c", CHATTER, &address, port]));
    let talkers = [talk("80"), talk("53")];
    talkers.iter().for_each(|(_, answers)| hears(answers, "I am one"));
    site.host.write_manifest("web.yaml", &ports(81));
    answers(&site, "client", &format!("http://{address}:81/"), &["one"]);
    let refused = site.pod_get("client", &format!("http://{address}:80/")).unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
    assert_eq!(site.host.wait_running("one").container_id("main"), before);
    // Datagrams at the number that TCP has left go on.
    while talkers[0].1.try_recv().is_ok() {}
    hears(&talkers[0].1, "I am one");
}

/// T7: a pod that is not ready any more gets no new connections, and those that are open go on.
#[test]
fn open_connection_outlives_its_endpoint() {
    const SERVER: &str =
        "import socket\ns = socket.create_server(('0.0.0.0', 9000))\nc = s.accept()[0]\nwhile True: c.sendall(c.recv(100))\n";
    const CLIENT: &str = "import socket, sys, time\ns = socket.create_connection((sys.argv[1], 9000), timeout=60)\n\
                          while True: s.sendall(b'hello'); print(s.recv(100).decode(), flush=True); time.sleep(0.05)\n";
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    let ports = "ports: [{name: web, port: 80, targetPort: 8080}, {name: echo, port: 9000}]";
    site.host.write_manifest("web.yaml", &service("web", &format!("selector: {{app: web}}, {ports}")));
    let address = cluster_ip(&site.host, "web");
    answers(&site, "client", &format!("http://{address}/"), &["one"]);
    let _server = Program(in_pod(&site, "one", &["python3", "-c", SERVER]).spawn().unwrap());
    eventually("the server to listen", || {
        let sockets = in_pod(&site, "one", &["ss", "-Hltn"]).output().unwrap();
        String::from_utf8_lossy(&sockets.stdout).contains(":9000 ").then_some(()).ok_or_else(|| "it does not".to_owned())
    });
    let (_client, said) = chatter(in_pod(&site, "client", &["python3", "-c", CLIENT, &address]));
    hears(&said, "hello");
    site.host.exec("one", "main", &["rm", "/tmp/ready"]);
    eventually("the Service to refuse new connections", || match site.pod_get("client", &format!("http://{address}/")) {
        Err(error) if error.contains("refused") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    while said.try_recv().is_ok() {}
    (0..3).for_each(|_| hears(&said, "hello"));
}

/// A client that connects about every 10 ms, and says so when a connection fails, and after each hundred.
const ASKER: &str = "import socket, sys, time
count = 0
while True:
  try:
    s = socket.create_connection((sys.argv[1], 80), timeout=10)
    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    said = b''
    while True:
      part = s.recv(1000)
      if not part: break
      said += part
    if b'I am ' not in said: print('failed: answer', said, flush=True)
    s.close()
  except OSError as error: print('failed:', error, flush=True)
  count += 1
  if count % 100 == 0: print('asked', flush=True)
  time.sleep(0.01)
";

/// T13: pods that stop serve until nothing leads to them, as those of real programs do.
#[test]
fn rollout_fails_no_connection() {
    let site = Site::start();
    site.web("client", "", "");
    let deployment = |version: &str| {
        let hook = "lifecycle: {preStop: {exec: {command: [/bin/sh, -c, 'sleep 1']}}}";
        let script = format!("mkdir /www && echo I am {version} > /www/index.html && exec httpd -f -p 8080 -h /www");
        let container = format!(
            "{{name: main, image: 'localhost/busybox:1', command: [/bin/sh, -c, '{script}'], {hook}, \
             readinessProbe: {{httpGet: {{port: 8080}}, periodSeconds: 1}}}}"
        );
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 3\n  strategy: {{rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}\n  \
             selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
             spec: {{terminationGracePeriodSeconds: 5, containers: [{container}]}}\n"
        )
    };
    site.host.write_manifest("web.yaml", &deployment("first"));
    site.host.write_manifest("service.yaml", &service("web", "selector: {app: web}, ports: [{port: 80, targetPort: 8080}]"));
    let address = cluster_ip(&site.host, "web");
    site.pod_gets("client", &format!("http://{address}/"), "I am first");
    let (asker, said) = chatter(in_pod(&site, "client", &["python3", "-c", ASKER, &address]));
    hears(&said, "asked");
    site.host.write_manifest("web.yaml", &deployment("second"));
    eventually_within(Duration::from_secs(120), "the rollout to end", || {
        let script = format!("for i in $(seq 20); do wget -q -O - http://{address}/; done | sort | uniq -c");
        let text = site.host.exec("client", "main", &["/bin/sh", "-c", &script]);
        let pods = site.host.cli_ok(&["get", "pods", "-o", "name"]);
        let is_over = pods.lines().filter(|name| name.contains("web-")).count() == 3 && !text.contains("first");
        if is_over { Ok(()) } else { Err(format!("{text}\n{pods}")) }
    });
    drop(asker);
    let failed: Vec<String> = said.iter().filter(|line| line.starts_with("failed")).collect();
    assert!(failed.is_empty(), "{failed:?}\n{}", site.host.daemon_log());
}

/// T23: a source that cannot be read at the start takes nothing away.
#[test]
fn service_outlives_its_source_at_a_start() {
    let mut site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    let address = cluster_ip(&site.host, "web");
    answers(&site, "client", "http://web/", &["one"]);
    site.host.kill_daemon();
    let (there, away) = (site.host.path("manifests"), site.host.path("away"));
    std::fs::rename(&there, &away).unwrap();
    site.machine.run("nft flush ruleset");
    site.host.start_daemon();
    assert_eq!(cluster_ip(&site.host, "web"), address);
    answers(&site, "client", &format!("http://{address}/"), &["one"]);
    answers(&site, "client", "http://web/", &["one"]);
    std::fs::rename(&away, &there).unwrap();
    site.host.write_manifest("web.yaml", &service("web", &format!("clusterIP: 10.202.0.9, {WEB}")));
    eventually("the edit to be taken", || {
        let now = cluster_ip(&site.host, "web");
        if now == "10.202.0.9" { Ok(()) } else { Err(now) }
    });
    answers(&site, "client", "http://10.202.0.9/", &["one"]);
}
