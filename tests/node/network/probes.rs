//! Probes and hooks that ask a pod at its own address (kubelet rules D12 and D15).

use super::lan::Site;
use crate::support::eventually;

/// The server listens on the pod's first address only, and writes down what it is asked.
#[test]
fn d15_probes_without_host_ask_the_pod() {
    let site = Site::start();
    let work = site.host.path("work");
    std::fs::create_dir(&work).unwrap();
    let manifest = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  terminationGracePeriodSeconds: 10
  containers:
  - name: main
    image: localhost/busybox:1
    command: [/bin/sh, -c, 'mkdir /www; for file in ready alive bye; do echo yes > /www/$file; done; exec httpd -f -vv -p $IP:8080 -h /www 2>> /work/log']
    env: [{{name: IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}]
    ports: [{{name: web, containerPort: 8080}}]
    startupProbe: {{tcpSocket: {{port: web}}, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 30}}
    livenessProbe: {{httpGet: {{port: 8080, path: /alive}}, periodSeconds: 1, timeoutSeconds: 30}}
    readinessProbe: {{httpGet: {{port: web, path: /ready}}, periodSeconds: 1, timeoutSeconds: 30}}
    lifecycle: {{preStop: {{httpGet: {{port: web, path: /bye}}}}}}
    volumeMounts: [{{name: work, mountPath: /work}}]
  volumes: [{{name: work, hostPath: {{path: {}}}}}]
",
        work.display()
    );
    site.host.write_manifest("web.yaml", &manifest);
    let ready = site.host.wait_for_pod("web", "ready", |pod| pod.container("main")["ready"] == true);
    let asked = || std::fs::read_to_string(work.join("log")).unwrap_or_default();
    eventually("both probes", || {
        let log = asked();
        (log.contains("url:/ready") && log.contains("url:/alive")).then_some(()).ok_or(log)
    });
    assert!(!asked().contains("url:/bye"));
    // Another host that answers nothing is another answer.
    let elsewhere = manifest.replace("{httpGet: {port: web, path: /ready}", "{httpGet: {host: 127.0.0.1, port: web, path: /ready}");
    assert_ne!(elsewhere, manifest);
    site.host.write_manifest("web.yaml", &elsewhere);
    let unready = site.host.wait_for_pod("web", "not ready", |pod| pod.container("main")["ready"] == false);
    assert_eq!((unready.container_id("main"), unready.restarts("main")), (ready.container_id("main"), 0));
    site.host.remove_manifest("web.yaml");
    site.host.wait_gone("web");
    assert!(asked().contains("url:/bye"), "{}", asked());
}
