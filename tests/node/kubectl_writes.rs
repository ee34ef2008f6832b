//! The real kubectl writes to a writable source of a real daemon. Skipped where there is no kubectl.

use crate::support::eventually;
use crate::support::kubectl::{Kubectl, every_kubectl, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn pod(name: &str, marker: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, 'echo {marker}; exec sleep 1000000']
"
    )
}

#[test]
fn applied_pod_is_a_file_and_runs() {
    let Some(mut kubectl) = Kubectl::start("") else { return };
    assert_eq!(kubectl.apply(&pod("web", "one")), "pod/web created\n");
    let expected = "apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
spec:
  containers:
  - name: main
    image: localhost/busybox:1
    command:
    - sh
    - \"-c\"
    - echo one; exec sleep 1000000
  terminationGracePeriodSeconds: 1
";
    assert_eq!(kubectl.file("web.pod.yaml"), expected);
    let phase = ["get", "pod", "web", "-o", "jsonpath={.status.phase}"];
    let wait = |kubectl: &Kubectl, what: &str| {
        eventually(what, || {
            let found = kubectl.output(&phase, "");
            if text(&found.stdout) == "Running" { Ok(()) } else { Err(text(&found.stderr)) }
        });
    };
    wait(&kubectl, "the pod to run");
    assert_eq!(kubectl.apply(&pod("web", "one")), "pod/web unchanged\n");
    assert_eq!(kubectl.apply(&pod("web", "two")), "pod/web configured\n");
    assert_eq!(kubectl.file("web.pod.yaml"), expected.replace("echo one", "echo two"));
    let history = kubectl.host.cli_ok(&["history", "manifests", "-o", "wide"]);
    assert!(
        history.contains("patch Pod default/web in web.pod.yaml (kubectl-client-side-apply)") && history.contains("(uid 0)"),
        "{history}"
    );

    kubectl.host.lose_power();
    kubectl.host.start_daemon();
    wait(&kubectl, "the pod to run after a power cut");
    assert_eq!(kubectl.apply(&pod("web", "two")), "pod/web unchanged\n");
    assert!(kubectl.run(&["delete", "pod", "web"], "").starts_with("pod \"web\" deleted"));
    assert!(!kubectl.has_file("web.pod.yaml"));
}

#[test]
fn hand_written_file_keeps_its_form() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let written = "# ours
kind: ConfigMap
apiVersion: v1
metadata:
  name: settings # short
