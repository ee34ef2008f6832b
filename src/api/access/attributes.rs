//! From a request to the words of Kubernetes' authorization: verb, resource, namespace, name. **Pure**.

use crate::kinds::OWN_GROUP;
use crate::resource::workload_resource;
use crate::route::{METRICS_GROUP, PodPath, Route};
use hyper::Method;
use podstead_workload::object::WorkloadKind;

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    /// `DELETE` of a collection.
    DeleteCollection,
}

impl Verb {
    /// As Kubernetes writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The verb of that name. One that this API does not know, such as `*` or `impersonate`, needs as much as the strongest.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all =
            [Self::Get, Self::List, Self::Watch, Self::Create, Self::Update, Self::Patch, Self::Delete, Self::DeleteCollection];
        all.into_iter().find(|verb| verb.as_str() == name)
    }

    /// Reports whether it reads only.
    pub(crate) const fn is_reading(self) -> bool {
        match self {
            Self::Get | Self::List | Self::Watch => true,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection => false,
        }
    }

    /// The verb of a method; `is_collection`: the path names no single object.
    fn of(method: &Method, is_collection: bool, watch: bool) -> Self {
        match (method.as_str(), is_collection) {
            ("GET" | "HEAD", false) => Self::Get,
            ("GET" | "HEAD", true) => {
                if watch {
                    Self::Watch
                } else {
                    Self::List
                }
            }
            ("PUT", _) => Self::Update,
            ("PATCH", _) => Self::Patch,
            ("DELETE", false) => Self::Delete,
            ("DELETE", true) => Self::DeleteCollection,
            (_, _) => Self::Create,
        }
    }
}

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Verb,
    /// The API group; empty for the core group and for paths that are no resource.
    pub(crate) group: &'a str,
    /// The plural; empty for a path that is no resource, such as `/version`.
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    /// `None` for all namespaces, and for what belongs to none.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// Place of an object or a collection.
enum Place<'a> {
    All,
    In(&'a str),
    Named(&'a PodPath),
    /// An object without a namespace.
    Global(&'a str),
}

impl<'a> Attributes<'a> {
    /// Attributes of a request.
    pub(crate) fn of(route: &'a Route, method: &Method, watch: bool) -> Self {
        let (group, resource, subresource, place) = words(route);
        let is_collection = !resource.is_empty() && matches!(place, Place::All | Place::In(_));
        let (namespace, name) = match place {
            Place::All => (None, None),
            Place::In(namespace) => (Some(namespace), None),
            Place::Named(path) => (Some(path.namespace.as_str()), Some(path.name.as_str())),
            Place::Global(name) => (None, Some(name)),
        };
        Self { verb: Verb::of(method, is_collection, watch), group, resource, subresource, namespace, name }
    }

    /// Kubernetes' sentence for a request that is forbidden, with the role that it needs.
    pub(crate) fn refusal(&self, user: &str, need: &str) -> String {
        let Self { verb, group, resource, subresource, namespace, name } = self;
        let resource = if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
        let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
        let place = match namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        format!(
            "{qualified}{name} is forbidden: User {user:?} cannot {} resource {resource:?} in API group {group:?} {place}: {need}",
            verb.as_str()
        )
    }
}

fn of<'a>(namespace: Option<&'a String>) -> Place<'a> {
    namespace.map_or(Place::All, |namespace| Place::In(namespace))
}

fn of_workload<'a>(kind: WorkloadKind, subresource: &'a str, place: Place<'a>) -> (&'a str, &'a str, &'a str, Place<'a>) {
    let names = workload_resource(kind);
    (names.group, names.plural, subresource, place)
}

