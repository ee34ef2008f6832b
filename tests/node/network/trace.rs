//! Reasons for a connection that does not work: `podstead network trace`, `doctor network`, `status`, `describe service` and the counters, on one host.

use super::counters::page;
use super::doctor::finds;
use super::lan::{HOST_V4, OUTSIDE_V4, Site};
use super::policies::{labelled, policy};
use super::services::{WEB, add_backends, answers, cluster_ip, service};
use crate::support::{binary, eventually};

/// Output of the trace of a connection of pod `client`, with its exit code.
fn trace(site: &Site, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = site.machine.command(&[binary("podstead").to_str().unwrap(), "--config"]);
    let out = command.arg(site.host.path("config.yaml")).args(["network", "trace", "client"]).args(arguments).output().unwrap();
    (String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(), out.status.code())
}

/// Waits until the trace has all of these words, and this exit code.
fn traces(site: &Site, target: &str, words: &[&str], code: i32) {
    eventually(&format!("{words:?} of {target}"), || {
        let (said, ended) = trace(site, &[target]);
        let has = ended == Some(code) && words.iter().all(|word| said.contains(word));
        if has { Ok(()) } else { Err(format!("{ended:?}: {said}")) }
    });
}

#[test]
fn connection_that_does_not_work_is_explained() {
    let site = Site::start();
    site.web("client", "", "{containerPort: 80, hostPort: 8081}");
    add_backends(&site, &["one"]);
    site.host.write_manifest("closed.yaml", &labelled("closed", "closed"));
    let node_port = "type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    site.host.write_manifest("web.yaml", &service("web", node_port));
    site.host.write_manifest("idle.yaml", &service("idle", "selector: {app: nobody}, ports: [{port: 80}]"));
    site.host.write_manifest("named.yaml", &service("named", "selector: {app: web}, ports: [{port: 80, targetPort: absent}]"));
    let rules = "podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 8080}]}]";
    let both = format!("{}---\n{}", policy("deny", "podSelector: {matchLabels: {app: closed}}"), policy("web", rules));
    site.host.write_manifest("policies.yaml", &both);
    answers(&site, "client", "http://web/", &["one"]);
    let [one, _] = site.addresses("one");
    let address = cluster_ip(&site.host, "web");

    // A Service by all of its names and addresses, and the rule with its file and line.
    let allowed = [
        "allowed: pod default/client",
        &one,
        "port 8080/TCP",
        "of Service default/web",
        "spec.ingress[0] of NetworkPolicy default/web (policies.yaml:6 of source manifests)",
    ];
    let host_port = format!("{HOST_V4}:30080");
    let cluster_address = format!("{address}:80");
    for target in [
        "web:80",
        "web.default:80",
        "web.default.svc.cluster.local:80",
        "svc/web:80",
        &cluster_address,
        &host_port,
        "169.254.0.1:30080",
    ] {
        traces(&site, target, &allowed, 0);
    }
    traces(&site, "pod/one:8080", &["allowed: pod default/client", &one], 0);
    traces(&site, &format!("{OUTSIDE_V4}:80"), &["allowed: pod default/client", "to outside"], 0);
    let ssh = format!("{HOST_V4}:22");
    traces(&site, &ssh, &["allowed", "to this host", "do not apply to connections with this host"], 0);
    traces(&site, &format!("{HOST_V4}:8081"), &["allowed", "hostPort of pod default/client"], 0);
    // A pod that a policy closes.
    traces(
        &site,
        "closed:80",
        &[
            "denied: pod default/client",
            "denied: selected by NetworkPolicy default/deny (policies.yaml:1 of source manifests), and no rule allows it",
        ],
        1,
    );
    // A Service that nobody answers, with the reason.
    traces(
        &site,
        "idle:80",
        &["Service default/idle has no endpoint at port 80/TCP", "no pod of namespace default has the labels app=nobody"],
        1,
    );
    traces(&site, "svc/named:80", &["has no endpoint at port 80/TCP", "has a port of TCP with the name \"absent\""], 1);
    traces(&site, "web:81", &["it has no such port, only 80/TCP"], 1);
    traces(&site, "nobody:80", &["neither a Service nor a pod has the name default/nobody"], 1);
    traces(&site, "10.202.15.250:80", &["no Service has the address 10.202.15.250"], 1);

    // The same for all of the host.
    let no_endpoint = "Service default/idle has no endpoint at port 80/TCP";
    finds(&site, &["network"], &["network warning:", no_endpoint, "no pod of namespace default has the labels app=nobody"]);
    assert!(site.host.cli_ok(&["status"]).contains(no_endpoint));
    let described = site.host.cli_ok(&["describe", "service", "idle"]);
    assert!(described.contains("<none> (no pod of namespace default has the labels app=nobody)"), "{described}");
    let [closed, _] = site.addresses("closed");
    site.is_refused("client", &format!("http://{closed}/"));
    finds(&site, &["network"], &["network note: NetworkPolicies denied", "to pod default/closed-edge-1"]);
    let metrics = page(&site, "/metrics");
    for sample in [
        "podstead_services 3\n",
        "podstead_service_endpoints{namespace=\"default\",service=\"web\"} 1\n",
        "podstead_service_endpoints{namespace=\"default\",service=\"idle\"} 0\n",
        "podstead_network_policy_denied_packets_total{namespace=\"default\",pod=\"closed-edge-1\",direction=\"ingress\"} ",
    ] {
        assert!(metrics.contains(sample), "{sample}\n{metrics}");
    }
    assert!(!metrics.contains("podstead_service_rule_changes_total 0\n"), "{metrics}");
}

