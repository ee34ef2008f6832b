//! From a path to what it asks for. **Pure**.

use super::event_api::{self, EventApi};
use super::kinds::{CONTROLLER_REVISIONS, LookedUpKind, OWN_GROUP, OWN_VERSION, Page, PodOrder, Review, ServedKind};
use super::resource::WorkloadResource;
use super::{leases, networking, storage};
use podstead_workload::object::WorkloadKind;

/// Resource that a path refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/healthz`, `/livez`: the process answers.
    Healthz,
    /// `/readyz`: every source has delivered.
    Readyz,
    /// Monitoring endpoints.
    Metrics(Page),
    /// `/version`.
    Version,
    /// `/api`: versions of the core group.
    CoreVersions,
    /// `/apis`: groups.
    Groups,
    /// `/apis/podstead.dev`: our group.
    OwnGroup,
    /// `/apis/apps`, `/apis/batch`: a group of workloads.
    WorkloadGroup(WorkloadGroup),
    /// `/apis/apps/v1`, `/apis/batch/v1`: its resources.
    WorkloadResources(WorkloadGroup),
    /// `/apis/metrics.k8s.io`.
    MetricsGroup,
    /// `/apis/metrics.k8s.io/v1beta1`: its resources.
    MetricsResources,
    /// Usage of pods, of one namespace or of all.
    PodMetrics(Option<String>),
    /// Usage of one pod.
    PodMetric(PodPath),
    /// Usage of this host.
    NodeMetrics,
    /// The same as one object.
    NodeMetric(String),
    /// `/openapi/v2`.
    OpenApi2,
    /// `/openapi/v3`: its documents.
    OpenApi3,
    /// One of them.
    OpenApi3Document(String),
    /// All namespaces.
    Namespaces,
    /// One namespace; it is in itself.
    Namespace(PodPath),
    /// All nodes: this host.
    Nodes,
    /// One node.
    Node(String),
    /// `/api/v1`: resources of the core group.
    CoreResources,
    /// `/apis/podstead.dev/v1alpha1`: resources of our group.
    OwnResources,
    /// Pods, of one namespace or of all.
    Pods(Option<String>),
    /// One pod.
    Pod(PodPath),
    /// Stop, start or restart a pod.
    PodCommand(PodOrder, PodPath),
    /// Traces of a pod.
    PodTrace(PodPath),
    /// `log` of a pod.
    PodLog(PodPath),
    /// `exec` of a pod.
    PodExec(PodPath),
    /// `attach` of a pod.
    PodAttach(PodPath),
    /// `portforward` of a pod.
    PodPortForward(PodPath),
    /// `eviction` of a pod.
    PodEviction(PodPath),
    /// Workloads of one kind, of one namespace or of all.
    Workloads(WorkloadKind, Option<String>),
    /// One workload; also its subresource `status`.
    Workload(WorkloadKind, PodPath),
    /// `scale` of a workload.
    WorkloadScale(WorkloadKind, PodPath),
    /// Start a CronJob now.
    CronJobRun(PodPath),
    /// Services or EndpointSlices, of one namespace or of all.
    Served(ServedKind, Option<String>),
    /// One Service or EndpointSlice.
    ServedObject(ServedKind, PodPath),
    /// `/apis/coordination.k8s.io`.
    LeaseGroup,
    /// `/apis/coordination.k8s.io/v1`: its resources.
    LeaseResources,
    /// `/apis/networking.k8s.io`.
    NetworkingGroup,
    /// `/apis/networking.k8s.io/v1`: its resources.
    NetworkingResources,
    /// `/apis/storage.k8s.io`.
    StorageGroup,
    /// `/apis/storage.k8s.io/v1`: its resources.
    StorageResources,
    /// `/apis/discovery.k8s.io`.
    DiscoveryGroup,
    /// `/apis/discovery.k8s.io/v1`: its resources.
    DiscoveryResources,
    /// Events, of one namespace or of all.
    Events(EventApi, Option<String>),
    /// One event.
    Event(EventApi, PodPath),
    /// `/apis/events.k8s.io`.
    EventGroup,
    /// `/apis/events.k8s.io/v1`: its resources.
    EventResources,
    /// Objects of a kind that is looked up and in namespaces, or PersistentVolumes or StorageClasses; of one namespace or of all.
    Objects(LookedUpKind, Option<String>),
    /// One of them.
    Object(LookedUpKind, PodPath),
    /// PersistentVolumeClaims, of one namespace or of all.
    Claims(Option<String>),
    /// One PersistentVolumeClaim.
    Claim(PodPath),
    /// Delete the data of one.
    ClaimPrune(PodPath),
    /// A review of oneself, by kind and version of its group.
    Review(Review, &'static str),
    /// Tokens for the TLS port.
    Credentials,
    /// Facts about the TLS port for clients.
    Access,
    /// The daemon itself.
    Daemon,
    /// Disk space of pods.
    Disk,
    /// The status page for a browser.
    Page,
    /// All sources.
    Sources,
    /// One source.
    Source(String),
    /// `prune` of a source.
    SourcePrune(String),
    /// Accepted revisions of a source.
    SourceHistory(String),
    /// Differences between an earlier revision and the one in force.
    SourceDiff(String),
    /// Go back to an earlier revision.
    SourceRollback(String),
    /// Hold the source at the revision in force.
    SourceSuspend(String),
    /// Go on.
    SourceResume(String),
    /// `sync` of a source.
    SourceSync(String),
    /// All images.
    Images,
    /// One image, by its digest.
    Image(String),
    /// All pulls under way.
    Pulls,
    /// One pull.
    Pull(String),
    /// Pull an image.
    ImagePull,
    /// Import an archive.
    ImageImport,
    /// Remove unused images.
    ImagePrune,
    /// Keep an image, or end that.
    ImagePin,
    /// `verify` of images.
    ImageVerify,
}

