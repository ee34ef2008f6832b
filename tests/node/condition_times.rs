//! Since when conditions are as they are.

use crate::support::{PodView, TestHost, eventually};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

const MANIFEST: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
    - {name: first, image: 'localhost/busybox:1', command: ['true']}
  containers:
    - name: c
      image: localhost/busybox:1
      command: [sleep, '1000000']
      readinessProbe: {exec: {command: [test, -e, /ready]}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  containers:
    - {name: c, image: 'localhost/busybox:1', command: ['true']}
";

/// Value and time of each condition.
fn conditions(pod: &PodView) -> BTreeMap<String, (String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = pod.0["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .map(|condition| (text(&condition["type"]), (text(&condition["status"]), text(&condition["lastTransitionTime"]))))
        .collect()
}

#[test]
fn daemon_restart_keeps_condition_times() {
    let mut host = TestHost::start();
    host.write_manifest("pods.yaml", MANIFEST);
    host.wait_running("web");
    host.exec("web", "c", &["/bin/touch", "/ready"]);
    let web = host.wait_for_pod("web", "ready", |pod| pod.container("c")["ready"] == true);
    let once = host.wait_for_pod("once", "done", |pod| pod.phase() == "Succeeded");
    let before = [conditions(&web), conditions(&once)];
    assert_eq!((before[0]["Ready"].0.as_str(), before[1]["Ready"].0.as_str()), ("True", "False"));
    assert!(before[0]["Initialized"].1 <= before[0]["Ready"].1);
    // Times have seconds: what is new after this is later.
    let later = SystemTime::now() + Duration::from_secs(2);
    eventually("another second", || if SystemTime::now() > later { Ok(()) } else { Err(String::new()) });
    let file = |pod: &PodView| std::fs::metadata(host.path(&format!("state/pods/{}/conditions.json", pod.uid()))).unwrap();
    let written = [file(&web).ino(), file(&once).ino()];
    for end in ["killed", "stopped"] {
        match end {
            "killed" => host.kill_daemon(),
            _ => host.stop_daemon(),
        }
        host.start_daemon();
        let web = host.wait_for_pod("web", "ready", |pod| pod.container("c")["ready"] == true);
        let once = host.wait_for_pod("once", "done", |pod| pod.phase() == "Succeeded");
        assert_eq!([conditions(&web), conditions(&once)], before, "{end}");
    }
    let file = |pod: &PodView| std::fs::metadata(host.path(&format!("state/pods/{}/conditions.json", pod.uid()))).unwrap();
    assert_eq!([file(&web).ino(), file(&once).ino()], written, "nothing changed, and nothing was written");
    // What changes while the daemon is there has a new time.
    host.exec("web", "c", &["/bin/rm", "/ready"]);
    let web = host.wait_for_pod("web", "unready", |pod| pod.container("c")["ready"] == false);
    let after = conditions(&web);
    assert!(after["Ready"].1 > before[0]["Ready"].1, "{after:?}");
    assert_eq!(after["Initialized"], before[0]["Initialized"]);
}
