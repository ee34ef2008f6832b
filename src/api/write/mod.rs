//! Writes of objects through the API: each becomes a change of one file of the writable source (`writable: true`), and is in force as if a person
//! had edited the file.
//!
//! A request is decoded ([`request`]), planned on the files as they are ([`plan`], pure), written (temporary file, fsync, rename, fsync of the
//! directory), and answered when the source has accepted it. One request at a time; what an editor changes meanwhile is read before.

mod answer;
mod applied;
mod files;
mod host_access;
mod namespaces;
mod plan;
mod released;
mod request;
mod target;
mod writable;

pub(super) use applied::{applied, with_applied};

use super::access::Caller;
use super::delete_options::DeleteOptions;
use super::failure::ApiFailure;
use super::request::{Query, read_body_up_to};
use super::respond::Answer;
use super::route::{PodPath, Route};
use super::{Backend, control, pods::Pods, workloads::Workloads};
use answer::deleted;
use files::Files;
use hyper::body::Incoming;
use hyper::{Method, Request, header};
use plan::{Intent, Planned};
use podstead_artifact::CommitSummary;
use podstead_pod::DEFAULT_NAMESPACE;
use request::{Change, Options};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use target::Target;
pub use writable::Writable;

/// Largest body: that of an API server.
const MAX_BODY_BYTES: usize = 3 << 20;
/// Time limit for the source to accept what was written.
const ACCEPTANCE: Duration = Duration::from_secs(5);

/// Reports whether a request is one that a writable source could carry out.
pub(super) fn is_write(route: &Route, method: &Method) -> bool {
    Target::of(route, "").is_some_and(|target| match *method {
        Method::POST => target.name.is_none(),
        Method::PUT | Method::PATCH | Method::DELETE => target.name.is_some(),
        _ => false,
    })
}

/// Answers a request that writes.
pub(super) async fn write(backend: &Backend, caller: &Caller, route: &Route, query: &Query, request: Request<Incoming>) -> Answer {
    let writable = backend.writable.borrow().clone();
    let namespace = writable.as_ref().map_or(DEFAULT_NAMESPACE, |writable| writable.check.namespace());
    let Some(target) = Target::of(route, namespace) else { return Err(ApiFailure::no_such_path(request.uri().path())) };
    if request.uri().path().trim_end_matches('/').ends_with("/status") {
        return Err(ApiFailure::method_not_allowed("status is what this host observes: it cannot be written"));
    }
    let method = request.method().clone();
    let content_type =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body = read_body_up_to(request.into_body(), MAX_BODY_BYTES).await?;
    let Some(writable) = &writable else {
        // For the words of the refusal, and for a DELETE, which restarts pods.
        return refuse(backend, &target, &method, &content_type, &body, query).await;
    };
    let options = Options::read(&method, query, &agent, &content_type, &body)?;
    let mut change = Change::read(&method, &content_type, &body, &target)?;
    refuse_helm_secret(&target, &change)?;

    let _turn = writable.turn.lock().await;
    let files = Files::read(writable).await?;
    let name = change.name(&target);
    if target.is_global()
        && let Some(name) = &name
    {
        change = namespaces::settle(backend, &target, name, change).await?;
    } else if let Some(name) = &name
        && target.kind == "PersistentVolumeClaim"
    {
        released::refuse_change(backend, &target, name, &change).await?;
    }
    let is_known = name.as_ref().is_some_and(|name| files.find(&target.key(name)).is_some());
    let may_create = match (&change, &name) {
        (Change::Create(_), _) => true,
        (Change::Apply(_), Some(name)) => answer::shown(backend, &target, name).await.is_none(),
        (_, _) => false,
    };
    if !is_known && !may_create {
        return refuse(backend, &target, &method, &content_type, &body, query).await;
    }
    refuse_held(backend, writable)?;
    let name = name.ok_or_else(|| ApiFailure::bad_request("the object has neither metadata.name nor metadata.generateName"))?;
    if !is_known && target.kind == "Pod" {
        let manifest = PodPath { namespace: target.namespace.clone(), name: name.clone() };
        Pods(Arc::clone(&backend.published)).refuse_twin(&manifest)?;
    }
    let shown = answer::shown(backend, &target, &name).await;
    if matches!(change, Change::Create(_))
        && let Some(shown) = &shown
        && files.find(&target.key(&name)).is_none()
    {
        return Err(exists_elsewhere(&target, &name, shown));
    }
    let deletion = if let Change::Delete(options) = &change { Some(options.clone()) } else { None };
    let record = applied::load(backend, &writable.source, &target.key(&name));
    let intent = Intent { target: &target, name: &name, change, options: &options, shown: shown.as_ref(), record: record.as_ref() };
    let planned = plan::plan(&files, writable, &backend.node, intent)?;
    let (grants, user) = (backend.access.grants(caller), backend.access.user_name(caller.uid));
    host_access::authorize(&grants, &user, &target, &name, &planned)?;
    if options.dry_run {
        return answer::planned(&planned, &target, &name, shown.as_ref());
    }
    let is_foreground = deletion.as_ref().is_some_and(|deletion| deletion.is_foreground);
    let kept = is_foreground.then(|| backend.published.keep_until_pods_are_gone(target.key(&name)));
    commit(backend, caller, writable, &files, &target, &name, &options, &planned).await?;
    if let Some(kept) = kept {
        tokio::spawn(kept.pods_are_gone());
    }
    if let Some(deletion) = &deletion {
        end_pod(backend, &target, &name, shown.as_ref(), deletion).await;
        return deleted(&target, &name, shown.as_ref());
    }
    answer::written(backend, &planned, &target, &name).await
}