/// Namespace and name of a pod, or of another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodPath {
    /// The namespace.
    pub(super) namespace: String,
    /// The name; a pod's with the node suffix.
    pub(super) name: String,
}

/// A group of Kubernetes whose resources are workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkloadGroup {
    /// `apps`.
    Apps,
    /// `batch`.
    Batch,
}

impl WorkloadGroup {
    /// All groups, in the order of discovery.
    pub(super) const ALL: [Self; 2] = [Self::Apps, Self::Batch];

    /// Its name.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Apps => "apps",
            Self::Batch => "batch",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == name)
    }
}

/// The group of resource usage.
pub(super) const METRICS_GROUP: &str = "metrics.k8s.io";

impl Route {
    /// The collection that an object is in, and its name, for a watch of one object; any other route as it is.
    pub(super) fn into_collection(self) -> (Self, Option<String>) {
        match self {
            Self::Pod(path) => (Self::Pods(Some(path.namespace)), Some(path.name)),
            Self::Workload(kind, path) => (Self::Workloads(kind, Some(path.namespace)), Some(path.name)),
            Self::ServedObject(kind, path) => (Self::Served(kind, Some(path.namespace)), Some(path.name)),
            Self::Object(kind, path) => (Self::Objects(kind, Some(path.namespace)), Some(path.name)),
            Self::Event(api, path) => (Self::Events(api, Some(path.namespace)), Some(path.name)),
            Self::Claim(path) => (Self::Claims(Some(path.namespace)), Some(path.name)),
            Self::Source(name) => (Self::Sources, Some(name)),
            Self::Namespace(path) => (Self::Namespaces, Some(path.name)),
            Self::Node(name) => (Self::Nodes, Some(name)),
            Self::Image(name) => (Self::Images, Some(name)),
            Self::Pull(name) => (Self::Pulls, Some(name)),
            other => (other, None),
        }
    }

