//! NetworkPolicies of manifests, enforced between real pods.

use super::crash::Random;
use super::lan::{HOST_V4, OUTSIDE_V4, Site, WebServer, web};
use crate::support::{eventually, eventually_within};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A policy of the namespace `default`.
pub(super) fn policy(name: &str, spec: &str) -> String {
    format!("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

/// A web server with the label `app` of its name.
pub(super) fn labelled(name: &str, label: &str) -> String {
    web(name, "", "").replace(&format!("  name: {name}\n"), &format!("  name: {name}\n  labels: {{app: {label}}}\n"))
}

/// Denies all to `one` but for the label `friend`.
fn friends_only(more: &str) -> String {
    let spec = "podSelector: {matchLabels: {app: one}}, ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}";
    policy("friends", &format!("{spec}{more}]"))
}

impl Site {
    fn labelled(&self, name: &str, label: &str) -> [String; 2] {
        self.host.write_manifest(&format!("{name}.yaml"), &labelled(name, label));
        self.addresses(name)
    }

    /// Waits until a pod gets no answer.
    pub(super) fn is_refused(&self, pod: &str, url: &str) {
        eventually(&format!("{pod} to be refused by {url}"), || match self.pod_get(pod, url) {
            Ok(text) => Err(text),
            Err(error) => {
                if error.contains("refused") {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        });
    }

    /// Waits until the machine outside gets no answer.
    pub(super) fn is_dropped_outside(&self, url: &str) {
        eventually(&format!("{url} to be closed"), || match self.outside.get(url) {
            Ok(text) => Err(text),
            Err(error) => {
                if error.contains("timed out") {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        });
    }
}

/// Ends probers when it goes, also when a test fails: otherwise it would wait for them.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn policies_follow_edits_of_objects_and_labels() {
    let site = Site::start();
    site.host.write_manifest(
        "one.yaml",
        &labelled("one", "one").replace(
            "ports: []",
            "ports: [{containerPort: 80, hostPort: 8080}]\n      readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}",
        ),
    );
    let one = site.addresses("one");
    site.labelled("two", "two");
    site.labelled("three", "friend");
    let urls = [format!("http://{}/", one[0]), format!("http://[{}]/", one[1])];
    site.pod_gets("two", &urls[0], "I am one");
    site.host.write_manifest("p.yaml", &friends_only(""));
    for url in &urls {
        site.is_refused("two", url);
        site.pod_gets("three", url, "I am one");
        site.machine.gets(url, "I am one");
    }
    let described = site.host.cli_ok(&["describe", "networkpolicy", "friends"]);
    assert!(described.lines().any(|line| line.starts_with("Denied Packets:") && line.contains("one-edge-1: ")), "{described}");
    let config = site.host.path("config.yaml").display().to_string();
    let out = site.host.cli(&["--config", &config, "network", "trace", "two", "one:80"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        !out.status.success()
            && said.contains("ingress of pod default/one-edge-1: denied: selected by NetworkPolicy default/friends"),
        "{said}"
    );
    let said = site.host.cli_ok(&["--config", &config, "network", "trace", "three", "one:80"]);
    assert!(said.contains("allowed by spec.ingress[0] of NetworkPolicy default/friends"), "{said}");
    site.is_dropped_outside(&format!("http://{HOST_V4}:8080/"));
    site.host.wait_for_pod("one", "to stay ready under the policy", |pod| pod.container("main")["ready"] == true);
    // The label of a pod that runs.
    let before = site.host.pod("three").unwrap().container_id("main");
    site.host.write_manifest("three.yaml", &labelled("three", "stranger"));
    site.is_refused("three", &urls[0]);
    assert_eq!(site.host.pod("three").unwrap().container_id("main"), before);
    // A faulty edit leaves the last good version.
    site.host.write_manifest("p.yaml", &friends_only(", {from: [{}]}"));
    eventually("the fault to be reported", || {
        let events = site.host.cli_ok(&["get", "events"]);
        events.contains("must specify a peer").then_some(()).ok_or(events)
    });
    site.is_refused("three", &urls[0]);
    // Labels of namespaces.
    let production =
        "podSelector: {matchLabels: {app: one}}, ingress: [{from: [{namespaceSelector: {matchLabels: {purpose: production}}}]}]";
    site.host.write_manifest("p.yaml", &policy("friends", production));
    site.host
        .write_manifest("n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {purpose: production}}\n");
    site.pod_gets("two", &urls[0], "I am one");
    site.host.remove_manifest("n.yaml");
    site.is_refused("two", &urls[0]);
    // Outside, by its own address.
    let block =
        format!("podSelector: {{matchLabels: {{app: one}}}}, ingress: [{{from: [{{ipBlock: {{cidr: {OUTSIDE_V4}/32}}}}]}}]");
    site.host.write_manifest("p.yaml", &policy("friends", &block));
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.host.remove_manifest("p.yaml");
    site.pod_gets("two", &urls[0], "I am one");
}

#[test]
fn egress_is_closed_before_the_first_process() {
    let site = Site::start();
    let one = site.labelled("one", "one");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    let deny = policy("deny", "podSelector: {matchLabels: {app: early}}, policyTypes: [Egress]");
    let early = |name: &str| {
        let script = format!(
            "for url in http://{}/ http://{OUTSIDE_V4}:7000/; do timeout 2 wget -q -O - $url && echo PASSED; done; nslookup one.default.svc.cluster.local 169.254.0.1 && echo PASSED; echo done",
            one[0]
        );
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels: {{app: early}}\nspec:\n  restartPolicy: Never\n  initContainers:\n  - name: first\n    image: localhost/busybox:1\n    command: [/bin/sh, -c, '{script}']\n  containers:\n  - name: main\n    image: localhost/busybox:1\n    command: [/bin/true]\n"
        )
    };
    for round in 0..8 {
        let name = format!("early{round}");
        // One SET has both.
        site.host.write_manifest("early.yaml", &format!("{deny}---\n{}", early(&name)));
        site.host.wait_for_pod(&name, "to succeed", |pod| pod.phase() == "Succeeded");
        let said = site.host.logs(&name, "first");
        assert!(said.contains("done") && !said.contains("PASSED"), "{said}");
        site.host.remove_manifest("early.yaml");
        site.host.wait_gone(&name);
    }
    // The same pod without the policy.
    site.host.write_manifest("early.yaml", &early("open"));
    site.host.wait_for_pod("open", "to succeed", |pod| pod.phase() == "Succeeded");
    let said = site.host.logs("open", "first");
    assert_eq!(said.matches("PASSED").count(), 3, "{said}");
}

/// Connects from a pod's network without pause, also while no daemon runs.
struct Prober {
    netns: std::fs::File,
    url: String,
}

impl Prober {
    fn of(site: &Site, pod: &str, url: &str) -> Self {
        let pid = site.host.container_pid(&site.host.pod(pod).unwrap(), "main");
        Self { netns: std::fs::File::open(format!("/proc/{pid}/ns/net")).unwrap(), url: url.to_owned() }
    }

    /// Ok if there was an answer, or the exit code of `curl`: 7 for a refusal.
    fn ask(&self) -> Result<(), i32> {
        use std::os::fd::AsRawFd as _;
        let netns = format!("--net=/proc/{}/fd/{}", std::process::id(), self.netns.as_raw_fd());
        let out = Command::new("nsenter").args([&netns, "curl", "-gsS", "--noproxy", "*", "-m", "5", &self.url]).output().unwrap();
        if out.status.success() { Ok(()) } else { Err(out.status.code().unwrap_or(-1)) }
    }
}

#[test]
fn policies_hold_while_the_daemon_is_killed() {
    const KILLS: u64 = 10;
    const REFUSED: Result<(), i32> = Err(7);
    let mut site = Site::start();
    let one = site.labelled("one", "one");
    site.labelled("two", "two");
    site.labelled("three", "friend");
    site.host.write_manifest("p.yaml", &friends_only(""));
    let url = format!("http://{}/", one[0]);
    site.is_refused("two", &url);
    site.pod_gets("three", &url, "I am one");
    let probers = [(Prober::of(&site, "two", &url), REFUSED), (Prober::of(&site, "three", &url), Ok(()))];
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut random = Random::new();
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        for (prober, wanted) in &probers {
            let (is_over, asked) = (&is_over, &asked);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let met = prober.ask();
                    if met != *wanted {
                        is_over.store(true, Ordering::Relaxed);
                        panic!("{met:?} instead of {wanted:?}");
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..KILLS {
            // Every one of these denies and allows them the same.
            let more = format!(", {{ports: [{{port: {}}}]}}", 1000 + round);
            site.host.write_manifest("p.yaml", &if round % 3 == 2 { friends_only("") } else { friends_only(&more) });
            let other = policy("other", "podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]");
            if round % 2 == 0 {
                site.host.write_manifest("q.yaml", &other)
            } else {
                site.host.remove_manifest("q.yaml")
            }
            std::thread::sleep(Duration::from_millis(random.below(80)));
            site.host.kill_daemon();
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            site.host.start_daemon();
        }
    });
    assert!(asked.load(Ordering::Relaxed) > 20, "{asked:?}");
    site.is_refused("two", &url);
    site.pod_gets("three", &url, "I am one");
}

/// Q20: overlapping ranges. Whoever may connect is never refused: not when the first policy makes a new table, and not when a daemon that starts does.
#[test]
fn ranges_of_ports_refuse_nothing_they_allow() {
    let mut site = Site::start();
    let servers = "for port in 31999 32000 33000; do httpd -p $port -h /www; done; exec httpd -f -p 33001 -h /www";
    let one = labelled("one", "one").replace("exec httpd -f -h /www", servers);
    site.host.write_manifest("one.yaml", &one);
    let [v4, v6] = site.addresses("one");
    let urls = |port: u16| [format!("http://{v4}:{port}/"), format!("http://[{v6}]:{port}/")];
    site.labelled("two", "two");
    for port in [31999, 32000, 33000, 33001] {
        urls(port).iter().for_each(|url| site.pod_gets("two", url, "I am one"));
    }
    let ports = "podSelector: {matchLabels: {app: one}}, ingress: [{ports: [{port: 32000, endPort: 32768}, {port: 32500, endPort: 33000}]}]";
    let probers: Vec<Prober> =
        [32000, 33000].iter().flat_map(|port| urls(*port)).map(|url| Prober::of(&site, "two", &url)).collect();
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        for prober in &probers {
            let (is_over, asked) = (&is_over, &asked);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let met = prober.ask();
                    if met.is_err() {
                        is_over.store(true, Ordering::Relaxed);
                        panic!("{met:?} from {}", prober.url);
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        site.host.write_manifest("p.yaml", &policy("ports", ports));
        let edges = |site: &Site, pod: &str| {
            for port in [31999, 33001] {
                urls(port).iter().for_each(|url| site.is_refused(pod, url));
            }
            for port in [32000, 33000] {
                urls(port).iter().for_each(|url| assert!(site.pod_get(pod, url).is_ok(), "{url} from {pod}"));
            }
        };
        edges(&site, "two");
        for round in 0..5 {
            site.host.kill_daemon();
            site.host.start_daemon();
            edges(&site, "two");
            let name = format!("new{round}");
            site.labelled(&name, "new");
            edges(&site, &name);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    assert!(asked.load(Ordering::Relaxed) > 20, "{asked:?}");
}

#[test]
fn lost_record_closes_until_sources_are_read() {
    let mut site = Site::start();
    let one = site.labelled("one", "one");
    site.labelled("two", "two");
    site.labelled("three", "friend");
    site.host.write_manifest("p.yaml", &friends_only(""));
    let url = format!("http://{}/", one[0]);
    site.is_refused("two", &url);
    site.host.kill_daemon();
    std::fs::write(site.host.path("state/network-policies.json"), "{\"version\":1,").unwrap();
    site.machine.run("nft flush ruleset");
    site.host.start_daemon();
    site.pod_gets("three", &url, "I am one");
    site.is_refused("two", &url);
    let events = site.host.cli_ok(&["get", "events"]);
    assert!(events.contains("NetworkPolicyRecordLost"), "{events}");
    let record = std::fs::read_to_string(site.host.path("state/network-policies.json")).unwrap();
    assert!(record.contains("friends"), "{record}");
}

#[test]
fn restricted_source_polices_its_own_pods_only() {
    let tenant = tempfile::tempdir().unwrap();
    let directory = tenant.path().display();
    let mut site =
        Site::prepare(&format!("  - name: tenant\n    directory: {{path: {directory}}}\n    allow: {{namespaces: [default]}}\n"));
    site.host.start_daemon();
    let one = site.labelled("one", "one");
    site.labelled("two", "two");
    site.host.write_manifest("p.yaml", &friends_only(""));
    let url = format!("http://{}/", one[0]);
    site.is_refused("two", &url);
    // It neither opens a pod of another source, by a policy of the same name either, nor closes one.
    let all = "podSelector: {}, ingress: [{}], policyTypes: [Ingress, Egress]";
    let policies = format!("{}---\n{}---\n{}", policy("friends", all), policy("mine", all), labelled("theirs", "theirs"));
    std::fs::write(tenant.path().join("t.yaml"), policies).unwrap();
    let theirs = site.addresses("theirs");
    site.is_refused("theirs", &url);
    site.is_refused("two", &url);
    site.pod_gets("two", &format!("http://{}/", theirs[0]), "I am theirs");
    // The label of a namespace is not its own to write.
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {purpose: production}}\n";
    std::fs::write(tenant.path().join("n.yaml"), namespace).unwrap();
    eventually_within(Duration::from_secs(30), "the refusal", || {
        let events = site.host.cli_ok(&["get", "events"]);
        events.contains("may not label namespaces").then_some(()).ok_or(events)
    });
}

#[test]
fn pod_on_the_host_network_is_told() {
    let site = Site::start();
    site.host.write_manifest("p.yaml", &policy("deny", "podSelector: {}"));
    let one = site.labelled("one", "one");
    let on_host =
        labelled("hosty", "hosty").replace("spec:\n", "spec:\n  hostNetwork: true\n").replace("httpd -f -h", "httpd -f -p 8099 -h");
    site.host.write_manifest("hosty.yaml", &on_host);
    site.host.wait_running("hosty");
    site.machine.gets(&format!("http://{HOST_V4}:8099/"), "I am hosty");
    site.pod_gets("one", &format!("http://{HOST_V4}:8099/"), "I am hosty");
    eventually("the event", || {
        let events = site.host.cli_ok(&["get", "events"]);
        if events.contains("NetworkPolicyIgnored") && events.contains("deny") { Ok(()) } else { Err(events) }
    });
    // A policy that comes later.
    site.host.write_manifest("later.yaml", &policy("later", "podSelector: {matchLabels: {app: hosty}}"));
    eventually("the other event", || {
        let events = site.host.cli_ok(&["get", "events"]);
        if events.contains("NetworkPolicy deny, later selects this pod") { Ok(()) } else { Err(events) }
    });
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
}
