//! Manifests that use more of the host than `allow`, `podSecurity` and `require` of their source grant.

mod channels;
mod requirements;
mod standards;

use crate::support::{TestHost, eventually};
use serde_json::Value;
use std::fs;

/// A host whose one source has these fields.
fn host_with(rules: &str) -> TestHost {
    let lines: String = rules.lines().map(|line| format!("    {line}\n")).collect();
    TestHost::start_with(&lines)
}

/// A pod that sleeps: `spec` are lines of its spec, `container` those of its container.
fn pod(name: &str, spec: &str, container: &str) -> String {
    let indented = |text: &str, by: &str| text.lines().map(|line| format!("{by}{line}\n")).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  terminationGracePeriodSeconds: 1\n{}  containers:\n  - name: c\n    \
         image: localhost/busybox:1\n    command: [/bin/sleep, '1000000']\n{}",
        indented(spec, "  "),
        indented(container, "    ")
    )
}

/// Problems of the source, one `line field: message (hint)` each, once it has read what is there.
fn problems(host: &TestHost) -> Vec<String> {
    let out = host.cli_ok(&["get", "sources", "manifests", "-o", "json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    let problem = |problem: &Value| {
        let word = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        format!("{}:{} {}: {} ({})", word("file"), problem["position"]["line"], word("field"), word("message"), word("hint"))
    };
    shown["status"]["problems"].as_array().unwrap_or_else(|| panic!("{shown}")).iter().map(problem).collect()
}

/// Waits until the source reports each of these, given as `line field` and the key that decides.
fn wait_refused(host: &TestHost, expected: &[(&str, &str)]) {
    eventually("the manifest to be refused", || {
        let found = problems(host);
        let is_found = |(place, key): &(&str, &str)| found.iter().any(|problem| problem.contains(place) && problem.contains(key));
        let missing: Vec<_> = expected.iter().filter(|expected| !is_found(expected)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} of {found:#?}")) }
    });
}

/// Asserts that the source refuses the manifest for each of these, that nothing of it runs, and that `status` and `validate` say so, too.
fn refused(host: &TestHost, manifest: &str, expected: &[(&str, &str)]) {
    host.write_manifest("hostile.yaml", manifest);
    wait_refused(host, expected);
    assert!(host.pods().is_empty(), "{:?}", host.pods());
    assert_eq!(fs::read_dir(host.path("state/pods")).map_or(0, Iterator::count), 0, "nothing was made for the pod");
    let status = host.cli(&["status"]);
    let status = format!("{}{}", String::from_utf8_lossy(&status.stdout), String::from_utf8_lossy(&status.stderr));
    assert!(status.contains("hostile.yaml:"), "{status}");
    let config = host.path("config.yaml");
    let file = host.path("manifests/hostile.yaml");
    let (config, file) = (config.to_str().unwrap(), file.to_str().unwrap());
    let validated = host.cli(&["validate", "--config", config, "--source", "manifests", file]);
    let told = String::from_utf8_lossy(&validated.stdout).into_owned();
    assert_eq!(validated.status.code(), Some(1), "{told}");
    for (place, key) in expected {
        let (line, field) = place.split_once(' ').unwrap();
        let line = line.rsplit(':').next().unwrap();
        let is_it = |told: &str| {
            told.contains(&format!("hostile.yaml:{line}:")) && told.contains(&format!(": {field}: ")) && told.contains(key)
        };
        assert!(told.lines().any(is_it), "{place} {key} in {told}");
    }
}
