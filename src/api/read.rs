//! Answers to GET.

use super::collection::{Collection, Selection};
use super::events::Events;
use super::kinds::LookedUpKind;
use super::looked_up::LookedUp;
use super::pods::Pods;
use super::request::Query;
use super::respond::Answer;
use super::route::{PodPath, Route};
use super::services::Served;
use super::table::IncludeObject;
use super::workloads::Workloads;
use super::{
    Backend, claims, collection, discovery, images, log, metrics, openapi, own, page, respond, revisions, trace, unserved,
    workloads,
};
use hyper::Method;
use std::sync::Arc;

/// Answers a GET of `path`.
pub(super) async fn read(backend: &Backend, route: Route, path: &str, query: &Query, form: Option<IncludeObject>) -> Answer {
    let pods = Arc::new(Pods(Arc::clone(&backend.published)));
    let served = |kind| Arc::new(Served::new(Arc::clone(&backend.services), kind));
    let workloads = |kind| Arc::new(Workloads::new(Arc::clone(&backend.published), kind));
    let looked_up = |kind| Arc::new(LookedUp::new(backend, kind));
    let (route, selected) = if query.flag("watch")? { route.into_collection() } else { (route, None) };
    let query = &selected.map_or_else(|| query.clone(), |name| query.selecting(&name));
    match route {
        Route::Healthz => respond::text("ok"),
        Route::Readyz => own::readyz(backend),
        Route::Metrics(page) => metrics::page(backend, page).await,
        Route::PodMetrics(namespace) => metrics::api::list_pods(backend, namespace.as_deref(), query).await,
        Route::PodMetric(path) => metrics::api::get_pod(backend, &path).await,
        Route::NodeMetrics => metrics::api::list_nodes(backend).await,
        Route::NodeMetric(name) => metrics::api::get_node(backend, &name).await,
        Route::Namespaces => list_or_watch(backend, looked_up(LookedUpKind::Namespace), None, query, form).await,
        Route::Namespace(PodPath { name, .. }) => get_global(backend, looked_up(LookedUpKind::Namespace), name, form).await,
        Route::Nodes => list_or_watch(backend, looked_up(LookedUpKind::Node), None, query, form).await,
        Route::Node(name) => get_global(backend, looked_up(LookedUpKind::Node), name, form).await,
        Route::Pods(namespace) => list_or_watch(backend, pods, namespace, query, form).await,
        Route::Pod(pod) => collection::get(&*pods, &*pods.find(&pod)?, form, (backend.now)()),
        Route::PodTrace(pod) => trace::trace(backend, &pods, &pod),
        Route::PodLog(pod) => log::log(backend, &*pods.find(&pod)?, query).await,
        Route::Workloads(kind, namespace) => list_or_watch(backend, workloads(kind), namespace, query, form).await,
        Route::Workload(kind, path) => {
            let workloads = workloads(kind);
            collection::get(&*workloads, &*workloads.find(&path)?, form, (backend.now)())
        }
        Route::WorkloadScale(kind, path) => workloads::scale(&workloads(kind), &path, form, (backend.now)()),
        Route::Events(api, namespace) => list_or_watch(backend, Arc::new(Events::new(backend, api)), namespace, query, form).await,
        Route::Event(api, path) => {
            let events = Events::new(backend, api);
            collection::get(&events, &*events.find(&path)?, form, (backend.now)())
        }
        Route::Served(kind, namespace) => list_or_watch(backend, served(kind), namespace, query, form).await,
        Route::ServedObject(kind, path) => {
            let served = served(kind);
            collection::get(&*served, &*served.find(&path)?, form, (backend.now)())
        }
        Route::Claims(namespace) if query.flag("measure")? => claims::list_measured(backend, namespace.as_deref()).await,
        Route::Claims(namespace) => {
            let query = &claims::with_released(query)?;
            list_or_watch(backend, looked_up(LookedUpKind::Claim), namespace, query, form).await
        }
        Route::Claim(path) if query.flag("measure")? => claims::get_measured(backend, path).await,
        Route::Claim(path) => {
            let claims = looked_up(LookedUpKind::Claim);
            claims.refresh().await?;
            let claim = claims.find(&path)?;
            claims::refuse_released(&claim.object(), query)?;
            collection::get(&*claims, &*claim, form, (backend.now)())
        }
        Route::Objects(kind, namespace) => list_or_watch(backend, looked_up(kind), namespace, query, form).await,
        Route::Object(kind, path) => get_fresh(backend, looked_up(kind), &path, form).await,
        Route::Daemon => own::daemon(backend),
        Route::Disk => metrics::disk::disk(backend).await,
        Route::Page => page::page(backend).await,
        Route::Sources => list_or_watch(backend, looked_up(LookedUpKind::Source), None, query, form).await,
        Route::Source(name) => get_global(backend, looked_up(LookedUpKind::Source), name, form).await,
        Route::SourceHistory(name) => revisions::history(backend, &name).await,
        Route::SourceDiff(name) => revisions::diff(backend, &name, query.get("revision")).await,
        Route::Pulls => list_or_watch(backend, looked_up(LookedUpKind::Pull), None, query, form).await,
        Route::Pull(name) => get_global(backend, looked_up(LookedUpKind::Pull), name, form).await,
        Route::Image(name) => get_global(backend, looked_up(LookedUpKind::Image), name, form).await,
        Route::Images => {
            let images = looked_up(LookedUpKind::Image);
            if form.is_some() || query.flag("watch")? {
                return list_or_watch(backend, images, None, query, form).await;
            }
            images.refresh().await?;
            images::list(backend, images.journal().version()).await
        }
        // Orders, and what is answered where the headers are.
        route => document(&route, backend.is_writable()).unwrap_or_else(|| Err(unserved::not_allowed(&Method::GET, path))),
    }
}

