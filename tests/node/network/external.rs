//! Services that lead outside, and addresses of the host that lead to Services.

use super::lan::{HOST_V4, HOST_V6, OUTSIDE_V4, Site};
use super::names::{NameServer, digs, looks_up};
use super::services::{WEB, add_backends, cluster_ip, service, shown};
use crate::support::eventually;

/// T31.
#[test]
fn external_name_is_another_name() {
    let mut site = Site::prepare(&format!("network: {{dns: {{forwarders: ['{OUTSIDE_V4}']}}}}\n"));
    let _server = NameServer::start(&site);
    site.host.start_daemon();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    let external = |name: &str, target: &str| {
        let spec = format!("type: ExternalName, externalName: {target}");
        site.host.write_manifest(&format!("{name}.yaml"), &service(name, &spec));
    };
    external("printer", "printer.site.test");
    external("nobody", "nobody.site.test");
    external("again", "web.default.svc.cluster.local");
    external("itself", "itself.default.svc.cluster.local");
    let address = cluster_ip(&site.host, "web");
    // The C library of the image finds an address, outside and in the zone.
    looks_up(&site.host, "client", "default", "printer", "198.51.100.9");
    site.pod_gets("client", "http://again/", "I am one");
    let answer = digs(&site, "client", "printer.default.svc.cluster.local", "198.51.100.9");
    assert!(answer.contains("CNAME\tprinter.site.test."), "{answer}");
    digs(&site, "client", "+tcp +short printer.default.svc.cluster.local", "198.51.100.9");
    digs(&site, "client", "+short again.default.svc.cluster.local", &address);
    digs(&site, "client", "nobody.default.svc.cluster.local", "status: NXDOMAIN");
    digs(&site, "client", "itself.default.svc.cluster.local", "status: SERVFAIL");
    // The Service is shown after its name is in force.
    eventually("the name in the Service", || {
        let printer = shown(&site.host, "printer").ok_or("no Service")?;
        if printer["spec"]["externalName"] == "printer.site.test" { Ok(()) } else { Err(printer.to_string()) }
    });
    // Another type: the name follows.
    site.host.write_manifest("printer.yaml", &service("printer", WEB));
    let address = cluster_ip(&site.host, "printer");
    digs(&site, "client", "+short printer.default.svc.cluster.local", &address);
}

#[test]
fn addresses_of_the_host_lead_to_services() {
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    let ports = "ports: [{port: 88, targetPort: 8080}]";
    let external = format!("externalIPs: [{HOST_V4}, 198.51.100.7], selector: {{app: web}}, {ports}");
    site.host.write_manifest("web.yaml", &service("web", &external));
    let told = |words: &str| {
        eventually(&format!("an event with {words}"), || {
            let events = site.host.cli_ok(&["get", "events"]);
            let is_told = events.lines().any(|line| line.contains("ServiceUnserved") && line.contains(words));
            is_told.then_some(()).ok_or(events)
        });
    };
    site.outside.gets(&format!("http://{HOST_V4}:88/"), "I am one");
    site.machine.gets(&format!("http://{HOST_V4}:88/"), "I am one");
    site.pod_gets("client", &format!("http://{HOST_V4}:88/"), "I am one");
    assert!(site.outside.get(&format!("http://[{HOST_V6}]:88/")).is_err());
    told("198.51.100.7 is no address of this host");
    site.host.remove_manifest("web.yaml");
    let balancer = |address: &str| {
        let spec = format!("type: LoadBalancer, loadBalancerIP: {address}, selector: {{app: web}}, {ports}");
        site.host.write_manifest("front.yaml", &service("front", &spec));
    };
    balancer("198.51.100.8");
    told("198.51.100.8 is no address of this host");
    site.outside.get(&format!("http://{HOST_V4}:88/")).unwrap_err();
    balancer(HOST_V4);
    site.outside.gets(&format!("http://{HOST_V4}:88/"), "I am one");
    // The status follows the rules.
    eventually("the address in the status", || {
        let front = shown(&site.host, "front").ok_or("no Service")?;
        if front["status"]["loadBalancer"]["ingress"][0]["ip"] == HOST_V4 { Ok(()) } else { Err(front.to_string()) }
    });
}
