//! Types of objects on the command line: `deploy`, `deployments`, `deployments.apps`, `deploy,rs`, `deploy/web`. **Pure**.

use super::client::{OWN, Target};
use podstead_api::{OWN_GROUP, RELEASED_PARAMETER, WORKLOAD_KINDS, workload_resource};
use podstead_workload::object::WorkloadKind;

/// A type of object that the daemon lists in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectType {
    /// Pods.
    Pod,
    /// ConfigMaps.
    ConfigMap,
    /// Secrets.
    Secret,
    /// PersistentVolumeClaims.
    PersistentVolumeClaim,
    /// Services.
    Service,
    /// EndpointSlices.
    EndpointSlice,
    /// NetworkPolicies.
    NetworkPolicy,
    /// Namespaces that objects are in.
    Namespace,
    /// This host.
    Node,
    /// Events.
    Event,
    /// Sources of manifests.
    Source,
    /// Images on this host.
    Image,
    /// Pulls under way.
    Pull,
    /// Workloads of a kind.
    Workload(WorkloadKind),
}

/// Types besides workloads.
const OTHERS: [ObjectType; 13] = [
    ObjectType::Pod,
    ObjectType::ConfigMap,
    ObjectType::Secret,
    ObjectType::PersistentVolumeClaim,
    ObjectType::Service,
    ObjectType::EndpointSlice,
    ObjectType::NetworkPolicy,
    ObjectType::Namespace,
    ObjectType::Node,
    ObjectType::Event,
    ObjectType::Source,
    ObjectType::Image,
    ObjectType::Pull,
];

impl ObjectType {
    /// The type that a word means, in upper or lower case; the group may follow after a dot.
    pub(super) fn named(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        let is_meant = |object_type: &Self| {
            let [plural, singular, short] = object_type.names();
            let group = object_type.group();
            let is_qualified = |name| word.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) == Some(group);
            [plural, singular, short].contains(&word.as_str())
                || !group.is_empty() && [plural, singular].into_iter().any(is_qualified)
        };
        OTHERS.into_iter().chain(WORKLOAD_KINDS.map(Self::Workload)).find(is_meant)
    }

    /// The API group; empty for the core group.
    fn group(self) -> &'static str {
        match self {
            Self::Workload(kind) => workload_resource(kind).group,
            Self::NetworkPolicy => "networking.k8s.io",
            Self::EndpointSlice => "discovery.k8s.io",
            Self::Source | Self::Image | Self::Pull => OWN_GROUP,
            Self::Pod
            | Self::ConfigMap
            | Self::Secret
            | Self::PersistentVolumeClaim
            | Self::Service
            | Self::Namespace
            | Self::Node
            | Self::Event => "",
        }
    }

    /// True if its objects are in a namespace.
    pub(super) const fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Node | Self::Source | Self::Image | Self::Pull)
    }

    /// The types that `all` means.
    pub(super) fn all() -> Vec<Self> {
        [Self::Pod, Self::Service].into_iter().chain(WORKLOAD_KINDS.map(Self::Workload)).collect()
    }

    /// Plural, singular and short name.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Workload(kind) => {
                let resource = workload_resource(kind);
                [resource.plural, resource.singular, resource.short.unwrap_or(resource.plural)]
            }
            Self::Pod => ["pods", "pod", "po"],
            Self::ConfigMap => ["configmaps", "configmap", "cm"],
            Self::Secret => ["secrets", "secret", "secret"],
            Self::PersistentVolumeClaim => ["persistentvolumeclaims", "persistentvolumeclaim", "pvc"],
            Self::Service => ["services", "service", "svc"],
            Self::EndpointSlice => ["endpointslices", "endpointslice", "endpointslice"],
            Self::NetworkPolicy => ["networkpolicies", "networkpolicy", "netpol"],
            Self::Namespace => ["namespaces", "namespace", "ns"],
            Self::Node => ["nodes", "node", "no"],
            Self::Event => ["events", "event", "ev"],
            Self::Source => ["sources", "source", "source"],
            Self::Image => ["images", "image", "image"],
            Self::Pull => ["pulls", "pull", "pull"],
        }
    }

    /// The word before the name with `-o name`, such as `deployment.apps`. podstead's own types go without their group.
    pub(super) fn qualified_singular(self) -> String {
        match self.group() {
            "" | OWN_GROUP => self.names()[1].to_owned(),
            group => format!("{}.{group}", self.names()[1]),
        }
    }

    /// The type in messages, such as `deployments.apps`.
    pub(super) fn qualified_plural(self) -> &'static str {
        match self {
            Self::Workload(kind) => workload_resource(kind).qualified,
            Self::NetworkPolicy => "networkpolicies.networking.k8s.io",
            Self::EndpointSlice => "endpointslices.discovery.k8s.io",
            Self::Pod
            | Self::ConfigMap
            | Self::Secret
            | Self::PersistentVolumeClaim
            | Self::Service
            | Self::Namespace
            | Self::Node
            | Self::Event
            | Self::Source
            | Self::Image
            | Self::Pull => self.names()[0],
        }
    }

    /// The path of its objects in a namespace or in all.
    pub(super) fn collection(self, namespace: Option<&str>) -> Target {
        let group = self.group();
        let base = match group {
            "" => "/api/v1".to_owned(),
            OWN_GROUP => OWN.to_owned(),
            group => format!("/apis/{group}/v1"),
        };
        let target = match namespace.filter(|_| self.is_namespaced()) {
            Some(namespace) => Target::new(&base, &["namespaces", namespace, self.names()[0]]),
            None => Target::new(&base, &[self.names()[0]]),
        };
        // People who ask podstead want to see what is on the disk.
        target.with_flag(RELEASED_PARAMETER, self == Self::PersistentVolumeClaim)
    }
}

