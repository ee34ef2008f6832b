//! Logs over the API and the command line: rotated and compressed files, tails, times, followers.

use crate::host::{Host, desired, eventually, exited, running_status, text};
use hyper::Method;
use podstead::pod::DesiredPod;
use podstead::status::PodStatusSink;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

const LOG: &str = "/api/v1/namespaces/default/pods/web-edge/log";

struct Web {
    host: Host,
    desired: Arc<DesiredPod>,
}

impl Web {
    fn start() -> Self {
        let host = Host::start();
        let desired = host.publish_running("default", "web");
        let web = Self { host, desired };
        fs::create_dir_all(web.log(0).parent().unwrap()).unwrap();
        File::create(web.log(0)).unwrap();
        web
    }

    fn log(&self, attempt: u32) -> PathBuf {
        self.host.paths.container_log(&self.desired.full_name, &self.desired.uid, "main", attempt)
    }

    /// Appends a line, stamped with that second.
    fn write(&self, second: u32, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.log(0)).unwrap();
        file.write_all(line(second, text).as_bytes()).unwrap();
    }

    /// Renames the log as the shim does, and begins a new one.
    fn rotate(&self, stamp: &str) -> PathBuf {
        let rotated = PathBuf::from(format!("{}.{stamp}", self.log(0).display()));
        fs::rename(self.log(0), &rotated).unwrap();
        File::create(self.log(0)).unwrap();
        rotated
    }

    fn get(&self, query: &str) -> String {
        match self.host.get(&format!("{LOG}?{query}")) {
            Value::String(text) => text,
            // A body that happens to be a JSON document, e.g. a number.
            other => format!("{other}\n"),
        }
    }

    /// Makes the container have ended.
    fn end(&self, exit_code: i32) {
        self.host.observe(&self.desired, "main", 0, exited(exit_code));
        let mut status = running_status();
        status["phase"] = json!("Failed");
        self.host.published.publish(&self.desired, serde_json::from_value(status).unwrap());
    }
}

fn line(second: u32, text: &str) -> String {
    format!("2026-01-01T00:{:02}:{:02}.5Z stdout F {text}\n", second / 60, second % 60)
}

/// Compresses beside the file, which stays; whole at once, as a rotation does it.
fn gzip(path: &Path) {
    let name = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let mut encoder = flate2::write::GzEncoder::new(File::create(name(".tmp")).unwrap(), flate2::Compression::fast());
    encoder.write_all(&fs::read(path).unwrap()).unwrap();
    encoder.finish().unwrap();
    fs::rename(name(".tmp"), name(".gz")).unwrap();
}

fn numbers(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("line {number}\n")).collect()
}

/// Three files: the oldest compressed, and its plain copy still there as after a crash in the middle of compressing.
fn rotated() -> Web {
    let web = Web::start();
    for number in 0..300 {
        match number {
            100 => gzip(&web.rotate("20260101-000140")),
            200 => drop(web.rotate("20260101-000320")),
            _ => {}
        }
        web.write(number, &format!("line {number}"));
    }
    web
}

#[test]
fn files_are_read_in_order_once() {
    let web = rotated();
    assert_eq!(web.get(""), numbers(0..300));
}

#[test]
fn tail_reaches_rotated_and_compressed_files() {
    let web = rotated();
    for lines in [0, 1, 50, 99, 100, 101, 150, 200, 201, 250, 299, 300, 1000] {
        assert_eq!(web.get(&format!("tailLines={lines}")), numbers(300 - lines.min(300)..300), "the last {lines}");
    }
}

#[test]
fn times_and_limits_choose_lines() {
    let web = rotated();
    assert_eq!(web.get("sinceTime=2026-01-01T00:04:50Z"), numbers(290..300));
    assert_eq!(web.get("sinceTime=2026-01-01T00:04:50Z&tailLines=5"), numbers(295..300));
    assert_eq!(web.get("limitBytes=10"), "line 0\nlin");
    assert_eq!(web.get("tailLines=1&timestamps=true"), "2026-01-01T00:04:59.5Z line 299\n");
    assert_eq!(web.get("sinceSeconds=5"), "", "all lines are old");
    let both = format!("{LOG}?sinceSeconds=5&sinceTime=2026-01-01T00:04:50Z");
    assert_eq!(web.host.send(Method::GET, &both, "").0, 400);
}

#[test]
fn partial_lines_are_joined_also_across_rotation() {
    let web = Web::start();
    fs::write(web.log(0), "2026-01-01T00:00:00Z stdout P one \n2026-01-01T00:00:00Z stderr F error\n").unwrap();
    web.rotate("20260101-000000");
    fs::write(web.log(0), "2026-01-01T00:00:01Z stdout F two\ntorn by a power cut\n2026-01-01T00:00:02Z stdout F three\n").unwrap();
    assert_eq!(web.get(""), "error\none two\nthree\n");
    assert_eq!(web.get("tailLines=2"), "one two\nthree\n");
}

