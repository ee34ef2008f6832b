//! Claims of StatefulSets whose data are deleted, or kept, when an ordinal goes.

use super::{is_ready, name};
use crate::support::{TestHost, eventually, eventually_within};
use std::time::Duration;

fn stateful_set(replicas: u32, when_scaled: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: {replicas}
  serviceName: db
  persistentVolumeClaimRetentionPolicy: {{whenScaled: {when_scaled}}}
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: localhost/busybox:1
          command: [sh, -c, 'echo started >> /data/starts; exec sleep 1000000']
          volumeMounts: [{{name: data, mountPath: /data}}]
  volumeClaimTemplates:
    - metadata: {{name: data}}
      spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}
"
    )
}

const READER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: 'localhost/busybox:1', command: [sleep, '1000000'], volumeMounts: [{name: data, mountPath: /data}]}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data-db-1}}]
";

fn wait_ready(host: &TestHost, expected: &[&str]) {
    // Housekeeping, which deletes data, looks once a minute where nothing else tells it to.
    eventually_within(Duration::from_secs(150), &format!("{expected:?}, all ready"), || {
        let pods: Vec<_> = host.pods().into_iter().filter(|pod| name(pod).starts_with("db-")).collect();
        let mut names: Vec<String> = pods.iter().map(name).collect();
        names.sort();
        let found = pods.iter().all(is_ready) && names == expected;
        if found { Ok(()) } else { Err(format!("{names:?}\n{}", host.cli_ok(&["get", "all"]))) }
    });
}

fn starts(host: &TestHost) -> usize {
    host.cli_ok(&["exec", "db-1", "--", "cat", "/data/starts"]).lines().count()
}

#[test]
fn ordinal_comes_back_with_kept_data() {
    let host = TestHost::start();
    host.write_manifest("db.yaml", &stateful_set(2, "Retain"));
    wait_ready(&host, &["db-0", "db-1"]);
    host.write_manifest("db.yaml", &stateful_set(1, "Retain"));
    wait_ready(&host, &["db-0"]);
    host.write_manifest("db.yaml", &stateful_set(2, "Retain"));
    wait_ready(&host, &["db-0", "db-1"]);
    assert_eq!(starts(&host), 2);
}

/// TS12: the data of the ordinal are in use by another pod, so they are not deleted, and the ordinal waits.
#[test]
fn ordinal_comes_back_without_deleted_data() {
    let mut host = TestHost::start();
    host.write_manifest("db.yaml", &stateful_set(2, "Delete"));
    wait_ready(&host, &["db-0", "db-1"]);
    host.write_manifest("reader.yaml", READER);
    host.wait_running("reader");
    host.write_manifest("db.yaml", &stateful_set(1, "Delete"));
    wait_ready(&host, &["db-0"]);
    let claims = || host.cli_ok(&["get", "persistentvolumeclaims"]);
    eventually("the claim to be released", || {
        let claims = claims();
        claims.lines().any(|line| line.contains("data-db-1") && line.contains("Released")).then_some(()).ok_or(claims)
    });
    host.write_manifest("db.yaml", &stateful_set(2, "Delete"));
    let is_waited_for = |host: &TestHost| {
        eventually("a StatefulSet of two that has one pod", || {
            let set = host.cli_ok(&["get", "statefulsets", "db", "-o", "json"]);
            let value: serde_json::Value = serde_json::from_str(&set).unwrap();
            let (spec, status) = (&value["spec"]["replicas"], &value["status"]["replicas"]);
            if (spec, status) == (&2.into(), &1.into()) { Ok(()) } else { Err(set) }
        });
        assert!(host.pod("db-1").is_none(), "the earlier data are not deleted yet");
    };
    is_waited_for(&host);
    host.kill_daemon();
    host.start_daemon();
    is_waited_for(&host);
    host.remove_manifest("reader.yaml");
    wait_ready(&host, &["db-0", "db-1"]);
    assert_eq!(starts(&host), 1, "these are new data");
}
