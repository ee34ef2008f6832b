//! `podstead validate` as a command.

use crate::support;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn validate(directory: &Path, args: &[&str]) -> Output {
    command(directory, args).output().unwrap()
}

fn command(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
    command.current_dir(directory).arg("validate").args(args).args(["--node-name", "edge", "--color", "never"]);
    command.env_remove("PODSTEAD_CONFIG").stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// [`support::WEB`] with the same lines but without what is not supported: these tests are about manifests that can run.
fn web() -> String {
    let probe = "    livenessProbe:\n      httpGet: {path: /healthz, port: 80}\n";
    assert!(support::WEB.contains(probe));
    support::WEB.replace(probe, "    env:\n    - {name: A, value: b}\n")
}

/// A directory with a good pod, a bad one, a second copy of the good one, and one in a subdirectory.
fn manifests() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    write("web.yaml", web());
    write("bad.yaml", web().replace("name: web", "name: bad").replace("hostNetwork", "hostNetwrok"));
    write("copy.yml", web());
    write("notes.txt", "not a manifest".into());
    write(".hidden.yaml", "not: a manifest".into());
    std::fs::create_dir(directory.path().join("more")).unwrap();
    write("more/web.json", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}"#.into());
    directory
}

#[test]
fn good_manifests_end_with_0_and_summary() {
    let directory = manifests();
    let output = validate(directory.path(), &["web.yaml"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""), "{}", stderr(&output));
    assert_eq!(stderr(&output), "1 file: 1 valid pod; 0 errors\n");
}

