//! The cases of `docs/contributing/kubectl-tests.md` that no other test shows: the real kubectl against a real daemon with a writable source
//! `manifests`, and a source `site` that it cannot write to. Skipped where there is no kubectl.

use crate::support::eventually;
use crate::support::kubectl::{Kubectl, every_kubectl, text};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SITE: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}]
";

/// A host with both sources, whose objects are there.
fn with_site() -> Option<(Kubectl, TempDir)> {
    let site = tempfile::tempdir().unwrap();
    fs::write(site.path().join("site.yaml"), SITE).unwrap();
    let kubectl = Kubectl::start(&format!("  - name: site\n    directory: {{path: {}}}\n", site.path().display()))?;
    kubectl.host.wait_running("web");
    eventually("the Deployment to be there", || {
        let found = kubectl.output(&["get", "deploy", "shop"], "");
        if found.status.success() { Ok(()) } else { Err(text(&found.stderr)) }
    });
    Some((kubectl, site))
}

fn config_map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
}

fn pod(name: &str) -> String {
    SITE.split("---\n").next().unwrap().replace("name: web", &format!("name: {name}"))
}

/// Runs `kubectl edit` with an editor that runs this script of sed.
fn edit(kubectl: &Kubectl, object: &[&str], script: &str) -> Output {
    let editor = kubectl.host.path("editor");
    fs::write(&editor, format!("#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")).unwrap();
    fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = kubectl.command("kubectl".as_ref());
    command.env("KUBE_EDITOR", &editor).env("TMPDIR", kubectl.host.path("")).arg("edit").args(object);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn objects_of_other_sources_are_refused_once() {
    let Some((kubectl, _site)) = with_site() else { return };
    let place = "managed by source site (revision";
    let scale = ["scale", "deploy/shop", "--replicas=2"];
    let delete = ["delete", "deploy/shop"];
    for program in every_kubectl() {
        for (arguments, input) in [(&["apply", "--validate=false", "-f", "-"][..], SITE), (&scale, ""), (&delete, "")] {
            let refused = kubectl.output_of(&program, arguments, &input.replace("'1000000'", "'1'"));
            let told = text(&refused.stderr);
            assert!(
                !refused.status.success() && told.contains("(MethodNotAllowed)"),
                "{} {arguments:?}: {told}",
                program.display()
            );
            // kubectl does not try again.
            assert_eq!(told.matches(place).count(), 1, "{} {arguments:?}: {told}", program.display());
            assert!(told.contains("site.yaml:8:1)"), "{told}");
            // There is no second pod beside that of the manifest.
            let is_told = told.contains(r#"site.yaml:1:1) has it as "web-edge-1""#);
            assert_eq!(is_told, !input.is_empty(), "{} {arguments:?}: {told}", program.display());
        }
    }
    assert!(kubectl.files().is_empty(), "{:?}", kubectl.files());
    let failure = kubectl.fail(&["create", "--validate=false", "-f", "-"], &pod("web-edge-1"));
    assert!(failure.contains("AlreadyExists") && failure.contains("source site"), "{failure}");
    let short = kubectl.fail(&["get", "pod", "web"], "");
    assert!(short.contains(r#"pods "web" not found (this host has "web-edge-1")"#), "{short}");
    // What can be labelled is labelled.
    kubectl.apply(&pod("own"));
    let some = kubectl.output(&["label", "pods", "--all", "team=a"], "");
    let (done, refused) = (text(&some.stdout), text(&some.stderr));
    assert!(!some.status.success() && done.contains("pod/own labeled"), "{done}{refused}");
    assert!(
        refused.contains(r#"pod "web-edge-1" is managed by source site"#) && refused.contains("belongs to replicaset"),
        "{refused}"
    );
    let refused = edit(&kubectl, &["pod", "web-edge-1"], "s/busybox:1/busybox:2/");
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains(place) && told.contains("kubectl replace -f"), "{told}");
    let deleted = kubectl.run(&["delete", "pod", "web-edge-1", "--wait=false"], "");
    assert!(deleted.contains("Warning: the pod is restarted, not removed: source site has its manifest"), "{deleted}");
}

#[test]
fn manifests_are_checked_one_by_one() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: front}\nspec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}\n";
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n";
    let misspelt = pod("bad").replace("spec:\n", "spec:\n  hostNetwrok: true\n");
    for program in every_kubectl() {
        let run = |arguments: &[&str], input: &str| kubectl.output_of(&program, &[arguments, &["-f", "-"]].concat(), input);
        let dry = run(&["apply", "--dry-run=server"], &config_map("settings", "{a: b}"));
        assert!(text(&dry.stdout).contains("configmap/settings created (server dry run)"), "{}: {dry:?}", program.display());
        let refused = run(&["apply"], &misspelt);
        let told = text(&refused.stderr);
        assert!(
            !refused.status.success() && told.contains("unknown field") && told.contains("hostNetwrok"),
            "{}: {told}",
            program.display()
        );
        assert!(kubectl.files().is_empty(), "{}: {:?}", program.display(), kubectl.files());
        let all = [&config_map("settings", "{a: b}"), role, namespace, service].join("---\n");
        let some = run(&["apply"], &all);
        let told = text(&some.stderr);
        assert!(!some.status.success() && told.contains(r#"no matches for kind "Role""#), "{}: {told}", program.display());
        let files: Vec<String> = kubectl.files().into_keys().collect();
        assert_eq!(files, ["front.service.yaml", "other.namespace.yaml", "settings.configmap.yaml"], "{}", program.display());
        run(&["delete", "--ignore-not-found"], &[&config_map("settings", "{}"), namespace, service].join("---\n"));
    }
    let told = kubectl.run(&["apply", "--validate=warn", "-f", "-"], &misspelt);
    assert!(told.contains("Warning: unknown field 'spec.hostNetwrok'") && told.contains("pod/bad created"), "{told}");
    assert!(!kubectl.file("bad.pod.yaml").contains("hostNetwrok"));
    assert_eq!(kubectl.apply(&misspelt.replace("name: bad", "name: worse")), "pod/worse created\n");
    assert!(!kubectl.file("worse.pod.yaml").contains("hostNetwrok"));
}

#[test]
fn edits_leave_the_rest_of_a_file() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let written = "# ours
kind: ConfigMap
apiVersion: v1
metadata:
  name: settings # short
data:
  a: one # the first
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {x: \"1\"} # in one line
";
    kubectl.host.write_manifest("settings.yaml", written);
    eventually("the ConfigMaps to be read", || {
        let found = kubectl.output(&["get", "cm", "settings", "other"], "");
        if found.status.success() { Ok(()) } else { Err(text(&found.stderr)) }
    });
    let edited = edit(&kubectl, &["cm", "settings"], "s/a: one/a: two/");
    assert!(edited.status.success(), "{edited:?}");
    let first = written.replace("a: one", "a: two");
    assert_eq!(kubectl.file("settings.yaml"), first);
    kubectl.run(&["patch", "cm", "other", "--type=merge", "-p", r#"{"data":{"x":"2"}}"#], "");
    let both = first.replace("x: \"1\"", "x: \"2\"");
    assert_eq!(kubectl.file("settings.yaml"), both);
    // Somebody edits one document by hand, and the next moment another one is deleted: both count.
    kubectl.host.write_manifest("settings.yaml", &both.replace("a: two", "a: three"));
    kubectl.run(&["delete", "cm", "other"], "");
    let file = kubectl.file("settings.yaml");
    assert!(file.contains("a: three # the first") && !file.contains("other"), "{file}");
    eventually("the edit to count", || {
        let found = text(&kubectl.output(&["get", "cm", "settings", "-o", "jsonpath={.data.a}"], "").stdout);
        if found == "three" { Ok(()) } else { Err(found) }
    });

    kubectl.apply(&pod("web"));
    let refused = edit(&kubectl, &["pod", "web"], "s/imagePullPolicy: .*/imagePullPolicy: Sometimes/");
    assert!(!refused.status.success() && text(&refused.stderr).contains("is invalid"), "{refused:?}");
    // A field that the file does not have, and that is shown with its default.
    let test = json!([{"op": "test", "path": "/spec/restartPolicy", "value": "Always"}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
    kubectl.run(&["patch", "pod", "web", "--type=json", "-p", &test.to_string()], "");
    let file = kubectl.file("web.pod.yaml");
    assert!(file.contains("a: b") && !file.contains("restartPolicy"), "{file}");
    let status = r#"{"status":{"phase":"Failed"}}"#;
    let failure = kubectl.fail(&["patch", "pod", "web", "--subresource=status", "--type=merge", "-p", status], "");
    assert!(failure.contains("status is what this host observes"), "{failure}");
    let other = kubectl.host.path("other.yaml");
    fs::write(&other, config_map("linked", "{a: b}")).unwrap();
    symlink(&other, kubectl.host.path("manifests/linked.yaml")).unwrap();
    eventually("the linked file to be read", || {
        let found = kubectl.output(&["get", "cm", "linked"], "");
        if found.status.success() { Ok(()) } else { Err(text(&found.stderr)) }
    });
    let failure = kubectl.fail(&["label", "cm", "linked", "a=b"], "");
    assert!(failure.contains("linked.yaml:1, which is a symbolic link"), "{failure}");
}

#[test]
fn earlier_versions_of_objects_are_refused() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.apply(&config_map("settings", "{a: '1', b: '2'}"));
    let shown = kubectl.run(&["get", "cm", "settings", "-o", "yaml"], "");
    kubectl.run(&["annotate", "cm", "settings", "n=1"], "");
    let failure = kubectl.fail(&["replace", "-f", "-"], &shown);
    assert!(failure.contains("(Conflict)") && failure.contains("the object has been modified"), "{failure}");
    // What a hand added stays, what was applied and is left out goes.
    let file = kubectl.file("settings.configmap.yaml").replace("\ndata:\n", "\ndata:\n  hand: made\n");
    kubectl.host.write_manifest("settings.configmap.yaml", &file);
    eventually("the edit to be read", || {
        let found = text(&kubectl.output(&["get", "cm", "settings", "-o", "jsonpath={.data.hand}"], "").stdout);
        if found == "made" { Ok(()) } else { Err(found) }
    });
    kubectl.apply(&config_map("settings", "{a: '1'}"));
    let file = kubectl.file("settings.configmap.yaml");
    assert!(file.contains("hand: made") && !file.contains("b:"), "{file}");
    // Without the record of what was applied: one warning, and nothing else.
    fs::remove_dir_all(kubectl.host.path("state/sources/manifests/applied")).unwrap();
    let applied = [(); 2].map(|()| kubectl.apply(&config_map("settings", "{a: '1'}")));
    assert!(applied[0].contains("Warning: resource configmaps/settings is missing"), "{applied:?}");
    assert_eq!(applied[1], "configmap/settings unchanged\n");
    // From client-side to server-side apply.
    let told = kubectl.run(&["apply", "--server-side", "--validate=false", "-f", "-"], &config_map("settings", "{a: '1'}"));
    assert!(told.contains("configmap/settings serverside-applied"), "{told}");
    kubectl.run(&["create", "deployment", "web", "--image=localhost/busybox:1", "--replicas=0"], "");
    let failure = kubectl.fail(&["scale", "deploy/web", "--replicas=3", "--current-replicas=2"], "");
    assert!(failure.contains("Expected replicas to be 2, was 0"), "{failure}");
    // Many at once: one of them wins, and the file has what it says.
    let clients: Vec<_> = (0..20)
        .map(|client| {
            let mut command = kubectl.command("kubectl".as_ref());
            let patch = json!({"data": {"a": client.to_string()}}).to_string();
            command.args(["patch", "cm", "settings", "--type=merge", "-p", &patch]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let shown = kubectl.run(&["get", "cm", "settings", "-o", "jsonpath={.data.a}"], "");
    let file = kubectl.file("settings.configmap.yaml");
    assert!(file.contains(&format!("a: \"{shown}\"")) && file.contains("hand: made"), "{shown}: {file}");
}

#[test]
fn pods_are_run_copied_and_deleted() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let run = ["run", "once", "--image=localhost/busybox:1", "-i", "--rm", "--restart=Never", "--", "cat"];
    let told = kubectl.run(&run, "through and back\n");
    assert!(told.contains("through and back") && told.contains(r#"pod "once" deleted"#), "{told}");
    assert!(kubectl.files().is_empty(), "{:?}", kubectl.files());
    kubectl.apply(&pod("web"));
    kubectl.run(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"], "");
    let copy = ["debug", "web", "--copy-to=twin", "--image=localhost/busybox:1", "--container=tool", "--", "sleep", "1000000"];
    kubectl.run(&copy, "");
    kubectl.run(&["wait", "--for=condition=Ready", "pod/twin", "--timeout=60s"], "");
    kubectl.run(&["delete", "pod", "twin", "--force", "--grace-period=0"], "");
    assert!(!kubectl.has_file("twin.pod.yaml"));
    let web =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\n".to_owned() + SITE.split("name: shop}\n").last().unwrap();
    kubectl.apply(&web);
    kubectl.run(&["rollout", "status", "deploy/shop", "--timeout=60s"], "");
    kubectl.run(&["delete", "deploy/shop", "--cascade=foreground", "--timeout=60s"], "");
    // The Deployment goes first, whatever is asked for.
    eventually("its pods to go", || {
        let left = kubectl.run(&["get", "pods", "-l", "app=shop", "-o", "name"], "");
        if left.contains("pod/") { Err(left) } else { Ok(()) }
    });
    let three = ["one", "two", "three"].map(|name| config_map(name, "{a: b}")).join("---\n");
    kubectl.apply(&three);
    let told = kubectl.run(&["delete", "-f", "-"], &three);
    assert_eq!(told.matches("deleted").count(), 3, "{told}");
    let failure = kubectl.fail(&["delete", "-f", "-"], &three);
    assert_eq!(failure.matches("(NotFound)").count(), 3, "{failure}");
}

#[test]
fn large_bodies_and_full_places_are_refused() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let create = |bytes: usize| {
        let file = kubectl.host.path("big");
        fs::write(&file, "x".repeat(bytes)).unwrap();
        kubectl.output(&["create", "configmap", "big", &format!("--from-file=k={}", file.display())], "")
    };
    for (bytes, words) in [((1 << 20) + 1, "may not be more than 1048576 bytes"), (4 << 20, "larger than 3145728 bytes")] {
        let refused = create(bytes);
        assert!(!refused.status.success() && text(&refused.stderr).contains(words), "{bytes}: {refused:?}");
    }
    assert!(create((1 << 20) - 1).status.success());
    kubectl.run(&["delete", "cm", "big"], "");
    // A directory that cannot be written to: nothing changes, and the path is told.
    let manifests = kubectl.host.path("manifests");
    let before = kubectl.apply(&config_map("kept", "{a: b}"));
    let mount = |options: &[&str]| Command::new("mount").args(options).arg(&manifests).status().unwrap();
    assert!(mount(&["--bind", manifests.to_str().unwrap()]).success() && mount(&["-o", "remount,bind,ro"]).success(), "{before}");
    let refusals = [["create", "cm", "new"], ["delete", "cm", "kept"]].map(|arguments| kubectl.fail(&arguments, ""));
    assert!(Command::new("umount").arg(&manifests).status().unwrap().success());
    for (refusal, file) in refusals.iter().zip(["new.configmap.yaml", "kept.configmap.yaml"]) {
        assert!(
            refusal.contains(file) && refusal.contains("Read-only file system") && refusal.contains("nothing is changed"),
            "{refusal}"
        );
    }
    assert_eq!(kubectl.files().into_keys().collect::<Vec<_>>(), ["kept.configmap.yaml"]);
    kubectl.run(&["create", "cm", "new"], "");
}

/// The daemon is killed while kubectl writes, as often as PODSTEAD_KILLS says. A file is the old or the new one, and what was answered counts.
#[test]
fn kills_leave_old_or_new_file() {
    let Some(mut kubectl) = Kubectl::start("") else { return };
    kubectl.apply(&config_map("settings", "{a: '0'}"));
    let mut answered: u64 = 0;
    let kills = std::env::var("PODSTEAD_KILLS").map_or(8, |kills| kills.parse::<u64>().unwrap());
    for round in 1..=kills {
        let mut writer = {
            let mut command = kubectl.command("kubectl".as_ref());
            let loop_of_patches = format!(
                "n={}; while \"$@\" patch cm settings --type=merge -p '{{\"data\":{{\"a\":\"'$n'\"}}}}' >/dev/null; do echo $n; n=$((n+1)); done",
                answered + 1
            );
            let words: Vec<_> =
                std::iter::once(command.get_program().to_owned()).chain(command.get_args().map(ToOwned::to_owned)).collect();
            let mut shell = Command::new("sh");
            shell.args(["-c", &loop_of_patches, "sh"]).args(words).env("HOME", kubectl.host.path("")).env_remove("KUBECONFIG");
            command = shell;
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap()
        };
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        answered = lines.next().expect("a change is made").parse().unwrap();
        // Somewhere in the next request or two.
        std::thread::sleep(Duration::from_millis(round * 29 % 241));
        kubectl.host.kill_daemon();
        // A kubectl that has its answer ends now. Another one would ask for ten seconds more.
        let until = Instant::now() + Duration::from_secs(1);
        while writer.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        killpg(Pid::from_raw(writer.id() as i32), Signal::SIGKILL).ok();
        answered = lines.last().map_or(answered, |line| line.parse().unwrap());
        writer.wait().unwrap();
        let file = kubectl.file("settings.configmap.yaml");
        let written: u64 = file.split("a: \"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!([answered, answered + 1].contains(&written), "answered {answered}, written {written}");
        kubectl.host.start_daemon();
        eventually("the file to count", || {
            let found = text(&kubectl.output(&["get", "cm", "settings", "-o", "jsonpath={.data.a}"], "").stdout);
            if found == written.to_string() { Ok(()) } else { Err(found) }
        });
        answered = written;
    }
    kubectl.run(&["label", "cm", "settings", "a=b"], "");
    assert_eq!(kubectl.files().into_keys().collect::<Vec<_>>(), ["settings.configmap.yaml"], "no temporary file stays");
}
