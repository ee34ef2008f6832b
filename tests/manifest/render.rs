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
fn each_host_gets_its_own_path_and_values() {
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
fn a_source_lists_what_is_replaced_and_a_missing_value_is_told_with_its_place() {
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
        (&["clusters/a", "--config", "none.yaml", "--host", "a", "--set", "SITE"][..], "write NAME=VALUE"),
        (&["clusters/a", "--host", "a", "--set", "NODE_NAME=x"], "is what --host says"),
        (&["clusters/a", "--host", "a", "--config", "config.yaml", "--source", "x"], "no source \"x\" is configured"),
        (&["clusters", "--host", "a"], "holds no manifests"),
    ] {
        let output = render(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(texts(&output).1.contains(words), "{}", texts(&output).1);
    }
}
