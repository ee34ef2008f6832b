//! Deployments, StatefulSets, DaemonSets, Jobs and CronJobs with real containers, through kills of the daemon and power cuts.

mod boutique;
mod claims;
mod podinfo;
mod postgres;

use crate::support::{PodView, TestHost, eventually, eventually_within};
use std::collections::BTreeSet;
use std::time::Duration;

fn deployment(replicas: u32, marker: &str, more: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  {more}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: localhost/busybox:1
          env: [{{name: MARKER, value: '{marker}'}}]
          command: [sh, -c, 'echo $MARKER; exec sleep 1000000']
"
    )
}

fn name(pod: &PodView) -> String {
    pod.0["metadata"]["name"].as_str().unwrap().to_owned()
}

fn is_ready(pod: &PodView) -> bool {
    let conditions = pod.0["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && pod.0["metadata"]["deletionTimestamp"].is_null()
}

/// The values of MARKER of all pods.
fn markers(host: &TestHost) -> Vec<String> {
    let marker = |pod: &PodView| pod.0["spec"]["containers"][0]["env"][0]["value"].as_str().unwrap_or_default().to_owned();
    host.pods().iter().map(marker).collect()
}

/// Waits until exactly `count` pods exist and all are ready, with this marker.
fn wait_ready(host: &TestHost, count: usize, marker: &str) -> Vec<PodView> {
    eventually_within(Duration::from_secs(60), &format!("{count} ready pods with {marker}"), || {
        let pods = host.pods();
        let all = pods.len() == count && pods.iter().all(is_ready) && markers(host).iter().all(|found| found == marker);
        match all {
            true => Ok(pods),
            false => Err(pods
                .iter()
                .map(|pod| format!("{} {} {}", name(pod), pod.phase(), is_ready(pod)))
                .collect::<Vec<_>>()
                .join("\n")),
        }
    })
}

fn names(pods: &[PodView]) -> BTreeSet<String> {
    pods.iter().map(name).collect()
}

fn uids(pods: &[PodView]) -> BTreeSet<String> {
    pods.iter().map(PodView::uid).collect()
}

#[test]
fn deployment_runs_scales_and_rolls_out() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &deployment(2, "one", ""));
    let first = wait_ready(&host, 2, "one");
    assert!(names(&first).iter().all(|name| name.starts_with("web-") && name.split('-').count() == 3), "{:?}", names(&first));
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(uids(&wait_ready(&host, 2, "one")), uids(&first), "the daemon's death changes no pod");
    host.write_manifest("web.yaml", &deployment(3, "one", ""));
    let grown = wait_ready(&host, 3, "one");
    assert!(uids(&first).is_subset(&uids(&grown)), "scaling restarts nothing");
    host.write_manifest("web.yaml", &deployment(3, "two", ""));
    let second = wait_ready(&host, 3, "two");
    assert!(names(&second).is_disjoint(&names(&grown)));
    host.write_manifest("web.yaml", &deployment(3, "one", ""));
    let back = wait_ready(&host, 3, "one");
    let hash = |pods: &[PodView]| pods[0].0["metadata"]["labels"]["pod-template-hash"].as_str().unwrap().to_owned();
    assert_eq!(hash(&back), hash(&first), "an earlier template is the earlier revision");
    host.remove_manifest("web.yaml");
    eventually("no pod", || match host.pods().len() {
        0 => Ok(()),
        count => Err(format!("{count} pods")),
    });
}

/// W12: the way back is that of the source.
#[test]
fn rollback_of_source_brings_back_earlier_template() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &deployment(2, "one", ""));
    let first = wait_ready(&host, 2, "one");
    assert_eq!(host.cli_ok(&["exec", "deploy/web", "--", "sh", "-c", "echo $MARKER"]), "one\n");
    host.write_manifest("web.yaml", &deployment(2, "two", ""));
    wait_ready(&host, 2, "two");
    let diff = host.cli_ok(&["diff"]);
    assert!(diff.contains("Deployment default/web") && diff.contains("- one\n") && diff.contains("+ two\n"), "{diff}");
    host.cli_ok(&["rollback"]);
    let back = wait_ready(&host, 2, "one");
    let hash = |pods: &[PodView]| pods[0].0["metadata"]["labels"]["pod-template-hash"].as_str().unwrap().to_owned();
    assert_eq!(hash(&back), hash(&first));
    host.cli_ok(&["resume"]);
    wait_ready(&host, 2, "two");
}

#[test]
fn power_cut_ends_with_new_template() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &deployment(4, "one", "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"));
    wait_ready(&host, 4, "one");
    host.write_manifest("web.yaml", &deployment(4, "two", "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"));
    eventually("the rollout is on its way", || match markers(&host).iter().filter(|marker| *marker == "two").count() {
        0 => Err("nothing new yet".to_owned()),
        _ => Ok(()),
    });
    host.lose_power();
    host.start_daemon();
    wait_ready(&host, 4, "two");
}