data:
  a: one # the first
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {x: y}
";
    kubectl.host.write_manifest("settings.yaml", written);
    eventually("the ConfigMap to be read", || {
        let found = kubectl.output(&["get", "cm", "settings"], "");
        if found.status.success() { Ok(()) } else { Err(text(&found.stderr)) }
    });
    kubectl.run(&["patch", "cm", "settings", "--type=merge", "-p", r#"{"data":{"a":"two"}}"#], "");
    assert_eq!(kubectl.file("settings.yaml"), written.replace("one #", "two #"));
    kubectl.run(&["annotate", "cm", "settings", "n=1"], "");
    kubectl.run(&["annotate", "cm", "settings", "n-"], "");
    kubectl.run(&["patch", "cm", "settings", "--type=json", "-p", r#"[{"op":"replace","path":"/data/a","value":"one"}]"#], "");
    assert_eq!(kubectl.file("settings.yaml"), written);
    kubectl.run(&["delete", "cm", "settings"], "");
    assert!(!kubectl.file("settings.yaml").contains("settings") && kubectl.file("settings.yaml").contains("other"));
    let failure = kubectl.fail(&["delete", "cm", "settings"], "");
    assert!(failure.contains(r#"configmaps "settings" not found"#), "{failure}");
}

/// Each answer, and each read after it, has the change.
#[test]
fn answer_has_the_change() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.run(&["create", "configmap", "settings", "--from-literal=a=1"], "");
    let data = "jsonpath={.data}";
    for _ in 0..5 {
        let patch = |form: &str, patch: &str| {
            let told = kubectl.run(&["patch", "cm", "settings", form, "-p", patch, "-o", data], "");
            assert_eq!(kubectl.run(&["get", "cm", "settings", "-o", data], ""), told);
            told
        };
        assert_eq!(patch("--type=merge", r#"{"data":{"b":"2"}}"#), r#"{"a":"1","b":"2"}"#);
        assert_eq!(patch("--type=json", r#"[{"op":"remove","path":"/data/b"}]"#), r#"{"a":"1"}"#);
        for (change, expected) in [("n=1", "1"), ("n-", "")] {
            for (verb, field) in [("annotate", "annotations"), ("label", "labels")] {
                let form = format!("jsonpath={{.metadata.{field}.n}}");
                assert_eq!(kubectl.run(&[verb, "cm", "settings", change, "-o", &form], ""), expected, "{verb} {change}");
                assert_eq!(kubectl.run(&["get", "cm", "settings", "-o", &form], ""), expected, "{verb} {change}");
            }
        }
    }
    kubectl.apply(&pod("web", "one"));
    let form = "jsonpath={.metadata.annotations.n}";
    assert_eq!(kubectl.run(&["annotate", "pod", "web", "n=1", "-o", form], ""), "1");
    assert_eq!(kubectl.run(&["get", "pod", "web", "-o", form], ""), "1");
}

#[test]
fn workload_is_scaled_and_restarted() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let manifest = "apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}]
";
    assert_eq!(kubectl.apply(manifest), "deployment.apps/shop created\n");
    assert_eq!(kubectl.run(&["scale", "deploy/shop", "--replicas=2"], ""), "deployment.apps/shop scaled\n");
    assert!(kubectl.file("shop.deployment.yaml").contains("  replicas: 2\n"), "{}", kubectl.file("shop.deployment.yaml"));
    kubectl.run(&["set", "env", "deploy/shop", "A=b"], "");
    kubectl.run(&["rollout", "restart", "deploy/shop"], "");
    let file = kubectl.file("shop.deployment.yaml");
    assert!(file.contains("restartedAt") && file.contains("    env:") && !file.contains("imagePullPolicy"), "{file}");
    let failure = kubectl.fail(&["delete", "deploy/shop", "--cascade=orphan"], "");
    assert!(failure.contains("propagationPolicy"), "{failure}");
    kubectl.run(&["delete", "deploy/shop", "--wait=false"], "");
    assert!(!kubectl.has_file("shop.deployment.yaml"));
}

/// As in a cluster, the object stays until its pods are gone, and so long does `kubectl delete --cascade=foreground` wait.
#[test]
fn foreground_deletion_waits_for_pods() {
    let Some(kubectl) = Kubectl::start("") else { return };
    // It ends when it is told to, and not by a signal.
    let manifest = "apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 600
      containers:
        - name: main
          image: localhost/busybox:1
          command: [sh, -c, 'trap : TERM; touch /ready; while [ ! -e /go ]; do sleep 0.1; done']
          readinessProbe: {exec: {command: [cat, /ready]}, periodSeconds: 1}
";
    kubectl.apply(manifest);
    kubectl.run(&["rollout", "status", "deploy/shop", "--timeout=120s"], "");
    let pod = kubectl.run(&["get", "pods", "-o", "jsonpath={.items[0].metadata.name}"], "");
    let mut delete = kubectl.command("kubectl".as_ref());
    let delete = delete.args(["delete", "deploy/shop", "--cascade=foreground", "--timeout=120s"]);
    let mut delete = delete.stdout(Stdio::piped()).spawn().unwrap();
    let form = "jsonpath={.metadata.finalizers} {.metadata.deletionTimestamp}";
    let shown = eventually("the Deployment to be shown in deletion", || {
        let shown = text(&kubectl.output(&["get", "deploy", "shop", "-o", form], "").stdout);
        if shown.contains("foregroundDeletion") { Ok(shown) } else { Err(shown) }
    });
    assert!(shown.starts_with("[\"foregroundDeletion\"] 2") && shown.ends_with('Z'), "{shown}");
    assert!(!kubectl.has_file("shop.deployment.yaml"));
    assert_eq!(delete.try_wait().unwrap(), None, "kubectl waits for the pod");
    let failure = kubectl.fail(&["label", "deploy/shop", "a=b"], "");
    assert!(failure.contains("is being deleted"), "{failure}");
    kubectl.run(&["delete", "deploy/shop", "--cascade=foreground", "--wait=false"], "");
    kubectl.host.cli_ok(&["exec", &pod, "--", "touch", "/go"]);
    let said = text(&delete.wait_with_output().unwrap().stdout);
    assert!(said.starts_with("deployment.apps \"shop\" deleted"), "{said}");
    assert_eq!(kubectl.run(&["get", "pods,deploy", "-o", "name"], ""), "");
}

#[test]
fn secret_stays_secret() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let secret = |keys: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {keys}\n");
    kubectl.apply(&secret("{a: hunter2, b: swordfish}"));
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(kubectl.host.path("manifests/s.secret.yaml")).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    kubectl.apply(&secret("{a: hunter2}"));
    assert!(!kubectl.file("s.secret.yaml").contains("swordfish") && kubectl.file("s.secret.yaml").contains("hunter2"));
    kubectl.run(&["label", "secret", "s", "team=shop"], "");
    assert!(kubectl.file("s.secret.yaml").contains("hunter2") && kubectl.file("s.secret.yaml").contains("team: shop"));
    let shown = kubectl.run(&["get", "secret", "s", "-o", "yaml"], "");
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    let failure = kubectl.fail(&["replace", "--validate=false", "-f", "-"], &shown);
    assert!(failure.contains("give the data, or use patch"), "{failure}");
    let helm =
        kubectl.fail(&["create", "secret", "generic", "release", "--type=helm.sh/release.v1", "--from-literal=release=x"], "");
    assert!(helm.contains("set HELM_DRIVER=configmap"), "{helm}");
    for word in ["hunter2", "swordfish", "aHVudGVyMg"] {
        assert!(!kubectl.host.daemon_log().contains(word));
    }
}

#[test]
fn refusals_name_field_and_remedy() {
    let Some(kubectl) = Kubectl::start("    allow: {}\n") else { return };
    let own = |extra: &str| pod("web", "one").replace("spec:\n", &format!("spec:\n  {extra}\n"));
    let create = ["create", "--validate=false", "-f", "-"];
    let namespace = ["-n", "manifests"];
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &own("hostNetwork: true"));
    assert!(failure.contains("is invalid") && failure.contains("spec.hostNetwork"), "{failure}");
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &pod("we/../b", "x"));
    assert!(failure.contains("metadata.name"), "{failure}");
    let finalizers = pod("web", "x").replace("  name: web\n", "  name: web\n  finalizers: [a/b]\n");
    assert!(kubectl.fail(&[&namespace[..], &create].concat(), &finalizers).contains("metadata.finalizers"));
    let entries = fs::read_dir(kubectl.host.path("manifests")).unwrap().count();
    assert_eq!(entries, 0);
    let path = "/api/v1/namespaces/manifests/pods?dryRun=All";
    let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"a","image":"b"}]}}"#;
    kubectl.run(&["create", "--raw", path, "-f", "-"], json);
    let failure = kubectl.fail(&["create", "--raw", path, "-f", "-"], &json.replace("image", "imag"));
    assert!(failure.contains(r#"unknown field "spec.containers[0].imag""#), "{failure}");
    assert!(!kubectl.has_file("web.pod.yaml"));
    kubectl.run(&[&namespace[..], &create].concat(), &pod("web", "x"));
    let failure = kubectl.fail(&[&namespace[..], &create].concat(), &pod("web", "x"));
    assert!(failure.contains("AlreadyExists") && failure.contains("web.pod.yaml:1"), "{failure}");
    kubectl.host.cli_ok(&["suspend", "manifests"]);
    let failure = kubectl.fail(&["-n", "manifests", "label", "pod", "web", "a=b"], "");
    assert!(failure.contains("podstead resume manifests"), "{failure}");
}

#[test]
fn server_side_apply_knows_owners() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let map = |data: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {data}\n");
    let alpha = ["apply", "--server-side", "--validate=false", "--field-manager=alpha", "-f", "-"];
    let beta = ["apply", "--server-side", "--validate=false", "--field-manager=beta", "-f", "-"];
    kubectl.run(&alpha, &map("{k: one, l: one}"));
    kubectl.run(&alpha, &map("{k: two}"));
    let file = kubectl.file("m.configmap.yaml");
    assert!(file.contains("k: two") && !file.contains("l:"), "{file}");
    let failure = kubectl.fail(&beta, &map("{k: three}"));
    assert!(failure.contains(r#"conflict with "alpha": .data.k"#), "{failure}");
    kubectl.run(&[&beta[..], &["--force-conflicts"]].concat(), &map("{k: three}"));
    kubectl.host.write_manifest("m.configmap.yaml", &file.replace("two", "hand"));
    eventually("the edit to be read", || {
        let found = text(&kubectl.output(&["get", "cm", "m", "-o", "jsonpath={.data.k}"], "").stdout);
        if found == "hand" { Ok(()) } else { Err(found) }
    });
    let failure = kubectl.fail(&beta, &map("{k: four}"));
    assert!(failure.contains(r#"conflict with "file m.configmap.yaml": .data.k"#), "{failure}");
}

#[test]
fn created_objects_are_the_same_files() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let image = "--image=localhost/busybox:1";
    let data = kubectl.host.path("data");
    fs::write(&data, [0_u8, 0xff, 0xfe]).unwrap();
    let from_file = format!("--from-file=k={}", data.display());
    let commands: [&[&str]; 9] = [
        &["create", "configmap", "settings", "--from-literal=a=b"],
        &["create", "configmap", "binary", &from_file],
        &["create", "secret", "generic", "words", "--from-literal=a=b"],
        &["create", "namespace", "shop"],
        &["create", "service", "clusterip", "front", "--tcp=80:8080"],
        &["create", "deployment", "web", image, "--replicas=0", "--port=80", "--", "sleep", "1000"],
        &["create", "job", "once", image, "--", "true"],
        &["create", "cronjob", "nightly", image, "--schedule=0 0 1 1 *", "--", "true"],
        &["run", "lone", image, "--restart=Never", "--", "true"],
    ];
    let kinds = ["configmap", "secret", "namespace", "service", "deployment", "job", "cronjob", "pod"];
    let mut expected: Option<BTreeMap<String, String>> = None;
    for program in every_kubectl() {
        for arguments in commands {
            let output = kubectl.output_of(&program, arguments, "");
            assert!(output.status.success(), "{} {arguments:?}: {}", program.display(), text(&output.stderr));
        }
        let files = kubectl.files();
        assert_eq!(files.len(), commands.len(), "{files:?}");
        match &expected {
            None => expected = Some(files),
            Some(expected) => assert_eq!(files, *expected, "{}", program.display()),
        }
        for kind in kinds {
            // The file of the namespace alone: something may be in it.
            let names = kubectl.names_of(kind);
            for name in names {
                kubectl.run(&["delete", kind, &name, "--wait=false"], "");
            }
        }
    }
    let expected = expected.unwrap();
    assert_eq!(expected["shop.namespace.yaml"], "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n");
    assert!(expected["binary.configmap.yaml"].contains("AP/+"), "{expected:?}");
    let deployment = &expected["web.deployment.yaml"];
    assert!(deployment.contains("  replicas: 0\n") && deployment.contains("containerPort: 80\n"), "{deployment}");
    assert!(!deployment.contains("strategy") && !deployment.contains("null"), "{deployment}");
}

#[test]
fn job_of_cron_job_is_created() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let told =
        kubectl.run(&["create", "cronjob", "nightly", "--image=localhost/busybox:1", "--schedule=0 0 1 1 *", "--", "true"], "");
    assert_eq!(told, "cronjob.batch/nightly created\n");
    // The template repeats the name of the CronJob, as kubectl has it.
    assert!(kubectl.file("nightly.cronjob.yaml").contains("jobTemplate:\n    metadata:\n      name: nightly"));
    let complaints = kubectl.run(&["get", "events", "--field-selector=reason=FailedValidation", "-o", "name"], "");
    assert!(!complaints.contains("event/"), "{complaints}");
    let told = kubectl.run(&["create", "job", "now", "--from=cronjob/nightly"], "");
    assert!(told.contains("stays when its CronJob goes") && told.contains("job.batch/now created"), "{told}");
    kubectl.run(&["create", "job", "other", "--image=localhost/busybox:1", "--", "echo", "other"], "");
    kubectl.run(&["wait", "--for=condition=Complete", "job/now", "job/other", "--timeout=60s"], "");
    // The selector of a Job finds its pods and no others.
    assert_eq!(kubectl.run(&["logs", "job/other"], ""), "other\n");
    // It is generated: the file has none, also after a client sent it back.
    let shown = kubectl.run(&["get", "job", "other", "-o", "yaml"], "");
    assert!(shown.contains("selector:\n    matchLabels:\n      batch.kubernetes.io/controller-uid: "), "{shown}");
    let changed = shown.replace("  labels:", "  labels:\n    team: shop").replacen("backoffLimit: 6", "backoffLimit: 5", 1);
    kubectl.run(&["replace", "-f", "-"], &changed);
    let file = kubectl.file("other.job.yaml");
    assert!(file.contains("backoffLimit: 5") && !file.contains("selector"), "{file}");
}

#[test]
fn applied_objects_left_out_are_pruned() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let map =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{app: x}}}}\ndata: {{k: v}}\n");
    let both = format!("{}---\n{}", map("one"), map("two"));
    kubectl.run(&["create", "configmap", "other"], "");
    for program in every_kubectl() {
        let minor = kubectl.minor_version(&program);
        let apply = |more: &[&str], manifest: &str| {
            let output = kubectl.output_of(&program, &[&["apply", "-f", "-"], more].concat(), manifest);
            assert!(output.status.success(), "{} {more:?}: {}", program.display(), text(&output.stderr));
            text(&output.stdout)
        };
        // Without a list, kubectl asks for all kinds that it prunes; 1.20 asks for versions that are gone from clusters, too.
        let without = [&["--prune", "-l", "app=x"][..]];
        let with: [&[&str]; 1] = match minor {
            ..26 => [&["--prune", "-l", "app=x", "--prune-whitelist=core/v1/ConfigMap"]],
            _ => [&["--prune", "-l", "app=x", "--prune-allowlist=core/v1/ConfigMap"]],
        };
        for options in with.iter().chain(without.iter().filter(|_| minor >= 27)) {
            apply(&[], &both);
            assert!(kubectl.has_file("two.configmap.yaml"));
            let told = apply(options, &map("one"));
            assert!(told.contains("configmap/two pruned"), "{} {options:?}: {told}", program.display());
            assert_eq!(kubectl.names_of("configmap"), ["one", "other"]);
        }
    }
}