/// Answers a GET of a document about the API; `None` for all else. `is_writable`: a source is.
pub(super) fn document(route: &Route, is_writable: bool) -> Option<Answer> {
    Some(match route {
        Route::Version => respond::json(&discovery::version()),
        Route::CoreResources => respond::json(&discovery::core_resources(is_writable)),
        Route::OwnGroup => respond::json(&discovery::own_group()),
        Route::OwnResources => respond::json(&discovery::own_resources()),
        Route::WorkloadGroup(group) => respond::json(&discovery::workload_group(*group)),
        Route::WorkloadResources(group) => respond::json(&discovery::workload_resources(*group, is_writable)),
        Route::MetricsGroup => respond::json(&discovery::metrics_group()),
        Route::MetricsResources => respond::json(&discovery::metrics_resources()),
        Route::DiscoveryGroup => respond::json(&discovery::slice_group()),
        Route::DiscoveryResources => respond::json(&discovery::slice_resources()),
        Route::LeaseGroup => respond::json(&discovery::lease_group()),
        Route::LeaseResources => respond::json(&discovery::lease_resources()),
        Route::NetworkingGroup => respond::json(&discovery::networking_group()),
        Route::NetworkingResources => respond::json(&discovery::networking_resources(is_writable)),
        Route::EventGroup => respond::json(&discovery::event_group()),
        Route::EventResources => respond::json(&discovery::event_resources()),
        Route::StorageGroup => respond::json(&discovery::storage_group()),
        Route::StorageResources => respond::json(&discovery::storage_resources()),
        Route::OpenApi3 => openapi::index(),
        Route::OpenApi3Document(path) => openapi::third(path),
        _ => return None,
    })
}

pub(super) async fn list_or_watch<C: Collection>(
    backend: &Backend,
    collection: Arc<C>,
    namespace: Option<String>,
    query: &Query,
    form: Option<IncludeObject>,
) -> Answer {
    let selection = Selection::parse(&*collection, namespace, query, form)?;
    if query.flag("watch")? {
        collection::watch(collection, selection, query, backend.now).await
    } else {
        collection::list(&collection, &selection, query, (backend.now)()).await
    }
}

/// One object without a namespace.
pub(super) async fn get_global(backend: &Backend, looked_up: Arc<LookedUp>, name: String, form: Option<IncludeObject>) -> Answer {
    get_fresh(backend, looked_up, &PodPath { namespace: String::new(), name }, form).await
}

/// One object of a kind that is looked up.
pub(super) async fn get_fresh(backend: &Backend, looked_up: Arc<LookedUp>, path: &PodPath, form: Option<IncludeObject>) -> Answer {
    looked_up.refresh().await?;
    collection::get(&*looked_up, &*looked_up.find(path)?, form, (backend.now)())
}
