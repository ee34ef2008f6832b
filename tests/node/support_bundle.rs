//! `podstead support-bundle`.

use crate::support::TestHost;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A word that an intruder would search for.
const PASSWORD: &str = "hunter2";

const MANIFEST: &str = "apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: hunter2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {settings.ini: 'password=hunter2'}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: localhost/busybox:1
      command: [sh, -c, 'echo said by the container; exec sleep 1000000']
      env:
        - {name: PLAIN, value: hunter2}
        - {name: SECRET, valueFrom: {secretKeyRef: {name: secret, key: password}}}
      envFrom: [{configMapRef: {name: settings}}]
";

fn bundle(host: &TestHost, name: &str, more: &[&str]) -> Output {
    let path = host.path(name);
    let config = host.path("config.yaml");
    let mut words = vec!["--config", config.to_str().unwrap(), "support-bundle", "-o", path.to_str().unwrap()];
    words.extend(more);
    host.cli(&words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Unpacks and gives the folder.
fn unpack(archive: &Path) -> std::path::PathBuf {
    let into = archive.with_extension("unpacked");
    fs::create_dir(&into).unwrap();
    assert!(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&into).status().unwrap().success());
    fs::read_dir(into).unwrap().next().unwrap().unwrap().path()
}

fn says(folder: &Path, file: &str, words: &str) {
    let content = fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(content.contains(words), "{file}: {content}");
}

#[test]
fn a_bundle_tells_of_everything_but_secrets() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", MANIFEST);
    host.wait_running("web");
    host.wait_log("web", "main", "said by the container");
    let out = bundle(&host, "bundle.tgz", &["--logs", "10"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let archive = host.path("bundle.tgz");
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = unpack(&archive);
    says(&folder, "pods.txt", "web-edge-1");
    says(&folder, "pods.yaml", "name: PLAIN");
    says(&folder, "pods.yaml", "value: \"<redacted>\"");
    says(&folder, "configmaps.yaml", "settings.ini: \"<redacted>\"");
    says(&folder, "events.txt", "Started container main");
    says(&folder, "sources.yaml", "name: manifests");
    says(&folder, "history/manifests.txt", "in force");
    says(&folder, "config.yaml", "nodeName: edge-1");
    says(&folder, "doctor.txt", "configuration");
    says(&folder, "logs/default/web-edge-1.txt", "said by the container");
    says(&folder, "host/proc/meminfo", "MemTotal");
    says(&folder, "host/processes.txt", "podstead");
    let found = Command::new("grep").args(["-r", PASSWORD]).arg(&folder).output().unwrap();
    assert_eq!(text(&found.stdout), "");
    // A file that is there is not written over.
    let again = bundle(&host, "bundle.tgz", &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("File exists"), "{}", text(&again.stderr));
}

#[test]
fn bundle_without_daemon_says_so() {
    let mut host = TestHost::start();
    host.stop_daemon();
    let out = bundle(&host, "bundle.tgz", &[]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let folder = unpack(&host.path("bundle.tgz"));
    says(&folder, "doctor.txt", "daemon");
    says(&folder, "pods.yaml", "podstead.sock");
    says(&folder, "config.yaml", "nodeName: edge-1");
}
