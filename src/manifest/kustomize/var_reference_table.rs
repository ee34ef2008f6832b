//! Fields that may have `vars`, which kustomize has built in.

use super::config::FieldSpec;
use super::id::Gvk;

const OF_CONTAINERS: &[&str] = &["args", "command", "env/value", "volumeMounts/mountPath"];

/// Kinds with containers, the path of their pod, and that of the servers of their volumes, as upstream has them.
const PODS: &[(&str, &str, &str)] = &[
    ("CronJob", "spec/jobTemplate/spec/template/spec", "spec/jobTemplate/spec/template/volumes/nfs/server"),
    ("DaemonSet", "spec/template/spec", "spec/template/spec/volumes/nfs/server"),
    ("Deployment", "spec/template/spec", "spec/template/spec/volumes/nfs/server"),
    ("Job", "spec/template/spec", "spec/template/spec/volumes/nfs/server"),
    ("Pod", "spec", "spec/volumes/nfs/server"),
    ("ReplicaSet", "spec/template/spec", "spec/template/spec/volumes/nfs/server"),
    ("StatefulSet", "spec/template/spec", "spec/volumeClaimTemplates/spec/nfs/server"),
];

const OTHERS: &[(&str, &str)] = &[
    ("Deployment", "spec/template/metadata/annotations"),
    ("Ingress", "spec/rules/host"),
    ("Ingress", "spec/tls/hosts"),
    ("Ingress", "spec/tls/secretName"),
    ("Service", "spec/ports/port"),
    ("Service", "spec/ports/targetPort"),
    ("PersistentVolume", "spec/nfs/server"),
    ("", "metadata/labels"),
    ("", "metadata/annotations"),
];

/// Fields that may have vars, which kustomize has built in.
pub(super) fn references() -> Vec<FieldSpec> {
    let spec = |kind: &str, path: String| FieldSpec { gvk: Gvk { kind: kind.to_owned(), ..Gvk::default() }, path, create: false };
    let of_pods = PODS.iter().flat_map(|(kind, pod, server)| {
        let lists = ["containers", "initContainers"].into_iter();
        let fields = lists.flat_map(move |list| OF_CONTAINERS.iter().map(move |field| format!("{pod}/{list}/{field}")));
        fields.chain([(*server).to_owned()]).map(move |path| spec(kind, path))
    });
    of_pods.chain(OTHERS.iter().map(|(kind, path)| spec(kind, (*path).to_owned()))).collect()
}
