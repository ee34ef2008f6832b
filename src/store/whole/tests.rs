//! Sources of several files, checked as a whole.

use super::{exclusive_claims, missing_claims};
use crate::{CheckContext, Set, UndeltaStore, check};
use podstead_artifact::{Artifact, Surroundings};
use podstead_manifest::Problem;
use podstead_pod::{AdmitContext, NodeName, Revision, SourceId};
use std::collections::BTreeMap;

fn set(files: &[(&str, &str)]) -> Set {
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().to_vec().into()))).collect();
    let artifact = Artifact {
        revision: Revision(String::new()),
        place: None,
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    };
    let check = |file: &str, bytes: &[u8], patches: &podstead_manifest::PatchesByObject| check(file, bytes, &context, patches);
    UndeltaStore::default().apply(&artifact, &check).set(&SourceId::new("a"), &artifact.revision)
}

fn told(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn claim(mode: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec: {{accessModes: [{mode}], resources: {{requests: \
         {{storage: 1Gi}}}}}}\n"
    )
}

fn deployment(replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  strategy: {{type: Recreate}}\n  selector: \
         {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers: [{{name: a, image: x}}]\n      \
         volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]\n"
    )
}

/// W82.
#[test]
fn claim_of_another_file_lets_one_pod_run() {
    let of = |mode: &str, replicas: u32| {
        let set = set(&[("claim.yaml", &claim(mode)), ("web.yaml", &deployment(replicas))]);
        assert_eq!(missing_claims(&set), []);
        told(&exclusive_claims(&set))
    };
    assert_eq!(of("ReadWriteOnce", 3), [""; 0]);
    assert_eq!(of("ReadWriteOncePod", 1), [""; 0]);
    let [told] = <[String; 1]>::try_from(of("ReadWriteOncePod", 3)).unwrap();
    assert!(
        told.starts_with("web.yaml:1:1: warning[suspicious-value]: spec.replicas: only 1 of 3 pods will run: claim \"data\""),
        "{told}"
    );
}

#[test]
fn claim_that_nobody_has_is_told_of() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a, image: x}]\n  volumes:\n  - {name: e, emptyDir: {}}\n  \
               - {name: data, persistentVolumeClaim: {claimName: data}}\n";
    let told = told(&missing_claims(&set(&[("pod.yaml", pod), ("web.yaml", &deployment(1))])));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with(
            "pod.yaml:1:1: warning[suspicious-value]: spec.volumes[1].persistentVolumeClaim.claimName: no claim \"data\""
        ),
        "{told:?}"
    );
    assert!(
        told[1].starts_with(
            "web.yaml:1:1: warning[suspicious-value]: spec.template.spec.volumes[0].persistentVolumeClaim.claimName: "
        ),
        "{told:?}"
    );
    let elsewhere = claim("ReadWriteOnce").replace("{name: data}", "{name: data, namespace: other}");
    assert_eq!(missing_claims(&set(&[("claim.yaml", &elsewhere), ("web.yaml", &deployment(1))])).len(), 1);
}

/// W41.
#[test]
fn claims_that_a_stateful_set_makes_are_there() {
    let store = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 2\n  serviceName: db\n  selector: {matchLabels: {app: db}}\n  \
                 template:\n    metadata: {labels: {app: db}}\n    spec:\n      containers: [{name: a, image: x, volumeMounts: [{name: data, mountPath: \
                 /d}]}]\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}}]\n";
    let backup = |claim: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: backup}}\nspec:\n  containers: [{{name: a, image: x}}]\n  volumes: [{{name: d, \
             persistentVolumeClaim: {{claimName: {claim}}}}}]\n"
        )
    };
    let of = |claim: &str| missing_claims(&set(&[("db.yaml", store), ("backup.yaml", &backup(claim))])).len();
    assert_eq!((of("data-db-0"), of("data-db-x"), of("data-other-0")), (0, 1, 1));
    assert_eq!(exclusive_claims(&set(&[("db.yaml", store)])), [], "each pod has a claim of its own");
}
