//! Earlier revisions on a real host: back, held through a crash, and on; and a daemon killed while it goes back.

use crate::support::registry::Registry;
use crate::support::{TestHost, eventually, make_image};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn manifest(version: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    \
         image: localhost/busybox:1\n    command: [sleep, '1000000']\n    env: [{{name: V, value: '{version}'}}]\n"
    )
}

/// Waits until the container that runs has this version in its environment.
fn wait_version(host: &TestHost, version: &str) {
    eventually(&format!("version {version} to run"), || {
        let out = host.cli(&["exec", "web", "-c", "main", "--", "/bin/sh", "-c", "echo $V"]);
        let seen = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        if seen == version { Ok(()) } else { Err(format!("{seen:?} {}", String::from_utf8_lossy(&out.stderr))) }
    });
}

/// The status of the source. Just after a start it may be a moment until its last good set is read.
fn source(host: &TestHost) -> Value {
    eventually("the source to be shown", || {
        let out = host.cli(&["get", "sources", "manifests", "-o", "json"]);
        let shown: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        let is_read = shown["status"]["acceptedRevision"].is_string();
        if is_read { Ok(shown) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
    })
}

fn wait_fetched(host: &TestHost) {
    eventually("another revision to be fetched than the one in force", || {
        let status = source(host)["status"].clone();
        let differs = status["fetchedRevision"].is_string() && status["fetchedRevision"] != status["acceptedRevision"];
        if differs { Ok(()) } else { Err(status.to_string()) }
    });
}

/// A host that went from version `one` to `two`, and had nothing before.
fn with_two() -> TestHost {
    let mut host = TestHost::prepare("");
    host.write_manifest("web.yaml", &manifest("one"));
    host.start_daemon();
    wait_version(&host, "one");
    host.write_manifest("web.yaml", &manifest("two"));
    wait_version(&host, "two");
    host
}

#[test]
fn source_stays_back_until_resumed() {
    let mut host = with_two();
    assert_eq!(host.cli_ok(&["history", "-o", "name"]).lines().count(), 2);
    let diff = host.cli_ok(&["diff"]);
    assert!(diff.contains("spec.containers[main].env[V].value\n      - one\n      + two\n"), "{diff}");

    let said = host.cli_ok(&["rollback"]);
    host.kill_daemon();
    assert!(said.contains("to resume: podstead resume manifests"), "{said}");
    host.start_daemon();
    wait_version(&host, "one");
    host.write_manifest("web.yaml", &manifest("three"));
    wait_fetched(&host);
    let status = host.cli_ok(&["status"]);
    assert!(
        status.contains("(podstead rollback manifests): held at the accepted revision\n      -> podstead resume manifests"),
        "{status}"
    );
    wait_version(&host, "one");
    host.cli_ok(&["resume"]);
    wait_version(&host, "three");
    // It was read long before it was let in: that time is none of the change.
    let trace: Value = serde_json::from_str(&host.cli_ok(&["trace", "web", "-o", "json"])).unwrap();
    let steps: Vec<&str> =
        trace["traces"][0]["spans"].as_array().unwrap().iter().filter_map(|span| span["step"].as_str()).collect();
    assert!(steps.contains(&"Accept") && !steps.contains(&"Read") && !steps.contains(&"AwaitIntake"), "{trace:#}");

    host.cli_ok(&["suspend"]);
    host.kill_daemon();
    host.write_manifest("web.yaml", &manifest("four"));
    host.start_daemon();
    wait_fetched(&host);
    wait_version(&host, "three");
    host.cli_ok(&["resume", "manifests"]);
    wait_version(&host, "four");
}

#[test]
fn kill_during_rollback_keeps_one_revision() {
    let mut host = with_two();
    let socket = host.path("run/podstead.sock");
    for round in 0..8 {
        // Between the two contents, whatever their numbers are by now.
        let target = if round % 2 == 0 { "one" } else { "two" };
        let number = number_of(&host, target);
        let mut command = Command::new(crate::support::binary("podstead"));
        command.arg("--socket").arg(&socket).args(["rollback", "manifests", &number.to_string()]);
        let rollback = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // From before the request arrives to after it is answered.
        let kill_at = Instant::now() + Duration::from_millis(2 * round);
        while Instant::now() < kill_at {
            std::hint::spin_loop();
        }
        host.kill_daemon();
        let answer = rollback.wait_with_output().unwrap();
        let answered = answer.status.success();
        host.start_daemon();
        let source = source(&host);
        assert_eq!(source["status"]["pods"], 1, "never nothing: {source}");
        let in_force = version_in_force(&host);
        assert!(in_force == "one" || in_force == "two", "never a mix: {in_force}");
        assert!(!answered || in_force == target, "what was answered counts: {in_force}, not {target}: number {number}, {answer:?}");
        // A hold without what it holds would be a mix, too.
        let restored = source["status"]["hold"]["kind"] == "rolledBack";
        assert!(restored || in_force == "two", "{source}");
    }
    let in_force = version_in_force(&host);
    wait_version(&host, &in_force);
}

fn version_in_force(host: &TestHost) -> String {
    let record = std::fs::read_to_string(host.path("state/sources/manifests/last-good.json")).unwrap();
    version_in(&record)
}

fn version_in(record: &str) -> String {
    let body: Value = serde_json::from_str(record.split_once('\n').unwrap().1).unwrap();
    let pod = &body["in_force"]["files"]["web.yaml"]["objects"][0]["object"]["Pod"];
    pod["spec"]["containers"][0]["env"][0]["value"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

/// The newest number of the history that has this version and is not in force; the one in force where there is none.
fn number_of(host: &TestHost, version: &str) -> u64 {
    let history: Value = serde_json::from_str(&host.cli_ok(&["history", "-o", "json"])).unwrap();
    let entries = history["revisions"].as_array().unwrap();
    let earlier = entries.iter().filter(|entry| entry["inForce"] == false).map(|entry| entry["number"].as_u64().unwrap());
    let has_it = |number: &u64| {
        let path = host.path(&format!("state/sources/manifests/revisions/{number}.json"));
        version_in(&std::fs::read_to_string(path).unwrap()) == version
    };
    earlier.into_iter().find(has_it).unwrap_or_else(|| entries[0]["number"].as_u64().unwrap())
}

/// F35.
#[test]
fn rollback_needs_no_registry() {
    let (directory, mut registry) = (tempfile::tempdir().unwrap(), Registry::start());
    let image = |version: &str| format!("app:{version}");
    for version in ["one", "two"] {
        let archive = directory.path().join(format!("{version}.tar"));
        make_image(&["--env".as_ref(), format!("V={version}").as_ref()], &archive, "app:1");
        registry.push(&archive, &image(version));
    }
    let place = registry.host.clone();
    let image = |version: &str| format!("{place}/{}", image(version));
    let pod = |version: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    \
             image: {}\n    command: [sleep, '1000000']\n",
            image(version)
        )
    };
    let mut host = TestHost::prepare(&format!("registries:\n  - host: {place}\n    http: true\n"));
    host.write_manifest("web.yaml", &pod("one"));
    host.start_daemon();
    wait_version(&host, "one");
    host.write_manifest("web.yaml", &pod("two"));
    wait_version(&host, "two");
    registry.stop();
    let kept = eventually("the image of the earlier revision to be needed", || {
        let kept = host.cli_ok(&["image", "prune", "--all", "--dry-run"]);
        if kept.contains("of its history") { Ok(kept) } else { Err(kept) }
    });
    assert!(kept.contains(&format!("kept {}: source manifests, revision 1 of its history", image("one"))), "{kept}");
    host.cli_ok(&["image", "prune", "--all"]);
    host.cli_ok(&["rollback"]);
    wait_version(&host, "one");
}
