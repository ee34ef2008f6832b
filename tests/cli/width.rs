//! Tables and texts in a terminal of 80 columns.

use crate::host::{Host, desired, reference_to};
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use podstead::workload::object::WorkloadKind;
use serde_json::json;

const LONG: &str = "cannot reach https://git.example.com/fleet/manifests.git: the connection was refused by 192.0.2.17 port 443 after 30 s. \
                    Nothing changed; 3 pods keep running (revision 0123456789ab)";

/// A host whose every table is wider than 80 columns.
fn wide_host() -> Host {
    let host = Host::start();
    for (namespace, name) in [("default", "payment-gateway"), ("kube-system", "node-problems"), ("default", "web")] {
        let pod = host.publish_running(namespace, name);
        let subject = Subject::Pod { uid: pod.uid.clone(), full_name: pod.full_name.clone(), field_path: None };
        host.events.record(
            &subject,
            EventType::Warning,
            "BackOff",
            "Back-off restarting failed container main in pod, last exit code 137",
        );
    }
    let failing = desired("default", "inventory", json!({}));
    host.published_status(
        &failing,
        json!({
            "phase": "Running",
            "containerStatuses": [{
                "name": "main", "ready": false, "restartCount": 12, "image": "nginx:1.27", "imageID": "",
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=main pod=inventory"}},
                "lastState": {"terminated": {"exitCode": 137, "finishedAt": "2026-01-01T00:00:00Z", "reason": "OOMKilled"}},
            }],
        }),
    );
    host.publish_workload(WorkloadKind::Deployment, "default", "payment-gateway-frontend", json!({}));
    host.publish_source(
        Some("unknown field, and a message that is so long that it does not fit a line of the terminal"),
        Some(LONG),
    );
    host
}

#[test]
fn output_fits_eighty_columns() {
    let host = wide_host();
    for arguments in [
        &["get", "pods", "-A"][..],
        &["get", "events", "-A"],
        &["get", "sources"],
        &["get", "deployments"],
        &["history", "manifests"],
        &["describe", "pod", "inventory"],
        &["status"],
    ] {
        let output = host.command(arguments).env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{arguments:?}: {long:#?}");
        // Each word is on one line, as without a terminal.
        let unfolded = host.run_any(arguments);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let known = words(&unfolded);
        for word in words(&text).iter().filter(|word| word.len() > 3) {
            let word = word.trim_end_matches(['/', ',', '@']);
            assert!(known.iter().any(|whole| whole.contains(word)), "{arguments:?} cuts {word:?}: {text}");
        }
    }
}

#[test]
fn folded_table_is_as_recorded() {
    let host = wide_host();
    let output = host.command(&["get", "sources"]).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("NAME       KIND       REVISION      PODS  REJECTED  CONTACT  CHANGED  STATUS"));
    assert!(text.contains("\nmanifests: cannot reach https://git.example.com/fleet/manifests.git: the\n  connection"), "{text}");
}

#[test]
fn failing_source_names_running_pods_once() {
    let host = wide_host();
    let text = host.run_any(&["status"]);
    assert_eq!(text.matches("keep running").count(), 1, "{text}");
}

#[test]
fn pod_shows_refused_edit_of_its_owners() {
    let host = Host::start();
    let deployment = host.publish_workload(WorkloadKind::Deployment, "default", "web", json!({}));
    let number = json!({"deployment.kubernetes.io/revision": "1"});
    let owned = json!({"metadata": {"ownerReferences": [reference_to(&deployment)], "annotations": number}});
    let set = host.publish_workload(WorkloadKind::ReplicaSet, "default", "web-7d9c", owned);
    host.publish_owned("web-7d9c-0", &set);
    host.publish_running("default", "other");
    host.publish_source_of(Some("unknown field"), Some(deployment.key.clone()), None);
    let described = host.run(&["describe", "pod", "web-7d9c-0"]);
    let expected = "Rejected Edit:       Deployment/web: bad.yaml:19:3: error[unknown-field]: spec.hostNetwrok: unknown field\n";
    assert!(described.contains(expected), "{described}");
    assert!(!host.run(&["describe", "pod", "other"]).contains("Rejected Edit"));
}