/// Writes the file, and waits until the source has accepted it.
#[expect(clippy::too_many_arguments, reason = "each is a part of one request")]
async fn commit(
    backend: &Backend,
    caller: &Caller,
    writable: &Arc<Writable>,
    files: &Files,
    target: &Target,
    name: &str,
    options: &Options,
    planned: &Planned,
) -> Result<(), ApiFailure> {
    let key = target.key(name);
    let record = || applied::store(backend, &writable.source, &key, &planned.record);
    let Some(edit) = &planned.edit else { return record() };
    let waker = backend.wakers.get(writable.source.as_str());
    let waker = waker.ok_or_else(|| ApiFailure::unavailable(format!("source {} is not running", writable.source)))?;
    let user = backend.access.user_name(caller.uid);
    let summary = format!("{} {} {}/{name} in {} ({})", options.verb, target.kind, key.namespace, edit.file, options.manager);
    waker.describe_change(Some(CommitSummary { subject: summary, author: format!("{user} (uid {})", caller.uid) }));
    if let Err(failure) = files.write(writable, edit).await {
        waker.describe_change(None);
        return Err(failure);
    }
    if let Err(failure) = record() {
        tracing::warn!(error = failure.message, "the next kubectl apply will not know what was applied");
    }
    tracing::info!(source = %writable.source, %user, peer = %caller, verb = options.verb, object = %format!("{} {}/{name}", target.kind, key.namespace), file = edit.file, manager = options.manager, "object written through the API");
    match tokio::time::timeout(ACCEPTANCE, waker.sync()).await {
        Ok(Ok(verdict)) => match verdict.error {
            None => Ok(()),
            Some(error) => Err(ApiFailure::internal(format!(
                "{} is written, and source {} does not accept it: {error}",
                edit.file, writable.source
            ))),
        },
        Ok(Err(ended)) => Err(ApiFailure::unavailable(format!("{} is written; source {}: {ended}", edit.file, writable.source))),
        Err(_) => Err(ApiFailure::gateway_timeout(format!(
            "{} is written, and source {} has not accepted it within {} s",
            edit.file,
            writable.source,
            ACCEPTANCE.as_secs()
        ))),
    }
}

/// Helm keeps its releases in Secrets by default, and could not read them back: no release could be upgraded or removed.
fn refuse_helm_secret(target: &Target, change: &Change) -> Result<(), ApiFailure> {
    let (Change::Create(body) | Change::Replace(body) | Change::Apply(body)) = change else { return Ok(()) };
    if target.kind != "Secret" || body.value["type"] != "helm.sh/release.v1" {
        return Ok(());
    }
    let message = "Helm cannot keep releases in Secrets here, since the API does not show their data: set HELM_DRIVER=configmap";
    Err(ApiFailure::method_not_allowed(message))
}

