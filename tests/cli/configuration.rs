//! `podstead config`, `completion`, and how options, environment and file go together.

use crate::host::text;
use std::process::{Command, Output};

fn podstead(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
    command.args(arguments).env_remove("PODSTEAD_CONFIG").env_remove("PODSTEAD_SOCKET").output().unwrap()
}

#[test]
fn configuration_is_checked_with_place_of_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.yaml");
    let file = path.to_str().unwrap();
    let written = "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: edge\npodPidLimit: 5\n";
    std::fs::write(&path, written).unwrap();
    let output = podstead(&["config", "check", "--config", file]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("podstead: {file}:4:1: unknown field \"podPidLimit\", did you mean \"podPidsLimit\"?\n");
    assert_eq!(text(&output.stderr), expected);
    std::fs::write(&path, written.replace("podPidLimit", "podPidsLimit")).unwrap();
    assert!(podstead(&["config", "check", "--config", file]).status.success());
    std::fs::remove_file(&path).unwrap();
    let missing = podstead(&["config", "check", "--config", file]);
    assert_eq!((missing.status.code(), text(&missing.stderr)), (Some(1), format!("podstead: {file} does not exist\n")));
}

#[test]
fn the_shown_configuration_is_whole_and_valid() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, shown) = (directory.path().join("missing.yaml"), directory.path().join("shown.yaml"));
    let first = podstead(&["config", "show", "--config", missing.to_str().unwrap()]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("containerLogMaxSize: 10Mi\n"), "{}", text(&first.stdout));
    std::fs::write(&shown, &first.stdout).unwrap();
    let second = podstead(&["config", "show", "--config", shown.to_str().unwrap()]);
    assert_eq!(text(&second.stdout), text(&first.stdout));
}

#[test]
fn socket_is_configured_one_unless_told_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.yaml");
    let file = path.to_str().unwrap();
    std::fs::write(&path, "apiVersion: podstead.dev/v1alpha1\nkind: Config\npaths: {run: /nowhere/run}\n").unwrap();
    let output = podstead(&["status", "--config", file]);
    assert!(text(&output.stderr).contains("cannot reach the daemon at /nowhere/run/podstead.sock"), "{}", text(&output.stderr));
    let output = podstead(&["status", "--config", file, "--socket", "/elsewhere.sock"]);
    assert!(text(&output.stderr).contains("at /elsewhere.sock"), "{}", text(&output.stderr));
}

#[test]
fn completions_name_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = podstead(&["completion", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("describe"), "{shell}");
    }
    assert_eq!(podstead(&["completion", "tcsh"]).status.code(), Some(2));
}
