//! The real kubectl against the API, over a TCP bridge to the unix socket. Skipped where there is no kubectl.

use crate::host::{Host, reference_to, text};
use podstead::workload::object::WorkloadKind;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Copies between a TCP port that the kernel chose and the socket.
fn bridge(host: &Host) -> SocketAddr {
    let socket = host.socket();
    host.tokio.block_on(async move {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut tcp, _)) = listener.accept().await {
                let socket = socket.clone();
                tokio::spawn(async move {
                    let mut unix = tokio::net::UnixStream::connect(socket).await.unwrap();
                    tokio::io::copy_bidirectional(&mut tcp, &mut unix).await.ok();
                });
            }
        });
        address
    })
}

pub(crate) struct Kubectl<'a> {
    program: PathBuf,
    /// The option that says where the API is.
    server: String,
    host: &'a Host,
}

impl<'a> Kubectl<'a> {
    /// `None` where there is no kubectl.
    pub(crate) fn find(host: &'a Host) -> Option<Self> {
        let program = programs().into_iter().next();
        if program.is_none() {
            std::io::stderr().write_all(b"no kubectl in PATH: skipped\n").unwrap();
        }
        Some(Self { program: program?, server: format!("--server=http://{}", bridge(host)), host })
    }

    /// Every kubectl of this machine.
    pub(crate) fn all(host: &'a Host) -> Vec<Self> {
        let server = format!("--server=http://{}", bridge(host));
        programs().into_iter().map(|program| Self { program, server: server.clone(), host }).collect()
    }

    /// Its minor version.
    pub(crate) fn minor(&self) -> u32 {
        let version: serde_json::Value = serde_json::from_str(&self.run(&["version", "--client", "-o", "json"])).unwrap();
        version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').parse().unwrap()
    }

