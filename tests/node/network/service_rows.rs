//! Services beyond TCP over IPv4: both families, datagrams, names of members, pods that are not ready, and clients that reach nothing.

use super::lan::{HOST_V4, HOST_V6, OUTSIDE_V4, Site, WebServer};
use super::names::digs;
use super::services::{WEB, add_backends, answers, backend, cluster_ip, service, shown};
use crate::support::{eventually, eventually_within};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A program that ends with this.
pub(super) struct Program(pub(super) Child);

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A command in the network of a pod's container.
pub(super) fn in_pod(site: &Site, pod: &str, arguments: &[&str]) -> std::process::Command {
    let pid = site.host.container_pid(&site.host.wait_running(pod), "main").to_string();
    let mut command = std::process::Command::new("nsenter");
    command.args(["-t", &pid, "-n"]).args(arguments).stdin(Stdio::null());
    command
}

/// A server of UDP in a pod, which answers with the pod's name over both families.
pub(super) fn datagram_server(site: &Site, pod: &str) -> Program {
    let server = format!(
        "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\ns.bind(('::', 5353))\nwhile True: s.sendto(b'I am {pod}', s.recvfrom(100)[1])\n"
    );
    Program(in_pod(site, pod, &["python3", "-c", &server]).spawn().unwrap())
}

/// A client of UDP that keeps its port, and what it hears.
pub(super) fn chatter(mut command: std::process::Command) -> (Program, Receiver<String>) {
    let mut client = command.stdout(Stdio::piped()).spawn().unwrap();
    let (sender, answers) = std::sync::mpsc::channel();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    (Program(client), answers)
}

/// Sends to an address and port from one socket until it is ended. A refusal is no end.
pub(super) const CHATTER: &str = "import socket,sys,time\ns = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)\n\
                       s.bind(('', 0))\ns.settimeout(0.2)\n\
                       while True:\n  \
                       try: s.sendto(b'hello', (sys.argv[1], int(sys.argv[2]))); print(s.recvfrom(100)[0].decode(), flush=True); time.sleep(0.02)\n  \
                       except OSError: time.sleep(0.02)\n";

pub(super) fn hears(answers: &Receiver<String>, expected: &str) {
    // Answers of the endpoint before may wait to be read.
    let end = Instant::now() + Duration::from_secs(60);
    let mut heard = std::iter::from_fn(|| answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok());
    assert!(heard.any(|answer| answer == expected), "{expected:?} was never heard");
}

