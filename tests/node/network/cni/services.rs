//! Services and pods whose first interface plugins make, beside podstead's own network.

use super::super::lan::{HOST_V4, Site};
use super::super::policies::policy;
use super::super::services::{answers, backend, cluster_ip, service};
use super::CniSite;
use crate::support::{binary, eventually};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const CLOSED: &str = "Connection refused";

/// A pod whose first interface is in a network of plugins.
fn by_plugins(name: &str, app: &str, network: &str) -> String {
    let labels = format!("labels: {{app: {app}}}, annotations: {{v1.multus-cni.io/default-network: {network}}}");
    backend(name, "default", "").replace("labels: {app: web}", &labels)
}

/// N15 of the packet rules: such a pod is an endpoint as any other, and NodePorts answer it.
#[test]
fn pod_of_plugins_is_behind_a_service() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.site.host.start_daemon();
    cni.site.web("client", "", "");
    cni.site.host.write_manifest("guest.yaml", &by_plugins("guest", "guest", "lan"));
    assert!(cni.address("guest").starts_with("10.77.0."));
    cni.site.host.write_manifest("one.yaml", &backend("one", "default", ""));
    let guest = "selector: {app: guest}, ports: [{port: 80, targetPort: http}]";
    let web = "type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    cni.site.host.write_manifest("guest-service.yaml", &service("guest", guest));
    cni.site.host.write_manifest("web.yaml", &service("web", web));
    answers(&cni.site, "client", "http://guest.default.svc.cluster.local/", &["guest"]);
    cni.site.machine.gets(&format!("http://{}/", cluster_ip(&cni.site.host, "guest")), "I am guest");
    answers(&cni.site, "guest", &format!("http://{HOST_V4}:30080/"), &["one"]);
    let mut command = cni.site.machine.command(&[binary("podstead").to_str().unwrap(), "--config"]);
    let out = command.arg(cni.site.host.path("config.yaml")).args(["network", "trace", "guest", "web:80"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("it reaches addresses of Services where this host is its router"), "{said}");
}

/// A network of the plugin ptp, whose router is the host.
fn ptp(cni: &CniSite) -> String {
    let ipam = cni.path("ipam").display().to_string();
    format!(
        r#"{{"cniVersion": "1.0.0", "name": "line", "plugins": [{{"type": "ptp", "ipMasq": true,
            "ipam": {{"type": "host-local", "dataDir": "{ipam}", "ranges": [[{{"subnet": "10.78.0.0/24"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}"#
    )
}

/// A network of the plugin macvlan, whose router is on the LAN.
fn macvlan(cni: &CniSite) -> String {
    let ipam = cni.path("ipam").display().to_string();
    format!(
        r#"{{"cniVersion": "1.0.0", "name": "outer", "plugins": [{{"type": "macvlan", "master": "uplink",
            "ipam": {{"type": "host-local", "dataDir": "{ipam}", "ranges": [[{{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.50", "rangeEnd": "192.0.2.60", "gateway": "192.0.2.1"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}"#
    )
}

/// Waits until another port of an address of a Service refuses a pod at once.
fn refuses(site: &Site, pod: &str, url: &str) {
    eventually(&format!("{url} to refuse {pod}"), || match site.pod_get(pod, url) {
        Err(error) if error.contains(CLOSED) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// Issue of networks by plugins: by bridge and ptp, addresses of Services answer: endpoints of podstead's own network, of the same bridge, and the pod
/// itself; also after a restart of the daemon and after the rules were flushed.
#[test]
fn pods_of_plugins_reach_services_through_host() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.write("20-line.conflist", &ptp(&cni));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("own.yaml", &backend("own", "default", ""));
    for (name, network) in [("bridged", "lan"), ("other", "lan"), ("lined", "line")] {
        cni.site.host.write_manifest(&format!("{name}.yaml"), &by_plugins(name, "web", network));
    }
    cni.site.host.write_manifest("web.yaml", &service("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]"));
    let address = cluster_ip(&cni.site.host, "web");
    let url = format!("http://{address}/");
    let all = ["own", "bridged", "other", "lined"];
    all.iter().for_each(|name| drop(cni.site.host.wait_running(name)));
    let reach = |cni: &CniSite| {
        for client in all {
            answers(&cni.site, client, &url, &all);
        }
        for client in ["bridged", "lined"] {
            refuses(&cni.site, client, &format!("http://{address}:81/"));
        }
    };
    reach(&cni);
    answers(&cni.site, "bridged", "http://web.default.svc.cluster.local/", &all);
    cni.site.host.kill_daemon();
    // The rules are in the kernel.
    cni.site.host.start_daemon();
    reach(&cni);
    cni.site.machine.run("nft flush ruleset");
    answers(&cni.site, "lined", &url, &all);
    // Its address belongs to nobody when the pod is gone.
    let gone = cni.address("bridged");
    cni.site.host.remove_manifest("bridged.yaml");
    cni.site.host.wait_gone("bridged");
    let rules = cni.site.rules();
    assert!(!rules.contains(&gone) && rules.contains("guests4"), "{rules}");
}

/// A pod whose packets do not pass the host is told, and another one is not.
#[test]
fn pod_beside_host_is_told_of_services() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.write("30-outer.conflist", &macvlan(&cni));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("own.yaml", &backend("own", "default", ""));
    cni.site.host.write_manifest("web.yaml", &service("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]"));
    let address = cluster_ip(&cni.site.host, "web");
    cni.site.host.write_manifest("bridged.yaml", &by_plugins("bridged", "guest", "lan"));
    cni.site.host.write_manifest("beside.yaml", &by_plugins("beside", "guest", "outer"));
    assert!(cni.address("beside").starts_with("192.0.2.5"));
    cni.address("bridged");
    cni.tells(SOON, &["ServicesNotReached", "beside", "this host is not the router of its network outer"]);
    answers(&cni.site, "bridged", &format!("http://{address}/"), &["own"]);
    let events = cni.site.host.cli_ok(&["get", "events"]);
    assert!(!events.lines().any(|line| line.contains("ServicesNotReached") && line.contains("bridged")), "{events}");
    cni.site.pod_get("beside", &format!("http://{address}/")).unwrap_err();
}

/// Q30: a new pod waits while a policy selects it; one that runs goes on, with an event.
#[test]
fn selected_pod_of_plugins_waits() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("running.yaml", &by_plugins("running", "guest", "lan"));
    let before = cni.site.host.wait_running("running").container_id("main");
    cni.site.host.write_manifest("deny.yaml", &policy("deny", "podSelector: {matchLabels: {app: guest}}"));
    cni.site.host.write_manifest("waiting.yaml", &by_plugins("waiting", "guest", "lan"));
    cni.tells(SOON, &["NetworkPolicyNotEnforced", "waiting", "deny selects this pod"]);
    cni.tells(SOON, &["NetworkPolicyNotEnforced", "running", "deny selects this pod"]);
    assert_eq!(cni.site.host.pod("waiting").unwrap().waiting_reason("main"), "ContainerCreating");
    assert_eq!(cni.site.host.wait_running("running").container_id("main"), before);
    cni.site.host.remove_manifest("deny.yaml");
    cni.site.host.wait_running("waiting");
}
