//! `podstead logs`, `exec`, `top` and `status` as an operator uses them, with real containers.

use crate::support::{TestHost, binary, eventually};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: shop}}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - name: main\n      image: localhost/busybox:1\n      command: [sh, -c, '{script}; exec sleep 1000000']\n      \
         resources: {{limits: {{memory: 64Mi, cpu: 500m}}}}\n    - name: side\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n"
    )
}

fn two() -> TestHost {
    let host = TestHost::start();
    host.write_manifest("a.yaml", &pod("a", "echo one from a; dd if=/dev/zero of=/file bs=1024 count=2048 2>/dev/null; echo end"));
    host.write_manifest("b.yaml", &pod("b", "echo one from b"));
    host.wait_log("a", "main", "end");
    host.wait_log("b", "main", "one");
    host.wait_running("a");
    host.wait_running("b");
    host
}

#[test]
fn logs_of_several_pods_have_prefixes() {
    let host = two();
    let expected = "[a-edge-1/main] one from a\n[a-edge-1/main] end\n[b-edge-1/main] one from b\n";
    assert_eq!(host.cli_ok(&["logs", "-l", "app=shop"]), expected);
    assert_eq!(host.cli_ok(&["logs", "a", "b"]), expected);
    assert!(host.cli_ok(&["--color", "always", "logs", "a", "b"]).contains("\x1b[36m[a-edge-1/main]"));
    assert_eq!(host.cli_ok(&["logs", "a", "--until", "2020-01-01T00:00:00Z"]), "");
    assert_eq!(host.cli_ok(&["logs", "b", "--until", "2100-01-01T00:00:00Z"]), "one from b\n");
    let none = host.cli(&["logs", "-l", "app=other"]);
    assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("no pod has the labels app=other"));
}