/// Reads `deploy,rs` or `all`. The error names the word.
pub(super) fn parse_types(text: &str) -> Result<Vec<ObjectType>, String> {
    let mut types = Vec::new();
    for word in text.split(',') {
        let found = match word {
            "all" => ObjectType::all(),
            _ => vec![ObjectType::named(word).ok_or_else(|| unknown(word))?],
        };
        types.extend(found.into_iter().filter(|found| !types.contains(found)).collect::<Vec<_>>());
    }
    Ok(types)
}

/// Reads `deploy/web`. The error is a sentence.
pub(super) fn parse_object(text: &str) -> Result<(ObjectType, String), String> {
    match text.split_once('/') {
        Some((_, name)) if name.is_empty() || name.contains('/') => Err(format!("expected TYPE/NAME, not {text:?}")),
        Some((word, name)) => Ok((ObjectType::named(word).ok_or_else(|| unknown(word))?, name.to_owned())),
        None => Err(format!("expected TYPE/NAME, not {text:?}")),
    }
}

/// The place to look for what a cluster has as objects.
fn elsewhere(word: &str) -> Option<&'static str> {
    match word {
        "pv" | "persistentvolume" | "persistentvolumes" => Some("the data of claims is in podstead get pvc and podstead volume ls"),
        _ => None,
    }
}

fn unknown(word: &str) -> String {
    let names = OTHERS.into_iter().chain(WORKLOAD_KINDS.map(ObjectType::Workload)).flat_map(ObjectType::names).chain(["all"]);
    let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    // Short words have many neighbours that mean something else.
    let near = near.filter(|(distance, _)| *distance <= 2.min(word.len() / 4)).min();
    if let Some(hint) = elsewhere(word) {
        return format!("podstead has no type {word:?}: {hint}");
    }
    match near {
        Some((_, name)) => format!("unknown type {word:?}, did you mean {name:?}?"),
        None => format!("unknown type {word:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_for_kubectl() {
        let deployment = ObjectType::Workload(WorkloadKind::Deployment);
        for word in ["deploy", "deployment", "deployments", "deployments.apps", "deployment.apps", "Deployment"] {
            assert_eq!(ObjectType::named(word), Some(deployment), "{word}");
        }
        assert_eq!(ObjectType::named("job.batch"), Some(ObjectType::Workload(WorkloadKind::Job)));
        assert_eq!(ObjectType::named("deploy.batch"), None);
        assert_eq!(ObjectType::named("po"), Some(ObjectType::Pod));
        assert_eq!(ObjectType::named("svc"), Some(ObjectType::Service));
        for word in ["netpol", "networkpolicies.networking.k8s.io"] {
            assert_eq!(ObjectType::named(word), Some(ObjectType::NetworkPolicy));
        }
        assert_eq!(ObjectType::named("pods.networking.k8s.io"), None);
        assert_eq!(ObjectType::named("ingresses"), None);
    }

    #[test]
    fn lists_of_types_are_read_once_each() {
        let sets = ObjectType::Workload(WorkloadKind::ReplicaSet);
        assert_eq!(parse_types("rs,po,rs").unwrap(), [sets, ObjectType::Pod]);
        assert_eq!(parse_types("all").unwrap().len(), 9);
        assert_eq!(parse_types("all,cm").unwrap().len(), 10);
        assert_eq!(parse_types("deplyo").unwrap_err(), r#"unknown type "deplyo", did you mean "deploy"?"#);
        assert_eq!(parse_types("ing").unwrap_err(), r#"unknown type "ing""#);
        assert!(parse_types("pv").unwrap_err().contains("podstead volume ls"));
        assert_eq!(parse_types("rs,").unwrap_err(), r#"unknown type """#);
    }

    #[test]
    fn object_is_a_type_and_a_name() {
        assert_eq!(parse_object("po/web").unwrap(), (ObjectType::Pod, "web".to_owned()));
        assert!(parse_object("web").is_err() && parse_object("po/").is_err() && parse_object("po/a/b").is_err());
    }

    #[test]
    fn collections_are_in_their_group() {
        let path = |object_type: ObjectType, namespace| format!("{:?}", object_type.collection(namespace));
        assert!(path(ObjectType::NetworkPolicy, None).contains(r#""/apis/networking.k8s.io/v1/networkpolicies""#));
        assert!(path(ObjectType::Node, Some("x")).contains(r#""/api/v1/nodes""#));
        assert!(path(ObjectType::Pod, None).contains(r#""/api/v1/pods""#));
        assert!(path(ObjectType::Workload(WorkloadKind::Job), Some("x")).contains(r#""/apis/batch/v1/namespaces/x/jobs""#));
    }
}