#[test]
fn workload_is_shown_with_template_defaults() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.run(&["create", "deployment", "web", "--image=localhost/busybox:1", "--replicas=0", "--port=80"], "");
    let file = kubectl.file("web.deployment.yaml");
    let described = kubectl.run(&["describe", "deployment", "web"], "");
    assert!(described.contains("80/TCP"), "{described}");
    // What clients send back with defaults is the same object, and an edit brings none of them into the file.
    let shown = kubectl.run(&["get", "deployment", "web", "-o", "yaml"], "");
    assert!(shown.contains("terminationMessagePolicy: File"), "{shown}");
    kubectl.run(&["replace", "-f", "-"], &shown);
    assert_eq!(kubectl.file("web.deployment.yaml"), file);
    kubectl.run(&["replace", "-f", "-"], &shown.replace("busybox:1", "busybox:2"));
    assert_eq!(kubectl.file("web.deployment.yaml"), file.replace("busybox:1", "busybox:2"));
    let test = r#"[{"op": "test", "path": "/spec/template/spec/restartPolicy", "value": "Always"}, {"op": "replace", "path": "/spec/template/spec/terminationGracePeriodSeconds", "value": 1}]"#;
    kubectl.run(&["patch", "deployment", "web", "--type=json", "-p", test], "");
    let patched = kubectl.file("web.deployment.yaml");
    assert!(patched.contains("terminationGracePeriodSeconds: 1\n") && !patched.contains("restartPolicy"), "{patched}");
    kubectl.run(&["rollout", "undo", "deployment/web"], "");
    let undone = kubectl.file("web.deployment.yaml");
    assert!(undone.contains("busybox:2") && !undone.contains("terminationMessage"), "{undone}");
}