#[test]
fn logs_are_read_without_daemon() {
    let mut host = two();
    let config = host.path("config.yaml").display().to_string();
    host.kill_daemon();
    let read = |arguments: &[&str]| {
        let output = host.cli(&[&["--config", &config], arguments].concat());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (text, notes) = read(&["logs", "a"]);
    assert_eq!(text, "one from a\nend\n");
    assert!(notes.contains("the daemon does not answer: reading the log files"), "{notes}");
    assert_eq!(read(&["logs", "a", "--tail", "1"]).0, "end\n");
    assert_eq!(read(&["logs", "-l", "app=shop", "--tail", "1"]).0, "[a-edge-1/main] end\n[b-edge-1/main] one from b\n");
    let (text, error) = read(&["logs", "-f", "a"]);
    assert!(text.is_empty() && error.contains("only while the daemon runs"), "{error}");
    assert!(read(&["logs", "nosuch"]).1.contains(r#"pod "nosuch" not found"#));
}

#[test]
fn logs_begin_at_time() {
    let mut host = TestHost::start();
    host.write_manifest("a.yaml", &pod("a", "mkfifo /go; echo one; read word < /go; echo two"));
    host.wait_log("a", "main", "one");
    // The program waits until it is told to go on.
    host.exec("a", "main", &["/bin/sh", "-c", "echo on > /go"]);
    host.wait_log("a", "main", "two");
    let stamped = host.cli_ok(&["logs", "a", "-c", "main", "--timestamps"]);
    let times: Vec<&str> = stamped.lines().filter_map(|line| line.split_once(' ')).map(|(time, _)| time).collect();
    let [one, two] = times[..] else { panic!("{stamped}") };
    let config = host.path("config.yaml").display().to_string();
    let since = |host: &TestHost, time: &str| host.cli_ok(&["--config", &config, "logs", "a", "-c", "main", "--since-time", time]);
    let read = |host: &TestHost| [one, two, "2100-01-01T00:00:00Z"].map(|time| since(host, time));
    assert_eq!(read(&host), ["one\ntwo\n", "two\n", ""]);
    assert_eq!(host.cli_ok(&["logs", "a", "-c", "main", "--since-time", one, "--tail", "1"]), "two\n");
    let both = host.cli(&["logs", "a", "--since", "1h", "--since-time", one]);
    assert!(!both.status.success() && String::from_utf8_lossy(&both.stderr).contains("cannot be used with"), "{both:?}");
    let no_time = host.cli(&["logs", "a", "--since-time", "yesterday"]);
    assert!(!no_time.status.success() && String::from_utf8_lossy(&no_time.stderr).contains("--since-time"), "{no_time:?}");
    host.kill_daemon();
    assert_eq!(read(&host), ["one\ntwo\n", "two\n", ""], "from the files");
}

#[test]
fn exec_runs_in_first_container() {
    let host = two();
    let output = host.cli(&["exec", "a", "cat", "/file"]);
    assert_eq!(output.stdout.len(), 2 << 20);
    assert!(String::from_utf8_lossy(&output.stderr).contains("running in container main of main, side"), "{output:?}");
}

#[test]
fn top_shows_limits_and_disk() {
    let host = two();
    let top = host.cli_ok(&["top", "pod", "a", "--containers"]);
    let main = top.lines().find(|line| line.contains(" main ")).unwrap_or_else(|| panic!("{top}"));
    assert!(main.split_whitespace().nth(5).unwrap().ends_with('%'), "{top}");
    assert!(!top.contains("b-edge-1"), "{top}");
    let disk = eventually("the file to be on disk", || {
        let disk = host.cli_ok(&["top", "pods", "a", "--disk"]);
        if disk.contains("2.0MiB") || disk.contains("2.1MiB") { Ok(disk) } else { Err(disk) }
    });
    assert_eq!(disk.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(), ["NAME", "DISK", "LAYERS", "VOLUMES", "LOGS"]);
}

#[test]
fn top_is_watched() {
    let host = two();
    let mut command = Command::new("timeout");
    command.arg("120").arg(binary("podstead")).arg("--socket").arg(host.path("run/podstead.sock")).args(["top", "pod", "a", "-w"]);
    let mut top = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines().map(Result::unwrap);
    let rows: Vec<String> = lines.filter(|line| line.starts_with("a-edge-1 ")).take(2).collect();
    assert_eq!(rows.len(), 2, "a row for each measurement");
    // It ends since nobody reads it any more.
    assert!(top.wait().unwrap().success());
}

#[test]
fn status_is_read_by_programs() {
    let host = two();
    host.cli_ok(&["stop", "a"]);
    let status: Value = serde_json::from_str(&host.cli_ok(&["status", "-o", "json"])).unwrap();
    assert_eq!(status["isWell"], false);
    let pod = status["pods"].as_array().unwrap().iter().find(|pod| pod["name"] == "a-edge-1").unwrap();
    assert_eq!((pod["status"].as_str(), pod["problem"]["remedy"].as_str()), (Some("Stopped"), Some("podstead start a-edge-1")));
    let of_b = host.cli_ok(&["status", "b"]);
    assert!(of_b.contains("1 pod, all healthy") && !of_b.contains("a-edge-1"), "{of_b}");
    assert!(host.cli(&["status", "b", "--exit-code"]).status.success());
    assert!(!host.cli(&["status", "a", "--exit-code"]).status.success());
}

#[test]
fn run_waits_for_pod_that_runs_once() {
    let host = TestHost::start();
    let file = host.path("check.yaml").display().to_string();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: check}\nspec:\n  containers:\n    - name: main\n      image: localhost/busybox:1\n      \
               command: [sh, -c, 'echo checked; exit 3']\n";
    std::fs::write(&file, pod).unwrap();
    let output = host.cli(&["run", "-f", &file]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(3), "checked\n"), "{output:?}");
    eventually("the pod to be gone", || if host.pods().is_empty() { Ok(()) } else { Err(format!("{:?}", host.pods())) });
    std::fs::write(&file, pod.replace("image:", "imaeg:")).unwrap();
    let output = host.cli(&["run", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("imaeg"), "{output:?}");
    assert_eq!(std::fs::read_dir(host.path("manifests")).unwrap().count(), 0);
}

#[test]
fn demo_shows_pods_that_run() {
    let binaries = crate::support::binary("podstead").parent().unwrap().to_owned();
    let output = std::process::Command::new("packaging/demo").arg(binaries).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("7 pods, all healthy").count(), 2, "{text}");
    assert!(text.contains("What to type next"), "{text}");
}
