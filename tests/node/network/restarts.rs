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

/// Target of the prober, and its records.
pub(super) struct Probe<A, D> {
    /// Results of connections that are allowed.
    pub(super) allowed: A,
    /// Results of those that are not.
    pub(super) denied: D,
    /// Address of the Service that answers.
    pub(super) steady: &'static str,
}

/// Pods `one` and `two` behind a Service, pod `shut` behind another one that a policy closes, pod `client`, and the prober.
pub(super) fn probes(site: &Site) -> Probe<impl Fn() -> String + use<>, impl Fn() -> String + use<>> {
    add_backends(site, &["one"]);
    // Ready as long as they run: a probe may fail on a busy host.
    let steady = |name: &str| super::services::backend(name, "default", "").split("    readinessProbe").next().unwrap().to_owned();
    site.host.write_manifest("two.yaml", &steady("two"));
    site.host.write_manifest("shut.yaml", &steady("shut").replace("{app: web}", "{app: shut, closed: 'yes'}"));
    site.host.write_manifest("deny.yaml", DENY);
    let at = |address: &str, app: &str| {
        format!("clusterIP: {address}, selector: {{app: {app}}}, ports: [{{port: 80, targetPort: 8080}}]")
    };
    site.host.write_manifest("web.yaml", &service("web", &at("10.202.0.9", "web")));
    site.host.write_manifest("shut-service.yaml", &service("shut", &at("10.202.0.10", "shut")));
    site.web("client", "", "");
    answers(site, "client", "http://10.202.0.9/", &["one", "two"]);
    eventually("a refusal", || site.pod_get("client", "http://10.202.0.10/").err().ok_or_else(|| "the pod answers".to_owned()));
    // The host is not filtered: the endpoint is there.
    site.machine.gets("http://10.202.0.10/", "I am shut");
    site.host.write_manifest("prober.yaml", PROBER);
    let root = format!("/proc/{}/root", site.host.container_pid(&site.host.wait_running("prober"), "main"));
    let lines = move |file: &str| std::fs::read_to_string(format!("{root}/{file}")).unwrap_or_default();
    let other = lines.clone();
    Probe { allowed: move || lines("allowed"), denied: move || other("denied"), steady: "10.202.0.9" }
}

/// R8, R14: kills at any moment of a start.
#[test]
fn connections_keep_their_verdict_over_kills() {
    let mut site = Site::start();
    let Probe { allowed, denied, steady } = probes(&site);
    let is_further = |before: usize| {
        eventually("the prober to go on", || {
            let count = denied().lines().count();
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
    for (text, wrong) in [(allowed(), "failed"), (denied(), "answered")] {
        let bad: Vec<&str> = text.lines().filter(|line| line.contains(wrong)).collect();
        assert!(bad.is_empty(), "{} of {} connections: {bad:?}", bad.len(), text.lines().count());
    }
    // What sources say counts again.
    site.host.remove_manifest("one.yaml");
    answers(&site, "client", &format!("http://{steady}/"), &["two"]);
}