/// T27: one socket each of a pod, of the host and of a machine outside; no endpoint at first, then one, then another one.
#[test]
fn datagrams_follow_the_endpoint_of_a_service() {
    let site = Site::start();
    site.web("client", "", "");
    let spec = "type: NodePort, ipFamilyPolicy: PreferDualStack, selector: {app: web}, \
                ports: [{port: 53, targetPort: 5353, protocol: UDP, nodePort: 30053}]";
    site.host.write_manifest("dns.yaml", &service("dns", spec));
    let address = cluster_ip(&site.host, "dns");
    let second = shown(&site.host, "dns").unwrap()["spec"]["clusterIPs"][1].as_str().unwrap().to_owned();
    let talk = |address, port| ["python3", "-c", CHATTER, address, port];
    let clients = [
        chatter(in_pod(&site, "client", &talk(&address, "53"))),
        chatter(in_pod(&site, "client", &talk(&second, "53"))),
        chatter(site.machine.command(&talk(&address, "53"))),
        chatter(site.outside.command(&talk(HOST_V4, "30053"))),
        chatter(site.outside.command(&talk(HOST_V6, "30053"))),
    ];
    for name in ["one", "two"] {
        site.host.write_manifest(&format!("{name}.yaml"), &backend(name, "default", ""));
        let _server = datagram_server(&site, name);
        for (_, answers) in &clients {
            hears(answers, &format!("I am {name}"));
        }
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
}

/// T34, and T3, T18, T28 over IPv6.
#[test]
fn service_has_both_families() {
    both_families(&Site::start());
}

/// A Service of both families, and what reaches it.
pub(super) fn both_families(site: &Site) {
    site.web("client", "", "");
    add_backends(site, &["one", "two"]);
    let both = "type: NodePort, ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    site.host.write_manifest("both.yaml", &service("both", both));
    site.host.write_manifest("six.yaml", &service("six", &format!("ipFamilies: [IPv6, IPv4], {WEB}")));
    site.host
        .write_manifest("members.yaml", &service("members", &format!("clusterIP: None, ipFamilyPolicy: PreferDualStack, {WEB}")));
    let first = cluster_ip(&site.host, "both");
    let second = shown(&site.host, "both").unwrap()["spec"]["clusterIPs"][1].as_str().unwrap().to_owned();
    assert!(first.contains('.') && second.contains(':'), "{first} {second}");
    let six = cluster_ip(&site.host, "six");
    assert!(six.contains(':'), "{six}");
    for address in [first, format!("[{second}]"), format!("[{six}]")] {
        let url = format!("http://{address}/");
        answers(site, "client", &url, &["one", "two"]);
        // It meets itself, too.
        answers(site, "one", &url, &["one", "two"]);
        site.machine.gets(&url, "I am ");
    }
    site.outside.gets(&format!("http://[{HOST_V6}]:30080/"), "I am ");
    site.outside.gets(&format!("http://{HOST_V4}:30080/"), "I am ");
    digs(site, "client", "+short AAAA both.default.svc.cluster.local", &second);
    digs(site, "client", &format!("+short -x {second}"), "both.default.svc.cluster.local.");
    let [_, of_one] = site.addresses("one");
    digs(site, "client", "+short AAAA members.default.svc.cluster.local", &of_one);
    // Nobody at another port.
    let refused = site.pod_get("client", &format!("http://[{second}]:81/")).unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
}

/// T4, T8, T9, T32, T35, T40.
#[test]
fn endpoints_are_the_pods_that_answer() {
    let site = Site::start();
    site.web("client", "", "");
    // T9: the only pod is being stopped, and answers until its hook lets it end.
    let slow = backend("slow", "default", "")
        .replace("terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 600")
        .replace("exec httpd -f -p 8080 -h /www", "trap \"exit 0\" TERM; httpd -f -p 8080 -h /www & wait")
        .replace(
            "    readinessProbe",
            "    lifecycle: {preStop: {exec: {command: [/bin/sh, -c, 'until test -e /tmp/end; do sleep 0.1; done']}}}\n    readinessProbe",
        );
    site.host.write_manifest("slow.yaml", &slow);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    answers(&site, "client", "http://web/", &["slow"]);
    let root = format!("/proc/{}/root", site.host.container_pid(&site.host.wait_running("slow"), "main"));
    site.host.remove_manifest("slow.yaml");
    site.host.wait_for_pod("slow", "to be stopped", |pod| pod.0["metadata"]["deletionTimestamp"].is_string());
    site.pod_gets("client", "http://web/", "I am slow");
    // With another one that is ready, only by that.
    add_backends(&site, &["one"]);
    answers(&site, "client", "http://web/", &["one"]);
    std::fs::write(format!("{root}/tmp/end"), "").unwrap();
    site.host.wait_gone("slow");
    // T8: not ready, and published all the same.
    site.host.write_manifest("early.yaml", &service("early", &format!("publishNotReadyAddresses: true, {WEB}")));
    answers(&site, "client", "http://early/", &["one"]);
    site.host.exec("one", "main", &["rm", "/tmp/ready"]);
    eventually("the Service to have no endpoint", || {
        site.pod_get("client", "http://web/").err().ok_or_else(|| "it answers".to_owned())
    });
    answers(&site, "client", "http://early/", &["one"]);
    site.host.exec("one", "main", &["touch", "/tmp/ready"]);
    // T32: a Service goes before a pod of its name, and after it the pod has the name again.
    site.host.write_manifest("client-service.yaml", &service("client", WEB));
    let address = cluster_ip(&site.host, "client");
    digs(&site, "client", "+short client.default.svc.cluster.local", &address);
    // T35: a pod on the host's network is an endpoint at the host's address.
    let on_host = backend("hosty", "default", "hostNetwork: true").replace("8080", "8077").replace("app: web", "app: hosty");
    site.host.write_manifest("hosty.yaml", &on_host);
    site.host
        .write_manifest("hosty-service.yaml", &service("hosty", "selector: {app: hosty}, ports: [{port: 80, targetPort: http}]"));
    answers(&site, "client", "http://hosty/", &["hosty"]);
    site.machine.gets(&format!("http://{}/", cluster_ip(&site.host, "hosty")), "I am hosty");
    // T40: programs see that they run in no cluster.
    digs(&site, "client", "kubernetes.default.svc.cluster.local", "status: NXDOMAIN");
    assert!(!site.host.exec("client", "main", &["env"]).contains("KUBERNETES_SERVICE_HOST"));
    // T4: a machine that routes the range to this host reaches no pod.
    site.outside.run(&format!("ip route add 10.202.0.0/20 via {HOST_V4}"));
    let web = cluster_ip(&site.host, "web");
    site.machine.gets(&format!("http://{web}/"), "I am one");
    assert!(site.outside.get(&format!("http://{web}/")).is_err());
}

/// T35: the address of the host changes under a pod on its network.
#[test]
fn endpoint_on_the_host_follows_its_address() {
    let site = Site::start();
    site.web("client", "", "");
    let on_host = backend("hosty", "default", "hostNetwork: true").replace("8080", "8077").replace("app: web", "app: hosty");
    site.host.write_manifest("hosty.yaml", &on_host);
    let spec = "selector: {app: hosty}, ports: [{port: 80, targetPort: http}]";
    site.host.write_manifest("hosty-service.yaml", &service("hosty", spec));
    answers(&site, "client", "http://hosty/", &["hosty"]);
    // With the last address of its range the route to it goes.
    site.machine.run(&format!("ip address del {HOST_V4}/24 dev uplink"));
    site.machine.run("ip address add 192.0.2.99/24 dev uplink");
    site.machine.run(&format!("ip route add default via {OUTSIDE_V4}"));
    // Statuses of pods are made again once a minute.
    eventually_within(Duration::from_secs(180), "the endpoint at the new address", || {
        let slices = site.host.cli_ok(&["get", "endpointslices", "-o", "json"]);
        if slices.contains("\"192.0.2.99\"") { Ok(()) } else { Err(slices) }
    });
    answers(&site, "client", "http://hosty/", &["hosty"]);
    site.machine.gets(&format!("http://{}/", cluster_ip(&site.host, "hosty")), "I am hosty");
}

/// T28: members of a StatefulSet have names below its Service, before they are ready as well.
#[test]
fn members_of_a_stateful_set_have_names() {
    let site = Site::start();
    site.web("client", "", "");
    let pod = backend("x", "default", "");
    let spec = pod.split_once("spec:\n").unwrap().1.replace("I am x.", "I am $(hostname).");
    let template: String = spec.lines().map(|line| format!("    {line}\n")).collect();
    site.host.write_manifest(
        "db.yaml",
        &format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: db}}\nspec: {{clusterIP: None, {WEB}}}\n---\napiVersion: apps/v1\nkind: StatefulSet\n\
             metadata: {{name: db}}\nspec:\n  replicas: 2\n  serviceName: db\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    \
             metadata: {{labels: {{app: web}}}}\n    spec:\n{template}"
        ),
    );
    for member in ["db-0", "db-1"] {
        eventually_within(Duration::from_secs(120), &format!("an answer of {member}"), || {
            match site.pod_get("client", &format!("http://{member}.db:8080/")) {
                Ok(text) if text.contains(member) => Ok(()),
                other => Err(format!("{other:?}\n{}", site.host.cli_ok(&["get", "pods"]))),
            }
        });
        digs(
            &site,
            "client",
            "+short SRV _http._tcp.db.default.svc.cluster.local",
            &format!("8080 {member}.db.default.svc.cluster.local."),
        );
    }
    site.host.exec("db-0", "main", &["rm", "/tmp/ready"]);
    eventually("the Service to leave out db-0", || {
        let found = digs(&site, "client", "+short SRV _http._tcp.db.default.svc.cluster.local", "db-1.db");
        if found.contains("db-0.db") { Err(found) } else { Ok(()) }
    });
    digs(&site, "client", "db-0.db.default.svc.cluster.local", "status: NOERROR");
}

