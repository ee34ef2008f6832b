//! From a request to its answer.

use super::access::{self, Attributes, Caller, Need};
use super::collection::{self, Collection, Selection};
use super::events::Events;
use super::failure::ApiFailure;
use super::looked_up::{LookedUp, LookedUpKind};
use super::pods::Pods;
use super::published::PodKey;
use super::request::{Connection, Query, read_body, read_json, wants_table};
use super::respond::{self, Answer, Body};
use super::route::{PodPath, Route};
use super::services::Served;
use super::table::IncludeObject;
use super::workloads::{self, Workloads};
use super::{
    Backend, claims, control, credentials, discovery, exec, forward, images, log, metrics, openapi, own, page, reviews, revisions,
    sync, unserved, write,
};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, header};
use podstead_settings::Role;
use std::sync::Arc;

/// Answers one request; a failure becomes a `Status` object. Every request that may change something is in the log, with who sent it.
pub(super) async fn answer(
    backend: &Backend,
    caller: &Caller,
    connection: Connection,
    request: Request<Incoming>,
) -> Response<Body> {
    let started = (backend.now)();
    let method = request.method().clone();
    let uri = request.uri().clone();
    let answered = match Route::parse(uri.path()) {
        Some(route) => {
            let query = Query::parse(uri.query());
            let watch = query.flag("watch").unwrap_or_default();
            let attributes = Attributes::of(&route, &method, watch);
            let allowed = match connection {
                // Its own rules were checked.
                Connection::Monitoring => Ok(()),
                Connection::Socket | Connection::Tls => authorize(backend, caller, &attributes),
            };
            let answered = match allowed {
                Ok(()) => respond_to(backend, Asked { caller, connection, query }, route.clone(), request).await,
                Err(failure) => Err(failure),
            };
            if may_change(&attributes) {
                let code = answered.as_ref().map_or_else(|failure| failure.code, |response| response.status().as_u16());
                access::log_change(&backend.access, caller, &attributes, code, started, (backend.now)());
            }
            answered
        }
        None => Err(unserved::no_such_path(uri.path())),
    };
    let response = answered.unwrap_or_else(|failure| respond::failure(&failure));
    tracing::debug!(peer = %caller, %method, path = uri.path(), code = response.status().as_u16(), "answered");
    response
}

/// Reports whether a request may change something. A session in a container may, whatever its method.
fn may_change(attributes: &Attributes<'_>) -> bool {
    let is_session = attributes.resource == "pods" && matches!(attributes.subresource, "exec" | "attach" | "portforward");
    let is_about_oneself = attributes.resource.starts_with("selfsubject") || attributes.resource == "credentials";
    is_session || !attributes.verb.is_reading() && !is_about_oneself
}

/// Refuses a request that the client has no role for.
fn authorize(backend: &Backend, caller: &Caller, attributes: &Attributes<'_>) -> Result<(), ApiFailure> {
    let access = &backend.access;
    access.admit(caller)?;
    let grants = access.grants(caller);
    if grants.highest().is_none() {
        return Err(access.no_role(caller));
    }
    let need = Need::of(attributes, has_host_access(backend, attributes));
    if grants.meet(need, attributes.namespace) {
        return Ok(());
    }
    let need = match need {
        Need::Role(Role::Admin) if attributes.resource == "pods" => {
            format!("{} into a pod with access to the host needs role admin", attributes.subresource)
        }
        Need::Role(role) => format!("it needs role {role}"),
        Need::AnyRole => "it needs a role".to_owned(),
    };
    Err(ApiFailure::forbidden(attributes.refusal(&access.user_name(caller.uid), &need)))
}

/// Reports whether a request is about a pod with access to the host; a pod that does not exist has none.
pub(super) fn has_host_access(backend: &Backend, attributes: &Attributes<'_>) -> bool {
    let (Some(namespace), Some(name)) = (attributes.namespace, attributes.name) else { return false };
    if attributes.resource != "pods" {
        return false;
    }
    let key = PodKey { namespace: namespace.to_owned(), name: name.to_owned() };
    let pod = backend.published.pods().get(&key);
    pod.is_some_and(|pod| podstead_store::needs_host_access(&pod.desired.pod, namespace))
}

/// A request besides route and body.
struct Asked<'a> {
    caller: &'a Caller,
    connection: Connection,
    query: Query,
}

/// The answer where only some paths are open.
pub(super) fn refuse(request: &Request<Incoming>) -> Response<Body> {
    respond::failure(&ApiFailure::no_such_path(request.uri().path()))
}

