//! Fields that name other objects, which kustomize has built in.

use super::config::{FieldSpec, NameReference};
use super::id::Gvk;

/// Kinds with a pod, and the path of its spec.
const PODS: &[(&str, &str)] = &[
    ("Pod", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
];

/// As [`PODS`], for the references that upstream has for other kinds.
const WORKLOADS: &[(&str, &str)] = &[
    ("Pod", "spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
];

const CONFIG_MAPS: &[&str] = &[
    "volumes/configMap/name",
    "containers/env/valueFrom/configMapKeyRef/name",
    "initContainers/env/valueFrom/configMapKeyRef/name",
    "containers/envFrom/configMapRef/name",
    "initContainers/envFrom/configMapRef/name",
    "volumes/projected/sources/configMap/name",
];

const SECRETS: &[&str] = &[
    "volumes/secret/secretName",
    "containers/env/valueFrom/secretKeyRef/name",
    "initContainers/env/valueFrom/secretKeyRef/name",
    "containers/envFrom/secretRef/name",
    "initContainers/envFrom/secretRef/name",
    "imagePullSecrets/name",
    "volumes/projected/sources/secret/name",
];

/// Group, kind and path.
type Row = (&'static str, &'static str, &'static str);

const CONFIG_MAP_ROWS: &[Row] = &[
    ("", "Node", "spec/configSource/configMap"),
    ("", "Role", "rules/resourceNames"),
    ("", "ClusterRole", "rules/resourceNames"),
    ("", "Ingress", r"metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap"),
];

const SECRET_ROWS: &[Row] = &[
    ("", "Ingress", "spec/tls/secretName"),
    ("", "Ingress", r"metadata/annotations/ingress.kubernetes.io\/auth-secret"),
    ("", "Ingress", r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-secret"),
    ("", "Ingress", r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-tls-secret"),
    ("", "ServiceAccount", "imagePullSecrets/name"),
    ("", "StorageClass", "parameters/secretName"),
    ("", "StorageClass", "parameters/adminSecretName"),
    ("", "StorageClass", "parameters/userSecretName"),
    ("", "StorageClass", "parameters/secretRef"),
    ("", "Role", "rules/resourceNames"),
    ("", "ClusterRole", "rules/resourceNames"),
    ("serving.knative.dev", "Service", "spec/template/spec/containers/env/valueFrom/secretKeyRef/name"),
    ("", "PersistentVolume", "spec/azureFile/secretName"),
];

const SERVICE_ROWS: &[Row] = &[
    ("apps", "StatefulSet", "spec/serviceName"),
    ("", "Ingress", "spec/rules/http/paths/backend/serviceName"),
    ("", "Ingress", "spec/backend/serviceName"),
    ("", "Ingress", "spec/rules/http/paths/backend/service/name"),
    ("", "Ingress", "spec/defaultBackend/service/name"),
    ("apiregistration.k8s.io", "APIService", "spec/service/name"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "webhooks/clientConfig/service"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "webhooks/clientConfig/service"),
];

const RBAC: &str = "rbac.authorization.k8s.io";

const STORAGE_CLASS_ROWS: &[Row] = &[
    ("", "PersistentVolume", "spec/storageClassName"),
    ("", "PersistentVolumeClaim", "spec/storageClassName"),
    ("", "StatefulSet", "spec/volumeClaimTemplates/spec/storageClassName"),
];

/// The table, in the order of application.
pub(super) fn name_references() -> Vec<NameReference> {
    let scaled = [("", "HorizontalPodAutoscaler", "spec/scaleTargetRef/name")];
    let mut table: Vec<NameReference> = ["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"]
        .map(|kind| reference("", "", kind, rows(&scaled)))
        .into();
    table.extend([
        reference("", "v1", "ConfigMap", [pods(PODS, CONFIG_MAPS), rows(CONFIG_MAP_ROWS)].concat()),
        reference("", "v1", "Secret", [pods(PODS, SECRETS), rows(SECRET_ROWS)].concat()),
        reference("", "v1", "Service", rows(SERVICE_ROWS)),
        reference(RBAC, "", "Role", rows(&[(RBAC, "RoleBinding", "roleRef/name")])),
        reference(
            RBAC,
            "",
            "ClusterRole",
            rows(&[(RBAC, "RoleBinding", "roleRef/name"), (RBAC, "ClusterRoleBinding", "roleRef/name")]),
        ),
        reference(
            "",
            "v1",
            "ServiceAccount",
            [
                rows(&[(RBAC, "RoleBinding", "subjects"), (RBAC, "ClusterRoleBinding", "subjects")]),
                pods(WORKLOADS, &["serviceAccountName"]),
            ]
            .concat(),
        ),
        reference("", "v1", "PersistentVolumeClaim", pods(WORKLOADS, &["volumes/persistentVolumeClaim/claimName"])),
        reference(
            "",
            "v1",
            "PersistentVolume",
            rows(&[("", "PersistentVolumeClaim", "spec/volumeName"), ("", "ClusterRole", "rules/resourceNames")]),
        ),
        reference("storage.k8s.io", "v1", "StorageClass", rows(STORAGE_CLASS_ROWS)),
        reference("scheduling.k8s.io", "v1", "PriorityClass", pods(WORKLOADS, &["priorityClassName"])),
        // Upstream has a version in this group, so that no IngressClass is ever found: names of these stay as they are.
        reference("networking.k8s.io/v1", "v1", "IngressClass", rows(&[("", "Ingress", "spec/ingressClassName")])),
        reference(
            "admissionregistration.k8s.io",
            "",
            "ValidatingAdmissionPolicy",
            rows(&[("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "spec/policyName")]),
        ),
    ]);
    table.sort_by_cached_key(|reference| super::sort::order_of(&reference.gvk));
    table
}

fn reference(group: &str, version: &str, kind: &str, referrers: Vec<FieldSpec>) -> NameReference {
    let gvk = Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
    NameReference { gvk, referrers }
}

fn spec(group: &str, kind: &str, path: String) -> FieldSpec {
    let gvk = Gvk { group: group.to_owned(), version: String::new(), kind: kind.to_owned() };
    FieldSpec { gvk, path, create: false }
}

fn rows(rows: &[Row]) -> Vec<FieldSpec> {
    rows.iter().map(|(group, kind, path)| spec(group, kind, (*path).to_owned())).collect()
}

fn pods(kinds: &[(&str, &str)], paths: &[&str]) -> Vec<FieldSpec> {
    let of_kind = |(kind, pod): &(&str, &str)| -> Vec<FieldSpec> {
        paths.iter().map(|path| spec("", kind, format!("{pod}/{path}"))).collect()
    };
    kinds.iter().flat_map(of_kind).collect()
}