#[test]
fn sets_go_back_to_a_revision() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let set = |kind: &str, name: &str, more: &str, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  {more}selector: {{matchLabels: {{app: {name}}}}}\n  \
             template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      containers: \
             [{{name: main, image: 'localhost/busybox:{image}', command: [sleep, '1000000']}}]\n"
        )
    };
    let sets = [("StatefulSet", "st", "replicas: 0\n  serviceName: st\n  "), ("DaemonSet", "da", "")];
    for (kind, name, more) in sets {
        kubectl.apply(&set(kind, name, more, "1"));
        kubectl.apply(&set(kind, name, more, "2"));
        let object = format!("{}/{name}", kind.to_lowercase());
        for program in every_kubectl() {
            let run = |arguments: &[&str]| {
                let output = kubectl.output_of(&program, arguments, "");
                assert!(output.status.success(), "{} {arguments:?}: {}", program.display(), text(&output.stderr));
                text(&output.stdout)
            };
            eventually("two revisions", || {
                let history = run(&["rollout", "history", &object]);
                if history.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count() == 2 {
                    Ok(())
                } else {
                    Err(history)
                }
            });
            let newest = run(&[
                "get",
                "controllerrevisions",
                "--sort-by=.revision",
                "-l",
                &format!("app={name}"),
                "-o",
                "jsonpath={.items[-1:].revision}",
            ]);
            let earlier = (newest.parse::<u64>().unwrap() - 1).to_string();
            let file = kubectl.file(&format!("{name}.{}.yaml", kind.to_lowercase()));
            let (here, there) = if file.contains("busybox:2") { ("busybox:2", "busybox:1") } else { ("busybox:1", "busybox:2") };
            let detail = run(&["rollout", "history", &object, &format!("--revision={earlier}")]);
            assert!(detail.contains(there), "{}: {detail}", program.display());
            run(&["rollout", "undo", &object]);
            assert_eq!(
                kubectl.file(&format!("{name}.{}.yaml", kind.to_lowercase())),
                file.replace(here, there),
                "{}",
                program.display()
            );
        }
    }
}

