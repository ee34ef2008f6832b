//! The object or collection that a request writes to. **Pure**.

use crate::kinds::LookedUpKind;
use crate::kinds::ServedKind;
use crate::networking;
use crate::resource::workload_resource;
use crate::route::{PodPath, Route};
use podstead_manifest::ObjectKey;

/// The part of an object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// Its number of replicas.
    Scale,
}

/// An object, or the collection that gets a new one.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    /// The resource with its group, such as `deployments.apps`.
    pub(super) plural: &'static str,
    /// That of the source for what is in no namespace: so objects are told apart in its files.
    pub(super) namespace: String,
    /// `None` for a collection.
    pub(super) name: Option<String>,
    pub(super) part: Part,
    pub(super) route: Route,
}

/// The kind that is in no namespace.
const NAMESPACE: &str = "Namespace";

impl Target {
    /// The target of a route; `None` for one of other resources and for a collection of all namespaces. `default_namespace` is that of the source.
    pub(super) fn of(route: &Route, default_namespace: &str) -> Option<Self> {
        let named = |path: &PodPath| (path.namespace.clone(), Some(path.name.clone()));
        let within = |namespace: &Option<String>| namespace.clone().map(|namespace| (namespace, None));
        let (kind, api_version, plural, (namespace, name), part) = match route {
            Route::Pods(namespace) => ("Pod", "v1", "pods", within(namespace)?, Part::Whole),
            Route::Pod(path) => ("Pod", "v1", "pods", named(path), Part::Whole),
            Route::Objects(kind, namespace) => {
                let (name, version) = listed(*kind)?;
                (name, version, kind.qualified(), within(namespace)?, Part::Whole)
            }
            Route::Object(kind, path) => {
                let (name, version) = listed(*kind)?;
                (name, version, kind.qualified(), named(path), Part::Whole)
            }
            Route::Claims(namespace) => ("PersistentVolumeClaim", "v1", "persistentvolumeclaims", within(namespace)?, Part::Whole),
            Route::Claim(path) => ("PersistentVolumeClaim", "v1", "persistentvolumeclaims", named(path), Part::Whole),
            Route::Workloads(kind, namespace) => {
                (kind.as_str(), kind.api_version(), workload_resource(*kind).qualified, within(namespace)?, Part::Whole)
            }
            Route::Workload(kind, path) => {
                (kind.as_str(), kind.api_version(), workload_resource(*kind).qualified, named(path), Part::Whole)
            }
            Route::WorkloadScale(kind, path) => {
                (kind.as_str(), kind.api_version(), workload_resource(*kind).qualified, named(path), Part::Scale)
            }
            Route::Served(kind, namespace) => {
                let (kind, version, plural) = served(*kind);
                (kind, version, plural, within(namespace)?, Part::Whole)
            }
            Route::ServedObject(kind, path) => {
                let (kind, version, plural) = served(*kind);
                (kind, version, plural, named(path), Part::Whole)
            }
            Route::Namespaces => (NAMESPACE, "v1", "namespaces", (default_namespace.to_owned(), None), Part::Whole),
            Route::Namespace(path) => {
                (NAMESPACE, "v1", "namespaces", (default_namespace.to_owned(), Some(path.name.clone())), Part::Whole)
            }
            _ => return None,
        };
        Some(Self { kind, api_version, plural, namespace, name, part, route: route.clone() })
    }

    /// The kind of a collection, also of one of all namespaces, and its namespace.
    pub(super) fn of_collection(route: &Route, default_namespace: &str) -> Option<(&'static str, Option<String>)> {
        let nowhere = || Some(String::new());
        let (route, namespace) = match route.clone() {
            Route::Pods(namespace) => (Route::Pods(nowhere()), namespace),
            Route::Objects(kind, namespace) => (Route::Objects(kind, nowhere()), namespace),
            Route::Claims(namespace) => (Route::Claims(nowhere()), namespace),
            Route::Workloads(kind, namespace) => (Route::Workloads(kind, nowhere()), namespace),
            Route::Served(kind, namespace) => (Route::Served(kind, nowhere()), namespace),
            Route::Namespaces => (Route::Namespaces, Some(default_namespace.to_owned())),
            _ => return None,
        };
        Self::of(&route, default_namespace).map(|target| (target.kind, namespace))
    }

    /// Reports whether the object is in no namespace.
    pub(super) fn is_global(&self) -> bool {
        self.kind == NAMESPACE
    }

    /// The identity of the object of this name.
    pub(super) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey { kind: self.kind.into(), namespace: (&self.namespace).into(), name: name.into() }
    }

    /// Namespace and name; the name is empty for a collection.
    pub(super) fn path(&self) -> PodPath {
        PodPath { namespace: self.namespace.clone(), name: self.name.clone().unwrap_or_default() }
    }

    /// The route that reads the object of this name.
    pub(super) fn read_route(&self, name: &str) -> Route {
        let path = PodPath { namespace: self.namespace.clone(), name: name.to_owned() };
        match &self.route {
            Route::Pods(_) | Route::Pod(_) => Route::Pod(path),
            Route::Namespaces | Route::Namespace(_) => Route::Namespace(path),
            Route::Objects(kind, _) | Route::Object(kind, _) => Route::Object(*kind, path),
            Route::Claims(_) | Route::Claim(_) => Route::Claim(path),
            Route::Workloads(kind, _) | Route::Workload(kind, _) | Route::WorkloadScale(kind, _) => Route::Workload(*kind, path),
            Route::Served(kind, _) | Route::ServedObject(kind, _) => Route::ServedObject(*kind, path),
            other => other.clone(),
        }
    }
}

const fn listed(kind: LookedUpKind) -> Option<(&'static str, &'static str)> {
    match kind {
        LookedUpKind::ConfigMap => Some(("ConfigMap", "v1")),
        LookedUpKind::Secret => Some(("Secret", "v1")),
        LookedUpKind::NetworkPolicy => Some((networking::KIND, networking::API_VERSION)),
        LookedUpKind::Endpoints | LookedUpKind::Claim | LookedUpKind::Source | LookedUpKind::Image | LookedUpKind::Pull => None,
        LookedUpKind::Namespace | LookedUpKind::Node | LookedUpKind::Lease | LookedUpKind::ControllerRevision => None,
        LookedUpKind::PersistentVolume | LookedUpKind::Ingress | LookedUpKind::StorageClass => None,
    }
}

const fn served(kind: ServedKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ServedKind::Service => ("Service", "v1", "services"),
        ServedKind::EndpointSlice => ("EndpointSlice", "discovery.k8s.io/v1", "endpointslices.discovery.k8s.io"),
    }
}