    /// Finds the route; `None` for a path that is not served. Segments are percent-decoded.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["healthz" | "livez"] => Some(Self::Healthz),
            ["readyz"] => Some(Self::Readyz),
            ["metrics"] => Some(Self::Metrics(Page::Own)),
            ["metrics", "resource"] => Some(Self::Metrics(Page::Resource)),
            ["metrics", "cadvisor"] => Some(Self::Metrics(Page::Cadvisor)),
            ["stats", "summary"] => Some(Self::Metrics(Page::Summary)),
            // As the kubelet has it.
            ["pods"] => Some(Self::Pods(None)),
            ["version"] => Some(Self::Version),
            ["api"] => Some(Self::CoreVersions),
            ["apis"] => Some(Self::Groups),
            ["apis", OWN_GROUP] => Some(Self::OwnGroup),
            ["api", "v1", rest @ ..] => Self::core(rest),
            ["apis", OWN_GROUP, OWN_VERSION, rest @ ..] => Self::own(rest),
            ["openapi", "v2"] => Some(Self::OpenApi2),
            ["openapi", "v3"] => Some(Self::OpenApi3),
            ["openapi", "v3", rest @ ..] => Some(Self::OpenApi3Document(rest.join("/"))),
            ["apis", "metrics.k8s.io"] => Some(Self::MetricsGroup),
            ["apis", "metrics.k8s.io", "v1beta1", rest @ ..] => Self::metrics(rest),
            ["apis", "discovery.k8s.io"] => Some(Self::DiscoveryGroup),
            ["apis", "discovery.k8s.io", "v1", rest @ ..] => Self::served(ServedKind::EndpointSlice, "endpointslices", rest),
            ["apis", leases::GROUP] => Some(Self::LeaseGroup),
            ["apis", leases::GROUP, "v1"] => Some(Self::LeaseResources),
            ["apis", leases::GROUP, "v1", rest @ ..] => Self::objects(&[LookedUpKind::Lease], rest),
            ["apis", networking::GROUP] => Some(Self::NetworkingGroup),
            ["apis", networking::GROUP, "v1"] => Some(Self::NetworkingResources),
            ["apis", networking::GROUP, "v1", rest @ ..] => {
                Self::objects(&[LookedUpKind::NetworkPolicy, LookedUpKind::Ingress], rest)
            }
            ["apis", event_api::GROUP] => Some(Self::EventGroup),
            ["apis", event_api::GROUP, "v1"] => Some(Self::EventResources),
            ["apis", event_api::GROUP, "v1", rest @ ..] => Self::events(EventApi::Events, rest),
            ["apis", storage::GROUP] => Some(Self::StorageGroup),
            ["apis", storage::GROUP, "v1"] => Some(Self::StorageResources),
            ["apis", storage::GROUP, "v1", storage::PLURAL] => Some(Self::Objects(LookedUpKind::StorageClass, None)),
            ["apis", storage::GROUP, "v1", storage::PLURAL, name] => {
                Some(Self::Object(LookedUpKind::StorageClass, PodPath { namespace: String::new(), name: (*name).to_owned() }))
            }
            ["apis", group @ ("authorization.k8s.io" | "authentication.k8s.io"), version, plural] => {
                let version = ["v1", "v1beta1"].into_iter().find(|known| known == version)?;
                Review::named(group, plural).map(|review| Self::Review(review, version))
            }
            ["apis", group] => WorkloadGroup::named(group).map(Self::WorkloadGroup),
            ["apis", group, "v1"] => WorkloadGroup::named(group).map(Self::WorkloadResources),
            ["apis", "apps", "v1", CONTROLLER_REVISIONS] => Some(Self::Objects(LookedUpKind::ControllerRevision, None)),
            ["apis", "apps", "v1", "namespaces", _, CONTROLLER_REVISIONS, ..] => {
                Self::objects(&[LookedUpKind::ControllerRevision], &segments[3..])
            }
            ["apis", group, "v1", rest @ ..] => Self::workload(WorkloadGroup::named(group)?.as_str(), rest),
            _ => None,
        }
    }

    fn metrics(segments: &[&str]) -> Option<Self> {
        match *segments {
            [] => Some(Self::MetricsResources),
            ["pods"] => Some(Self::PodMetrics(None)),
            ["namespaces", namespace, "pods"] => Some(Self::PodMetrics(Some(namespace.to_owned()))),
            ["namespaces", namespace, "pods", name] => {
                Some(Self::PodMetric(PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            ["nodes"] => Some(Self::NodeMetrics),
            ["nodes", name] => Some(Self::NodeMetric(name.to_owned())),
            _ => None,
        }
    }

    fn served(kind: ServedKind, plural: &str, segments: &[&str]) -> Option<Self> {
        match *segments {
            [] if kind == ServedKind::EndpointSlice => Some(Self::DiscoveryResources),
            [named] if named == plural => Some(Self::Served(kind, None)),
            ["namespaces", namespace, named] if named == plural => Some(Self::Served(kind, Some(namespace.to_owned()))),
            ["namespaces", namespace, named, name] if named == plural => {
                Some(Self::ServedObject(kind, PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            _ => None,
        }
    }

    /// Objects of these kinds, which are in namespaces.
    fn objects(kinds: &[LookedUpKind], segments: &[&str]) -> Option<Self> {
        let named = |plural: &str| kinds.iter().copied().find(|kind| kind.plural() == plural);
        match *segments {
            [plural] => Some(Self::Objects(named(plural)?, None)),
            ["namespaces", namespace, plural] => Some(Self::Objects(named(plural)?, Some(namespace.to_owned()))),
            ["namespaces", namespace, plural, name] => {
                Some(Self::Object(named(plural)?, PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            _ => None,
        }
    }

    fn events(api: EventApi, segments: &[&str]) -> Option<Self> {
        match *segments {
            [event_api::PLURAL] => Some(Self::Events(api, None)),
            ["namespaces", namespace, event_api::PLURAL] => Some(Self::Events(api, Some(namespace.to_owned()))),
            ["namespaces", namespace, event_api::PLURAL, name] => {
                Some(Self::Event(api, PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            _ => None,
        }
    }

    fn core(segments: &[&str]) -> Option<Self> {
        match *segments {
            [] => Some(Self::CoreResources),
            ["services"] | ["namespaces", _, "services", ..] => Self::served(ServedKind::Service, "services", segments),
            ["namespaces"] => Some(Self::Namespaces),
            ["namespaces", name] => Some(Self::Namespace(PodPath { namespace: name.to_owned(), name: name.to_owned() })),
            ["nodes"] => Some(Self::Nodes),
            ["nodes", name] => Some(Self::Node(name.to_owned())),
            ["pods"] => Some(Self::Pods(None)),
            ["configmaps"] => Some(Self::Objects(LookedUpKind::ConfigMap, None)),
            ["secrets"] => Some(Self::Objects(LookedUpKind::Secret, None)),
            ["endpoints"] => Some(Self::Objects(LookedUpKind::Endpoints, None)),
            ["persistentvolumes"] => Some(Self::Objects(LookedUpKind::PersistentVolume, None)),
            ["persistentvolumes", name] => {
                Some(Self::Object(LookedUpKind::PersistentVolume, PodPath { namespace: String::new(), name: name.to_owned() }))
            }
            ["persistentvolumeclaims"] => Some(Self::Claims(None)),
            ["namespaces", _, "configmaps" | "secrets" | "endpoints", ..] => {
                Self::objects(&[LookedUpKind::ConfigMap, LookedUpKind::Secret, LookedUpKind::Endpoints], segments)
            }
            ["namespaces", namespace, "persistentvolumeclaims"] => Some(Self::Claims(Some(namespace.to_owned()))),
            ["namespaces", namespace, "persistentvolumeclaims", name] => {
                Some(Self::Claim(PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            ["namespaces", namespace, "pods"] => Some(Self::Pods(Some(namespace.to_owned()))),
            ["events"] | ["namespaces", _, "events", ..] => Self::events(EventApi::Core, segments),
            ["namespaces", namespace, "pods", name, ref rest @ ..] => {
                let pod = PodPath { namespace: namespace.to_owned(), name: name.to_owned() };
                match *rest {
                    [] | ["status"] => Some(Self::Pod(pod)),
                    ["log"] => Some(Self::PodLog(pod)),
                    ["exec"] => Some(Self::PodExec(pod)),
                    ["attach"] => Some(Self::PodAttach(pod)),
                    ["portforward"] => Some(Self::PodPortForward(pod)),
                    ["eviction"] => Some(Self::PodEviction(pod)),
                    _ => None,
                }
            }
            _ => Self::workload("", segments),
        }
    }

    /// In a group; the empty one is the core group.
    fn workload(group: &str, segments: &[&str]) -> Option<Self> {
        let (plural, namespace, rest) = match *segments {
            [plural] => return Some(Self::Workloads(WorkloadResource::find(group, plural)?.kind, None)),
            ["namespaces", namespace, plural, ref rest @ ..] => (plural, namespace.to_owned(), rest),
            _ => return None,
        };
        let kind = WorkloadResource::find(group, plural)?.kind;
        match *rest {
            [] => Some(Self::Workloads(kind, Some(namespace))),
            [name] | [name, "status"] => Some(Self::Workload(kind, PodPath { namespace, name: name.to_owned() })),
            [name, "scale"] => Some(Self::WorkloadScale(kind, PodPath { namespace, name: name.to_owned() })),
            _ => None,
        }
    }

    fn own(segments: &[&str]) -> Option<Self> {
        match *segments {
            [] => Some(Self::OwnResources),
            ["credentials"] => Some(Self::Credentials),
            ["access"] => Some(Self::Access),
            ["daemon"] => Some(Self::Daemon),
            ["disk"] => Some(Self::Disk),
            ["page"] => Some(Self::Page),
            ["sources"] => Some(Self::Sources),
            ["sources", name] => Some(Self::Source(name.to_owned())),
            ["sources", name, "prune"] => Some(Self::SourcePrune(name.to_owned())),
            ["sources", name, "history"] => Some(Self::SourceHistory(name.to_owned())),
            ["sources", name, "diff"] => Some(Self::SourceDiff(name.to_owned())),
            ["sources", name, "rollback"] => Some(Self::SourceRollback(name.to_owned())),
            ["sources", name, "suspend"] => Some(Self::SourceSuspend(name.to_owned())),
            ["sources", name, "resume"] => Some(Self::SourceResume(name.to_owned())),
            ["sources", name, "sync"] => Some(Self::SourceSync(name.to_owned())),
            ["namespaces", namespace, "persistentvolumeclaims", name, "prune"] => {
                Some(Self::ClaimPrune(PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            ["namespaces", namespace, "pods", name, order] => {
                let pod = PodPath { namespace: namespace.to_owned(), name: name.to_owned() };
                match order {
                    "trace" => Some(Self::PodTrace(pod)),
                    order => PodOrder::named(order).map(|order| Self::PodCommand(order, pod)),
                }
            }
            ["namespaces", namespace, "cronjobs", name, "run"] => {
                Some(Self::CronJobRun(PodPath { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            ["images"] => Some(Self::Images),
            ["pulls"] => Some(Self::Pulls),
            ["images", "pull"] => Some(Self::ImagePull),
            ["images", "import"] => Some(Self::ImageImport),
            ["images", "prune"] => Some(Self::ImagePrune),
            ["images", "pin"] => Some(Self::ImagePin),
            ["images", "verify"] => Some(Self::ImageVerify),
            ["images", name] => Some(Self::Image(name.to_owned())),
            ["pulls", name] => Some(Self::Pull(name.to_owned())),
            _ => None,
        }
    }
}

fn decode(segment: &str) -> String {
    // In a path, unlike in a query, these signs mean themselves.
    let escaped = segment.replace('+', "%2B").replace('=', "%3D").replace('&', "%26");
    form_urlencoded::parse(escaped.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routed() {
        let web = || PodPath { namespace: "default".into(), name: "web-edge".into() };
        let cases = [
            ("/healthz", Some(Route::Healthz)),
            ("/api/v1", Some(Route::CoreResources)),
            ("/api/v1/", Some(Route::CoreResources)),
            ("/api/v1/pods", Some(Route::Pods(None))),
            ("/api/v1/namespaces/x/pods", Some(Route::Pods(Some("x".into())))),
            ("/api/v1/namespaces/default/pods/web-edge", Some(Route::Pod(web()))),
            ("/api/v1/namespaces/default/pods/web%2Dedge/log", Some(Route::PodLog(web()))),
            ("/api/v1/namespaces/default/pods/web-edge/exec", Some(Route::PodExec(web()))),
            ("/api/v1/namespaces/default/pods/web-edge/portforward", Some(Route::PodPortForward(web()))),
            ("/api/v1/namespaces/default/pods/web-edge/proxy", None),
            ("/api/v1/configmaps", Some(Route::Objects(LookedUpKind::ConfigMap, None))),
            ("/api/v1/namespaces/x/secrets", Some(Route::Objects(LookedUpKind::Secret, Some("x".into())))),
            ("/api/v1/endpoints", Some(Route::Objects(LookedUpKind::Endpoints, None))),
            ("/api/v1/namespaces/default/endpoints/web-edge", Some(Route::Object(LookedUpKind::Endpoints, web()))),
            ("/api/v1/namespaces/default/secrets/web-edge", Some(Route::Object(LookedUpKind::Secret, web()))),
            ("/api/v1/namespaces/default/secrets/web-edge/data", None),
            ("/api/v1/persistentvolumeclaims", Some(Route::Claims(None))),
            ("/api/v1/namespaces/x/events", Some(Route::Events(EventApi::Core, Some("x".into())))),
            ("/api/v1/namespaces/default/events/web-edge", Some(Route::Event(EventApi::Core, web()))),
            ("/apis/events.k8s.io/v1/events", Some(Route::Events(EventApi::Events, None))),
            ("/apis/events.k8s.io/v1/namespaces/default/events/web-edge", Some(Route::Event(EventApi::Events, web()))),
            ("/apis/events.k8s.io/v1beta1/events", None),
            ("/api/v1/namespaces/default/persistentvolumeclaims/web-edge", Some(Route::Claim(web()))),
            ("/api/v1/namespaces/default/persistentvolumeclaims/web-edge/prune", None),
            (
                "/apis/podstead.dev/v1alpha1/namespaces/default/persistentvolumeclaims/web-edge/prune",
                Some(Route::ClaimPrune(web())),
            ),
            ("/api/v1/nodes", Some(Route::Nodes)),
            ("/api/v1/nodes/edge/proxy", None),
            ("/api/v1/namespaces/x", Some(Route::Namespace(PodPath { namespace: "x".into(), name: "x".into() }))),
            ("/openapi/v3/apis/apps/v1", Some(Route::OpenApi3Document("apis/apps/v1".into()))),
            ("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-edge", Some(Route::PodMetric(web()))),
            ("/apis/podstead.dev/v1alpha1/sources/a+b=%41&", Some(Route::Source("a+b=A&".into()))),
            ("/api/v1/services", Some(Route::Served(ServedKind::Service, None))),
            ("/api/v1/namespaces/default/services/web-edge", Some(Route::ServedObject(ServedKind::Service, web()))),
            ("/api/v1/namespaces/default/services/web-edge/proxy", None),
            ("/apis/discovery.k8s.io/v1", Some(Route::DiscoveryResources)),
            (
                "/apis/discovery.k8s.io/v1/namespaces/x/endpointslices",
                Some(Route::Served(ServedKind::EndpointSlice, Some("x".into()))),
            ),
            ("/apis/networking.k8s.io/v1", Some(Route::NetworkingResources)),
            ("/apis/networking.k8s.io/v1/networkpolicies", Some(Route::Objects(LookedUpKind::NetworkPolicy, None))),
            (
                "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/web-edge",
                Some(Route::Object(LookedUpKind::NetworkPolicy, web())),
            ),
            ("/apis/networking.k8s.io/v1/ingresses", Some(Route::Objects(LookedUpKind::Ingress, None))),
            ("/apis/networking.k8s.io/v1/ingressclasses", None),
            (
                "/apis/apps/v1/namespaces/default/controllerrevisions/web-edge",
                Some(Route::Object(LookedUpKind::ControllerRevision, web())),
            ),
            ("/apis/apps/v1/controllerrevisions", Some(Route::Objects(LookedUpKind::ControllerRevision, None))),
            ("/apis/coordination.k8s.io/v1", Some(Route::LeaseResources)),
            ("/apis/coordination.k8s.io/v1/namespaces/default/leases/web-edge", Some(Route::Object(LookedUpKind::Lease, web()))),
            ("/api/v1/namespaces/default/pods/web-edge/status", Some(Route::Pod(web()))),
            ("/apis/storage.k8s.io/v1", Some(Route::StorageResources)),
            ("/apis/storage.k8s.io/v1/storageclasses", Some(Route::Objects(LookedUpKind::StorageClass, None))),
            ("/apis/storage.k8s.io/v1/volumeattachments", None),
            ("/api/v1/persistentvolumes", Some(Route::Objects(LookedUpKind::PersistentVolume, None))),
            ("/apis/podstead.dev/v1alpha1/images/sha256:ab", Some(Route::Image("sha256:ab".into()))),
            ("/apis/podstead.dev/v1alpha1/images/pin", Some(Route::ImagePin)),
            ("/apis/podstead.dev/v1alpha1/pulls/pull-1", Some(Route::Pull("pull-1".into()))),
            ("/apis/apps", Some(Route::WorkloadGroup(WorkloadGroup::Apps))),
            ("/apis/apps/v1", Some(Route::WorkloadResources(WorkloadGroup::Apps))),
            ("/apis/batch/v1/jobs", Some(Route::Workloads(WorkloadKind::Job, None))),
            ("/apis/batch/v1/deployments", None),
            ("/apis/apps/v1/namespaces/x/deployments", Some(Route::Workloads(WorkloadKind::Deployment, Some("x".into())))),
            ("/apis/apps/v1/namespaces/default/statefulsets/web-edge", Some(Route::Workload(WorkloadKind::StatefulSet, web()))),
            ("/apis/apps/v1/namespaces/default/daemonsets/web-edge/status", Some(Route::Workload(WorkloadKind::DaemonSet, web()))),
            (
                "/apis/apps/v1/namespaces/default/deployments/web-edge/scale",
                Some(Route::WorkloadScale(WorkloadKind::Deployment, web())),
            ),
            ("/apis/apps/v1/namespaces/default/deployments/web-edge/log", None),
            ("/api/v1/replicationcontrollers", Some(Route::Workloads(WorkloadKind::ReplicationController, None))),
            ("/api/v1/deployments", None),
            ("/apis/podstead.dev/v1alpha1/namespaces/default/cronjobs/web-edge/run", Some(Route::CronJobRun(web()))),
            ("/apis/podstead.dev/v1alpha1/namespaces/default/pods/web-edge/stop", Some(Route::PodCommand(PodOrder::Stop, web()))),
            ("/apis/podstead.dev/v1alpha1/namespaces/default/pods/web-edge/trace", Some(Route::PodTrace(web()))),
            ("/apis/podstead.dev/v1alpha1/namespaces/default/pods/web-edge/kill", None),
            ("/apis/autoscaling/v1", None),
            ("/", None),
        ];
        for (path, route) in cases {
            assert_eq!(Route::parse(path), route, "{path}");
        }
    }
}
