//! From a manifest to a running container, through edits and restarts, to an end.

use crate::support::{TestHost, eventually, leftovers, make_image, process_exists};

fn sleeper(name: &str, containers: &[(&str, &str)]) -> String {
    let mut text =
        format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n");
    for (container, script) in containers {
        text += &format!(
            "    - name: {container}\n      image: localhost/busybox:1\n      command: [\"/bin/sh\", \"-c\", \"{script}\"]\n"
        );
    }
    text
}

const FOREVER: &str = "echo started; exec sleep 1000000";

/// shows: metadata.name, spec.containers[].name, spec.containers[].image, spec.containers[].command
#[test]
fn manifest_becomes_running_container_with_log() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &sleeper("web", &[("main", FOREVER)]));
    let pod = host.wait_running("web");
    assert_eq!(pod.restarts("main"), 0);
    assert!(host.wait_log("web", "main", "started").starts_with("started"));
    assert_eq!(host.exec("web", "main", &["echo", "from exec"]), "from exec\n");
    let table = host.cli_ok(&["get", "pods"]);
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(&row[..4], &["web-edge-1", "1/1", "Running", "0"], "{table}");
}

#[test]
fn edit_restarts_only_container_whose_definition_changed() {
    let host = TestHost::start();
    host.write_manifest("two.yaml", &sleeper("two", &[("stays", FOREVER), ("changes", FOREVER)]));
    let before = host.wait_running("two");
    host.write_manifest("two.yaml", &sleeper("two", &[("stays", FOREVER), ("changes", "echo changed; exec sleep 2000000")]));
    let after = host.wait_for_pod("two", "the edited container to run anew", |pod| {
        pod.runs("changes") && pod.container_id("changes") != before.container_id("changes")
    });
    assert_eq!(after.uid(), before.uid(), "an edit in place keeps the identity of the pod");
    assert_eq!(after.container_id("stays"), before.container_id("stays"));
    assert_eq!(after.restarts("stays"), 0);
    host.wait_log("two", "changes", "changed");
}

/// shows: metadata.labels
#[test]
fn a_change_of_labels_restarts_nothing() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &sleeper("web", &[("main", FOREVER)]));
    let before = host.wait_running("web");
    let labelled = sleeper("web", &[("main", FOREVER)]).replace("  name: web\n", "  name: web\n  labels:\n    tier: front\n");
    host.write_manifest("web.yaml", &labelled);
    let after = host.wait_for_pod("web", "the label", |pod| pod.0["metadata"]["labels"]["tier"] == "front");
    assert_eq!(after.container_id("main"), before.container_id("main"));
    assert!(after.runs("main"));
}

/// shows: spec.hostNetwork
#[test]
fn sandbox_change_recreates_containers_with_same_identity() {
    let host = TestHost::start();
    let isolated = sleeper("web", &[("main", FOREVER)]);
    host.write_manifest("web.yaml", &isolated);
    let before = host.wait_running("web");
    host.write_manifest("web.yaml", &isolated.replace("spec:\n", "spec:\n  hostNetwork: true\n"));
    let after = host.wait_for_pod("web", "a container in the new sandbox", |pod| {
        pod.runs("main") && pod.container_id("main") != before.container_id("main")
    });
    assert_eq!(after.uid(), before.uid());
    let host_network = std::fs::read_link("/proc/self/ns/net").unwrap();
    let pid = host.container_pid(&after, "main");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap(), host_network);
}

#[test]
fn failing_container_is_restarted_with_back_off() {
    let host = TestHost::start();
    host.write_manifest("crash.yaml", &sleeper("crash", &[("main", "echo run; exit 3")]));
    let pod = host.wait_for_pod("crash", "CrashLoopBackOff", |pod| pod.waiting_reason("main") == "CrashLoopBackOff");
    assert!(pod.restarts("main") >= 1, "the first restart is immediate (kubelet rule D9)");
    assert_eq!(pod.container("main")["lastState"]["terminated"]["exitCode"], 3);
    let message = pod.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("back-off") && message.contains("restarting failed container=main pod=crash-edge-1_default"),
        "{message}"
    );
    assert!(host.cli_ok(&["get", "events"]).contains("BackOff"));
    assert_eq!(host.cli_ok(&["logs", "crash", "--previous"]), "run\n");
}