/// Answers a request that is allowed: the one place where methods and routes meet.
async fn respond_to(backend: &Backend, asked: Asked<'_>, route: Route, request: Request<Incoming>) -> Answer {
    let Asked { caller: peer, connection, query } = asked;
    // Kept for messages: the request moves into what answers it.
    let path = request.uri().path().to_owned();
    let path = path.as_str();
    let form = wants_table(request.headers(), &query);
    let pods = Arc::new(Pods(Arc::clone(&backend.published)));
    let method = request.method().clone();
    if write::is_write(&route, &method) {
        return write::write(backend, peer, &route, &query, request).await;
    }
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
        (Route::PodCommand(order, pod), &Method::POST) => control::command(backend, &pods, order, &pod).await,
        (Route::Review(review, version), &Method::POST) => {
            let content_type = content_type(&request);
            let body = read_body(request.into_body()).await?;
            reviews::review(backend, peer, review, version, &content_type, &body)
        }
        (Route::Credentials, &Method::POST) => credentials::credential(backend, peer, connection, request.into_body()).await,
        (Route::CoreVersions, &Method::GET) => discovery::core(request.headers()),
        (Route::Groups, &Method::GET) => discovery::all_groups(request.headers()),
        (Route::OpenApi2, &Method::GET) => openapi::second(request.headers()),
        (Route::Access, &Method::GET) => credentials::access(backend, peer),
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
        (route, &Method::GET) => {
            // A watch never ends: only whole answers can be changed.
            let is_whole = form.is_none() && !query.flag("watch")?;
            let applied = is_whole.then(|| write::applied(backend, &route)).flatten();
            let answer = read(backend, route, path, &query, form).await?;
            write::with_applied(answer, applied).await
        }
        (_, _) => Err(unserved::not_allowed(&method, path)),
    }
}

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
        Route::PodLog(pod) => log::log(backend, &*pods.find(&pod)?, query).await,
        Route::Workloads(kind, namespace) => list_or_watch(backend, workloads(kind), namespace, query, form).await,
        Route::Workload(kind, path) => {
            let workloads = workloads(kind);
            collection::get(&*workloads, &*workloads.find(&path)?, form, (backend.now)())
        }
        Route::WorkloadScale(kind, path) => workloads::scale(&workloads(kind), &path, form, (backend.now)()),
        Route::Events(namespace) => {
            let events = Arc::new(Events { log: Arc::clone(&backend.events), node: backend.node.clone() });
            list_or_watch(backend, events, namespace, query, form).await
        }
        Route::Served(kind, namespace) => list_or_watch(backend, served(kind), namespace, query, form).await,
        Route::ServedObject(kind, path) => {
            let served = served(kind);
            collection::get(&*served, &*served.find(&path)?, form, (backend.now)())
        }
        Route::Claims(namespace) if query.flag("measure")? => claims::list_measured(backend, namespace.as_deref()).await,
        Route::Claims(namespace) => list_or_watch(backend, looked_up(LookedUpKind::Claim), namespace, query, form).await,
        Route::Claim(path) if query.flag("measure")? => claims::get_measured(backend, path).await,
        Route::Claim(path) => get_fresh(backend, looked_up(LookedUpKind::Claim), &path, form).await,
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
        Route::Images => {
            let images = looked_up(LookedUpKind::Image);
            if form.is_some() || query.flag("watch")? {
                return list_or_watch(backend, images, None, query, form).await;
            }
            images.refresh().await?;
            images::list(backend, images.journal().version()).await
        }
        // Orders, and what is answered where the headers are.
        route => document(&route).unwrap_or_else(|| Err(unserved::not_allowed(&Method::GET, path))),
    }
}

/// Answers a GET of a document about the API; `None` for all else.
fn document(route: &Route) -> Option<Answer> {
    Some(match route {
        Route::Version => respond::json(&discovery::version()),
        Route::CoreResources => respond::json(&discovery::core_resources()),
        Route::OwnGroup => respond::json(&discovery::own_group()),
        Route::OwnResources => respond::json(&discovery::own_resources()),
        Route::WorkloadGroup(group) => respond::json(&discovery::workload_group(*group)),
        Route::WorkloadResources(group) => respond::json(&discovery::workload_resources(*group)),
        Route::MetricsGroup => respond::json(&discovery::metrics_group()),
        Route::MetricsResources => respond::json(&discovery::metrics_resources()),
        Route::DiscoveryGroup => respond::json(&discovery::slice_group()),
        Route::DiscoveryResources => respond::json(&discovery::slice_resources()),
        Route::NetworkingGroup => respond::json(&discovery::networking_group()),
        Route::NetworkingResources => respond::json(&discovery::networking_resources()),
        Route::OpenApi3 => openapi::index(),
        Route::OpenApi3Document(path) => openapi::third(path),
        _ => return None,
    })
}

/// The content type of a body; empty without one.
fn content_type(request: &Request<Incoming>) -> String {
    let value = request.headers().get(header::CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn list_or_watch<C: Collection>(
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
async fn get_global(backend: &Backend, looked_up: Arc<LookedUp>, name: String, form: Option<IncludeObject>) -> Answer {
    get_fresh(backend, looked_up, &PodPath { namespace: String::new(), name }, form).await
}

/// One object of a kind that is looked up.
async fn get_fresh(backend: &Backend, looked_up: Arc<LookedUp>, path: &PodPath, form: Option<IncludeObject>) -> Answer {
    looked_up.refresh().await?;
    collection::get(&*looked_up, &*looked_up.find(path)?, form, (backend.now)())
}
