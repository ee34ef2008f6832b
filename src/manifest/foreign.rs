//! Kinds that podstead does not read: which of them it ignores, and which it refuses.
//!
//! A kind is ignored if the author's pods do the same on this host without the object. It is refused if the object protects something, or
//! brings pods: neither may vanish without an error. In both cases the other objects of the file are used.

use super::fault::quoted;
use super::node::{Node, Value};
use super::{Problem, kind};
use podstead_pod::{Origin, Severity};
use std::collections::BTreeMap;

/// Word for the class of a warning about ignored objects.
const IGNORED_KIND: &str = "ignored-kind";

/// A document, or a list of documents, of a kind that podstead does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) kind: String,
    /// Empty for the core group.
    pub(super) group: String,
    /// Objects in the document.
    pub(super) count: usize,
    pub(super) answer: Answer,
}

/// Treatment of a kind that podstead does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// With a warning.
    Ignored {
        /// The reason why the object is not needed here, or the missing effect.
        why: String,
    },
    /// With an error.
    Refused { why: &'static str, instead: &'static str },
}

/// Objects of one kind that were ignored in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Such as `Role`.
    kind: String,
    /// Empty for the core group.
    group: String,
    why: String,
    count: usize,
    /// Position of the first one.
    first: Origin,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    group: &'static str,
    kind: &'static str,
    answer: RowAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowAnswer {
    Ignored(&'static str),
    Refused(&'static str, &'static str),
}
use RowAnswer::{Ignored as I, Refused as R};

const NO_ENDPOINTS: RowAnswer = I("EndpointSlices take its place: write one for a Service without selector");
const NO_API: RowAnswer = I("there is no API server that pods could ask");
const NOT_SCALED: RowAnswer = I("nothing scales pods here: a workload has the replicas that it is written with, or 1");
const NOT_DISRUPTED: RowAnswer = I("only updates stop pods here, and they keep to the strategy of the workload");
const NOT_PREEMPTED: RowAnswer = I("podstead does not preempt pods");
const NO_CLASSES: RowAnswer = I("a PersistentVolumeClaim is a directory on this host and needs no StorageClass");
const ONE_RUNTIME: RowAnswer = I("podstead has only one runtime");
const NO_QUOTA: RowAnswer = I("quotas are not enforced: require.limits of the source bounds its pods");
const NO_LIMIT_RANGE: RowAnswer = I("its defaults are not given to containers: those without limits have none");
const NO_ROUTES: RowAnswer = I("nothing routes HTTP here: publish a port with a Service or with hostPort in the pod");
const OPEN: RowAnswer = R("the pods that it selects would be open", "leave it out, or give the pods a network of their own");
const NO_SECRET: RowAnswer = R("no Secret would come of it here", "write the Secret and encrypt it with SOPS");
const NO_VOLUME: RowAnswer = R(
    "a PersistentVolumeClaim is a directory on this host: data at the place that it names would not be found",
    "remove it, and use a hostPath or nfs volume for a directory that exists",
);
const BRINGS_PODS: RowAnswer =
    R("it brings pods that would not run here", "write a Deployment, StatefulSet, DaemonSet or Job instead");
const RENDERED: RowAnswer = R("it brings pods that would not run here", "render it and put the output here");
const KUSTOMIZED: RowAnswer = R(
    "only the kustomization.yaml of a directory or git source is built",
    "use its directory, or put the output of `kustomize build` here",
);
const LISTED: RowAnswer = I("only the kustomization.yaml of a directory or git source is built");
const STATE: RowAnswer = R("it is the state of a cluster, which is not written by hand", "remove it");
const TEMPLATE: RowAnswer = R("nothing makes pods of it", "write a Deployment or a Pod");
const REMOVED: RowAnswer = R("Kubernetes has removed it", "remove it; podSecurity of the source restricts its pods");

const fn row(group: &'static str, kind: &'static str, answer: RowAnswer) -> Row {
    Row { group, kind, answer }
}

/// Kinds by group. A group with a dot that is not here is ignored as a whole.
const TABLE: &[Row] = &[
    row("", "Endpoints", NO_ENDPOINTS),
    row("", "ServiceAccount", NO_API),
    row("rbac.authorization.k8s.io", "Role", NO_API),
    row("rbac.authorization.k8s.io", "ClusterRole", NO_API),
    row("rbac.authorization.k8s.io", "RoleBinding", NO_API),
    row("rbac.authorization.k8s.io", "ClusterRoleBinding", NO_API),
    row("autoscaling", "HorizontalPodAutoscaler", NOT_SCALED),
    row("autoscaling.k8s.io", "VerticalPodAutoscaler", NOT_SCALED),
    row("keda.sh", "ScaledObject", NOT_SCALED),
    row("policy", "PodDisruptionBudget", NOT_DISRUPTED),
    row("scheduling.k8s.io", "PriorityClass", NOT_PREEMPTED),
    row("storage.k8s.io", "StorageClass", NO_CLASSES),
    row("node.k8s.io", "RuntimeClass", ONE_RUNTIME),
    row("", "ResourceQuota", NO_QUOTA),
    row("", "LimitRange", NO_LIMIT_RANGE),
    row("extensions", "Ingress", NO_ROUTES),
    row("networking.k8s.io", "Ingress", NO_ROUTES),
    row("networking.k8s.io", "IngressClass", NO_ROUTES),
    row("gateway.networking.k8s.io", "GatewayClass", NO_ROUTES),
    row("gateway.networking.k8s.io", "Gateway", NO_ROUTES),
    row("gateway.networking.k8s.io", "HTTPRoute", NO_ROUTES),
    row("gateway.networking.k8s.io", "GRPCRoute", NO_ROUTES),
    row("cloud.google.com", "BackendConfig", NO_ROUTES),
    row("networking.gke.io", "FrontendConfig", NO_ROUTES),
    row("networking.gke.io", "ManagedCertificate", NO_ROUTES),
    row("policy.networking.k8s.io", "AdminNetworkPolicy", OPEN),
    row("policy.networking.k8s.io", "BaselineAdminNetworkPolicy", OPEN),
    row("cilium.io", "CiliumNetworkPolicy", OPEN),
    row("cilium.io", "CiliumClusterwideNetworkPolicy", OPEN),
    row("projectcalico.org", "NetworkPolicy", OPEN),
    row("projectcalico.org", "GlobalNetworkPolicy", OPEN),
    row("crd.projectcalico.org", "NetworkPolicy", OPEN),
    row("crd.projectcalico.org", "GlobalNetworkPolicy", OPEN),
    row("security.istio.io", "AuthorizationPolicy", OPEN),
    row("bitnami.com", "SealedSecret", NO_SECRET),
    row("external-secrets.io", "ExternalSecret", NO_SECRET),
    row("external-secrets.io", "ClusterExternalSecret", NO_SECRET),
    row("secrets-store.csi.x-k8s.io", "SecretProviderClass", NO_SECRET),
    row("isindir.github.com", "SopsSecret", NO_SECRET),
    row("secrets.hashicorp.com", "VaultStaticSecret", NO_SECRET),
    row("", "PersistentVolume", NO_VOLUME),
    row("argoproj.io", "Rollout", BRINGS_PODS),
    row("argoproj.io", "Workflow", BRINGS_PODS),
    row("argoproj.io", "CronWorkflow", BRINGS_PODS),
    row("argoproj.io", "Application", RENDERED),
    row("argoproj.io", "ApplicationSet", RENDERED),
    row("apps.kruise.io", "CloneSet", BRINGS_PODS),
    row("apps.kruise.io", "StatefulSet", BRINGS_PODS),
    row("apps.kruise.io", "DaemonSet", BRINGS_PODS),
    row("apps.kruise.io", "BroadcastJob", BRINGS_PODS),
    row("apps.kruise.io", "AdvancedCronJob", BRINGS_PODS),
    row("apps.openshift.io", "DeploymentConfig", BRINGS_PODS),
    row("serving.knative.dev", "Service", BRINGS_PODS),
    row("serving.knative.dev", "Configuration", BRINGS_PODS),
    row("batch.volcano.sh", "Job", BRINGS_PODS),
    row("keda.sh", "ScaledJob", BRINGS_PODS),
    row("helm.toolkit.fluxcd.io", "HelmRelease", RENDERED),
    row("helm.cattle.io", "HelmChart", RENDERED),
    row(
        "kustomize.toolkit.fluxcd.io",
        "Kustomization",
        R("it brings pods that would not run here", "set path of a git source to its spec.path"),
    ),
    row("kustomize.config.k8s.io", "Kustomization", KUSTOMIZED),
    row("kustomize.config.k8s.io", "Component", KUSTOMIZED),
    row("", "Node", STATE),
    row("", "Event", STATE),
    row("", "Binding", STATE),
    row("", "ComponentStatus", STATE),
    row("events.k8s.io", "Event", STATE),
    row("coordination.k8s.io", "Lease", STATE),
    row("apps", "ControllerRevision", STATE),
    row("", "PodTemplate", TEMPLATE),
    row("policy", "PodSecurityPolicy", REMOVED),
    row("extensions", "PodSecurityPolicy", REMOVED),
];

/// The group of kustomize's generators and transformers, which has neither a dot nor a version.
const BUILTIN: &str = "builtin";
/// The group of podstead's own kinds: an unknown one is a slip.
const OWN_GROUP: &str = "podstead.dev";
/// Fields of a Kustomization that only lists resources, and changes none of them.
const LISTING: [&str; 4] = ["apiVersion", "kind", "metadata", "resources"];
/// Letters of a kind or group that are kept for a warning.
const LONGEST_WORD: usize = 60;

/// The document's kind if podstead does not read it; `None` for kinds that it reads, and for unknown ones without a group, which may be slips.
pub(super) fn foreign(node: &Node) -> Option<Foreign> {
    let text = |name: &str| node.entry(name).filter(|entry| entry.duplicate_of.is_none())?.value.as_str();
    let (version, written) = (text("apiVersion")?, text("kind")?);
    let group = match version.split_once('/') {
        Some((group, _)) => group,
        None if version == BUILTIN => BUILTIN,
        None => "",
    };
    let answer = answer(group, written, node).map(|answer| (written, answer, 1));
    let of_list = || {
        let item = written.strip_suffix("List")?;
        Some((item, self::answer(group, item, node)?, items(node)?))
    };
    let (kind, answer, count) = if kind::is_own(written) { answer? } else { of_list().or(answer)? };
    let short = |text: &str| text.chars().take(LONGEST_WORD).collect();
    Some(Foreign { kind: short(kind), group: short(group), count, answer })
}

fn items(node: &Node) -> Option<usize> {
    if let Value::List(items) = &node.entry("items")?.value.value { Some(items.len()) } else { None }
}

fn answer(group: &str, kind: &str, node: &Node) -> Option<Answer> {
    let row = match TABLE.iter().find(|row| (row.group, row.kind) == (group, kind)).map(|row| row.answer) {
        Some(KUSTOMIZED) if only_lists(node) => LISTED,
        Some(answer) => answer,
        None if group == BUILTIN => KUSTOMIZED,
        None if kind::is_own(kind) || group == OWN_GROUP || !group.contains('.') => return None,
        None => return Some(Answer::Ignored { why: format!("nothing here reads objects of the group {}", quoted(group)) }),
    };
    Some(match row {
        I(why) => Answer::Ignored { why: why.to_owned() },
        R(why, instead) => Answer::Refused { why, instead },
    })
}

fn only_lists(node: &Node) -> bool {
    node.entries().iter().all(|entry| LISTING.contains(&entry.key.as_str()))
}

/// The names of all kinds that are ignored or refused by name.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.kind)
}