#[test]
fn d17_one_dead_run_keeps_its_log() {
    let host = TestHost::start_with("crashLoopBackOff: {maxContainerRestartPeriodSeconds: 1}\n");
    let script = "echo 1 >> /count/n; wc -l < /count/n; exit 1";
    let manifest = sleeper("crash", &[("main", script)])
        .replace("      image:", "      volumeMounts: [{name: count, mountPath: /count}]\n      image:")
        + "  volumes: [{name: count, emptyDir: {}}]\n";
    host.write_manifest("crash.yaml", &manifest);
    let pod = host.wait_for_pod("crash", "five restarts", |pod| pod.restarts("main") >= 5);
    let logs = host.path("log/pods").join(format!("default_crash-edge-1_{}/main", pod.uid()));
    let records = host.path("state/pods").join(pod.uid()).join("containers");
    let layers = host.path("state/pods").join(pod.uid()).join("layers");
    let links = host.path("log/containers");
    let count = |directory: &std::path::Path| std::fs::read_dir(directory).unwrap().count();
    eventually("no more than the last two runs to be kept", || {
        let counts = [count(&logs), count(&records), count(&layers), count(&links)];
        if counts.iter().all(|count| (1..=2).contains(count)) { Ok(()) } else { Err(format!("{counts:?}")) }
    });
    let waiting = host.wait_for_pod("crash", "a pause", |pod| pod.waiting_reason("main") == "CrashLoopBackOff");
    eventually("nothing of the dead run to be left in the kernel", || {
        let rest = leftovers(&waiting.container_id("main"));
        // A next run may have begun: then this one is the dead one all the same.
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
    // There is no run for an instant, between the removal of a dead one and the creation of the next.
    let runs = eventually("the log of the last run", || {
        let said = host.cli(&["logs", "crash", "--previous"]);
        String::from_utf8_lossy(&said.stdout).trim().parse::<u64>().map_err(|_| format!("{said:?}"))
    });
    assert!(runs > waiting.restarts("main"), "run {runs} is the last one of {}", waiting.restarts("main"));
}

#[test]
fn crash_loop_is_limited_in_events() {
    let host = TestHost::start_with("crashLoopBackOff: {maxContainerRestartPeriodSeconds: 1}\n");
    host.write_manifest("crash.yaml", &sleeper("crash", &[("main", "exit 1")]));
    // Image, creation, start and pause of each run would be 48.
    host.wait_for_pod("crash", "twelve restarts", |pod| pod.restarts("main") >= 12);
    let list: serde_json::Value = serde_json::from_str(&host.cli_ok(&["get", "events", "-o", "json"])).unwrap();
    let of_container = |event: &&serde_json::Value| event["involvedObject"]["fieldPath"] == "spec.containers{main}";
    let events: Vec<_> = list["items"].as_array().unwrap().iter().filter(of_container).collect();
    let told: u64 = events.iter().map(|event| event["count"].as_u64().unwrap()).sum();
    assert!(events.iter().any(|event| event["reason"] == "BackOff"), "{events:?}");
    assert_eq!(told, 25, "{events:?}");
    let lines = host.daemon_log().lines().filter(|line| line.contains("Back-off restarting failed container")).count();
    assert!((1..=4).contains(&lines), "the log has it at each doubling: {lines}");
}

/// shows: spec.restartPolicy
#[test]
fn completed_pod_stays_completed_after_restart() {
    let mut host = TestHost::start();
    let once = sleeper("once", &[("main", "echo done")]).replace("spec:\n", "spec:\n  restartPolicy: OnFailure\n");
    host.write_manifest("once.yaml", &once);
    let before = host.wait_for_pod("once", "Succeeded", |pod| pod.phase() == "Succeeded");
    host.stop_daemon();
    host.start_daemon();
    let after = host.wait_for_pod("once", "still Succeeded", |pod| pod.phase() == "Succeeded");
    assert_eq!(after.container_id("main"), before.container_id("main"), "it must not run again");
    assert_eq!(host.logs("once", "main"), "done\n");
}

/// shows: spec.initContainers[].name, spec.initContainers[].command, spec.containers[].volumeMounts[].name
/// shows: spec.containers[].volumeMounts[].mountPath, spec.volumes[].name
#[test]
fn init_containers_run_in_order_before_containers() {
    let host = TestHost::start();
    let manifest = "
apiVersion: v1
kind: Pod
metadata: {name: staged}
spec:
  initContainers:
    - {name: one, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo 1 > /work/log']}
    - {name: two, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo 2 >> /work/log']}
  containers:
    - {name: main, image: localhost/busybox:1, command: [/bin/sh, -c, 'cat /work/log; exec sleep 1000000']}
  volumes:
    - {name: work, emptyDir: {}}
"
    .replace("image: localhost/busybox:1", "image: localhost/busybox:1, volumeMounts: [{name: work, mountPath: /work}]");
    host.write_manifest("staged.yaml", &manifest);
    host.wait_running("staged");
    assert!(host.wait_log("staged", "main", "2").starts_with("1\n2\n"));
}

/// shows: spec.terminationGracePeriodSeconds
#[test]
fn termination_asks_first_and_kills_later() {
    let host = TestHost::start();
    let polite = "trap 'echo asked; exit 0' TERM; echo ready; while true; do sleep 0.1; done";
    let stubborn = "trap 'echo refused' TERM; echo ready; while true; do sleep 0.1; done";
    let manifest = sleeper("end", &[("polite", polite), ("stubborn", stubborn)]);
    host.write_manifest("end.yaml", &manifest.replace("Seconds: 1\n", "Seconds: 5\n"));
    let pod = host.wait_running("end");
    host.wait_log("end", "polite", "ready");
    host.wait_log("end", "stubborn", "ready");
    let pids = [host.container_pid(&pod, "polite"), host.container_pid(&pod, "stubborn")];
    let logs = host.path("log/pods").join(format!("default_end-edge-1_{}", pod.uid()));
    // A hard link outlives the pod's log directory, which goes with the pod.
    for container in ["polite", "stubborn"] {
        std::fs::hard_link(logs.join(container).join("0.log"), host.path(container)).unwrap();
    }
    let asked = std::time::Instant::now();
    host.remove_manifest("end.yaml");
    host.wait_gone("end");
    assert!(asked.elapsed() < std::time::Duration::from_secs(30), "a grace of 5 s, not the default of 30 s");
    assert!(!process_exists(pids[0]) && !process_exists(pids[1]));
    let log = |container: &str| std::fs::read_to_string(host.path(container)).unwrap();
    assert!(log("polite").contains("stdout F asked"), "{}", log("polite"));
    assert!(log("stubborn").contains("stdout F refused"), "{}", log("stubborn"));
}

/// shows: spec.containers[].resources.limits
#[test]
fn a_container_killed_for_memory_says_so() {
    let host = TestHost::start();
    let hungry = sleeper("hungry", &[("main", "sleep 0.2; tail /dev/zero")]) + "      resources: {limits: {memory: 16Mi}}\n";
    host.write_manifest("hungry.yaml", &hungry);
    let pod = host.wait_for_pod("hungry", "a termination", |pod| pod.container("main")["lastState"]["terminated"].is_object());
    let terminated = &pod.container("main")["lastState"]["terminated"];
    assert_eq!(terminated["reason"], "OOMKilled", "{terminated}");
    assert_eq!(terminated["exitCode"], 137);
}

#[test]
fn program_that_cannot_be_executed_is_explained() {
    let host = TestHost::start();
    let missing = sleeper("missing", &[("main", FOREVER)]).replace("\"/bin/sh\", \"-c\"", "\"/no/such/program\", \"-c\"");
    host.write_manifest("missing.yaml", &missing);
    eventually("a message that names the program", || {
        let pod = host.pod("missing").ok_or("no pod")?;
        let text = pod.container("main").to_string();
        (text.contains("/no/such/program") && text.to_lowercase().contains("no such file")).then_some(()).ok_or(text)
    });
}

/// shows: spec.containers[].imagePullPolicy
#[test]
fn missing_image_is_explained_and_heals() {
    let host = TestHost::start();
    let manifest = sleeper("late", &[("main", FOREVER)]).replace("localhost/busybox:1", "localhost/late:1");
    host.write_manifest("late.yaml", &(manifest + "      imagePullPolicy: Never\n"));
    host.wait_for_pod("late", "ErrImageNeverPull", |pod| pod.waiting_reason("main") == "ErrImageNeverPull");
    let archive = host.path("late.tar");
    make_image(&[], &archive, "localhost/late:1");
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
    host.wait_running("late");
}
