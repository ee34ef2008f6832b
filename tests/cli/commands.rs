//! Output of subcommands.

use crate::host::{Host, desired, eventually, running_status, text};
use jiff::Timestamp;
use podstead::pod::PodUid;
use podstead::runtime::{PullPhase, PullState, PulledLayer};
use podstead::status::PodStatusSink;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn two_pods() -> Host {
    let host = Host::start();
    host.publish_source(None, None);
    host.publish_running("default", "web");
    host.publish_running("default", "db");
    host
}

#[test]
fn pods_are_listed_in_columns_of_kubectl() {
    let host = two_pods();
    let expected = "NAME       READY   STATUS    RESTARTS   AGE\n\
                    db-edge    1/1     Running   0          3h20m\n\
                    web-edge   1/1     Running   0          3h20m\n";
    assert_eq!(host.run(&["get", "pods"]), expected);
    let expected = "db-edge    1/1     Running   0          3h20m   10.0.0.5   edge   manifests   nginx:1.27\n";
    assert!(host.run(&["get", "po", "-o", "wide"]).contains(expected));
    assert_eq!(host.run(&["get", "pods", "-o", "name"]), "pod/db-edge\npod/web-edge\n");
    assert_eq!(host.run(&["get", "pods", "web", "--no-headers"]), "web-edge   1/1     Running   0          3h20m\n");
    assert_eq!(host.run(&["get", "pods", "-l", "app=db", "-o", "name"]), "pod/db-edge\n");
}

#[test]
fn a_namespace_is_told_when_it_matters() {
    let host = two_pods();
    host.publish_running("kube-system", "dns");
    let all = host.run(&["get", "pods"]);
    assert!(all.starts_with("NAMESPACE     NAME"), "{all}");
    assert!(host.run(&["get", "pods", "-n", "kube-system"]).starts_with("NAME "));
    assert!(host.run(&["get", "pods", "-A", "-l", "app=web"]).contains("default     web-edge"));
}

