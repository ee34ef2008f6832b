//! Services and pods whose first interface plugins make, beside podstead's own network.

use super::super::lan::HOST_V4;
use super::super::services::{answers, backend, cluster_ip, service};
use super::CniSite;
use crate::support::binary;

/// N15 of the packet rules: such a pod is an endpoint as any other. It reaches Services by NodePorts.
#[test]
fn pod_of_plugins_is_behind_a_service() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.site.host.start_daemon();
    cni.site.web("client", "", "");
    let by_plugins = |name: &str, app: &str| {
        let labels = format!("labels: {{app: {app}}}, annotations: {{v1.multus-cni.io/default-network: lan}}");
        backend(name, "default", "").replace("labels: {app: web}", &labels)
    };
    cni.site.host.write_manifest("guest.yaml", &by_plugins("guest", "guest"));
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
    assert!(!out.status.success() && said.contains("it reaches Services by NodePorts only"), "{said}");
}