/// W14.
#[test]
fn missing_image_stops_no_pod_of_rollout() {
    let host = TestHost::start();
    let recreate = "strategy: {type: Recreate}";
    host.write_manifest("web.yaml", &deployment(1, "one", recreate));
    let first = wait_ready(&host, 1, "one");
    let broken = deployment(1, "two", recreate).replace("localhost/busybox:1", "127.0.0.1:9/missing:1");
    host.write_manifest("web.yaml", &broken);
    eventually("the reason", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("WaitingForImages") { Ok(()) } else { Err(events) }
    });
    assert_eq!(uids(&wait_ready(&host, 1, "one")), uids(&first));
    host.write_manifest("web.yaml", &deployment(1, "two", recreate));
    wait_ready(&host, 1, "two");
}

const STATEFUL_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: localhost/busybox:1
          env: [{name: MARKER, value: 'one'}]
          command: [sh, -c, 'echo $MARKER >> /data/starts; exec sleep 1000000']
          volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";

#[test]
fn stateful_set_keeps_names_order_and_data() {
    let mut host = TestHost::start();
    host.write_manifest("db.yaml", STATEFUL_SET);
    let first = wait_ready(&host, 3, "one");
    assert_eq!(names(&first), ["db-0", "db-1", "db-2"].map(str::to_owned).into());
    let started = |index: usize| {
        let pod = first.iter().find(|pod| name(pod) == format!("db-{index}")).unwrap();
        pod.0["status"]["startTime"].as_str().unwrap().to_owned()
    };
    assert!(started(0) <= started(1) && started(1) <= started(2));
    host.write_manifest("db.yaml", &STATEFUL_SET.replace("'one'", "'two'"));
    let second = wait_ready(&host, 3, "two");
    assert_eq!(names(&second), names(&first));
    assert!(uids(&second).is_disjoint(&uids(&first)));
    host.lose_power();
    host.start_daemon();
    wait_ready(&host, 3, "two");
    let data = host.cli_ok(&["exec", "db-1", "--", "cat", "/data/starts"]);
    assert_eq!(data.lines().collect::<Vec<_>>(), ["one", "two", "two"], "each pod has the data of its ordinal");
}

#[test]
fn daemon_set_runs_where_its_selector_matches() {
    let host = TestHost::start();
    let daemon_set = |selector: &str| {
        format!(
            "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {{{selector}}}
      containers: [{{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000'], env: [{{name: MARKER, value: x}}]}}]
"
        )
    };
    host.write_manifest("agent.yaml", &daemon_set("kubernetes.io/os: linux, beta.kubernetes.io/os: linux"));
    wait_ready(&host, 1, "x");
    host.write_manifest("agent.yaml", &daemon_set("kubernetes.io/os: plan9"));
    eventually("no pod", || match host.pods().len() {
        0 => Ok(()),
        count => Err(format!("{count} pods")),
    });
}

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: count}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: localhost/busybox:1
          command: [sh, -c, 'echo index $JOB_COMPLETION_INDEX on $(hostname)']
";

#[test]
fn indexed_job_completes_once() {
    let mut host = TestHost::start();
    host.write_manifest("job.yaml", JOB);
    let done = |host: &TestHost| {
        eventually("three pods that succeeded", || {
            let pods = host.pods();
            let succeeded = pods.iter().filter(|pod| pod.phase() == "Succeeded").count();
            if pods.len() == 3 && succeeded == 3 { Ok(pods) } else { Err(format!("{succeeded} of {}", pods.len())) }
        })
    };
    let first = done(&host);
    assert_eq!(names(&first), ["count-0-0", "count-1-0", "count-2-0"].map(str::to_owned).into());
    assert_eq!(host.cli_ok(&["logs", "count-2-0"]), "index 2 on count-2\n");
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(uids(&done(&host)), uids(&first));
    host.lose_power();
    host.start_daemon();
    assert_eq!(uids(&done(&host)), uids(&first), "a Job that is complete does not run again");
}

#[test]
fn failing_job_is_retried_and_given_up() {
    let host = TestHost::start();
    let job = JOB.replace("completionMode: Indexed", "backoffLimit: 0").replace("completions: 3", "completions: 1");
    host.write_manifest("job.yaml", &job.replace("echo index", "exit 3; echo"));
    eventually("the verdict", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("BackoffLimitExceeded") { Ok(()) } else { Err(events) }
    });
    assert_eq!(names(&host.pods()), ["count-0".to_owned()].into());
}

const CRON_JOB: &str = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: 'localhost/busybox:1', command: [echo, tick]}]
";