/// T17, S20: a bond of a client lasts over a restart of the daemon.
#[test]
fn client_keeps_endpoint_over_daemon_restart() {
    let mut site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one", "two", "three"]);
    site.host.write_manifest("web.yaml", &service("web", &format!("sessionAffinity: ClientIP, {WEB}")));
    eventually("three endpoints", || {
        let slices = site.host.cli_ok(&["get", "endpointslices", "-o", "wide"]);
        let addresses = ["one", "two", "three"].map(|name| site.addresses(name)[0].clone());
        if addresses.iter().all(|address| slices.contains(address)) { Ok(()) } else { Err(slices) }
    });
    let url = format!("http://{}/", cluster_ip(&site.host, "web"));
    let ask = |site: &Site| {
        let script = format!("for i in $(seq 10); do wget -q -O - {url}; done | sort -u");
        site.host.exec("client", "main", &["/bin/sh", "-c", &script])
    };
    let mine = ask(&site);
    assert_eq!(mine.lines().count(), 1, "{mine}");
    site.host.kill_daemon();
    site.host.start_daemon();
    let after = ask(&site);
    assert_eq!(after.lines().count(), 1, "{after}");
}

/// A pod of a source with `allow` has the labels of another source's Service, and is not meant by its name.
#[test]
fn service_means_no_pod_of_another_source() {
    let tenant = tempfile::tempdir().unwrap();
    let directory = tenant.path().display();
    let mut site =
        Site::prepare(&format!("  - name: tenant\n    directory: {{path: {directory}}}\n    allow: {{namespaces: [default]}}\n"));
    site.host.start_daemon();
    site.web("client", "", "");
    std::fs::write(tenant.path().join("theirs.yaml"), backend("theirs", "default", "")).unwrap();
    site.host.wait_running("theirs");
    add_backends(&site, &["one"]);
    site.host.write_manifest("web.yaml", &service("web", WEB));
    answers(&site, "client", "http://web/", &["one"]);
    let out = site.host.cli(&["exec", "svc/web", "-c", "main", "--", "cat", "/www/index.html"]);
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(said.contains("I am one.") && !said.contains("Found"), "{said}");
    // The same name from the tenant's side: its Service has its pod, and ours is not behind it.
    std::fs::write(tenant.path().join("mine.yaml"), service("mine", WEB)).unwrap();
    answers(&site, "client", "http://mine/", &["theirs"]);
    let out = site.host.cli(&["exec", "svc/mine", "-c", "main", "--", "cat", "/www/index.html"]);
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(said.contains("I am theirs.") && !said.contains("Found"), "{said}");
}

