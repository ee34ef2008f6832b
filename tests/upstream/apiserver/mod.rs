//! The real daemon against a real kube-apiserver with the Node authorizer and NodeRestriction: what the server of the other tests is held to.
//!
//! Run by `make cluster`, which builds the API server from Debian's source.

mod clock;
mod foreign;

use crate::kube::{Lasts, RealCluster};
use crate::support::{TestHost, eventually};
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

/// Name of the node of every test host.
const NODE: &str = "edge-1";

fn pod(name: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{more}  containers:\n  \
         - name: c\n    image: localhost/busybox:1\n    imagePullPolicy: Never\n    command: [/bin/sh, -c, exec sleep 1000000]\n"
    )
}

/// Everything that a mirror must not carry, and what a server of version 1.20 does not know.
const RICH: &str = "apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {k: hunter2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {k: v}
---
apiVersion: v1
kind: Pod
metadata: {name: rich, labels: {app: rich}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  serviceAccountName: default
  automountServiceAccountToken: true
  priorityClassName: shop
  imagePullSecrets: [{name: s}]
  volumes:
  - {name: s, secret: {secretName: s}}
  - {name: e, emptyDir: {}}
  - name: p
    projected: {sources: [{configMap: {name: m}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}
  initContainers:
  - {name: i, image: localhost/busybox:1, imagePullPolicy: Never, command: [sh, -c, 'true']}
  containers:
  - name: c
    image: localhost/busybox:1
    imagePullPolicy: Never
    command: [/bin/sh, -c, exec sleep 1000000]
    env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: P, value: plain}]
    envFrom: [{configMapRef: {name: m}}]
    resources: {limits: {memory: 32Mi}}
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    livenessProbe: {grpc: {port: 9}, initialDelaySeconds: 3000}
    volumeMounts: [{name: s, mountPath: /s}, {name: e, mountPath: /e}, {name: p, mountPath: /p}]
";

/// A host that is the node in the eyes of the cluster; its daemon does not run yet.
fn node_host(cluster: &RealCluster, more: &str) -> TestHost {
    let host = TestHost::prepare("");
    cluster.join(&host, more, &json!({"client-certificate": "node.pem"}));
    fs::write(host.path("node.pem"), cluster.certificate(&format!("system:node:{NODE}"), "system:nodes", Lasts::Long)).unwrap();
    host
}

fn mirror(cluster: &RealCluster, name: &str) -> Option<Value> {
    cluster.get("pod", "default", &format!("{name}-{NODE}"))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn wait_for_mirror(cluster: &RealCluster, host: &TestHost, name: &str, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("a mirror of {name} that is {what}"), || match mirror(cluster, name) {
        Some(mirror) if mirror["status"]["phase"] == "Running" && is_it(&mirror) => Ok(mirror),
        other => Err(format!("{other:?}\n{}", host.cli_ok(&["status"]))),
    })
}

fn status_says(host: &TestHost, words: &str) {
    eventually(words, || {
        let status = host.cli_ok(&["status"]);
        if status.contains(words) { Ok(()) } else { Err(status) }
    });
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn e1_e2_e7_kubectl_shows_node_and_mirrors() {
    let cluster = RealCluster::start();
    let mut host = node_host(&cluster, ", labels: {topology.kubernetes.io/zone: berlin, node-role.kubernetes.io/edge: 'yes'}");
    host.write_manifest("rich.yaml", RICH);
    host.write_manifest("cart.yaml", &pod("cart", "").replace("{name: cart,", "{name: cart, namespace: shop,"));
    host.start_daemon();
    let rich = wait_for_mirror(&cluster, &host, "rich", "whole", |_| true);
    let omitted = rich["metadata"]["annotations"]["podstead.dev/omitted"].as_str().unwrap();
    for path in [
        "spec.priorityClassName",
        "spec.volumes[s]",
        "spec.volumes[p].projected",
        "spec.containers[c].env[T]",
        "spec.containers[c].livenessProbe",
    ] {
        assert!(omitted.split(',').any(|other| other == path), "{path} in {omitted}");
    }
    assert!(!rich.to_string().contains("hunter2") && rich["spec"]["containers"][0]["env"][0]["value"] == "plain", "{rich}");
    let owner = &rich["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], owner["uid"].as_str().unwrap()),
        (&json!("Node"), uid(&cluster.get("node", "", NODE).unwrap()).as_str())
    );
    assert!(rich["status"]["podIPs"].as_array().unwrap().iter().all(|address| address["ip"].is_string()), "{rich}");

    status_says(&host, "namespaces \"shop\" not found");
    cluster.ok(&["create", "namespace", "shop"]);
    // One that this version of the server takes for an init container that does not end: it shows it, in its own words.
    let sidecar = "  initContainers:\n  - {name: s, image: localhost/busybox:1, imagePullPolicy: Never, restartPolicy: Always, command: [/bin/sh, -c, exec \
                   sleep 1000000], startupProbe: {exec: {command: ['true']}}}\n";
    host.write_manifest("side.yaml", &pod("side", sidecar));
    wait_for_mirror(&cluster, &host, "side", "there", |_| true);
    status_says(&host, "mirrors 3/3");
    status_says(&host, "is not allowed to modify labels: node-role.kubernetes.io/edge");

    let nodes = cluster.ok(&["get", "nodes", "--output", "wide", "--no-headers"]);
    let columns: Vec<&str> = nodes.split_whitespace().collect();
    assert_eq!(&columns[..2], [NODE, "Ready"], "{nodes}");
    assert!(nodes.contains("+podstead.") && nodes.contains("podstead://"), "{nodes}");
    let pods = cluster.ok(&["get", "pods", "--all-namespaces", "--output", "wide", "--no-headers"]);
    for name in ["rich-edge-1", "cart-edge-1"] {
        let line = pods.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(line.contains("1/1") && line.contains("Running") && line.contains(NODE), "{pods}");
    }
    let described = cluster.ok(&["describe", "node", NODE]);
    for words in [
        "topology.kubernetes.io/zone=berlin",
        "podstead.dev/static-pods:NoSchedule",
        "KubeletReady",
        "HolderIdentity:  edge-1",
        "rich-edge-1",
    ] {
        assert!(described.contains(words), "{words} in {described}");
    }
    eventually("events of the pod in its description", || {
        let described = cluster.ok(&["describe", "pod", "rich-edge-1"]);
        if described.contains("Controlled By:  Node/edge-1") && described.contains("Started container c") {
            Ok(())
        } else {
            Err(described)
        }
    });

    // At rest nothing is written but the Lease: what a server of this version does not know is not sent again and again.
    let version = |mirror: &Value| mirror["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let settled = wait_for_mirror(&cluster, &host, "rich", "settled", |_| true);
    let lease = |cluster: &RealCluster| cluster.get("lease", "kube-node-lease", NODE).unwrap()["spec"]["renewTime"].clone();
    let first = lease(&cluster);
    let patches = || {
        let metrics = cluster.ok(&["get", "--raw", "/metrics"]);
        let is_it = |line: &&str| {
            line.starts_with("apiserver_request_total{") && line.contains("verb=\"PATCH\"") && line.contains("resource=\"pods\"")
        };
        metrics.lines().filter(is_it).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>()
    };
    let before = patches();
    let mut renewals = 0;
    let mut last = first;
    eventually("the Lease to be renewed twice", || {
        let now = lease(&cluster);
        if now != last {
            renewals += 1;
            last = now;
        }
        if renewals >= 2 { Ok(()) } else { Err(renewals.to_string()) }
    });
    assert_eq!(patches(), before);
    assert_eq!(version(&mirror(&cluster, "rich").unwrap()), version(&settled));
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn e4_deleted_mirror_returns_and_follows_manifest() {
    let cluster = RealCluster::start();
    let mut host = node_host(&cluster, "");
    host.write_manifest("web.yaml", &pod("web", ""));
    host.start_daemon();
    let first = wait_for_mirror(&cluster, &host, "web", "there", |_| true);
    let pid = host.container_pid(&host.wait_running("web"), "c");
    let name = format!("web-{NODE}");
    cluster.ok(&["delete", "pod", &name, "--force", "--grace-period=0", "--wait=false"]);
    let began = Instant::now();
    let second = wait_for_mirror(&cluster, &host, "web", "another", |mirror| uid(mirror) != uid(&first));
    eprintln!("a mirror that was deleted by force is back after {:?}", began.elapsed());
    cluster.ok(&["delete", "pod", &name, "--wait=false"]);
    let began = Instant::now();
    let third = wait_for_mirror(&cluster, &host, "web", "a third", |mirror| uid(mirror) != uid(&second));
    eprintln!("a mirror that was deleted gracefully is back after {:?}", began.elapsed());
    // Labels that somebody adds stay, a status that somebody changes is given back.
    cluster.ok(&["label", "pod", &name, "seen=yes"]);
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid, "the container was not touched");

    host.write_manifest("web.yaml", &pod("web", "").replace("1000000", "1000001"));
    let changed = wait_for_mirror(&cluster, &host, "web", "changed", |mirror| {
        mirror["spec"]["containers"][0]["command"][2] == "exec sleep 1000001"
    });
    assert_ne!(uid(&changed), uid(&third));
    host.remove_manifest("web.yaml");
    eventually("the mirror to go", || mirror(&cluster, "web").map_or(Ok(()), |mirror| Err(mirror.to_string())));
    host.wait_gone("web");
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn e5_e6_dead_api_server_stops_nothing() {
    let mut cluster = RealCluster::start();
    let mut host = node_host(&cluster, "");
    host.write_manifest("web.yaml", &pod("web", ""));
    host.write_manifest("old.yaml", &pod("old", ""));
    host.start_daemon();
    let first = wait_for_mirror(&cluster, &host, "web", "there", |_| true);
    wait_for_mirror(&cluster, &host, "old", "there", |_| true);
    let pid = host.container_pid(&host.wait_running("web"), "c");

    cluster.kill_apiserver();
    status_says(&host, "not connected");
    host.write_manifest("new.yaml", &pod("new", ""));
    host.wait_running("new");
    host.remove_manifest("old.yaml");
    host.wait_gone("old");
    // A daemon that starts without its cluster works all the same.
    host.stop_daemon();
    host.start_daemon();
    host.wait_running("web");

    cluster.start_apiserver();
    let began = Instant::now();
    wait_for_mirror(&cluster, &host, "new", "there", |_| true);
    eventually("the orphan to go", || mirror(&cluster, "old").map_or(Ok(()), |mirror| Err(mirror.to_string())));
    eprintln!("{:?} after its return the missing mirror is there and the orphan gone", began.elapsed());
    assert_eq!(uid(&mirror(&cluster, "web").unwrap()), uid(&first), "what was right was left alone");
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid);

    // The Node goes: it is registered again, and mirrors get the new owner.
    cluster.ok(&["delete", "node", NODE, "--wait=false"]);
    eventually("mirrors of the new Node", || {
        let node = cluster.get("node", "", NODE).ok_or("no Node")?;
        let mirror = mirror(&cluster, "web").ok_or("no mirror")?;
        if mirror["metadata"]["ownerReferences"][0]["uid"] == uid(&node).as_str() { Ok(()) } else { Err(mirror.to_string()) }
    });
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid);
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn foreign_node_is_joined_with_new_certificates() {
    let cluster = RealCluster::start();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "edge"},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
            {"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ],
    });
    cluster.create(&role);
    cluster.ok(&["create", "clusterrolebinding", "edge", "--clusterrole=edge", "--user=edge-user"]);
    let mut host = TestHost::prepare("");
    cluster.join(&host, "", &json!({"client-certificate": "node.pem"}));
    // One that has ended, then one of somebody without rights, then the right one.
    fs::write(host.path("node.pem"), cluster.certificate("edge-user", "", Lasts::NoMore)).unwrap();
    host.write_manifest("web.yaml", &pod("web", "  hostNetwork: true\n"));
    host.start_daemon();
    let pid = host.container_pid(&host.wait_running("web"), "c");
    status_says(&host, "returned 401");
    fs::write(host.path("node.pem"), cluster.certificate("nobody", "", Lasts::Long)).unwrap();
    status_says(&host, "returned 403");
    fs::write(host.path("node.pem"), cluster.certificate("edge-user", "", Lasts::Long)).unwrap();
    status_says(&host, "cannot create resource \"nodes\"");
    let taints = json!([{"key": "a", "effect": "NoSchedule"}]);
    cluster.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"made": "by-hand"}}, "spec": {"taints": taints}}));
    wait_for_mirror(&cluster, &host, "web", "there", |_| true);
    let node = eventually("the Node to be told all", || {
        let node = cluster.get("node", "", NODE).ok_or("no Node")?;
        if node["status"]["addresses"].is_array() && node["metadata"]["labels"]["kubernetes.io/os"] == "linux" {
            Ok(node)
        } else {
            Err(node.to_string())
        }
    });
    let addresses = node["status"]["addresses"].as_array().unwrap();
    assert!(addresses.iter().all(|address| address["address"].as_str().is_some_and(|address| !address.is_empty())), "{node}");
    assert_eq!(node["metadata"]["labels"]["made"], "by-hand");
    assert!(node["spec"]["taints"].as_array().unwrap().contains(&taints[0]), "{node}");
    // There is no right to a Lease: that is told, and the status is the sign of life.
    status_says(&host, "Lease of the Node");
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid);
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn one_of_two_equal_hosts_waits() {
    let cluster = RealCluster::start();
    let mut first = node_host(&cluster, "");
    first.write_manifest("web.yaml", &pod("web", ""));
    first.start_daemon();
    let mirror_of_first = wait_for_mirror(&cluster, &first, "web", "there", |_| true);
    let mut second = node_host(&cluster, "");
    second.write_manifest("other.yaml", &pod("other", ""));
    second.start_daemon();
    second.wait_running("other");
    status_says(&second, "another agent renews the Lease of this node");
    assert_eq!(uid(&mirror(&cluster, "web").unwrap()), uid(&mirror_of_first));
    assert!(mirror(&cluster, "other").is_none());
    first.stop_daemon();
    let began = Instant::now();
    eventually_long("the second one to take over", || {
        mirror(&cluster, "other").map(drop).ok_or_else(|| second.cli_ok(&["status"]))
    });
    eprintln!("the other host took over after {:?}", began.elapsed());
}

/// Longer than a Lease counts.
fn eventually_long<T>(what: &str, probe: impl FnMut() -> Result<T, String>) -> T {
    crate::support::eventually_within(std::time::Duration::from_secs(180), what, probe)
}