    /// With a kubeconfig; `None` where there is no kubectl.
    pub(crate) fn with_config(host: &'a Host, file: &Path) -> Option<Self> {
        Self::find(host).map(|found| Self { server: format!("--kubeconfig={}", file.display()), ..found })
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // A home of its own: kubectl caches what it discovered.
        let name = self.program.to_string_lossy().replace('/', "-");
        command.env("HOME", self.host.root.path().join(format!("home{name}"))).env_remove("KUBECONFIG").stdin(Stdio::null());
        command.arg(&self.server).args(arguments);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

/// `kubectl` of PATH, and those of other versions, such as `kubectl.1.29`, there and where the SDK of Google has them.
fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/lib/google-cloud-sdk/bin".into());
    let plain = folders.iter().map(|folder| folder.join("kubectl")).find(|program| program.is_file());
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let mut others: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    others.retain(|program| program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl.1.")));
    others.sort();
    others.dedup();
    // Each second one: their requests differ little from one to the next.
    plain.into_iter().chain(others.into_iter().step_by(2)).collect()
}

#[test]
fn kubectl_lists_and_gets_as_podstead_does() {
    let host = Host::start();
    host.publish_running("default", "web");
    host.publish_running("default", "db");
    let Some(kubectl) = Kubectl::find(&host) else { return };
    assert_eq!(kubectl.run(&["get", "pods"]), host.run(&["get", "pods"]));
    assert_eq!(kubectl.run(&["get", "pods", "-o", "name", "-l", "app=web"]), "pod/web-edge\n");
    assert_eq!(kubectl.run(&["get", "pod", "web-edge", "-o", "jsonpath={.status.phase}"]), "Running");
    assert!(kubectl.run(&["get", "pods", "-A", "-o", "wide"]).contains("10.0.0.5"));
    let described = kubectl.run(&["describe", "pod", "web-edge"]);
    assert!(described.contains("Node:") && described.contains("nginx:1.27"), "{described}");
    let missing = kubectl.output(&["get", "pod", "nosuch"]);
    assert_eq!(text(&missing.stderr).trim(), r#"Error from server (NotFound): pods "nosuch" not found"#);
    let short = kubectl.output(&["get", "pod", "web"]);
    assert_eq!(text(&short.stderr).trim(), r#"Error from server (NotFound): pods "web" not found (this host has "web-edge")"#);
    let deleted = kubectl.output(&["delete", "pod", "web-edge", "--wait=false"]);
    assert!(
        text(&deleted.stderr)
            .contains("Warning: the pod is restarted, not removed: source manifests has its manifest (web.yaml:1:1)"),
        "{}",
        text(&deleted.stderr)
    );
}

#[test]
fn kubectl_lists_workloads_as_podstead_does() {
    let host = Host::start();
    host.publish_source(None, None);
    let counts = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1});
    let revision = json!({"deployment.kubernetes.io/revision": "1"});
    let parts = json!({"metadata": {"annotations": revision}, "spec": {"replicas": 2}, "status": counts});
    let web = host.publish_workload(WorkloadKind::Deployment, "default", "web", parts);
    let metadata = json!({"ownerReferences": [reference_to(&web)], "annotations": revision, "labels": {"app": "web"}});
    let parts = json!({"metadata": metadata, "spec": {"replicas": 2}, "status": counts});
    let set = host.publish_workload(WorkloadKind::ReplicaSet, "default", "web-7d9c", parts);
    host.publish_owned("web-7d9c-0", &set);
    for kind in [WorkloadKind::StatefulSet, WorkloadKind::DaemonSet, WorkloadKind::Job, WorkloadKind::ReplicationController] {
        host.publish_workload(kind, "default", "other", json!({"spec": {"replicas": 1, "selector": {}}}));
    }
    host.publish_workload(WorkloadKind::CronJob, "default", "dump", json!({"spec": {"schedule": "@daily", "suspend": false}}));
    let Some(kubectl) = Kubectl::find(&host) else { return };
    assert_eq!(kubectl.run(&["get", "all"]), host.run(&["get", "all"]));
    for words in [
        &["get", "deploy,rs,sts,ds,job,cj,rc"][..],
        &["get", "deploy", "web"],
        &["get", "cj", "-o", "wide"],
        &["get", "rs/web-7d9c"],
    ] {
        assert_eq!(kubectl.run(words).trim_end(), host.run(words).trim_end(), "{words:?}");
    }
    assert_eq!(kubectl.run(&["get", "deploy,sts", "-o", "name"]), host.run(&["get", "deploy,sts", "-o", "name"]));
    assert_eq!(kubectl.run(&["rollout", "status", "deploy/web"]), host.run(&["rollout", "status", "deploy/web"]));
    assert!(kubectl.run(&["rollout", "history", "deploy/web"]).contains("REVISION"));
    let described = kubectl.run(&["describe", "deployment", "web"]);
    assert!(described.contains("NewReplicaSet:") && described.contains("web-7d9c (2/2 replicas created)"), "{described}");
    let refused = |words: &[&str]| text(&kubectl.output(words).stderr);
    let missing = refused(&["get", "deployment", "nosuch"]);
    assert_eq!(missing.trim(), r#"Error from server (NotFound): deployments.apps "nosuch" not found"#);
    let managed = r#"deployment "web" is managed by source manifests (revision rev1, web.yaml:1:1): "#;
    for (words, what_to_do) in [
        (&["scale", "deploy/web", "--replicas=3"][..], "edit spec.replicas of its manifest there"),
        (
            &["rollout", "restart", "deploy/web"],
            "to restart its pods, add an annotation to spec.template.metadata of its manifest there",
        ),
        (&["rollout", "pause", "deploy/web"], "edit spec.paused of its manifest there"),
        (&["delete", "deploy/web", "--wait=false"], "change or remove its manifest there"),
    ] {
        let message = refused(words);
        assert!(message.contains(&format!("{managed}{what_to_do}")), "{words:?}: {message}");
    }
}

#[test]
fn kubectl_lists_storage_and_acts_for_nobody_else() {
    let host = Host::start();
    host.publish_running("default", "web");
    for kubectl in Kubectl::all(&host) {
        let listed = kubectl.output(&["get", "pv,pvc,sc"]);
        assert!(listed.status.success() && text(&listed.stderr).contains("No resources found"), "{listed:?}");
        let refused = text(&kubectl.output(&["get", "pods", "--as=anna"]).stderr);
        assert!(refused.contains("users \"anna\" is forbidden: at this host nobody acts as another user (--as)"), "{refused}");
        let proxied = text(&kubectl.output(&["get", "--raw", "/api/v1/namespaces/default/pods/web-edge/proxy/"]).stderr);
        assert!(proxied.contains("use kubectl port-forward"), "{proxied}");
        assert_eq!(kubectl.run(&["api-resources", "--verbs=delete", "-o", "name"]), "pods\n");
    }
}

#[test]
fn kubectl_watches_and_waits() {
    let host = Host::start();
    host.publish_running("default", "web");
    let Some(kubectl) = Kubectl::find(&host) else { return };
    let mut child = kubectl.command(&["get", "pods", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().take(2).any(|line| line.starts_with("web-edge")));
    host.publish_running("default", "new");
    assert!(lines.next().unwrap().starts_with("new-edge"));
    child.kill().unwrap();
    child.wait().unwrap();
    let waited = kubectl.run(&["wait", "--for=condition=Ready", "--timeout=30s", "pod/web-edge"]);
    assert_eq!(waited, "pod/web-edge condition met\n");
}

#[test]
fn kubectl_reads_logs() {
    let host = Host::start();
    let web = host.publish_running("default", "web");
    let path = host.paths.container_log(&web.full_name, &web.uid, "main", 0);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stdout F two\n").unwrap();
    let Some(kubectl) = Kubectl::find(&host) else { return };
    assert_eq!(kubectl.run(&["logs", "web-edge"]), "one\ntwo\n");
    assert_eq!(kubectl.run(&["logs", "web-edge", "--tail=1", "--timestamps"]), "2026-01-01T00:00:01Z two\n");
}

#[test]
fn kubectl_runs_programs() {
    let host = Host::start();
    host.publish_running("default", "web");
    for kubectl in Kubectl::all(&host) {
        let minor = kubectl.minor();
        let output = kubectl.output(&["exec", "web-edge", "--", "exit", "7"]);
        assert_eq!(output.status.code(), Some(7), "1.{minor}: {}", text(&output.stderr));
        let said = kubectl.output(&["exec", "web-edge", "--", "echo", "hello"]);
        assert_eq!((text(&said.stdout).as_str(), text(&said.stderr).as_str()), ("hello in main-0\n", "to stderr\n"), "1.{minor}");
        // More than any buffer on the way.
        let sent = vec![b'x'; 5 << 20];
        let mut command = kubectl.command(&["exec", "-i", "web-edge", "--", "cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn({
            let sent = sent.clone();
            move || stdin.write_all(&sent).unwrap()
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success() && output.stdout == sent, "1.{minor}: {} bytes", output.stdout.len());
        let mut command = kubectl.command(&["attach", "-i", "web-edge"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"through and back").unwrap();
        assert_eq!(text(&child.wait_with_output().unwrap().stdout), "through and back", "1.{minor}");
        let missing = kubectl.output(&["exec", "web-edge", "--", "nosuch"]);
        assert!(!missing.status.success() && text(&missing.stderr).contains("no such file"), "{}", text(&missing.stderr));
    }
}

/// A terminal that `script` makes, whose size is that of nothing else.
#[test]
fn kubectl_has_terminal_with_size() {
    let host = Host::start();
    host.publish_running("default", "web");
    if !Path::new("/usr/bin/script").is_file() {
        std::io::stderr().write_all(b"no script(1): skipped\n").unwrap();
        return;
    }
    for kubectl in Kubectl::all(&host) {
        let command = kubectl.command(&["exec", "-it", "web-edge", "--", "sizes"]);
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let mut script = Command::new("script");
        // The program ends with the code that is typed.
        script
            .args(["-qec", &format!("stty cols 97 rows 31; exec timeout --foreground 60 {}", words.join(" ")), "/dev/null"])
            .env("HOME", host.root.path());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.by_ref().any(|line| line.contains("Some((97, 31))")), "1.{}", kubectl.minor());
        stdin.write_all(b"3").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "1.{}", kubectl.minor());
    }
}