#[test]
fn difference_is_that_of_the_manifests() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.run(&["apply", "--validate=false", "-f", "-"], &pod("web", "one"));
    // The status does not change any more.
    kubectl.run(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"], "");
    for program in every_kubectl() {
        let same = kubectl.output_of(&program, &["diff", "-f", "-"], &pod("web", "one"));
        assert!(same.status.success() && same.stdout.is_empty(), "{}: {same:?}", program.display());
        let other = kubectl.output_of(&program, &["diff", "-f", "-"], &pod("web", "two"));
        let told = text(&other.stdout);
        assert_eq!(other.status.code(), Some(1), "{other:?}");
        let changed: Vec<&str> = told
            .lines()
            .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"))
            .collect();
        assert!(changed.len() == 2 && changed[1].contains("echo two"), "{}: {told}", program.display());
    }
}

#[test]
fn ended_pod_of_job_is_deleted() {
    let Some(mut kubectl) = Kubectl::start("") else { return };
    kubectl.run(&["create", "job", "once", "--image=localhost/busybox:1", "--", "echo", "done"], "");
    kubectl.run(&["wait", "--for=condition=Complete", "job/once", "--timeout=60s"], "");
    let dry = kubectl.run(&["delete", "pod", "once-0", "--dry-run=server"], "");
    let names = |kubectl: &Kubectl| text(&kubectl.output(&["get", "pods", "-o", "name"], "").stdout);
    assert!(!dry.contains("Warning") && names(&kubectl) == "pod/once-0\n", "{dry}");
    // kubectl waits until it is gone.
    let told = kubectl.run(&["delete", "pod", "once-0", "--timeout=60s"], "");
    assert!(!told.contains("Warning"), "{told}");
    // Those of a CronJob's Job, too.
    kubectl.run(&["create", "cronjob", "nightly", "--image=localhost/busybox:1", "--schedule=0 0 1 1 *", "--", "true"], "");
    kubectl.host.cli_ok(&["job", "run", "nightly"]);
    kubectl.run(&["wait", "--for=condition=Complete", "job", "--all", "--timeout=60s"], "");
    let told = kubectl.run(&["delete", "pods", "--all", "--timeout=60s"], "");
    assert!(told.contains("deleted") && !told.contains("Warning") && names(&kubectl).is_empty(), "{told}");
    kubectl.host.lose_power();
    kubectl.host.start_daemon();
    eventually("the Job to be shown as complete", || {
        let succeeded = kubectl.output(&["get", "job", "once", "-o", "jsonpath={.status.succeeded}"], "");
        if text(&succeeded.stdout) == "1" { Ok(()) } else { Err(text(&succeeded.stderr)) }
    });
    assert_eq!(names(&kubectl), "", "its Job is complete and does not run again");
}