/// API group, resource, subresource and place of a route.
fn words(route: &Route) -> (&str, &str, &str, Place<'_>) {
    match route {
        Route::Healthz
        | Route::Readyz
        | Route::Version
        | Route::CoreVersions
        | Route::Groups
        | Route::OwnGroup
        | Route::WorkloadGroup(_)
        | Route::WorkloadResources(_)
        | Route::DiscoveryGroup
        | Route::DiscoveryResources
        | Route::LeaseGroup
        | Route::LeaseResources
        | Route::NetworkingGroup
        | Route::NetworkingResources
        | Route::MetricsGroup
        | Route::MetricsResources
        | Route::CoreResources
        | Route::OwnResources => ("", "", "", Place::All),
        Route::StorageGroup | Route::StorageResources | Route::EventGroup | Route::EventResources => ("", "", "", Place::All),
        Route::OpenApi2 | Route::OpenApi3 | Route::OpenApi3Document(_) => ("", "", "", Place::All),
        Route::Metrics(_) => ("", "nodes", "metrics", Place::All), // As a kubelet: the pages show all pods.
        Route::PodMetrics(namespace) => (METRICS_GROUP, "pods", "", of(namespace.as_ref())),
        Route::PodMetric(path) => (METRICS_GROUP, "pods", "", Place::Named(path)),
        Route::NodeMetrics => (METRICS_GROUP, "nodes", "", Place::All),
        Route::NodeMetric(name) => (METRICS_GROUP, "nodes", "", Place::Global(name)),
        Route::Namespaces => ("", "namespaces", "", Place::All),
        Route::Namespace(path) => ("", "namespaces", "", Place::Named(path)), // As in a cluster: roles of the namespace can see it.
        Route::Nodes => ("", "nodes", "", Place::All),
        Route::Node(name) => ("", "nodes", "", Place::Global(name)),
        Route::Pods(namespace) => ("", "pods", "", of(namespace.as_ref())),
        Route::Pod(path) => ("", "pods", "", Place::Named(path)),
        Route::PodCommand(order, path) => (OWN_GROUP, "pods", order.as_str(), Place::Named(path)),
        Route::PodTrace(path) => (OWN_GROUP, "pods", "trace", Place::Named(path)),
        Route::PodLog(path) => ("", "pods", "log", Place::Named(path)),
        Route::PodExec(path) => ("", "pods", "exec", Place::Named(path)),
        Route::PodAttach(path) => ("", "pods", "attach", Place::Named(path)),
        Route::PodPortForward(path) => ("", "pods", "portforward", Place::Named(path)),
        Route::PodEviction(path) => ("", "pods", "eviction", Place::Named(path)),
        Route::Workloads(kind, namespace) => of_workload(*kind, "", of(namespace.as_ref())),
        Route::Workload(kind, path) => of_workload(*kind, "", Place::Named(path)),
        Route::WorkloadScale(kind, path) => of_workload(*kind, "scale", Place::Named(path)),
        Route::CronJobRun(path) => (OWN_GROUP, "cronjobs", "run", Place::Named(path)),
        Route::Events(api, namespace) => (api.group(), "events", "", of(namespace.as_ref())),
        Route::Event(api, path) => (api.group(), "events", "", Place::Named(path)),
        Route::Objects(kind, namespace) => (kind.group(), kind.plural(), "", of(namespace.as_ref())),
        Route::Object(kind, path) if path.namespace.is_empty() => (kind.group(), kind.plural(), "", Place::Global(&path.name)),
        Route::Object(kind, path) => (kind.group(), kind.plural(), "", Place::Named(path)),
        Route::Served(kind, namespace) => (kind.group(), kind.plural(), "", of(namespace.as_ref())),
        Route::ServedObject(kind, path) => (kind.group(), kind.plural(), "", Place::Named(path)),
        Route::Claims(namespace) => ("", "persistentvolumeclaims", "", of(namespace.as_ref())),
        Route::Claim(path) => ("", "persistentvolumeclaims", "", Place::Named(path)),
        Route::ClaimPrune(path) => (OWN_GROUP, "persistentvolumeclaims", "prune", Place::Named(path)),
        Route::Daemon => (OWN_GROUP, "daemon", "", Place::Global("daemon")),
        Route::Disk => (OWN_GROUP, "disk", "", Place::Global("disk")),
        Route::Page => (OWN_GROUP, "page", "", Place::Global("page")),
        Route::Review(review, _) => (review.group(), review.plural(), "", Place::All),
        Route::Credentials => (OWN_GROUP, "credentials", "", Place::All),
        Route::Access => (OWN_GROUP, "access", "", Place::Global("access")),
        Route::Sources => (OWN_GROUP, "sources", "", Place::All),
        Route::Source(name) => (OWN_GROUP, "sources", "", Place::Global(name)),
        Route::SourcePrune(name) => (OWN_GROUP, "sources", "prune", Place::Global(name)),
        Route::SourceHistory(name) => (OWN_GROUP, "sources", "history", Place::Global(name)),
        Route::SourceDiff(name) => (OWN_GROUP, "sources", "diff", Place::Global(name)),
        Route::SourceRollback(name) => (OWN_GROUP, "sources", "rollback", Place::Global(name)),
        Route::SourceSuspend(name) => (OWN_GROUP, "sources", "suspend", Place::Global(name)),
        Route::SourceResume(name) => (OWN_GROUP, "sources", "resume", Place::Global(name)),
        Route::SourceSync(name) => (OWN_GROUP, "sources", "sync", Place::Global(name)),
        Route::Images => (OWN_GROUP, "images", "", Place::All),
        Route::Image(name) => (OWN_GROUP, "images", "", Place::Global(name)),
        Route::Pulls => (OWN_GROUP, "pulls", "", Place::All),
        Route::Pull(name) => (OWN_GROUP, "pulls", "", Place::Global(name)),
        Route::ImagePull => (OWN_GROUP, "images", "pull", Place::All),
        Route::ImageImport => (OWN_GROUP, "images", "import", Place::All),
        Route::ImagePrune => (OWN_GROUP, "images", "prune", Place::All),
        Route::ImageVerify => (OWN_GROUP, "images", "verify", Place::All),
        Route::ImagePin => (OWN_GROUP, "images", "pin", Place::All),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(method: Method, path: &str, watch: bool) -> (Verb, String, Option<String>, Option<String>) {
        let route = Route::parse(path).unwrap();
        let Attributes { verb, group, resource, subresource, namespace, name } = Attributes::of(&route, &method, watch);
        (verb, [group, resource, subresource].join(":"), namespace.map(str::to_owned), name.map(str::to_owned))
    }

    #[test]
    fn requests_have_words_of_kubernetes() {
        let some = |text: &str| Some(text.to_owned());
        for (method, path, watch, expected) in [
            (Method::GET, "/api/v1/pods", false, (Verb::List, ":pods:".into(), None, None)),
            (Method::GET, "/api/v1/namespaces/a/pods", true, (Verb::Watch, ":pods:".into(), some("a"), None)),
            (Method::GET, "/api/v1/namespaces/a/pods/b", false, (Verb::Get, ":pods:".into(), some("a"), some("b"))),
            (Method::GET, "/api/v1/namespaces/a/pods/b/exec", false, (Verb::Get, ":pods:exec".into(), some("a"), some("b"))),
            (Method::DELETE, "/api/v1/namespaces/a/pods", false, (Verb::DeleteCollection, ":pods:".into(), some("a"), None)),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                false,
                (Verb::Patch, "apps:deployments:scale".into(), some("a"), some("b")),
            ),
            (Method::GET, "/version", false, (Verb::Get, "::".into(), None, None)),
            (Method::GET, "/metrics", false, (Verb::List, ":nodes:metrics".into(), None, None)),
        ] {
            assert_eq!(attributes(method, path, watch), expected, "{path}");
        }
    }
}
