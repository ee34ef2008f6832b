//! Completion of names in a real shell, help, and hints for words that podstead does not know.

use crate::host::{Host, text};
use std::process::Command;

/// The candidates that bash has for the last of `words`.
fn completed(host: &Host, words: &[&str]) -> Vec<String> {
    let podstead = env!("CARGO_BIN_EXE_podstead");
    let typed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <('{podstead}' completion bash); COMP_WORDS=('{podstead}' {}); COMP_CWORD={}; \
         _podstead_with_names podstead '{}' '{}' 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        typed.join(" "),
        words.len(),
        words.last().unwrap(),
        words[words.len() - 2],
    );
    let output = Command::new("bash").arg("-c").arg(script).env("PODSTEAD_SOCKET", host.socket()).output().unwrap();
    text(&output.stdout).lines().filter(|line| !line.is_empty() && !line.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn bash_completes_names_of_objects() {
    let host = Host::start();
    host.publish_running("default", "web");
    host.publish_running("default", "db");
    host.publish_source(None, None);
    assert_eq!(completed(&host, &["logs", "w"]), ["web-edge"]);
    assert!(completed(&host, &["restart", ""]).contains(&"db-edge".to_owned()));
    assert!(completed(&host, &["logs", "web", "-c", ""]).contains(&"main".to_owned()));
    assert!(completed(&host, &["rollback", "man"]).contains(&"manifests".to_owned()));
    assert!(completed(&host, &["exec", "web", "l"]).is_empty());
}

#[test]
fn help_is_a_subcommand() {
    let host = Host::start();
    let whole = host.run(&["help"]);
    assert!(whole.contains("Usage: podstead"), "{whole}");
    assert_eq!(host.run(&["help", "get", "pods"]), host.run(&["get", "pods", "--help"]));
    let unknown = host.output(&["help", "gte"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains(r#"podstead has no subcommand "gte""#));
}

#[test]
fn unknown_types_are_explained() {
    let host = Host::start();
    let of = |word: &str| text(&host.output(&["get", word]).stderr).to_owned();
    assert!(of("pv").contains("podstead volume ls"), "{}", of("pv"));
    assert!(of("deplyo").contains(r#"did you mean "deploy"?"#));
    assert!(!of("zz").contains("did you mean"), "{}", of("zz"));
}

#[test]
fn source_errors_are_beside_the_table() {
    let host = Host::start();
    host.publish_source(None, Some("cannot fetch: the server does not answer"));
    let text = host.run(&["get", "sources"]);
    let (table, error) = text.split_once("\n\n").unwrap_or_else(|| panic!("{text}"));
    assert!(table.lines().nth(1).unwrap().ends_with("failed") && !table.contains("cannot fetch"), "{text}");
    assert_eq!(error, "manifests: cannot fetch: the server does not answer\n");
}

#[test]
fn configuration_in_repository_does_not_fail_validation() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("hosts")).unwrap();
    std::fs::write(root.path().join("hosts/edge-1.yaml"), "apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: []\n")
        .unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: b:1}]}\n";
    std::fs::write(root.path().join("web.yaml"), pod).unwrap();
    let podstead = env!("CARGO_BIN_EXE_podstead");
    let output = Command::new(podstead).args(["validate", "-R"]).arg(root.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("edge-1.yaml: not checked: it is a configuration of podstead"),
        "{}",
        text(&output.stderr)
    );
}
