//! An artifact in a registry is how people deploy, and what runs needs no registry.

use crate::git::pod;
use crate::support::registry::Registry;
use crate::support::{TestHost, eventually};
use podstead::container::digest::Digest;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Pushes what `flux push artifact` would make of a directory with one file; returns the digest.
fn push(registry: &Registry, tag: &str, name: &str, content: &str) -> String {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    let layout = tempfile::tempdir().unwrap();
    let archive = layout.path().join("layer");
    run(Command::new("tar").arg("-C").arg(tree.path()).arg("-czf").arg(&archive).arg("."));
    let layer = blob(layout.path(), "application/vnd.cncf.flux.content.v1.tar+gzip", &std::fs::read(&archive).unwrap());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(layout.path(), "application/vnd.cncf.flux.config.v1+json", b"{}"), "layers": [layer],
        "annotations": {"org.opencontainers.image.revision": "main@sha1:0a1b2c"},
    });
    let entry = blob(layout.path(), "application/vnd.oci.image.manifest.v1+json", manifest.to_string().as_bytes());
    let digest = entry["digest"].as_str().unwrap().to_owned();
    std::fs::write(layout.path().join("index.json"), json!({"schemaVersion": 2, "manifests": [entry]}).to_string()).unwrap();
    std::fs::write(layout.path().join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string()).unwrap();
    registry.push_from(&format!("oci:{}", layout.path().display()), &format!("fleet:{tag}"), &[]);
    digest
}

/// Puts content into a layout.
fn blob(layout: &Path, kind: &str, content: &[u8]) -> Value {
    let digest = Digest::of(content);
    let directory = layout.join("blobs/sha256");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(digest.hex()), content).unwrap();
    json!({"mediaType": kind, "digest": digest, "size": content.len()})
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pushed_artifact_outlives_its_registry() {
    let mut registry = Registry::start();
    push(&registry, "1.0.0", "hosts/shop/web.yaml", &pod("one"));
    let mut host = TestHost::start_with(&format!(
        "  - name: fleet\n    oci: {{url: 'oci://{}/fleet', semver: '1', path: hosts/shop, intervalSeconds: 1}}\n\
         registries:\n  - host: {}\n    http: true\n",
        registry.host, registry.host
    ));
    let first = host.wait_running("web");
    host.wait_log("web", "web", "one");

    let digest = push(&registry, "1.1.0", "hosts/shop/web.yaml", &pod("two"));
    host.wait_log("web", "web", "two");
    let second = host.wait_for_pod("web", "the changed container to run", |pod| {
        pod.runs("web") && pod.container_id("web") != first.container_id("web")
    });
    assert_eq!(second.uid(), first.uid(), "an edit keeps the pod");
    eventually("the revision to be shown", || {
        let shown =
            [&["get", "sources", "-o", "json"][..], &["history", "fleet", "-o", "wide"]].map(|words| host.cli_ok(words)).concat();
        let words = [digest.as_str(), "1.1.0 (main@sha1:0a1b2c)", "oci://"];
        if words.iter().all(|word| shown.contains(word)) { Ok(()) } else { Err(shown) }
    });

    host.cli_ok(&["rollback", "fleet"]);
    let earlier = host.wait_for_pod("web", "the earlier revision to run", |pod| {
        pod.runs("web") && pod.container_id("web") != second.container_id("web")
    });
    host.wait_log("web", "web", "one");
    host.cli_ok(&["resume", "fleet"]);
    host.wait_log("web", "web", "two");
    let third = host.wait_for_pod("web", "the newest revision to run", |pod| {
        pod.runs("web") && pod.container_id("web") != earlier.container_id("web")
    });

    registry.stop();
    eventually("the failure to be shown", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("fleet") && status.contains("cannot connect to ") { Ok(()) } else { Err(status) }
    });
    host.kill_daemon();
    host.start_daemon();
    eventually("the failure to be shown after a start", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("cannot connect to ") { Ok(()) } else { Err(status) }
    });
    let after = host.wait_running("web");
    assert_eq!(after.container_id("web"), third.container_id("web"), "the same container, from what was accepted");
}