#[test]
fn deleted_claim_comes_back_with_its_data() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: \
                 {requests: {storage: 1Gi}}}\n";
    let pod = pod("web", "one").replace("    command:", "    volumeMounts: [{name: data, mountPath: /data}]\n    command:")
        + "  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n";
    let both = format!("{claim}---\n{pod}");
    let ready = ["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"];
    let read = ["exec", "web", "--", "cat", "/data/file"];
    kubectl.apply(&both);
    kubectl.run(&ready, "");
    kubectl.run(&["exec", "web", "--", "sh", "-c", "echo kept >/data/file"], "");
    // Each way in which clients make an object that they delete first.
    for arguments in [&["apply", "-f", "-"][..], &["create", "-f", "-"], &["apply", "--server-side", "-f", "-"]] {
        kubectl.run(&["delete", "--timeout=60s", "-f", "-"], &both);
        kubectl.run(&["wait", "--for=delete", "pvc/data", "--timeout=60s"], "");
        // The data are no object for clients: as in a cluster, they end what they wait for.
        assert!(!kubectl.run(&["get", "pvc", "-o", "name"], "").contains("data"));
        let kept = kubectl.host.cli_ok(&["get", "pvc", "data", "-o", "jsonpath={.status.phase}"]);
        assert_eq!(kept.trim_end(), "Released");
        for failing in [&["delete", "pvc", "data"][..], &["get", "pvc", "data"], &["label", "pvc", "data", "a=b"]] {
            let failure = kubectl.fail(failing, "");
            assert!(
                failure.contains("(NotFound)") && failure.contains("podstead volume prune data deletes"),
                "{failing:?}: {failure}"
            );
        }
        kubectl.run(arguments, claim);
        kubectl.apply(&pod);
        kubectl.run(&ready, "");
        assert_eq!(kubectl.run(&read, ""), "kept\n", "{arguments:?}");
        assert!(kubectl.file("data.persistentvolumeclaim.yaml").contains("storage: 1Gi"));
    }
}

