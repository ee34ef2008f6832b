//! `podstead render` as a command.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const WEB: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: web
    image: registry.lan/web:${TAG:-stable}
    command: [sh, -c, 'echo ${HOME} on ${NODE_NAME} at ${SITE}']
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {password: hunter2}
";

fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for host in ["a", "b"] {
        std::fs::create_dir_all(directory.path().join("clusters").join(host)).unwrap();
        let text = WEB.replace("name: web}", &format!("name: web-of-{host}}}"));
        std::fs::write(directory.path().join("clusters").join(host).join("web.yaml"), text).unwrap();
    }
    let config = "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: edge\nsources:\n\
                  - {name: fleet, directory: {path: /srv}, substitute: [SITE, NODE_NAME], allow: {images: ['registry.lan/']}}\n";
    std::fs::write(directory.path().join("config.yaml"), config).unwrap();
    directory
}

fn render(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
    command
        .current_dir(directory)
        .arg("render")
        .args(arguments)
        .env_remove("PODSTEAD_CONFIG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn texts(output: &Output) -> (&str, &str) {
    (std::str::from_utf8(&output.stdout).unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}

#[test]
fn each_host_gets_its_own_values() {
    let directory = repository();
    for (host, site) in [("a", "berlin"), ("b", "bern")] {
        let site = format!("SITE={site}");
        let output = render(directory.path(), &["clusters/${NODE_NAME}", "--host", host, "--set", &site, "--config", "none.yaml"]);
        let (stdout, stderr) = texts(&output);
        assert_eq!((output.status.code(), stderr), (Some(0), ""));
        assert!(stdout.contains(&format!("name: web-of-{host}-{host}\n")), "{stdout}");
        assert!(stdout.contains(&format!("echo ${{HOME}} on {host} at {}", &site[5..])), "{stdout}");
        assert!(
            stdout.contains("password: (redacted)") && !stdout.contains("hunter2") && !stdout.contains("aHVudGVyMg"),
            "{stdout}"
        );
    }
}

#[test]
fn source_lists_replacements_and_missing_values() {
    let directory = repository();
    let arguments = ["clusters/a", "--host", "a", "--config", "config.yaml", "--source", "fleet"];
    let output = render(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        texts(&output).1.contains("web.yaml:8:56: error[variable]: the variable SITE has no value on this host"),
        "{}",
        texts(&output).1
    );
    let output = render(directory.path(), &[&arguments[..], &["--set", "SITE=x"]].concat());
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(0), ""));
    assert!(
        stdout.contains("on a at x") && stdout.contains("image: registry.lan/web:${TAG:-stable}"),
        "TAG is not listed: {stdout}"
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let directory = repository();
    for (arguments, words) in [
        (&["clusters/a", "--config", "none.yaml", "--host", "a", "--set", "SITE"][..], "expected NAME=VALUE"),
        (&["clusters/a", "--host", "a", "--set", "NODE_NAME=x"], "is set with --host"),
        (&["clusters/a", "--host", "a", "--config", "config.yaml", "--source", "x"], "no source \"x\" is configured"),
        (&["clusters", "--host", "a"], "contains no manifests"),
    ] {
        let output = render(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(texts(&output).1.contains(words), "{}", texts(&output).1);
    }
}

/// The example of the repository: one source for many hosts.
fn fleet() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/fleet"))
}

fn origins(stdout: &str) -> Vec<&str> {
    stdout.lines().filter_map(|line| line.strip_prefix("# ")).collect()
}

const AS_CONFIGURED: [&str; 5] = [".", "--source", "fleet", "--config", "config.yaml"];

/// The agent of a kiosk.
const PATCHED_AGENT: &str = "base/agent.yaml:2, patched by roles/kiosk/agent.yaml:2, roles/kiosk/agent.yaml:19";

#[test]
fn host_gets_its_layers_with_origins() {
    let output =
        render(fleet(), &[&AS_CONFIGURED[..], &["--host", "edge-7", "--labels", "role=kiosk", "--set", "SITE=b"]].concat());
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(0), ""));
    assert_eq!(origins(stdout), ["base/settings.yaml:2", PATCHED_AGENT, "hosts/edge-7/screen.yaml:2"]);
    for patched in ["role: kiosk\n", "name: ROLE\n", "memory: 64Mi\n"] {
        assert!(stdout.contains(patched), "{stdout}");
    }
    assert!(stdout.contains("image: localhost/busybox:2\n") && stdout.contains("hello from ${host} at b"), "{stdout}");
    let output =
        render(fleet(), &[&AS_CONFIGURED[..], &["--host", "x", "--labels", "role=kiosk,rack=2", "--set", "SITE=b"]].concat());
    let expected = ["base/settings.yaml:2", PATCHED_AGENT, "roles/kiosk/screen.yaml:2"];
    assert_eq!(origins(texts(&output).0), expected, "{}", texts(&output).1);
    let output = render(fleet(), &[&AS_CONFIGURED[..], &["--host", "x", "--set", "SITE=b"]].concat());
    assert!(texts(&output).1.contains("sources[0].layers[1]: unknown variable \"LABEL_ROLE\""), "{}", texts(&output).1);
}

#[test]
fn layers_can_be_told_without_a_configuration() {
    let repository = fleet().parent().unwrap().parent().unwrap();
    let told =
        ["manifests/fleet", "--host", "Edge-7", "--layers", "base,hosts/${NODE_NAME}", "--set", "SITE=b", "--set", "GREETING="];
    let output = render(repository, &told);
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(0), ""));
    let expected = ["base/settings.yaml:2", "base/agent.yaml:2", "hosts/edge-7/screen.yaml:2"];
    assert_eq!(origins(stdout), expected.map(|file| format!("manifests/fleet/{file}")));
    for (layers, words) in [
        ("none", "no manifests in any layer: none"),
        ("../x", "\"../x\" is not a path below"),
        ("${X}", "--layers ${X}: unknown variable"),
    ] {
        let output = render(repository, &["manifests/fleet", "--host", "a", "--layers", layers]);
        assert_eq!((output.status.code(), texts(&output).0), (Some(1), ""));
        assert!(texts(&output).1.contains(words), "{}", texts(&output).1);
    }
}

#[test]
fn annotations_name_files_of_the_repository() {
    let repository = fleet().parent().unwrap().parent().unwrap();
    let arguments = ["manifests/fleet", "--source", "fleet", "--config", "manifests/fleet/config.yaml", "--host", "a"];
    let output = render(repository, &[&arguments[..], &["--labels", "role=none", "-o", "github"]].concat());
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(1), ""));
    let expected =
        "::error file=manifests/fleet/base/agent.yaml,line=7,col=11,title=variable::the variable SITE has no value on this host";
    assert!(stdout.starts_with(expected), "{stdout}");
    assert_eq!(stdout.lines().count(), 3, "{stdout}");
}

#[test]
fn workloads_are_printed_as_written() {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds/decode"));
    let output = render(seeds, &["podinfo.yaml", "--host", "edge", "--config", "none.yaml"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.starts_with("---\n# podinfo.yaml:1\n"), "{stdout}");
    for line in ["apiVersion: apps/v1\n", "kind: Deployment\n", "  progressDeadlineSeconds: 60\n", "  name: podinfo\n"] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    assert!(!stdout.contains("restartPolicy") && !stdout.contains("status"), "not defaulted: {stdout}");
    let strict = render(seeds, &["podinfo.yaml", "--strict", "--host", "edge", "--config", "none.yaml"]);
    assert_eq!(strict.status.code(), Some(1));
}