impl Foreign {
    /// Message and hint of a refusal; `None` for what is ignored.
    pub(super) fn refusal(&self) -> Option<(String, &'static str)> {
        let Answer::Refused { why, instead } = self.answer else { return None };
        let of = if self.group.is_empty() { String::new() } else { format!(" of {}", self.group) };
        Some((format!("the kind {}{of} is not supported: {why}", quoted(&self.kind)), instead))
    }
}

impl Ignored {
    /// The objects of a document that begins at `first`; `None` for what is refused.
    pub(super) fn of(foreign: Foreign, first: Origin) -> Option<Self> {
        let Foreign { kind, group, count, answer } = foreign;
        match answer {
            Answer::Ignored { why } => Some(Self { kind, group, why, count, first }),
            Answer::Refused { .. } => None,
        }
    }

    /// Reports whether both are of one kind.
    fn is_like(&self, other: &Self) -> bool {
        (&self.kind, &self.group) == (&other.kind, &other.group)
    }

    /// Adds the number of the other, if both are of one kind.
    pub(super) fn absorbs(&mut self, other: &Self) -> bool {
        let is_like = self.is_like(other);
        if is_like {
            self.count += other.count;
        }
        is_like
    }

    /// A warning for each kind, at the first of its objects, with the number of all.
    pub fn warnings<'a>(all: impl Iterator<Item = &'a Self>) -> Vec<Problem> {
        let mut kinds: BTreeMap<(&str, &str), Self> = BTreeMap::new();
        for ignored in all.filter(|ignored| ignored.count > 0) {
            match kinds.entry((&ignored.kind, &ignored.group)) {
                std::collections::btree_map::Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.absorbs(ignored);
                    let place = |origin: &Origin| (origin.file.clone(), origin.position);
                    if place(&ignored.first) < place(&known.first) {
                        known.first = ignored.first.clone();
                    }
                }
                std::collections::btree_map::Entry::Vacant(new) => {
                    new.insert(ignored.clone());
                }
            }
        }
        kinds.into_values().map(Self::into_warning).collect()
    }

    fn into_warning(self) -> Problem {
        let Self { kind, group: _, why, count, first } = self;
        let objects = if count == 1 { "1 object".to_owned() } else { format!("{count} objects") };
        Problem {
            severity: Severity::Warning,
            code: IGNORED_KIND.to_owned(),
            file: first.file.into(),
            position: Some(first.position),
            field: "kind".to_owned(),
            message: format!("ignored: {objects} of kind {}: {why}", kind.escape_debug()),
            hint: None,
            object: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/kinds.md");

    const HEAD: &str = "\
# Which kinds of objects podstead reads

Manifests that were made for a cluster hold more than pods. podstead reads these kinds:

| kind | apiVersion | page |
|---|---|---|
| Pod | `v1` | [fields of a Pod](pod-support.md) |
| Deployment, ReplicaSet, StatefulSet, DaemonSet | `apps/v1` | [fields of workloads](workload-support.md) |
| Job, CronJob | `batch/v1` | [fields of workloads](workload-support.md) |
| ReplicationController | `v1` | [fields of workloads](workload-support.md) |
| Service | `v1` | [Services](services.md) |
| EndpointSlice | `discovery.k8s.io/v1` | [Services](services.md) |
| NetworkPolicy | `networking.k8s.io/v1` | [NetworkPolicies](network-policies.md) |
| Namespace, for its labels | `v1` | [NetworkPolicies](network-policies.md) |
| ConfigMap, Secret | `v1` | [ConfigMaps and Secrets](objects.md) |
| PersistentVolumeClaim | `v1` | [volumes](volumes.md) |
| Patch | `podstead.dev/v1alpha1` | [one repository, many hosts](many-hosts.md) |
| List, and lists of one kind, such as DeploymentList | of their items; `v1` for List | |

Older versions, such as `extensions/v1beta1`, are rejected with the version to write.

All other kinds are ignored or refused. In both cases everything else in the file is used, and an object of such a kind is not taken for one that
podstead manages.

* **Ignored**: the pods do the same on this host without the object. `podstead validate`, `podstead render` and the daemon report one warning for each
  kind in a source, with the number of objects. The exit code is 0, and 1 with `--strict`. A source of which all objects are ignored is valid and has
  no pods.
* **Refused**: an error. The object protects something or brings pods, so that leaving it out would not be what its author wants.

A kind that is in none of these tables is ignored if the group in its apiVersion has a dot (`cert-manager.io`). Otherwise it is rejected as a spelling
mistake, and the objects that its file had before stay.

This page is generated from the table in `src/manifest/foreign.rs` by `UPDATE=1 cargo test -p podstead-manifest kinds_page`.
";

    fn page() -> String {
        let mut page = HEAD.to_owned();
        let is_ignored = |row: &&Row| matches!(row.answer, I(_));
        page.push_str("\n## Ignored\n\n| kind | group | reason |\n|---|---|---|\n");
        for Row { group, kind, answer } in TABLE.iter().filter(is_ignored) {
            let I(why) = answer else { continue };
            page.push_str(&format!("| {kind} | {} | {why} |\n", group_cell(group)));
        }
        page.push_str("| a Kustomization that only lists resources | `kustomize.config.k8s.io` | only the kustomization.yaml of a directory or git source is built |\n");
        page.push_str("| any other | a group with a dot | nothing here reads objects of the group |\n");
        page.push_str("\n## Refused\n\n| kind | group | reason | instead |\n|---|---|---|---|\n");
        for Row { group, kind, answer } in TABLE {
            let R(why, instead) = answer else { continue };
            page.push_str(&format!("| {kind} | {} | {why} | {instead} |\n", group_cell(group)));
        }
        page
    }

    fn group_cell(group: &str) -> String {
        if group.is_empty() { "core".to_owned() } else { format!("`{group}`") }
    }

    #[test]
    fn kinds_page_is_made_from_the_table() {
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(PAGE, page()).unwrap();
        }
        let written = std::fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
        assert!(written == page(), "docs/reference/kinds.md is not what the table says: UPDATE=1 writes it");
    }

    #[test]
    fn rows_are_unique_and_shadow_no_own_kind() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            assert!(seen.insert((row.group, row.kind)), "{row:?}");
            let is_of_another_group = row.group.contains('.');
            assert!(is_of_another_group || !kind::is_own(row.kind), "{row:?}");
        }
    }
}