#[test]
fn follower_reads_across_rotations_to_the_end() {
    let web = Web::start();
    web.write(0, "line 0");
    let mut command = web.host.command(&["logs", "-f", "web"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "line 0");
    let mut number = 0;
    for round in 0..60 {
        // Some rounds rotate twice, and compress, faster than the follower may look.
        let first = number + 1;
        for rotation in 0..round % 3 {
            number += 1;
            web.write(number, &format!("line {number}"));
            let rotated = web.rotate(&format!("20260101-{:06}", round * 10 + rotation));
            if round % 2 == 0 {
                gzip(&rotated);
                fs::remove_file(&rotated).unwrap();
            }
        }
        number += 1;
        web.write(number, &format!("line {number}"));
        for expected in first..=number {
            assert_eq!(lines.next().unwrap(), format!("line {expected}"), "in round {round}");
        }
    }
    web.write(500, "the last words");
    web.end(1);
    assert_eq!(lines.next().unwrap(), "the last words");
    assert_eq!(lines.next(), None);
    assert!(child.wait().unwrap().success());
}

#[test]
fn following_a_container_that_has_ended_ends() {
    let web = Web::start();
    web.write(0, "done");
    web.end(0);
    assert_eq!(web.get("follow=true"), "done\n");
}

#[test]
fn a_follower_that_leaves_leaves_nothing_behind() {
    let web = Web::start();
    web.write(0, "line 0");
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let log = web.log(0);
    let is_open = || descriptors().any(|target| target == log);
    let mut child = web.host.command(&["logs", "-f", "web"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "line 0");
    assert!(is_open());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the daemon closes the log", || (!is_open()).then_some(()));
}

#[test]
fn previous_run_is_earlier_or_crashed_one() {
    let web = Web::start();
    assert!(previous_failure(&web).contains(r#"previous terminated container "main" in pod "web-edge" not found"#));
    fs::write(web.log(0), line(0, "first run")).unwrap();
    web.host.observe(&web.desired, "main", 1, crate::host::running());
    fs::write(web.log(1), line(1, "second run")).unwrap();
    assert_eq!(web.get(""), "second run\n");
    assert_eq!(web.get("previous=true"), "first run\n");

    // While the restart is waited for, the newest run is the one that crashed.
    web.host.observe(&web.desired, "main", 1, exited(1));
    let mut status = running_status();
    status["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    web.host.published.publish(&web.desired, serde_json::from_value(status).unwrap());
    assert_eq!(web.get(""), "second run\n");
    assert_eq!(web.get("previous=true"), "second run\n");
}

fn previous_failure(web: &Web) -> String {
    let (code, status) = web.host.send(Method::GET, &format!("{LOG}?previous=true"), "");
    assert_eq!(code, 400);
    status["message"].as_str().unwrap().to_owned()
}

#[test]
fn container_without_run_says_its_reason() {
    let host = Host::start();
    let pod = desired("default", "web", json!({"containers": [{"name": "main"}, {"name": "side"}]}));
    let status = json!({
        "phase": "Pending",
        "containerStatuses": [{
            "name": "main", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "ImagePullBackOff"}},
        }],
    });
    host.published.publish(&pod, serde_json::from_value(status).unwrap());
    let message = |query: &str| {
        let (code, status) = host.send(Method::GET, &format!("{LOG}?{query}"), "");
        assert_eq!(code, 400, "{status}");
        status["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message("container=main"), r#"container "main" in pod "web-edge" is waiting to start: ImagePullBackOff"#);
    assert_eq!(message("container=nosuch"), "container nosuch is not valid for pod web-edge, choose one of: [main side]");
    assert_eq!(message(""), "a container name must be specified for pod web-edge, choose one of: [main side]");
}

#[test]
fn several_containers_are_told_apart() {
    let host = Host::start();
    let pod = desired("default", "web", json!({"containers": [{"name": "main"}, {"name": "side"}]}));
    host.published.publish(&pod, serde_json::from_value(running_status()).unwrap());
    for container in ["main", "side"] {
        host.observe(&pod, container, 0, exited(0));
        let path = host.paths.container_log(&pod.full_name, &pod.uid, container, 0);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, line(0, &format!("from {container}"))).unwrap();
    }
    assert_eq!(host.run(&["logs", "web", "--all-containers"]), "[web-edge/main] from main\n[web-edge/side] from side\n");
    let mut followed: Vec<_> = host.run(&["logs", "-f", "web", "--all-containers"]).lines().map(str::to_owned).collect();
    followed.sort();
    assert_eq!(followed, ["[web-edge/main] from main", "[web-edge/side] from side"]);
    let output = host.output(&["logs", "web"]);
    assert_eq!(text(&output.stdout), "from main\n");
    assert_eq!(text(&output.stderr), "showing container main of main, side; choose another one with -c, or use --all-containers\n");
    assert_eq!(host.run(&["logs", "web", "-c", "side", "--tail", "1"]), "from side\n");
}
