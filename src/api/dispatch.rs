//! From a request to its answer.

use super::access::{self, Attributes, Caller, Need};
use super::failure::ApiFailure;
use super::pods::{Pods, has_host_access};
use super::read::read;
use super::request::{Connection, Query, read_body, read_json, wants_table};
use super::respond::{self, Answer, Body};
use super::route::Route;
use super::{
    Backend, claims, control, credentials, discovery, exec, forward, images, openapi, own, reviews, revisions, sync, unserved,
    workloads, write,
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
                Connection::Socket | Connection::Tls => {
                    access::refuse_impersonation(request.headers()).and_then(|()| authorize(backend, caller, &attributes))
                }
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
    let is_about_oneself =
        attributes.resource.starts_with("selfsubject") || ["credentials", "tokenreviews"].contains(&attributes.resource);
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
        (Route::CoreVersions, &Method::GET) => discovery::core(request.headers(), backend.is_writable()),
        (Route::Groups, &Method::GET) => discovery::all_groups(request.headers(), backend.is_writable()),
        (Route::OpenApi2, &Method::GET) => openapi::second(request.headers()),
        (Route::Access, &Method::GET) => credentials::access(backend, peer),
        (Route::CronJobRun(path), &Method::POST) => workloads::run_now(backend, &path).await,
        (Route::ImagePull, &Method::POST) => images::pull(backend, read_json(request.into_body()).await?),
        (Route::ImageImport, &Method::POST) => images::import(backend, read_json(request.into_body()).await?).await,
        (Route::ImagePrune, &Method::POST) => images::prune(backend, read_json(request.into_body()).await?).await,
        (Route::ImageVerify, &Method::POST) => images::verify(backend, read_json(request.into_body()).await?).await,
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

/// The content type of a body; empty without one.
fn content_type(request: &Request<Incoming>) -> String {
    let value = request.headers().get(header::CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
