//! Workloads, and kinds beside them that are ignored or refused. The manifests are those that the fuzzer starts with.

use crate::support::{WEB, decode, keys, names};
use podstead::manifest::{Decoded, Ignored, Object};
use podstead::pod::Severity;
use podstead::workload::object::{Workload, WorkloadKind};

/// A guest book as the examples of Kubernetes have it: a Deployment and a Service for each part.
const GUESTBOOK: &str = include_str!("../fuzz/seeds/decode/guestbook.yaml");

/// The fields that podinfo's Deployment and autoscaler have.
const PODINFO: &str = include_str!("../fuzz/seeds/decode/podinfo.yaml");

/// The fields that the Deployments of the microservices demo have.
const MICROSERVICE: &str = include_str!("../fuzz/seeds/decode/microservice.yaml");

const BATCH: &str = include_str!("../fuzz/seeds/decode/batch.yaml");

fn kinds(decoded: &Decoded) -> Vec<WorkloadKind> {
    let workloads = decoded.objects.iter().filter_map(|object| match &object.object {
        Object::Workload(workload) => Some(workload.kind()),
        Object::Pod(_) | Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) | Object::Network(_) => None,
    });
    workloads.collect()
}

fn warnings(decoded: &Decoded) -> Vec<String> {
    let warnings = Ignored::warnings(decoded.ignored.iter());
    assert!(warnings.iter().all(|warning| warning.severity == Severity::Warning));
    warnings.iter().map(ToString::to_string).collect()
}

fn shown(decoded: &Decoded) -> Vec<String> {
    decoded.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn real_repositories_decode_with_warnings_only() {
    let guestbook = decode("guestbook.yaml", GUESTBOOK);
    assert_eq!((shown(&guestbook), guestbook.broken.len()), (vec![], 0));
    assert_eq!(names(&guestbook), ["redis-leader", "redis-leader", "frontend", "frontend", "redis-follower"]);
    assert_eq!(warnings(&guestbook), [""; 0]);
    let podinfo = decode("podinfo.yaml", PODINFO);
    assert_eq!((shown(&podinfo), podinfo.broken.len(), kinds(&podinfo)), (vec![], 0, vec![WorkloadKind::Deployment]));
    assert_eq!(warnings(&podinfo).len(), 3, "{:?}", warnings(&podinfo));
    let demo = decode("demo.yaml", MICROSERVICE);
    assert_eq!((shown(&demo), demo.broken.len(), kinds(&demo)), (vec![], 0, vec![WorkloadKind::Deployment]));
    assert_eq!(warnings(&demo).len(), 1);
}

#[test]
fn every_kind_of_workload_decodes() {
    let decoded = decode("batch.yaml", BATCH);
    assert_eq!((shown(&decoded), decoded.broken.len()), (vec![], 0));
    let expected =
        [WorkloadKind::CronJob, WorkloadKind::Job, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet, WorkloadKind::ReplicaSet];
    assert_eq!(kinds(&decoded), expected);
    assert_eq!(decoded.objects[0].key.kind, "CronJob");
    let place = decoded.objects[0].positions.position("spec.jobTemplate.spec.template.spec.containers[0].image").unwrap();
    assert_eq!((place.line, place.column), (13, 44));
    let Object::Workload(Workload::CronJob(cron_job)) = &decoded.objects[0].object else { panic!() };
    assert_eq!(cron_job.spec.as_ref().unwrap().schedule, "0 3 * * *");
}

#[test]
fn lists_hold_workloads_and_other_kinds() {
    let template = "{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}";
    let spec = format!("{{selector: {{matchLabels: {{a: b}}}}, template: {template}}}");
    let typed =
        decode("l.yaml", format!("apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {{name: a}}\n  spec: {spec}\n"));
    assert_eq!((shown(&typed), names(&typed)), (vec![], vec!["a"]));
    let mixed = decode(
        "l.yaml",
        format!(
            "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Service, metadata: {{name: s}}, spec: {{ports: [{{port: 80}}]}}}}\n\
             - {{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: d}}, spec: {spec}}}\n\
             - {{apiVersion: cilium.io/v2, kind: CiliumNetworkPolicy, metadata: {{name: n}}}}\n"
        ),
    );
    assert_eq!((names(&mixed), mixed.broken.len(), warnings(&mixed).len()), (vec!["s", "d"], 0, 0));
    assert_eq!(
        shown(&mixed),
        ["l.yaml:6:36: error[unsupported-kind]: items[2].kind: the kind \"CiliumNetworkPolicy\" of cilium.io is not supported: \
          the pods that it selects would be open (leave it out, or give the pods a network of their own)"]
    );
    let services = decode(
        "l.yaml",
        "apiVersion: v1\nkind: ServiceList\nitems: [{metadata: {name: a}, spec: {}}, {metadata: {name: b}, spec: {}}]\n",
    );
    assert_eq!((services.problems.len(), services.broken.len()), (0, 0));
    assert_eq!(names(&services), ["a", "b"]);
    let wrong = decode("l.yaml", "apiVersion: v1\nkind: DeploymentList\nitems: []\n");
    assert!(shown(&wrong)[0].contains("\"v1\" is not the version of a DeploymentList (write apps/v1)"), "{:?}", shown(&wrong));
}

#[test]
fn workload_mistakes_point_at_their_fields() {
    for (written, field, words) in [
        ("replicas: 1", "replica: 1", "spec.replica: unknown field (did you mean \"replicas\"?)"),
        ("replicas: 1", "replicas: one", "spec.replicas: expected a whole number, found the string \"one\""),
        ("replicas: 1", "replicas: 1\n  replicas: 2", "spec.replicas: duplicate key \"replicas\", first in line"),
        ("replicas: 1", "containers: []", "\"containers\" belongs under template.spec"),
        (
            "      containers:",
            "      replicas: 2\n      containers:",
            "spec.template.spec.replicas: unknown field (\"replicas\" belongs to spec",
        ),
        ("        image: d", "        imge: d", "spec.template.spec.containers[0].imge: unknown field (did you mean \"image\"?)"),
        ("  selector:\n    matchLabels: {app: redis}\n", "", "spec.selector: is required"),
    ] {
        let text = GUESTBOOK.replacen(written, field, 1);
        assert_ne!(text, GUESTBOOK, "{written}");
        let decoded = decode("guestbook.yaml", &text);
        assert!(shown(&decoded).iter().any(|shown| shown.contains(words)), "{words}: {:?}", shown(&decoded));
        assert_eq!(keys(&decoded.broken), ["redis-leader"]);
        assert_eq!(names(&decoded), ["redis-leader", "frontend", "frontend", "redis-follower"]);
    }
    let no_spec = decode("d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n");
    assert_eq!(shown(&no_spec), ["d.yaml:1:1: error[required]: spec: is required (it has at least selector and template)"]);
    let no_name = decode("d.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {}\nspec: {template: {}}\n");
    assert_eq!(shown(&no_name), ["d.yaml:3:1: error[required]: metadata.name: is required (every Job needs a name)"]);
}

/// The schema calls it required, and an API server fills it in.
#[test]
fn condition_of_a_failure_policy_needs_no_status() {
    let policy = "{rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}";
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a}}\nspec:\n  podFailurePolicy: {policy}\n  template: {{spec: {{restartPolicy: Never, \
         containers: [{{name: a, image: x}}]}}}}\n"
    );
    let decoded = decode("job.yaml", &job);
    assert_eq!(shown(&decoded), [""; 0]);
    assert_eq!(names(&decoded), ["a"]);
}