#[test]
fn ends_without_an_address_are_told_apart() {
    let site = Site::start();
    let [client, _] = site.web("client", "", "");
    let on_host =
        labelled("hosty", "hosty").replace("spec:\n", "spec:\n  hostNetwork: true\n").replace("httpd -f", "httpd -f -p 8099");
    site.host.write_manifest("hosty.yaml", &on_host);
    site.host.write_manifest("headless.yaml", &service("headless", "clusterIP: None, selector: {app: web}, ports: [{port: 80}]"));
    site.host.write_manifest("elsewhere.yaml", &service("elsewhere", "type: ExternalName, externalName: example.org"));
    site.host.wait_running("hosty");
    let on_host = ["pod default/hosty is on the host's network, at "];
    let headless = ["Service default/headless is headless"];
    let alias = ["Service default/elsewhere has no address: it is another name for example.org"];
    for (target, words) in [
        ("hosty:8099", &on_host[..]),
        ("pod/hosty:8099", &on_host),
        ("headless:80", &headless),
        ("svc/headless:80", &headless),
        ("elsewhere:80", &alias),
        ("client.nowhere:80", &["neither a Service nor a pod has the name"]),
        ("pod/nobody:80", &["\"nobody\" not found in namespace \"default\""]),
        ("svc/nobody:80", &["services \"nobody\" not found in namespace \"default\""]),
        ("svc/headles:80", &["services \"headles\" not found in namespace \"default\", did you mean \"headless\"?"]),
        ("10.201.15.250:80", &["no pod has the address 10.201.15.250: nobody answers"]),
        ("[2001:db8::9]:80", &["to outside (2001:db8::9), port 80/TCP"]),
    ] {
        let code = if words[0].starts_with("to outside") { 0 } else { 1 };
        traces(&site, target, words, code);
    }
    for command in [&["logs", "svc/headles"][..], &["exec", "svc/headles", "--", "true"], &["port-forward", "svc/headles", ":80"]] {
        let out = site.host.cli(command);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("services \"headles\" not found, did you mean \"headless\"?"), "{command:?}: {said}");
    }
    // The end is there, and nobody listens.
    traces(&site, &format!("{client}:80"), &["allowed"], 0);
    traces(
        &site,
        "pod/client:4711",
        &["allowed", "but nothing listens at 4711/TCP of pod default/client-edge-1 now: the connection is refused"],
        0,
    );
    traces(
        &site,
        &format!("{HOST_V4}:4711"),
        &["allowed", "but nothing listens at 4711/TCP of this host now: the connection is refused"],
        0,
    );
    assert!(!trace(&site, &["pod/client:80"]).0.contains("nothing listens"));

    // The pod that opens the connection.
    let from = |pod: &str, namespace: &str| {
        let mut command = site.machine.command(&[binary("podstead").to_str().unwrap(), "--config"]);
        let command = command.arg(site.host.path("config.yaml")).args(["network", "trace", pod, "client:80", "-n", namespace]);
        let out = command.output().unwrap();
        (String::from_utf8_lossy(&out.stderr).into_owned(), out.status.code())
    };
    for (pod, namespace, words) in [
        ("hosty", "default", "is on the host's network, at "),
        ("clinet", "default", "\"clinet\" not found in namespace \"default\""),
        ("client", "nowhere", "\"client\" not found in namespace \"nowhere\""),
    ] {
        let (said, code) = from(pod, namespace);
        assert!(said.contains(words) && code == Some(1), "{pod}: {said}");
    }
}

#[test]
fn trace_works_without_the_daemon() {
    let mut site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    site.host.write_manifest("idle.yaml", &service("idle", "selector: {app: nobody}, ports: [{port: 80}]"));
    site.host.write_manifest("p.yaml", &policy("deny", "podSelector: {matchLabels: {app: web}}"));
    let url = format!("http://{}/", cluster_ip(&site.host, "web"));
    cluster_ip(&site.host, "idle");
    site.is_refused("client", &url);
    let reason = "denied: selected by NetworkPolicy default/deny (p.yaml:1 of source manifests)";
    traces(&site, "web:80", &["of Service default/web", reason], 1);
    site.host.kill_daemon();
    traces(&site, "web:80", &["of Service default/web", reason], 1);
    traces(&site, "idle:80", &["Service default/idle has no endpoint at port 80/TCP: connections are refused"], 1);
}