#[test]
fn source_is_pruned_only_on_request() {
    let host = two_pods();
    assert_eq!(host.run(&["sync", "--prune", "held", "--yes"]), "source held is now empty: removed 3 pods\n");
    for (arguments, code, words) in [
        (&["sync", "--prune"][..], 2, "SOURCE"),
        (&["sync", "--prune", "manifests", "--yes"], 1, "has nothing to prune"),
        (&["sync", "--prune", "nobody", "-y"], 1, "\"nobody\" not found"),
        (&["sync", "--yes", "held"], 2, "--prune"),
    ] {
        let output = host.output(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn prune_names_the_pods_and_needs_permission() {
    let host = two_pods();
    let output = host.output(&["sync", "--prune", "manifests"]);
    assert_eq!(output.status.code(), Some(1));
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(out, "This removes 2 pods of source manifests:\n  default/db-edge\n  default/web-edge\n");
    assert!(error.contains("no pods were removed") && error.contains("standard input is not a terminal; use --yes"), "{error}");
}

#[test]
fn objects_are_given_as_they_are() {
    let host = two_pods();
    let one: Value = serde_json::from_str(&host.run(&["get", "pods", "web", "-o", "json"])).unwrap();
    assert_eq!((&one["kind"], &one["metadata"]["name"]), (&json!("Pod"), &json!("web-edge")));
    let all: Value = serde_json::from_str(&host.run(&["get", "pods", "-o", "json"])).unwrap();
    assert_eq!((&all["kind"], all["items"].as_array().unwrap().len()), (&json!("List"), 2));
    let yaml = host.run(&["get", "pods", "web", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\n"), "{yaml}");
}

#[test]
fn nothing_found_is_said_on_stderr() {
    let host = Host::start();
    let output = host.output(&["get", "pods", "-o", "name"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout), text(&output.stderr)),
        (Some(0), String::new(), "No resources found.\n".into())
    );
    let (code, message) = host.fail(&["get", "pods", "web"]);
    assert_eq!((code, message.as_str()), (1, "podstead: pod \"web\" not found\n"));
}

#[test]
fn pods_are_watched() {
    let host = two_pods();
    let mut child = host.command(&["get", "pods", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.by_ref().take(3).count(), 3);
    let pod = desired("default", "new", json!({}));
    host.published.publish(&pod, serde_json::from_value(json!({"phase": "Pending"})).unwrap());
    assert_eq!(lines.next().unwrap(), "new-edge   0/1     Pending   0          3h20m");
    host.published.publish(&pod, serde_json::from_value(running_status()).unwrap());
    assert_eq!(lines.next().unwrap(), "new-edge   1/1     Running   0          3h20m");
    host.published.withdraw(&PodUid::new("uid-default-new"));
    assert!(lines.next().unwrap().starts_with("new-edge "));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn events_and_sources_are_listed() {
    let host = two_pods();
    host.publish_source(Some("unknown field"), None);
    let web = host.publish_running("default", "web");
    let subject = Subject::Pod { uid: web.uid.clone(), full_name: web.full_name.clone(), field_path: None };
    for _ in 0..2 {
        host.events.record(&subject, EventType::Warning, "BackOff", "back-off 10s");
    }
    host.events.record(&Subject::Node, EventType::Normal, "Starting", "starting podstead");
    let events = host.run(&["get", "events", "--for", "web"]);
    assert_eq!(events.lines().count(), 2, "{events}");
    assert!(events.contains("Warning   BackOff   pod/web-edge   back-off 10s"), "{events}");
    assert_eq!(host.run(&["get", "events"]).lines().count(), 3);
    assert_eq!(host.run(&["get", "events", "--type", "Normal"]).lines().count(), 2);
    let sources = host.run(&["get", "sources"]);
    let expected = "manifests   directory   0123456789ab   2      1          never     0s        1 object rejected";
    assert!(sources.contains(expected), "{sources}");
    let described = host.run(&["describe", "pod", "web"]);
    assert!(described.contains("Manifest:            web.yaml:1:1") && described.contains("BackOff"), "{described}");
}

#[test]
fn status_is_default_and_gives_advice() {
    let host = two_pods();
    assert!(host.run(&[]).ends_with("\n2 pods, all healthy\n"));
    assert_eq!(host.output(&["status", "--exit-code"]).status.code(), Some(0));
    let mut status = running_status();
    status["containerStatuses"][0]["ready"] = json!(false);
    status["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
    host.published.publish(&desired("default", "db", json!({})), serde_json::from_value(status).unwrap());
    let report = host.run(&["status"]);
    assert!(report.contains("2 pods, 1 healthy, 1 unhealthy\n  db-edge: CrashLoopBackOff"), "{report}");
    assert!(report.contains("      back-off 10s\n      -> podstead logs -p db-edge -c main\n"), "{report}");
    assert_eq!(host.output(&["status", "--exit-code"]).status.code(), Some(1));
}

#[test]
fn images_are_managed() {
    let host = two_pods();
    let listed = host.run(&["image", "ls"]);
    assert!(listed.contains("docker.io/library/nginx:1.27   111111111111   24.0MiB   20.0MiB   yes      2d2h"), "{listed}");
    let output = host.output(&["image", "pull", "docker.io/library/redis:7"]);
    assert_eq!(text(&output.stdout), format!("sha256:{}\n", "2".repeat(64)));
    assert_eq!(text(&output.stderr), "aaaaaaaaaaaa: complete, 1.0KiB\n");
    assert_eq!(host.run(&["get", "images", "-o", "name"]), "docker.io/library/nginx:1.27\ndocker.io/library/redis:7\n");
    let inventory: serde_json::Value = serde_json::from_str(&host.run(&["bundle", "inventory"])).unwrap();
    assert_eq!(inventory["kind"], "BundleInventory");
    let of_nginx = &inventory["images"][0];
    assert_eq!(
        (&of_nginx["references"][0], of_nginx["layers"].as_array().unwrap().len()),
        (&"docker.io/library/nginx:1.27".into(), 1)
    );
    let (code, message) = host.fail(&["image", "pull", "docker.io/missing"]);
    assert_eq!((code, message.as_str()), (1, "podstead: pull image \"docker.io/missing\": manifest unknown\n"));
    std::fs::write(host.root.path().join("image.tar"), "x").unwrap();
    let mut import = host.command(&["image", "import", "image.tar"]);
    let imported = import.current_dir(host.root.path()).output().unwrap();
    assert_eq!(text(&imported.stdout), "localhost/imported:1\n", "{}", text(&imported.stderr));
    host.run(&["image", "rm", "docker.io/library/redis:7"]);
    assert!(!host.run(&["image", "ls"]).contains("redis"));
}

#[test]
fn images_are_verified_and_repaired() {
    let host = Host::start();
    let output = host.output(&["image", "verify"]);
    let damage = "damaged docker.io/library/old:1: layer 0123456789ab: /etc/passwd has another content\n";
    let unlisted = "not verified docker.io/library/nginx:1.27: an earlier version of podstead stored 2 layers without checksums\n";
    let told = format!("{unlisted}{damage}verified 2 images (24.0MiB read), 1 damaged\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), told));
    let repaired = "repaired docker.io/library/old:1 from docker.io\n";
    let told = format!("{damage}{repaired}verified 1 image (24.0MiB read), 0 damaged\n");
    assert_eq!(host.run(&["image", "verify", "--repair", "docker.io/library/old:1"]), told);
}

fn pull_state(present_bytes: u64, waiting: Option<&str>) -> PullState {
    let layer = PulledLayer {
        digest: format!("sha256:{}", "a".repeat(64)),
        size_bytes: 100 << 20,
        present_bytes,
        resumed_bytes: 1 << 20,
        bytes_per_second: Some(1 << 20),
        host: waiting.is_none().then(|| "mirror.lan:5000".to_owned()),
        waiting: waiting.map(str::to_owned),
        ..PulledLayer::default()
    };
    let (reference, began_at) = ("docker.io/library/redis:7".to_owned(), Timestamp::now());
    PullState { number: 3, reference, began_at, phase: PullPhase::Downloading, layers: vec![layer], hold: None }
}

#[test]
fn pulls_are_shown_and_watched() {
    let host = two_pods();
    assert_eq!(host.run(&["image", "pulls"]), "");
    assert_eq!(host.run(&["image", "pulls", "-o", "name"]), "");
    *host.images.pulls.lock().unwrap() = vec![pull_state(41 << 20, None)];
    let table = host.run(&["image", "pulls"]);
    let row = "docker.io/library/redis:7   Downloading   41%    100.0MiB   1.0MiB/s   59s    mirror.lan:5000";
    assert!(table.starts_with("IMAGE ") && table.contains(row), "{table}");
    let shown: serde_json::Value = serde_json::from_str(&host.run(&["image", "pulls", "-o", "json"])).unwrap();
    let pull = &shown["items"][0];
    assert_eq!((&pull["kind"], &pull["metadata"]["name"]), (&json!("Pull"), &json!("pull-3")));
    assert_eq!((&pull["presentBytes"], &pull["layers"][0]["resumedBytes"]), (&json!(41 << 20), &json!(1 << 20)));
    assert_eq!((&pull["secondsLeft"], &pull["hosts"]), (&json!(59), &json!(["mirror.lan:5000"])));
    let mut child = host.command(&["image", "pulls", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.nth(1).unwrap().contains("41%"));
    *host.images.pulls.lock().unwrap() = vec![pull_state(43 << 20, Some("no route to mirror.lan:5000"))];
    let line = lines.next().unwrap();
    assert!(line.contains("43%") && line.contains("no route to mirror.lan:5000"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn colour_is_for_terminals_or_who_asks() {
    let host = two_pods();
    assert!(!host.run(&["get", "pods"]).contains('\x1b'));
    assert!(host.run(&["get", "pods", "--color", "always"]).contains("\x1b[32mRunning\x1b[0m"));
    let forced = host.command(&["get", "pods"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!text(&forced.stdout).contains('\x1b'), "NO_COLOR goes before CLICOLOR_FORCE");
}

#[test]
fn reader_that_goes_away_is_no_failure() {
    let host = two_pods();
    let mut child = host.command(&["get", "pods", "-w"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    let status = eventually("the command ends", || {
        host.publish_running("default", "web");
        child.try_wait().unwrap()
    });
    assert!(status.success(), "{status}");
    let mut completion = host.command(&["completion", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(completion.stdout.take());
    let output = completion.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn daemon_that_does_not_run_is_named() {
    let host = two_pods();
    let version = host.run(&["version"]);
    assert_eq!(version, format!("client: {0}\ndaemon: {0}\n", env!("CARGO_PKG_VERSION")));
    let socket = host.root.path().join("nobody.sock");
    for command in [&["version"][..], &["status"], &["get", "pods", "web"], &["exec", "web", "--", "ls"]] {
        let output = host.command(command).env("PODSTEAD_SOCKET", "unused").arg0_socket(&socket).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("is podstead running? (systemctl status podstead)"), "{message}");
    }
}

trait OtherSocket {
    fn arg0_socket(&mut self, socket: &std::path::Path) -> &mut Self;
}

impl OtherSocket for std::process::Command {
    /// The same subcommand with another socket.
    fn arg0_socket(&mut self, socket: &std::path::Path) -> &mut Self {
        let arguments: Vec<_> = self.get_args().skip(2).map(std::ffi::OsStr::to_owned).collect();
        *self = std::process::Command::new(env!("CARGO_BIN_EXE_podstead"));
        self.arg("--socket").arg(socket).args(arguments)
    }
}

#[test]
fn subcommands_of_others_are_explained() {
    let host = two_pods();
    for (arguments, words) in [
        (&["events"][..], "podstead get events"),
        (&["delete", "pod", "web"], "podstead stop"),
        (&["apply", "-f", "web.yaml"], "kubectl"),
        (&["hold", "fleet"], "podstead suspend"),
        (&["rollout", "restart", "deploy/web"], "podstead restart TYPE/NAME"),
    ] {
        let output = host.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = text(&output.stderr);
        assert!(text.contains("there is no subcommand") && text.contains(words), "{text}");
    }
    let told = text(&host.output(&["run", "nginx"]).stderr);
    assert!(told.contains("podstead run -f FILE; podstead import run 'docker run ...'"), "{told}");
    let told = text(&host.output(&["run", "--nginx"]).stderr);
    assert!(told.contains("unexpected argument '--nginx'"), "{told}");
    // One of a subcommand is clap's to explain.
    let text = text(&host.output(&["image", "delete"]).stderr);
    assert!(text.contains("unrecognized subcommand 'delete'"), "{text}");
}

#[test]
fn output_of_import_is_a_directory() {
    let host = two_pods();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("web.yaml");
    let arguments = ["import", "run", "-o", file.to_str().unwrap(), "docker run --name web localhost/web:1"];
    let told = text(&host.output(&arguments).stderr);
    assert!(told.contains("is not a directory: each service gets a file of its own") && !file.try_exists().unwrap(), "{told}");
    fs::create_dir(&file).unwrap();
    let output = host.output(&arguments);
    assert!(output.status.success() && file.join("web.yaml").is_file(), "{}", text(&output.stderr));
}
