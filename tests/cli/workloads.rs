//! Subcommands about workloads.

use crate::host::{Host, desired, reference_to, text};
use podstead::expand::{ShownWorkload, WorkloadSink};
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use podstead::workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// A Deployment with a ReplicaSet and two pods, and a CronJob.
fn with_web() -> (Host, ShownWorkload) {
    let host = Host::start();
    host.publish_source(None, None);
    let counts = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1});
    let number = json!({"deployment.kubernetes.io/revision": "1"});
    let parts = json!({"metadata": {"annotations": number}, "spec": {"replicas": 2}, "status": counts});
    let web = host.publish_workload(WorkloadKind::Deployment, "default", "web", parts);
    let metadata = json!({"ownerReferences": [reference_to(&web)], "annotations": number});
    let parts = json!({"metadata": metadata, "spec": {"replicas": 2}, "status": counts});
    let set = host.publish_workload(WorkloadKind::ReplicaSet, "default", "web-7d9c", parts);
    host.publish_owned("web-7d9c-0", &set);
    host.publish_owned("web-7d9c-1", &set);
    host.publish_workload(WorkloadKind::CronJob, "default", "dump", json!({"spec": {"schedule": "@daily", "suspend": false}}));
    (host, set)
}

#[test]
fn workloads_have_the_columns_of_kubectl() {
    let (host, _) = with_web();
    let expected = "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    2/2     2            2           3h20m\n";
    for words in
        [&["get", "deployments"][..], &["get", "deploy", "web"], &["get", "deploy/web"], &["get", "-n", "default", "deploy"]]
    {
        assert_eq!(host.run(words), expected, "{words:?}");
    }
    let wide = host.run(&["get", "rs", "-o", "wide", "--no-headers"]);
    assert_eq!(wide, "web-7d9c   2         2         2       3h20m   main         nginx:1.27   app=web-7d9c\n");
    assert!(
        host.run(&["get", "cj", "-o", "wide"]).starts_with("NAME   SCHEDULE   TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE")
    );
    assert_eq!(host.run(&["get", "deploy,rs", "-o", "name"]), "deployment.apps/web\nreplicaset.apps/web-7d9c\n");
    assert_eq!(host.run(&["get", "deploy", "-l", "app=other", "-o", "name"]), "");
    let one: Value = serde_json::from_str(&host.run(&["get", "deploy/web", "-o", "json"])).unwrap();
    assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("Deployment"), &json!("apps/v1")));
    let both: Value = serde_json::from_str(&host.run(&["get", "deploy,rs", "-o", "json"])).unwrap();
    assert_eq!((&both["kind"], both["items"].as_array().unwrap().len()), (&json!("List"), 2));
}

#[test]
fn all_lists_pods_and_workloads() {
    let (host, _) = with_web();
    let all = host.run(&["get", "all"]);
    let tables: Vec<&str> = all.split("\n\n").collect();
    assert_eq!(tables.len(), 4, "{all}");
    assert!(tables[0].contains("pod/web-7d9c-0-edge   1/1     Running"), "{all}");
    assert!(tables[1].contains("\ndeployment.apps/web "), "{all}");
    assert!(tables[2].contains("\nreplicaset.apps/web-7d9c "), "{all}");
    assert!(tables[3].contains("\ncronjob.batch/dump "), "{all}");
    host.publish_workload(WorkloadKind::Job, "shop", "once", json!({}));
    assert!(host.run(&["get", "all"]).starts_with("NAMESPACE   NAME"));
    assert!(host.run(&["get", "jobs", "-n", "shop"]).starts_with("NAME "));
}

