//! Carries out one step, and returns the state of the server afterwards. It only interprets responses.

use super::request;
use crate::cluster::{ApiError, Cluster};
use crate::plan::step::{DeleteReason, Observed, Step};
use podstead_pod::PodFullName;
use serde_json::Value;

/// Result of a step.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Done; the server has this.
    Done(Option<Observed>),
    /// Not done, since the state of the server is not the expected one.
    Surprise(Option<Observed>),
    /// Not done.
    Failed(ApiError),
}

/// A step that was carried out.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) name: PodFullName,
    pub(super) step: Step,
    pub(super) outcome: Outcome,
}

/// Carries out `step` for `name`, a pod of `node`.
pub(super) async fn perform(cluster: &dyn Cluster, node: &str, name: PodFullName, step: Step) -> Performed {
    let outcome = match &step {
        Step::Create(object) => {
            // These types have string keys only: writing them cannot fail.
            let object = serde_json::to_value(object.as_ref()).unwrap_or(Value::Null);
            match cluster.send(request::create_pod(&name, object)).await {
                Ok(created) => Outcome::Done(observed(&created)),
                Err(error) if error.is_conflict() => match look(cluster, &name).await {
                    // It is there, and this node may not see it: it is on another one.
                    Outcome::Failed(unseen) if unseen.is_forbidden() => Outcome::Failed(error),
                    looked @ (Outcome::Surprise(_) | Outcome::Done(_) | Outcome::Failed(_)) => looked,
                },
                Err(error) => Outcome::Failed(error),
            }
        }
        Step::PatchStatus { uid, patch } => match cluster.send(request::patch_pod_status(&name, patch.clone())).await {
            Ok(patched) => Outcome::Done(observed(&patched)),
            Err(error) if error.is_not_found() => Outcome::Surprise(None),
            Err(error) if error.is_conflict() => look_for_own(cluster, &name).await,
            // A state that the server does not let follow the one it has: a new mirror has none.
            Err(error) if error.is_invalid() => {
                tracing::info!(pod = %name, %error, "the API server refused the status of the mirror pod; recreating it");
                delete(cluster, node, &name, uid).await
            }
            Err(error) => Outcome::Failed(error),
        },
        Step::Delete { uid, reason } => {
            match reason {
                DeleteReason::Orphan | DeleteReason::Outdated | DeleteReason::ForeignOwner => {
                    tracing::info!(pod = %name, %reason, "deleting mirror pod");
                }
                DeleteReason::Terminating => {
                    tracing::info!(pod = %name, "the mirror pod was deleted at the API server; the pod keeps running")
                }
            }
            delete(cluster, node, &name, uid).await
        }
    };
    Performed { name, step, outcome }
}

async fn delete(cluster: &dyn Cluster, node: &str, name: &PodFullName, uid: &str) -> Outcome {
    match cluster.send(request::delete_pod(name, uid)).await {
        Ok(_) => Outcome::Done(None),
        // Also said of one that is too new for an admission plugin: its copy of the store lags behind.
        Err(error) if error.is_not_found() => match look_for_own(cluster, name).await {
            // One that finds nothing at all, such as a proxy that lost its server, has not said that the pod is gone, and nobody would
            // ask for it again: what has to be there tells.
            Outcome::Surprise(None) => match cluster.send(request::get_node(node)).await {
                Ok(_) => Outcome::Done(None),
                Err(error) => Outcome::Failed(error),
            },
            other @ (Outcome::Surprise(Some(_)) | Outcome::Done(_) | Outcome::Failed(_)) => other,
        },
        Err(error) if error.is_conflict() => look_for_own(cluster, name).await,
        Err(error) => Outcome::Failed(error),
    }
}

/// Fetches a pod of this node from the server. To a node, one that is not there is forbidden: the authorizer knows only those that are
/// related to it (Kubernetes from 1.32 on, AuthorizeNodeWithSelectors).
async fn look_for_own(cluster: &dyn Cluster, name: &PodFullName) -> Outcome {
    match look(cluster, name).await {
        Outcome::Failed(error) if error.is_forbidden() => Outcome::Surprise(None),
        looked @ (Outcome::Surprise(_) | Outcome::Done(_) | Outcome::Failed(_)) => looked,
    }
}

/// Fetches the pod from the server.
async fn look(cluster: &dyn Cluster, name: &PodFullName) -> Outcome {
    match cluster.send(request::get_pod(name)).await {
        Ok(found) => Outcome::Surprise(observed(&found)),
        Err(error) if error.is_not_found() => Outcome::Surprise(None),
        Err(error) => Outcome::Failed(error),
    }
}

fn observed(object: &Value) -> Option<Observed> {
    Observed::of(object).map(|(_, observed)| observed)
}
