//! Workloads as a file gives them, checked on the host `edge`.

use crate::{AcceptedObject, CheckContext, Checked, UndeltaStore, check};
use podstead_artifact::Artifact;
use podstead_manifest::PatchesByObject;
use podstead_pod::{AdmitContext, NodeName, Revision, Severity, SourceId};
use podstead_workload::object::Workload;

fn checked(text: &str) -> Checked {
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    check("w.yaml", text.as_bytes(), &context, &PatchesByObject::new())
}

/// `line severity[code] field: message` of each problem.
fn told(text: &str) -> Vec<String> {
    let checked = checked(text);
    let is_refused = checked.problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(
        (checked.accepted.is_empty(), checked.broken.len()),
        (is_refused, usize::from(is_refused)),
        "{:?}",
        checked.problems
    );
    let shown = |problem: &podstead_manifest::Problem| {
        let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
        format!("{} {severity}[{}] {}: {}", problem.position.unwrap().line, problem.code, problem.field, problem.message)
    };
    checked.problems.iter().map(shown).collect()
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx
";

const STATEFUL_SET: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata:
      labels: {app: db}
    spec:
      containers:
      - name: db
        image: postgres
        volumeMounts:
        - {name: data, mountPath: /data}
  volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
";

fn workload(text: &str) -> Workload {
    let checked = checked(text);
    match &checked.accepted[0].object {
        AcceptedObject::Workload(workload) => (**workload).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn accepted_workload_is_as_written() {
    assert_eq!(told(DEPLOYMENT), [""; 0]);
    let Workload::Deployment(deployment) = workload(DEPLOYMENT) else { panic!() };
    let spec = deployment.spec.unwrap();
    assert_eq!((spec.replicas, spec.strategy), (None, None), "not defaulted");
    let pod = spec.template.spec.unwrap();
    assert_eq!((pod.restart_policy, pod.node_name, pod.tolerations), (None, None, None), "neither defaulted nor bound");
    assert_eq!(deployment.metadata.namespace, None);
    assert_eq!(checked(DEPLOYMENT).accepted[0].key.namespace, "default");
}

#[test]
fn hooks_of_other_tools_are_told_of() {
    let hook = DEPLOYMENT.replace("  name: web\nspec", "  name: web\n  annotations: {helm.sh/hook: pre-delete}\nspec");
    let told = told(&hook);
    let expected = "5 warning[ignored-field] metadata.annotations[helm.sh/hook]: has no effect: hooks of Helm are not run as such";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    assert!(matches!(workload(&hook), Workload::Deployment(_)), "it is used");
}

#[test]
fn exported_state_is_left_out_with_warnings() {
    let text = DEPLOYMENT
        .replace(
            "  name: web\nspec",
            "  name: web\n  uid: u\n  generation: 3\n  ownerReferences: [{apiVersion: v1, kind: A, name: b, uid: c}]\nspec",
        )
        .replace(
            "      labels: {app: web}\n",
            "      labels: {app: web}\n      annotations: {a: b, kubernetes.io/config.source: other}\n      name: x\n",
        )
        + "status: {replicas: 1}\n";
    assert_eq!(
        told(&text),
        [
            "5 warning[ignored-field] metadata.uid: has no effect: set by an API server",
            "6 warning[ignored-field] metadata.generation: has no effect: set by an API server",
            "7 warning[ignored-field] metadata.ownerReferences: has no effect: the manifest is the object's only owner",
            "13 warning[ignored-field] spec.template.metadata.annotations[kubernetes.io/config.source]: has no effect: podstead sets \
             this annotation itself",
            "14 warning[ignored-field] spec.template.metadata.name: has no effect: pods are named after their workload",
            "19 warning[ignored-field] status: has no effect: podstead reports the status itself",
        ]
    );
    let Workload::Deployment(deployment) = workload(&text) else { panic!() };
    assert_eq!((deployment.metadata.uid, deployment.metadata.owner_references, deployment.status), (None, None, None));
    let annotations = deployment.spec.unwrap().template.metadata.unwrap().annotations.unwrap();
    assert_eq!(annotations.into_keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn problems_of_workload_and_template_are_told_together() {
    let text = DEPLOYMENT
        .replace("  name: web\nspec:\n", "  name: Web_\n  namespace: a.b\nspec:\n  replicas: 501\n")
        .replace("      labels: {app: web}", "      labels: {app: shop}")
        .replace("- name: web\n", "- name: Web\n        livenessProbe: {}\n");
    let label = "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit";
    let subdomain = "must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit";
    assert_eq!(
        told(&text),
        [
            format!("4 error[invalid-value] metadata.name: invalid value \"Web_\": {subdomain}"),
            format!("5 error[invalid-value] metadata.namespace: invalid value \"a.b\": {label}"),
            "7 error[invalid-value] spec.replicas: invalid value 501: must be less than or equal to 500".to_owned(),
            "11 error[invalid-value] spec.template.metadata.labels: invalid value {\"app\": \"shop\"}: `selector` does not match \
             template `labels`"
                .to_owned(),
            format!("14 error[invalid-value] spec.template.spec.containers[0].name: invalid value \"Web\": {label}"),
            "15 error[required] spec.template.spec.containers[0].livenessProbe: is required: one of exec, httpGet, tcpSocket, grpc"
                .to_owned(),
        ]
    );
}

#[test]
fn template_without_spec_is_refused() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n  \
                template: {metadata: {labels: {a: b}}}\n";
    assert_eq!(told(text), ["6 error[required] spec.template.spec: is required"]);
    let none = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: a}\nspec: {replicas: 1}\n";
    assert!(told(none).iter().any(|told| told == "4 error[required] spec.template: is required"), "{:?}", told(none));
}

#[test]
fn claims_of_a_stateful_set_are_its_volumes() {
    assert_eq!(told(STATEFUL_SET), [""; 0]);
    let other = STATEFUL_SET.replace("      name: data\n", "      name: logs\n");
    assert_eq!(
        told(&other),
        [
            "16 error[invalid-value] spec.template.spec.containers[0].volumeMounts[0].name: invalid value \"data\": the pod has no volume of that name",
            "19 warning[suspicious-value] spec.volumeClaimTemplates[0].metadata.name: no container mounts it",
        ]
    );
    let wrong = STATEFUL_SET.replace("ReadWriteOnce]", "Sometimes]").replace("      name: data\n", "      name: Da\n");
    let fields: Vec<String> = told(&wrong).iter().map(|told| told.split(':').next().unwrap().to_owned()).collect();
    assert!(fields.contains(&"21 error[not-one-of] spec.volumeClaimTemplates[0].spec.accessModes[0]".to_owned()), "{fields:?}");
    assert!(fields.contains(&"19 error[invalid-value] spec.volumeClaimTemplates[0].metadata.name".to_owned()), "{fields:?}");
}

#[test]
fn service_name_is_a_name_of_hosts() {
    let text = STATEFUL_SET.replace("serviceName: db", "serviceName: \"a b\\n127.0.0.1 bank\"");
    let found = told(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("6 error[invalid-value] spec.serviceName: invalid value"), "{found:?}");
}

#[test]
fn job_must_end() {
    let job = |policy: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  template:\n    spec:\n      containers: [{{name: a, image: \
             b}}]\n{policy}"
        )
    };
    assert_eq!(told(&job("      restartPolicy: Never\n")), [""; 0]);
    assert_eq!(
        told(&job("")),
        ["6 error[required] spec.template.spec.restartPolicy: is required: valid values: \"OnFailure\", \"Never\""]
    );
}

#[test]
fn cron_job_is_judged_with_its_template() {
    let text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  schedule: 0 3 * * 8\n  timeZone: Europe/Nowhere\n  \
                jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers: [{name: a}]\n";
    let found = told(text);
    let fields: Vec<&str> = found.iter().map(|told| told.split(": ").next().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "5 error[invalid-value] spec.schedule",
            "6 error[invalid-value] spec.timeZone",
            "12 error[required] spec.jobTemplate.spec.template.spec.containers[0].image",
        ]
    );
    let good = text.replace("* * 8", "* * 0").replace("Nowhere", "Berlin").replace("{name: a}", "{name: a, image: b}");
    assert_eq!(told(&good), [""; 0]);
}

