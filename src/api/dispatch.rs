//! From a request to its answer.

use super::collection::{self, Collection, Selection};
use super::events::Events;
use super::failure::ApiFailure;
use super::pods::Pods;
use super::request::{Peer, Query, read_body, read_json, wants_table};
use super::respond::{self, Answer, Body};
use super::route::Route;
use super::table::IncludeObject;
use super::workloads::{self, Workloads};
use super::{Backend, claims, discovery, exec, forward, images, log, metrics, objects, own, revisions, sync};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use std::sync::Arc;

/// Answers one request; a failure becomes a `Status` object.
pub(super) async fn answer(backend: &Backend, peer: Peer, request: Request<Incoming>) -> Response<Body> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let response = route(backend, peer, request).await.unwrap_or_else(|failure| respond::failure(&failure));
    tracing::debug!(%peer, %method, path, code = response.status().as_u16(), "answered");
    response
}

/// The answer where only some paths are open.
pub(super) fn refuse(request: &Request<Incoming>) -> Response<Body> {
    respond::failure(&ApiFailure::no_such_path(request.uri().path()))
}

async fn route(backend: &Backend, peer: Peer, request: Request<Incoming>) -> Answer {
    // Kept for messages: the request moves into what answers it.
    let path = request.uri().path().to_owned();
    let path = path.as_str();
    let route = Route::parse(path).ok_or_else(|| ApiFailure::no_such_path(path))?;
    let query = Query::parse(request.uri().query());
    let form = wants_table(request.headers(), &query);
    let pods = Arc::new(Pods(Arc::clone(&backend.published)));
    let workloads = |kind| Arc::new(Workloads::new(Arc::clone(&backend.published), kind));
    let method = request.method().clone();
    match (route, &method) {
        (Route::PodExec(pod), &(Method::GET | Method::POST)) => {
            exec::exec(backend, peer, &*pods.find(&pod)?, &query, request).await
        }
        (Route::PodAttach(pod), &(Method::GET | Method::POST)) => {
            exec::attach(backend, peer, &*pods.find(&pod)?, &query, request).await
        }
        (Route::PodPortForward(pod), &(Method::GET | Method::POST)) => {
            forward::forward(backend, peer, &*pods.find(&pod)?, &query, request).await
        }
        (Route::Pods(_), &Method::POST) => Err(pods.refuse_creation()),
        (Route::Pod(pod), &(Method::DELETE | Method::PUT | Method::PATCH)) => Err(pods.refuse_change(&pod)),
        (Route::Workloads(kind, _), &Method::POST) => Err(workloads(kind).refuse_creation()),
        (Route::Workload(kind, path), &(Method::DELETE | Method::PUT | Method::PATCH)) => {
            // For the words of the refusal only: a body that cannot be read is as good as none.
            let body = read_body(request.into_body()).await.ok().and_then(|body| serde_json::from_slice(&body).ok());
            Err(workloads(kind).refuse_change(&path, body.as_ref()))
        }
        (Route::WorkloadScale(kind, path), &(Method::PUT | Method::PATCH)) => Err(workloads(kind).refuse_scaling(&path)),
        (Route::CronJobRun(path), &Method::POST) => workloads::run_now(backend, &path).await,
        (Route::ImagePull, &Method::POST) => images::pull(backend, read_json(request.into_body()).await?),
        (Route::ImageImport, &Method::POST) => images::import(backend, read_json(request.into_body()).await?).await,
        (Route::ImagePrune, &Method::POST) => images::prune(backend, read_json(request.into_body()).await?).await,
        (Route::ImagePin, &Method::POST) => images::pin(backend, read_json(request.into_body()).await?).await,
        (Route::SourcePrune(name), &Method::POST) => own::prune(backend, name).await,
        (Route::ClaimPrune(path), &Method::POST) => claims::prune(backend, path).await,
        (Route::SourceRollback(name), &Method::POST) => {
            revisions::roll_back(backend, &name, read_json(request.into_body()).await?).await
        }
        (Route::SourceSuspend(name), &Method::POST) => {
            revisions::suspend(backend, &name, read_json(request.into_body()).await?).await
        }
        (Route::SourceResume(name), &Method::POST) => revisions::resume(backend, &name).await,
        (Route::SourceSync(name), &Method::POST) => sync::sync(backend, &name, &query).await,
        (Route::Images, &Method::DELETE) => {
            images::remove(backend, query.get("reference"), query.get("force") == Some("true")).await
        }
        (route, &Method::GET) => read(backend, route, path, &query, form).await,
        (_, _) => Err(not_allowed(&method, path)),
    }
}

