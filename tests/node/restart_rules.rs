//! Restart policies and rules of containers (kubelet rule D5), on real containers.

use crate::support::{TestHost, eventually, process_exists};

fn manifest(name: &str, spec: &str) -> String {
    let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}");
    // Every container counts its runs in /work/<name>, and writes what it does in order to /work/log.
    text.replace("IMAGE", "image: localhost/busybox:1, volumeMounts: [{name: work, mountPath: /work}]")
        + "  volumes: [{name: work, emptyDir: {}}]\n"
}

/// shows: spec.containers[].restartPolicy, spec.containers[].restartPolicyRules, spec.containers[].restartPolicyRules[].action,
/// shows: spec.containers[].restartPolicyRules[].exitCodes, spec.containers[].restartPolicyRules[].exitCodes.operator,
/// shows: spec.containers[].restartPolicyRules[].exitCodes.values
#[test]
fn d5_rule_restarts_against_the_policy() {
    let host = TestHost::start();
    let spec = "
  restartPolicy: Always
  containers:
    - name: again
      IMAGE
      restartPolicy: Never
      restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]
      command: [/bin/sh, -c, 'echo run >> /work/again; [ $(wc -l < /work/again) -ge 2 ] && exit 3; exit 42']
    - name: others
      IMAGE
      restartPolicy: Never
      restartPolicyRules: [{action: Restart, exitCodes: {operator: NotIn, values: [3]}}]
      command: [/bin/sh, -c, 'echo run >> /work/others; exit 3']
"
    .replace("      IMAGE\n", "      image: localhost/busybox:1\n      volumeMounts: [{name: work, mountPath: /work}]\n");
    host.write_manifest("rules.yaml", &manifest("rules", &spec));
    let pod = host.wait_for_pod("rules", "Failed", |pod| pod.phase() == "Failed");
    assert_eq!((pod.restarts("again"), pod.restarts("others")), (1, 0), "{}", pod.0["status"]);
    assert_eq!(pod.container("again")["state"]["terminated"]["exitCode"], 3);
    assert_eq!(pod.container("again")["lastState"]["terminated"]["exitCode"], 42);
}

/// shows: spec.initContainers[].restartPolicy, spec.initContainers[].restartPolicyRules, spec.initContainers[].restartPolicyRules[].action,
/// shows: spec.initContainers[].restartPolicyRules[].exitCodes, spec.initContainers[].restartPolicyRules[].exitCodes.operator,
/// shows: spec.initContainers[].restartPolicyRules[].exitCodes.values
#[test]
fn d5_init_containers_have_own_rules() {
    let host = TestHost::start();
    let spec = "
  restartPolicy: Never
  initContainers:
    - {name: one, restartPolicy: OnFailure, IMAGE,
       command: [/bin/sh, -c, 'echo one >> /work/log; [ $(grep -c one /work/log) -ge 2 ]']}
    - {name: two, restartPolicy: Never, IMAGE, command: [/bin/sh, -c, 'echo two >> /work/log; [ $(grep -c two /work/log) -ge 2 ] || exit 42'],
       restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]}
    - {name: side, restartPolicy: Always, IMAGE, command: [/bin/sh, -c, 'echo side >> /work/log; exec sleep 1000000']}
  containers:
    - {name: main, IMAGE, command: [/bin/sh, -c, 'until grep -q side /work/log; do sleep 0.1; done; cat /work/log']}
";
    host.write_manifest("inits.yaml", &manifest("inits", spec));
    let pod = host.wait_for_pod("inits", "Succeeded", |pod| pod.phase() == "Succeeded");
    assert_eq!(host.logs("inits", "main"), "one\none\ntwo\ntwo\nside\n");
    assert_eq!((pod.restarts("one"), pod.restarts("two"), pod.restarts("side")), (1, 1, 0), "{}", pod.0["status"]);
    host.write_manifest(
        "fails.yaml",
        &manifest("fails", &spec.replace("OnFailure", "Never").replace("policy: Never\n", "policy: Always\n")),
    );
    let failed = host.wait_for_pod("fails", "Failed", |pod| pod.phase() == "Failed");
    assert_eq!(failed.restarts("one"), 0);
    let table = host.cli_ok(&["get", "pods"]);
    assert!(table.lines().any(|line| line.starts_with("fails-edge-1") && line.contains("Init:Error")), "{table}");
}