#[test]
fn directory_is_judged_as_source_judges_it() {
    let directory = manifests();
    let output = validate(directory.path(), &["."]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let bad = "./bad.yaml:18:3: error[unknown-field]: spec.hostNetwrok: unknown field (did you mean \"hostNetwork\"?)\n\
               18 |   hostNetwrok: yes\n   |   ^\n";
    assert!(text.starts_with(bad), "{text}");
    assert!(text.contains("./web.yaml:2:1: error[duplicate-object]"), "{text}");
    assert_eq!(stderr(&output), "3 files: 1 valid pod; 2 errors\n");
}

#[test]
fn subdirectories_are_looked_into_when_asked_for() {
    let directory = manifests();
    let output = validate(directory.path(), &["-R", "."]);
    assert_eq!(stderr(&output), "4 files: 1 valid pod, 1 config map; 2 errors\n");
}

#[test]
fn standard_input_is_a_file() {
    let directory = manifests();
    let mut child = command(directory.path(), &["-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"kind: [\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("stdin:1:8: error[yaml-syntax]"), "{}", stdout(&output));
}

#[test]
fn problems_are_given_to_programs_too() {
    let directory = manifests();
    let output = validate(directory.path(), &["-o", "json", "bad.yaml", "web.yaml"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &json["problems"][0];
    assert_eq!((&problem["code"], &problem["position"]["line"]), (&"unknown-field".into(), &18.into()));
    assert_eq!((&json["summary"]["pods"], &json["summary"]["errors"]), (&1.into(), &1.into()));
    let output = validate(directory.path(), &["-o", "github", "bad.yaml"]);
    assert!(
        stdout(&output).starts_with("::error file=bad.yaml,line=18,col=3,title=unknown-field::spec.hostNetwrok: unknown field")
    );
}

#[test]
fn admission_refusals_point_at_their_field() {
    let directory = manifests();
    std::fs::write(directory.path().join("port.yaml"), web().replace("containerPort: 80", "containerPort: 99999")).unwrap();
    let output = validate(directory.path(), &["port.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("port.yaml:12:22: error[invalid-value]: spec.containers[0].ports[0].containerPort"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn unreadable_path_ends_with_2() {
    let directory = manifests();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    let output = validate(directory.path(), &["missing.yaml", "bad.yaml", "empty"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("hostNetwrok"));
    assert!(stderr(&output).contains("missing.yaml does not exist"), "{}", stderr(&output));
    assert!(stderr(&output).contains("empty contains no manifests"), "{}", stderr(&output));
    assert_eq!(validate(directory.path(), &[]).status.code(), Some(2));
}

#[test]
fn rights_are_judged_for_named_source() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("web.yaml"), web()).unwrap();
    let config = "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: edge\nsources:\n\
                  - {name: fleet, directory: {path: /srv}, allow: {images: [registry.lan/]}}\n- {name: own, directory: {path: /own}}\n";
    std::fs::write(directory.path().join("config.yaml.txt"), config).unwrap();
    let judged = |source: &str| validate(directory.path(), &["--config", "config.yaml.txt", "--source", source, "."]);
    assert_eq!(judged("own").status.code(), Some(0));
    let refused = judged("fleet");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stdout(&refused).contains("error[not-allowed]: spec.containers[0].image: this source may not use image"),
        "{}",
        stdout(&refused)
    );
    let unknown = judged("nobody");
    assert!(stderr(&unknown).contains("no source \"nobody\" is configured"), "{}", stderr(&unknown));
}

#[test]
fn broken_rules_have_file_line_and_field() {
    let directory = tempfile::tempdir().unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: c\n    image: nginx\n    ports:\n    \
               - containerPort: 80\n      hostPort: 80\n    livenessProbe:\n      tcpSocket:\n        port: 80\n        host: 127.0.0.1\n";
    std::fs::write(directory.path().join("web.yaml"), pod).unwrap();
    let config = "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: edge\nsources:\n- name: fleet\n  directory: {path: /srv}\n  \
                  allow: {}\n  podSecurity: {level: restricted, version: v1.33}\n  require: {limits: [memory], imageDigest: true}\n";
    std::fs::write(directory.path().join("config.yaml.txt"), config).unwrap();
    let refused = validate(directory.path(), &["--config", "config.yaml.txt", "--source", "fleet", "web.yaml"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = stdout(&refused);
    for expected in [
        "web.yaml:11:17: error[not-allowed]: spec.containers[0].ports[0].hostPort: this source may not use host port 80",
        "web.yaml:15:15: error[not-allowed]: spec.containers[0].livenessProbe.tcpSocket.host: this source may not use the host \"127.0.0.1\"",
        "web.yaml:11:17: error[pod-security]: spec.containers[0].ports[0].hostPort: podSecurity restricted (v1.33): host ports (80)",
        "web.yaml:7:5: error[pod-security]: spec.containers[0].securityContext.runAsNonRoot: podSecurity restricted (v1.33): ",
        "web.yaml:7:5: error[required-by-source]: spec.containers[0].resources.limits[memory]: containers of this source must have",
        "web.yaml:8:12: error[required-by-source]: spec.containers[0].image: images of this source must be referenced by digest",
    ] {
        assert!(text.lines().any(|line| line.starts_with(expected)), "{expected}\n{text}");
    }
    assert!(!text.contains("v1.33): a probe"), "that rule came with v1.34: {text}");
}

#[test]
fn the_examples_of_networks_can_run() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = validate(repository, &["manifests/network", "manifests/plant-vlan.yaml"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn network_annotation_mistakes_have_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  annotations:\n    kubernetes.io/egress-bandwidth: fast\n    \
               k8s.v1.cni.cncf.io/networks: |\n      [{\"name\": \"plant\", \"ips\": [\"ten\"]}]\nspec:\n  containers: [{name: a, image: x}]\n";
    std::fs::write(directory.path().join("one.yaml"), pod).unwrap();
    let output = validate(directory.path(), &["one.yaml"]);
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert!(!output.status.success(), "{text}");
    for (line, words) in [
        (6, "metadata.annotations[kubernetes.io/egress-bandwidth]: invalid value \"fast\": must be a quantity"),
        (
            7,
            "metadata.annotations[k8s.v1.cni.cncf.io/networks]: invalid value \"[{\\\"name\\\": \\\"plant\\\", \\\"ips\\\": [\\\"ten\\\"]}]\": [0]: \"ten\" is not an IP address",
        ),
    ] {
        let has = text.lines().any(|told| told.starts_with(&format!("one.yaml:{line}:")) && told.contains(words));
        assert!(has, "{line} {words}: {text}");
    }
}

#[test]
fn repositories_made_for_clusters_are_valid() {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds/decode"));
    let found = |file: &str, extra: &[&str]| {
        let output = validate(seeds, &[&[file], extra].concat());
        (output.status.code(), stdout(&output).to_owned(), stderr(&output).to_owned())
    };
    let (code, shown, summary) = found("guestbook.yaml", &[]);
    let expected = "1 file: 3 valid workloads, 2 network objects; 0 errors\n";
    assert_eq!((code, summary.as_str()), (Some(0), expected), "{shown}");
    assert_eq!(found("podinfo.yaml", &["--strict"]).0, Some(1), "a warning is enough");
    let (code, shown, _) = found("podinfo.yaml", &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("spec.template.spec.serviceAccountName: has no effect"), "{shown}");
    assert_eq!(found("microservice.yaml", &[]).0, Some(0));
    let (code, _, summary) = found("batch.yaml", &["--strict"]);
    assert_eq!((code, summary.as_str()), (Some(0), "1 file: 5 valid workloads; 0 errors\n"));
    let json: serde_json::Value = serde_json::from_str(&found(".", &["-o", "json"]).1).unwrap();
    assert_eq!((&json["summary"]["workloads"], &json["summary"]["errors"]), (&serde_json::json!(10), &serde_json::json!(0)));
    let services: Vec<_> =
        json["problems"].as_array().unwrap().iter().filter(|problem| problem["code"] == "ignored-kind").collect();
    let counted = services.iter().any(|problem| problem["message"].as_str().unwrap().contains("2 objects of kind ServiceAccount"));
    assert!(counted, "one warning for all files: {services:?}");
}

#[test]
fn source_of_ignored_objects_only_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\napiVersion: cert-manager.io/v1\nkind: Certificate\n";
    std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    let output = validate(directory.path(), &["."]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), "1 file: 0 valid pods; 0 errors, 2 warnings\n"));
}