#[test]
fn unknown_types_and_names_are_refused() {
    let (host, _) = with_web();
    for (words, code, expected) in [
        (&["get", "deplyo"][..], 2, r#"unknown type "deplyo", did you mean "deploy"?; see podstead get --help"#),
        (&["get", "deploy", "wbe"], 1, r#"deployments.apps "wbe" not found, did you mean "web"?"#),
        (&["get", "deploy", "web", "-n", "shop"], 1, r#"deployments.apps "web" not found in namespace "shop""#),
        (&["get", "deploy,rs", "-w"], 1, "only one type can be watched at a time"),
        (&["get"], 2, "Usage: podstead get"),
        (&["describe", "web"], 2, r#"expected TYPE/NAME, not "web""#),
        (&["rollout", "status", "po/x"], 1, "pods are not rolled out: name a Deployment, StatefulSet or DaemonSet"),
        (&["rollout", "history", "sts/x"], 1, "only Deployments list their revisions"),
        (&["describe", "cm/x"], 1, r#"configmaps "x" not found"#),
        (&["logs", "cj/dump"], 1, "cronjob.batch/dump has no pods"),
        (&["logs", "deploy/nosuch"], 1, r#"deployments.apps "nosuch" not found"#),
        (&["job", "run", "nosuch"], 1, r#"cronjobs.batch "nosuch" not found"#),
        (&["job", "run", "dump"], 1, "this daemon does not run workloads"),
        (&["rollout", "status", "job/x"], 1, r#"jobs.batch "x" not found"#),
    ] {
        let (found, message) = host.fail(words);
        assert!(found == code && message.contains(expected), "{words:?}: {found} {message}");
    }
    let output = host.output(&["get", "sts"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), "No resources found.\n".into()));
}

#[test]
fn workloads_are_watched_in_one_table() {
    let (host, _) = with_web();
    let mut child = host.command(&["get", "deploy", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.by_ref().take(2).count(), 2);
    host.publish_workload(WorkloadKind::Deployment, "default", "web", json!({"spec": {"replicas": 3}}));
    assert_eq!(lines.next().unwrap(), "web    0/3     0            0           3h20m");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn deployment_is_described_with_its_events() {
    let (host, _) = with_web();
    let subject = Subject::Workload {
        uid: "uid-Deployment-default-web".into(),
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "default".into(),
        name: "web".into(),
    };
    host.events.record(&subject, EventType::Normal, "ScalingReplicaSet", "Scaled up replica set web-7d9c from 0 to 2");
    for words in [&["describe", "deploy", "web"][..], &["describe", "deploy/web"], &["describe", "deployment.apps/web"]] {
        let described = host.run(words);
        for line in [
            "Manifest:            web.yaml:1:1",
            "Replicas:            2 desired, 2 updated, 2 total, 2 available, 0 unavailable",
            "New ReplicaSet:      web-7d9c (2/2 replicas created)",
        ] {
            assert!(described.lines().any(|other| other == line), "{line}\n{described}");
        }
        assert!(described.contains("ScalingReplicaSet   Scaled up replica set web-7d9c from 0 to 2"), "{described}");
    }
    assert!(host.run(&["describe", "rs", "web-7d9c"]).contains("Controlled By:       Deployment/web\n"));
    assert!(host.run(&["describe", "pod", "web-7d9c-0"]).contains("Controlled By:       ReplicaSet/web-7d9c\n"));
    assert_eq!(host.run(&["get", "events", "--for", "deploy/web"]).lines().count(), 2);
}

#[test]
fn best_pod_of_workload_is_chosen() {
    let (host, _) = with_web();
    for number in 0..2 {
        let pod = desired("default", &format!("web-7d9c-{number}"), json!({}));
        let path = host.paths.container_log(&pod.full_name, &pod.uid, "main", 0);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("2026-01-01T00:00:00Z stdout F of {number}\n")).unwrap();
    }
    let output = host.output(&["logs", "deploy/web"]);
    assert_eq!(text(&output.stdout), "of 0\n", "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "Found 2 pods, using pod/web-7d9c-0-edge\n");
    let all = host.run(&["logs", "--all-pods", "rs/web-7d9c"]);
    assert_eq!(all, "[web-7d9c-0-edge/main] of 0\n[web-7d9c-1-edge/main] of 1\n");
    assert_eq!(host.run(&["exec", "deploy/web", "--", "echo", "hello"]), "hello in main-0\n");
    assert_eq!(host.run(&["logs", "pod/web-7d9c-1"]), "of 1\n");
}

#[test]
fn rollout_is_followed_until_it_is_complete() {
    let (host, _) = with_web();
    assert_eq!(host.run(&["rollout", "status", "deploy/web"]), "deployment \"web\" successfully rolled out\n");
    let status = |updated: u32| {
        json!({"spec": {"replicas": 2}, "status": {
            "replicas": 2, "readyReplicas": 2, "updatedReplicas": updated, "availableReplicas": 2, "observedGeneration": 1,
        }})
    };
    host.publish_workload(WorkloadKind::Deployment, "default", "web", status(1));
    let waiting = "Waiting for deployment \"web\" rollout to finish: 1 out of 2 new replicas have been updated...";
    assert_eq!(host.run(&["rollout", "status", "deploy/web", "--watch=false"]), format!("{waiting}\n"));
    let mut child = host.command(&["rollout", "status", "deploy/web"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), waiting);
    host.publish_workload(WorkloadKind::Deployment, "default", "web", status(2));
    assert_eq!(lines.next().unwrap(), "deployment \"web\" successfully rolled out");
    assert!(child.wait().unwrap().success());
    let history = host.run(&["rollout", "history", "deploy/web"]);
    assert_eq!(host.run(&["rollout", "history", "deploy/web", "-o", "name"]), "replicaset.apps/web-7d9c\n");
    assert_eq!(host.run(&["rollout", "history", "deploy/web", "-o", "jsonpath={.items[0].kind}"]).trim(), "ReplicaSet");
    let expected = "REVISION   REPLICASET   REPLICAS   IMAGES       CHANGE-CAUSE\n\
                    1          web-7d9c     2          nginx:1.27   <none>\n";
    assert_eq!(history, expected);
}

#[test]
fn status_names_owner_and_workload_in_trouble() {
    let (host, set) = with_web();
    assert!(host.run(&["status"]).ends_with("\n2 pods, all healthy\n2 workloads, all healthy\n"));
    let pod = host.publish_owned("web-7d9c-0", &set);
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
    let container = json!({"name": "main", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": waiting});
    host.published_status(&pod, json!({"phase": "Running", "containerStatuses": [container]}));
    let condition = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"});
    let parts = json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 1, "conditions": [condition]}});
    let web = host.publish_workload(WorkloadKind::Deployment, "default", "web", parts);
    let report = host.run(&["status"]);
    assert!(report.contains("\n  web-7d9c-0-edge (deployment web): CrashLoopBackOff, 1 restart\n"), "{report}");
    let expected = "\n2 workloads, 1 unhealthy\n  deployment web: does not progress\n      ProgressDeadlineExceeded: timed out\n      \
                    1 of 2 pods are ready\n      -> podstead describe deployment/web\n";
    assert!(report.ends_with(expected), "{report}");
    host.published.withdraw_workload(&web.key);
    assert!(host.run(&["status"]).contains("(replicaset web-7d9c)"));
}