#[test]
fn d5_restart_all_containers_keeps_sandbox() {
    let mut host = TestHost::start();
    let spec = "
  restartPolicy: Never
  initContainers:
    - {name: init, IMAGE, command: [/bin/sh, -c, 'echo init >> /work/log']}
    - {name: side, restartPolicy: Always, IMAGE, command: [/bin/sh, -c, 'echo side >> /work/log; exec sleep 1000000']}
  containers:
    - {name: source, restartPolicy: Never, IMAGE, command: [/bin/sh, -c, 'echo source >> /work/log; until [ -e /work/go ]; do sleep 0.1; done; rm /work/go; exit 42'],
       restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}
    - {name: done, IMAGE, command: [/bin/sh, -c, 'echo done >> /work/log']}
    - {name: other, IMAGE, command: [/bin/sh, -c, 'echo other | tee -a /work/log; exec sleep 1000000']}
";
    host.write_manifest("all.yaml", &manifest("all", spec));
    let has_ended = |pod: &crate::support::PodView| pod.container("done")["state"]["terminated"]["exitCode"] == 0;
    let before = host.wait_for_pod("all", "running", |pod| pod.runs("source") && pod.runs("other") && has_ended(pod));
    let (shim, side) = (host.shim_pid(&before), host.container_pid(&before, "side"));
    // A container runs before it writes.
    let written = |lines: usize| {
        eventually(&format!("{lines} lines"), || {
            let log = host.exec("all", "other", &["cat", "/work/log"]);
            if log.lines().count() == lines { Ok(log) } else { Err(log) }
        })
    };
    written(5);
    host.exec("all", "other", &["touch", "/work/go"]);
    let is_again = |pod: &crate::support::PodView| {
        ["init", "side", "source", "done", "other"].iter().all(|name| pod.restarts(name) == 1)
            && pod.runs("source")
            && pod.runs("other")
    };
    let after = host.wait_for_pod("all", "a second round", |pod| is_again(pod) && has_ended(pod));
    assert!(!process_exists(side), "the sidecar of the first round is gone");
    assert_eq!(host.shim_pid(&after), shim, "the sandbox stays");
    let last = |name: &str| after.container(name)["lastState"]["terminated"]["reason"].clone();
    assert_eq!((last("other"), last("source")), ("RestartingAllContainers".into(), "Error".into()), "{}", after.0["status"]);
    let condition = |condition: &&serde_json::Value| condition["type"] == "AllContainersRestarting";
    let conditions = after.0["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.iter().find(condition).unwrap()["status"], "False");
    let log = written(10);
    let order: Vec<&str> = log.lines().collect();
    let again = order.iter().rposition(|line| *line == "init").unwrap();
    fn of_round<'a>(lines: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
        let mut mains = lines[2..].to_vec();
        mains.sort_unstable();
        (lines[..2].to_vec(), mains)
    }
    assert_eq!(of_round(&order[..again]), of_round(&order[again..]), "{log}");
    assert_eq!(order[again + 1], "side", "{log}");
    assert_eq!(host.cli_ok(&["logs", "all", "-c", "other", "--previous"]), "other\n", "logs of the first round are kept");
    // The second time, the source backs off while the others are back already.
    host.exec("all", "other", &["touch", "/work/go"]);
    let third = host.wait_for_pod("all", "a third round", |pod| pod.restarts("other") == 2 && pod.runs("other"));
    assert_eq!(host.shim_pid(&third), shim);
    eventually("the source to back off", || {
        let pod = host.pod("all").ok_or("no pod")?;
        (pod.waiting_reason("source") == "CrashLoopBackOff").then_some(()).ok_or_else(|| pod.0["status"].to_string())
    });
    // The round is known from the records alone.
    host.kill_daemon();
    host.start_daemon();
    let adopted =
        host.wait_for_pod("all", "the source to back off still", |pod| pod.waiting_reason("source") == "CrashLoopBackOff");
    assert_eq!(adopted.container_id("other"), third.container_id("other"));
}

#[test]
fn d14_pod_ends_after_its_sidecars() {
    let host = TestHost::start();
    let spec = "
  restartPolicy: Never
  terminationGracePeriodSeconds: 600
  initContainers:
    - {name: side, restartPolicy: Always, IMAGE,
       command: [/bin/sh, -c, 'trap \"touch /work/asked\" TERM; until [ -e /work/go ]; do sleep 0.1; done']}
  containers:
    - {name: main, IMAGE, command: [/bin/sh, -c, 'echo done']}
";
    host.write_manifest("job.yaml", &manifest("job", spec).replace("  terminationGracePeriodSeconds: 1\n", ""));
    let has_ended = |pod: &crate::support::PodView| pod.container("main")["state"]["terminated"]["exitCode"] == 0;
    let ending = host.wait_for_pod("job", "the end of its main container", has_ended);
    assert_eq!((ending.phase(), ending.runs("side")), ("Running", true));
    eventually("the sidecar to be asked to stop", || {
        let out = host.cli(&["exec", "job", "-c", "side", "--", "test", "-e", "/work/asked"]);
        out.status.success().then_some(()).ok_or_else(|| format!("{out:?}"))
    });
    let asked = host.pod("job").unwrap();
    assert_eq!((asked.phase(), asked.runs("side")), ("Running", true));
    host.exec("job", "side", &["touch", "/work/go"]);
    let over = host.wait_for_pod("job", "Succeeded", |pod| pod.phase() == "Succeeded");
    assert!(!over.runs("side") && over.restarts("side") == 0, "{}", over.0["status"]);
}