#[test]
fn cron_job_runs_across_a_restart() {
    let mut host = TestHost::start();
    host.write_manifest("tick.yaml", CRON_JOB);
    let succeeded = |host: &TestHost, count: usize| {
        eventually_within(Duration::from_secs(260), &format!("{count} runs"), || {
            let pods = host.pods();
            let done = pods.iter().filter(|pod| pod.phase() == "Succeeded").count();
            if done >= count { Ok(pods) } else { Err(format!("{done} done\n{}", host.daemon_log())) }
        })
    };
    let first = succeeded(&host, 1);
    host.kill_daemon();
    host.start_daemon();
    let both = succeeded(&host, 2);
    assert!(names(&first).is_subset(&names(&both)), "{:?}", names(&both));
}

#[test]
fn plan_shows_the_end_of_a_rollout() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &deployment(2, "one", ""));
    let first = wait_ready(&host, 2, "one");
    let plan = |marker: &str| {
        let edited = host.path("edited");
        std::fs::create_dir_all(&edited).unwrap();
        std::fs::write(edited.join("web.yaml"), deployment(2, marker, "")).unwrap();
        let config = host.path("config.yaml");
        let output = host.cli(&["--config", config.to_str().unwrap(), "plan", edited.to_str().unwrap()]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let same = plan("one");
    assert!(same.ends_with("0 to create, 0 to update, 0 to recreate, 0 to remove, 2 unchanged\n"), "{same}");
    let rollout = plan("two");
    assert!(rollout.ends_with("2 to create, 0 to update, 0 to recreate, 2 to remove, 0 unchanged\n"), "{rollout}");
    assert!(names(&first).iter().all(|name| rollout.contains(&format!("- remove pod default/{name}"))), "{rollout}");
    assert_eq!(uids(&wait_ready(&host, 2, "one")), uids(&first), "nothing was changed");
}

#[test]
fn operator_starts_cron_job_and_follows_deployment() {
    let host = TestHost::start();
    host.write_manifest("tick.yaml", &CRON_JOB.replace("'* * * * *'", "'0 0 1 1 *'"));
    host.write_manifest("web.yaml", &deployment(2, "one", ""));
    let job = eventually("the run", || {
        let output = host.cli(&["job", "run", "tick"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
    let job = job.trim().strip_prefix("job.batch/").and_then(|job| job.strip_suffix(" created")).unwrap().to_owned();
    eventually("the Job to complete", || {
        let jobs = host.cli_ok(&["get", "jobs"]);
        let is_complete = jobs.lines().any(|line| line.starts_with(&job) && line.contains("Complete"));
        if is_complete { Ok(()) } else { Err(jobs) }
    });
    assert_eq!(host.cli_ok(&["logs", &format!("job/{job}")]), "tick\n");
    assert!(!host.cli(&["job", "run", "none"]).status.success());
    let deployments = eventually("the Deployment", || {
        let deployments = host.cli_ok(&["get", "deploy"]);
        if deployments.contains("2/2") { Ok(deployments) } else { Err(deployments) }
    });
    assert!(deployments.starts_with("NAME"), "{deployments}");
    assert!(host.cli_ok(&["rollout", "status", "deploy/web"]).contains("successfully rolled out"));
    assert_eq!(host.cli_ok(&["logs", "deploy/web"]), "one\n");
    let described = host.cli_ok(&["describe", "deploy/web"]);
    assert!(described.contains("ScalingReplicaSet") && described.contains("2 desired"), "{described}");
    let all = host.cli_ok(&["get", "all"]);
    for kind in ["deployment.apps/web", "replicaset.apps/web-", "cronjob.batch/tick", "job.batch/tick-", "pod/web-"] {
        assert!(all.contains(kind), "{all}");
    }
}

/// `manifests/workloads`.
#[test]
fn examples_run() {
    let host = TestHost::start();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/workloads");
    for example in std::fs::read_dir(examples).unwrap().map(Result::unwrap) {
        let name = example.file_name().into_string().unwrap();
        host.write_manifest(&name, &std::fs::read_to_string(example.path()).unwrap());
    }
    let is_there = |text: &str, name: &str, state: &str| text.lines().any(|line| line.starts_with(name) && line.contains(state));
    eventually("all workloads as they should be", || {
        let all = host.cli_ok(&["get", "all"]);
        let expected = [
            ("deployment.apps/web", "2/2"),
            ("statefulset.apps/store", "2/2"),
            ("pod/worker-0", "1/1"),
            ("pod/worker-1", "1/1"),
            ("daemonset.apps/agent", "1"),
            ("pod/agent-", "1/1"),
            ("job.batch/import", "Complete"),
            ("cronjob.batch/nightly", "30 2 * * *"),
        ];
        if expected.iter().all(|(name, state)| is_there(&all, name, state)) { Ok(()) } else { Err(all) }
    });
    eventually("the agent to read the load of the host", || {
        let output = host.cli(&["logs", "ds/agent"]);
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        // Three averages, processes, and the last process id.
        let is_load = log.lines().next().is_some_and(|line| line.split(' ').count() == 5 && line.contains('/'));
        if is_load { Ok(()) } else { Err(format!("{log}{}", String::from_utf8_lossy(&output.stderr))) }
    });
}
