//! The real kubectl reads from a real daemon, and reaches into its pods. Skipped where there is no kubectl.

use crate::support::kubectl::{Kubectl, every_kubectl, text};
use crate::support::{binary, eventually};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const WEB: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    ports: [{name: http, containerPort: 80}]
    command: [/bin/sh, -c, 'mkdir -p /www && echo page > /www/index.html; echo ready; exec httpd -f -p 127.0.0.1:80 -h /www']
";

const FRONT: &str = "apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: web}
  ports: [{name: web, port: 8000, targetPort: http}]
";

const POLICIES: &str = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, labels: {team: shop}}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from: [{podSelector: {matchLabels: {app: front}}}]
    ports: [{port: 80}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: other}
spec: {podSelector: {matchLabels: {app: other}}}
";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The answer of the web server through the port that the command forwards.
fn page_through(mut command: Command) -> String {
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let line = lines.next().expect("a line that says where it listens").unwrap();
    let address = line.strip_prefix("Forwarding from ").unwrap().split(" -> ").next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn running_web() -> Option<Kubectl> {
    let kubectl = Kubectl::start("")?;
    kubectl.apply(WEB);
    kubectl.run(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"], "");
    Some(kubectl)
}

#[test]
fn network_policies_are_shown() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.apply(WEB);
    kubectl.apply(POLICIES);
    assert!(kubectl.apply(POLICIES).contains("networkpolicy.networking.k8s.io/web unchanged"));
    assert!(kubectl.has_file("deny.networkpolicy.yaml"));
    for program in every_kubectl() {
        let run = |arguments: &[&str]| {
            let output = kubectl.output_of(&program, arguments, "");
            assert!(output.status.success(), "{} {arguments:?}: {}", program.display(), text(&output.stderr));
            text(&output.stdout)
        };
        let table = run(&["get", "netpol"]);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        let expected = [["NAME", "POD-SELECTOR"], ["deny", "<none>"], ["other", "app=other"], ["web", "app=web"]];
        assert_eq!(rows, expected);
        assert!(table.lines().next().unwrap().ends_with(" AGE") && !table.contains("<unknown>"), "{table}");
        assert_eq!(run(&["get", "networkpolicies", "-l", "team=shop", "-o", "name"]), "networkpolicy.networking.k8s.io/web\n");
        let described = run(&["describe", "networkpolicy", "web"]);
        assert!(
            described.contains("PodSelector:     app=web") && described.contains("Policy Types: Ingress, Egress"),
            "{described}"
        );
        assert!(run(&["api-resources", "--api-group=networking.k8s.io"]).contains("netpol"));
    }
    let newest = every_kubectl().into_iter().find(|program| program.ends_with("kubectl.1.33"));
    if let Some(newest) = newest {
        let explained = text(&kubectl.output_of(&newest, &["explain", "netpol.spec.policyTypes"], "").stdout);
        assert!(explained.contains("[]string"), "{explained}");
    }
    let watch = "/apis/networking.k8s.io/v1/networkpolicies?watch=true&timeoutSeconds=1";
    assert!(kubectl.run(&["get", "--raw", watch], "").contains(r#""type":"ADDED""#));

    let cli = |arguments: &[&str]| kubectl.host.cli_ok(arguments);
    assert!(cli(&["get", "netpol"]).contains("app=web"));
    assert_eq!(cli(&["get", "networkpolicies", "web", "-o", "name"]), "networkpolicy.networking.k8s.io/web\n");
    let described = cli(&["describe", "netpol", "web"]);
    assert!(described.contains("Selected Pods:       web") && described.contains("PodSelector app=front"), "{described}");
    let pod = cli(&["describe", "pod", "web"]);
    assert!(pod.contains("deny (Ingress)") && pod.contains("web (Ingress, Egress)") && !pod.contains("other ("), "{pod}");
    kubectl.run(&["delete", "netpol", "deny"], "");
    assert!(!cli(&["describe", "pod", "web"]).contains("deny ("));
}

#[test]
fn services_lead_to_their_pods() {
    let Some(kubectl) = running_web() else { return };
    kubectl.apply(FRONT);
    for program in every_kubectl() {
        let run = |arguments: &[&str]| {
            let output = kubectl.output_of(&program, arguments, "");
            assert!(output.status.success(), "{} {arguments:?}: {}", program.display(), text(&output.stderr));
            text(&output.stdout)
        };
        // Versions 1.30 to 1.33 discard output that comes before they have made their streams.
        for _ in 0..5 {
            assert_eq!(run(&["exec", "svc/front", "--", "echo", "inside"]), "inside\n", "{}", program.display());
        }
        assert_eq!(run(&["logs", "svc/front"]), "ready\n", "{}", program.display());
        let described = run(&["describe", "svc", "front"]);
        assert!(described.contains("app=web") && described.contains("8000/TCP"), "{}: {described}", program.display());
        let mut command = kubectl.command(&program);
        command.args(["port-forward", "svc/front", ":8000"]);
        assert!(page_through(command).contains("page"), "{}", program.display());
    }
    let cli = |arguments: &[&str]| kubectl.host.cli_ok(arguments);
    assert_eq!(cli(&["exec", "svc/front", "--", "echo", "inside"]), "inside\n");
    assert_eq!(cli(&["logs", "service/front"]), "ready\n");
    let described = cli(&["describe", "service", "front"]);
    assert!(described.contains("Selector:            app=web") && described.contains("web  8000/TCP"), "{described}");
    let mut command = Command::new(binary("podstead"));
    command.arg("--socket").arg(kubectl.host.path("run/podstead.sock")).args(["port-forward", "svc/front", ":web"]);
    assert!(page_through(command).contains("page"));
    let refused = kubectl.host.cli(&["logs", "netpol/x"]);
    assert!(text(&refused.stderr).contains("have no logs"), "{refused:?}");
}

#[test]
fn usage_is_measured_and_files_are_copied() {
    let Some(kubectl) = running_web() else { return };
    let version: Value = serde_json::from_str(&kubectl.run(&["get", "--raw", "/version"], "")).unwrap();
    let of_node = kubectl.run(&["get", "node", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}"], "");
    assert_eq!(version["gitVersion"], of_node, "the node and the API are of one release");
    let (there, back) = (kubectl.host.path("there"), kubectl.host.path("back"));
    let content: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    fs::write(&there, &content).unwrap();
    for program in every_kubectl() {
        let run = |arguments: &[&str]| {
            let output = kubectl.output_of(&program, arguments, "");
            assert!(output.status.success(), "{} {arguments:?}: {}", program.display(), text(&output.stderr));
            text(&output.stdout)
        };
        if program != Path::new("kubectl") {
            // The numbers of a pod that has just started come with the first measurement.
            eventually("usage", || {
                let pods = text(&kubectl.output_of(&program, &["top", "pod", "web"], "").stdout);
                if pods.contains("web") && pods.contains("Mi") { Ok(()) } else { Err(pods) }
            });
            assert!(run(&["top", "pod", "web", "--containers"]).contains("main"));
            assert!(run(&["top", "node"]).contains("edge-1"));
        }
        run(&["cp", there.to_str().unwrap(), "web:/tmp/file", "-c", "main"]);
        fs::remove_file(&back).ok();
        run(&["cp", "web:tmp/file", back.to_str().unwrap()]);
        assert!(fs::read(&back).unwrap() == content, "{}", program.display());
        run(&["exec", "web", "--", "rm", "/tmp/file"]);
    }
}

#[test]
fn events_are_the_same_in_both_groups() {
    let Some(kubectl) = running_web() else { return };
    let json = |arguments: &[&str]| -> serde_json::Value { serde_json::from_str(&kubectl.run(arguments, "")).unwrap() };
    let list = |resource: &str, object: &str| {
        let selector = format!("{object}.name=web,reason=Started");
        json(&["get", resource, "--field-selector", &selector, "-o", "json"])["items"].clone()
    };
    let (old, new) = (list("events", "involvedObject"), list("events.v1.events.k8s.io", "regarding"));
    assert_eq!(new.as_array().unwrap().len(), 1, "{new}");
    assert_eq!(new[0]["apiVersion"], "events.k8s.io/v1");
    for (before, after) in [
        ("/metadata", "/metadata"),
        ("/message", "/note"),
        ("/involvedObject", "/regarding"),
        ("/reason", "/reason"),
        ("/type", "/type"),
        ("/count", "/deprecatedCount"),
        ("/firstTimestamp", "/deprecatedFirstTimestamp"),
        ("/reportingComponent", "/reportingController"),
    ] {
        assert!(old[0].pointer(before).is_some_and(|value| new[0].pointer(after) == Some(value)), "{before}: {old} {new}");
    }
    let name = new[0]["metadata"]["name"].as_str().unwrap();
    for resource in ["events", "events.v1.events.k8s.io"] {
        assert_eq!(json(&["get", resource, name, "-o", "json"])["metadata"]["name"], name);
        let failure = kubectl.fail(&["get", resource, "web.none"], "");
        assert!(failure.contains(r#""web.none" not found"#), "{failure}");
        assert!(kubectl.run(&["get", resource], "").contains("Started container main"));
    }
    assert!(kubectl.run(&["events", "--for", "pod/web"], "").contains("Started container main"));
    let watch = format!(
        "/apis/events.k8s.io/v1/namespaces/default/events?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}"
    );
    let told = kubectl.run(&["get", "--raw", &watch], "");
    assert!(told.contains(r#""type":"ADDED""#) && told.contains(r#""note":"Started container main""#), "{told}");
}