#[test]
fn kinds_of_other_groups_are_handled() {
    for (version, kind, refused) in [
        ("rbac.authorization.k8s.io/v1", "Role", None),
        ("policy/v1", "PodDisruptionBudget", None),
        ("cert-manager.io/v1", "Certificate", None),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", None),
        ("argoproj.io/v1alpha1", "Rollout", Some("write a Deployment")),
        ("serving.knative.dev/v1", "Service", Some("write a Deployment")),
        ("batch.volcano.sh/v1alpha1", "Job", Some("write a Deployment")),
        ("apps.kruise.io/v1alpha1", "StatefulSet", Some("write a Deployment")),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", Some("render it")),
        ("bitnami.com/v1alpha1", "SealedSecret", Some("SOPS")),
        ("v1", "PersistentVolume", Some("hostPath")),
        ("v1", "PodTemplate", Some("Deployment")),
        ("v1", "Node", Some("state of a cluster")),
        ("builtin", "PrefixTransformer", Some("kustomize build")),
    ] {
        let text = format!(
            "{WEB}---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{a: 1}}\nconfigMapGenerator: []\n"
        );
        let decoded = decode("f.yaml", text);
        assert_eq!(names(&decoded), ["web"], "{kind}");
        assert_eq!(decoded.broken, [], "{kind} is no object of the file");
        match refused {
            Some(words) => assert!(shown(&decoded)[0].contains(words), "{:?}", shown(&decoded)),
            None => assert_eq!((shown(&decoded).len(), warnings(&decoded).len()), (0, 1), "{kind}"),
        }
    }
}

#[test]
fn kustomization_that_does_more_is_refused() {
    let lists = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n";
    assert_eq!((decode("k.yaml", lists).problems.len(), decode("k.yaml", lists).ignored.len()), (0, 1));
    let more = decode("k.yaml", format!("{lists}namePrefix: x-\n"));
    assert!(shown(&more)[0].contains("kustomize build"), "{:?}", shown(&more));
    assert_eq!(more.ignored, []);
}

#[test]
fn kind_without_its_row_is_refused() {
    let text = WEB.replace("apiVersion: v1", "apiVersion: example.com/v1");
    let decoded = decode("p.yaml", text);
    assert!(shown(&decoded)[0].contains("\"example.com/v1\" is not the version of a Pod (write v1)"), "{:?}", shown(&decoded));
    assert_eq!(keys(&decoded.broken), ["web"]);
}

#[test]
fn warnings_of_files_are_counted_together() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n";
    let (one, two) = (decode("b.yaml", role), decode("a.yaml", format!("{role}---\n{role}")));
    let warnings = Ignored::warnings(one.ignored.iter().chain(&two.ignored));
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected =
        "a.yaml:2:7: warning[ignored-kind]: kind: ignored: 3 objects of kind Role: there is no API server that pods could ask";
    assert_eq!(shown, [expected]);
}
