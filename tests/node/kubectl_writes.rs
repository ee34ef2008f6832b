//! The real kubectl writes to a writable source of a real daemon. Skipped where there is no kubectl.

use crate::support::{TestHost, eventually};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// A host whose source is writable, and kubectl for it.
struct Kubectl {
    host: TestHost,
    address: SocketAddr,
}

/// Copies between a TCP port that the kernel chose and the socket of the daemon.
fn bridge(host: &TestHost) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = host.path("run/podstead.sock");
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            // While the daemon is away, kubectl is told by a closed connection.
            let Ok(unix) = UnixStream::connect(&socket) else { continue };
            let (tcp_in, unix_in) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
            let (tcp_end, unix_end) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
            thread::spawn(move || {
                copy(tcp_in, unix_in);
                unix_end.shutdown(Shutdown::Both).ok();
            });
            thread::spawn(move || {
                copy(unix, tcp);
                tcp_end.shutdown(Shutdown::Both).ok();
            });
        }
    });
    address
}

fn copy(mut from: impl Read, mut to: impl Write) {
    std::io::copy(&mut from, &mut to).ok();
}

impl Kubectl {
    fn start(more: &str) -> Option<Self> {
        let exists = |directory: &Path| directory.join("kubectl").is_file();
        let path = std::env::var_os("PATH")?;
        if !std::env::split_paths(&path).any(|directory| exists(&directory)) {
            std::io::stderr().write_all(b"no kubectl in PATH: skipped\n").unwrap();
            return None;
        }
        let host = TestHost::start_with(&format!("    writable: true\n{more}"));
        let address = bridge(&host);
        Some(Self { host, address })
    }

