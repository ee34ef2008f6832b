//! Accepted revisions of a source, as a user meets them.

use crate::host::Host;
use serde_json::Value;

/// A host whose only source is `manifests`.
fn host() -> Host {
    let host = Host::start();
    host.publish_source(None, None);
    host
}

fn refused(host: &Host, arguments: &[&str]) -> String {
    let output = host.output(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn history_shows_numbers_and_revision_in_force() {
    let host = host();
    let output = host.output(&["history"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["NUMBER", "REVISION", "ACCEPTED", "OBJECTS", "STATE"]);
    assert_eq!((words[1][..2].to_vec(), words[1][4..].to_vec()), (vec!["3", "fedcba987654"], vec!["in", "force"]));
    assert_eq!(words[2][..2], ["2", "abcdef012345"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot read: 1: is damaged"));
    let json: Value = serde_json::from_str(&host.run(&["history", "manifests", "-o", "json"])).unwrap();
    assert_eq!(json["revisions"][0]["inForce"], true);
    assert!(refused(&host, &["history", "nobody"]).contains("\"nobody\" not found"));
}

#[test]
fn difference_is_by_field_with_exit_code() {
    let host = host();
    let text = host.run(&["diff"]);
    assert!(text.starts_with("--- manifests abcdef012345 (number 2)\n+++ manifests fedcba987654 (number 3, in force)\n"), "{text}");
    assert!(text.contains("~ Pod default/web\n    spec.containers[c].image\n      - one\n      + two\n"), "{text}");
    assert_eq!(host.output(&["diff", "--exit-code"]).status.code(), Some(1));
    for same in [&["diff", "--exit-code", "3"][..], &["diff", "--exit-code", "manifests", "3"]] {
        let output = host.output(same);
        assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().ends_with("no differences\n"), "{same:?}");
    }
}

#[test]
fn rollback_names_both_ends_and_resume() {
    let host = host();
    let expected = "source manifests rolled back from fedcba987654 to abcdef012345 (2 pods) and is held there\nto resume: podstead resume manifests\n";
    for arguments in [&["rollback"][..], &["rollback", "abcd"], &["rollback", "manifests"], &["rollback", "manifests", "2"]] {
        assert_eq!(host.run(arguments), expected, "{arguments:?}");
    }
    assert!(refused(&host, &["rollback", "77"]).contains("source manifests has no revision \"77\" in its history"));
    assert!(refused(&host, &["rollback", "nobody", "2"]).contains("\"nobody\" not found"));
}

#[test]
fn suspend_and_resume_name_their_command() {
    let host = host();
    let text = host.run(&["suspend"]);
    assert!(text.starts_with("source manifests is suspended since 1970-01-01T00:00:00Z (podstead suspend manifests)"), "{text}");
    assert!(refused(&host, &["resume"]).contains("source manifests is not held"));
    assert!(host.run(&["resume", "held"]).starts_with("source held resumed; it was suspended since 1970-01-01T00:00:00Z"));
}

#[test]
fn without_sources_nothing_can_be_meant() {
    assert!(refused(&Host::start(), &["rollback"]).contains("no source is configured on this host"));
}
