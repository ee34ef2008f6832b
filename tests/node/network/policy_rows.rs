//! Recipes of NetworkPolicies, with Services between the pods: rows of the page of cases.

use super::lan::{HOST_V4, OUTSIDE_V4, Site, WebServer, web};
use super::names::digs;
use super::policies::policy;
use super::services::{cluster_ip, service};

/// Pods `web` with servers at 8000 and 5000, `monitor`, `search` and `other`, whose labels `role` are their names, and a Service of each port of `web`.
fn site() -> Site {
    let site = Site::start();
    for name in ["web", "monitor", "search", "other"] {
        let servers = "httpd -p 5000 -h /www; exec httpd -f -p 8000 -h /www";
        let pod = web(name, "", "").replace("exec httpd -f -h /www", servers);
        let labelled = pod.replace(&format!("  name: {name}\n"), &format!("  name: {name}\n  labels: {{role: {name}}}\n"));
        let probed = labelled.replace(
            "ports: []",
            "ports: [{containerPort: 8000}]\n      readinessProbe: {httpGet: {port: 8000}, periodSeconds: 1}",
        );
        site.host.write_manifest(&format!("{name}.yaml"), &probed);
    }
    let ports =
        "ports: [{name: api, port: 8001, targetPort: 8000, nodePort: 30080}, {name: metrics, port: 5001, targetPort: 5000}]";
    site.host.write_manifest("service.yaml", &service("web", &format!("type: NodePort, selector: {{role: web}}, {ports}")));
    for name in ["web", "monitor", "search", "other"] {
        site.host.wait_for_pod(name, "to be ready", |pod| pod.container("main")["ready"] == true);
    }
    site.pod_gets("other", "http://web:8001/", "I am web");
    site.pod_gets("other", "http://web:5001/", "I am web");
    site
}

const WEB: &str = "podSelector: {matchLabels: {role: web}}";

/// The policy that takes the place of the one before.
fn apply(site: &Site, spec: &str) {
    site.host.write_manifest("policy.yaml", &policy("policy", spec));
}

/// Q2, Q4, Q5, Q12, Q13, Q14, Q23.
#[test]
fn ingress_is_decided_behind_services() {
    let site = site();
    let address = cluster_ip(&site.host, "web");
    let node_port = format!("http://{HOST_V4}:30080/");
    site.outside.gets(&node_port, "I am web");
    // Q13: the port is that of the pod.
    let monitor = "{podSelector: {matchLabels: {role: monitor}}}";
    apply(&site, &format!("{WEB}, ingress: [{{ports: [{{port: 5000}}], from: [{monitor}]}}]"));
    site.is_refused("monitor", "http://web:8001/");
    site.pod_gets("monitor", "http://web:5001/", "I am web");
    site.is_refused("other", "http://web:5001/");
    // Q2: the host, itself by its Service, the probe.
    site.machine.gets(&format!("http://{address}:8001/"), "I am web");
    site.pod_gets("web", "http://web:8001/", "I am web");
    site.host.wait_for_pod("web", "to stay ready", |pod| pod.container("main")["ready"] == true);
    site.is_dropped_outside(&node_port);
    // Q14: several peers.
    apply(&site, &format!("{WEB}, ingress: [{{from: [{monitor}, {{podSelector: {{matchLabels: {{role: search}}}}}}]}}]"));
    for allowed in ["monitor", "search"] {
        site.pod_gets(allowed, "http://web:8001/", "I am web");
    }
    site.is_refused("other", "http://web:8001/");
    // Q23: what one peer excepts another one allows.
    let [of_other, _] = site.addresses("other");
    let blocks = format!("{{ipBlock: {{cidr: 10.201.0.0/16, except: [{of_other}/32]}}}}");
    apply(&site, &format!("{WEB}, ingress: [{{from: [{blocks}]}}]"));
    site.pod_gets("monitor", "http://web:8001/", "I am web");
    site.is_refused("other", "http://web:8001/");
    apply(&site, &format!("{WEB}, ingress: [{{from: [{blocks}, {{ipBlock: {{cidr: {of_other}/32}}}}]}}]"));
    site.pod_gets("other", "http://web:8001/", "I am web");
    // Q5: nobody receives, and all send.
    apply(&site, "podSelector: {}");
    for (from, to) in [("other", "web"), ("web", "other"), ("monitor", "search")] {
        site.is_refused(from, &format!("http://{}:8000/", site.addresses(to)[0]));
    }
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    site.pod_gets("web", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    site.is_dropped_outside(&node_port);
    // Q12, and Q4 beside the one that denies.
    site.host.write_manifest("open.yaml", &policy("open", &format!("{WEB}, ingress: [{{from: []}}]")));
    site.outside.gets(&node_port, "I am web");
    site.pod_gets("other", "http://web:8001/", "I am web");
}

/// Q15, Q16, Q18, Q24.
#[test]
fn egress_is_decided_behind_services() {
    let site = site();
    let address = cluster_ip(&site.host, "web");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    let outside = format!("http://{OUTSIDE_V4}:7000/");
    let by_address = format!("http://{address}:8001/");
    let other = "podSelector: {matchLabels: {role: other}}, policyTypes: [Egress]";
    site.pod_gets("other", &outside, "I am outside");
    // Q15: names go, too.
    apply(&site, other);
    site.is_refused("other", &by_address);
    site.is_refused("other", &outside);
    digs(&site, "other", "+time=2 +tries=1 web.default.svc.cluster.local", "no servers could be reached");
    site.pod_gets("monitor", &by_address, "I am web");
    // Q16: the usual exception.
    let resolver = "{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}";
    let ports = "ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]";
    apply(&site, &format!("{other}, egress: [{{to: [{resolver}], {ports}}}]"));
    for transport in ["+notcp", "+tcp"] {
        digs(&site, "other", &format!("{transport} +short web.default.svc.cluster.local"), &address);
    }
    site.is_refused("other", &by_address);
    // Q18: its manifest allows port 53 of pods only.
    apply(&site, &format!("{other}, egress: [{{to: [{{namespaceSelector: {{}}}}], {ports}}}]"));
    digs(&site, "other", "+short web.default.svc.cluster.local", &address);
    site.is_refused("other", &by_address);
    site.is_refused("other", &outside);
    // Q24: the address behind the Service counts.
    apply(&site, &format!("{other}, egress: [{{to: [{{ipBlock: {{cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}}}]}}]"));
    site.pod_gets("other", &outside, "I am outside");
    site.is_refused("other", &by_address);
}
