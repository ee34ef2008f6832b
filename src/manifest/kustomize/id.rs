//! Identities of objects as kustomize compares them.

use super::tree::Tree;

/// Namespace that stands for none, in selectors too.
pub(super) const NO_NAMESPACE: &str = "_non_namespaceable_";
const DEFAULT: &str = "default";

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gvk {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// Group, version, kind, name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) gvk: Gvk,
    pub(super) name: String,
    pub(super) namespace: String,
    /// Of a kind that is known to have no namespace. Former identities do not know it: their namespace is [`NO_NAMESPACE`].
    pub(super) cluster_scoped: bool,
}

impl Gvk {
    pub(super) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    pub(super) fn of(tree: &Tree) -> Self {
        let text = |key: &str| tree.get(key).map_or("", Tree::text);
        Self::new(text("apiVersion"), text("kind"))
    }

    /// Reports whether each part that the selector names is the same.
    pub(super) fn is_selected(&self, selector: &Gvk) -> bool {
        let same = |own: &str, wanted: &str| wanted.is_empty() || own == wanted;
        same(&self.group, &selector.group) && same(&self.version, &selector.version) && same(&self.kind, &selector.kind)
    }

    pub(super) fn is_cluster_scoped(&self) -> bool {
        let Self { group, version, kind } = self;
        CLUSTER_SCOPED
            .iter()
            .any(|(of, versions, kinds)| of == group && versions.contains(&version.as_str()) && kinds.contains(&kind.as_str()))
    }

    /// `Kind.version.group`.
    pub(super) fn text(&self) -> String {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        format!("{}.{}.{}", or(&self.kind, "[noKind]"), or(&self.version, "[noVer]"), or(&self.group, "[noGrp]"))
    }
}

impl Id {
    pub(super) fn effective_namespace(&self) -> &str {
        match self.namespace.as_str() {
            _ if self.cluster_scoped => NO_NAMESPACE,
            "" => DEFAULT,
            namespace => namespace,
        }
    }

    pub(super) fn same_namespace(&self, other: &Id) -> bool {
        self.effective_namespace() == other.effective_namespace()
    }

    pub(super) fn same(&self, other: &Id) -> bool {
        self.gvk == other.gvk && self.name == other.name && self.same_namespace(other)
    }

    /// `Kind.version.group/name.namespace`.
    pub(super) fn text(&self) -> String {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        format!("{}/{}.{}", self.gvk.text(), or(&self.name, "[noName]"), or(&self.namespace, "[noNs]"))
    }
}

/// Group, versions and kinds of objects without a namespace, as the OpenAPI document of Kubernetes 1.21 has them, which kustomize 5 goes
/// by.
const CLUSTER_SCOPED: &[(&str, &[&str], &[&str])] = &[
    ("", &["v1"], &["ComponentStatus", "Namespace", "Node", "NodeProxyOptions", "PersistentVolume"]),
    ("admissionregistration.k8s.io", &["v1", "v1beta1"], &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"], &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"], &["APIService"]),
    ("certificates.k8s.io", &["v1", "v1beta1"], &["CertificateSigningRequest"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1"], &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["v1", "v1beta1"], &["IngressClass"]),
    ("node.k8s.io", &["v1", "v1beta1"], &["RuntimeClass"]),
    ("policy", &["v1beta1"], &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["v1", "v1beta1"], &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["v1", "v1beta1"], &["PriorityClass"]),
    ("storage.k8s.io", &["v1", "v1beta1"], &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
];