/// T24, T25: a port of the host belongs to who has it; the Service waits for it, and its ClusterIP works meanwhile.
#[test]
fn load_balancer_waits_for_its_port() {
    let site = Site::start();
    site.web("client", "", "");
    add_backends(&site, &["one"]);
    let sshd = WebServer::start(&site.machine, "0.0.0.0:22", "I am a service of the host");
    let at = |port: u16| format!("type: LoadBalancer, selector: {{app: web}}, ports: [{{port: {port}, targetPort: 8080}}]");
    site.host.write_manifest("ssh.yaml", &service("ssh", &at(22)));
    site.host.write_manifest("first.yaml", &service("first", &at(88)));
    site.outside.gets(&format!("http://{HOST_V4}:88/"), "I am one");
    site.host.write_manifest("second.yaml", &service("second", &at(88)));
    let told = |name: &str, words: &str| {
        eventually(&format!("an event of Service {name}"), || {
            let events = site.host.cli_ok(&["get", "events", "-o", "json"]);
            let events: serde_json::Value = serde_json::from_str(&events).unwrap();
            let is_it = |event: &&serde_json::Value| {
                event["reason"] == "LoadBalancerPortTaken"
                    && event["involvedObject"]["name"] == name
                    && event["message"].as_str().is_some_and(|message| message.contains(words))
            };
            let is_told = events["items"].as_array().is_some_and(|list| list.iter().any(|event| is_it(&event)));
            if is_told { Ok(()) } else { Err(events.to_string()) }
        });
    };
    told("ssh", "22");
    told("second", "Service default/first");
    site.outside.gets(&format!("http://{HOST_V4}:22/"), "I am a service of the host");
    for name in ["ssh", "second"] {
        let port = if name == "ssh" { 22 } else { 88 };
        site.pod_gets("client", &format!("http://{}:{port}/", cluster_ip(&site.host, name)), "I am one");
    }
    // Both come free.
    drop(sshd);
    site.host.remove_manifest("first.yaml");
    site.outside.gets(&format!("http://{HOST_V4}:22/"), "I am one");
    eventually("the second Service to have the port", || {
        let ingress = shown(&site.host, "second").map(|service| service["status"]["loadBalancer"]["ingress"][0]["ip"].clone());
        if ingress == Some(HOST_V4.into()) { Ok(()) } else { Err(format!("{ingress:?}")) }
    });
    site.outside.gets(&format!("http://{HOST_V4}:88/"), "I am one");
}