    fn output(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new("kubectl");
        command.env("HOME", self.host.path("")).env_remove("KUBECONFIG");
        command.arg(format!("--server=http://{}", self.address)).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// Runs kubectl, which must succeed; returns both outputs.
    fn run(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {told}\n{}", self.host.daemon_log());
        told
    }

    /// Runs kubectl, which must fail; returns its message.
    fn fail(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        assert!(!output.status.success(), "kubectl {arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    fn apply(&self, manifest: &str) -> String {
        self.run(&["apply", "--validate=false", "-f", "-"], manifest)
    }

    fn file(&self, name: &str) -> String {
        let path = self.host.path("manifests").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn has_file(&self, name: &str) -> bool {
        self.host.path("manifests").join(name).try_exists().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn pod(name: &str, marker: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, 'echo {marker}; exec sleep 1000000']
"
    )
}

#[test]
fn applied_pod_is_a_file_and_runs() {
    let Some(mut kubectl) = Kubectl::start("") else { return };
    assert_eq!(kubectl.apply(&pod("web", "one")), "pod/web created\n");
    let expected = "apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
spec:
  containers:
  - name: main
    image: localhost/busybox:1
    command:
    - sh
    - \"-c\"
    - echo one; exec sleep 1000000
  terminationGracePeriodSeconds: 1
";
    assert_eq!(kubectl.file("web.pod.yaml"), expected);
    let phase = ["get", "pod", "web", "-o", "jsonpath={.status.phase}"];
    let wait = |kubectl: &Kubectl, what: &str| {
        eventually(what, || {
            let found = kubectl.output(&phase, "");
            if text(&found.stdout) == "Running" { Ok(()) } else { Err(text(&found.stderr)) }
        });
    };
    wait(&kubectl, "the pod to run");
    assert_eq!(kubectl.apply(&pod("web", "one")), "pod/web unchanged\n");
    assert_eq!(kubectl.apply(&pod("web", "two")), "pod/web configured\n");
    assert_eq!(kubectl.file("web.pod.yaml"), expected.replace("echo one", "echo two"));
    let history = kubectl.host.cli_ok(&["history", "manifests", "-o", "wide"]);
    assert!(
        history.contains("patch Pod default/web in web.pod.yaml (kubectl-client-side-apply)") && history.contains("(uid 0)"),
        "{history}"
    );

    kubectl.host.lose_power();
    kubectl.host.start_daemon();
    wait(&kubectl, "the pod to run after a power cut");
    assert_eq!(kubectl.apply(&pod("web", "two")), "pod/web unchanged\n");
    assert!(kubectl.run(&["delete", "pod", "web"], "").starts_with("pod \"web\" deleted"));
    assert!(!kubectl.has_file("web.pod.yaml"));
}

#[test]
fn hand_written_file_keeps_its_form() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let written = "# ours
kind: ConfigMap
apiVersion: v1
metadata:
  name: settings # short
data:
  a: one # the first
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {x: y}
";
    kubectl.host.write_manifest("settings.yaml", written);
    eventually("the ConfigMap to be read", || {
        let found = kubectl.output(&["get", "cm", "settings"], "");
        if found.status.success() { Ok(()) } else { Err(text(&found.stderr)) }
    });
    kubectl.run(&["patch", "cm", "settings", "--type=merge", "-p", r#"{"data":{"a":"two"}}"#], "");
    assert_eq!(kubectl.file("settings.yaml"), written.replace("one #", "two #"));
    kubectl.run(&["annotate", "cm", "settings", "n=1"], "");
    kubectl.run(&["annotate", "cm", "settings", "n-"], "");
    kubectl.run(&["patch", "cm", "settings", "--type=json", "-p", r#"[{"op":"replace","path":"/data/a","value":"one"}]"#], "");
    assert_eq!(kubectl.file("settings.yaml"), written);
    kubectl.run(&["delete", "cm", "settings"], "");
    assert!(!kubectl.file("settings.yaml").contains("settings") && kubectl.file("settings.yaml").contains("other"));
    let failure = kubectl.fail(&["delete", "cm", "settings"], "");
    assert!(failure.contains(r#"configmaps "settings" not found"#), "{failure}");
}

#[test]
fn workload_is_scaled_and_restarted() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let manifest = "apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}]
";
    assert_eq!(kubectl.apply(manifest), "deployment.apps/shop created\n");
    assert_eq!(kubectl.run(&["scale", "deploy/shop", "--replicas=2"], ""), "deployment.apps/shop scaled\n");
    assert!(kubectl.file("shop.deployment.yaml").contains("  replicas: 2\n"), "{}", kubectl.file("shop.deployment.yaml"));
    kubectl.run(&["set", "env", "deploy/shop", "A=b"], "");
    kubectl.run(&["rollout", "restart", "deploy/shop"], "");
    let file = kubectl.file("shop.deployment.yaml");
    assert!(file.contains("restartedAt") && file.contains("    env:") && !file.contains("imagePullPolicy"), "{file}");
    let failure = kubectl.fail(&["delete", "deploy/shop", "--cascade=orphan"], "");
    assert!(failure.contains("propagationPolicy"), "{failure}");
    kubectl.run(&["delete", "deploy/shop", "--wait=false"], "");
    assert!(!kubectl.has_file("shop.deployment.yaml"));
}

#[test]
fn secret_stays_secret() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let secret = |keys: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {keys}\n");
    kubectl.apply(&secret("{a: hunter2, b: swordfish}"));
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(kubectl.host.path("manifests/s.secret.yaml")).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    kubectl.apply(&secret("{a: hunter2}"));
    assert!(!kubectl.file("s.secret.yaml").contains("swordfish") && kubectl.file("s.secret.yaml").contains("hunter2"));
    kubectl.run(&["label", "secret", "s", "team=shop"], "");
    assert!(kubectl.file("s.secret.yaml").contains("hunter2") && kubectl.file("s.secret.yaml").contains("team: shop"));
    let shown = kubectl.run(&["get", "secret", "s", "-o", "yaml"], "");
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    let failure = kubectl.fail(&["replace", "--validate=false", "-f", "-"], &shown);
    assert!(failure.contains("give the data, or use patch"), "{failure}");
    for word in ["hunter2", "swordfish", "aHVudGVyMg"] {
        assert!(!kubectl.host.daemon_log().contains(word));
    }
}

#[test]
fn refusals_name_field_and_remedy() {
    let Some(kubectl) = Kubectl::start("    allow: {}\n") else { return };
    let own = |extra: &str| pod("web", "one").replace("spec:\n", &format!("spec:\n  {extra}\n"));
    let create = ["create", "--validate=false", "-f", "-"];
    let namespace = ["-n", "manifests"];
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &own("hostNetwork: true"));
    assert!(failure.contains("is invalid") && failure.contains("spec.hostNetwork"), "{failure}");
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &pod("we/../b", "x"));
    assert!(failure.contains("metadata.name"), "{failure}");
    let finalizers = pod("web", "x").replace("  name: web\n", "  name: web\n  finalizers: [a/b]\n");
    assert!(kubectl.fail(&[&namespace[..], &create].concat(), &finalizers).contains("metadata.finalizers"));
    let entries = fs::read_dir(kubectl.host.path("manifests")).unwrap().count();
    assert_eq!(entries, 0);
    let path = "/api/v1/namespaces/manifests/pods?dryRun=All";
    let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"a","image":"b"}]}}"#;
    kubectl.run(&["create", "--raw", path, "-f", "-"], json);
    let failure = kubectl.fail(&["create", "--raw", path, "-f", "-"], &json.replace("image", "imag"));
    assert!(failure.contains(r#"unknown field "spec.containers[0].imag""#), "{failure}");
    assert!(!kubectl.has_file("web.pod.yaml"));
    kubectl.run(&[&namespace[..], &create].concat(), &pod("web", "x"));
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &pod("web", "x"));
    assert!(failure.contains("AlreadyExists") && failure.contains("web.pod.yaml:1"), "{failure}");
    kubectl.host.cli_ok(&["suspend", "manifests"]);
    let failure = kubectl.fail(&["-n", "manifests", "label", "pod", "web", "a=b"], "");
    assert!(failure.contains("podstead resume manifests"), "{failure}");
}

#[test]
fn server_side_apply_knows_owners() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let map = |data: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {data}\n");
    let alpha = ["apply", "--server-side", "--validate=false", "--field-manager=alpha", "-f", "-"];
    let beta = ["apply", "--server-side", "--validate=false", "--field-manager=beta", "-f", "-"];
    kubectl.run(&alpha, &map("{k: one, l: one}"));
    kubectl.run(&alpha, &map("{k: two}"));
    let file = kubectl.file("m.configmap.yaml");
    assert!(file.contains("k: two") && !file.contains("l:"), "{file}");
    let failure = kubectl.fail(&beta, &map("{k: three}"));
    assert!(failure.contains(r#"conflict with "alpha": .data.k"#), "{failure}");
    kubectl.run(&[&beta[..], &["--force-conflicts"]].concat(), &map("{k: three}"));
    kubectl.host.write_manifest("m.configmap.yaml", &file.replace("two", "hand"));
    eventually("the edit to be read", || {
        let found = text(&kubectl.output(&["get", "cm", "m", "-o", "jsonpath={.data.k}"], "").stdout);
        if found == "hand" { Ok(()) } else { Err(found) }
    });
    let failure = kubectl.fail(&beta, &map("{k: four}"));
    assert!(failure.contains(r#"conflict with "file m.configmap.yaml": .data.k"#), "{failure}");
}