#[test]
fn claims_are_replaced_by_force() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let claim = |name: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], \
             resources: {{requests: {{storage: 1Gi}}}}}}\n"
        )
    };
    let pod = pod("web", "one").replace("    command:", "    volumeMounts: [{name: data, mountPath: /data}]\n    command:")
        + "  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n";
    let set = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: 'localhost/busybox:1', command: [sleep, '1000000'], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";
    let all = format!("{}---\n{pod}---\n{}---\n{set}", claim("data"), claim("data-db-0"));
    kubectl.apply(&all);
    let ready = |pods: &[&str]| {
        for pod in pods {
            // A pod that is made again has no moment to wait for.
            eventually(pod, || {
                let told = kubectl.output(&["wait", "--for=condition=Ready", pod, "--timeout=10s"], "");
                if told.status.success() { Ok(()) } else { Err(text(&told.stderr)) }
            });
        }
    };
    let read = |pod: &str, expected: &str| {
        eventually(pod, || {
            let told = kubectl.output(&["exec", pod, "--", "cat", "/data/file"], "");
            if text(&told.stdout) == expected { Ok(()) } else { Err(text(&told.stderr)) }
        });
    };
    let pods = ["web", "db-0"];
    ready(&["pod/web", "pod/db-0"]);
    for pod in pods {
        kubectl.run(&["exec", pod, "--", "sh", "-c", &format!("echo {pod} >/data/file")], "");
    }
    let uid = |name: &str| kubectl.run(&["get", "pod", name, "-o", "jsonpath={.metadata.uid}"], "");
    // Not the claim of the StatefulSet alone, which it makes anew as soon as it is deleted.
    for (what, manifest) in [("with what uses them", all.as_str()), ("alone", &claim("data"))] {
        let before = uid("web");
        // The oldest of them waits in another way than the newest.
        let newest = every_kubectl().pop();
        for program in every_kubectl().into_iter().take(1).chain(newest) {
            let arguments = ["replace", "--force", "--timeout=60s", "--validate=false", "-f", "-"];
            let output = kubectl.output_of(&program, &arguments, manifest);
            assert!(output.status.success(), "{} {what}: {}", program.display(), text(&output.stderr));
            assert!(text(&output.stdout).contains("persistentvolumeclaim/data") && text(&output.stdout).contains(" replaced"));
        }
        ready(&["pod/web", "pod/db-0"]);
        assert_eq!(uid("web") == before, what != "with what uses them", "{what}");
        for pod in pods {
            read(pod, &format!("{pod}\n"));
        }
        assert_eq!(kubectl.names_of("persistentvolumeclaim"), ["data-db-0", "data"]);
    }
}

#[test]
fn created_service_is_applied_to() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.run(&["create", "service", "clusterip", "web", "--tcp=80:8080"], "");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort, selector: {app: web}, ports: [{port: 80, \
                   targetPort: http, nodePort: 30080}]}\n";
    let told = kubectl.apply(service);
    assert!(told.contains("service/web configured"), "{told}");
    // The name of the port stays: the applied manifest says nothing of it.
    let file = kubectl.file("web.service.yaml");
    assert!(file.contains("name: \"80-8080\"") && file.contains("targetPort: http") && file.contains("nodePort: 30080"), "{file}");
}

#[test]
fn namespace_has_labels_and_goes_when_empty() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let labels = ["get", "ns", "shop", "-o", "jsonpath={.metadata.labels.team}"];
    let manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: one}}\n";
    // One that nothing is in and that no file has: kubectl finds it, and patches it.
    kubectl.apply(manifest);
    assert_eq!(kubectl.run(&labels, ""), "one");
    assert!(kubectl.apply(manifest).contains("unchanged"));
    kubectl.run(&["label", "ns", "shop", "team=two", "--overwrite"], "");
    assert!(kubectl.file("shop.namespace.yaml").contains("team: two"));
    let failure = kubectl.fail(&["create", "ns", "shop"], "");
    assert!(failure.contains("AlreadyExists") && failure.contains("shop.namespace.yaml:1"), "{failure}");
    kubectl.run(&["-n", "shop", "create", "configmap", "m"], "");
    let failure = kubectl.fail(&["delete", "ns", "shop"], "");
    assert!(failure.contains("is in use") && kubectl.has_file("shop.namespace.yaml"), "{failure}");
    kubectl.run(&["-n", "shop", "delete", "configmap", "m"], "");
    kubectl.run(&["delete", "ns", "shop", "--timeout=30s"], "");
    assert!(!kubectl.has_file("shop.namespace.yaml"));
}