/// A held source does not follow its files.
fn refuse_held(backend: &Backend, writable: &Writable) -> Result<(), ApiFailure> {
    let held = backend.published.sources().into_iter().find(|status| status.id == writable.source).and_then(|status| status.hold);
    match held {
        None => Ok(()),
        Some(hold) => Err(ApiFailure::method_not_allowed(format!(
            "source {} is {}: podstead resume {} lets it follow its files again",
            writable.source,
            hold.kind.word(),
            writable.source
        ))),
    }
}

/// Error for creating an object whose name another source has.
fn exists_elsewhere(target: &Target, name: &str, shown: &Value) -> ApiFailure {
    // The words of Kubernetes: clients try again.
    if is_in_deletion(shown) {
        let message = format!("object is being deleted: {} {name:?} already exists", target.plural);
        return ApiFailure::already_exists(message).about(target.plural, name);
    }
    let place = answer::place(shown).map(|place| format!(": {place} has it")).unwrap_or_default();
    ApiFailure::already_exists(format!("{} {name:?} already exists{place}", target.plural)).about(target.plural, name)
}

fn is_in_deletion(shown: &Value) -> bool {
    shown["metadata"]["deletionTimestamp"].is_string()
}

/// Error for a change of an object that stays until its pods are gone.
fn in_deletion(target: &Target, name: &str) -> ApiFailure {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: the object is being deleted, and stays until its pods are gone",
        target.plural
    );
    ApiFailure::conflict(message).about(target.plural, name)
}

/// Answers a change of an object that the writable source does not have, or where no source is writable.
async fn refuse(backend: &Backend, target: &Target, method: &Method, content_type: &str, body: &[u8], query: &Query) -> Answer {
    let path = target.path();
    let pods = Pods(Arc::clone(&backend.published));
    if let Route::Workload(..) | Route::WorkloadScale(..) = &target.route
        && let Some(shown) = answer::shown(backend, target, &path.name).await.filter(is_in_deletion)
    {
        return match *method {
            Method::DELETE => deleted(target, &path.name, Some(&shown)),
            _ => Err(in_deletion(target, &path.name)),
        };
    }
    match &target.route {
        Route::Pod(_) if *method == Method::DELETE => {
            control::delete(backend, &pods.find(&path)?, query, &DeleteOptions::read(content_type, body)?).await
        }
        Route::Namespaces => Err(namespaces::refuse_creation(&backend.published)),
        Route::Workloads(kind, _) => Err(Workloads::new(Arc::clone(&backend.published), *kind).refuse_creation()),
        _ if target.name.is_none() => Err(backend.published.refuse_creation(target.plural)),
        Route::Pod(_) => Err(pods.refuse_change(&path)),
        Route::Workload(kind, _) => {
            let body: Option<Value> = serde_json::from_slice(body).ok();
            Err(Workloads::new(Arc::clone(&backend.published), *kind).refuse_change(&path, body.as_ref()))
        }
        Route::WorkloadScale(kind, _) => Err(Workloads::new(Arc::clone(&backend.published), *kind).refuse_scaling(&path)),
        _ => {
            released::refuse(backend, target, &path.name).await?;
            let shown = answer::shown(backend, target, &path.name).await;
            let shown = shown.ok_or_else(|| ApiFailure::not_found(target.plural, &path.name))?;
            let place = answer::place(&shown).unwrap_or_else(|| "this host".to_owned());
            let kind = target.kind.to_lowercase();
            Err(ApiFailure::method_not_allowed(format!("{kind} {:?} is managed by {place}: change or remove it there", path.name))
                .about(target.plural, &path.name))
        }
    }
}

/// Lets the pod that was deleted end as the client asks for.
async fn end_pod(backend: &Backend, target: &Target, name: &str, shown: Option<&Value>, options: &DeleteOptions) {
    let path = PodPath { namespace: target.namespace.clone(), name: name.to_owned() };
    if target.kind == "Pod"
        && let Ok(pod) = Pods(Arc::clone(&backend.published)).find(&path)
        // Not one that has come in its place.
        && shown.is_some_and(|shown| shown["metadata"]["uid"] == pod.desired.uid.as_str())
    {
        control::hasten(backend, &pod, options).await;
    }
}