#[test]
fn what_one_host_cannot_do_is_a_warning() {
    let of = |extra: &str| told(&DEPLOYMENT.replace("        image: nginx\n", &format!("        image: nginx\n{extra}")));
    let port = "        ports: [{containerPort: 80, hostPort: 80}]\n";
    assert_eq!(of(port), [""; 0]);
    let three = DEPLOYMENT
        .replace("  selector", "  replicas: 3\n  selector")
        .replace("        image: nginx\n", &format!("        image: nginx\n{port}"));
    assert_eq!(
        told(&three),
        ["6 warning[suspicious-value] spec.replicas: only 1 of 3 pods will run: host port 80 can be had by one pod only"]
    );
    let claim =
        "        volumeMounts: [{name: d, mountPath: /d}]\n      volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n";
    let shared = "during an update, the pods before and after it have the claim \"data\" mounted at the same time";
    assert_eq!(of(claim), [format!("5 warning[suspicious-value] spec.strategy: {shared}")]);
    assert_eq!(told(&DEPLOYMENT.replace("  selector", "  strategy: {type: Recreate}\n  selector")), [""; 0]);
    let anti = "      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}\n      \
                nodeSelector: {a: b}\n      serviceAccountName: web\n";
    assert_eq!(
        of(anti),
        [
            "14 warning[ignored-field] spec.template.spec.affinity.podAntiAffinity: has no effect: all pods of the workload run on this host",
            "16 warning[ignored-field] spec.template.spec.serviceAccountName: has no effect: podstead has no service accounts: no token \
             is mounted",
        ]
    );
}

