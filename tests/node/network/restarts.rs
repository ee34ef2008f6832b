//! The daemon dies and comes back, and no connection through a Service or past a NetworkPolicy notices.

use super::lan::Site;
use super::services::{add_backends, answers, service};
use crate::support::eventually;

const KILLS: usize = 8;

/// A pod that connects without pause: to what is allowed, and to what is not. It writes each result to a file.
const PROBER: &str = "apiVersion: v1
kind: Pod
metadata: {name: prober, labels: {app: prober}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command:
    - /bin/sh
    - -c
    - |
      while true; do
        if timeout 5 wget -q -O /dev/null http://10.202.0.9/ 2> /why; then echo answered; else echo failed $(date +%s) $(cat /why); fi >> /allowed
        if timeout 5 wget -q -O /dev/null http://10.202.0.10/; then echo answered; else echo refused; fi >> /denied
      done
";

const DENY: &str = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec:
  podSelector: {matchLabels: {closed: 'yes'}}
  policyTypes: [Ingress]
";

/// R8, R14: kills at any moment of a start.
#[test]
fn connections_keep_their_verdict_over_kills() {
    let mut site = Site::start();
    add_backends(&site, &["one", "two"]);
    let closed = super::services::backend("shut", "default", "").replace("{app: web}", "{app: shut, closed: 'yes'}");
    site.host.write_manifest("shut.yaml", &closed);
    site.host.write_manifest("deny.yaml", DENY);
    let at = |address: &str, app: &str| {
        format!("clusterIP: {address}, selector: {{app: {app}}}, ports: [{{port: 80, targetPort: 8080}}]")
    };
    site.host.write_manifest("web.yaml", &service("web", &at("10.202.0.9", "web")));
    site.host.write_manifest("shut-service.yaml", &service("shut", &at("10.202.0.10", "shut")));
    site.web("client", "", "");
    answers(&site, "client", "http://10.202.0.9/", &["one", "two"]);
    eventually("a refusal", || site.pod_get("client", "http://10.202.0.10/").err().ok_or_else(|| "the pod answers".to_owned()));
    let config = site.host.path("config.yaml").display().to_string();
    let trace = [env!("CARGO_BIN_EXE_podstead"), "--config", &config, "network", "trace", "client", "shut:80"];
    let mut said = String::new();
    eventually("the Service to be known", || {
        let out = site.machine.command(&trace).output().unwrap();
        said = String::from_utf8_lossy(&out.stdout).into_owned();
        let is_known = said.contains("through 10.202.0.10, an address of a Service") && said.contains("port 8080/TCP");
        if is_known { Ok(()) } else { Err(said.clone()) }
    });
    assert!(said.contains("denied: selected by NetworkPolicy default/closed"), "{said}");
    // The host is not filtered: the endpoint is there.
    site.machine.gets("http://10.202.0.10/", "I am shut");
    site.host.write_manifest("prober.yaml", PROBER);
    let root = format!("/proc/{}/root", site.host.container_pid(&site.host.wait_running("prober"), "main"));
    let lines = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).unwrap_or_default();
    let is_further = |before: usize| {
        eventually("the prober to go on", || {
            let count = lines("denied").lines().count();
            if count > before + 5 { Ok(count) } else { Err(format!("{count} connections after {before}")) }
        })
    };
    let mut count = is_further(0);
    for kill in 0..KILLS {
        site.host.kill_daemon();
        count = is_further(count);
        if kill % 2 == 0 {
            // Killed before it has read its sources, or while it does.
            site.host.spawn_daemon();
            count = is_further(count);
            site.host.kill_daemon();
        }
        site.host.start_daemon();
        count = is_further(count);
    }
    for (file, wrong) in [("allowed", "failed"), ("denied", "answered")] {
        let text = lines(file);
        let bad: Vec<&str> = text.lines().filter(|line| line.contains(wrong)).collect();
        assert!(!text.contains(wrong), "{} of {} {file} connections: {bad:?}", bad.len(), text.lines().count());
    }
    // What sources say counts again.
    site.host.remove_manifest("one.yaml");
    answers(&site, "client", "http://10.202.0.9/", &["two"]);
}
