//! Stopping, starting and restarting a pod: `POST .../namespaces/NAMESPACE/pods/NAME/stop|start|restart` of podstead's own group, and DELETE of a
//! pod, which restarts it unless it is an ended pod of a Job.

use super::Backend;
use super::delete_options::DeleteOptions;
use super::failure::ApiFailure;
use super::kinds::PodOrder;
use super::pod_control::PodControlError;
use super::pods::Pods;
use super::published::PublishedPod;
use super::request::Query;
use super::respond::{self, Answer};
use super::route::PodPath;
use hyper::header::{HeaderValue, WARNING};
use podstead_expand::owner;
use podstead_pod::DesiredPod;
use podstead_workload::object::WorkloadKind;
use std::sync::Arc;

/// Carries out an order. The answer is the pod as it is when the order is recorded.
pub(super) async fn command(backend: &Backend, pods: &Pods, order: PodOrder, path: &PodPath) -> Answer {
    let pod = pods.find(path)?;
    let done = match order {
        PodOrder::Stop => backend.pod_control.stop(&pod.desired).await,
        PodOrder::Start => backend.pod_control.start(&pod.desired).await,
        PodOrder::Restart => backend.pod_control.restart(&pod.desired).await,
    };
    done.map_err(|error| refused(error, &path.name))?;
    respond::json_bytes(pod.json())
}

/// Answers DELETE of a pod. The pod of a Job goes when it has ended, and is not run again. Any other pod is restarted, since its manifest is
/// there still, and the answer warns of that. One that ends because its file in the writable source is gone is not restarted.
pub(super) async fn delete(backend: &Backend, pod: &Arc<PublishedPod>, query: &Query, options: &DeleteOptions) -> Answer {
    let is_dry_run = query.get("dryRun").is_some_and(|value| !value.is_empty()) || !options.dry_run.is_empty();
    let name = &pod.desired.full_name.name;
    if is_ended_pod_of_job(pod) {
        if !is_dry_run && !backend.pod_control.forget_ended(&pod.desired).await {
            let message = format!("the Job of pod {name:?} has not counted its end yet, or removes it already: try again");
            return Err(ApiFailure::conflict(message).about("pods", name));
        }
        return respond::json_bytes(pod.json());
    }
    if is_removed(backend, &pod.desired) {
        if !is_dry_run {
            hasten(backend, pod, options).await;
        }
        return respond::json_bytes(pod.json());
    }
    if !is_dry_run {
        backend.pod_control.restart(&pod.desired).await.map_err(|error| refused(error, name))?;
        hasten(backend, pod, options).await;
    }
    let mut response = respond::json_bytes(pod.json())?;
    let warning = warning(&pod.desired);
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{}\"", warning.replace(['"', '\\'], "'"))) {
        response.headers_mut().insert(WARNING, value);
    }
    Ok(response)
}

/// Lets a pod that is not wanted any more end in the time that a client gives it, if that is shorter than its own.
pub(super) async fn hasten(backend: &Backend, pod: &PublishedPod, options: &DeleteOptions) {
    if let Some(grace) = options.grace
        && let Err(error) = backend.pod_control.end(&pod.desired, grace).await
    {
        // It has ended already, or ends in its own time.
        tracing::debug!(pod = %pod.desired.full_name, %error, "the grace period of the request is not applied");
    }
}

/// Reports whether a pod that the files of the writable source do not have ends.
fn is_removed(backend: &Backend, desired: &DesiredPod) -> bool {
    let metadata = &desired.pod.metadata;
    let is_of_file = owner(&desired.pod, &desired.full_name.namespace).is_none();
    let is_writable = backend.writable.borrow().as_ref().is_some_and(|writable| *writable.source() == desired.source);
    metadata.deletion_timestamp.is_some() && is_of_file && is_writable
}

fn is_ended_pod_of_job(pod: &PublishedPod) -> bool {
    let has_ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    has_ended
        && owner(&pod.desired.pod, &pod.desired.full_name.namespace).is_some_and(|owner| owner.kind == WorkloadKind::Job.as_str())
}

fn refused(error: PodControlError, pod: &str) -> ApiFailure {
    match error {
        PodControlError::Conflict(message) => ApiFailure::conflict(message).about("pods", pod),
        PodControlError::Unavailable(message) => ApiFailure::unavailable(message),
    }
}

fn warning(desired: &DesiredPod) -> String {
    let DesiredPod { source, origin, .. } = desired;
    format!("the pod is restarted, not removed: source {source} has its manifest ({origin}); remove it there, or use podstead stop")
}
