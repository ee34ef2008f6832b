//! Services, from manifests to connections: clients are pods, the host and a machine of the LAN.

use super::lan::{HOST_V4, Site, WebServer};
use super::names::digs;
use crate::support::{TestHost, eventually};
use serde_json::Value;
use std::collections::BTreeSet;

/// A pod that answers on port 8080 with its name; it is ready while `/tmp/ready` exists.
pub(super) fn backend(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{app: web}}}}\nspec:\n  {more}\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    image: localhost/busybox:1\n    \
         ports: [{{name: http, containerPort: 8080}}]\n    \
         command: [/bin/sh, -c, 'mkdir /www && echo I am {name}. > /www/index.html && touch /tmp/ready && exec httpd -f -p 8080 -h /www']\n    \
         readinessProbe: {{exec: {{command: [test, -e, /tmp/ready]}}, periodSeconds: 1, failureThreshold: 1}}\n"
    )
}

pub(super) fn service(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

pub(super) const WEB: &str = "selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]";

/// A Service as the API has it.
pub(super) fn shown(host: &TestHost, name: &str) -> Option<Value> {
    let out = host.cli(&["get", "services", name, "-o", "json"]);
    out.status.success().then(|| serde_json::from_slice(&out.stdout).unwrap())
}

pub(super) fn cluster_ip(host: &TestHost, name: &str) -> String {
    eventually(&format!("an address of Service {name}"), || {
        let address = shown(host, name).and_then(|service| Some(service["spec"]["clusterIP"].as_str()?.to_owned()));
        address.ok_or_else(|| host.daemon_log())
    })
}

/// Waits until all of these and no others answer a pod at this URL.
pub(super) fn answers(site: &Site, client: &str, url: &str, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|name| format!("I am {name}.")).collect();
    eventually(&format!("{expected:?} from {url}"), || {
        let script = format!("for i in $(seq 30); do timeout 2 wget -q -O - {url} || echo refused; done");
        let text = site.host.exec(client, "main", &["/bin/sh", "-c", &script]);
        let found: BTreeSet<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

pub(super) fn add_backends(site: &Site, names: &[&str]) {
    for name in names {
        site.host.write_manifest(&format!("{name}.yaml"), &backend(name, "default", ""));
    }
}

#[test]
fn service_answers_pods_and_host() {
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one", "two"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    let address = cluster_ip(&site.host, "web");
    // T1: by address and name, from each of the endpoints; T10: by the port's name.
    answers(&site, "client", &format!("http://{address}/"), &["one", "two"]);
    answers(&site, "client", "http://web.default/", &["one", "two"]);
    // T2, T3: the host, and a pod that is an endpoint itself.
    site.machine.gets(&format!("http://{address}/"), "I am ");
    answers(&site, "one", "http://web/", &["one", "two"]);
    // T5: another port is refused at once.
    let refused = site.pod_get("client", &format!("http://{address}:81/")).unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
    // T7: an endpoint that is not ready gets no connections, and gets them again.
    site.host.exec("one", "main", &["rm", "/tmp/ready"]);
    answers(&site, "client", "http://web/", &["two"]);
    site.host.exec("one", "main", &["touch", "/tmp/ready"]);
    answers(&site, "client", "http://web/", &["one", "two"]);
    // T6: no endpoint is left.
    site.host.remove_manifest("one.yaml");
    site.host.remove_manifest("two.yaml");
    eventually("no endpoint", || {
        let slices: Value = serde_json::from_str(&site.host.cli_ok(&["get", "endpointslices", "-o", "json"])).unwrap();
        slices["items"].as_array().is_some_and(Vec::is_empty).then_some(()).ok_or_else(|| slices.to_string())
    });
    let refused = site.pod_get("client", "http://web/").unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
    // The Service goes, and its name with it.
    site.host.remove_manifest("web.yaml");
    digs(&site, "client", "web.default.svc.cluster.local", "status: NXDOMAIN");
    // Its name goes first.
    eventually("the Service to be shown no more", || shown(&site.host, "web").map_or(Ok(()), |service| Err(service.to_string())));
    assert!(std::fs::read_dir(site.host.path("state/services")).unwrap().next().is_none());
}

#[test]
fn names_of_services_follow_the_specification() {
    let site = Site::start();
    site.web("client", "", "");
    site.host.write_manifest("db-0.yaml", &backend("db-0", "default", "hostname: db-0\n  subdomain: db"));
    site.host.write_manifest("web.yaml", &service("web", WEB));
    site.host.write_manifest("db.yaml", &service("db", &format!("clusterIP: None, {WEB}")));
    site.host.write_manifest("idle.yaml", &service("idle", "clusterIP: None, selector: {app: none}, ports: [{port: 80}]"));
    let address = cluster_ip(&site.host, "web");
    // T30.
    digs(&site, "client", "+short web.default.svc.cluster.local", &address);
    digs(&site, "client", &format!("+short -x {address}"), "web.default.svc.cluster.local.");
    digs(&site, "client", "+short SRV _http._tcp.web.default.svc.cluster.local", "80 web.default.svc.cluster.local.");
    // T28: of a headless Service the pods, by their host names.
    let [pod, _] = site.addresses("db-0");
    digs(&site, "client", "+short db.default.svc.cluster.local", &pod);
    digs(&site, "client", "+short db-0.db.default.svc.cluster.local", &pod);
    digs(&site, "client", "+short SRV _http._tcp.db.default.svc.cluster.local", "8080 db-0.db.default.svc.cluster.local.");
    // T29.
    let none = digs(&site, "client", "idle.default.svc.cluster.local", "status: NOERROR");
    assert!(none.contains("ANSWER: 0"), "{none}");
}

#[test]
fn ports_of_the_host_lead_to_services() {
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    let node_port = "type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    site.host.write_manifest("web.yaml", &service("web", node_port));
    // T18.
    site.outside.gets(&format!("http://{HOST_V4}:30080/"), "I am one");
    site.machine.gets("http://127.0.0.1:30080/", "I am one");
    site.machine.gets(&format!("http://{HOST_V4}:30080/"), "I am one");
    site.pod_gets("client", "http://169.254.0.1:30080/", "I am one");
    // T19: the port is held, by a Service and by a program.
    site.host.write_manifest("second.yaml", &service("second", node_port));
    let _server = WebServer::start(&site.machine, "0.0.0.0:30090", "a program");
    site.host.write_manifest("third.yaml", &service("third", &node_port.replace("30080", "30090")));
    let told = |service: &str, words: &str| {
        eventually(&format!("an event of Service {service}"), || {
            let events = site.host.cli_ok(&["get", "events"]);
            let is_told = events.lines().any(|line| line.contains("NodePortTaken") && line.contains(words));
            is_told.then_some(()).ok_or(events)
        });
    };
    told("second", "Service default/web");
    told("third", "30090");
    site.outside.gets(&format!("http://{HOST_V4}:30090/"), "a program");
    site.pod_gets("client", "http://second/", "I am one");
    // The port is given to the other one when its holder goes.
    site.host.remove_manifest("web.yaml");
    eventually("the port to be given to the second Service", || {
        let service = shown(&site.host, "second");
        let is_given = service.as_ref().is_some_and(|service| service["spec"]["ports"][0]["nodePort"] == 30080);
        is_given.then_some(()).ok_or_else(|| format!("{service:?}"))
    });
    site.outside.gets(&format!("http://{HOST_V4}:30080/"), "I am one");
    // T24: a load balancer has its own port on the host's addresses.
    site.host.write_manifest(
        "front.yaml",
        &service("front", "type: LoadBalancer, selector: {app: web}, ports: [{port: 88, targetPort: 8080}]"),
    );
    site.outside.gets(&format!("http://{HOST_V4}:88/"), "I am one");
    // The Service is shown after its rules are in force.
    eventually("the address of the host in the status", || {
        let shown = site.host.cli(&["get", "services", "front"]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        if text.contains(HOST_V4) { Ok(()) } else { Err(text) }
    });
    // T20: back to ClusterIP, the port is closed.
    site.host.write_manifest("second.yaml", &service("second", "selector: {app: web}, ports: [{port: 80, targetPort: 8080}]"));
    eventually("the port to be closed", || match site.outside.get(&format!("http://{HOST_V4}:30080/")) {
        Err(error) => Ok(error),
        Ok(text) => Err(text),
    });
}

#[test]
fn addresses_survive_daemon_and_host() {
    let mut site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    site.host.write_manifest("low.yaml", &service("low", &format!("clusterIP: 10.202.0.9, {WEB}")));
    let address = cluster_ip(&site.host, "web");
    assert_eq!(cluster_ip(&site.host, "low"), "10.202.0.9");
    // T22: outside of the range, and held by another.
    site.host.write_manifest("bad.yaml", &service("bad", &format!("clusterIP: 10.9.0.9, {WEB}")));
    site.host.write_manifest("same.yaml", &service("same", &format!("clusterIP: 10.202.0.9, {WEB}")));
    eventually("both refusals", || {
        let events = site.host.cli_ok(&["get", "events"]);
        let has = |words: &str| events.lines().any(|line| line.contains("ServiceAddressTaken") && line.contains(words));
        (has("is not in the range of Services, 10.202.0.0/20") && has("belongs to Service default/low")).then_some(()).ok_or(events)
    });
    answers(&site, "client", "http://web/", &["one"]);
    // T17, T21.
    site.host.kill_daemon();
    answers_without_daemon(&site, &address);
    site.host.start_daemon();
    assert_eq!(cluster_ip(&site.host, "web"), address);
    answers(&site, "client", "http://web/", &["one"]);
    // The same address follows from the name when the record is lost.
    site.host.kill_daemon();
    std::fs::remove_dir_all(site.host.path("state/services")).unwrap();
    site.host.start_daemon();
    assert_eq!(cluster_ip(&site.host, "web"), address);
    answers(&site, "client", "http://web/", &["one"]);
}

fn answers_without_daemon(site: &Site, address: &str) {
    site.machine.gets(&format!("http://{address}/"), "I am one");
}

/// shows: spec.enableServiceLinks
#[test]
fn containers_have_variables_of_services() {
    let site = Site::start();
    site.web("client", "", "");
    // T33: in one SET, the Service comes with the pod.
    let text = format!(
        "{}---\n{}---\n{}",
        service("cache-a", "selector: {app: cache}, ports: [{port: 6379}]"),
        backend("one", "default", ""),
        backend("two", "default", "enableServiceLinks: false")
    );
    site.host.write_manifest("all.yaml", &text);
    let address = cluster_ip(&site.host, "cache-a");
    site.host.wait_running("one");
    site.host.wait_running("two");
    let environment = site.host.exec("one", "main", &["env"]);
    assert!(environment.contains(&format!("CACHE_A_SERVICE_HOST={address}\n")), "{environment}");
    assert!(environment.contains(&format!("CACHE_A_PORT_6379_TCP=tcp://{address}:6379\n")), "{environment}");
    assert!(!site.host.exec("two", "main", &["env"]).contains("CACHE_A"));
    // A Service that comes later restarts nothing.
    let before = site.host.wait_running("one").container_id("main");
    site.host.write_manifest("later.yaml", &service("later", WEB));
    cluster_ip(&site.host, "later");
    assert_eq!(site.host.wait_running("one").container_id("main"), before);
}

#[test]
fn client_stays_with_its_endpoint() {
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one", "two", "three"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    answers(&site, "client", "http://web/", &["one", "two", "three"]);
    // T14.
    site.host.write_manifest("web.yaml", &service("web", &format!("sessionAffinity: ClientIP, {WEB}")));
    eventually("one endpoint for all connections", || {
        let script = "for i in $(seq 20); do wget -q -O - http://web/; done | sort -u | wc -l";
        let count = site.host.exec("client", "main", &["/bin/sh", "-c", script]);
        if count.trim() == "1" { Ok(()) } else { Err(count) }
    });
}

#[test]
fn guestbook_answers_at_its_front_end() {
    let mut site = Site::start();
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/services/guestbook.yaml");
    site.host.write_manifest("guestbook.yaml", &std::fs::read_to_string(example).unwrap());
    let front_end = format!("http://{HOST_V4}:30080/cgi-bin/book");
    site.outside.gets(&front_end, "first entry");
    site.host.lose_power();
    site.host.start_daemon();
    site.outside.gets(&front_end, "first entry");
}