#[test]
fn deleted_pod_ends_in_the_time_given() {
    let Some(kubectl) = Kubectl::start("") else { return };
    let stubborn = pod("web", "one")
        .replace("GracePeriodSeconds: 1", "GracePeriodSeconds: 600")
        .replace("exec sleep 1000000", "trap : TERM; while true; do sleep 1; done");
    kubectl.apply(&stubborn);
    kubectl.run(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"], "");
    // kubectl waits until it is gone.
    kubectl.run(&["delete", "pod", "web", "--grace-period=1", "--timeout=60s"], "");
    assert!(kubectl.fail(&["get", "pod", "web"], "").contains("not found"));

    let slow = stubborn.replace("name: web", "name: slow");
    kubectl.apply(&slow);
    kubectl.run(&["wait", "--for=condition=Ready", "pod/slow", "--timeout=60s"], "");
    kubectl.run(&["delete", "pod", "slow", "--wait=false"], "");
    eventually("a change of the pod that is ending to be refused", || {
        let refused = kubectl.fail(&["label", "pod", "slow", "a=b"], "");
        if refused.contains("pod \"slow\" is ending: try again when it has ended") { Ok(()) } else { Err(refused) }
    });
    // Its file is gone: to delete it again is no restart.
    let told = kubectl.run(&["delete", "pod", "slow", "--wait=false"], "");
    assert!(!told.contains("Warning"), "{told}");
    let refused = kubectl.fail(&["create", "--validate=false", "-f", "-"], &slow);
    assert!(refused.contains("object is being deleted: pods \"slow\" already exists"), "{refused}");
}

#[test]
fn what_one_host_cannot_do_is_told() {
    let Some(kubectl) = Kubectl::start("") else { return };
    kubectl.apply(&pod("web", "one"));
    kubectl.run(&["create", "deployment", "shop", "--image=localhost/busybox:1", "--replicas=0"], "");
    kubectl.run(&["create", "deployment", "back", "--image=localhost/busybox:1", "--", "sleep", "1000"], "");
    let made = eventually("a pod of the Deployment", || {
        let names = kubectl.run(&["get", "pods", "-l", "app=back", "-o", "jsonpath={.items[*].metadata.name}"], "");
        if names.is_empty() { Err(names) } else { Ok(names) }
    });
    let refused = kubectl.fail(&["label", "pod", &made, "a=b"], "");
    assert!(refused.contains(&format!("pod \"{made}\" belongs to replicaset \"back-")), "{refused}");
    assert!(refused.contains("change spec.template of its manifest there"), "{refused}");
    for program in every_kubectl() {
        let is_old = program == Path::new("kubectl");
        // From 1.34 on, kubectl prints its own words about versions of the API instead of the answer.
        let scaling = match kubectl.minor_version(&program) {
            ..34 => "kubectl scale",
            _ => "incompatible with autoscaling/v1",
        };
        let told: [(&[&str], &str); 7] = [
            (&["autoscale", "deployment", "shop", "--max=3"], scaling),
            (&["create", "quota", "small", "--hard=pods=1"], "resources.limits"),
            (&["cordon", "edge-1"], "cannot be cordoned"),
            (&["drain", "edge-1", "--force", "--timeout=30s"], "podstead stop stops"),
            (&["create", "token", "default"], "podstead kubeconfig"),
            (&["create", "serviceaccount", "a"], "podstead kubeconfig"),
            (&["debug", "web", "--image=localhost/busybox:1"], "kubectl exec"),
        ];
        for (arguments, expected) in told {
            // These came later.
            if is_old && ["token", "debug"].iter().any(|new| arguments.contains(new)) {
                continue;
            }
            let output = kubectl.output_of(&program, arguments, "");
            // kubectl cordon has exit code 0 all the same.
            assert!(text(&output.stderr).contains(expected), "{} {arguments:?}: {output:?}", program.display());
        }
    }
    assert!(kubectl.has_file("web.pod.yaml"));
}