/// Answers a GET of `path`.
async fn read(backend: &Backend, route: Route, path: &str, query: &Query, form: Option<IncludeObject>) -> Answer {
    let pods = Arc::new(Pods(Arc::clone(&backend.published)));
    let workloads = |kind| Arc::new(Workloads::new(Arc::clone(&backend.published), kind));
    match route {
        Route::Healthz => respond::text("ok"),
        Route::Readyz => own::readyz(backend),
        Route::Metrics(page) => metrics::page(backend, page).await,
        Route::Version => respond::json(&discovery::version()),
        Route::CoreVersions => respond::json(&discovery::core_versions()),
        Route::Groups => respond::json(&discovery::groups()),
        Route::OwnGroup => respond::json(&discovery::own_group()),
        Route::WorkloadGroup(group) => respond::json(&discovery::workload_group(group)),
        Route::WorkloadResources(group) => respond::json(&discovery::workload_resources(group)),
        Route::CoreResources => respond::json(&discovery::core_resources()),
        Route::OwnResources => respond::json(&discovery::own_resources()),
        Route::Pods(namespace) => list_or_watch(backend, pods, namespace, query, form),
        Route::Pod(pod) => collection::get(&*pods, &*pods.find(&pod)?, form, (backend.now)()),
        Route::PodLog(pod) => log::log(backend, &*pods.find(&pod)?, query).await,
        Route::Workloads(kind, namespace) => list_or_watch(backend, workloads(kind), namespace, query, form),
        Route::Workload(kind, path) => {
            let workloads = workloads(kind);
            collection::get(&*workloads, &*workloads.find(&path)?, form, (backend.now)())
        }
        Route::WorkloadScale(kind, path) => workloads::scale(&workloads(kind), &path, form, (backend.now)()),
        Route::Events(namespace) => {
            let events = Arc::new(Events { log: Arc::clone(&backend.events), node: backend.node.clone() });
            list_or_watch(backend, events, namespace, query, form)
        }
        Route::Claims(namespace) => claims::list(backend, namespace.as_deref(), query, form).await,
        Route::Claim(path) => claims::get(backend, path, query, form).await,
        Route::Objects(kind, namespace) => objects::list(backend, kind, namespace.as_deref(), form),
        Route::Object(kind, path) => objects::get(backend, kind, path, form),
        Route::Daemon => own::daemon(backend),
        Route::Sources => own::list_sources(backend, form),
        Route::Source(name) => own::get_source(backend, &name, form),
        Route::SourceHistory(name) => revisions::history(backend, &name).await,
        Route::SourceDiff(name) => revisions::diff(backend, &name, query.get("revision")).await,
        Route::Images => images::list(backend, form).await,
        Route::PodExec(_)
        | Route::PodAttach(_)
        | Route::PodPortForward(_)
        | Route::CronJobRun(_)
        | Route::ClaimPrune(_)
        | Route::SourcePrune(_)
        | Route::SourceRollback(_)
        | Route::SourceSuspend(_)
        | Route::SourceResume(_)
        | Route::SourceSync(_)
        | Route::ImagePull
        | Route::ImageImport
        | Route::ImagePrune
        | Route::ImagePin => Err(not_allowed(&Method::GET, path)),
    }
}

fn not_allowed(method: &Method, path: &str) -> ApiFailure {
    ApiFailure::method_not_allowed(format!("method {method} is not allowed on {path}"))
}

fn list_or_watch<C: Collection>(
    backend: &Backend,
    collection: Arc<C>,
    namespace: Option<String>,
    query: &Query,
    form: Option<IncludeObject>,
) -> Answer {
    let selection = Selection::parse(&*collection, namespace, query, form)?;
    if query.flag("watch")? {
        collection::watch(collection, selection, query, backend.now)
    } else {
        collection::list(&collection, &selection, (backend.now)())
    }
}