#[test]
fn exported_replica_set_of_a_deployment_is_refused() {
    let text = DEPLOYMENT.replace("Deployment", "ReplicaSet").replace(
        "  name: web\nspec",
        "  name: web-1\n  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u}]\nspec",
    );
    assert!(told(&text).iter().any(|told| told.contains("error[forbidden] metadata.ownerReferences")), "{:?}", told(&text));
}

#[test]
fn long_name_is_cut_and_judged_as_its_pods_are_called() {
    let long = "a".repeat(100);
    assert_eq!(told(&DEPLOYMENT.replace("  name: web\nspec", &format!("  name: {long}\nspec"))), [""; 0]);
    let set = told(&STATEFUL_SET.replace("  name: db\nspec", &format!("  name: {}\nspec", "a".repeat(62))));
    assert!(set.iter().any(|told| told.contains("metadata.name: invalid value") && told.contains("63 characters")), "{set:?}");
}

#[test]
fn unread_kinds_leave_the_file_clear() {
    let text = format!(
        "{DEPLOYMENT}---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: web}}\n---\napiVersion: cilium.io/v2\nkind: \
         CiliumNetworkPolicy\nmetadata: {{name: web}}\n"
    );
    let checked = checked(&text);
    assert_eq!((checked.accepted.len(), checked.broken.len(), checked.ignored.len()), (1, 0, 1));
    assert_eq!(checked.problems.len(), 1);
}

#[test]
fn labels_of_jobs_are_checked() {
    let text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    metadata:\n      \
                name: x\n      labels: {'a b': c}\n    spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n";
    let found = told(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("8 warning[ignored-field] spec.jobTemplate.metadata.name: has no effect"), "{found:?}");
    assert!(found[1].starts_with("9 error[invalid-value] spec.jobTemplate.metadata.labels[a b]"), "{found:?}");
}

/// The set after each revision of a source; a revision is the texts of its files.
fn sets(revisions: &[&[(&str, &str)]]) -> Vec<crate::Set> {
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let revision = Revision(String::new());
    let mut store = UndeltaStore::default();
    let mut sets = Vec::new();
    for files in revisions {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().to_vec().into())));
        let artifact = Artifact {
            revision: revision.clone(),
            place: None,
            commit: None,
            files: files.collect(),
            beside: std::collections::BTreeMap::new(),
            around: podstead_artifact::Surroundings::default(),
        };
        store = store.apply(&artifact, &|file, bytes, patches| check(file, bytes, &context, patches));
        sets.push(store.set(&SourceId::new("s"), &revision));
    }
    sets
}

#[test]
fn broken_edit_keeps_the_last_good_workload() {
    let broken = DEPLOYMENT.replace("  selector", "  replicas: -1\n  selector");
    let sets = sets(&[&[("a.yaml", DEPLOYMENT)], &[("a.yaml", &broken)], &[]]);
    assert_eq!(sets[0].workloads, sets[1].workloads);
    assert_eq!((sets[1].workloads.len(), sets[1].problems.len()), (1, 1));
    assert!(sets[2].workloads.is_empty());
}

#[test]
fn refused_kind_keeps_no_old_object() {
    let policy = "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: web}\n";
    let with_policy = format!("{DEPLOYMENT}---\n{policy}");
    let sets = sets(&[&[("a.yaml", &with_policy)], &[("a.yaml", policy)]]);
    assert_eq!((sets[0].workloads.len(), sets[0].problems.len()), (1, 1));
    assert_eq!((sets[1].workloads.len(), sets[1].problems.len()), (0, 1), "the Deployment is gone from the file");
}

#[test]
fn slip_in_a_kind_keeps_the_old_object() {
    let slip = DEPLOYMENT.replace("kind: Deployment", "kind: Deploymnt");
    let sets = sets(&[&[("a.yaml", DEPLOYMENT)], &[("a.yaml", &slip)]]);
    assert_eq!((sets[1].workloads.len(), sets[1].problems.len()), (1, 1));
}

#[test]
fn ignored_objects_are_counted_over_all_files() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n";
    let two = format!("{account}---\n{account}");
    let sets = sets(&[&[("b.yaml", account), ("a.yaml", &two)], &[("b.yaml", account)], &[("b.yaml", DEPLOYMENT)]]);
    let told = |set: &crate::Set| set.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let words = "kind: ignored: 3 objects of kind ServiceAccount: there is no API server";
    assert!(told(&sets[0])[0].starts_with(&format!("a.yaml:2:7: warning[ignored-kind]: {words}")), "{:?}", told(&sets[0]));
    assert_eq!((told(&sets[0]).len(), told(&sets[1]).len(), told(&sets[2]).len()), (1, 1, 0));
}
